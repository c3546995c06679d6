"""``PlaceTree``: public places halved again and again, to match noisy places and to add up crowds.

People are split at the middle of the coordinate that spreads most, and so is each half, until
everybody is alone. Noisy places are split in the same way, by the same coordinates and into the
same numbers: so each person is matched with one noisy place nearby. The match is made from the
noisy places alone, ties in random order: whatever the multiset of noisy places hides stays hidden.

The same tree gives lower bounds on sums of e^(-theta d(c_i, c_v)) over all people i: a part with n
people, mean place m and mean square distance s^2 from m adds at least n e^(-theta sqrt(d(m, c_v)^2
+ s^2)), by Jensen's inequality. Parts are opened until that costs a few parts in a hundred of the
sum; those that are too far away to count are left out, which errs downwards too.

How far the members of a group can move in all if they trade places, Delta(G), is an assignment
problem. On a line it is twice the sum of distances from a median. In several dimensions two upper
bounds are computed (docs/results/grouped.md), and the smaller counts: *star*, 2 sum of d(c_i, m)
for a point m near the geometric median; *dual*, the sum of v_j and of max over j of (d(c_i, c_j) -
v_j) with v from an optimal assignment, which is Delta itself up to rounding, and a bound for any v.
Only the largest group counts for a shuffle. So groups are taken in descending order of the first
bound, until it falls below what is proved for those before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.reports import read_only
from shuffledp.groups.group_rows import blocks_of
from shuffledp.groups.groups import Groups

#: Largest absolute coordinate: sums over all people stay within 64 bits.
LARGEST_COORDINATE = 2**32
# Parts of this many people or fewer are added up one by one.
_LEAF = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaceTree:
    """Places of people, halved until everybody is alone. Made by `of`.

    ``order`` has people in the order of the tree's leaves; ``levels`` has where the parts of each
    level start and end, and by which coordinate each is split.
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
            if cells.shape[1] > 1 or len(levels) == 1:  # on a line once sorted is sorted
                order = _sorted_within(cells, order, bounds, axes)
            middles = (starts + sizes // 2)[sizes > 1]
            bounds = np.sort(np.concatenate([bounds, middles]))
        return cls(cells=cells, order=read_only(order), levels=tuple(levels))

    def matched(self, noisy: Integers, arrival: Integers) -> Integers:
        """Return for each person the number of the noisy place that they are matched with.

        ``arrival`` is a uniformly random order of the noisy places, which breaks ties. Given their
        multiset, the match tells nothing more about whose they are.
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
        """Return lower bounds of the sum over others i of e^(-theta d(c_i, c_v)), for each v.

        Mostly within three parts in a hundred. Cost: a few microseconds a person.
        """
        from shuffledp.groups import shuffler_kernels as kernels

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


# Groups for which the assignment problem is solved: no larger, and no more of them.
_LARGEST_SOLVED = 512
_MOST_SOLVED = 32
# Weiszfeld's steps towards the geometric median; any point gives a bound.
_STEPS = 6
# Longest paths are found after one round per step of the longest path; most paths are short.
_MOST_ROUNDS = 100


def largest_assignment(groups: Groups, cells: Integers) -> float:
    """Return an upper bound, in cells, on how far the members of any one group can move in all.

    Exact on a line, and rounded up by less than 1e-9 of itself where the assignment problem was
    solved, which is so for groups of up to 512 if no more than 32 of them compete. Else at most
    some 15 % too large in the plane. Cost: O(memberships), and up to a second for assignment
    problems.
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
    """Yield members of some groups at a time, where each starts among them, and its size."""
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
            # Nobody's own place draws all: distances count as at least some share of the mean.
            floors = np.repeat(1e-6 * sums / sizes + 1e-300, sizes)
            weights = 1.0 / np.maximum(distances, floors)
            totals = np.add.reduceat(weights, starts)
            centres = np.add.reduceat(held * weights[:, None], starts) / totals[:, None]
        # Coordinates are subtracted, squared, added, and so are the members.
        yield 2.0 * least * (1.0 + (sizes + 32.0) * 2.0**-52)


def _dual(points: Floats) -> float:
    """Return the bound of the dual problem for one group, rounded up."""
    from scipy.optimize import linear_sum_assignment

    offsets = points[:, None, :] - points[None, :, :]
    distances = np.sqrt((offsets * offsets).sum(axis=2))
    _, taken = linear_sum_assignment(distances, maximize=True)
    # v_j >= d_ij - d_i,taken(i) + v_taken(i): longest paths, which end where the choice is optimal.
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
