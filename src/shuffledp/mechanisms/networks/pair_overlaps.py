"""How well each other user hides a given victim: exact overlaps of pairs of position laws."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_finite
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.mechanisms.networks.position_bounds import FEW_ROUNDINGS, PositionBounds
from shuffledp.mechanisms.networks.random_walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    columns_at_a_time,
    move_laws,
    point_laws,
    relative_error,
    require_places,
)
from shuffledp.mechanisms.networks.start_blocks import Progress, over_start_blocks
from shuffledp.mechanisms.reports import read_only

_ARRAYS = ("victims", "kappa", "missed", "laws", "load")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlaps:
    """A law for each victim, and how much of it the laws of all other reports contain.

    P_v >= (1 - missed_v) Q_v, and P_i >= kappa[v, i] Q_v for every report i, where P is the law
    of the holder after some rounds. With probability kappa[v, i] report i is then drawn from the
    very law of the victim's, and hides it.

    Parameters
    ----------
    rounds : int
        After how many rounds.
    victims : ndarray of int64, shape (num_victims,)
        The users v.
    kappa : ndarray of float64, shape (num_victims, num_users)
        The overlaps, in [0, 1]; err downwards. 1 for the victim itself.
    missed : ndarray of float64, shape (num_victims,)
        In [0, 1]; errs upwards.
    laws : ndarray of float64, shape (num_victims, num_users)
        The laws Q_v as computed: each entry within a factor of 1 +- ``error``, but for entries
        below 1e-280. 0 everywhere if ``missed`` is 1.
    load : ndarray of float64, shape (num_users,)
        The mean number sum_i P_i(j) of reports at each place, within the same factor.
    error : float
        See ``laws``.
    """

    rounds: int
    victims: NDArray[np.int64]
    kappa: NDArray[np.float64] = field(repr=False)
    missed: NDArray[np.float64]
    laws: NDArray[np.float64] = field(repr=False)
    load: NDArray[np.float64] = field(repr=False)
    error: float

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, read_only(getattr(self, name)))


class _Part(NamedTuple):
    """A victim's law as computed, and what that may have changed."""

    law: NDArray[np.float64]
    lost: float  # at most so much, by setting small numbers to 0
    error: float  # relative, of each entry
    is_whole: bool  # whether it adds up to 1, for nobody colludes


class _Kept(NamedTuple):
    """The part of a victim's law that is compared with the others."""

    places: NDArray[np.int64]
    law: NDArray[np.float64]  # Q_v there
    inverses: NDArray[np.float64]  # at most 1 / Q_v there
    missed: float


def pair_overlaps(
    walk: RandomWalk,
    rounds: SupportsIndex,
    victims: SupportsIndex | ArrayLike,
    *,
    trimmed: float = 0.0,
    on_progress: Progress | None = None,
) -> Overlaps:
    """Return the overlaps of chosen victims with everybody, exact up to round-off.

    Parameters
    ----------
    walk : RandomWalk
        How reports move.
    rounds : int
        After how many rounds, at least 0.
    victims : int or array-like of int, shape (num_victims,)
        Users in [0, num_users).
    trimmed : float
        At most this much of the victim's law is left out of Q_v and counted as missed: places
        where the mean law of the others is least beside the victim's, as long as leaving them
        out raises its overlap. In [0, 1). With 0 Q_v is the victim's law P_v itself.
    on_progress : callable, optional
        Called with a stage, the number of starts done, and their total.

    Returns
    -------
    Overlaps
        kappa[v, i] = min P_i(j) / Q_v(j) over the places j with Q_v(j) > 0, rounded down. What
        is lost to colluding users counts as missed.

    Raises
    ------
    ParameterError
        If an argument is out of range, or so many rounds leave no correct digit.

    Notes
    -----
    Error budget: `relative_error`, and what was set to 0 on the way (`move_laws`), on the safe
    side. Cost: num_users * rounds * 2 num_edges additions, and num_users^2 multiplications for
    each victim; memory: 40 bytes for each victim and user, and 35 MB.

    Examples
    --------
    >>> from shuffledp.mechanisms.networks.graph import Graph
    >>> walk = RandomWalk.on(Graph.from_edges([(0, 1), (1, 2), (0, 2)]))
    >>> overlaps = pair_overlaps(walk, 2, [0])
    >>> overlaps.kappa.round(12).tolist(), overlaps.missed.tolist()
    ([[1.0, 0.5, 0.5]], [0.0])
    >>> overlaps = pair_overlaps(walk, 2, [0], trimmed=0.6)
    >>> overlaps.kappa.round(12).tolist(), overlaps.missed.round(12).tolist()
    ([[1.0, 0.5, 0.5]], [0.5])
    """
    number = walk.require_rounds(rounds)
    chosen = require_places("victims", victims, walk.num_users).reshape(-1)
    share = require_finite("trimmed", trimmed)
    if not 0.0 <= share < 1.0:
        raise ParameterError(
            f"trimmed = {share} is not in [0, 1): it is a probability to be added to delta's "
            "budget; try 1e-3"
        )
    error = relative_error(walk, number)  # refuses before the work
    load = np.ones(walk.num_users)
    if walk.colluding is not None:
        load[walk.colluding] = 0.0
    move_laws(walk, load, 0, number)
    kept = _kept_parts(walk, number, chosen, load, share)
    kappa = _least_ratios(walk, number, kept, on_progress)
    kappa *= (1.0 - error) * (1.0 - FEW_ROUNDINGS)
    np.minimum(kappa, 1.0, out=kappa)
    kappa[np.arange(chosen.size), chosen] = 1.0
    laws = np.zeros((chosen.size, walk.num_users))
    for row, part in enumerate(kept):
        laws[row, part.places] = part.law
    return Overlaps(
        rounds=number,
        victims=chosen,
        kappa=kappa,
        missed=np.array([part.missed for part in kept]),
        laws=laws,
        load=load,
        error=4.0 * error + walk.num_users * 2.0**-50,
    )


