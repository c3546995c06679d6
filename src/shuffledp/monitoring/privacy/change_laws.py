"""The law of what one user of the crowd adds to the difference of two likelihoods.

Given that all reports are uniform, a user at level h adds g times the sum of u_j (x_j - e x'_j)
over the nodes j of that level: x and x' are the increments of the two histories compared, u_j are
independent fair signs, e = e^epsilon. Only the law matters, and only up to convex order: a law that
is larger in that order gives an upper bound. This file holds the largest ones (worst pair of
histories), and the exact one of a given pair.

Directions: `worst_law` errs upwards in convex order, `merged_law` downwards.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Values that a law may have before its inner part is put on a coarser grid, and how many standard
# deviations that grid reaches.
_MOST_VALUES = 128
_REACH = 8.3

# Up to here the two changes that cannot overlap are kept apart; beyond, that gains below 1 %.
_MOST_ALTERNATING = 32

_UNIT_ROUND_OFF = 2.0**-53

# Smaller masses are left out: they have lost their relative accuracy, and all of them together
# cannot matter (their number is added to delta by the caller's smallest answer).
_SMALLEST_MASS = 1e-290


class ChangeLaw(NamedTuple):
    """A law with finitely many values: shape (m,) each; every mass right to ``relative_error``."""

    values: NDArray[np.float64]
    masses: NDArray[np.float64]
    relative_error: float


def worst_law(
    max_changes: int, *, epsilon: float, alternating: bool, changing_share: float = 1.0
) -> ChangeLaw:
    """Return the largest law, in convex order, over all pairs of histories; without the factor g.

    Parameters
    ----------
    max_changes : int
        k >= 1.
    epsilon : float
        At least 0.
    alternating : bool
        Whether nonzero increments alternate and begin with +.
    changing_share : float
        In (0, 1]: at most this share of a node's public columns shows a change of the value.
        Taken to be 1 if ``alternating``.

    Returns
    -------
    ChangeLaw
        Of mean 0. Errs upwards in convex order.

    Notes
    -----
    Each history has at most k nonzero increments at a level. Where both have one, of opposite
    signs, the coefficient is 1 + e; and u (1 + e) is above u_1 + u_2 e in convex order, being its
    comonotone version. So the largest law has k overlaps. Alternating increments that begin with +
    allow k - 1 at most: overlap a joins the a-th increment of x with a later one of x', of the
    other parity, so that the first is joined with the second at least, and the k-th with one that
    does not exist. Public columns: E phi(a u) is convex and even in a for convex phi, so that
    columns in which both change, and others in which neither does, are the worst case.

    Cost: O(k^2) additions once for each k, then O(1).

    Examples
    --------
    >>> law = worst_law(1, epsilon=0.0, alternating=False)
    >>> law.values.tolist(), law.masses.tolist()
    ([-2.0, 2.0], [0.5, 0.5])
    """
    growth = math.exp(epsilon)
    if alternating and max_changes <= _MOST_ALTERNATING:
        walk = _walk(max_changes - 1, 1.0)
        singles = np.array([-1.0 - growth, 1.0 - growth, growth - 1.0, 1.0 + growth])
        values = np.add.outer((1.0 + growth) * walk.values, singles).ravel()
        return ChangeLaw(values, np.repeat(0.25 * walk.masses, 4), walk.relative_error)
    walk = _walk(max_changes, 1.0 if alternating else changing_share)
    return ChangeLaw((1.0 + growth) * walk.values, walk.masses, walk.relative_error)


class Overlap(NamedTuple):
    """How two histories meet at a level: numbers of nodes by what their increments are."""

    opposite: int
    first_only: int
    second_only: int
    same: int


def pair_law(overlap: Overlap, *, epsilon: float) -> ChangeLaw:
    """Return the exact law of one level of a given pair of histories; without the factor g.

    Examples
    --------
    >>> law = pair_law(Overlap(0, 1, 0, 0), epsilon=1.0)
    >>> law.values.tolist(), law.masses.tolist()
    ([-1.0, 1.0], [0.5, 0.5])
    """
    growth = math.exp(epsilon)
    values, masses, error = np.zeros(1), np.ones(1), 0.0
    weights = (1.0 + growth, 1.0, growth, math.expm1(epsilon))
    for count, weight in zip(overlap, weights, strict=True):
        walk = _exact_walk(count, 1.0)
        values = np.add.outer(values, weight * walk.values).ravel()
        masses = np.multiply.outer(masses, walk.masses).ravel()
        error += walk.relative_error + (masses.size + 2.0) * _UNIT_ROUND_OFF
        values, masses = _merged(values, masses)
    return ChangeLaw(values, masses, error)


def mixed_law(laws: list[ChangeLaw], weights: list[float]) -> ChangeLaw:
    """Return the mixture of several laws, merged downwards if it has too many values.

    Examples
    --------
    >>> law = pair_law(Overlap(0, 1, 0, 0), epsilon=1.0)
    >>> mixed_law([law, law], [0.5, 0.5]).masses.tolist()
    [0.5, 0.5]
    """
    values = np.concatenate([law.values for law in laws])
    parts = [weight * law.masses for law, weight in zip(laws, weights, strict=True)]
    error = max(law.relative_error for law in laws) + (values.size + 2.0) * _UNIT_ROUND_OFF
    values, masses = _merged(values, np.concatenate(parts))
    return ChangeLaw(values, masses, error)


def _merged(
    values: NDArray[np.float64], masses: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge values that are close, or equal, into their conditional means.

    Down in convex order (Jensen), up to the rounding of the means.
    """
    order = np.argsort(values, kind="stable")
    values, masses = values[order], masses[order]
    width = (values[-1] - values[0]) / _MOST_VALUES
    cell = np.floor((values - values[0]) / width) if width > 0.0 else np.zeros(values.size)
    if np.unique(values).size <= _MOST_VALUES:
        cell = values
    starts = np.flatnonzero(np.concatenate(([True], np.diff(cell) != 0.0)))
    total = np.add.reduceat(masses, starts)
    moment = np.add.reduceat(masses * (values - values[0]), starts)
    lone = np.diff(np.append(starts, values.size)) == 1
    means = values[0] + np.divide(moment, total, out=np.zeros(total.size), where=total > 0.0)
    return np.where(lone, values[starts], means), total


