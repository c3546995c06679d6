"""All histograms of a multinomial law within windows, in blocks, compiled.

`shuffledp.leakage.uninformed.multinomial` says what is listed and how exactly.
"""

import math

import numpy as np
from numba import njit

from shuffledp.core.numerics.binomial_kernels import deviance, stirling_error


@njit(cache=True, nogil=True)
def poisson_masses(mean: float, low: int, high: int) -> np.ndarray:
    """Return Pr[Po(mean) = h] for h = low ... high; mean > 0."""
    masses = np.empty(high - low + 1)
    for i in range(masses.size):
        count = float(low + i)
        if count == 0.0:
            masses[i] = math.exp(-mean)
        else:
            exponent = -stirling_error(count) - deviance(count, mean)
            masses[i] = math.exp(exponent) / math.sqrt(2.0 * math.pi * count)
    return masses


@njit(cache=True, nogil=True)
def _descend(
    start: int,
    low: np.ndarray,
    high: np.ndarray,
    least_after: np.ndarray,
    most_after: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    ends: np.ndarray,
    rests: np.ndarray,
    masses: np.ndarray,
) -> None:
    """Set entries from ``start`` on to the first histogram that agrees with those before."""
    for i in range(start, low.size):
        if i > 0:
            rests[i] = rests[i - 1] - counts[i - 1]
            masses[i] = masses[i - 1] * tables[starts[i - 1] + counts[i - 1] - low[i - 1]]
        counts[i] = max(low[i], rests[i] - most_after[i])
        ends[i] = min(high[i], rests[i] - least_after[i])


@njit(cache=True, nogil=True)
def next_histograms(
    low: np.ndarray,
    high: np.ndarray,
    least_after: np.ndarray,
    most_after: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    ends: np.ndarray,
    rests: np.ndarray,
    masses: np.ndarray,
    is_first: bool,
    out_counts: np.ndarray,
    out_masses: np.ndarray,
) -> int:
    """Fill a block with the next histograms and the products of their masses; return how many.

    ``counts``, ``ends``, ``rests`` and ``masses`` hold the place between calls: the histogram that
    was written last, the last value of each entry given those before it, the users left to each
    entry, and the product of the masses before it. A block that is not full is the last one.
    """
    size = low.size
    start = 0 if is_first else size
    filled = 0
    while True:
        if start == size:  # the next one: raise the last entry that can be
            i = size - 1
            while i >= 0 and counts[i] == ends[i]:
                i -= 1
            if i < 0:
                return filled
            counts[i] += 1
            start = i + 1
        _descend(
            start,
            low,
            high,
            least_after,
            most_after,
            tables,
            starts,
            counts,
            ends,
            rests,
            masses,
        )
        start = size
        for i in range(size):
            out_counts[filled, i] = counts[i]
        last = size - 1
        out_masses[filled] = masses[last] * tables[starts[last] + counts[last] - low[last]]
        filled += 1
        if filled == out_masses.size:
            return filled
