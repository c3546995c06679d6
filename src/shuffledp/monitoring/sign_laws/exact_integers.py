"""Uniform whole numbers below any bound, exactly."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy

_WORD_BITS = 64


def draw_below(entropy: Entropy, size: int, bound: int) -> NDArray[np.uint64]:
    """Return independent whole numbers, exactly uniform on [0, bound).

    Parameters
    ----------
    entropy : Entropy
        Source of the words.
    size : int
        How many, >= 0.
    bound : int
        In [1, 2^63].

    Returns
    -------
    ndarray of uint64, shape (size,)

    Notes
    -----
    The leading bits of a word are taken, and taken anew where they are not below the bound: less
    than two words each on average.

    Examples
    --------
    >>> draw_below(Entropy.from_seed(0), 3, 1)
    array([0, 0, 0], dtype=uint64)
    """
    out = np.zeros(size, dtype=np.uint64)
    bits = (bound - 1).bit_length()
    if bits == 0:
        return out
    shift, limit = np.uint64(_WORD_BITS - bits), np.uint64(bound)
    np.right_shift(entropy.words(size), shift, out=out)
    wrong = np.flatnonzero(out >= limit)
    while wrong.size:
        again = entropy.words(wrong.size) >> shift
        out[wrong] = again
        wrong = wrong[again >= limit]
    return out