@lru_cache(maxsize=64)
def _exact_walk(steps: int, moving: float) -> ChangeLaw:
    """Return the law of a sum of ``steps`` independent signs, each 0 with probability 1 - moving.

    Sums and products of non-negative numbers only, by squaring.
    """
    stride = 2.0 if moving == 1.0 else 1.0
    step = np.array([0.5, 0.5] if moving == 1.0 else [moving / 2.0, 1.0 - moving, moving / 2.0])
    masses = np.ones(1)
    for bit in f"{steps:b}":
        masses = np.convolve(masses, masses)
        if bit == "1":
            masses = np.convolve(masses, step)
    values = stride * np.arange(masses.size, dtype=np.float64) - steps
    kept = masses > _SMALLEST_MASS
    # Each of the steps and squarings is a sum whose rounding is below its number of terms; sums of
    # non-negative terms lose far less, but this is proved.
    error = (masses.size * (steps.bit_length() + 1.0) + 4.0 * steps + 4.0) * _UNIT_ROUND_OFF
    return ChangeLaw(_frozen(values[kept]), _frozen(masses[kept]), error)


@lru_cache(maxsize=64)
def _walk(steps: int, moving: float) -> ChangeLaw:
    """Return a law that dominates that of `_exact_walk` in convex order, with few values.

    Every value goes to its two neighbours on the grid, with its mean kept.
    """
    law = _exact_walk(steps, moving)
    if law.values.size <= _MOST_VALUES + 1:
        return law
    reach = _REACH * math.sqrt(steps * moving)
    stride = max(math.ceil(2.0 * reach / _MOST_VALUES), 1)
    half = min(math.ceil(reach / stride), (steps - 1) // stride)
    inner = stride * np.arange(-half, half + 1, dtype=np.float64)
    grid = np.concatenate(([-float(steps)], inner, [float(steps)]))
    left = np.clip(np.searchsorted(grid, law.values, side="right") - 1, 0, grid.size - 2)
    up = (law.values - grid[left]) / (grid[left + 1] - grid[left])
    masses = np.zeros(grid.size)
    np.add.at(masses, left, law.masses * (1.0 - up))
    np.add.at(masses, left + 1, law.masses * up)
    kept = masses > _SMALLEST_MASS
    error = law.relative_error + (4.0 + law.values.size) * _UNIT_ROUND_OFF
    return ChangeLaw(_frozen(grid[kept]), _frozen(masses[kept]), error)


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the array, read-only: it is kept and handed out again."""
    array.flags.writeable = False
    return array
