"""Compiled loop of unbiased rounding to a grid."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit


@njit(cache=True, nogil=True)
def round_block(
    values: NDArray[np.float64],
    words: NDArray[np.uint64],
    low: float,
    width: float,
    num_steps: float,
    out: NDArray[np.int32],
) -> None:
    """Write the grid point of value i: its position rounded down, or up with the chance left over.

    The caller has checked that the values lie in the range. Then the position lies in
    [0, num_steps], since each operation on floats is monotone, and the point does too: at the
    upper end nothing is left over. Distances below 2^-90 widths lead to the point 0 anyway; taken
    for 0, they do not lead to subnormal numbers, which take some processors longer than others.
    """
    least = width * 2.0**-90
    zero = np.float64(0.0)  # of the type of a distance: uncompiled, other types take other times
    for i in range(values.size):
        distance = values[i] - low
        position = (distance if distance >= least else zero) / width * num_steps
        below = np.int32(position)
        # At most 1 - 2^-53, so that the product is below 2^64; and it is exact.
        left_over = position - below
        out[i] = below + np.int32(words[i] < np.uint64(left_over * 18446744073709551616.0))
