import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring.times import time_axis, time_expression


def physical(values, example=None):
    """The kind and the whole numbers of a column of times."""
    frame = pl.DataFrame({"t": values})
    kind, times = time_expression("t", frame.schema["t"], example or values[0], "x.csv")
    return kind, frame.select(times).to_series()


def periods_of(values, **options):
    kind, times = physical(values)
    axis = time_axis(kind, earliest=times.min(), **options)
    return axis.periods(times.to_numpy()).tolist()


def test_numbers_are_periods_as_they_are():
    assert periods_of([3, 1, 7]) == [3, 1, 7]
    assert periods_of(["3", " 1", "7"]) == [3, 1, 7]


def test_numbers_may_begin_elsewhere_and_be_grouped():
    assert periods_of([0, 6, 7, 13, 14], start=0, every=7) == [1, 1, 2, 2, 3]
    assert periods_of([0, 6, 7], start="0", every="7") == [1, 1, 2]


def test_dates_begin_with_the_earliest():
    days = [dt.date(2024, 3, 1), dt.date(2024, 2, 28), dt.date(2024, 2, 29)]
    assert periods_of(days) == [3, 1, 2]
    assert periods_of([str(day) for day in days]) == [3, 1, 2]
    assert periods_of(days, start="2024-02-01", every="2w") == [3, 2, 3]
    assert periods_of(days, start=dt.date(2023, 12, 31), every="1mo") == [4, 3, 3]


def test_hours_begin_on_the_hour_and_days_at_midnight():
    moments = [
        dt.datetime.fromisoformat("2024-01-01 10:59"),
        dt.datetime.fromisoformat("2024-01-01 11:00"),
    ]
    assert periods_of(moments, every="1h") == [1, 2]
    assert periods_of(moments) == [1, 1]
    late = [
        dt.datetime.fromisoformat("2024-01-01 23:59"),
        dt.datetime.fromisoformat("2024-01-02 00:00"),
    ]
    assert periods_of(late) == [1, 2]
    assert periods_of(late, every="1mo") == [1, 1]
    assert periods_of(late, start="2023-12-31 23:59", every="1d") == [2, 2]


@pytest.mark.parametrize("text", ["2024-01-01 10:30:00", "2024-01-01T10:30:00", "2024-01-01 10:30"])
def test_moments_in_text(text):
    kind, times = physical([text])
    assert kind == "datetime"
    assert times[0] == int(dt.datetime(2024, 1, 1, 10, 30, tzinfo=dt.UTC).timestamp()) * 10**6


def test_a_column_counts_by_the_clock_of_its_own_zone():
    zoned = pl.Series("t", [dt.datetime(2024, 7, 1, 22, 30, tzinfo=dt.UTC)])
    zoned = zoned.dt.convert_time_zone("Europe/Paris")
    kind, times = physical(zoned, example="x")
    assert time_axis(kind, earliest=times[0]).label(1) == "2024-07-02 00:00:00"


def test_labels_are_the_first_moment_of_a_period():
    assert time_axis("number", earliest=0, every=7).label(3) == "15"
    day = int(np.datetime64("2024-01-31").astype(int))
    assert time_axis("date", earliest=day).label(2) == "2024-02-01"
    assert time_axis("date", earliest=day, every="1mo").label(2) == "2024-02-01"
    assert time_axis("date", earliest=day).time_text(day) == "2024-01-31"
    axis = time_axis("datetime", earliest=day * 86_400_000_000 + 1, every="1h")
    assert axis.label(2) == "2024-01-31 01:00:00"


@given(st.integers(-(10**6), 10**6), st.integers(1, 50), st.integers(1, 40))
def test_a_label_is_the_earliest_time_of_its_period(start, step, period):
    axis = time_axis("number", earliest=0, start=start, every=step)
    first = int(axis.label(period))
    assert axis.periods(np.array([first - 1, first, first + step - 1])).tolist() == [
        period - 1,
        period,
        period,
    ]


def test_equal_descriptions_are_equal_axes():
    day = 19_000
    axes = [
        time_axis("number", earliest=1),
        time_axis("number", earliest=1, start=2),
        time_axis("number", earliest=1, every=2),
        time_axis("date", earliest=day),
        time_axis("date", earliest=day, every="1w"),
        time_axis("date", earliest=day, every="1mo"),
        time_axis("datetime", earliest=day * 86_400_000_000),
    ]
    assert len({axis.describe() for axis in axes}) == len(axes)
    assert [axis.is_exact for axis in axes] == [True, True, False, True, False, False, False]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("number", {"start": "2024-01-01"}, "no whole number"),
        ("number", {"start": True}, "no whole number"),
        ("number", {"every": 0}, "below 1"),
        ("number", {"every": "1d"}, "no whole number"),
        ("number", {"start": 2**62}, "start = .* is not between"),
        ("number", {"every": str(10**26)}, "every = .* is not between"),
        ("datetime", {"every": "99999999w"}, "longer than all times"),
        ("date", {"every": "1h"}, "holds dates"),
        ("date", {"every": "0d"}, "no length of time"),
        ("date", {"every": 7}, "no length of time"),
        ("datetime", {"start": "soon"}, "is no date"),
    ],
)
def test_what_does_not_fit_is_refused(kind, options, message):
    with pytest.raises(ParameterError, match=message):
        time_axis(kind, earliest=1, **options)


@pytest.mark.parametrize("values", [["soon"], [1.5], [[1]]])
def test_what_is_no_time_is_refused(values):
    with pytest.raises(DataError, match="no time: give whole numbers, dates"):
        physical(values)


def test_text_unlike_the_first_is_null():
    assert physical(["3", "x", None])[1].to_list() == [3, None, None]
    assert physical(["2024-01-01", "3"])[1].to_list() == [19723, None]
