"""Sampler of the discrete Laplace law in NumPy; exact, with whole numbers only.

The compiled sampler finishes one report before it begins the next. Here the reports of a batch
advance together: at each step every report that still needs a word takes the next one of the
stream. So each word serves one report, which was chosen before anybody looked at the word, and
each report sees fresh uniform words in the order of the compiled algorithm: the law is the same,
the reports drawn from the same words are not. (A batch of one draws the very same report.)

A batch that runs out of words is drawn again *from its first word on*, with more words behind.
What belongs to a batch depends on the number of points alone, so that the words of the batch
decide nothing but its reports.
"""

import numpy as np
from numpy.typing import NDArray

_UNIT_BITS = 52  # twin of laplace._UNIT_BITS
_LARGEST_NUM_UNITS = 128  # twin of laplace._LARGEST_NUM_UNITS
_UNIT = np.uint64(1 << _UNIT_BITS)
_SHIFT = np.uint64(64 - _UNIT_BITS)
_ONE = np.uint64(1)

# Reports of a batch. They need 31,200 words, give or take 400: the caller draws 2^15 at a time.
_BATCH = 4000


class _OutOfWordsError(Exception):
    """The batch needs more words."""


class _Stream:
    """Words, each handed out once and in their order."""

    def __init__(self, words: NDArray[np.uint64], used: int) -> None:
        self._words = words
        self.used = used

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return the next words, or raise `_OutOfWordsError` if there are not so many."""
        if self._words.size - self.used < count:
            raise _OutOfWordsError
        self.used += count
        return self._words[self.used - count : self.used]


def add_noise(
    points: NDArray[np.int32],
    words: NDArray[np.uint64],
    rate: np.uint64,
    smallest: np.int64,
    largest: np.int64,
    out: NDArray[np.int32],
) -> tuple[int, int]:
    """Write grid points with noise, clamped to [smallest, largest], until the words run out.

    Returns the number of reports written, in whole batches, and the number of words that they
    used. Cost: about 2 microseconds a report.
    """
    stream = _Stream(words, 0)
    used = 0
    for start in range(0, points.size, _BATCH):
        block = slice(start, start + _BATCH)
        try:
            noise = _discrete_laplace(stream, points[block].size, rate)
        except _OutOfWordsError:
            return start, used
        used = stream.used
        out[block] = np.clip(points[block] + noise, smallest, largest)
    return points.size, used


def _discrete_laplace(stream: _Stream, count: int, rate: np.uint64) -> NDArray[np.int64]:
    """Draw z with probability proportional to exp(-abs(z) rate / 2^52), ``count`` times.

    Canonne, Kamath, Steinke, Algorithm 2, with t = 2^52, s = rate.
    """
    noise = np.empty(count, dtype=np.int64)
    waiting = np.arange(count)
    while waiting.size:
        # The top 52 bits are the fraction u, the lowest one is the sign: together uniform.
        words = stream.take(waiting.size)
        fractions = words >> _SHIFT
        is_kept = _exp_minus(stream, fractions)
        fractions = fractions[is_kept]
        sizes = ((fractions + _UNIT * _num_units(stream, fractions.size)) // rate).astype(np.int64)
        is_negative = (words[is_kept] & _ONE) == _ONE
        is_twice = is_negative & (sizes == 0)  # zero would count twice
        drawn = waiting[is_kept][~is_twice]
        noise[drawn] = np.where(is_negative, -sizes, sizes)[~is_twice]
        is_kept[is_kept] = ~is_twice
        waiting = waiting[~is_kept]
    return noise


def _num_units(stream: _Stream, count: int) -> NDArray[np.uint64]:
    """Draw the number of coins of probability exp(-1) before the first that fails, up to 128."""
    num_units = np.zeros(count, dtype=np.uint64)
    going_on = np.arange(count)
    for _ in range(_LARGEST_NUM_UNITS):
        if not going_on.size:
            break
        going_on = going_on[_exp_minus(stream, np.full(going_on.size, _UNIT))]
        num_units[going_on] += _ONE
    return num_units


def _exp_minus(stream: _Stream, numerators: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Draw true with probability exactly exp(-x), for each x = numerator / 2^52 in [0, 1].

    Canonne, Kamath, Steinke, Algorithm 1: the first k where a coin of probability x / k fails is
    odd with probability exp(-x). Each coin is one of probability x, then one of probability 1 / k.
    """
    is_odd = np.empty(numerators.size, dtype=np.bool_)
    going_on = np.arange(numerators.size)
    k = 1
    while going_on.size:
        is_up = np.ones(going_on.size, dtype=np.bool_)
        # The coin of probability x = 1 needs no word.
        tossed = np.flatnonzero(numerators[going_on] < _UNIT)
        below = (stream.take(tossed.size) >> _SHIFT) < numerators[going_on[tossed]]
        is_up[tossed] = below
        if k > 1:
            is_up[is_up] = _one_in(stream, int(np.count_nonzero(is_up)), k)
        is_odd[going_on[~is_up]] = k % 2 == 1
        going_on = going_on[is_up]
        k += 1
    return is_odd


def _one_in(stream: _Stream, count: int, k: int) -> NDArray[np.bool_]:
    """Draw true with probability exactly 1 / k: whether a uniform number below k is 0.

    Words beyond the last whole multiple of k are rejected.
    """
    divisor = np.uint64(k)
    last = np.uint64(2**64 // k * k - 1)
    words = stream.take(count).copy()
    rejected = np.flatnonzero(words > last)
    while rejected.size:
        words[rejected] = stream.take(rejected.size)
        rejected = rejected[words[rejected] > last]
    is_zero: NDArray[np.bool_] = words % divisor == 0
    return is_zero
