import polars as pl
import pytest

from shuffledp.core.errors import DataError, DomainError
from shuffledp.monitoring.history_tables import value_coding


def codes(columns, value, **options):
    frame = pl.DataFrame(columns)
    coding = value_coding(value, **options)
    return frame.lazy().select(coding.expression(frame.schema, "x.csv")).collect().to_series()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, None], [1, 0, None]),
        ([1, 0, 2, None], [1, 0, None, None]),
        ([1.0, 0.0, 0.5, float("nan")], [1, 0, None, None]),
        (["1", " TRUE", "false", "0", "no", None], [1, 1, 0, 0, None, None]),
    ],
)
def test_booleans(values, expected):
    assert codes({"v": values}, "v").to_list() == expected


def test_categories_are_places_in_the_list():
    assert codes({"v": ["b", "a", "c", None]}, "v", categories="ab").to_list() == [1, 0, None, None]
    assert codes({"v": [3, 1, 2]}, "v", categories=[1, 3]).to_list() == [1, 0, None]


def test_before_the_first_row_there_is_nothing():
    assert value_coding("v").before == 0
    assert value_coding("v", categories="ab").before == -1


@pytest.mark.parametrize(
    ("value", "options", "error", "message"),
    [
        ("v", {"categories": "a"}, DomainError, "fewer than two"),
        ("v", {"categories": "aa"}, DomainError, "more than once"),
    ],
)
def test_what_is_no_domain_is_refused(value, options, error, message):
    with pytest.raises(error, match=message):
        value_coding(value, **options)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([["a"]], {}, "no boolean"),
        ([["a"]], {"categories": "ab"}, "no list of answers"),
    ],
)
def test_a_column_of_another_type_is_refused(values, options, message):
    with pytest.raises(DataError, match=message):
        codes({"v": values}, "v", **options)
