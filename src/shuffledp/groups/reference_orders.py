"""Reference orders: the order of people during a shuffle, in which groups stay together.

The shuffle moves people by few places, and must hide the order inside every group; the necessary
displacement is determined by the group of the largest sensitivity. Minimising that is NP-hard (the
paper's Theorem A.3). So several good ideas are tried, each is improved by sweeps, and the smallest
exact sensitivity wins. The order is public, and made from public data only.

*Sensitivities.* The shuffle draws a permutation pi with probability proportional to exp(-theta
d(pi)), where d is the distance from the identity, in the coordinates of a reference order. If two
data sets differ by a rearrangement inside a group, then pi gives from one what kappa pi gives from
the other, where kappa moves only the set W of the places of the group. So the logarithms of the
probabilities of an output differ by at most theta Delta, with

    Delta = max over pi, and kappa that moves only W, of d(kappa pi) - d(pi).

Let w_1 < ... < w_g be the members of W. Each maximum is attained with pi the identity.

- Kendall, the number of inversions: Delta = g (g - 1) / 2 + 2 sum of min(a_m, b_m) over all
  m outside W, with b_m members of W below m and a_m = g - b_m above.
  Proof: kappa rearranges the values of W among the positions that hold them; other values stay.
  Each pair of those positions adds at most 1 to the change. A value m outside W stays where it is,
  with s of those positions to its left. If x of the b_m smaller values of W stand to its right,
  then s - b_m + x of the larger ones stand to its left, so it is in 2 x + s - b_m inversions with
  W. As max(0, b_m - s) <= x <= min(b_m, g - s), that changes by at most 2 min(a_m, b_m). For the
  identity against the reversal of W, s = b_m, and x goes from 0 to min(a_m, b_m): the reversal of
  W has exactly Delta inversions.
- Hamming, the number of places that are moved: g for g >= 2, else 0. It changes only where a value
  of W stands. A cycle through W moves them all.
- Cayley, n minus the number of cycles: g - 1. A rearrangement of W is a product of at most g - 1
  transpositions, and each changes the number of cycles by one. A cycle through W needs them all.
- Spearman's footrule, the sum of abs(pi(i) - i): Delta = sum over i of abs(w_i - w_{g+1-i}). By
  the triangle inequality the change is at most the sum of abs(kappa(w) - w) over W, which is
  largest for the reversal of W.

The paper's bound for Kendall, from the width w_g - w_1 alone, is safe but mostly many times larger,
so that it shuffles answers more than privacy needs.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Definition 4.3, Section 4.3 and Property 4 of the appendix, for the
definition and the bound by the width. The exact forms are proved above.

*Sweeps.* A sweep puts each group at the mean place of its members, each person at a weighted mean
of their groups, and renumbers people in that order. Groups count by their sensitivity: only the
largest decides how much the shuffle must hide, so the members of the worst groups are drawn most. A
sweep may increase the sensitivity; the best order found so far is then kept.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.collection.uniform_shuffler import require_plain_rows
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import float_above, float_below
from shuffledp.core.reports import read_only
from shuffledp.groups.exact_draws import SMALLEST_THETA
from shuffledp.groups.groups import Groups, points_of_people


def require_theta(value: SupportsFloat, *, least: float = 0.0) -> float:
    """Return ``value`` as a float if it is 0 or in [least, inf], else raise `ParameterError`."""
    hint = "0 shuffles uniformly, inf leaves the order; try 0.1"
    theta = require_extended("theta", value, hint)
    if 0.0 < theta < least:
        raise ParameterError(f"theta = {theta} is between 0 and {least:.4g}: {hint}")
    return theta


def require_alpha(value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is in [0, inf], else raise `ParameterError`."""
    hint = "0 shuffles everybody uniformly, and a larger number protects less; try 1"
    return require_extended("alpha", value, hint)


def theta_below(alpha: float, divisor: float) -> float:
    """Return the largest float theta with theta * divisor <= alpha in exact arithmetic.

    It is 0, a uniform shuffle, which hides more, where a smaller one than can be drawn is allowed.
    """
    if divisor == 0 or math.isinf(alpha):
        return math.inf
    theta = float_below(Fraction(alpha) / Fraction(divisor))
    return theta if theta >= SMALLEST_THETA else 0.0


def alpha_above(theta: float, factor: float) -> float:
    """Return the smallest float that is at least theta * factor in exact arithmetic."""
    if factor == 0 or math.isinf(theta):
        return 0.0 if factor == 0 else math.inf
    try:
        return float_above(Fraction(theta) * Fraction(factor))
    except OverflowError:
        return math.inf


