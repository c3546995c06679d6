"""Groups of a survey's respondents, from columns and files that define who shares a group."""

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.collection.source import edge_files
from shuffledp.collection.source.tables import open_source, reading
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.errors import ColumnOrderWarning, DataError, ParameterError
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.groups import Groups, first_fault, require_metric
from shuffledp.groups.mallows import MallowsShuffler

_METRES = {"": Decimal(1), "m": Decimal(1), "km": Decimal(1000), "mi": Decimal("1609.344")}
_LENGTH = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_length(text: str) -> float:
    """Return a length in metres: a number >= 0 and m, km or mi, or metres alone."""
    match = _LENGTH.fullmatch(text)
    if match is None or match[2].lower() not in _METRES:
        raise ParameterError(
            f"length = {text!r} is no length: write a number >= 0 and a unit, one of m, km, mi, "
            "for example 5km"
        )
    metres = float(Context().multiply(Decimal(match[1]), _METRES[match[2].lower()]))
    if not math.isfinite(metres):
        raise ParameterError(
            f"length = {text!r} is not finite: give at most 20000km, half way round"
        )
    return metres


def read_coordinates(
    path: str | PathLike[str], columns: Sequence[str], *, metric: str, **ways: Any
) -> Floats:
    """Read the public coordinates of each person, latitude before longitude: finite, in file order.

    The metric determines the number of columns and the valid values. `DataError` names row and
    column of a value that is missing, no number or out of range: everybody needs a place.
    ``ways`` of reading as in `open_column`: csv_separator, header, decimal, missing_texts.
    """
    names = list(columns)
    if len(set(names)) < len(names):
        raise ParameterError(f"columns {', '.join(names)}: name each column once")
    require_metric(metric, len(names))
    if metric == "haversine" and names[0].lower().startswith(("lon", "lng")):
        what = f"column {names[0]!r} is read as latitude, and {names[1]!r} as longitude"
        warnings.warn(f"{what}: name the latitude first", ColumnOrderWarning, stacklevel=2)
    source = open_source(path, *names, **ways)
    with reading(source.origin):
        selected = source.frame.select(source.numbers()).collect()
    if selected.is_empty():
        raise DataError(f"{source.origin} has no rows: give one row a person")
    # Contiguous, and with NaN where there was no number.
    points = np.ascontiguousarray(selected.to_numpy(), dtype=np.float64)
    if fault := first_fault(points, metric):
        row, column, reason = fault
        if not math.isfinite(points[row, column]):
            with reading(source.origin):
                held = source.frame.select(names[column]).slice(row, 1).collect().item()
            shown = "nothing" if held is None or held == "" else f"{held!r}, which is no place"
            reason = f"holds {shown}; correct it, or leave such people out beforehand"
        raise DataError(f"row {row + 1:,} of column {names[column]!r} of {source.origin}: {reason}")
    return points


def read_groups(
    path: str | PathLike[str], ids: Sequence[str] | None = None
) -> tuple[Integers, ...]:
    """Read groups, for `Groups.from_sets`, in order of first appearance.

    A Parquet file of two columns, the name of a group and a member of it; or text, in the forms
    that `read_edges` takes. Without ``ids`` members are named by their number, from 0. The first
    line counts as a header if its second field names nobody, and neither field occurs again in its
    column.
    """
    import polars as pl

    table = edge_files.read_two_columns(path)
    members, is_known = edge_files.numbers_of(table["second"], ids)
    origin = Path(path).name
    start = edge_files.num_header_lines(table, origin, names_nobody=not is_known[0])
    is_known = is_known[start:]
    if not is_known.all():
        label = table["second"][start + int(np.argmin(is_known))]
        raise edge_files.unknown_label(
            origin, label, ids=ids, num_rows=int(np.count_nonzero(~is_known)), total=is_known.size
        )
    edge_files.require_named(table["first"][start:], origin)
    named = table[start:].select(group="first", member=pl.Series(members[start:]))
    if (twice := named.is_duplicated()).any():
        group, member = named.filter(twice).row(0)
        label = member if ids is None else ids[member]
        raise DataError(
            f"{origin} lists {label!r} more than once in group {group!r}: list each member once"
        )
    parts = named.group_by("group", maintain_order=True).agg("member")["member"]
    return tuple(np.asarray(part, dtype=np.int64) for part in parts)


