"""Shuffling by displacement: each report is released at its user's public place plus noise.

Person i's report lies at p_i = c_i + Z_i, c_i being a public point of a lattice and Z_i independent
with mass proportional to exp(-theta norm). The release is the multiset of the pairs (noisy place,
report). No permutation is drawn and nobody need hold all reports: each user can add the noise.

Why it protects: if reports are rearranged inside a group G, the report of each person moves from
one place of the group to another, so by the triangle inequality the probability of all noisy places
together changes by a factor of at most exp(theta sum of d(c_i, c_s(i))). Removing the senders is
post-processing. So it is d_sigma-private with alpha = theta Delta(G), Delta being the maximum of
that sum, an assignment problem (see below). docs/results/grouped.md has the proof, and the
central guarantee.

To lay the reports beside the rows of a table, like a Mallows shuffle, noisy places are matched
with people one to one by a `PlaceTree`, which uses the noisy places alone.

*Places.* Whatever people's coordinates are, noise is added on a lattice of whole-number points,
where its law is the same around every point. So places are rounded to cells, by public data only:

- values of **one column** become ranks; equal values share the middle of their ranks, so that
  nothing distinguishes people with equal values;
- points in the **plane**, or of more columns, become the nearest points of a grid whose cells are
  at most a sixteenth of the noise;
- **latitude and longitude** become points in space, in cells around the surface of the Earth:
  distances are along a straight line through it, at most the distances along the surface;
- **without coordinates** places come from a reference order for the footrule.

*The tree of places* matches noisy places and adds up crowds. People are split at the middle of the
coordinate that spreads most, and so is each half, until everybody is alone. Noisy places are split
in the same way, by the same coordinates and into the same numbers: each person is matched with one
noisy place nearby. The match uses the noisy places alone, with ties in random order, so that it
reveals no more than the multiset of noisy places.

The same tree gives lower bounds on sums of e^(-theta d(c_i, c_v)) over all people i: a part with n
people, mean place m and mean square distance s^2 from m adds at least n e^(-theta sqrt(d(m, c_v)^2
+ s^2)), by Jensen's inequality. Parts are opened until that costs a few parts in a hundred of the
sum; parts that are too far away to count are left out, which errs downwards too.

*Assignment.* Delta(G) is the largest total displacement of the members of a group if they trade
places. On a line it is twice the sum of distances from a median. In several dimensions two upper
bounds are computed (docs/results/grouped.md), and the smaller counts: *star*, 2 sum of d(c_i, m)
for a point m near the geometric median; *dual*, the sum of v_j and of max over j of (d(c_i, c_j) -
v_j) with v from an optimal assignment, which is Delta itself up to rounding, and a bound for any v.
Only the largest group counts for a shuffle. So groups are taken in descending order of the first
bound, until it falls below the bound proved for earlier groups.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.groups import reference_orders
from shuffledp.groups.exact_draws import MOST_DIMENSIONS, SMALLEST_THETA, draw_lattice_noise
from shuffledp.groups.groups import (
    EARTH_RADIUS,
    Groups,
    blocks_of,
    distinct_places,
    points_of_people,
)

# Parts of this many people or fewer are added up one by one.
_LEAF = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaceTree:
    """Places of people, halved until everybody is alone. Made by `of`.

    ``order`` has people in the order of the tree's leaves; ``levels`` has the bounds of the parts
    of each level, and the coordinate by which each is split.
    """

    cells: Integers
    order: Integers = field(repr=False)
    levels: tuple[tuple[Integers, Integers], ...] = field(repr=False)

    @classmethod
    def of(cls, cells: Integers) -> Self:
        """Build the tree of at least one person; O(n log(n)^2)."""
        order = np.arange(len(cells), dtype=np.int64)
        bounds = np.array([0, len(cells)])
        levels = []
        while int(np.diff(bounds).max()) > 1:
            starts, sizes = bounds[:-1], np.diff(bounds)
            held = cells[order]
            widths = np.maximum.reduceat(held, starts) - np.minimum.reduceat(held, starts)
            axes = np.argmax(widths, axis=1)
            levels.append((read_only(bounds), read_only(axes)))
            if cells.shape[1] > 1 or len(levels) == 1:  # one sort is enough on a line
                order = _sorted_within(cells, order, bounds, axes)
            middles = (starts + sizes // 2)[sizes > 1]
            bounds = np.sort(np.concatenate([bounds, middles]))
        return cls(cells=cells, order=read_only(order), levels=tuple(levels))

    def matched(self, noisy: Integers, arrival: Integers) -> Integers:
        """Return for each person the number of the noisy place matched with them.

        ``arrival`` is a uniformly random order of the noisy places, which breaks ties. Given their
        multiset, the match reveals nothing more about their owners.
        """
        found = arrival
        for bounds, axes in self.levels:
            found = _sorted_within(noisy, found, bounds, axes)
            if noisy.shape[1] == 1:
                break
        matched = np.empty_like(found)
        matched[self.order] = found
        return matched

    def crowds_lower(self, theta: float) -> Floats:
        """Return lower bounds on the sum over others i of e^(-theta d(c_i, c_v)), for each v.

        Mostly within three parts in a hundred. Cost: a few microseconds a person.
        """
        from shuffledp.groups import group_kernels as kernels

        cells = np.ascontiguousarray(self.cells[self.order].astype(np.float64))
        # Means and spreads are off by less than 2^-45 of the largest coordinate.
        slack = 2.0**-40 * (float(np.abs(cells).max()) + 1.0)
        sums = kernels.crowds(cells, _parts(cells), theta, slack)
        crowds = np.empty(len(cells))
        # Up to 2^24 terms are added; the sum counts the person too, as at most 1.
        crowds[self.order] = np.maximum(sums * (1.0 - 2.0**-24) - 1.0, 0.0)
        return crowds


def _parts(cells: Floats) -> tuple[Any, ...]:
    """Return the tree's parts, down to the leaves: part k is split into 2 k + 1 and 2 k + 2."""
    found = []
    bounds = np.array([0, len(cells)])
    while True:
        starts, sizes = bounds[:-1], np.diff(bounds)
        # Sums of whole numbers below 2^63, exact.
        means = np.add.reduceat(cells.astype(np.int64), starts) / sizes[:, None]
        offsets = cells - np.repeat(means, sizes, axis=0)
        spreads = np.add.reduceat((offsets * offsets).sum(axis=1), starts) / sizes
        box = np.minimum.reduceat(cells, starts), np.maximum.reduceat(cells, starts)
        found.append((starts, bounds[1:], means, spreads * (1.0 + 2.0**-20), *box))
        if int(sizes.max()) <= _LEAF:
            return tuple(np.concatenate(each) for each in zip(*found, strict=True))
        bounds = np.sort(np.concatenate([bounds, starts + sizes // 2]))


def _sorted_within(cells: Integers, order: Integers, bounds: Integers, axes: Integers) -> Integers:
    """Return the order sorted within each part by its coordinate; equal ones keep their order."""
    part = np.repeat(np.arange(axes.size), np.diff(bounds))
    keys = cells[order, axes[part]]
    return order[np.lexsort((keys, part))]


# Largest size, and largest number, of groups for which the assignment problem is solved.
_LARGEST_SOLVED = 512
_MOST_SOLVED = 32
# Weiszfeld's steps towards the geometric median; any point gives a bound.
_STEPS = 6
# Rounds of the search for longest paths, one for each of their steps; most paths are short.
_MOST_ROUNDS = 100


def largest_assignment(groups: Groups, cells: Integers) -> float:
    """Return an upper bound, in cells, on the total displacement of the members of any one group.

    Exact on a line, and rounded up by less than a relative 1e-9 if the assignment problem was
    solved, for groups of up to 512 if at most 32 of them compete. Otherwise at most some 15 % too
    large in the plane. Cost: O(memberships), and up to a second for assignment problems.
    """
    largest, solved = 0.0, 0
    if cells.shape[1] == 1:  # twice the sum of distances from a median, exact
        for members, starts, sizes in _blocks(groups):
            values = cells[members, 0]
            values = values[np.lexsort((values, np.repeat(np.arange(sizes.size), sizes)))]
            medians = np.repeat(values[starts + sizes // 2], sizes)
            sums = np.add.reduceat(np.abs(values - medians), starts)
            largest = max(largest, 2 * int(sums.max()))
        return largest
    points = cells.astype(np.float64)
    stars = np.concatenate([*_stars(groups, points), np.zeros(0)])
    for group in np.argsort(-stars, kind="stable"):
        star = float(stars[group])
        if star <= largest:
            break
        members = groups.group(group)
        if members.size <= _LARGEST_SOLVED and solved < _MOST_SOLVED:
            solved += 1
            star = min(star, _dual(points[members]))
        largest = max(largest, star)
    return largest


def largest_star(groups: Groups, points: Floats) -> float:
    """Return the star bound of the largest group, for any points; see the module."""
    return max((float(each.max()) for each in _stars(groups, points)), default=0.0)


def _blocks(groups: Groups) -> Iterator[tuple[NDArray[np.int32], Integers, Integers]]:
    """Yield blocks of groups: their members, the start of each group among them, and its size."""
    for rows in blocks_of(groups.starts):
        starts = groups.starts[rows.start : rows.stop + 1]
        yield groups.members[starts[0] : starts[-1]], starts[:-1] - starts[0], np.diff(starts)


def _stars(groups: Groups, points: Floats) -> Iterator[Floats]:
    """Yield the star bound of each group, rounded up."""
    for members, starts, sizes in _blocks(groups):
        held = points[members]
        centres = np.add.reduceat(held, starts) / sizes[:, None]
        least = np.full(sizes.size, np.inf)
        for _ in range(_STEPS):
            offsets = held - np.repeat(centres, sizes, axis=0)
            distances = np.sqrt((offsets * offsets).sum(axis=1))
            sums = np.add.reduceat(distances, starts)
            least = np.minimum(least, sums)
            # No place may attract without bound: distances are at least some share of the mean.
            floors = np.repeat(1e-6 * sums / sizes + 1e-300, sizes)
            weights = floors / np.maximum(distances, floors)
            totals = np.add.reduceat(weights, starts)
            centres = np.add.reduceat(held * weights[:, None], starts) / totals[:, None]
        # Coordinates are subtracted, squared and added, and then the members are added.
        yield 2.0 * least * (1.0 + (sizes + 32.0) * 2.0**-52)


def _dual(points: Floats) -> float:
    """Return the bound of the dual problem for one group, rounded up."""
    from scipy.optimize import linear_sum_assignment

    offsets = points[:, None, :] - points[None, :, :]
    distances = np.sqrt((offsets * offsets).sum(axis=2))
    _, taken = linear_sum_assignment(distances, maximize=True)
    # v_j >= d_ij - d_i,taken(i) + v_taken(i): longest paths, finite as the choice is optimal.
    gains = distances - distances[np.arange(taken.size), taken][:, None]
    found = np.zeros(taken.size)
    for _ in range(_MOST_ROUNDS):
        longer = np.maximum(found, (gains + found[taken][:, None]).max(axis=0))
        if np.array_equal(longer, found):
            break
        found = longer
    others = (distances - found[None, :]).max(axis=1)
    doubt = (taken.size + 32.0) * 2.0**-51 * (np.abs(found).sum() + np.abs(others).sum())
    return float(found.sum() + others.sum() + doubt)


# Cells are far smaller than the noise, so that rounding to cells is negligible.
_CELLS_PER_SCALE = 16.0
# Number of cells from end to end; for noise far wider than that, cells need not grow with it.
_FEWEST_CELLS, _MOST_CELLS = 2.0**10, 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicPlaces:
    """Public places of people on a lattice: ``cells`` (num_users, d), at most 2^32 in size, d <= 8.

    Made by `for_groups`, with whole numbers far below the limit.

    ``side`` is the distance between neighbouring cells in ``unit``: ``"places"`` for ranks,
    ``"m"``, or ``"units"`` for the unit of the columns.
    """

    cells: Integers = field(repr=False)
    side: float = 1.0
    unit: str = "places"
    name: str = "as given"

    def __post_init__(self) -> None:
        if self.cells.shape[1] > MOST_DIMENSIONS:
            raise ParameterError(
                f"places have {self.cells.shape[1]} coordinates: give {MOST_DIMENSIONS} at most"
            )
        object.__setattr__(self, "cells", read_only(np.ascontiguousarray(self.cells)))

    @classmethod
    def by_rank(cls, values: ArrayLike) -> Self:
        """Return ranks from 0, in half places; equal values share the middle of their ranks."""
        places = distinct_places(values, "absolute")
        counts = np.bincount(places.place_of)
        ends = np.cumsum(counts)
        middles = 2 * ends - counts - 1  # the first rank and the last, added
        return cls(cells=middles[places.place_of][:, None], side=0.5, name="ranks by value")

    @classmethod
    def for_groups(
        cls, groups: Groups, alpha: float, coordinates: ArrayLike | None, metric: str
    ) -> Self:
        """Return ranks for no coordinates or one, else cells; see the module."""
        if coordinates is None:
            reference = reference_orders.choose_reference_order(groups, distance="footrule")
            name = f"places in the order {reference.name}"
            return cls(cells=reference.places[:, None], name=name)
        points = points_of_people(coordinates, metric, groups.num_users)
        if points.shape[1] == 1:
            return cls.by_rank(points)
        unit, name = "units", "cells of a grid"
        if metric == "haversine":
            points, unit, name = points * EARTH_RADIUS, "m", "cells in space"
        points = points - points.min(axis=0)
        scale = largest_star(groups, points) / (alpha if alpha > 0.0 else 1.0)
        extent = max(float(points.max()), 1e-280)
        wanted = min(max(scale / _CELLS_PER_SCALE, extent / _MOST_CELLS), extent / _FEWEST_CELLS)
        side = 2.0 ** math.floor(math.log2(wanted))
        cells = np.rint(points / side).astype(np.int64)
        return cls(cells=cells, side=side, unit=unit, name=name)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return len(self.cells)

    def sensitivity(self, groups: Groups) -> float:
        """Return an upper bound on the total displacement of the members of one group, in cells."""
        if groups.num_users != self.num_users:
            raise ParameterError(
                f"groups are of {groups.num_users:,} people and there are {self.num_users:,} "
                "places: give both in the order of the same rows"
            )
        return largest_assignment(groups, self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplacementShuffler:
    """Moves reports by noise on a public lattice, so that the order in a group hides their owners.

    Made by `for_groups`, which finds the lattice, and theta for a requested alpha.

    Parameters
    ----------
    places : PublicPlaces
        Public places of the people.
    theta : float
        1 / b for noise of scale b, in cells; 0 or in [2^-40, inf]. 0 is a uniform shuffle of
        everybody; inf leaves every report in its place, among the reports of the same place.
    groups, alpha : Groups and float, optional
        Arguments of `for_groups`, which a result reports.

    Notes
    -----
    Source: ours; docs/results/grouped.md. It assumes that places and groups are public and do not
    depend on the answers, and that the noise stays secret. Cost: some 0.1 to 0.3 microseconds a
    report for the noise; laying reports beside people takes O(n log n) on a line and
    O(n log(n)^2) in the plane.

    Examples
    --------
    >>> groups = Groups.from_distance([20, 21, 35, 36], 1, metric="absolute")
    >>> shuffler = DisplacementShuffler.for_groups(groups, 2.0, coordinates=[20, 21, 35, 36])
    >>> shuffler.scale, shuffler.alpha_for(groups)  # the two of a group move 1 place each
    (1.0, 2.0)
    >>> answers = np.array([3, 1, 4, 1])
    >>> sorted(shuffler.shuffle(answers, Entropy.from_operating_system()).tolist())
    [1, 1, 3, 4]
    """

    #: Name in results.
    name: ClassVar[str] = "displacement"

    places: PublicPlaces
    theta: float
    groups: Groups | None = field(default=None, repr=False, compare=False)
    alpha: float | None = field(default=None, repr=False, compare=False)
    _tree: PlaceTree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        theta = reference_orders.require_theta(self.theta, least=SMALLEST_THETA)
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "_tree", PlaceTree.of(self.places.cells))

    @classmethod
    def for_groups(
        cls,
        groups: Groups,
        alpha: SupportsFloat,
        *,
        coordinates: ArrayLike | None = None,
        metric: str = "euclidean",
    ) -> Self:
        """Return an (alpha, groups)-d_sigma-private shuffler with small displacements.

        Parameters
        ----------
        groups : Groups
            Groups whose internal order is hidden.
        alpha : float
            Requested privacy, in [0, inf]: the order inside each group changes the probability of
            any output by a factor of at most e^alpha. 0 is a uniform shuffle of everybody.
        coordinates : array-like of float, shape (num_users, d) or (num_users,), optional
            Public coordinates. One column counts by rank; without any, people are first put into a
            reference order.
        metric : {"euclidean", "haversine", "absolute"}
            Measure of distance between coordinates; see `PublicPlaces`.

        Returns
        -------
        DisplacementShuffler
            With theta = alpha / Delta rounded down. If nobody in a group can move, because all
            its members are at one place, theta is inf.
        """
        wanted = reference_orders.require_alpha(alpha)
        places = PublicPlaces.for_groups(groups, wanted, coordinates, metric)
        theta = reference_orders.theta_below(wanted, places.sensitivity(groups))
        return cls(places=places, theta=theta, groups=groups, alpha=wanted)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return self.places.num_users

    @property
    def scale(self) -> float:
        """The scale b of the noise, in the unit of the places; inf for a uniform shuffle."""
        return math.inf if self.theta == 0.0 else self.places.side / self.theta

    def alpha_for(self, groups: Groups) -> float:
        """Return theta Delta, the alpha for any groups of the same people; errs upwards."""
        return reference_orders.alpha_above(self.theta, self.places.sensitivity(groups))

    def crowds_lower(self) -> Floats:
        """Return the expected number of others who hide each person's report.

        Sum over the others i of exp(-theta d(c_i, c_v)) for each person v; errs downwards, by a few
        parts in a hundred. `displaced_epsilon` takes its minimum.
        """
        if self.theta == 0.0:
            return np.full(self.num_users, self.num_users - 1.0)
        if math.isinf(self.theta):
            _, place, counts = np.unique(
                self.places.cells, axis=0, return_inverse=True, return_counts=True
            )
            return (counts[place.ravel()] - 1).astype(np.float64)
        return self._tree.crowds_lower(self.theta)

    def noisy_places(self, entropy: Entropy) -> Integers:
        """Draw the cell at which each person's report is released, exactly from this law.

        To be released with the reports, in an order that reveals nothing, such as a sorted one.
        Refused for theta = 0, where places are independent of the people and `draw` is uniform.
        """
        if self.theta == 0.0:
            raise ParameterError("theta = 0 is a uniform shuffle, which has no noisy places")
        if math.isinf(self.theta):
            return self.places.cells.copy()
        users, dimensions = self.places.cells.shape
        noise = draw_lattice_noise(users, dimensions, self.theta, entropy)
        return self.places.cells + noise

    def draw(self, entropy: Entropy) -> Integers:
        """Draw the owners of reports: person i gets the report of person ``sigma[i]``.

        Any party that sees it can undo the shuffle.
        """
        arrival = UniformShuffler().shuffle(np.arange(self.num_users, dtype=np.int64), entropy)
        if self.theta == 0.0:
            return arrival
        return self._tree.matched(self.noisy_places(entropy), arrival)

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the rows rearranged; row i of the result lies in the place of person i.

        Parameters
        ----------
        reports : ndarray, shape (num_users, ...)
            Row i is the report of person i. Not changed.
        entropy : Entropy
            As for `noisy_places`.

        Returns
        -------
        ndarray
            A new C-contiguous array of the same shape and type: row i is the report of a person
            near person i.

        Raises
        ------
        ParameterError
            If ``reports`` is a single number, holds Python objects, or has not one row a person.
        """
        reference_orders.require_reports(reports, self.num_users)
        return np.ascontiguousarray(reports[self.draw(entropy)])
