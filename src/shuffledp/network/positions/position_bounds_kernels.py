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
def add_weights(
    laws: NDArray[np.float64],
    places: NDArray[np.int64],
    inverses: NDArray[np.float64],
    scales: NDArray[np.float64],
    grid: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add what each column of ``laws`` times its scale gives to a grid of ratios, to ``out``.

    ``out[b, k]`` is for grid[k + 1]. A place of probability p and ratio x = p * inverse between two
    points is shared by them such that the mean of x under the reference law stays: the upper one
    gets p (x - below) above / (x (above - below)), and the lower one the rest.
    """
    per_unit = 1.0 / np.min(np.diff(grid))
    # A table of the points below finds most ratios at once.
    marks = np.arange(int(min(2.0, grid[-1]) * per_unit) + 1) / per_unit
    nearest = np.searchsorted(grid, marks, side="right") - 1
    last = grid.size - 2
    for i in range(places.size):
        row = laws[places[i]]
        for b in range(out.shape[0]):
            p = row[b] * scales[b]
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
