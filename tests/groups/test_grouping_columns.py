"""Coordinates from files, lengths from text."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.grouping import (
    parse_length,
    read_coordinates,
)


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# ------------------------------------------------------------------ lengths


@pytest.mark.parametrize(
    ("text", "metres"),
    [
        ("5km", 5000.0),
        ("5 KM", 5000.0),
        ("0.3km", 300.0),
        (" 1.1 km ", 1100.0),
        ("250", 250.0),
        ("250m", 250.0),
        (".5m", 0.5),
        ("5.", 5.0),
        ("1mi", 1609.344),
        ("1e2km", 100_000.0),
        ("0", 0.0),
    ],
)
def test_lengths(text, metres):
    assert parse_length(text) == metres


@given(st.integers(0, 10**6))
def test_thousandths_of_kilometres_are_whole_metres(metres):
    assert parse_length(f"{metres // 1000}.{metres % 1000:03d}km") == metres


@pytest.mark.parametrize(
    "text", ["", "km", "5 leagues", "-1km", "nan", "inf", "5,5km", "1_000", "5km 3", "1e1000"]
)
def test_texts_that_are_no_length(text):
    with pytest.raises(ParameterError, match=r"one of m, km, mi, for example 5km"):
        parse_length(text)


def test_lengths_out_of_range():
    with pytest.raises(ParameterError, match="is not finite"):
        parse_length("1e308km")


# ------------------------------------------------------------------ coordinates


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_coordinates(tmp_path, suffix):
    frame = pl.DataFrame({"lon": [2.5, -180.0], "name": ["a", "b"], "lat": [48, -90]})
    path = tmp_path / f"places.{suffix}"
    if suffix == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if suffix == "csv" else "\t")
    points = read_coordinates(path, ["lat", "lon"], metric="haversine")
    assert points.tolist() == [[48.0, 2.5], [-90.0, -180.0]]
    assert points.flags.c_contiguous


def test_one_column_may_be_named_alone(tmp_path):
    path = write(tmp_path / "a.csv", "age\n 30\n31.5\n")
    assert read_coordinates(path, "age", metric="absolute").tolist() == [[30.0], [31.5]]


def test_decimals_and_text_in_parquet(tmp_path):
    frame = pl.DataFrame({"x": ["1.5", "2"], "y": [1, 2]}).with_columns(
        pl.col("y").cast(pl.Decimal(10, 2))
    )
    frame.write_parquet(tmp_path / "a.parquet")
    points = read_coordinates(tmp_path / "a.parquet", ["x", "y"], metric="euclidean")
    assert points.tolist() == [[1.5, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("lat,lon\n1,2\n3,\n", r"row 2 of column 'lon' of a.csv: holds nothing"),
        ("lat,lon\n1,2\nnorth,5\n", r"row 2 of column 'lat' of a.csv: holds 'north', which is no"),
        ("lat,lon\n1,NaN\n", "row 1 of column 'lon' of a.csv: holds 'NaN'"),
        ("lat,lon\n1,inf\n", "row 1 of column 'lon' of a.csv: holds 'inf'"),
        ("lat,lon\n1,2\n1,2\n90.5,2\n", r"row 3 of column 'lat' of a.csv: latitude 90.5 is not in"),
        ("lat,lon\n1,181\n", r"row 1 of column 'lon' of a.csv: longitude 181.0 is not in"),
        ("lat,lon\n", "a.csv has no rows"),
        ("lat,Lon\n1,2\n", "no column 'lon'; did you mean 'Lon'"),
        ("", "a.csv is empty"),
        (b"lat,lon\n1,\xff\n", "not text in UTF-8"),
    ],
)
def test_coordinates_that_cannot_be_used(tmp_path, data, message):
    path = write(tmp_path / "a.csv", data)
    with pytest.raises(DataError, match=message) as error:
        read_coordinates(path, ["lat", "lon"], metric="haversine")
    assert "\n" not in str(error.value)


def test_missing_coordinates_in_parquet(tmp_path):
    pl.DataFrame({"x": [1.0, None, float("nan")], "n": [None] * 3}).write_parquet(tmp_path / "a.pq")
    with pytest.raises(DataError, match=r"row 2 of column 'x' of a\.pq: holds nothing"):
        read_coordinates(tmp_path / "a.pq", ["x"], metric="euclidean")
    with pytest.raises(DataError, match=r"row 1 of column 'n' of a\.pq: holds nothing"):
        read_coordinates(tmp_path / "a.pq", ["n"], metric="euclidean")


def test_columns_of_other_types(tmp_path):
    pl.DataFrame({"flag": [True, False]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="'flag' is of type Boolean: coordinates are numbers"):
        read_coordinates(tmp_path / "a.parquet", ["flag"], metric="absolute")


@pytest.mark.parametrize(
    ("columns", "metric", "message"),
    [
        (["lat"], "haversine", "takes latitude and longitude, not 1 columns"),
        (["lat", "lon"], "absolute", "takes one column, not 2"),
        ([], "euclidean", "one column or more, not 0"),
        (["lat", "lat"], "haversine", "name each column once"),
        (["lat"], "chebyshev", "not one of euclidean, haversine, absolute"),
    ],
)
def test_columns_that_do_not_fit_the_metric(tmp_path, columns, metric, message):
    path = write(tmp_path / "a.csv", "lat,lon\n1,2\n")
    with pytest.raises(ParameterError, match=message):
        read_coordinates(path, columns, metric=metric)


def test_an_absent_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_coordinates(tmp_path / "a.csv", ["x"], metric="absolute")
