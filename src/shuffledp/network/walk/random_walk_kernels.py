"""Compiled loops of random walks: one round of many position laws, and of many walkers.

A graph comes as compressed rows: the neighbours of node j are
``neighbours[starts[j]:starts[j + 1]]``. Where their numbers are indices they are taken as
unsigned, for a signed one is checked for being negative: that halves the loads under way at once.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.uniform_kernels import bounded_integer

_BITS_BELOW_COIN = np.uint64(11)  # a coin is the upper 53 bits of a word

#: Probabilities below this become zero, so that none is ever denormal, which is slow.
FLUSH_BELOW = 1e-280


@njit(cache=True, nogil=True)
def step_laws(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    stay: NDArray[np.float64],
    laws: NDArray[np.float64],
    moving: NDArray[np.float64],
    first: int,
    last: int,
) -> int:
    """Move each column of ``laws`` (num_users, width) by a round, in place, at some nodes.

    A report at node k stays with probability stay[k]; ``moving`` is what goes from there to each
    neighbour, by column. Returns how many probabilities were set to zero because they were
    positive and below `FLUSH_BELOW`.
    """
    width = laws.shape[1]
    flushed = 0
    for j in range(first, last):
        row = laws[j]
        for b in range(width):
            row[b] *= stay[j]
        _add_rows(neighbours[starts[j] : starts[j + 1]], moving, row)
        for b in range(width):
            if 0.0 < row[b] < FLUSH_BELOW:
                row[b] = 0.0
                flushed += 1
    return flushed


@njit(cache=True, nogil=True)
def _add_rows(
    chosen: NDArray[np.int32], rows: NDArray[np.float64], total: NDArray[np.float64]
) -> None:
    """Add some rows to ``total``; four at a time, so that it is read and written less often."""
    whole = chosen.size - chosen.size % 4
    for e in range(0, whole, 4):
        one = rows[np.uint32(chosen[e])]
        two = rows[np.uint32(chosen[e + 1])]
        three = rows[np.uint32(chosen[e + 2])]
        four = rows[np.uint32(chosen[e + 3])]
        for b in range(total.size):
            total[b] += (one[b] + two[b]) + (three[b] + four[b])
    for e in range(whole, chosen.size):
        one = rows[np.uint32(chosen[e])]
        for b in range(total.size):
            total[b] += one[b]


@njit(cache=True, nogil=True)
def step_one_law(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    stay: NDArray[np.float64],
    law: NDArray[np.float64],
    moving: NDArray[np.float64],
    first: int,
    last: int,
) -> int:
    """Do what `step_laws` does for a single law, of shape (num_users,)."""
    flushed = 0
    for j in range(first, last):
        total = stay[j] * law[j]
        for k in neighbours[starts[j] : starts[j + 1]]:
            total += moving[np.uint32(k)]
        if 0.0 < total < FLUSH_BELOW:
            total = 0.0
            flushed += 1
        law[j] = total
    return flushed


@njit(cache=True, nogil=True)
def step_walkers(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    away: NDArray[np.bool_],
    threshold: np.uint64,
    coins: NDArray[np.uint64],
    half_words: NDArray[np.uint32],
    holders: NDArray[np.int32],
    done: int,
) -> int:
    """Move walkers from number ``done`` on by a round, in place, as far as the half words go.

    Returns the walker to go on from: ``holders.size`` when all have moved. A refused draw leaves
    no trace, and a walker keeps its coin, so going on with fresh half words is exact. ``away`` is
    empty if nobody is absent, ``coins`` is if ``threshold`` is 0.
    """
    used = 0
    while done < holders.size and used < half_words.size:
        holder = np.uint32(holders[done])
        first = starts[holder]
        degree = starts[holder + 1] - first
        stays = degree == 0 or (away.size > 0 and away[holder])
        if threshold > 0 and (coins[done] >> _BITS_BELOW_COIN) < threshold:
            stays = True
        if stays:
            done += 1
            continue
        chosen = bounded_integer(half_words[used], np.uint64(degree))
        used += 1
        if chosen >= 0:
            holders[done] = neighbours[np.uint64(first + chosen)]
            done += 1
    return done
