"""Loop of unbiased rounding to a grid, in NumPy."""

import numpy as np
from numpy.typing import NDArray


def round_block(
    values: NDArray[np.float64],
    words: NDArray[np.uint64],
    low: float,
    width: float,
    num_steps: float,
    out: NDArray[np.int32],
) -> None:
    """Write the grid point of value i: its position rounded down, or up with the chance left over.

    The same points as from the compiled loop, by the same operations on floats.
    """
    distances = values - low
    distances *= distances >= width * 2.0**-90  # see the compiled loop
    positions = distances / width * num_steps
    below = positions.astype(np.int32)
    # At most 1 - 2^-53, so that the product is below 2^64; and it is exact.
    thresholds = ((positions - below) * 2.0**64).astype(np.uint64)
    out[:] = below + (words < thresholds)