#: Shufflers within groups.
GroupShuffler = MallowsShuffler | DisplacementShuffler
_WAYS = "by columns, by a graph, or by a file of groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    r"""Definition of groups; `open` forms them for a table.

    Parameters
    ----------
    by : tuple of str
        Public columns that locate people; with ``radius`` or ``group_size``.
    metric : {"euclidean", "haversine", "absolute"}, optional
        Distance between two people. By default absolute difference for one column, Euclidean
        distance for several.
    radius : float or str, optional
        People at most this far apart share a group. For haversine a length such as ``"5km"``.
    group_size : int, optional
        Instead of ``radius``: each group is a person and the nearest others, of this size in all.
    graph : path, optional
        A file of edges; people at most ``hops`` edges apart share a group.
    hops : int
        For ``graph``, at least 1.
    groups_file : path, optional
        A file that lists groups: one row a membership, columns group and member.
    id_column : str, optional
        Column by which ``graph`` or ``groups_file`` name people; row numbers from 0 by default.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,answer\n20,yes\n21,no\n35,yes\n")
    ...     Grouping(by=("age",), radius=1).open(path).groups.sizes.tolist()
    [2, 1]
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
        reaches = sum(each is not None for each in (self.radius, self.group_size))
        if self.by and reaches != 1:
            raise ParameterError(
                f"groups by {', '.join(self.by)}: give exactly one of radius and group_size"
            )
        if not self.by and (reaches or self.metric is not None):
            raise ParameterError("metric, radius and group_size are for groups by columns only")
        if self.graph is None and self.hops != 1:
            raise ParameterError(f"hops = {self.hops} is for groups of a graph only: leave it out")
        if self.by and self.id_column is not None:
            raise ParameterError(
                f"id_column = {self.id_column!r} is for a graph or a file of groups, and not read "
                "for groups by columns: leave it out, and one row a person"
            )

    @property
    def metric_used(self) -> str:
        """Metric, by default chosen by the number of columns."""
        return self.metric or ("absolute" if len(self.by) == 1 else "euclidean")

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Columns of the table from which the groups are formed."""
        return self.by or ((self.id_column,) if self.id_column else ())

    def within(self, reach: str) -> "Grouping":
        """Return groups of all people within a reach, whatever the sizes of these groups.

        The reach is a radius for groups by columns, also for groups of a given size; a number of
        hops for a graph; otherwise another file of groups.
        """
        if self.by:
            return replace(self, radius=reach, group_size=None)
        if self.groups_file is not None:
            return replace(self, groups_file=Path(reach))
        try:
            return replace(self, hops=int(reach))
        except ValueError:
            raise ParameterError(
                f"{reach!r} is not a whole number: give another number of hops"
            ) from None

    def open(self, table: str | PathLike[str], **ways: Any) -> "OpenedGroups":
        """Form the groups of a table's people, one a row.

        ``ways`` of reading as in `open_column`: csv_separator, header, decimal, missing_texts.
        """
        path, metric, points = Path(table), self.metric_used, None
        if self.by:
            points = read_coordinates(path, self.by, metric=metric, **ways)
            if self.radius is None:
                groups = Groups.from_nearest(points, self.group_size or 0, metric=metric)
            else:
                groups = Groups.from_distance(points, _distance(self.radius, metric), metric=metric)
        else:
            groups = self._by_name(path, **ways)
        file = self.graph or self.groups_file
        named = f"{groups.description} ({', '.join(self.by) if file is None else file.name})"
        groups = replace(groups, description=named)
        return OpenedGroups(groups=groups, grouping=self, coordinates=points)

    def _by_name(self, path: Path, **ways: Any) -> Groups:
        """Form groups by a file that names people, with ids or the numbers of their rows."""
        ids = None if self.id_column is None else edge_files.read_ids(path, self.id_column, **ways)
        users = _num_rows(path, **ways) if ids is None else len(ids)
        if self.graph is not None:
            edges = edge_files.read_edges(self.graph, ids)
            return Groups.from_graph(edges, num_users=users, hops=self.hops)
        sets = read_groups(self.groups_file or "", ids)
        return Groups.from_sets(sets, num_users=users, ids=ids)


def _distance(radius: float | str, metric: str) -> float:
    """Return a radius as a number."""
    if isinstance(radius, str) and metric == "haversine":
        return parse_length(radius)
    try:
        return float(radius)
    except ValueError:
        raise ParameterError(
            f"radius = {radius!r} is not a number: units such as km are for metric haversine"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGroups:
    """Groups of a table's people, in its order, and coordinates if formed by columns."""

    groups: Groups
    grouping: Grouping
    coordinates: Floats | None = None

    @property
    def num_users(self) -> int:
        """Number of rows."""
        return self.groups.num_users

    def shuffler(
        self, alpha: float, *, name: str = "mallows", distance: str = "kendall"
    ) -> GroupShuffler:
        """Return a shuffler within these groups by its name, "mallows" or "displacement"."""
        where: Any = {"coordinates": self.coordinates, "metric": self.grouping.metric_used}
        if name == DisplacementShuffler.name:
            return DisplacementShuffler.for_groups(self.groups, alpha, **where)
        return MallowsShuffler.for_groups(self.groups, alpha, distance=distance, **where)


def _num_rows(path: Path, **ways: Any) -> int:
    """Return the number of rows of the table."""
    import polars as pl

    with reading(path.name):
        rows = int(open_source(path, **ways).frame.select(pl.len()).collect().item())
    if rows == 0:
        raise DataError(f"{path.name} has no rows: there is nobody to group")
    return rows
