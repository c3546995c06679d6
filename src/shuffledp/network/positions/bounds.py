"""Exact bounds on the distances of the holders' laws from a common one, for every user's report.

Bounds on privacy follow from the law of rho = P_i / Q under a reference law Q
(docs/results/network.md), or any law that is larger in convex order. It is written down by its
tails under P_i itself, T_i(x) = P_i(rho >= x) = E_Q[rho; rho >= x], or any larger tails of a law.
So the tails of several users have a common bound, their largest, and rounding is upwards.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.counting import Engine
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.errors import ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.core.reports import read_only
from shuffledp.network.walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    columns_at_a_time,
    move_laws,
    point_laws,
    relative_error,
    threads,
)

#: Upper bound on the relative change of a number by its last few operations.
FEW_ROUNDINGS = 2.0**-48

# The mean law is raised to at least this at places that can be reached, so that no ratio overflows.
_LEAST_REFERENCE = 1e-250

# Largest factor by which laws are raised, given that reports are seen; beyond it no claim is made.
_MOST_RAISED = 2.0**10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PositionBounds:
    """Bounds on the law P_i of the holder of each report i after some rounds.

    They compare it with a reference law mu, the same for all reports: for any victim v,
    P_i >= (low_i / high_v) P_v, so that report i hides report v with that probability.

    Parameters
    ----------
    rounds : int
        Number of rounds.
    low : ndarray of float64, shape (num_users,)
        Lower bound on P_i(j) / mu_j over the places j with mu_j > 0.
    high : ndarray of float64, shape (num_users,)
        Upper bound on P_i(j) / mu_j over all places j, and P_i(j) = 0 wherever mu_j = 0.
    method : str
        Kind of bounds: ``"exact"`` means up to round-off.
    reference : ndarray of float64, shape (num_users,)
        The law mu; exactly these floats.
    chi_square : ndarray of float64, shape (num_users,)
        Upper bound on the variance of P_i / mu under mu.
    grid : ndarray of float64, shape (k + 1,)
        See `weight_grid`.
    tails : ndarray of float32, shape (num_followed, k)
        Upper bound on the probability under P_i that P_i / mu, put on the grid, is at or above each
        of its points but 0; see above.
    followed : ndarray of int64, shape (num_followed,), or None
        Users whose tails these are, ascending; ``None`` for all users.
    error : float
        Relative error of the ratios behind ``tails``.
    lost : float
        Upper bound on the probability set to 0 on the way, for any report.
    given : PositionBounds or None
        The same for the laws given that reports are at places seen; see `exact_position_bounds`.
    """

    rounds: int
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    method: str
    reference: Floats = field(repr=False)
    chi_square: Floats = field(repr=False)
    grid: Floats = field(repr=False)
    tails: NDArray[np.float32] = field(repr=False)
    followed: Integers | None = field(default=None, repr=False)
    error: float = 0.0
    lost: float = 0.0
    given: "PositionBounds | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("low", "high", "reference", "chi_square"):
            array = getattr(self, name)
            if not (array >= 0.0).all():  # NaN fails
                raise ParameterError(f"{name} has a number that is not >= 0")
            object.__setattr__(self, name, read_only(array))

    def weights(self, users: Integers) -> tuple[Floats, Floats, float, float]:
        """Return a law of rho = P_i / mu under mu that dominates the laws of some users.

        Values and masses, larger in convex order than the law of each of these users; mass missing
        from 1 is at 0. Then the relative error of values, and an upper bound on the probability
        that nothing is known of one of them.
        """
        others, tails = np.empty(0, np.int64), self.tails
        if self.followed is None:
            tails = tails[users]
        else:
            is_row = np.isin(users, self.followed)
            others, tails = users[~is_row], tails[self.followed.searchsorted(users[is_row])]
        if others.size:
            variance, highest = self.chi_square[others].max(), self.high[others].max()
            law = chi_square_law(float(variance), float(highest))
            if others.size == users.size:
                return *law, self.error, 0.0
            tails = np.vstack([tails, tails_of(*law, self.grid)])
        is_beyond = float(self.high[users].max()) > float(self.grid[-1])
        largest = tails.max(axis=0).astype(np.float64)
        largest[0] = 1.0
        own = largest - np.append(largest[1:], 0.0)
        values, has = self.grid[1:], own > 0.0
        return values[has], own[has] / values[has], self.error, 1.0 if is_beyond else self.lost


def exact_position_bounds(
    walk: RandomWalk,
    rounds: Sequence[SupportsIndex],
    *,
    seen: NDArray[np.bool_] | None = None,
    on_progress: Progress | None = None,
    engine: Engine | None = None,
) -> tuple[PositionBounds, ...]:
    """Return bounds on all position laws after some rounds, exact up to round-off.

    The reference is the stationary law if nobody is ever absent and the graph is connected;
    otherwise the mean of all position laws. On a bipartite graph without laziness, and on a graph
    of several components, ``low`` is therefore 0.

    If not all places are ``seen``, reports at the others being lost, of whatever value, there are
    bounds ``given`` that, relative to the mean of all laws on the places seen. Their ``low``
    compares the part of P_i on these, and all else the law given that report i is at one of them: a
    victim's loss is the loss given that, times its probability (docs/results/honest-users.md).

    Error budget: let e be the relative error of a probability (`relative_error`), and x_j >= 0 the
    probability lost at place j by setting small numbers to 0, at most tau over all places
    (`move_laws`). A true probability p has c (1 - e) <= p <= c (1 + e) + x_j. Sums of n
    non-negative numbers have a relative error of at most n 2^-53 more. The probability to be seen
    is such a sum, and laws, and the lost probability, are divided by it.

    Blocks of users are followed by two threads, or by the workers of an ``engine``; numbers do not
    depend on it. Cost: num_users * max(rounds) * 2 num_edges additions, 4 to 5 * 10^9 of them a
    second on two cores; memory: 35 MB, and 300 bytes for each user and asked round.
    """
    asked = [walk.require_rounds(number) for number in rounds]
    if not asked:
        return ()
    stops, num_users = sorted(set(asked)), walk.num_users
    # Sums of num_users numbers, each with this error twice; too many rounds are refused here.
    divided = 1.0 if seen is None else 2.0
    widened = 1.0 + divided * ((num_users + 64) * 2.0**-51 + 2.0 * relative_error(walk, stops[-1]))
    references, largest = _references(walk, stops, seen)
    grid = weight_grid(largest)
    extremes = np.zeros((len(references), 3, num_users))
    tails = np.zeros((len(references), num_users, grid.size - 1), np.float32)

    note, width = partial(_noted, walk, references, grid, widened), columns_at_a_time(num_users)
    blocks = [(first, min(first + width, num_users)) for first in range(0, num_users, width)]
    report = on_progress or no_progress
    for (first, last), found in zip(blocks, (engine or threads)(note, blocks), strict=True):
        tails[:, first:last], extremes[:, :, first:last] = found
        report("position laws", last, num_users)
    bounds: dict[int, PositionBounds] = {}
    for (stop, law, given), (low, high, lost), above in zip(
        references, extremes, tails, strict=True
    ):
        error = relative_error(walk, stop) + FEW_ROUNDINGS
        if given is not None:
            error = 2.0 * error + num_users * 2.0**-52
        of_sums = error + num_users * 2.0**-53
        up, steepest = 1.0 + error, (1.0 / law[law > 0.0]).max()
        each = PositionBounds(
            rounds=stop,
            low=max(1.0 - error, 0.0) * low,
            high=up * (high + lost * steepest),
            method="exact",
            reference=law,
            chi_square=second_moments(grid, above) - 1.0,
            grid=grid,
            tails=above,
            error=4.0 * of_sums,
            lost=float(lost.max(initial=0.0)),
        )
        before = bounds.setdefault(stop, each)
        if before is not each:
            bounds[stop] = replace(before, given=each)
    return tuple(bounds[number] for number in asked)


# Law with which laws are compared after some rounds, given that reports are at these places.
_Reference = tuple[int, Floats, NDArray[np.bool_] | None]


def _noted(
    walk: RandomWalk,
    references: "list[_Reference]",
    grid: Floats,
    widened: float,
    users: tuple[int, int],
) -> tuple[NDArray[np.float32], Floats]:
    """Return tails and extremes of the laws of users from the first to below the last."""
    laws = point_laws(walk, np.arange(*users))
    tails = np.empty((len(references), laws.shape[1], grid.size - 1), np.float32)
    extremes = np.empty((len(references), 3, laws.shape[1]))
    flushed = done = 0
    for row, (stop, law, given) in enumerate(references):
        flushed += move_laws(walk, laws, done, stop)
        done = stop
        lost = flushed * LEAST_PROBABILITY
        shown, shares = (laws, 1.0) if given is None else _given(laws, law, given)
        tails[row], extremes[row, :2] = tails_of_laws(shown, law, grid, widened)
        extremes[row, 0] *= shares
        extremes[row, 2] = lost / np.maximum(shares, lost or 1.0)
    return tails, extremes


def _given(laws: Floats, law: Floats, places: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return laws, by column, given that reports are at some places, and the probabilities of that.

    If that never happens, the law with which they are compared, which reveals least.
    """
    shares = laws[places].sum(axis=0)
    return np.where(
        shares > 0.0, laws / np.maximum(shares, LEAST_PROBABILITY), law[:, None]
    ), shares


