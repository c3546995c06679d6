"""Numbers and the limits within which they lie."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from collection.source.opened import numbers_from_values, open_numbers
from shuffledp import Columns, VectorMean
from shuffledp.collection.source import tables
from shuffledp.collection.source.columns import Ball, Range
from shuffledp.core.display import showing_values
from shuffledp.core.errors import DataError, DomainError, ParameterError

# ---------------- numbers
AGES = Range(low=0, high=120)
BALL = Ball(norm_bound=1.0)


def values_of(table):
    return np.concatenate(list(table.blocks())).tolist()


def csv_of(folder, *texts, name="a.csv"):
    path = folder / name
    path.write_text("x\n" + "".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def parquet_of(folder, values, dtype=None):
    path = folder / "a.parquet"
    pl.DataFrame({"x": pl.Series(values, dtype=dtype)}).write_parquet(path)
    return path


# ------------------------------------------------------------------ what numbers look like


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_text_is_read_as_numbers(tmp_path, name):
    path = csv_of(tmp_path, "1", " 2.5 ", "1e2", "+4", "-0.0", "7.", name=name)
    table = open_numbers(path, "x", limits=AGES)
    assert values_of(table) == [1.0, 2.5, 100.0, 4.0, 0.0, 7.0]
    assert (table.num_users, table.num_missing, table.cautions) == (6, 0, ())
    assert values_of(table) == values_of(table)  # it can be read again


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 0, 3], pl.Int8),
        ([1, 0, 3], pl.UInt64),
        ([1.0, 0.0, 3.0], pl.Float32),
        ([1.0, 0.0, 3.0], pl.Decimal(10, 2)),
        (["1", "0", "3"], pl.String),
    ],
)
def test_types_of_parquet(tmp_path, values, dtype):
    path = parquet_of(tmp_path, values, dtype)
    assert values_of(open_numbers(path, "x", limits=AGES)) == [1.0, 0.0, 3.0]


def test_booleans_are_no_numbers(tmp_path):
    path = parquet_of(tmp_path, [True, False, True])
    with pytest.raises(DataError, match="is of type Boolean, which is no number: give 0 and 1"):
        open_numbers(path, "x", limits=Range(low=0, high=1))
    with pytest.raises(DataError, match="holds booleans among float"):
        numbers_from_values([True, 2.5], names=["x"], limits=AGES)
    with pytest.raises(DataError, match="values are booleans"):
        numbers_from_values([[True, False]] * 2, names=["x", "y"], limits=BALL, is_vector=True)


@pytest.mark.parametrize("dtype", [pl.Date, pl.List(pl.Float64), pl.Categorical])
def test_other_types_are_no_numbers(tmp_path, dtype):
    path = parquet_of(tmp_path, [], dtype)
    with pytest.raises(DataError, match=r"'x' is of type .*no column of numbers"):
        open_numbers(path, "x", limits=AGES)


@pytest.mark.parametrize("text", ["abc", "12,5", "0x10", "true", "1e", "12 years", "--1"])
@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("clip", [False, True])
def test_what_is_no_number_is_named_with_its_row(tmp_path, text, missing, clip):
    path = tmp_path / "a.tsv"
    path.write_text(f"id\tx\n1\t5\n2\t{text}\n3\t\n")
    with pytest.raises(
        DataError, match=r"row 2 of column 'x' of a\.tsv holds .*no number"
    ) as error:
        open_numbers(path, "x", limits=AGES, missing=missing, clip=clip)
    assert repr(text) not in str(error.value)
    with showing_values(), pytest.raises(DataError, match="no number") as error:
        open_numbers(path, "x", limits=AGES, missing=missing, clip=clip)
    assert repr(text) in str(error.value)


# ------------------------------------------------------------------ missing


MISSING = ["5", "", "NaN", "nan", "null", " ", "7"]


def test_missing_numbers_are_an_error_by_default(tmp_path):
    with pytest.raises(DataError, match=r"'x' .* 5 rows without .* row 2: pass missing='drop'"):
        open_numbers(csv_of(tmp_path, *MISSING), "x", limits=AGES)


def test_missing_numbers_can_be_dropped(tmp_path):
    path = csv_of(tmp_path, *MISSING, "999")
    table = open_numbers(path, "x", limits=AGES, missing="drop", clip=True)
    assert (table.num_users, table.num_missing) == (3, 5)
    assert values_of(table) == [5.0, 7.0, 120.0]
    assert table.cautions[0].startswith("Dropped: 5 rows")


def test_nulls_and_nan_of_parquet_are_missing(tmp_path):
    path = parquet_of(tmp_path, [1.0, None, math.nan, 2.0])
    assert values_of(open_numbers(path, "x", limits=AGES, missing="drop")) == [1.0, 2.0]


def test_a_vector_lacks_a_coordinate_and_is_dropped_whole(tmp_path):
    pl.DataFrame({"x": [0.1, None, 0.3], "y": [0.0, 0.5, 0.0]}).write_csv(tmp_path / "a.csv")
    table = open_numbers(tmp_path / "a.csv", ["x", "y"], limits=BALL, missing="drop")
    assert values_of(table) == [[0.1, 0.0], [0.3, 0.0]]


def test_a_column_of_nulls(tmp_path):
    with pytest.raises(DataError, match="0 rows with a value"):
        open_numbers(parquet_of(tmp_path, [None, None]), "x", limits=AGES, missing="drop")


def test_missing_is_no_category_of_numbers(tmp_path):
    with pytest.raises(ParameterError, match="'category' makes no sense for numbers"):
        open_numbers(csv_of(tmp_path, 1, 2), "x", limits=AGES, missing="category")


# ------------------------------------------------------------------ limits


def test_values_outside_are_counted_and_the_first_is_named(tmp_path):
    path = csv_of(tmp_path, 5, 120.5, -3, 7, "inf")
    with pytest.raises(
        DomainError, match=r"row 2 .* holds a value outside \[0, 120\]; 3 rows of 5"
    ):
        open_numbers(path, "x", limits=AGES)


def test_values_outside_are_counted_over_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 100)
    path = csv_of(tmp_path, *[5] * 250, 121, *[5] * 99, *[-1] * 150)
    with pytest.raises(DomainError, match=r"row 251 .*; 151 rows of 500"):
        open_numbers(path, "x", limits=AGES)
    path = csv_of(tmp_path, *[5] * 250, "abc")
    with pytest.raises(DataError, match=r"row 251 of column 'x' .* no number"):
        open_numbers(path, "x", limits=AGES)


def test_a_missing_value_is_not_outside(tmp_path):
    path = csv_of(tmp_path, 5, "", 121)
    with pytest.raises(DomainError, match=r"row 3 .*1 row of 3"):
        open_numbers(path, "x", limits=AGES, missing="drop")


def test_clipping_numbers(tmp_path):
    path = csv_of(tmp_path, 5, 120.5, -3, "inf", "-inf", "1e300")
    table = open_numbers(path, "x", limits=AGES, clip=True)
    assert values_of(table) == [5.0, 120.0, 0.0, 120.0, 0.0, 120.0]


def test_clipping_vectors_of_any_size(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n3,4\n0,0\n1e200,-1e200\ninf,1\n1e-320,0\n")
    with pytest.raises(DomainError, match=r"row 1 .*the ball of norm 1; 3 rows of 5"):
        open_numbers(path, ["x", "y"], limits=BALL)
    clipped = values_of(open_numbers(path, ["x", "y"], limits=BALL, clip=True))
    half = math.sqrt(0.5)
    np.testing.assert_allclose(
        clipped, [[0.6, 0.8], [0, 0], [half, -half], [1, 0], [0, 0]], atol=1e-15
    )


# ------------------------------------------------------------------ files


def test_the_nearest_column_is_suggested(tmp_path):
    with pytest.raises(DataError, match="did you mean 'x'"):
        open_numbers(csv_of(tmp_path, 1, 2), ["x", "X"], limits=BALL)


@pytest.mark.parametrize("texts", [(), ("1",)])
def test_one_user_has_nobody_to_hide_among(tmp_path, texts):
    with pytest.raises(DataError, match=rf"{len(texts)} rows? with a value"):
        open_numbers(csv_of(tmp_path, *texts), "x", limits=AGES)


def test_bad_csv_is_one_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match="more fields than the header"):
        open_numbers(path, "x", limits=AGES)


@pytest.mark.parametrize("second", ["5\n", "5\n6\n7\n", "5\n6000\n"])
def test_a_file_that_changes_between_the_passes(tmp_path, second):
    path = csv_of(tmp_path, 5, 6)
    table = open_numbers(path, "x", limits=AGES)
    path.write_text("x\n" + second)
    with pytest.raises(DataError, match="changed while it was being read"):
        values_of(table)


def test_blocks_have_one_size_whatever_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 1000)
    frame = pl.DataFrame({"x": [1.0, 2.0] * 1250})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=300)
    for name in ("a.csv", "a.parquet"):
        table = open_numbers(tmp_path / name, "x", limits=AGES)
        assert [block.size for block in table.blocks()] == [1000, 1000, 500]
        assert values_of(table) == [1.0, 2.0] * 1250


def test_progress_is_reported(tmp_path):
    calls = []
    open_numbers(
        csv_of(tmp_path, 1, 2), "x", limits=AGES, on_progress=lambda *call: calls.append(call)
    )
    assert calls == [("checking", 2, None), ("checking", 2, 2)]


def test_the_representation_shows_no_values(tmp_path):
    assert "77" not in repr(open_numbers(csv_of(tmp_path, 77, 78), "x", limits=AGES))


# ------------------------------------------------------------------ values in memory


@pytest.mark.parametrize(
    "values",
    [[1, 2.5], (1, 2.5), np.array([1.0, 2.5]), pl.Series([1.0, 2.5]), pd.Series([1.0, 2.5])],
    ids=["list", "tuple", "numpy", "polars", "pandas"],
)
def test_values_in_memory(values):
    table = numbers_from_values(values, names=["age"], limits=AGES)
    assert values_of(table) == [1.0, 2.5]


@pytest.mark.parametrize("make", [np.array, pl.DataFrame, pd.DataFrame, np.ndarray.tolist])
def test_vectors_in_memory(make):
    rows = np.array([[0.1, 0.2], [0.3, 0.4]])
    table = numbers_from_values(make(rows), names=["a", "b"], limits=BALL, is_vector=True)
    assert values_of(table) == rows.tolist()


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_vectors_in_a_table_are_read_by_name(make):
    ball = VectorMean(["a", "b"])
    table = make({"b": [0.2, None, 0.4], "c": ["x", "y", "z"], "a": [0.1, 0.0, 0.3]})
    assert values_of(ball.column(table, missing="drop")) == [[0.1, 0.2], [0.3, 0.4]]
    with pytest.raises(DataError, match="values has no column 'd'"):
        VectorMean(["a", "d"]).column(table)
    with pytest.raises(DataError, match="values"):  # and no warning of polars
        ball.column(pl.LazyFrame({"a": [0.1], "b": [0.2]}))


@pytest.mark.parametrize("question", [lambda: VectorMean([1, 2]), lambda: Columns({1: "ab"})])
def test_names_of_columns_are_texts(question):
    with pytest.raises(DomainError, match="= 1 is no text"):
        question()


@pytest.mark.parametrize(
    ("values", "is_vector", "message"),
    [
        (["a", "b"], False, "row 1 of column 'a' of values holds a value that is no number"),
        ([[1.0], [1.0, 2.0]], False, "is of type List"),
        (5.0, False, "values is a float"),
        ([["a", "b"], ["c", "d"]], True, "not all numbers"),
        ([[1j, 2.0]] * 2, True, "are complex: give the parts"),
        (np.zeros((2, 2), "M8[s]"), True, "are times, .*: give them in a unit"),
        (np.ma.array([[0.1, 0.2]] * 2, mask=[[0, 0], [0, 1]]), True, "1 row without an answer"),
        ([1.0, 2.0], True, r"shape \(2,\): give one row of 2 numbers a user"),
        (1.0, True, r"shape \(\): give one row"),
        ([[0.1, 0.2, 0.3]], True, r"shape \(1, 3\)"),
        (
            [1.0, math.nan],
            False,
            "1 row without an answer .* the first is row 2",
        ),
        (
            [1.0, None],
            False,
            "1 row without an answer .* the first is row 2",
        ),
        ([], False, "0 rows with a value"),
    ],
)
def test_values_that_are_no_numbers(values, is_vector, message):
    names = ["a", "b"] if is_vector else ["a"]
    with pytest.raises(DataError, match=message) as error:
        numbers_from_values(
            values, names=names, limits=BALL if is_vector else AGES, is_vector=is_vector
        )
    assert "\n" not in str(error.value)


# ---------------- limits
LARGEST = np.finfo(np.float64).max


def test_both_ends_belong_to_a_range():
    numbers = Range(low=-1, high=2)
    values = np.array([[-1.0], [2.0], [np.nextafter(2.0, 3.0)], [-1.5], [math.inf], [math.nan]])
    assert numbers.outside(values).tolist() == [False, False, True, True, True, True]
    assert numbers.clip(values[:5]).ravel().tolist() == [-1.0, 2.0, 2.0, -1.0, 2.0]
    assert str(numbers) == "[-1, 2]"


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1, 0, "low = 1 is not below high = 0, so the range is the wrong way round or empty"),
        (1, 1, "wrong way round or empty"),
        (-LARGEST, LARGEST, "inf apart"),
        (math.nan, 1, "low = nan"),
        (0, math.inf, "high = inf"),
        ("0", 1, "low = '0'"),
    ],
)
def test_impossible_ranges(low, high, message):
    with pytest.raises(ParameterError, match=message):
        Range(low=low, high=high)


@pytest.mark.parametrize("norm_bound", [0, -1, math.nan, math.inf, "1"])
def test_impossible_balls(norm_bound):
    with pytest.raises(ParameterError, match="norm_bound = "):
        Ball(norm_bound=norm_bound)


def test_the_sphere_belongs_to_the_ball():
    ball = Ball(norm_bound=5.0)
    values = np.array([[3.0, 4.0], [3.0, 4.0001], [0.0, 0.0], [-5.0, 0.0], [math.nan, 0.0]])
    assert ball.outside(values).tolist() == [False, True, False, False, True]
    assert str(ball) == "the ball of norm 5"


def test_shortening_keeps_the_direction():
    clipped = Ball(norm_bound=1.0).clip(np.array([[3.0, 4.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [-1.0, 0.0]], rtol=1e-15)


@pytest.mark.parametrize("bound", [1e-100, 1e-3, 1.0, 7.0, 1e100, 1e300])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e155, 1e200, LARGEST / 4])
def test_no_square_overflows_or_vanishes(bound, size):
    # Warnings are errors here, so an overflow would fail the test.
    ball = Ball(norm_bound=bound)
    values = np.array([[3.0, -4.0], [4.0, 0.0], [0.0, 0.0]]) * size
    is_long = np.array([5.0, 4.0, 0.0]) * (size / 5.0) > bound / 5.0
    np.testing.assert_array_equal(ball.outside(values), is_long)
    clipped = ball.clip(values[is_long])
    assert not ball.outside(clipped).any()
    if is_long[0]:
        np.testing.assert_allclose(clipped[0] / bound, [0.6, -0.8], rtol=1e-14)


def test_infinite_coordinates_lie_outside_and_count_as_the_largest_float():
    ball = Ball(norm_bound=2.0)
    values = np.array([[math.inf, 1.0], [-math.inf, math.inf], [0.0, LARGEST]])
    assert ball.outside(values).all()
    np.testing.assert_allclose(
        ball.clip(values), [[2.0, 0.0], [-math.sqrt(2), math.sqrt(2)], [0.0, 2.0]], atol=1e-15
    )


def test_no_rows():
    ball, empty = Ball(norm_bound=1.0), np.empty((0, 3))
    assert ball.outside(empty).shape == (0,)
    assert ball.clip(empty).shape == (0, 3)


def test_a_decimal_mark_is_of_text_alone(tmp_path):
    pl.DataFrame({"x": [123.456, 1.5]}).write_parquet(tmp_path / "a.parquet")
    column = open_numbers(tmp_path / "a.parquet", "x", limits=Range(low=0, high=999), decimal=",")
    assert values_of(column) == [123.456, 1.5]
