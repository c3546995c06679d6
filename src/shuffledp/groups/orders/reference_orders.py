"""The reference order: where people stand while they are shuffled, so that groups stay together.

The shuffle moves people by few places, and must hide the order inside every group; how much it has
to move people for that is decided by the group of the largest sensitivity. To make that small is
NP-hard (the paper's Theorem A.3). So several good ideas are tried, each is improved by sweeps, and
the smallest exact sensitivity wins. The order is public, and made from public data only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.formation.memberships import Memberships
from shuffledp.groups.formation.points import distinct_places
from shuffledp.groups.orders.centroid_sweeps import improve_by_sweeps
from shuffledp.groups.orders.sensitivity import (
    ORDER_FREE_DISTANCES,
    require_distance,
    sensitivities_in_order,
    smallest_possible_sensitivity,
)
from shuffledp.groups.orders.traversals import breadth_first, cuthill_mckee, principal_axis_order
from shuffledp.groups.permutations.permutation_arrays import inverse, require_permutation

#: Sweeps that each order is improved by, at most. Mostly a dozen suffice.
SWEEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceOrder:
    """An order of the people, and how sensitive a rank distance is in it.

    Parameters
    ----------
    order : ndarray of int, shape (num_users,)
        ``order[j]`` is the person at place j. Kept as read-only int64.
    name : str
        How it was found, for reports.
    distance : {"kendall", "hamming", "cayley", "footrule"}
        The rank distance that it was chosen for.
    sensitivity : int
        The exact sensitivity of that distance, for the groups that it was chosen for.
    tried : tuple of (str, int)
        The name and the sensitivity of every order that was tried.
    smallest_possible : int
        What no order can go below; 0 where it is not known.

    Raises
    ------
    ParameterError
        If ``order`` is not a permutation, the distance is unknown, or a number is negative.

    Examples
    --------
    >>> found = choose_reference_order(Groups.from_sets([[0, 2], [2, 1]], num_users=3))
    >>> found.order.tolist(), found.places.tolist(), found.sensitivity, found.is_best
    ([0, 2, 1], [0, 2, 1], 1, True)
    """

    order: NDArray[np.int64] = field(repr=False)
    name: str
    distance: str
    sensitivity: int
    tried: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    smallest_possible: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", require_permutation("order", self.order))
        require_distance(self.distance)
        smallest = require_at_least("smallest_possible", self.smallest_possible, 0)
        require_at_least("sensitivity", self.sensitivity, smallest)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return int(self.order.size)

    @property
    def places(self) -> NDArray[np.int64]:
        """The place of each person, shape (num_users,): the inverse of ``order``."""
        return inverse(self.order)

    @property
    def is_best(self) -> bool:
        """Whether it is proved that no order has a smaller sensitivity."""
        return self.sensitivity == self.smallest_possible


def breadth_first_order(groups: Groups) -> NDArray[np.int64]:
    """Return the paper's reference order; see `traversals.breadth_first`.

    Examples
    --------
    >>> breadth_first_order(Groups.from_sets([[0, 3], [3, 2, 1]], num_users=4)).tolist()
    [1, 2, 3, 0]
    """
    return breadth_first(Memberships.of(groups))[0]


def choose_reference_order(
    groups: Groups,
    *,
    distance: str = "kendall",
    coordinates: ArrayLike | None = None,
    metric: str = "euclidean",
    sweeps: SupportsIndex = SWEEPS,
) -> ReferenceOrder:
    """Return the order with the smallest exact sensitivity that was found.

    Tried in turn, each with centroid sweeps: breadth first (the paper's), the longest axis of
    coordinates, Cuthill-McKee. It stops early at an order that is proved to be best.

    Parameters
    ----------
    groups : Groups
        Who is hidden among whom.
    distance : {"kendall", "hamming", "cayley", "footrule"}
        The rank distance. For Hamming and Cayley the sensitivity, and even the law of the shuffle,
        is the same for every order, so people keep the order that they have.
    coordinates : array-like of float, shape (num_users, d) or (num_users,), optional
        Public coordinates of the people; they need not be what the groups were made from.
    metric : {"euclidean", "haversine", "absolute"}
        How the coordinates are measured; for ``"haversine"`` they are latitude and longitude.
    sweeps : int
        Largest number of sweeps for each order, >= 0.

    Returns
    -------
    ReferenceOrder
        The same for the same arguments. Its sensitivity is exact, so privacy never depends on how
        well the search went: only the usefulness of the answers does.

    Raises
    ------
    ParameterError
        If the distance or the metric is unknown, a coordinate is out of range, or there are not
        as many coordinates as people.

    Notes
    -----
    Source: theory in `sensitivity`; the ideas in `traversals` and `centroid_sweeps`. Cost: some
    hundred passes over the memberships at most; memory: 4 bytes a membership and some arrays of
    num_users.

    Examples
    --------
    >>> groups = Groups.from_distance([3.0, 1.0, 2.0, 0.0], 1.0, metric="absolute")
    >>> found = choose_reference_order(groups, coordinates=[3.0, 1.0, 2.0, 0.0], metric="absolute")
    >>> found.order.tolist(), found.sensitivity
    ([3, 1, 2, 0], 3)
    """
    least = smallest_possible_sensitivity(distance, groups)
    most_sweeps = require_at_least("sweeps", sweeps, 0)
    points = None if coordinates is None else _points(coordinates, metric, groups.num_users)
    if distance in ORDER_FREE_DISTANCES:
        return ReferenceOrder(
            order=np.arange(groups.num_users),
            name="as given",
            distance=distance,
            sensitivity=least,
            tried=(("as given", least),),
            smallest_possible=least,
        )
    memberships = Memberships.of(groups)
    tried: list[tuple[str, int]] = []
    found: list[tuple[int, str, NDArray[np.int64]]] = []
    for name, start in _ideas(memberships, points):
        before = int(sensitivities_in_order(distance, memberships, start).max(initial=0))
        tried.append((name, before))
        order, after = improve_by_sweeps(
            distance, memberships, start, sweeps=most_sweeps, good_enough=least
        )
        if after < before:
            tried.append((f"{name}, swept", after))
        found.append((after, tried[-1][0], order))
        if after == least:
            break
    best, best_name, best_order = min(found, key=lambda candidate: candidate[0])
    return ReferenceOrder(
        order=best_order,
        name=best_name,
        distance=distance,
        sensitivity=best,
        tried=tuple(tried),
        smallest_possible=least,
    )


def _ideas(
    memberships: Memberships, points: NDArray[np.float64] | None
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the orders to start from by name, each made when it is asked for; the quick first."""
    first, _ = breadth_first(memberships)
    yield "breadth first", first
    if points is not None:
        yield "longest axis", principal_axis_order(points)
    yield "Cuthill-McKee", cuthill_mckee(memberships, first)


def _points(coordinates: ArrayLike, metric: str, num_users: int) -> NDArray[np.float64]:
    """Return checked coordinates (num_users, d) in a space of straight lines."""
    points, place_of = distinct_places(coordinates, metric)
    if place_of.size != num_users:
        raise ParameterError(
            f"coordinates has {place_of.size:,} rows for {num_users:,} people: give one for each"
        )
    return points[place_of]