def inverse(permutation: Integers) -> Integers:
    """Return the inverse of a permutation of 0, ..., n - 1, read-only."""
    places = np.empty_like(permutation)
    places[permutation] = np.arange(permutation.size)
    return read_only(places)


def require_reports(reports: NDArray[Any], num_users: int) -> None:
    """Raise `ParameterError` unless these are rows of plain data, one a person."""
    require_plain_rows(reports)
    if reports.shape[0] != num_users:
        raise ParameterError(
            f"reports has {reports.shape[0]:,} rows for {num_users:,} people: give one report for "
            "each, in the same order"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memberships:
    """Groups in compressed rows, by group and by person: starts, and members or groups ascending.

    Reference orders need the groups of people as often as the members of groups; transposing the
    rows costs one pass, and is done once for all orders that are tried.
    """

    groups: Groups
    sizes: Integers = field(repr=False)
    of_groups: tuple[Integers, NDArray[np.int32]] = field(repr=False)
    of_users: tuple[Integers, NDArray[np.int32]] = field(repr=False)

    @classmethod
    def of(cls, groups: Groups) -> Self:
        """Transpose the rows of groups. Cost: O(memberships); memory: 4 bytes a membership."""
        from scipy.sparse import csr_array

        rows = groups.starts, groups.members
        ones = np.ones(groups.members.size, dtype=np.int8)
        turned = csr_array((ones, *rows[::-1]), shape=(groups.num_groups, groups.num_users)).tocsc()
        starts, held = turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False)
        users = read_only(starts), read_only(held)
        return cls(groups=groups, sizes=read_only(groups.sizes), of_groups=rows, of_users=users)


#: The rank distances whose sensitivities are known.
DISTANCES = ("kendall", "hamming", "cayley", "footrule")
#: Distances whose sensitivity is the same in every reference order.
ORDER_FREE_DISTANCES = ("hamming", "cayley")


def require_distance(distance: str) -> str:
    """Return the name of a rank distance, else raise `ParameterError`."""
    if distance not in DISTANCES:
        raise ParameterError(f"distance = {distance!r} is not one of {', '.join(DISTANCES)}")
    return distance


def group_sensitivities(distance: str, groups: Groups, places: NDArray[Any]) -> Integers:
    """Return the exact sensitivity of a rank distance to each group; 0 for groups of one.

    ``places[i]`` is the place of person i in the reference order. Up to 2^31 people there is no
    overflow. Cost: O(memberships + num_users), without sorting.
    """
    require_distance(distance)
    if places.size != groups.num_users:
        raise ParameterError(
            f"places has {places.size:,} entries for {groups.num_users:,} people: give one for each"
        )
    if distance in ORDER_FREE_DISTANCES:
        return _in_a_row(distance, groups.sizes)
    return sensitivities_in_order(distance, Memberships.of(groups), inverse(places))


def sensitivity(distance: str, groups: Groups, places: NDArray[Any]) -> int:
    """Return the exact sensitivity of a rank distance: the largest over the groups.

    Examples
    --------
    >>> groups = Groups.from_sets([[0, 2, 4], [1, 2], [3]], num_users=5)
    >>> [sensitivity(distance, groups, np.arange(5)) for distance in DISTANCES]
    [7, 3, 2, 8]
    """
    return int(group_sensitivities(distance, groups, places).max(initial=0))


def smallest_possible_sensitivity(distance: str, groups: Groups) -> int:
    """Return a lower bound on the sensitivity under any reference order.

    It is attained by the largest group at places in a row: no place in between makes it smaller. An
    order may not exist that puts all groups in a row, so this is a lower bound only.
    """
    return int(_in_a_row(require_distance(distance), np.array([groups.largest_size]))[0])


def _in_a_row(distance: str, sizes: Integers) -> Integers:
    """Return the sensitivities to groups of these sizes whose places are in a row."""
    if distance == "cayley":
        return np.maximum(sizes - 1, 0)
    if distance == "hamming":
        return np.where(sizes > 1, sizes, 0)
    return sizes * (sizes - 1) // 2 if distance == "kendall" else sizes * sizes // 2


def group_widths(groups: Groups, places: NDArray[Any]) -> Integers:
    """Return the largest place minus the smallest of each group, exact: the paper's Section 4.3."""
    if not groups.num_groups:
        return np.zeros(0, dtype=np.int64)
    held, starts = places[groups.members], groups.starts[:-1]
    return np.maximum.reduceat(held, starts) - np.minimum.reduceat(held, starts)


