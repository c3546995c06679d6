"""Every answer becomes one text, in the same way whether alone or in a column."""

import datetime as dt
import decimal

import polars as pl
import pytest

from shuffledp.collection.source.tables import (
    checked_domain,
    label_expression,
    label_of,
    require_two_answers,
    sorted_labels,
)
from shuffledp.core.errors import DataError, DomainError

COLUMNS = {
    "text": pl.Series(["yes", " no", "01", "übrig"]),
    "boolean": pl.Series([True, False]),
    "integer": pl.Series([3, -1, 0], dtype=pl.Int16),
    "float": pl.Series([1.0, 0.5, -0.0, float("inf"), 12345678.0]),
    "date": pl.Series([dt.date(2020, 1, 2)]),
    "time": pl.Series([dt.time(3, 4, 5)]),
    "decimal": pl.Series([decimal.Decimal("1.50")]),
    "categorical": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
    "enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_and_its_values_have_the_same_labels(name):
    series = COLUMNS[name].alias("x")
    labels = series.to_frame().select(label_expression("x", series.dtype)).to_series().to_list()
    assert labels == [label_of(value) for value in series.to_list()]


def test_whole_floats_lose_their_fraction_and_negative_zero_its_sign():
    assert [label_of(value) for value in (1.0, 2.5, -0.0)] == ["1", "2.5", "0"]


def test_missing_values_stay_missing():
    series = pl.Series("x", [1.5, None])
    labels = series.to_frame().select(label_expression("x", series.dtype)).to_series().to_list()
    assert labels == ["1.5", None]


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [dt.timedelta(1)], [b"ab"]])
def test_columns_that_hold_no_answers_are_refused(values):
    series = pl.Series("x", values)
    with pytest.raises(DataError, match="'x' is of type"):
        label_expression("x", series.dtype)


def test_domain_keeps_its_order():
    assert checked_domain(["b", 1, True, 2.0]) == ("b", "1", "true", "2")


@pytest.mark.parametrize(
    ("values", "message"),
    [(["a", "b", "a"], "'a' more than once"), (["a", ""], "empty answer at position 2")],
)
def test_bad_domains_are_refused(values, message):
    with pytest.raises(DomainError, match=message):
        checked_domain(values)


@pytest.mark.parametrize("labels", [(), ("a",)])
def test_a_question_needs_two_answers(labels):
    with pytest.raises(DomainError, match="at least two possible answers"):
        require_two_answers(labels, "domain")


def test_labels_are_sorted_as_numbers_if_they_all_are():
    assert sorted_labels({"10", "9", "-1"}) == ("-1", "9", "10")
    assert sorted_labels({"10", "9", "x"}) == ("10", "9", "x")
