"""Compiled loop that sums the scores of integer reports."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit


@njit(cache=True, nogil=True)
def sum_scores(codes: NDArray[Any], centre: int) -> tuple[np.int64, float]:
    """Return the sums of 2 code - centre and of its square, for at most 2^29 codes of 32 bits.

    A score is below 2^33 in size, so that the first sum is exact. The second is exact up to 2^53,
    and beyond that each addition is rounded to the nearest float.
    """
    total = np.int64(0)
    total_of_squares = 0.0
    for i in range(codes.size):
        score = 2 * np.int64(codes[i]) - centre
        total += score
        total_of_squares += np.float64(score) * np.float64(score)
    return total, total_of_squares
