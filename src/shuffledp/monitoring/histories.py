"""``Histories``: every user's value in every period, stored as the changes alone.

A row (user, time, value) of a table means that the user has this value from that time on, until the
user's next row. So a table with a row for every user and period, and a table with a row for every
change, mean the same.
"""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.core.checks import require_at_least
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.labels import (
    NOBODY,
    checked_domain,
    label_expression,
    place_expression,
    present,
)
from shuffledp.core.lazy import pl
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.design import NOTHING

_ROWS_A_BLOCK = 1 << 19
_BOOLEANS = ("0", "1", "true", "false")
_USER, _TIME, _VALUE = "user code", "time code", "value code"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histories:
    """Histories of all users. Made by `open_histories`.

    Before their first row users have no value, which for booleans is false.

    Parameters
    ----------
    user_ids : polars.Series
        Identifiers, sorted; a user is an index into it.
    column : str
        Name of the column of values.
    labels : tuple of str
        The categories; empty for booleans. A value's code is its place, 0 for true, -1 for none.
    period_labels : tuple of str
        Start of each of the d periods.
    users : ndarray of int32, shape (m,)
        Users who change, sorted by period and then by user; at most once a period.
    values : ndarray of int64, shape (m,)
        The code of the new value.
    offsets : ndarray of int64, shape (d + 1,)
        Changes of period t are from ``offsets[t - 1]`` to ``offsets[t]``.

    Examples
    --------
    >>> import polars as pl
    >>> from shuffledp.monitoring import open_histories
    >>> rows = pl.DataFrame({"id": ["a", "b", "a"], "day": [1, 2, 3], "on": [True, True, False]})
    >>> histories = open_histories(rows, user="id", time="day", value="on")
    >>> histories.period_labels, histories.user_ids.to_list()
    (('1', '2', '3'), ['a', 'b'])
    """

    user_ids: "pl.Series"
    column: str
    labels: tuple[str, ...]
    period_labels: tuple[str, ...]
    users: NDArray[np.int32]
    values: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.users, self.values, self.offsets):
            array.setflags(write=False)

    @property
    def periods(self) -> int:
        """Number of periods, d."""
        return len(self.period_labels)

    @property
    def num_users(self) -> int:
        """Number of users; each has at least one row."""
        return int(self.user_ids.len())

    def changes_at(self, period: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the users who change at a period, and their new values.

        Parameters
        ----------
        period : int
            In [1, periods].

        Returns
        -------
        users : ndarray of int32
            Indices of users.
        codes : ndarray of int64
            Codes of their new values.
        """
        piece = slice(int(self.offsets[period - 1]), int(self.offsets[period]))
        return self.users[piece], self.values[piece]

    def true_counts(self) -> NDArray[np.int64]:
        """Return the true number of users with each value, in each period.

        Returns
        -------
        ndarray of int64, shape (periods, domain_size)
            Known in a simulation only. One column for booleans: the users who are true.
        """
        size = max(len(self.labels), 1)
        steps = np.zeros((self.periods, size), dtype=np.int64)
        now = np.full(self.num_users, NOTHING, dtype=np.int64)
        for period in range(1, self.periods + 1):
            users, values = self.changes_at(period)
            if users.size:
                for codes, sign in ((values, 1), (now[users], -1)):
                    steps[period - 1] += sign * np.bincount(codes[codes >= 0], minlength=size)
                now[users] = values
        return np.cumsum(steps, axis=0)


def open_histories(
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
    **ways: Any,
) -> Histories:
    """Read the values of users over time from a table.

    Parameters
    ----------
    table : path or polars.DataFrame or polars.LazyFrame
        A ``.parquet``, ``.csv`` or ``.tsv`` file, or a frame. A row means that the user has this
        value from that time on, until the user's next row; rows without a change do no harm.
    user, time : str
        Names of the columns with users (whole numbers or text) and times (whole numbers, dates or
        times of day).
    value : str
        Name of the column with values.
    categories : sequence, optional
        The possible values, if they are not booleans.
    periods : int, optional
        Number of periods, at most 2^20; by default up to the last row.
    start : optional
        Start of period 1: by default 1 for numbers, otherwise the day (hour, month) of the
        earliest row.
    every : optional
        Length of a period: a number (by default 1) for numbers, otherwise ``"1h"``, ``"1d"`` (the
        default), ``"1w"``, ``"1mo"``. The value at the end of a period counts.
    on_progress : callable, optional
        Called with the stage, the rows done and the rows in total.
    csv_separator, header, missing_texts : optional
        Options of reading a file, as for ``shuffledp.collection.open_column``. A user named by a
        missing text, or by ``"NA"`` and the like, is refused.

    Returns
    -------
    Histories
        The changes, in memory.

    Raises
    ------
    DataError
        If the table cannot be used; the message names the row, or user and time.
    DomainError
        If a value lies outside the domain.
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Rows are read in blocks. If each user's rows are in order of time, as in a table sorted by
    time, or by user and then time, memory is 24 bytes a user and 16 a change, whatever the number
    of rows. Otherwise all rows are sorted in memory first.

    Cost: about 15 seconds for a table of 3.65e8 rows, 0.3 for one of 2.6 million changes.

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"id": ["a", "b", "a"], "day": [1, 2, 3], "on": [True, True, False]}
    >>> histories = open_histories(pl.DataFrame(rows), user="id", time="day", value="on")
    >>> histories.true_counts()[:, 0].tolist()
    [1, 2, 1]
    """
    report = on_progress or no_progress
    length = None if periods is None else require_periods(periods)
    labels = _labels(categories)
    names = (user, time, value)
    if len(set(names)) < len(names):
        raise ParameterError(
            f"user, time and value name the columns {', '.join(map(repr, names))}, one of them "
            "twice: give a column for each"
        )
    source = _opened(table, names, **ways)
    frame, origin = source.frame, source.origin
    source.missing_texts(labels or _BOOLEANS)  # refuses missing texts that are values
    with tables.reading(origin):
        if source.separator:
            # Whole rows are parsed once, so that a stray comma is an error.
            frame.select(pl.len()).collect(
                optimizations=pl.QueryOptFlags(projection_pushdown=False), engine="streaming"
            )
        first = frame.select(pl.col(time).drop_nulls().first()).collect().item()
        if first is None:
            raise DataError(f"{origin} has no row with a time: give a row for each user at least")
        users, values = _user_expression(source), _value_expression(source, labels)
        times, kind = _time_expression(source, first)
        rows = frame.select(users.alias(_USER), times.alias(_TIME), values.alias(_VALUE))
        clock = pl.col(_TIME)
        has_gap = pl.any_horizontal(pl.all().is_null()).any()
        summary = rows.select(pl.len(), has_gap.alias("gap"), clock.min(), clock.max().alias("end"))
        num_rows, has_gaps, *ends = summary.collect(engine="streaming").row(0)
        if has_gaps:
            _refuse(source, rows, labels)
        axis = time_axis(kind, ends, start=start, every=every, length=length, origin=origin)
        report("reading users", 0, num_rows)
        ids = rows.select(_USER).unique().collect(engine="streaming")[_USER].sort()
        report("reading users", num_rows, num_rows)
        read = partial(_changes, ids=ids, axis=axis, origin=origin, num_rows=num_rows)
        found = read(rows, report=partial(report, "reading histories"))
        if found is None:  # a user's rows are not in order of time
            rows = rows.sort(_TIME, maintain_order=True)
            found = read(rows, report=partial(report, "sorting histories"))
        assert found is not None  # in order of time now  # noqa: S101
    who, when, what = _last_of_each_period(*found)
    offsets = np.searchsorted(when, np.arange(1, axis.starts.size + 2)).astype(np.int64)
    return Histories(
        user_ids=ids,
        column=value,
        labels=labels,
        period_labels=tuple(axis.text(each) for each in axis.starts.tolist()),
        users=who,
        values=what,
        offsets=offsets,
    )


def _opened(
    table: "str | PathLike[str] | pl.DataFrame | pl.LazyFrame", names: Sequence[str], **ways: Any
) -> tables.Source:
    """Return three columns of a file or a frame."""
    if isinstance(table, str | PathLike):
        return tables.open_source(table, *names, **ways)
    if ways:
        raise ParameterError(f"{next(iter(ways))}=... is for reading a file: leave it out")
    source = tables.Source(table.lazy(), tuple(names), "the table")
    with tables.reading(source.origin):
        for name in names:
            tables.require_column(name, source.frame.collect_schema().names(), Path(source.origin))
    return source


def _labels(categories: Sequence[object] | None) -> tuple[str, ...]:
    """Return the labels of categories; none for booleans."""
    labels = () if categories is None else checked_domain(categories)
    if categories is not None and len(labels) < 2:
        raise DomainError(
            f"categories has {len(labels)}, fewer than two: list all the values that can occur "
            "in categories=[...]"
        )
    return labels


# ---------------------------------------------------------------- columns
def _user_expression(source: tables.Source) -> "pl.Expr":
    """Return the expression for identifiers, Int64 or text."""
    name, dtype = source.names[0], source.dtypes[0]
    if dtype.is_integer() and not source.declared:
        return pl.col(name).cast(pl.Int64)
    if dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum):
        return present(label_expression(name, dtype), (*NOBODY, *source.declared))
    raise DataError(
        f"column {name!r} of {source.origin} is of type {dtype}: name users by whole numbers or "
        "text"
    )


def _value_expression(source: tables.Source, labels: tuple[str, ...]) -> "pl.Expr":
    """Return the expression for the codes, Int64; null for values outside the domain."""
    name, dtype = source.names[2], source.dtypes[2]
    if labels:
        return place_expression(name, dtype, labels).cast(pl.Int64)
    column = pl.col(name)
    if dtype == pl.String:
        text = label_expression(name, dtype).str.to_lowercase()
        is_true, is_false = text.is_in(["1", "true"]), text.is_in(["0", "false"])
    elif dtype == pl.Boolean or dtype.is_numeric():
        is_true, is_false = column == 1, column == 0
    else:
        raise DataError(
            f"column {name!r} of {source.origin} is of type {dtype}, which is no boolean: give "
            "booleans or 0 and 1; or say which values there are with categories=[...]"
        )
    return pl.when(is_true).then(pl.lit(0)).when(is_false).then(pl.lit(NOTHING)).cast(pl.Int64)


def _refuse(source: tables.Source, rows: "pl.LazyFrame", labels: tuple[str, ...]) -> NoReturn:
    """Raise the error for the first row that has no code."""
    names = source.names
    is_bad = pl.any_horizontal(pl.all().is_null())
    place = int(rows.select(is_bad.arg_true().first()).collect().item())
    raw = source.frame.select(names).slice(place, 1).collect().row(0)
    user, time, _ = rows.slice(place, 1).collect().row(0)
    where = f"row {place + 1:,} of {source.origin}"
    for name, given in zip(names, raw, strict=True):
        if given is None or (name == names[0] and user is None):
            raise DataError(
                f"{where} has nothing in column {name!r}: fill it, or leave the row out if the "
                "value goes on as it was"
            )
    if time is None:
        raise DataError(
            f"{where} has time {raw[1]!r} in column {names[1]!r}, which is not written like the "
            "other times: write all of them in the same way"
        )
    allowed = "neither 0/1 nor true/false: give categories=[...] for other values"
    if labels:
        few = ", ".join(labels[:10]) + ", ..." * (len(labels) > 10)
        allowed = f"no category of the domain ({few}): list all that can occur in categories=[...]"
    raise DomainError(f"{where} holds a value{value_note(raw[2])} that is {allowed}")


# ---------------------------------------------------------------- rows
def _changes(
    rows: "pl.LazyFrame",
    *,
    ids: "pl.Series",
    axis: "TimeAxis",
    origin: str,
    num_rows: int,
    report: Callable[[int, int], None],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]] | None:
    """Return users, periods and values of the rows at which a value changes, in their order.

    Return None if the rows of a user are not in order of time.
    """
    last_times = np.full(ids.len(), np.iinfo(np.int64).min)
    last_values = np.full(ids.len(), NOTHING, dtype=np.int64)
    found: list[tuple[NDArray[Any], ...]] = []
    done = 0
    for batch in rows.collect_batches(chunk_size=_ROWS_A_BLOCK):
        if sum(batch.null_count().row(0)):
            raise tables.changed(origin)
        places = ids.search_sorted(batch[_USER]).to_numpy()  # among all ids, which are sorted
        if not (ids.gather(np.minimum(places, ids.len() - 1)) == batch[_USER]).all():
            raise tables.changed(origin)
        user = places.astype(np.int32)
        order = np.argsort(user, kind="stable")  # the rows of a user side by side
        user = user[order]
        time, value = (batch[name].to_numpy()[order] for name in (_TIME, _VALUE))
        is_first = np.concatenate([[True], user[1:] != user[:-1]])
        before = np.where(is_first, last_times[user], np.roll(time, 1))
        is_change = value != np.where(is_first, last_values[user], np.roll(value, 1))
        if (time < before).any():
            return None
        if (twice := is_change & (time == before)).any():
            row = int(np.argmax(twice))
            raise DataError(
                f"user {ids[int(user[row])]!r} at time {axis.text(int(time[row]))} has two "
                f"different values in {origin}: leave one of these rows out"
            )
        last_times[user], last_values[user] = time, value  # of several the last is kept
        periods = np.searchsorted(axis.starts, time[is_change], "right")
        found.append((user[is_change], periods, value[is_change]))
        done += batch.height
        report(done, num_rows)
    if done != num_rows:
        raise tables.changed(origin)
    who, when, what = (np.concatenate(each) for each in zip(*found, strict=True))
    return who, when, what


def _last_of_each_period(
    users: NDArray[np.int32], periods: NDArray[np.int64], values: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Sort changes by period and user, and keep the last of a user's changes in a period."""
    order = np.lexsort((users, periods))
    users, periods, values = users[order], periods[order], values[order]
    if not ((users[1:] == users[:-1]) & (periods[1:] == periods[:-1])).any():
        return users, periods, values
    changes = (
        pl.DataFrame({"user": users, "period": periods, "value": values})
        .unique(["period", "user"], keep="last", maintain_order=True)
        .filter(pl.col("value") != pl.col("value").shift(1, fill_value=NOTHING).over("user"))
    )
    return changes["user"].to_numpy(), changes["period"].to_numpy(), changes["value"].to_numpy()


