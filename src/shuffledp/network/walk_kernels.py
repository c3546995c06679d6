"""Compiled loops of random walks: one round of many position laws, and of many walkers.

A graph comes as compressed rows: the neighbours of node j are
``neighbours[starts[j]:starts[j + 1]]``. Its entries are converted to unsigned before they are used
as indices, since a signed index is checked for being negative: that halves the loads per cycle.
"""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.compiled import njit
from shuffledp.core.numerics.uniform_kernels import bounded_integer

_BITS_BELOW_COIN = np.uint64(11)  # a coin is the upper 53 bits of a word

#: Smaller probabilities become zero, so that none is ever denormal, which is slow.
FLUSH_BELOW = 1e-280


@njit
def step_laws(
    starts: Integers,
    neighbours: NDArray[np.int32],
    stay: Floats,
    laws: Floats,
    moving: Floats,
    first: int,
    last: int,
) -> int:
    """Move each column of ``laws`` (num_users, width) by a round, in place, at some nodes.

    A report at node k stays with probability stay[k]; ``moving`` is the probability that goes from
    there to each neighbour, by column. Returns the number of probabilities set to zero because they
    were positive and below `FLUSH_BELOW`.
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


@njit
def _add_rows(chosen: NDArray[np.int32], rows: Floats, total: Floats) -> None:
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


@njit
def step_walkers(
    starts: Integers,
    neighbours: NDArray[np.int32],
    away: NDArray[np.bool_],
    threshold: np.uint64,
    coins: NDArray[np.uint64],
    half_words: NDArray[np.uint32],
    holders: NDArray[np.int32],
    done: int,
) -> int:
    """Move walkers from number ``done`` on by a round, in place, as far as the half words suffice.

    Returns the first walker that has not moved: ``holders.size`` when all have. A refused draw
    leaves no trace, and a walker keeps its coin, so going on with fresh half words is exact.
    ``away`` is empty if nobody is absent, ``coins`` is empty if ``threshold`` is 0.
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


@njit
def add_weights(
    laws: Floats, places: Integers, inverses: Floats, grid: Floats, out: Floats
) -> Floats:
    """Add the weights of each column of ``laws`` on a grid of ratios to ``out``.

    ``out[b, k]`` is for grid[k + 1]. A place of probability p and ratio x = p * inverse between two
    points is shared by them such that the mean of x under the reference law stays: the upper one
    gets p (x - below) above / (x (above - below)), and the lower one the rest.

    Returns the least and the greatest ratio of each column, a row each.
    """
    extremes = np.zeros((2, out.shape[0]))
    low, high = extremes
    low[:] = np.inf
    per_unit = 1.0 / np.min(np.diff(grid))
    # A table of the points below finds most ratios at once.
    marks = np.arange(int(min(2.0, grid[-1]) * per_unit) + 1) / per_unit
    nearest = np.searchsorted(grid, marks, side="right") - 1
    last = grid.size - 2
    for i in range(places.size):
        row = laws[places[i]]
        for b in range(low.size):
            x = row[b] * inverses[i]
            low[b] = min(low[b], x)
            high[b] = max(high[b], x)
        for b in range(low.size):
            p = row[b]
            if p == 0.0:
                continue
            x = p * inverses[i]
            mark = x * per_unit
            k = nearest[int(mark)] if mark < nearest.size else np.searchsorted(grid, x, "right") - 1
            k = min(k, last)
            while k > 0 and x < grid[k]:
                k -= 1
            while k < last and x >= grid[k + 1]:
                k += 1
            below, above = grid[k], grid[k + 1]
            up = min(p * ((x - below) / (above - below)) * (above / x), p)
            out[b, k] += up
            if k > 0:
                out[b, k - 1] += p - up
    return extremes