def _references(
    walk: RandomWalk, stops: list[int], seen: NDArray[np.bool_] | None
) -> tuple[list[_Reference], float]:
    """Return reference laws after increasing rounds, and the largest ratios to them."""
    graph = walk.graph
    if seen is None and not walk.absences and graph.num_edges > 0 and graph.num_components == 1:
        pi = graph.stationary_law()
        return [(stop, pi, None) for stop in stops], 1.0 / float(pi.min())
    load, reached = np.ones(walk.num_users), np.ones(walk.num_users)
    largest = 2.0 * walk.num_users  # no law is more than num_users times the mean
    highest, references = largest, list[_Reference]()
    for done, stop in pairwise([0, *stops]):
        for number in range(done, stop):
            move_laws(walk, load, number, number + 1)
            move_laws(walk, reached, number, number + 1)
            # Ones and zeros again: the reachable places are known exactly, however unlikely.
            np.greater(reached, 0.0, out=reached)
        for given in (None,) if seen is None else (None, seen):
            where = reached > 0.0 if given is None else (reached > 0.0) & given
            total = math.fsum(load[where])
            if total > 0.0:
                mean = np.maximum(load / total, _LEAST_REFERENCE)
                references.append((stop, np.where(where, mean, 0.0), given))
            if total > 0.0 and given is not None:  # no law is more than 1
                highest = max(highest, 2.0 / float(mean[where].min()))
    return references, min(highest, largest * _MOST_RAISED)