def sensitivities_in_order(distance: str, memberships: Memberships, order: Integers) -> Integers:
    """Return the result of `group_sensitivities` for Kendall or the footrule, unchecked.

    A gap between neighbours in a group counts by its strangers for Kendall, by its length for the
    footrule: floor(g / 2) more in all, as floor(g^2 / 4) is the sum of the min(a_m, b_m).
    """
    from shuffledp.groups.group_kernels import footrule_sensitivities

    sizes = memberships.sizes
    footrule = footrule_sensitivities(read_only(order), memberships.of_users, sizes)
    return footrule - sizes // 2 if distance == "kendall" else footrule


def breadth_first(memberships: Memberships) -> Integers:
    """Return the people in the order of a visit breadth first from the largest group.

    Each component, that is people linked by shared groups, fills places in a row, and starts with
    the person whose group is largest. Source: the paper's Algorithm 1, steps 2 to 4. Ties, which
    the paper leaves open, go to the lower number; people open their own group before their others,
    as in the paper's Appendix A.10. Cost: O(memberships + num_users log num_users).
    """
    groups, sizes = memberships.groups, memberships.sizes
    chosen = groups.group_of
    size_of = groups.size_protecting() if chosen is None else sizes[chosen]
    roots = np.argsort(-size_of, kind="stable")
    return _traverse(memberships, roots, np.arange(groups.num_users))


def cuthill_mckee(memberships: Memberships, order: Integers) -> Integers:
    """Visit people breadth first from the far end of each component, people in few groups first.

    ``order`` comes from `breadth_first`. The reversed order, which saves fill-in when matrices are
    factorised, has the same sensitivities. Source: Cuthill, McKee, "Reducing the bandwidth of
    sparse symmetric matrices", ACM National Conference, 1969; the far end as by Gibbs, Poole,
    Stockmeyer, SIAM Journal on Numerical Analysis 13(2), 1976, with two rounds.
    """
    by_degree = np.argsort(np.diff(memberships.of_users[0]), kind="stable")
    for _ in range(2):
        # Components fill places in a row, so that their last people come first when reversed.
        order = _traverse(memberships, order[::-1], by_degree)
    return order


def principal_axis_order(points: Floats) -> Integers:
    """Sort people along the line on which their coordinates spread most; ties by number.

    Source: Pearson, "On lines and planes of closest fit to systems of points in space",
    Philosophical Magazine 2(11), 1901. Coordinates are finite, in a space where distances are
    straight lines.
    """
    # In units of the largest coordinate, so that squares stay in range.
    scaled = points / max(1.0, float(np.abs(points).max()))
    scaled -= scaled.mean(axis=0)
    _, axes = np.linalg.eigh(scaled.T @ scaled)
    axis = axes[:, -1]
    # An axis has two directions; this one has its largest entry positive.
    along = scaled @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    return np.argsort(along, kind="stable")


def _traverse(memberships: Memberships, roots: Integers, by_rank: Integers) -> Integers:
    """Call the compiled traversal with arrays of one layout, so that it is compiled once."""
    from shuffledp.groups.group_kernels import traverse

    groups = memberships.groups
    own = np.full(groups.num_users, -1) if groups.group_of is None else groups.group_of
    rows = memberships.of_users, memberships.of_groups
    return traverse(read_only(roots.copy()), read_only(own), *rows, read_only(by_rank))


#: Largest number of sweeps for each order. Mostly a dozen suffice.
SWEEPS = 40
#: Number of consecutive sweeps without gain after which the search stops.
PATIENCE = 4
# Keeps people whose groups all have sensitivity 0 in place.
_LEAST_WEIGHT = 1e-9


def improve_by_sweeps(
    distance: str, memberships: Memberships, order: Integers, *, good_enough: int
) -> tuple[Integers, int]:
    """Return the best order found, and its exact sensitivity; never worse than the given order.

    At most `SWEEPS` sweeps, or until the sensitivity is ``good_enough``. Best if each component
    fills places in a row, as it then continues to. Source: ours; the unweighted sweep is the
    barycentre heuristic of Sugiyama, Tagawa, Toda, IEEE Transactions on Systems, Man, and
    Cybernetics 11(2), 1981. Cost: three passes over the memberships and one sort of the people a
    sweep.
    """
    values = sensitivities_in_order(distance, memberships, order)
    best_order, best = order, int(values.max(initial=0))
    without_gain = 0
    for _ in range(SWEEPS):
        if best <= good_enough or without_gain == PATIENCE:
            break
        order = _sweep(memberships, order, values)
        values = sensitivities_in_order(distance, memberships, order)
        worst = int(values.max())
        without_gain = 0 if worst < best else without_gain + 1
        if worst < best:
            best_order, best = order, worst
    return best_order, best


