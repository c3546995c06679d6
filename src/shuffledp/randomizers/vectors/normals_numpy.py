"""The loop of the normal sampler in NumPy."""

import math

import numpy as np
from numpy.typing import NDArray

# An attempt takes at most this many words, so none begins with fewer.
WORDS_PER_ATTEMPT = 3

_LAYER_BITS = np.uint64(255)
_SIGN_AND_FRACTION = np.int64(11)


def fill_normals(
    words: NDArray[np.uint64],
    widths: NDArray[np.float64],
    heights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int:
    """Fill ``out`` with standard normals from the front, and return how many there are.

    See the compiled loop, which returns the same numbers. A word whose point lies in the core of
    its layer is an attempt by itself; so all words are taken for attempts first, and the few that
    are none are struck out. Of one word in 70 the point lies outside the core: it is looked at
    on its own, with the words behind it, which are then no attempts.

    Cost: about 50 ns a number.
    """
    num_starts = max(0, words.size - WORDS_PER_ATTEMPT + 1)
    starts = words[:num_starts]
    layers = (starts & _LAYER_BITS).astype(np.int64)
    fractions = (starts.view(np.int64) >> _SIGN_AND_FRACTION).astype(np.float64)
    points = (fractions + 0.5) * 2.0**-52 * widths[layers]
    is_number = np.abs(points) < widths[layers + 1]
    next_start = 0
    for start in np.flatnonzero(~is_number).tolist():
        if start < next_start:
            continue  # an earlier attempt has taken this word
        size, next_start = _outside_core(words, start, abs(points[start]), widths, heights)
        is_number[start + 1 : next_start] = False
        if size is not None:
            is_number[start] = True
            points[start] = math.copysign(size, points[start])
    numbers = points[is_number][: out.size]
    out[: numbers.size] = numbers
    return int(numbers.size)


def _outside_core(
    words: NDArray[np.uint64],
    start: int,
    size: float,
    widths: NDArray[np.float64],
    heights: NDArray[np.float64],
) -> tuple[float | None, int]:
    """Return the size of the number that an attempt makes, or none, and the word after it."""
    layer = int(words[start] & _LAYER_BITS)
    first = _uniform(words[start + 1])
    if layer == 0:
        # The tail's majorant f(r) exp(-r (x - r)); f over it is exp(-(x - r)^2 / 2).
        excess = -math.log(first) / float(widths[1])
        is_kept = _uniform(words[start + 2]) < math.exp(-0.5 * excess * excess)
        return (float(widths[1]) + excess if is_kept else None), start + 3
    low, high = float(heights[layer]), float(heights[layer + 1])
    is_kept = low + first * (high - low) < math.exp(-0.5 * size * size)
    return (size if is_kept else None), start + 2


def _uniform(word: np.uint64) -> float:
    """Return the upper 52 bits of a word as an odd multiple of 2^-53 in (0, 1)."""
    return ((int(word) >> 12) + 0.5) * 2.0**-52
