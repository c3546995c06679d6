"""The compiled sum behind the mean displacement under Kendall's distance."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Terms below this share of the sum are left out, with all that follow: these fall faster still.
_NEGLIGIBLE = 1e-20


@njit(cache=True, nogil=True)
def mean_crossings(
    num_items: int, last: int, brackets: NDArray[np.float64], rises: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean number of items that cross from the first k places, for k = 1, ..., last.

    j items cross with a weight whose ratio to that of j - 1 is
    rises[j] brackets[k - j + 1] brackets[num_items - k - j + 1]. The weights are log-concave in j,
    so that the sum is taken from the mode outwards. ``last`` is at most num_items / 2; brackets
    beyond the end of the array equal its last.
    """
    means = np.empty(last, dtype=np.float64)
    end = brackets.size - 1
    mode = 0
    for k in range(1, last + 1):
        # The mode does not fall as k grows to num_items / 2.
        while mode < k:
            j = mode + 1
            ratio = rises[j] * brackets[min(k - j + 1, end)]
            if ratio * brackets[min(num_items - k - j + 1, end)] <= 1.0:
                break
            mode = j
        total, moment, weight = 1.0, float(mode), 1.0
        for j in range(mode + 1, k + 1):
            ratio = rises[j] * brackets[min(k - j + 1, end)]
            weight *= ratio * brackets[min(num_items - k - j + 1, end)]
            total += weight
            moment += j * weight
            if j * weight <= _NEGLIGIBLE * moment:
                break
        weight = 1.0
        for j in range(mode, 0, -1):
            ratio = rises[j] * brackets[min(k - j + 1, end)]
            weight /= ratio * brackets[min(num_items - k - j + 1, end)]
            total += weight
            moment += (j - 1) * weight
            if weight <= _NEGLIGIBLE * total:
                break
        means[k - 1] = moment / total
    return means