def tails_of_laws(
    laws: Floats, reference: Floats, grid: Floats, widened: float
) -> tuple[NDArray[np.float32], Floats]:
    """Return tails of ratios to a reference, by column, and the extremes of `add_weights`."""
    from shuffledp.network import walk_kernels as kernels

    places = np.flatnonzero(reference)
    shares = np.zeros((laws.shape[1], grid.size - 1))
    found = kernels.add_weights(laws, places, 1.0 / reference[places], grid, shares)
    tails = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1]
    return rounded_up(np.minimum(tails * widened, 1.0)), found


# The grid is finest near 1, where the ratios of well-hidden users lie: sharing a ratio between two
# points adds to the variance. Beyond these points it grows by a constant factor.
_TENTHS, _NEAR_ONE = np.arange(20) / 10, np.arange(31, 70) / 50
_POINTS = np.concatenate([np.union1d(_TENTHS, _NEAR_ONE), 2.0 * 1.1 ** np.arange(16)])
_RATIO = 1.2

# Upper bound on a few relative roundings of a sum.
_MARGIN = 2.0**-40

# Variances are widened to at least the first number, and by the second one of themselves.
_LEAST_CHI_SQUARE, _WIDENING = 1e-12, 1e-6

# Points of a law of given variance, in standard deviations from 1.
_STEPS = np.concatenate([-np.geomspace(100.0, 0.2, 24), np.linspace(-0.1, 3.0, 32)])


def weight_grid(largest: float) -> Floats:
    """Return the grid from 0 to at least ``largest``."""
    top = float(_POINTS[-1])
    above = max(math.ceil(math.log(max(largest / top, 1.0)) / math.log(_RATIO)), 0) + 1
    return np.append(_POINTS, top * _RATIO ** np.arange(1, above + 1))


def chi_square_law(chi_square: float, largest: float) -> tuple[Floats, Floats]:
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
    corners = pairwise(zip(points, means, strict=True))
    slopes = [(after - mean) / (end - point) for (point, mean), (end, after) in corners]
    masses = [late - early for early, late in pairwise([Fraction(-1), *slopes, Fraction(0)])]
    return np.array(points, np.float64), np.array([max(each, 0) for each in masses], np.float64)


def tails_of(values: Floats, masses: Floats, grid: Floats) -> NDArray[np.float32]:
    """Return the tails at grid[1:] of a law put on a grid that covers it, rounded up."""
    below = np.minimum(grid.searchsorted(values, side="right") - 1, grid.size - 2)
    part = np.clip((values - grid[below]) / np.diff(grid)[below], 0.0, 1.0)
    own = np.bincount(below, masses * (1.0 - part), grid.size)
    own += np.bincount(below + 1, masses * part, grid.size)
    tails = np.cumsum((own * grid)[:0:-1])[::-1]
    return rounded_up(np.minimum(tails * (1.0 + _MARGIN), 1.0))


def rounded_up(tails: Floats) -> NDArray[np.float32]:
    """Return tails as the next larger floats of half the size; at most 1, and 0 stays 0."""
    above = np.nextafter(tails.astype(np.float32), np.float32(2.0))
    return np.where(tails > 0.0, np.minimum(above, np.float32(1.0)), np.float32(0.0))


def second_moments(grid: Floats, tails: NDArray[np.float32]) -> Floats:
    """Return E_Q rho^2 of the laws of these tails, a row each, rounded up; at least 1."""
    moments = np.array([row.astype(np.float64) @ np.diff(grid) for row in tails])
    return np.maximum(moments * (1.0 + _MARGIN), 1.0)
