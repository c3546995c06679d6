"""How far the law of a holder is from a reference law Q: the law of rho = P_i / Q, on a grid.

What bounds privacy is a law of rho under Q (docs/results/network.md), and any law that is larger in
convex order will do. It is written down by its tails under P_i itself,

    T_i(x) = P_i(rho >= x) = E_Q[rho; rho >= x],

of which any larger ones of a law will do: E_Q(rho - t)_+ is the mean of (1 - t / rho)_+ under P_i,
which increases with rho, and E_Q rho = 1 for all. So the tails of several users have a common
bound, their largest, and rounding is upwards.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# The grid is finest near 1, where the ratios of all who are hidden well lie: to share a ratio
# between two points adds to the variance. Beyond these points it goes up by a constant factor.
_TENTHS, _NEAR_ONE = np.arange(20) / 10, np.arange(31, 70) / 50
_POINTS = np.concatenate([np.union1d(_TENTHS, _NEAR_ONE), 2.0 * 1.1 ** np.arange(16)])
_RATIO = 1.2

# More than a few roundings of a sum.
_MARGIN = 2.0**-40

# Variances are widened to at least the first number, and by the second one of themselves.
_LEAST_CHI_SQUARE, _WIDENING = 1e-12, 1e-6

# Q is lowered to what all but one of these parts of a sample of users reach, but not below 1 %.
_QUANTILES, _LEAST_SHARE = (0.01, 0.03, 0.1, 0.3, 0.45, 0.6), 0.01

# Whose position tells more than this is not hidden well by any Q.
_HIDDEN = 0.1

# Then it is moved by these steps, as far as that helps.
_SHARE_STEPS = 2 * (3e-3, 1e-3, 3e-4, 1e-4)
_NOTHING = 1e-9

# Where a law of given variance is written down, in standard deviations from 1.
_STEPS = np.concatenate([-np.geomspace(100.0, 0.2, 24), np.linspace(-0.1, 3.0, 32)])


def weight_grid(largest: float) -> NDArray[np.float64]:
    """Return the grid from 0 to at least ``largest``.

    Examples
    --------
    >>> weight_grid(2.0)[[0, 1, 6, 7, 46, 53, 54]].round(9).tolist()
    [0.0, 0.1, 0.6, 0.62, 1.4, 2.2, 2.42]
    """
    top = float(_POINTS[-1])
    above = max(math.ceil(math.log(max(largest / top, 1.0)) / math.log(_RATIO)), 0) + 1
    return np.append(_POINTS, top * _RATIO ** np.arange(1, above + 1))


def chi_square_law(
    chi_square: float, largest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a law that dominates, in convex order, all laws on [0, h] of mean 1 and variance <= c.

    Parameters
    ----------
    chi_square : float
        c >= 0.
    largest : float
        h >= 1.

    Returns
    -------
    values, masses : ndarray of float64
        Masses add up to 1.

    Notes
    -----
    The largest E(rho - t)_+ of such a law, for c <= h - 1, is
    (sqrt(c + (t - 1)^2) - (t - 1)) / 2; for t <= (1 + c) / 2 it is 1 - t / (1 + c), and for
    t >= h - ((h - 1)^2 + c) / (2 (h - 1)) it is (h - t) c / ((h - 1)^2 + c) (Scarf 1958; the last
    is the second for h - rho). As a largest of convex functions it is convex. Lines between some
    of its points are the same function of a law, found in exact fractions. c is widened by 1e-6 of
    itself, against round-off of at most 1e-15 of a number at most 1e4 times as large.

    Examples
    --------
    >>> values, masses = chi_square_law(0.01, 1.5)
    >>> round(float(values @ masses), 12), round(float(masses.sum()), 12)
    (1.0, 1.0)
    >>> [each.round(6).tolist() for each in chi_square_law(1.0, 2.0)]  # rho is 0 or 2
    [[0.0, 2.0], [0.5, 0.5]]
    """
    top = max(largest, 1.0 + 2.0 * _LEAST_CHI_SQUARE)
    wide = min(max(chi_square, _LEAST_CHI_SQUARE) * (1.0 + _WIDENING), top - 1.0)
    first, last = 0.5 * (1.0 + wide), top - 0.5 * (top - 1.0 + wide / (top - 1.0))
    scale = math.sqrt(wide)
    steps = np.unique(np.concatenate([_STEPS, np.geomspace(_STEPS[-1], max(top / scale, 1e2), 80)]))
    inner = 1.0 + scale * steps
    inner = inner[(inner > first) & (inner < last)]
    excess = inner - 1.0
    root = np.sqrt(wide + excess * excess)
    inner_means = np.where(excess > 0.0, 0.5 * wide / (root + excess), 0.5 * (root - excess))
    points = [Fraction(0), *map(Fraction, inner.tolist()), Fraction(top)]
    means = [Fraction(1), *map(Fraction, inner_means.tolist()), Fraction(0)]
    slopes = [
        (means[k + 1] - means[k]) / (points[k + 1] - points[k]) for k in range(len(points) - 1)
    ]
    masses = [late - early for early, late in pairwise([Fraction(-1), *slopes, Fraction(0)])]
    return np.array(points, np.float64), np.array([max(each, 0) for each in masses], np.float64)