# ---------------------------------------------------------------- times
#: Largest number of periods of a table.
MOST_PERIODS = 1 << 20

_WHOLE = re.compile(r"[+-]?[0-9]+")
_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")
_YEAR_FIRST = "^([1-9][0-9]{3}-.*)$"  # polars would read 05-01-24 as a day of the year 5


def _time_expression(source: tables.Source, example: object) -> "tuple[pl.Expr, str]":
    """Return the expression for times, Int64: numbers, or microseconds of a date or moment."""
    name, dtype = source.names[1], source.dtypes[1]
    column, text = pl.col(name), str(example).strip()
    if dtype.is_integer():
        return column.cast(pl.Int64), "number"
    if dtype == pl.Date:
        return column.cast(pl.Datetime("us")).cast(pl.Int64), "date"
    if isinstance(dtype, pl.Datetime):
        return column.dt.replace_time_zone(None).dt.cast_time_unit("us").cast(pl.Int64), "moment"
    if dtype == pl.String and _WHOLE.fullmatch(text):
        return column.str.strip_chars().cast(pl.Int64, strict=False), "number"
    if dtype == pl.String and _moment(text) is not None:
        kind = "date" if len(text) == len("2024-12-31") else "moment"
        return _moments(column).cast(pl.Int64), kind
    such = "" if dtype.is_nested() else f" such as {example!r}"
    raise DataError(
        f"column {name!r} of {source.origin} holds {dtype}{such}, which is no time: give "
        "whole numbers, dates (2024-12-31) or times of day (2024-12-31 23:59:59)"
    )


