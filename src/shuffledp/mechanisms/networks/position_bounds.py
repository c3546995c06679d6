"""How far the laws of the holders are from a common one: exact, for every user's report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.mechanisms.networks.random_walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    move_laws,
    point_laws,
    relative_error,
)
from shuffledp.mechanisms.networks.start_blocks import Progress, over_start_blocks
from shuffledp.mechanisms.reports import read_only

#: More than the last few operations on a number can change it by, relative to itself.
FEW_ROUNDINGS = 2.0**-48

# The mean law is not taken below this at places that can be reached, so that no ratio overflows.
_LEAST_REFERENCE = 1e-250

_ARRAYS = ("low", "high", "collision", "load", "missed", "reference", "least", "greatest")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PositionBounds:
    """Bounds on the law P_i of the holder of each report i after some rounds.

    They compare it with a reference law mu, the same for all reports: whoever the victim v is,
    P_i >= (low_i / high_v) P_v, so that report i hides report v with that probability.

    Parameters
    ----------
    rounds : int
        After how many rounds.
    low : ndarray of float64, shape (num_users,)
        At most the least P_i(j) / mu_j over the places j with mu_j > 0.
    high : ndarray of float64, shape (num_users,)
        At least the greatest P_i(j) / mu_j, and P_i(j) = 0 wherever mu_j = 0. With colluding
        users, of the law given that the report is not lost; ``inf`` if it surely is.
    collision : ndarray of float64, shape (num_users,)
        At least sum_j P_i(j)^2; with colluding users, of the law given that it is not lost.
    load : ndarray of float64, shape (num_users,), or None
        At most sum_i P_i(j), the mean number of reports at place j (without those lost).
    missed : ndarray of float64, shape (num_users,), or None
        At least the probability that report i is lost to colluding users; ``None`` if there are
        none.
    method : str
        How they were found: ``"exact"`` means up to round-off.
    reference : ndarray of float64, shape (num_users,), or None
        The law mu, where it was written down; these very floats are meant.
    least, greatest : ndarray of float64, shape (num_users,), or None
        For each place j, at most the least and at least the greatest P_i(j) over the reports.

    Notes
    -----
    Where report i is lost with positive probability, P_i is the sub-law of the paths that avoid
    the colluding users, and ``low`` is of that. So P_v >= (1 - missed_v) Q_v with the law
    Q_v <= high_v mu, and P_i >= (low_i / high_v) Q_v.
    """

    rounds: int
    low: NDArray[np.float64] = field(repr=False)
    high: NDArray[np.float64] = field(repr=False)
    collision: NDArray[np.float64] = field(repr=False)
    load: NDArray[np.float64] | None = field(default=None, repr=False)
    missed: NDArray[np.float64] | None = field(default=None, repr=False)
    method: str = "exact"
    reference: NDArray[np.float64] | None = field(default=None, repr=False)
    least: NDArray[np.float64] | None = field(default=None, repr=False)
    greatest: NDArray[np.float64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != self.low.shape or np.isnan(array).any() or (array < 0.0).any():
                raise ParameterError(
                    f"{name} has shape {array.shape} or a number that is not >= 0: give "
                    f"{self.low.shape[0]} numbers, one for each user"
                )
            object.__setattr__(self, name, read_only(array))

    @property
    def common_mass(self) -> float | None:
        """At most sum_j min_i P_i(j), the mass that all laws share; ``None`` if not known.

        With Q proportional to min_i P_i every P_i, the victim's too, is at least this number
        times Q (Doeblin's condition): see `doeblin_overlaps`. Cost: O(num_users).
        """
        if self.least is None:
            return None
        return max(0.0, math.fsum(self.least) * (1.0 - FEW_ROUNDINGS))

    def overlaps_with(self, victim: SupportsIndex) -> NDArray[np.float64]:
        """Return at most the kappa_i for which P_i >= kappa_i P_v, for each user i.

        Parameters
        ----------
        victim : int
            User v.

        Returns
        -------
        ndarray of float64, shape (num_users,)
            low_i / high_v, rounded down, and 1 for the victim. With colluding users P_v is here
            the law given that the report is not lost.

        Examples
        --------
        >>> from shuffledp.mechanisms.networks.graph import Graph
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
        >>> bounds, = exact_position_bounds(RandomWalk.on(triangle), [2])
        >>> bounds.overlaps_with(0).round(12).tolist()
        [1.0, 0.5, 0.5]
        """
        overlaps: NDArray[np.float64] = self.low * ((1.0 - FEW_ROUNDINGS) / self.high[victim])
        np.minimum(overlaps, 1.0, out=overlaps)
        overlaps[victim] = 1.0
        return overlaps


class _Reference(NamedTuple):
    """What laws are compared with after some rounds."""

    load: NDArray[np.float64]
    law: NDArray[np.float64]
    places: NDArray[np.int64]  # where the law is positive
    inverses: NDArray[np.float64]  # of the law there


class _Extremes(NamedTuple):
    """What was found after each of some rounds, one a row."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    squares: NDArray[np.float64]
    sums: NDArray[np.float64]
    lost: NDArray[np.float64]
    least: NDArray[np.float64]
    greatest: NDArray[np.float64]


def exact_position_bounds(
    walk: RandomWalk, rounds: Sequence[SupportsIndex], *, on_progress: Progress | None = None
) -> tuple[PositionBounds, ...]:
    """Return bounds on all position laws, which meet but for round-off.

    Parameters
    ----------
    walk : RandomWalk
        How reports move.
    rounds : sequence of int
        After which numbers of rounds, in any order; each at least 0.
    on_progress : callable, optional
        Called with a stage, the number of starts done, and their total.

    Returns
    -------
    tuple of PositionBounds
        One for each of ``rounds``. ``low``, ``load`` and ``least`` err downwards, ``high``,
        ``collision``, ``missed`` and ``greatest`` upwards.

    Raises
    ------
    ParameterError
        If the walk is not known for so many rounds, or so many leave no correct digit.

    Notes
    -----
    The reference is the stationary law where the walk is static and the graph connected, and
    nobody colludes; else the mean of all position laws, given that a report is not lost. On a
    bipartite graph without laziness, and on one of several components, ``low`` is therefore 0.

    Error budget: `relative_error`, and what was set to 0 on the way (`move_laws`), on the safe
    side of each number. Cost: num_users * max(rounds) * 2 num_edges additions, 4 to 5 * 10^9 of
    them a second on two cores; memory: 35 MB, and 150 bytes for each user and asked round.

    Examples
    --------
    >>> from shuffledp.mechanisms.networks.graph import Graph
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> start, later = exact_position_bounds(RandomWalk.on(triangle), [0, 2])
    >>> later.low.round(12).tolist(), later.high.round(12).tolist()
    ([0.75, 0.75, 0.75], [1.5, 1.5, 1.5])
    >>> start.low.tolist(), start.collision.round(12).tolist()
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    asked = [walk.require_rounds(number) for number in rounds]
    if not asked:
        return ()
    stops = sorted(set(asked))
    relative_error(walk, stops[-1])  # refuses before the work
    references = _references(walk, stops)
    found = _all_extremes(walk, stops, references, on_progress)
    bounds = {
        stop: _rounded(walk, stop, references[row], _Extremes(*(array[row] for array in found)))
        for row, stop in enumerate(stops)
    }
    return tuple(bounds[number] for number in asked)


def has_stationary_reference(walk: RandomWalk) -> bool:
    """Whether all laws may tend to the stationary law of one connected graph."""
    graph = walk.graphs[0]
    connected = walk.is_static and walk.colluding is None and graph.num_edges > 0
    return connected and graph.num_components == 1


def _references(walk: RandomWalk, stops: list[int]) -> list[_Reference]:
    """Return what laws are compared with after each of some increasing numbers of rounds."""
    stationary = None
    if has_stationary_reference(walk):
        stationary = _law_and_places(walk.graphs[0].stationary_law())
    load = np.ones(walk.num_users)
    if walk.colluding is not None:
        load[walk.colluding] = 0.0
    reached = load.copy()
    references = []
    done = 0
    for stop in stops:
        for round_number in range(done, stop):
            move_laws(walk, load, round_number, round_number + 1)
            move_laws(walk, reached, round_number, round_number + 1)
            # Ones and zeros again: what can be reached is known exactly, however unlikely.
            np.greater(reached, 0.0, out=reached)
        done = stop
        if stationary is None:
            total = math.fsum(load)
            mean = load / (total if total > 0.0 else 1.0)
            law = np.where(reached > 0.0, np.maximum(mean, _LEAST_REFERENCE), 0.0)
            references.append(_Reference(load.copy(), *_law_and_places(law)))
        else:
            references.append(_Reference(load.copy(), *stationary))
    return references


def _law_and_places(
    law: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return a law, where it is positive, and its inverses there."""
    places = np.flatnonzero(law)
    return law, places, 1.0 / law[places]


def _all_extremes(
    walk: RandomWalk,
    stops: list[int],
    references: list[_Reference],
    on_progress: Progress | None,
) -> _Extremes:
    """Move the laws of all reports, and note what is asked of them after each of the rounds."""
    from shuffledp.mechanisms.networks import position_bounds_kernels as kernels

    shape = (len(stops), walk.num_users)
    found = _Extremes(*(np.zeros(shape) for _ in _Extremes._fields))
    for row, reference in enumerate(references):
        found.least[row, reference.places] = np.inf
    nothing_noted = found.least.copy()

    def note(first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        laws = point_laws(walk, np.arange(first, last))
        # Places are shared by all blocks: each thread notes them apart.
        least = nothing_noted.copy()
        greatest = np.zeros(shape)
        flushed = 0
        done = 0
        for row, stop in enumerate(stops):
            flushed += move_laws(walk, laws, done, stop)
            done = stop
            _, _, places, inverses = references[row]
            low, high, squares, sums = (array[row, first:last] for array in found[:4])
            kernels.extremes(
                laws, places, inverses, low, high, squares, sums, least[row], greatest[row]
            )
            found.lost[row, first:last] = flushed * LEAST_PROBABILITY
        return least, greatest

    for least, greatest in over_start_blocks(walk.num_users, note, on_progress):
        np.minimum(found.least, least, out=found.least)
        np.maximum(found.greatest, greatest, out=found.greatest)
    return found


def _rounded(
    walk: RandomWalk, rounds: int, reference: _Reference, found: _Extremes
) -> PositionBounds:
    """Return bounds from computed extremes, each rounded to the safe side.

    Let e be the relative error of a probability, and x_j >= 0 what place j lost by setting small
    numbers to 0, at most tau over all places. A true probability p has
    c (1 - e) <= p <= c (1 + e) + x_j. So the sum of squares is at most
    (1 + e)^2 sum c^2 + 2 (1 + e) tau + tau^2 <= (1 + e)^2 sum c^2 + 4 tau, and sums of n
    non-negative numbers have a relative error of at most n 2^-53 more.
    """
    error = relative_error(walk, rounds) + FEW_ROUNDINGS
    of_sums = error + walk.num_users * 2.0**-53
    up, down = 1.0 + error, 1.0 - error
    steepest = reference.inverses.max(initial=0.0)
    high = up * (found.high + found.lost * steepest)
    collision = up * up * (1.0 + of_sums) * found.squares + 4.0 * found.lost
    low = np.where(np.isfinite(found.low), found.low, 0.0)  # inf: no place can be reached
    missed = None
    if walk.colluding is not None:
        kept = np.minimum(found.sums * (1.0 - of_sums), 1.0)
        missed = np.minimum((1.0 - kept) * (1.0 + FEW_ROUNDINGS), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.where(kept > 0.0, (1.0 + FEW_ROUNDINGS) * high / kept, np.inf)
            collision = np.where(kept > 0.0, (1.0 + FEW_ROUNDINGS) * collision / kept**2, 1.0)
    return PositionBounds(
        rounds=rounds,
        low=np.maximum(down, 0.0) * low,
        high=high,
        collision=np.minimum(collision, 1.0),
        load=np.maximum(1.0 - of_sums, 0.0) * reference.load,
        missed=missed,
        method="exact",
        reference=reference.law,
        least=np.maximum(down, 0.0) * found.least,
        greatest=np.minimum(up * found.greatest + found.lost.max(initial=0.0), 1.0),
    )
