"""Groups of a survey's respondents, from the columns and files that say who belongs together."""

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.displacement.shuffler import DisplacementShuffler
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.shuffler import MallowsShuffler

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What shuffles within groups, by the name of the shuffler.
GroupShuffler = MallowsShuffler | DisplacementShuffler

_WAYS = "by columns, by a graph, or by a file of groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How groups are formed; `open` forms them for a table.

    Parameters
    ----------
    by : tuple of str
        Public columns that say where people are; with ``radius`` or ``group_size``.
    metric : {"euclidean", "haversine", "absolute"}, optional
        Distance between two people. By default absolute difference for one column, Euclidean
        distance for several.
    radius : float or str, optional
        People at most this far apart share a group. For haversine a length such as ``"5km"``.
    group_size : int, optional
        Instead of ``radius``: each group is a person and the nearest others, so many in all.
    graph : path, optional
        A file of edges; people at most ``hops`` edges apart share a group.
    hops : int
        For ``graph``, at least 1.
    groups_file : path, optional
        A file that lists groups: one row a membership, columns group and member.
    id_column : str, optional
        Column by which ``graph`` or ``groups_file`` name people; row numbers from 0 by default.

    Raises
    ------
    ParameterError
        If not exactly one way is given, or an option does not belong to it.
    """

    by: tuple[str, ...] = ()
    metric: str | None = None
    radius: float | str | None = None
    group_size: int | None = None
    graph: Path | None = None
    hops: int = 1
    groups_file: Path | None = None
    id_column: str | None = None

    def __post_init__(self) -> None:
        ways = [bool(self.by), self.graph is not None, self.groups_file is not None]
        if sum(ways) != 1:
            raise ParameterError(f"groups are formed in {sum(ways)} ways: form them {_WAYS}")
        if self.by and (self.radius is None) == (self.group_size is None):
            raise ParameterError(
                f"groups by {', '.join(self.by)}: give exactly one of radius and group_size"
            )
        if not self.by and (
            self.radius is not None or self.group_size is not None or self.metric is not None
        ):
            raise ParameterError("metric, radius and group_size are for groups by columns only")

    @property
    def metric_used(self) -> str:
        """The metric, chosen by the number of columns where none was given."""
        return self.metric or ("absolute" if len(self.by) == 1 else "euclidean")

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Columns of the table that forming the groups makes use of."""
        return self.by or ((self.id_column,) if self.id_column else ())

    def varied(self, value: str) -> "Grouping":
        """Return the same way of forming groups with another size of them.

        Parameters
        ----------
        value : str
            Another radius, group size, number of hops, or file of groups.
        """
        if self.radius is not None:
            return replace(self, radius=value)
        if self.groups_file is not None:
            return replace(self, groups_file=Path(value))
        try:
            number = int(value)
        except ValueError:
            raise ParameterError(
                f"{value!r} is not a whole number: give another number of "
                f"{'hops' if self.graph else 'people a group'}"
            ) from None
        return replace(self, hops=number) if self.graph else replace(self, group_size=number)

    def within(self, reach: str) -> "Grouping":
        """Return groups of all people within a reach, whatever these groups' sizes are.

        Parameters
        ----------
        reach : str
            A radius for groups by columns, also where those have a size; a number of hops for a
            graph; else another file of groups.
        """
        if self.by:
            return replace(self, radius=reach, group_size=None)
        return self.varied(reach)

    def describe(self) -> str:
        """Say in a few words who shares a group."""
        if self.radius is not None:
            measured = f"{', '.join(self.by)}, {self.metric_used} distance"
            return f"people within {self.radius} of each other ({measured})"
        if self.group_size is not None:
            return f"each person and the {self.group_size - 1} nearest by {', '.join(self.by)}"
        if self.graph is not None:
            return f"people at most {self.hops} hops apart in {self.graph.name}"
        return f"groups listed in {self.groups_file.name if self.groups_file else ''}"

    def open(self, table: str | PathLike[str], *, num_users: int | None = None) -> "OpenedGroups":
        """Form the groups of the people in a table, one a row.

        Parameters
        ----------
        table : path
            The survey: a CSV, TSV or Parquet file.
        num_users : int, optional
            Number of rows, where it is known already.

        Returns
        -------
        OpenedGroups
            In the order of the rows.

        Raises
        ------
        DataError, ParameterError
            If a file or column cannot be used; see the readers.
        """
        path = Path(table)
        if self.by:
            return self._by_columns(path)
        from shuffledp.collection.source.edge_files import read_ids
        from shuffledp.groups.group_files import read_groups

        ids = None if self.id_column is None else read_ids(path, self.id_column)
        users = _num_rows(path, ids, num_users)
        if self.graph is not None:
            from shuffledp.collection.source.edge_files import read_edges

            edges = read_edges(self.graph, ids)
            return OpenedGroups(
                groups=Groups.from_graph(edges, num_users=users, hops=self.hops), grouping=self
            )
        sets = read_groups(self.groups_file or "", ids)
        return OpenedGroups(groups=Groups.from_sets(sets, num_users=users), grouping=self)

    def _by_columns(self, path: Path) -> "OpenedGroups":
        """Form groups by the distance between public values."""
        from shuffledp.groups.grouping_columns import parse_length, read_coordinates

        metric = self.metric_used
        points = read_coordinates(path, self.by, metric=metric)
        if self.group_size is not None:
            groups = Groups.from_nearest(points, self.group_size, metric=metric)
        else:
            radius = self.radius
            if isinstance(radius, str):
                radius = parse_length(radius) if metric == "haversine" else _plain_number(radius)
            groups = Groups.from_distance(points, radius or 0.0, metric=metric)
        return OpenedGroups(groups=groups, grouping=self, coordinates=points)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGroups:
    """The groups of a table's people.

    Parameters
    ----------
    groups : Groups
        In the order of the rows.
    grouping : Grouping
        How they were formed.
    coordinates : ndarray of shape (num_users, d), optional
        Where people are, if groups were formed by columns.
    """

    groups: Groups
    grouping: Grouping
    coordinates: NDArray[np.float64] | None = None

    @property
    def num_users(self) -> int:
        """Number of rows."""
        return self.groups.num_users

    def shuffler(
        self, alpha: float, *, name: str = "mallows", distance: str = "kendall"
    ) -> GroupShuffler:
        """Return a shuffler within these groups, which knows where people are.

        Parameters
        ----------
        alpha : float
            As for `MallowsShuffler.for_groups`.
        name : {"mallows", "displacement"}
            By permutations of a reference order, or by noise on places.
        distance : {"kendall", "hamming", "cayley"}
            Of the Mallows model.
        """
        if name == DisplacementShuffler.name:
            return DisplacementShuffler.for_groups(
                self.groups,
                alpha,
                coordinates=self.coordinates,
                metric=self.grouping.metric_used,
            )
        return MallowsShuffler.for_groups(
            self.groups,
            alpha,
            distance=distance,
            coordinates=self.coordinates,
            metric=self.grouping.metric_used,
        )


def _plain_number(text: str) -> float:
    """Return a radius in the unit of the columns."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"radius = {text!r} is not a number: units such as km are for metric haversine"
        ) from None


def _num_rows(path: Path, ids: "Sequence[str] | None", num_users: int | None) -> int:
    """Return the number of rows of the table."""
    if ids is not None:
        return len(ids)
    if num_users is not None:
        return num_users
    import polars as pl

    from shuffledp.collection.source.tables import reading, scan

    with reading(path.name):
        rows = int(scan(path).select(pl.len()).collect().item())
    if rows == 0:
        raise DataError(f"{path.name} has no rows: there is nobody to group")
    return rows
