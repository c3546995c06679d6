"""The compiled loop that adds up who hides whom; see ``place_tree.py``."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Parts no nearer than x / theta are taken as a whole where that costs less than this share, times
# (1 + x)^2, of what they add: far parts count for little.
_TOLERANCE = 0.003

# Parts all of whose people count for less than e^-14 are left out.
_FARTHEST = 14.0

# Relative error of exp, sqrt and their arguments, with room; it is taken off.
_ROUNDING = 2.0**-46


@njit(cache=True, nogil=True)
def crowds(
    cells: NDArray[np.float64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    means: NDArray[np.float64],
    spreads: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    theta: float,
    slack: float,
    sums: NDArray[np.float64],
) -> None:
    """Write lower bounds of the sums of e^(-theta d) over everybody; cells in the tree's order."""
    stack = np.empty(128, dtype=np.int64)
    for i in range(cells.shape[0]):
        if i > 0 and _distance(cells[i], cells[i - 1]) == 0.0:
            sums[i] = sums[i - 1]
            continue
        total = 0.0
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            part = stack[top]
            nearest = theta * _distance_to_box(cells[i], lows[part], highs[part])
            if nearest > _FARTHEST:
                continue
            distance = _distance(cells[i], means[part])
            reach = math.sqrt(distance * distance + spreads[part])
            if theta * (reach - distance) <= _TOLERANCE * (1.0 + nearest) ** 2:
                total += (ends[part] - starts[part]) * _weight(theta, reach, slack)
            elif 2 * part + 2 < starts.size:
                stack[top] = 2 * part + 1
                stack[top + 1] = 2 * part + 2
                top += 2
            else:
                for j in range(starts[part], ends[part]):
                    total += _weight(theta, _distance(cells[i], cells[j]), slack)
        sums[i] = total


@njit(cache=True, nogil=True)
def _distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the Euclidean distance of two points."""
    square = 0.0
    for axis in range(first.size):
        square += (first[axis] - second[axis]) ** 2
    return math.sqrt(square)


@njit(cache=True, nogil=True)
def _distance_to_box(
    point: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> float:
    """Return the distance from a point to the nearest one of a box."""
    square = 0.0
    for axis in range(point.size):
        gap = max(low[axis] - point[axis], point[axis] - high[axis], 0.0)
        square += gap * gap
    return math.sqrt(square)


@njit(cache=True, nogil=True)
def _weight(theta: float, distance: float, slack: float) -> float:
    """Return e^(-theta d), rounded down."""
    exponent = theta * (distance + slack)
    return math.exp(-exponent) * (1.0 - _ROUNDING * (1.0 + exponent))
