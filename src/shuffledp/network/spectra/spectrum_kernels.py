"""Compiled loops of spectra: one round of a walk on functions, and weighted products of functions.

A graph comes as compressed rows: the neighbours of node j are
``neighbours[starts[j]:starts[j + 1]]``, and every node has at least one. ``move`` is 1 minus the
laziness. Sums over neighbours are cut into parts, so that their round-off is that of
`additions_of_means` additions, not of as many as a node has neighbours.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: As many neighbours are added up before their sum is added to the others.
PART = 64


def additions_of_means(most_neighbours: int) -> int:
    """Return how many additions a number takes part in, at most, in a sum over neighbours."""
    return min(PART, most_neighbours) + -(-most_neighbours // PART)


@njit(cache=True, nogil=True)
def symmetric_step(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    laziness: float,
    move: float,
    root: NDArray[np.float64],
    scratch: NDArray[np.floating[Any]],
    mean: float,
    out: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    """Write some rows of S x - q <q, x> to ``out``: S symmetric and similar to the walk.

    q is the root of its law, ``scratch`` x / q, in either precision, and ``mean`` <q, x>.
    """
    for i in range(first, last):
        total = 0.0
        for other in neighbours[starts[i] : starts[i + 1]]:
            total += scratch[np.uint32(other)]
        total *= move / (starts[i + 1] - starts[i])
        out[i] = root[i] * (laziness * scratch[i] + total - mean)


@njit(cache=True, nogil=True)
def step_functions(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    laziness: float,
    move: float,
    functions: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write P f to ``out`` for each column f of ``functions`` (num_users, any width)."""
    num_users, width = functions.shape
    part = np.empty(width)
    total = np.empty(width)
    for i in range(num_users):
        begin, end = starts[i], starts[i + 1]
        degree = end - begin
        total[:] = 0.0
        while begin < end:
            stop = min(begin + PART, end)
            part[:] = 0.0
            for place in range(begin, stop):
                other = neighbours[place]
                for k in range(width):
                    part[k] += functions[other, k]
            for k in range(width):
                total[k] += part[k]
            begin = stop
        for k in range(width):
            out[i, k] = laziness * functions[i, k] + move * (total[k] / degree)


@njit(cache=True, nogil=True)
def chebyshev_step(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    laziness: float,
    move: float,
    factor: float,
    current: NDArray[np.float64],
    out: NDArray[np.float64],
    squares: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    """Replace some rows of f by factor P g - f for four columns: f in ``out``, g in ``current``.

    Four numbers of 8 bytes are read for each neighbour, as many as a vector register holds.

    ``squares`` becomes the sum of degree_i f_i^2 of each new column over these rows.
    """
    squares[:] = 0.0
    for i in range(first, last):
        begin, end = starts[i], starts[i + 1]
        degree = end - begin
        total0 = total1 = total2 = total3 = 0.0
        while begin < end:
            stop = min(begin + PART, end)
            part0 = part1 = part2 = part3 = 0.0
            for other in neighbours[begin:stop]:
                row = current[np.uint32(other)]
                part0 += row[0]
                part1 += row[1]
                part2 += row[2]
                part3 += row[3]
            total0 += part0
            total1 += part1
            total2 += part2
            total3 += part3
            begin = stop
        for k, total in enumerate((total0, total1, total2, total3)):
            mean = laziness * current[i, k] + move * (total / degree)
            value = factor * mean - out[i, k]
            out[i, k] = value
            squares[k] += degree * value * value


@njit(cache=True, nogil=True)
def weighted_products(
    weights: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    rows_at_a_time: int,
) -> NDArray[np.float64]:
    """Return the sums over i of weights_i f_i g_i, f a column of ``first``, g of ``second``.

    Each number takes part in ``rows_at_a_time`` + ceil(n / ``rows_at_a_time``) additions.
    """
    total = np.zeros((first.shape[1], second.shape[1]))
    part = np.empty_like(total)
    for begin in range(0, weights.size, rows_at_a_time):
        part[:] = 0.0
        for i in range(begin, min(begin + rows_at_a_time, weights.size)):
            for a in range(first.shape[1]):
                weighted = weights[i] * first[i, a]
                for b in range(second.shape[1]):
                    part[a, b] += weighted * second[i, b]
        total += part
    return total


@njit(cache=True, nogil=True)
def subtract_combinations(
    functions: NDArray[np.float64], coefficients: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Subtract from each column of ``out`` the combination of ``functions`` with coefficients.

    ``coefficients`` has a row for each function and a column for each column of ``out``.
    """
    for i in range(out.shape[0]):
        for a in range(functions.shape[1]):
            value = functions[i, a]
            for b in range(out.shape[1]):
                out[i, b] -= value * coefficients[a, b]
