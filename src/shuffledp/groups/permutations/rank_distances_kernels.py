"""Compiled loops of the rank distances: inversions by merging, and cycles by following them."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def count_inversions(values: NDArray[np.int64], spare: NDArray[np.int64]) -> int:
    """Return the number of i < j with values[i] > values[j]; sorts ``values`` on the way.

    Merge sort from runs of one upwards: an item that is taken from the right run overtakes all
    that are left of the left run. ``spare`` has the same size.
    """
    size = values.size
    inversions = 0
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            middle = min(start + width, size)
            end = min(middle + width, size)
            left, right = start, middle
            for place in range(start, end):
                if left < middle and (right == end or values[left] <= values[right]):
                    spare[place] = values[left]
                    left += 1
                else:
                    spare[place] = values[right]
                    right += 1
                    inversions += middle - left
        values[:] = spare
        width *= 2
    return inversions


@njit(cache=True, nogil=True)
def count_cycles(pi: NDArray[np.int64]) -> int:
    """Return the number of cycles of a permutation, fixed points included."""
    seen = np.zeros(pi.size, dtype=np.bool_)
    cycles = 0
    for start in range(pi.size):
        if not seen[start]:
            cycles += 1
            place = start
            while not seen[place]:
                seen[place] = True
                place = pi[place]
    return cycles
