"""Compiled loops of k-ary randomized response: drawing reports and counting them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit


@njit(cache=True, nogil=True)
def randomize_block(
    codes: NDArray[Any],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    k: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report i from true code i and word i: symbol number min(w // T, k - 1) past the truth.

    Numbering the symbols from the one after the truth, around the circle, puts the truth itself
    last, as number k - 1. So "other symbol number w // T if w < (k - 1) T, else the truth" needs
    no branch on the word, which no processor could predict.
    """
    last = k - np.uint64(1)
    reciprocal = 1.0 / np.float64(threshold)
    limit = np.float64(last)
    for i in range(codes.size):
        word = words[i]
        # A product in place of a 64-bit division. Below 2^32 its error is under 1e-5, so that the
        # whole part is off by at most one, and the exact products below put that right.
        step = np.uint64(min(np.float64(word) * reciprocal, limit))
        product = step * threshold  # at most (k - 1) T < 2^64
        if product > word:
            step -= np.uint64(1)
        elif step < last and word - product >= threshold:
            step += np.uint64(1)
        report = np.uint64(codes[i]) + np.uint64(1) + step
        if report >= k:
            report -= k
        out[i] = report


@njit(cache=True, nogil=True)
def count_codes(codes: NDArray[Any], tables: NDArray[np.int64]) -> None:
    """Add one to ``tables[i mod rows, codes[i]]`` for each i; the caller has checked the codes.

    With several rows (a power of two), equal codes in a row do not wait for each other's sums.
    """
    mask = tables.shape[0] - 1
    for i in range(codes.size):
        tables[i & mask, codes[i]] += 1