_LENGTH = re.compile(r"([1-9][0-9]{0,8})(h|d|w|mo)")
_LARGEST_TIME = 1 << 62
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "mo": 28.0}  # lower bounds
_MICROSECONDS_A_DAY = 86_400e6


def require_periods(periods: SupportsIndex) -> int:
    """Return a number of periods that a table may have; raise `ParameterError` otherwise."""
    return require_at_least("periods", periods, 1, MOST_PERIODS, "give fewer and longer ones")


class TimeAxis(NamedTuple):
    """Map from times to periods."""

    starts: NDArray[np.int64]  # the time at which each period begins
    text: Callable[[int], str]  # a time as a table shows it


def time_axis(
    kind: str, ends: Sequence[int], *, start: object, every: object, length: int | None, origin: str
) -> TimeAxis:
    """Return the map from the times of a column to periods; raise if one is outside them."""

    def text(time: int) -> str:
        if kind == "number":
            return str(time)
        unit = "D" if kind == "date" else "us"
        shown = str(np.datetime64(time, "us").astype(f"datetime64[{unit}]"))
        return shown.removesuffix(".000000").replace("T", " ")

    make = _starts_of_numbers if kind == "number" else _starts_of_moments
    starts = make(ends, start, every, length)
    earliest, latest = f"time {text(ends[0])} of {origin}", f"time {text(ends[1])} of {origin}"
    if ends[0] < starts[0]:
        raise DataError(
            f"{earliest} is before the first period, which begins at {text(int(starts[0]))}: "
            "pass an earlier start=..., or leave such rows out"
        )
    found = int(np.searchsorted(starts, ends[1], "right"))
    if found > MOST_PERIODS:
        raise DataError(
            f"{latest} is beyond the {MOST_PERIODS:,} periods that there may be: pass a longer "
            "every=..., or a later start=..."
        )
    if length is not None and found > length:
        raise DataError(
            f"{latest} is in period {found:,}, beyond periods = {length:,}: pass a larger "
            "periods=..., or leave such rows out"
        )
    return TimeAxis(starts[: found if length is None else length], text)