def _sweep(memberships: Memberships, order: Integers, values: Integers) -> Integers:
    """Return the order of the people by the weighted centres of their groups."""
    from shuffledp.groups.group_kernels import row_sums

    places = inverse(order).astype(np.float64)
    centres = row_sums(memberships.of_groups, places) / memberships.sizes
    weights = values / values.max() + _LEAST_WEIGHT
    weighted = row_sums(memberships.of_users, weights * centres)
    total = row_sums(memberships.of_users, weights)
    np.divide(weighted, total, out=places, where=total > 0.0)
    # Ties keep the previous order.
    return order[np.argsort(places[order], kind="stable")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceOrder:
    """An order of the people, and the sensitivity of a rank distance in it.

    Parameters
    ----------
    order : ndarray of int, shape (num_users,)
        ``order[j]`` is the person at place j. Kept as read-only int64.
    name : str
        Name of its construction, for reports.
    distance : {"kendall", "hamming", "cayley", "footrule"}
        Rank distance for which it was chosen.
    sensitivity : int
        Exact sensitivity of that distance, for the groups for which it was chosen.

    Examples
    --------
    >>> found = choose_reference_order(Groups.from_sets([[0, 2], [2, 1]], num_users=3))
    >>> found.order.tolist(), found.places.tolist(), found.sensitivity
    ([0, 2, 1], [0, 2, 1], 1)
    """

    order: Integers = field(repr=False)
    name: str
    distance: str
    sensitivity: int

    def __post_init__(self) -> None:
        order = np.ascontiguousarray(self.order, dtype=np.int64)
        if not np.array_equal(np.sort(order), np.arange(order.size)):
            raise ParameterError("order is not a permutation: give each of 0, ..., n - 1 once")
        object.__setattr__(self, "order", read_only(order))

    @property
    def num_users(self) -> int:
        """Number of people."""
        return int(self.order.size)

    @property
    def places(self) -> Integers:
        """The place of each person, shape (num_users,): the inverse of ``order``."""
        return inverse(self.order)


def breadth_first_order(groups: Groups) -> Integers:
    """Return the paper's reference order; see `breadth_first`."""
    return breadth_first(Memberships.of(groups))


def choose_reference_order(
    groups: Groups,
    *,
    distance: str = "kendall",
    coordinates: ArrayLike | None = None,
    metric: str = "euclidean",
) -> ReferenceOrder:
    """Return the order with the smallest exact sensitivity that was found.

    Tried in turn, each with centroid sweeps: breadth first (the paper's), the longest axis of
    coordinates, Cuthill-McKee. It stops early at an order that is proved to be best.

    Parameters
    ----------
    groups : Groups
        Groups whose internal order is hidden.
    distance : {"kendall", "hamming", "cayley", "footrule"}
        The rank distance. For Hamming and Cayley the sensitivity, and even the law of the shuffle,
        is the same for every order, so that the given order is kept.
    coordinates : array-like of float, shape (num_users, d) or (num_users,), optional
        Public coordinates of the people; the groups may be made from other data.
    metric : {"euclidean", "haversine", "absolute"}
        Measure of distance between coordinates; for ``"haversine"`` latitude and longitude.

    Returns
    -------
    ReferenceOrder
        The same for the same arguments. Its sensitivity is exact, so that privacy never depends on
        the quality of the search: only the usefulness of the answers does.

    Notes
    -----
    Source: this module's docstring. Cost: some hundred passes over the memberships at most; memory:
    4 bytes a membership and some arrays of num_users.

    Examples
    --------
    >>> groups = Groups.from_distance([3.0, 1.0, 2.0, 0.0], 1.0, metric="absolute")
    >>> found = choose_reference_order(groups, coordinates=[3.0, 1.0, 2.0, 0.0], metric="absolute")
    >>> found.order.tolist(), found.sensitivity
    ([3, 1, 2, 0], 3)
    """
    least = smallest_possible_sensitivity(distance, groups)
    points = None
    if coordinates is not None:
        points = points_of_people(coordinates, metric, groups.num_users)
    found = [(least, "as given", np.arange(groups.num_users))]
    if distance not in ORDER_FREE_DISTANCES:
        memberships, found = Memberships.of(groups), []
        for name, start in _ideas(memberships, points):
            order, value = improve_by_sweeps(distance, memberships, start, good_enough=least)
            found.append((value, name if order is start else f"{name}, swept", order))
            if value == least:
                break
    value, name, order = min(found, key=lambda candidate: candidate[0])
    return ReferenceOrder(order=order, name=name, distance=distance, sensitivity=value)


def _ideas(memberships: Memberships, points: Floats | None) -> Iterator[tuple[str, Integers]]:
    """Yield names and starting orders, each computed on demand; quick ones first."""
    first = breadth_first(memberships)
    yield "breadth first", first
    if points is not None:
        yield "longest axis", principal_axis_order(points)
    yield "Cuthill-McKee", cuthill_mckee(memberships, first)
