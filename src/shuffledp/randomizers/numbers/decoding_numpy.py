"""Loop in NumPy that sums the scores of integer reports."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sum_scores(codes: NDArray[Any], centre: int) -> tuple[np.int64, float]:
    """Return the sums of 2 code - centre and of its square, for at most 2^29 codes of 32 bits.

    The same sums as from the compiled loop: a running sum rounds in the same order.
    """
    scores = 2 * codes.astype(np.int64) - centre
    total: np.int64 = scores.sum(dtype=np.int64)
    running = np.cumsum(scores.astype(np.float64) ** 2)
    return total, float(running[-1]) if running.size else 0.0