def doeblin_overlaps(bounds: PositionBounds, victim: SupportsIndex) -> Overlaps:
    """Return the overlaps for the law that all reports have in common.

    Parameters
    ----------
    bounds : PositionBounds
        Exact ones (`exact_position_bounds`), of a walk without colluding users.
    victim : int
        The user v, in [0, num_users).

    Returns
    -------
    Overlaps
        Of one victim. Q_v is proportional to min_i P_i, the minimum over all users and place by
        place; kappa is its mass c for all others, rounded down, and missed is 1 - c, rounded up.

    Raises
    ------
    OutOfRegimeError
        If the bounds do not hold that minimum, or some reports are lost to colluding users.

    Notes
    -----
    Source: Doeblin's minorisation. P_i >= min_k P_k = c Q_v for every i, the victim included.

    Examples
    --------
    >>> from shuffledp.mechanisms.networks.graph import Graph
    >>> from shuffledp.mechanisms.networks.position_bounds import exact_position_bounds
    >>> walk = RandomWalk.on(Graph.from_edges([(0, 1), (1, 2), (0, 2)]))
    >>> overlaps = doeblin_overlaps(*exact_position_bounds(walk, [2]), 0)
    >>> overlaps.kappa.round(12).tolist(), overlaps.missed.round(12).tolist()
    ([[1.0, 0.75, 0.75]], [0.25])
    """
    mass, least, load = bounds.common_mass, bounds.least, bounds.load
    if mass is None or least is None or load is None or bounds.missed is not None:
        raise OutOfRegimeError(
            f"bounds by method {bounds.method!r} do not hold the least of all laws, or reports "
            "are lost to colluding users: use exact_position_bounds without colluding users, or "
            "pair_overlaps"
        )
    user = require_at_least("victim", victim, 0)
    if user >= least.size:
        raise ParameterError(f"victim = {user} is not in [0, {least.size}): number users from 0")
    kappa = np.full((1, least.size), min(mass, 1.0))
    kappa[0, user] = 1.0
    return Overlaps(
        rounds=bounds.rounds,
        victims=np.array([user]),
        kappa=kappa,
        missed=np.array([min(1.0, (1.0 - min(mass, 1.0)) * (1.0 + FEW_ROUNDINGS))]),
        laws=(least / mass if mass > 0.0 else np.zeros(least.size)).reshape(1, -1),
        load=load,
        error=FEW_ROUNDINGS,
    )


def _kept_parts(
    walk: RandomWalk,
    rounds: int,
    victims: NDArray[np.int64],
    load: NDArray[np.float64],
    trimmed: float,
) -> list[_Kept]:
    """Return the part of each victim's law to be compared with the others."""
    error = relative_error(walk, rounds) + FEW_ROUNDINGS
    kept = []
    width = columns_at_a_time(walk.num_users)
    for first in range(0, victims.size, width):
        laws = point_laws(walk, victims[first : first + width])
        lost = move_laws(walk, laws, 0, rounds) * LEAST_PROBABILITY
        for law in laws.T:
            part = _Part(law=law, lost=lost, error=error, is_whole=walk.colluding is None)
            kept.append(_without_thin_places(part, load, trimmed))
    return kept


def _without_thin_places(part: _Part, load: NDArray[np.float64], trimmed: float) -> _Kept:
    """Leave out the places where others are fewest beside the victim, up to a mass of the law.

    With K the true mass kept, Q_v = P_v / K there; K is at least 1 - missed. As leaving out more
    makes K smaller, it goes on only as far as it raises the overlap of the mean of the others.
    """
    law = part.law
    of_sums = part.error + law.size * 2.0**-53
    reached = np.flatnonzero(law)
    others = load[reached] / law[reached] - 1.0
    order = np.argsort(others, kind="stable")
    removed = np.cumsum(law[reached[order]]) * (1.0 + of_sums) + part.lost
    most = min(int(np.searchsorted(removed, trimmed, side="right")), reached.size - 1)
    num_removed = 0
    if most > 0:
        overlap = (1.0 - np.append(0.0, removed[:most])) * others[order[: most + 1]]
        num_removed = int(np.argmax(overlap))
    places = np.sort(reached[order[num_removed:]])
    mass = float(law[places].sum())
    if part.is_whole:
        missed = float(removed[num_removed - 1]) if num_removed else part.lost
    else:
        missed = (1.0 - mass * (1.0 - of_sums)) * (1.0 + FEW_ROUNDINGS)
    missed = min(max(missed, 0.0), 1.0) if places.size else 1.0
    above = law[places] * (1.0 + part.error) + part.lost
    inverses = (1.0 - missed) * (1.0 - FEW_ROUNDINGS) / above
    return _Kept(places, law[places] / (mass or 1.0), inverses, missed)


def _least_ratios(
    walk: RandomWalk, rounds: int, kept: list[_Kept], on_progress: Progress | None
) -> NDArray[np.float64]:
    """Return the least ratio of each user's law to each victim's, not yet widened."""
    from shuffledp.mechanisms.networks import position_bounds_kernels as kernels

    ratios = np.zeros((len(kept), walk.num_users))

    def compare(first: int, last: int) -> None:
        laws = point_laws(walk, np.arange(first, last))
        move_laws(walk, laws, 0, rounds)
        for row, part in enumerate(kept):
            if part.places.size:
                kernels.least_ratios(laws, part.places, part.inverses, ratios[row, first:last])

    if kept:
        deque(over_start_blocks(walk.num_users, compare, on_progress), maxlen=0)
    return ratios
