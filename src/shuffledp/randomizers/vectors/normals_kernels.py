"""The compiled loop of the normal sampler."""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

# An attempt takes at most this many words, so none begins with fewer.
WORDS_PER_ATTEMPT = 3

_LAYER_BITS = np.uint64(255)


@njit(cache=True, nogil=True)
def _uniform(word: np.uint64) -> float:
    """Return the upper 52 bits of a word as an odd multiple of 2^-53 in (0, 1)."""
    return (np.float64(np.int64(word >> np.uint64(12))) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True)
def _signed_uniform(word: np.uint64) -> float:
    """Return the upper 53 bits of a word, sign first, as an odd multiple of 2^-53 in (-1, 1)."""
    return (np.float64(np.int64(word) >> np.int64(11)) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True)
def fill_normals(
    words: NDArray[np.uint64],
    widths: NDArray[np.float64],
    heights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int:
    """Fill ``out`` with standard normals from the front, and return how many there are.

    Rejection from the layers of `normals.layers`: a point uniform on a random layer is kept if it
    lies below the density. Attempts are independent of each other, and none begins unless it has
    all the words that it may need; so stopping when the words run out favours nothing.
    """
    used = 0
    filled = 0
    while filled < out.size and words.size - used >= WORDS_PER_ATTEMPT:
        word = words[used]
        used += 1
        layer = np.int64(word & _LAYER_BITS)
        # The sign comes with the fraction: a branch on a random bit would cost more than the rest.
        point = _signed_uniform(word) * widths[layer]
        x = abs(point)
        if x >= widths[layer + 1]:
            if layer == 0:
                # The tail's majorant f(r) exp(-r (x - r)); f over it is exp(-(x - r)^2 / 2).
                excess = -math.log(_uniform(words[used])) / widths[1]
                x = widths[1] + excess
                kept = _uniform(words[used + 1]) < math.exp(-0.5 * excess * excess)
                used += 2
            else:
                rise = heights[layer + 1] - heights[layer]
                kept = heights[layer] + _uniform(words[used]) * rise < math.exp(-0.5 * x * x)
                used += 1
            if not kept:
                continue
            point = math.copysign(x, point)
        out[filled] = point
        filled += 1
    return filled
