"""Loops of k-ary randomized response in NumPy: drawing reports and counting them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def randomize_block(
    codes: NDArray[Any],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    k: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report i from true code i and word i: symbol number min(w // T, k - 1) past the truth.

    The same reports as from the compiled loop. Cost: about 10 ns a report.
    """
    one = np.uint64(1)
    report = np.minimum(words // threshold, k - one)
    report += codes
    report += one
    report -= k * (report >= k)  # around the circle
    out[:] = report


def count_codes(codes: NDArray[Any], tables: NDArray[np.int64]) -> None:
    """Add one to ``tables[i mod rows, codes[i]]`` for each i; the caller has checked the codes."""
    num_tables, k = tables.shape
    for row in range(num_tables):
        tables[row] += np.bincount(codes[row::num_tables], minlength=k)
