"""Loop of the piecewise mechanism in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def randomize_block(
    points: NDArray[np.int32],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    high_threshold: np.uint64,
    num_steps: np.uint64,
    window: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report i from grid point i and word i.

    A word w below m T makes the output number floor(w / T) of the m that are outside the window;
    any other word makes output number floor((w - m T) / H) of the window's W. The same reports as
    from the compiled loop. Cost: about 10 ns a report.
    """
    border = num_steps * threshold
    one = np.uint64(1)
    is_inside = words >= border
    low_steps = np.minimum(words // threshold, num_steps - one)
    # Differences of words below the border wrap around, and are not used.
    high_steps = np.minimum((words - border) // high_threshold, window - one)
    shifted = points.astype(np.uint64)
    # No selection here: it may branch, on the value.
    outside = low_steps + (low_steps >= shifted) * window
    out[:] = np.where(is_inside, high_steps + shifted, outside)
