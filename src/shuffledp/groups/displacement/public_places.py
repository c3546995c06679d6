"""``PublicPlaces``: where people are, as points of a lattice, for noise that hides who is where.

Whatever people's coordinates are, noise is added on a lattice of whole-number points, on which its
law is the same around every point. So places are rounded to cells, by public data only:

- values of **one column** become ranks; equal values share the middle of their ranks, so that
  people with equal values are told apart by nothing at all;
- points in the **plane**, or of more columns, become the nearest points of a grid whose cells are
  at most a sixteenth of the noise;
- **latitude and longitude** become points in space, in cells around the surface of the Earth.
  Distances are those along a straight line through it, at most those along the surface;
- **without coordinates** places are those of a reference order for the footrule.
"""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.groups.displacement.assignment import largest_assignment, largest_star
from shuffledp.groups.displacement.lattice_noise import MOST_DIMENSIONS
from shuffledp.groups.displacement.place_tree import LARGEST_COORDINATE
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.formation.points import EARTH_RADIUS, distinct_places
from shuffledp.groups.orders.reference_orders import choose_reference_order

# Cells are so much smaller than the noise: what rounding moves is not noticed beside it.
_CELLS_PER_SCALE = 16.0

# From one end to the other; where noise is far wider than that, cells need not grow with it.
_FEWEST_CELLS, _MOST_CELLS = 2.0**10, 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicPlaces:
    """Public places of people on a lattice.

    Parameters
    ----------
    cells : array-like of int, shape (num_users, d)
        Coordinates of each person's cell, at most 2^32 in size; d in [1, 8].
    side : float
        Distance between neighbouring cells, > 0, in ``unit``.
    unit : str
        ``"places"`` for ranks, ``"m"`` for metres, ``"units"`` for the unit of the columns.
    name : str
        How places were found, for reports.

    Raises
    ------
    ParameterError
        If the cells are no such array.

    Examples
    --------
    >>> PublicPlaces.by_rank([30, 20, 30, 40]).cells.ravel().tolist()  # in half places
    [3, 0, 3, 6]
    """

    cells: NDArray[np.int64] = field(repr=False)
    side: float = 1.0
    unit: str = "places"
    name: str = "as given"

    def __post_init__(self) -> None:
        cells = np.ascontiguousarray(self.cells)
        if cells.ndim != 2 or not cells.size or cells.dtype.kind not in "iu":
            raise ParameterError(
                f"cells has shape {cells.shape} and dtype {cells.dtype}: give whole numbers, a row "
                "for each of one person or more"
            )
        if cells.shape[1] > MOST_DIMENSIONS:
            raise ParameterError(
                f"cells has {cells.shape[1]} coordinates: give {MOST_DIMENSIONS} at most"
            )
        if int(np.abs(cells).max()) > LARGEST_COORDINATE:
            raise ParameterError("cells has a coordinate above 2^32: make the cells larger")
        object.__setattr__(self, "cells", read_only(cells.astype(np.int64, copy=False)))
        object.__setattr__(self, "side", require_positive("side", self.side))

    @classmethod
    def by_rank(cls, values: ArrayLike) -> Self:
        """Return ranks from 0, in half places; equal values share the middle of theirs."""
        places = distinct_places(values, "absolute")
        counts = np.bincount(places.place_of)
        ends = np.cumsum(counts)
        middles = 2 * ends - counts - 1  # the first rank and the last, added
        return cls(cells=middles[places.place_of][:, None], side=0.5, name="ranks by value")

    @classmethod
    def in_space(cls, coordinates: ArrayLike, metric: str, groups: Groups, alpha: float) -> Self:
        """Return cells for noise that makes these groups about alpha-private.

        Parameters
        ----------
        coordinates : array-like of float, shape (num_users, d)
            Public coordinates.
        metric : {"euclidean", "haversine"}
            See `METRICS`.
        groups : Groups
            Of the same people.
        alpha : float
            In (0, inf].
        """
        found = distinct_places(coordinates, metric)
        points, unit = found.points[found.place_of], "units"
        if metric == "haversine":
            points, unit = points * EARTH_RADIUS, "m"
        points = points - points.min(axis=0)
        scale = largest_star(groups, points) / alpha
        extent = max(float(points.max()), 1e-280)
        wanted = min(max(scale / _CELLS_PER_SCALE, extent / _MOST_CELLS), extent / _FEWEST_CELLS)
        side = 2.0 ** math.floor(math.log2(wanted))
        return cls(
            cells=np.rint(points / side).astype(np.int64),
            side=side,
            unit=unit,
            name="cells in space" if metric == "haversine" else "cells of a grid",
        )

    @classmethod
    def for_groups(
        cls, groups: Groups, alpha: float, coordinates: ArrayLike | None, metric: str
    ) -> Self:
        """Return ranks for no coordinates or one, else cells; see the module.

        Raises
        ------
        ParameterError
            If the metric is unknown, a coordinate is out of range, or there are not as many
            coordinates as people.
        """
        if coordinates is None:
            reference = choose_reference_order(groups, distance="footrule")
            return cls(
                cells=reference.places[:, None], name=f"places in the order {reference.name}"
            )
        points = np.asarray(coordinates)
        if len(points) != groups.num_users:
            raise ParameterError(
                f"coordinates has {len(points):,} rows for {groups.num_users:,} people: give one "
                "for each"
            )
        if metric == "absolute" or points.ndim == 1 or points.shape[1] == 1:
            return cls.by_rank(points)
        return cls.in_space(points, metric, groups, alpha if alpha > 0.0 else 1.0)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return len(self.cells)

    def sensitivity(self, groups: Groups) -> float:
        """Return how far the members of one group can move in all, in cells; errs upwards.

        Raises
        ------
        ParameterError
            If the groups are of another number of people.
        """
        if groups.num_users != self.num_users:
            raise ParameterError(
                f"groups are of {groups.num_users:,} people and there are {self.num_users:,} "
                "places: give both in the order of the same rows"
            )
        return largest_assignment(groups, self.cells)
