"""Tables of histories: rows (user, time, value), read in blocks of whole-number codes.

A row says that a user's value is this from that time on, until the user's next row. So a table
with a row for every user and period, and one with a row for every change, say the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    changed,
    checked_domain,
    is_text_table,
    label_expression,
    reading,
    require_column,
    scan,
)
from shuffledp.core.checks import require_at_least
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.histories.times import (
    LARGEST_TIME,
    MOST_PERIODS,
    TimeAxis,
    time_axis,
    time_expression,
)
from shuffledp.monitoring.histories.users import UserCoder, user_coder

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCoding:
    """What values a history may have, and their codes. Made by `value_coding`.

    Parameters
    ----------
    column : str
        The column of the table.
    labels : tuple of str
        The categories, whose codes are their places; empty for booleans, whose codes are 0 and 1.
    """

    column: str
    labels: tuple[str, ...]

    @property
    def kind(self) -> str:
        """``"categories"`` or ``"boolean"``."""
        return "categories" if self.labels else "boolean"

    @property
    def before(self) -> int:
        """The code of "nothing yet": -1 for categories, otherwise 0, which is also a value."""
        return -1 if self.labels else 0

    def allowed(self) -> str:
        """Return what a value may be, for messages."""
        if not self.labels:
            return "neither 0/1 nor true/false: give categories (--categories) for other values"
        shown = ", ".join(self.labels[:10]) + ", ..." * (len(self.labels) > 10)
        return f"no category of the domain ({shown}): list all that can occur with --categories"

    def expression(self, schema: "pl.Schema", origin: str) -> "pl.Expr":
        """Return the expression for the codes, Int64; null where a value is none of the domain.

        Raises
        ------
        DataError
            If the column has a type that no values of this kind have.
        """
        import polars as pl

        name, dtype = self.column, schema[self.column]
        if self.labels:
            labels = label_expression(name, dtype)
            return labels.cast(pl.Enum(self.labels), strict=False).to_physical().cast(pl.Int64)
        column = pl.col(name)
        if dtype == pl.Boolean:
            return column.cast(pl.Int64)
        if dtype.is_numeric():
            return pl.when((column == 0) | (column == 1)).then(column.cast(pl.Int64, strict=False))
        if dtype == pl.String:
            text = column.str.strip_chars().str.to_lowercase()
            is_true, is_false = text.is_in(["1", "true"]), text.is_in(["0", "false"])
            return pl.when(is_true | is_false).then(is_true.cast(pl.Int64))
        raise DataError(
            f"column {name!r} of {origin} is of type {dtype}, which is no boolean: give booleans "
            "or 0 and 1; or say which values there are with --categories"
        )


def value_coding(value: str, categories: Sequence[object] | None = None) -> ValueCoding:
    """Return what the values of a table are: one of the categories, or booleans without any.

    Raises
    ------
    DomainError
        If the categories are no domain.
    """
    if categories is None:
        return ValueCoding(column=value, labels=())
    labels = checked_domain(categories)
    if len(labels) < 2:
        raise DomainError(
            f"categories has {len(labels)}, fewer than two: list all the values that can occur "
            "(--categories a,b)"
        )
    return ValueCoding(column=value, labels=labels)


_ROWS_A_BLOCK = 1 << 19
_USER, _TIME, _VALUE = "user code", "time code", "value code"


class HistoryBlock(NamedTuple):
    """Some rows: users int32 (index into ``user_ids``), times int64, values int64."""

    users: NDArray[np.int32]
    times: NDArray[np.int64]
    values: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistoryTable:
    """A checked table of histories. Made by `open_history_table`.

    Parameters
    ----------
    origin : str
        Where it comes from, for messages.
    user_ids : polars.Series
        Identifiers of all users, sorted; whole numbers or text.
    coding : ValueCoding
        What values there are.
    axis : TimeAxis
        How times become periods.
    periods : int
        As many as were asked for; otherwise the last that a row falls into.
    num_rows : int
        Number of rows.
    """

    origin: str
    user_ids: "pl.Series"
    coding: ValueCoding
    axis: TimeAxis
    periods: int
    num_rows: int
    _frame: "pl.LazyFrame" = field(repr=False)
    _coder: UserCoder = field(repr=False)
    _users: "pl.Expr" = field(repr=False)
    _times: "pl.Expr" = field(repr=False)
    _names: tuple[str, str, str] = field(repr=False)

    def blocks(self) -> Iterator[HistoryBlock]:
        """Yield all rows in the table's order; a second call reads it again.

        Yields
        ------
        HistoryBlock
            Up to 2^19 rows.

        Raises
        ------
        DataError
            If a row lacks a user, time or value, or the table changed since it was opened.
        DomainError
            If a value lies outside the domain.
        """
        import polars as pl

        schema = self._frame.collect_schema()
        codes = self._frame.select(
            self._users,
            self._times.alias(_TIME),
            self.coding.expression(schema, self.origin).alias(_VALUE),
        )
        num_seen = 0
        with reading(self.origin):
            for batch in codes.collect_batches(chunk_size=_ROWS_A_BLOCK):
                if sum(batch.null_count().row(0)):
                    is_bad = batch.select(pl.any_horizontal(pl.all().is_null())).to_series()
                    self._refuse(num_seen + int(is_bad.arg_true()[0]))
                num_seen += batch.height
                users = self._coder.codes(batch[_USER])
                if users is None:
                    raise changed(self.origin)
                yield HistoryBlock(users, batch[_TIME].to_numpy(), batch[_VALUE].to_numpy())
        if num_seen != self.num_rows:
            raise changed(self.origin)

    def describe(self, user: int, time: int) -> str:
        """Return a user and a time as the table shows them, for messages."""
        return f"user {self.user_ids[user]!r} at time {self.axis.time_text(time)}"

    def _refuse(self, row: int) -> NoReturn:
        """Raise the error for a row that has no code."""
        raw = self._frame.select(self._names).slice(row, 1).collect().row(0)
        named = dict(zip(self._names, raw, strict=True))
        where = f"row {row + 1:,} of {self.origin}"
        for name, value in named.items():
            if value is None:
                raise DataError(
                    f"{where} has nothing in column {name!r}: fill it, or leave the row out if "
                    "the value goes on as it was"
                )
        user, time, given = raw
        if self._frame.slice(row, 1).select(self._times).collect().item() is None:
            raise DataError(
                f"{where} has time {time!r} in column {self._names[1]!r}, which is not written "
                "like the other times: write all of them in the same way"
            )
        if self._frame.slice(row, 1).select(self._users).collect().item() is None:
            raise DataError(
                f"{where} has user {user} in column {self._names[0]!r}, which is above 2^63 - 1: "
                "name users by smaller numbers, or by text"
            )
        raise DomainError(
            f"{where} holds a value{value_note(given)} that is {self.coding.allowed()}"
        )


def open_history_table(  # one keyword an option
    table: "str | PathLike[str] | pl.DataFrame | pl.LazyFrame",
    *,
    user: str,
    time: str,
    value: str,
    categories: Sequence[object] | None = None,
    periods: int | None = None,
    start: object = None,
    every: object = None,
    on_progress: Progress | None = None,
) -> HistoryTable:
    """Open a table of histories, and make a first pass over its users and times.

    Parameters
    ----------
    table : path or polars.DataFrame or polars.LazyFrame
        A ``.parquet``, ``.csv`` or ``.tsv`` file, or a frame.
    user, time : str
        Names of the columns with users (whole numbers or text) and times.
    value : str
        Name of the column with values.
    categories : sequence, optional
        See `value_coding`; without them values are booleans.
    periods : int, optional
        How many periods there are, at most 2^20; by default up to the last row.
    start, every : optional
        See `time_axis`.
    on_progress : callable, optional
        Called with the stage, the rows done and the rows in total.

    Returns
    -------
    HistoryTable
        Ready to be read in blocks.

    Raises
    ------
    DataError
        If the table or a column cannot be used, has no row, or a time lies outside the periods.
    ParameterError, DomainError
        If an argument is out of range.
    """
    import polars as pl

    report = on_progress or no_progress
    coding = value_coding(value, categories)
    names = (user, time, value)
    _require_different(names)
    if isinstance(table, pl.DataFrame | pl.LazyFrame):
        path, frame = Path("the table"), table.lazy()
    else:
        path = Path(table)
        frame = scan(path)
    origin = path.name
    with reading(origin):
        schema = frame.collect_schema()
        for name in names:
            require_column(name, schema.names(), path)
        if is_text_table(path):  # whole rows are parsed once, so that a stray comma is an error
            frame.select(pl.len()).collect(
                optimizations=pl.QueryOptFlags(projection_pushdown=False), engine="streaming"
            )
        coding.expression(schema, origin)  # says now if the type does not fit
        first = frame.select(pl.col(time).drop_nulls().first()).collect().item()
        num_rows = int(frame.select(pl.len()).collect().item())
        if num_rows == 0 or first is None:
            raise DataError(f"{origin} has no row with a time: give a row for each user at least")
        report("reading users", 0, num_rows)
        kind, times = time_expression(time, schema[time], first, origin)
        earliest, latest = (
            frame.select(times.min().alias("earliest"), times.max().alias("latest"))
            .collect(engine="streaming")
            .row(0)
        )
        _require_near(earliest, latest, origin)
        axis = time_axis(kind, earliest=earliest, start=start, every=every)
        length = _checked_periods(axis, earliest, latest, periods, origin)
        coder, users = _user_coder(frame, user, schema[user], origin)
        report("reading users", num_rows, num_rows)
    return HistoryTable(
        origin=origin,
        user_ids=coder.ids,
        coding=coding,
        axis=axis,
        periods=length,
        num_rows=num_rows,
        _frame=frame,
        _coder=coder,
        _users=users,
        _times=times,
        _names=names,
    )


def _checked_periods(
    axis: TimeAxis, earliest: int, latest: int, periods: int | None, origin: str
) -> int:
    """Return how many periods there are; raise if a time lies outside them."""
    first, last = axis.periods(np.array([earliest, latest], dtype=np.int64)).tolist()
    if first < 1:
        raise DataError(
            f"time {axis.time_text(earliest)} of {origin} is before the first period, which begins "
            f"at {axis.label(1)}: pass an earlier start (--start), or leave such rows out"
        )
    if last > MOST_PERIODS:
        raise DataError(
            f"time {axis.time_text(latest)} of {origin} is in period {last:,}, beyond the "
            f"{MOST_PERIODS:,} that there may be: pass longer periods (--every), or a later start "
            "(--start)"
        )
    length = last if periods is None else require_periods(periods)
    if last > length:
        raise DataError(
            f"time {axis.time_text(latest)} of {origin} is in period {last:,}, beyond periods = "
            f"{length:,}: pass a larger number (--periods), or leave such rows out"
        )
    return int(length)


def require_periods(periods: SupportsIndex) -> int:
    """Return a number of periods that a table may have, or raise `ParameterError`."""
    length = require_at_least("periods", periods, 1)
    if length > MOST_PERIODS:
        raise ParameterError(
            f"periods = {length:,} is not in [1, {MOST_PERIODS:,}]: give fewer and longer ones"
        )
    return length


def _require_different(names: tuple[str, ...]) -> None:
    """Raise if a column is to be two things."""
    again = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if again is not None:
        raise ParameterError(
            f"user, time and value name the column {again!r} twice: give a column for each"
        )


def _require_near(earliest: int | None, latest: int | None, origin: str) -> None:
    """Raise for times whose differences may be no 64-bit integers."""
    for time in (earliest, latest):
        if time is None or not -LARGEST_TIME < time < LARGEST_TIME:
            raise DataError(
                f"{origin} has times that are not between -2^62 and 2^62: leave such rows out, or "
                "count from a later start"
            )


def _user_coder(
    frame: "pl.LazyFrame", name: str, dtype: "pl.DataType", origin: str
) -> tuple[UserCoder, "pl.Expr"]:
    """Return how users are numbered, and the expression for their identifiers."""
    import polars as pl

    if not (dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise DataError(
            f"column {name!r} of {origin} is of type {dtype}: name users by whole numbers or text"
        )
    kept = pl.Int64 if dtype.is_integer() else pl.String
    expression = pl.col(name).cast(kept, strict=False).alias(_USER)
    # A missing user is refused with the number of its row, when the rows are read.
    column = frame.select(expression).drop_nulls()
    limits = None
    if dtype.is_integer():
        user = pl.col(_USER)
        row = column.select(user.min().alias("least"), user.max().alias("greatest"))
        least, greatest = row.collect(engine="streaming").row(0)
        limits = None if least is None else (least, greatest)

    def batches() -> "Iterator[pl.Series]":
        for batch in column.collect_batches(chunk_size=_ROWS_A_BLOCK):
            yield batch.to_series()

    return user_coder(batches, limits), expression
