"""Compiled loops of the uniform shuffler: exact bounded integers, Fisher-Yates, and the scatter.

Rows are either one machine word each (shape (n,)) or several (shape (n, width)).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

_LOWER_HALF = np.uint64(0xFFFFFFFF)
_TWO_TO_32 = np.uint64(1 << 32)
_HALF = np.uint64(32)


@njit
def bounded_integer(half_word: np.uint32, bound: np.uint64) -> np.int64:
    """Return an exactly uniform integer below ``bound`` <= 2^32 - 1, or -1 to draw again.

    Lemire, "Fast random integer generation in an interval", 2019, Algorithm 5. Of the 2^32 values
    w of a half word, those with floor(w bound / 2^32) = v number floor or ceil of 2^32 / bound;
    refusing those with w bound mod 2^32 < 2^32 mod bound leaves floor(2^32 / bound) for every v.
    The division is needed only where the remainder is below ``bound``, that is rarely.
    """
    product = np.uint64(half_word) * bound
    remainder = product & _LOWER_HALF
    if remainder < bound and remainder < (_TWO_TO_32 - bound) % bound:
        return np.int64(-1)
    return np.int64(product >> _HALF)


@njit
def permute_rows(rows: NDArray[Any], last: int, half_words: NDArray[np.uint32]) -> int:
    """Run Fisher-Yates on rows of one or several words from ``last`` down, as far as draws go.

    Returns the index to go on from: 0 when done. A refused draw leaves no trace, so going on
    with fresh draws is exact.
    """
    used = 0
    while last > 0 and used < half_words.size:
        chosen = bounded_integer(half_words[used], np.uint64(last + 1))
        used += 1
        if chosen >= 0:
            if rows.ndim == 1:  # settled when compiled: an inner loop takes twice as long
                rows[chosen], rows[last] = rows[last], rows[chosen]
            else:
                for j in range(rows.shape[1]):
                    rows[chosen, j], rows[last, j] = rows[last, j], rows[chosen, j]
            last -= 1
    return last


@njit
def scatter_rows(
    rows: NDArray[Any], buckets: NDArray[np.uint8], places: NDArray[np.int64], out: NDArray[Any]
) -> None:
    """Copy row i to the next place of its bucket; ``places`` is moved on."""
    for i in range(buckets.size):
        place = places[buckets[i]]
        if rows.ndim == 1:
            out[place] = rows[i]
        else:
            for j in range(rows.shape[1]):
                out[place, j] = rows[i, j]
        places[buckets[i]] += 1
