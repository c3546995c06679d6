"""The compiled loop of the Cayley model."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.uniform_kernels import bounded_integer

_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFFFFFF)
_HALF_UNIT = 2.0**-32


@njit(cache=True, nogil=True)
def draw_swaps(
    pi: NDArray[np.int64], start: int, theta: float, margin: float, words: NDArray[np.uint64]
) -> tuple[int, int, bool]:
    """Swap each place from ``start`` on with an earlier one, or leave it, as far as words go.

    The lower half of a word gives the earlier place, the upper half the first 32 bits of the U
    that is compared with j / (j + e^theta). A word is refused before its upper half is looked at,
    so that this does not depend on it. Returns the place to go on from, the number of words used,
    and whether the last word used is undecided.
    """
    used = 0
    # From theta = 700 on, no 32 bits but zeros decide, and these are always settled elsewhere.
    weight = math.exp(min(theta, 700.0))
    while start < pi.size and used < words.size:
        word = words[used]
        used += 1
        other = bounded_integer(np.uint32(word & _LOWER_HALF), np.uint64(start))
        if other < 0:
            continue
        probability = start / (start + weight)
        size = float(word >> _HALF)
        if (size + 1.0) * _HALF_UNIT <= probability * (1.0 - margin):
            held = pi[other]
            pi[other] = pi[start]
            pi[start] = held
        elif size * _HALF_UNIT < probability * (1.0 + margin):
            return start, used, True
        start += 1
    return start, used, False
