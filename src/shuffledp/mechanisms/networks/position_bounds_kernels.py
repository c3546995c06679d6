"""Compiled loops over the laws of many reports: extremes and sums over places."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def extremes(
    laws: NDArray[np.float64],
    places: NDArray[np.int64],
    inverses: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    squares: NDArray[np.float64],
    sums: NDArray[np.float64],
    least: NDArray[np.float64],
    greatest: NDArray[np.float64],
) -> None:
    """Fill in what is asked of laws, one a column of ``laws`` (num_users, width).

    Over ``places``, with ``inverses`` of the reference law there: least and greatest ratio of
    each column, sum of squares, sum. ``least`` and ``greatest``, by place, are lowered and raised
    to the extremes over the columns. At all other places the laws are 0.
    """
    low[:] = np.inf
    high[:] = 0.0
    squares[:] = 0.0
    sums[:] = 0.0
    for i in range(places.size):
        row = laws[places[i]]
        inverse = inverses[i]
        smallest = np.inf
        largest = 0.0
        for b in range(low.size):
            value = row[b]
            low[b] = min(low[b], value * inverse)
            high[b] = max(high[b], value * inverse)
            squares[b] += value * value
            sums[b] += value
            smallest = min(smallest, value)
            largest = max(largest, value)
        least[places[i]] = min(least[places[i]], smallest)
        greatest[places[i]] = max(greatest[places[i]], largest)


@njit(cache=True, nogil=True)
def least_ratios(
    laws: NDArray[np.float64],
    places: NDArray[np.int64],
    inverses: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write the least of ``laws[place] * inverse`` over places to ``out``, for each column."""
    out[:] = np.inf
    for i in range(places.size):
        row = laws[places[i]]
        for b in range(out.size):
            out[b] = min(out[b], row[b] * inverses[i])
