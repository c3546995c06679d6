"""Time in tables of histories: whole numbers, dates or times of day, cut into periods from 1."""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DataError, ParameterError

if TYPE_CHECKING:
    import polars as pl

#: The most periods of a table: nobody reads so many running counts.
MOST_PERIODS: Final = 1 << 20

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_FORMATS: Final = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")


def time_expression(
    name: str, dtype: "pl.DataType", example: object, origin: str
) -> "tuple[pl.Expr, str]":
    """Return the expression for times, Int64: numbers, or microseconds of a date or moment."""
    import polars as pl

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
        texts = column.str.strip_chars()
        moments = [texts.str.to_datetime(form, time_unit="us", strict=False) for form in _FORMATS]
        kind = "date" if len(text) == len("2024-12-31") else "moment"
        return pl.coalesce(moments).cast(pl.Int64), kind
    raise DataError(
        f"column {name!r} of {origin} holds {dtype} such as {example!r}, which is no time: give "
        "whole numbers, dates (2024-12-31) or times of day (2024-12-31 23:59:59)"
    )


_LENGTH: Final = re.compile(r"([1-9][0-9]{0,8})(h|d|w|mo)")
_LARGEST_TIME: Final = 1 << 62
_DAYS: Final = {"h": 1 / 24, "d": 1.0, "w": 7.0, "mo": 28.0}  # at least
_MICROSECONDS_A_DAY = 86_400e6


def require_periods(periods: SupportsIndex) -> int:
    """Return a number of periods that a table may have, or raise `ParameterError`."""
    length = require_at_least("periods", periods, 1)
    if length > MOST_PERIODS:
        raise ParameterError(
            f"periods = {length:,} is not in [1, {MOST_PERIODS:,}]: give fewer and longer ones"
        )
    return length


class TimeAxis(NamedTuple):
    """How times become periods."""

    starts: NDArray[np.int64]  # the time at which each period begins
    text: Callable[[int], str]  # a time as a table shows it


def time_axis(
    kind: str, ends: Sequence[int], *, start: object, every: object, length: int | None, origin: str
) -> TimeAxis:
    """Return how the times of a column become periods; raise if one is outside them."""

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
    import polars as pl

    match = _LENGTH.fullmatch("1d" if every is None else str(every))
    if match is None:
        raise ParameterError(
            f"every = {every!r} is no length of time: give such as 1h, 1d, 2w or 1mo"
        )
    count, unit = int(match[1]), match[2]
    begin = pl.Series([ends[0]]).cast(pl.Datetime("us")).dt.truncate("1h" if unit == "h" else "1d")
    if start is not None:
        found = start if isinstance(start, dt.date) else _moment(str(start).strip())
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
    """Return a whole number, also out of text."""
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


def _moment(text: str) -> dt.datetime | None:
    """Return the date or moment that a text names, if it is written as it should be."""
    for form in _FORMATS:
        try:
            return dt.datetime.strptime(text, form)  # noqa: DTZ007  # a clock's time
        except ValueError:
            continue
    return None
