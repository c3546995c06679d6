"""Standard normal and uniform variables from words."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import read_only

_NUM_LAYERS = 256

# 256 KiB of words at a time stay in the second-level cache, with room for what is made of them.
_WORD_BUFFER = 2**15


def uniforms(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the upper 52 bits of each word as odd multiples of 2^-53: never 0, never 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def standard_normals(count: int, entropy: Entropy) -> NDArray[np.float64]:
    """Return independent standard normals.

    Parameters
    ----------
    count : int
        How many, at least 0.
    entropy : Entropy
        Source of randomness; about 1.02 words are taken for each.

    Returns
    -------
    ndarray of float64, shape (count,)
        Each has a random sign, a random layer and 52 more random bits; none is above 13.

    Notes
    -----
    Source: the ziggurat of Marsaglia, Tsang, Journal of Statistical Software 5(8), 2000, with an
    exponential majorant of the tail as a part of the lowest layer. That makes every attempt the
    same trial of at most three words. The law is that of real numbers up to round-off of a few
    units in 10^16.

    Cost: 3 to 4 ns a number.

    Examples
    --------
    >>> standard_normals(3, Entropy.from_seed(1)).shape
    (3,)
    """
    from shuffledp.randomizers.vectors import normals_kernels as kernels

    widths, heights = layers()
    out = np.empty(count, dtype=np.float64)
    words = np.empty(min(_WORD_BUFFER, 2 * count + kernels.WORDS_PER_ATTEMPT), dtype=np.uint64)
    filled = 0
    while filled < count:
        left = count - filled
        # A little above the mean number, so that most calls need one round at their end.
        drawn = words[: min(words.size, left + left // 32 + 4 * kernels.WORDS_PER_ATTEMPT)]
        entropy.fill(drawn)
        filled += kernels.fill_normals(drawn, widths, heights, out[filled:])
    return out


@lru_cache(maxsize=1)
def layers() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the widths of 256 layers of equal area that cover f(x) = exp(-x^2 / 2), x >= 0.

    Returns
    -------
    widths : ndarray, shape (257,)
        Layer i >= 1 is the rectangle of width ``widths[i]`` between heights f(widths[i]) and
        f(widths[i + 1]). Layer 0, below f(r) with r = ``widths[1]``, is a rectangle of width r
        and the tail majorant f(r) exp(-r (x - r)), whose area f(r) / r makes it as large as a
        rectangle of width ``widths[0]`` = r + 1 / r.
    heights : ndarray, shape (257,)
        f(widths), with 1 at the top.
    """
    low, high = 3.0, 4.0
    while (middle := (low + high) / 2) not in (low, high):
        # With too small an r the layers are too large, and reach the top too early.
        if _stack(middle)[-1] > 0.0:
            high = middle
        else:
            low = middle
    widths = np.array([*_stack(high)[:-1], 0.0])
    heights = np.exp(-0.5 * widths**2)
    return read_only(widths), read_only(heights)


def _stack(r: float) -> list[float]:
    """Return the widths of layers of the area of layer 0; 0 where they would pass the top."""
    base = math.exp(-0.5 * r * r)
    area = base * (r + 1.0 / r)
    widths = [r + 1.0 / r, r]
    while len(widths) <= _NUM_LAYERS:
        height = math.exp(-0.5 * widths[-1] ** 2) + area / widths[-1] if widths[-1] > 0.0 else 1.0
        widths.append(math.sqrt(-2.0 * math.log(height)) if height < 1.0 else 0.0)
    return widths
