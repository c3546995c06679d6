"""Time in tables of histories: whole numbers, dates or times of day, cut into periods from 1."""

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError, ParameterError

if TYPE_CHECKING:
    import polars as pl


TimeKind: TypeAlias = Literal["number", "date", "datetime"]

#: The most periods of a table: nobody reads so many running counts.
MOST_PERIODS: Final = 1 << 20

# Times, starts and lengths stay below this, so that their differences are 64-bit integers.
LARGEST_TIME: Final = 1 << 62

_MICROSECONDS_A_DAY = 86_400_000_000
_LENGTH: Final = re.compile(r"([1-9][0-9]{0,8})(h|d|w|mo)")
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME_FORMATS: Final = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """How times become periods. Made by `time_axis`."""

    kind: TimeKind  # What the column holds
    start: int  # Where period 1 begins, in ticks: months if ``is_monthly``, otherwise units of time
    step: int  # Ticks a period, at least 1
    is_monthly: bool = False  # Whether a tick is a month of the calendar

    def periods(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the period of each time; below 1 where it is earlier than the first."""
        ticks = _months(self.kind, times) if self.is_monthly else times
        periods: NDArray[np.int64] = (ticks - self.start) // self.step + 1
        return periods

    def label(self, period: int) -> str:
        """Return the first number, day or moment of a period, as text."""
        return self.time_text(self.start + (period - 1) * self.step, is_tick=True)

    def time_text(self, time: int, *, is_tick: bool = False) -> str:
        """Return one time as a table shows it."""
        if self.kind == "number":
            return str(time)
        if is_tick and self.is_monthly:
            return str(np.datetime64(time, "M")) + "-01"
        if self.kind == "date":
            return str(np.datetime64(time, "D"))
        return str(np.datetime64(time, "us")).removesuffix(".000000").replace("T", " ")

    @property
    def is_exact(self) -> bool:
        """Whether different times are always in different periods."""
        return not self.is_monthly and self.step == 1

    def describe(self) -> str:
        """Return the first time and the length of a period, as text; equal for equal axes only."""
        unit = " months" if self.is_monthly else {"number": "", "date": " d"}.get(self.kind, " us")
        return f"from {self.label(1)}, {self.step}{unit} a period"


def time_axis(
    kind: TimeKind, *, earliest: int, start: object = None, every: object = None
) -> TimeAxis:
    """Return how times of a column become periods."""
    if kind == "number":
        return TimeAxis(
            kind=kind,
            start=1 if start is None else _whole("start", start),
            step=_positive_number(every),
        )
    count, unit = _length(every)
    if kind == "date" and unit == "h":
        raise ParameterError(
            f"every = {every!r} cuts days, and the table holds dates: give days, such as 1d"
        )
    first = earliest if start is None else _moment(kind, start)
    if unit == "mo":
        month = int(_months(kind, np.array([first], dtype=np.int64))[0])
        return TimeAxis(kind=kind, start=month, step=count, is_monthly=True)
    a_day = 1 if kind == "date" else _MICROSECONDS_A_DAY
    a_unit = {"h": a_day // 24, "d": a_day, "w": 7 * a_day}[unit]
    if start is None:
        first -= first % min(a_unit, a_day)
    step = count * a_unit
    if step >= LARGEST_TIME:
        raise ParameterError(f"every = {every!r} is longer than all times: give a shorter length")
    return TimeAxis(kind=kind, start=first, step=step)


def time_expression(
    name: str, dtype: "pl.DataType", example: object, origin: str
) -> "tuple[TimeKind, pl.Expr]":
    """Return what a column of times holds, and the expression for its times as `TimeAxis` takes."""
    import polars as pl

    column = pl.col(name)
    if dtype.is_integer():
        return "number", column.cast(pl.Int64, strict=False)
    if dtype == pl.Date:
        return "date", column.cast(pl.Int32).cast(pl.Int64)
    if isinstance(dtype, pl.Datetime):
        return "datetime", column.dt.replace_time_zone(None).dt.cast_time_unit("us").cast(pl.Int64)
    if dtype == pl.String:
        found = _text_expression(column.str.strip_chars(), str(example).strip())
        if found is not None:
            return found
    raise DataError(
        f"column {name!r} of {origin} holds {dtype} such as {example!r}, which is no time: give "
        "whole numbers, dates (2024-12-31) or times of day (2024-12-31 23:59:59)"
    )


def _text_expression(text: "pl.Expr", example: str) -> "tuple[TimeKind, pl.Expr] | None":
    """Return how times in text are read, judged by one of them; None if it is no time."""
    import polars as pl

    if _WHOLE.fullmatch(example):
        return "number", text.cast(pl.Int64, strict=False)
    if _DATE.fullmatch(example):
        days = text.str.to_date("%Y-%m-%d", strict=False)
        return "date", days.cast(pl.Int32).cast(pl.Int64)
    if _parsed(example) is not None:
        moments = [
            text.str.to_datetime(form, time_unit="us", strict=False) for form in _DATETIME_FORMATS
        ]
        return "datetime", pl.coalesce(moments).cast(pl.Int64)
    return None


def _months(kind: TimeKind, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the month of the calendar of each time, counted from January 1970."""
    unit = "D" if kind == "date" else "us"
    return times.astype(f"datetime64[{unit}]").astype("datetime64[M]").astype(np.int64)


def _length(every: object) -> tuple[int, str]:
    """Return a number and a unit."""
    match = _LENGTH.fullmatch("1d" if every is None else str(every))
    if match is None:
        raise ParameterError(
            f"every = {every!r} is no length of time: give such as 1h, 1d, 2w or 1mo"
        )
    return int(match[1]), match[2]


def _positive_number(every: object) -> int:
    """Return how many numbers make a period."""
    step = 1 if every is None else _whole("every", every)
    if step < 1:
        raise ParameterError(f"every = {every!r} is below 1: give how many numbers make a period")
    return step


def _whole(name: str, value: object) -> int:
    """Return a whole number, also out of text."""
    is_text = isinstance(value, str) and _WHOLE.fullmatch(value.strip())
    if not is_text and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise ParameterError(
            f"{name} = {value!r} is no whole number, and the table's times are: give one, such as 1"
        )
    number = int(str(value))
    if abs(number) >= LARGEST_TIME:
        raise ParameterError(
            f"{name} = {value!r} is not between -2^62 and 2^62: give one near the table's times"
        )
    return number


def _moment(kind: TimeKind, start: object) -> int:
    """Return a first date or moment as a time."""
    if isinstance(start, dt.datetime):
        moment: dt.datetime | None = start.replace(tzinfo=None)
    elif isinstance(start, dt.date):
        moment = dt.datetime(start.year, start.month, start.day)  # noqa: DTZ001  # a clock's time
    else:
        moment = _parsed(str(start))
    if moment is None:
        raise ParameterError(
            f"start = {start!r} is no date: give such as 2024-12-31 or 2024-12-31 23:00"
        )
    days = int(np.datetime64(moment.isoformat(), "D").astype(np.int64))
    if kind == "date":
        return days
    return int(np.datetime64(moment.isoformat(), "us").astype(np.int64))


def _parsed(text: str) -> dt.datetime | None:
    """Return the date or moment that a text names, if it is written as it should be."""
    for form in ("%Y-%m-%d", *_DATETIME_FORMATS):
        try:
            return dt.datetime.strptime(text.strip(), form)  # noqa: DTZ007  # a clock's time
        except ValueError:
            continue
    return None
