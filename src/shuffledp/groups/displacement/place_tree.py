"""``PlaceTree``: public places halved again and again, to match noisy places and to add up crowds.

People are split at the middle of the coordinate that spreads most, and so is each half, until
everybody is alone. Noisy places are split in the same way, by the same coordinates and into the
same numbers: so each person is matched with one noisy place nearby. The match is made from the
noisy places alone, ties in random order: whatever the multiset of noisy places hides stays hidden.

The same tree gives lower bounds on sums of e^(-theta d(c_i, c_v)) over all people i. For a part of
the tree with n people, mean place m and mean square distance s^2 from m, by Jensen's inequality for
the convex functions e^-x and x^2,

    sum of e^(-theta d(c_i, c_v)) >= n e^(-theta sqrt(d(m, c_v)^2 + s^2)).

Parts are opened until that costs a few parts in a hundred of the sum; those that are too far away
to count are left out, which errs downwards too.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.reports import read_only

#: Largest absolute coordinate: sums over all people stay within 64 bits.
LARGEST_COORDINATE = 2**32

# Parts of this many people or fewer are added up one by one.
_LEAF = 8


class _Parts(NamedTuple):
    """The parts of the tree: part k is halved into 2 k + 1 and 2 k + 2."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    means: NDArray[np.float64]
    spreads: NDArray[np.float64]  # mean square distances from the mean
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaceTree:
    """Places of people, halved until everybody is alone. Made by `of`.

    Parameters
    ----------
    cells : ndarray of int64, shape (n, d)
        Place of each person.
    order : ndarray of int64, shape (n,)
        People in the order of the tree's leaves.
    levels : tuple of (bounds, axes)
        For each level where its parts start and end, and by which coordinate each is split.
    """

    cells: NDArray[np.int64]
    order: NDArray[np.int64] = field(repr=False)
    levels: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...] = field(repr=False)

    @classmethod
    def of(cls, cells: NDArray[np.int64]) -> Self:
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

    def matched(self, noisy: NDArray[np.int64], arrival: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each person the number of the noisy place that they are matched with.

        Parameters
        ----------
        noisy : ndarray of int64, shape (n, d)
            Any n places.
        arrival : ndarray of int64, shape (n,)
            A uniformly random order of them, which breaks ties.

        Returns
        -------
        ndarray of int64, shape (n,)
            A permutation. Given the multiset of noisy places and ``arrival`` uniform, it tells
            nothing more about whose they are.
        """
        found = arrival
        for bounds, axes in self.levels:
            found = _sorted_within(noisy, found, bounds, axes)
            if noisy.shape[1] == 1:
                break
        matched = np.empty_like(found)
        matched[self.order] = found
        return matched

    def crowds_lower(self, theta: float) -> NDArray[np.float64]:
        """Return lower bounds of the sum over all others i of e^(-theta d(c_i, c_v)).

        Parameters
        ----------
        theta : float
            In (0, inf), for distances in cells.

        Returns
        -------
        ndarray of float64, shape (n,)
            For each person v; mostly within three parts in a hundred. Errs downwards.

        Notes
        -----
        Source: this module. Cost: a few microseconds a person.
        """
        from shuffledp.groups.displacement import place_tree_kernels as kernels

        cells = np.ascontiguousarray(self.cells[self.order].astype(np.float64))
        parts = self._parts(cells)
        # Means and spreads are off by less than 2^-45 of the largest coordinate.
        slack = 2.0**-40 * (float(np.abs(cells).max()) + 1.0)
        sums = np.empty(len(cells))
        kernels.crowds(cells, *parts, theta, slack, sums)
        crowds = np.empty(len(cells))
        # Up to 2^24 terms are added; the sum counts the person too, as at most 1.
        crowds[self.order] = np.maximum(sums * (1.0 - 2.0**-24) - 1.0, 0.0)
        return crowds

    def _parts(self, cells: NDArray[np.float64]) -> _Parts:
        """Return the complete levels of the tree: each part is split in two, down to the leaves."""
        found: list[_Parts] = []
        bounds = np.array([0, len(cells)])
        while True:
            starts, sizes = bounds[:-1], np.diff(bounds)
            # Sums of whole numbers below 2^63, exact.
            sums = np.add.reduceat(cells.astype(np.int64), starts)
            means = sums / sizes[:, None]
            offsets = cells - np.repeat(means, sizes, axis=0)
            spreads = np.add.reduceat((offsets * offsets).sum(axis=1), starts) / sizes
            found.append(
                _Parts(
                    starts,
                    bounds[1:],
                    means,
                    spreads * (1.0 + 2.0**-20),
                    np.minimum.reduceat(cells, starts),
                    np.maximum.reduceat(cells, starts),
                )
            )
            if int(sizes.max()) <= _LEAF:
                return _Parts(*(np.concatenate(each) for each in zip(*found, strict=True)))
            bounds = np.sort(np.concatenate([bounds, starts + sizes // 2]))


def _sorted_within(
    cells: NDArray[np.int64],
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    axes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the order sorted within each part by its coordinate; equal ones keep their order."""
    part = np.repeat(np.arange(axes.size), np.diff(bounds))
    keys = cells[order, axes[part]]
    return order[np.lexsort((keys, part))]