def _starts_of_numbers(
    ends: Sequence[int], start: object, every: object, length: int | None
) -> NDArray[np.int64]:
    """Return the numbers at which the periods up to the latest begin, and one more."""
    first = 1 if start is None else _whole("start", start)
    step = 1 if every is None else _whole("every", every)
    if step < 1:
        raise ParameterError(f"every = {every!r} is below 1: give how many numbers make a period")
    needed = min(max((ends[1] - first) // step + 2, length or 1, 1), MOST_PERIODS + 1)
    most = (1 << 63) - 1
    return np.array([min(first + place * step, most) for place in range(needed)], dtype=np.int64)


def _starts_of_moments(
    ends: Sequence[int], start: object, every: object, length: int | None
) -> NDArray[np.int64]:
    """Return the moments at which the periods up to the latest begin, and one more at least."""
    match = _LENGTH.fullmatch("1d" if every is None else str(every))
    if match is None:
        raise ParameterError(
            f"every = {every!r} is no length of time: give such as 1h, 1d, 2w or 1mo"
        )
    count, unit = int(match[1]), match[2]
    begin = pl.Series([ends[0]]).cast(pl.Datetime("us")).dt.truncate("1h" if unit == "h" else "1d")
    if start is not None:
        found = start if isinstance(start, dt.date) else _moment(str(start))
        if found is None:
            raise ParameterError(
                f"start = {start!r} is no date: give such as 2024-12-31 or 2024-12-31 23:00"
            )
        begin = pl.Series([found]).cast(pl.Datetime("us")).dt.replace_time_zone(None)
    if unit == "mo":
        begin = begin.dt.truncate("1mo")
    days = (ends[1] - int(begin.cast(pl.Int64)[0])) / _MICROSECONDS_A_DAY
    needed = min(max(int(days / (count * _DAYS[unit])) + 2, length or 1, 1), MOST_PERIODS + 1)
    steps = (pl.int_range(needed, dtype=pl.Int64) * count).cast(pl.String) + unit
    begins = pl.select(pl.lit(begin).first().dt.offset_by(steps)).to_series()
    return begins.cast(pl.Int64).to_numpy()


def _whole(name: str, value: object) -> int:
    """Return a whole number, also from text."""
    is_text = isinstance(value, str) and _WHOLE.fullmatch(value.strip())
    if not is_text and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise ParameterError(
            f"{name} = {value!r} is no whole number, and the table's times are: give one, such as 1"
        )
    number = int(str(value))
    if abs(number) >= _LARGEST_TIME:
        raise ParameterError(
            f"{name} = {value!r} is not between -2^62 and 2^62: give one near the table's times"
        )
    return number


def _moments(texts: "pl.Expr") -> "pl.Expr":
    """Return the dates or moments that texts name; null for texts of an unknown form."""
    bare = texts.str.strip_chars().str.extract(_YEAR_FIRST)
    return pl.coalesce(
        bare.str.to_datetime(form, time_unit="us", strict=False) for form in _FORMATS
    )


def _moment(text: str) -> dt.datetime | None:
    """Return the date or moment that a text names; None if it has no known format."""
    found: dt.datetime | None = pl.select(_moments(pl.lit(text))).item()
    return found