def tails_of(
    values: NDArray[np.float64], masses: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return the tails at grid[1:] of a law put on a grid that covers it, rounded up.

    Examples
    --------
    >>> tails = tails_of(np.array([0.0, 1.5]), np.array([0.3, 0.6]), np.array([0.0, 1.0, 2.0]))
    >>> tails.round(5).tolist() == np.float32([0.9, 0.6]).tolist()
    True
    """
    below = np.minimum(grid.searchsorted(values, side="right") - 1, grid.size - 2)
    part = np.clip((values - grid[below]) / np.diff(grid)[below], 0.0, 1.0)
    own = np.bincount(below, masses * (1.0 - part), grid.size)
    own += np.bincount(below + 1, masses * part, grid.size)
    tails = np.cumsum((own * grid)[:0:-1])[::-1]
    return rounded_up(np.minimum(tails * (1.0 + _MARGIN), 1.0))


def rounded_up(tails: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return tails as the next larger floats of half the size; at most 1, and 0 stays 0."""
    above = np.nextafter(tails.astype(np.float32), np.float32(2.0))
    return np.where(tails > 0.0, np.minimum(above, np.float32(1.0)), np.float32(0.0))


def dominating_law(
    grid: NDArray[np.float64], tails: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a law that dominates, in convex order, all those with tails at most these.

    Parameters
    ----------
    grid : ndarray of float64, shape (k + 1,)
        Rising from 0.
    tails : ndarray of float32, shape (m, k)
        Tails of m laws at grid[1:], each falling.

    Returns
    -------
    values, masses : ndarray of float64
        Where it has mass; what is missing from 1 is at 0.

    Examples
    --------
    >>> values, masses = dominating_law(np.array([0.0, 1.0, 2.0]), np.float32([[1, 0], [1, 0.5]]))
    >>> values.tolist(), masses.tolist()
    ([1.0, 2.0], [0.5, 0.25])
    """
    largest = tails.max(axis=0).astype(np.float64)
    largest[0] = 1.0
    own = largest - np.append(largest[1:], 0.0)
    has = own > 0.0
    return grid[1:][has], own[has] / grid[1:][has]


def second_moments(grid: NDArray[np.float64], tails: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return E_Q rho^2 of the laws of these tails, a row each, rounded up; at least 1."""
    moments: NDArray[np.float64] = np.array(
        [float(row.astype(np.float64) @ np.diff(grid)) for row in tails]
    )
    return np.maximum(moments * (1.0 + _MARGIN), 1.0)


def worst_hidden(chi_squares: NDArray[np.float64]) -> int:
    """Return the user whose position tells most, of those whom some Q can hide well."""
    hidden = chi_squares <= max(_HIDDEN, float(chi_squares.min()))
    return int(np.argmax(np.where(hidden, chi_squares, -1.0)))


def lowered_shares(
    sample: NDArray[np.float64], weights: NDArray[np.float64], chi_square: float
) -> NDArray[np.float64]:
    """Return by how much to lower Q at each column of places, so that more users hide the worst.

    ``sample`` has the least ratios of some users, a row each; ``weights`` are mass times squared
    ratio of the worst user, ``chi_square`` that user's variance. Whatever is returned is sound.
    """
    sample = np.ascontiguousarray(sample)
    if not sample.shape[1]:
        return np.ones(0)

    def lost(shares: NDArray[np.float64]) -> float:
        told = 1.0 + chi_square + float(weights @ (1.0 / shares - 1.0))
        return told / max(float((sample / shares).min(axis=1, initial=1.0).mean()), _NOTHING)

    # Above the middle many users lose more than others gain.
    tried = np.quantile(sample, _QUANTILES, axis=0)
    best: NDArray[np.float64] = min(np.clip(tried, _LEAST_SHARE, 1.0), key=lost)
    for step in _SHARE_STEPS:
        # Raising c at a column tells less, and takes from those whose least ratio is there.
        ratios = np.maximum(sample / best, _NOTHING)
        column, overlaps = ratios.argmin(axis=1), ratios.min(axis=1, initial=1.0)
        taken = np.bincount(column, overlaps * (overlaps < 1.0), best.size) / overlaps.sum()
        slope = 1.0 - taken / np.maximum(weights, _NOTHING)
        best = min(best, np.clip(best * np.exp(step * np.tanh(slope)), _LEAST_SHARE, 1.0), key=lost)
    return best
