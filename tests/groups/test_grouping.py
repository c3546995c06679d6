"""Coordinates from files, lengths from text."""

from decimal import localcontext
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.grouping import (
    Grouping,
    parse_length,
    read_coordinates,
    read_groups,
)
from shuffledp.groups.groups import Groups


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
    with localcontext(prec=3):  # of the program, which makes no difference
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
    with pytest.raises(DataError, match="'flag' is of type Boolean, which is no number: give 0"):
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


ADULT = Path(__file__).parents[3] / "shared" / "data" / "adult.data"


def lists(groups):
    return [people.tolist() for people in groups]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", "house 7,2\nhouse 1,1\nhouse 7,0\n"),
        ("a.csv", "household,person\nhouse 7,2\nhouse 1,1\nhouse 7,0\n"),
        ("a.tsv", "# households\nh7\t2\nh1\t1\nh7\t0\n"),
        ("a.txt", "7 2\n1 1\n7 0\n"),
    ],
)
def test_dialects(tmp_path, name, data):
    groups = read_groups(write(tmp_path / name, data))
    assert lists(groups) == [[2, 0], [1]]
    assert Groups.from_sets(groups, num_users=3).members.tolist() == [0, 2, 1]


def test_parquet(tmp_path):
    frame = pl.DataFrame({"street": ["a", "b", "a"], "id": [0, 0, 1]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert lists(read_groups(tmp_path / "a.parquet")) == [[0, 1], [0]]


def test_labels_become_rows_of_the_survey(tmp_path):
    path = write(tmp_path / "a.csv", "group,member\nx,bob\ny,anna\nx,anna\n")
    assert lists(read_groups(path, ["anna", "bob"])) == [[1, 0], [0]]


def test_unknown_members_are_counted_and_refused(tmp_path):
    path = write(tmp_path / "a.csv", "x,bob\ny,anna\nx,zoe\n")
    with pytest.raises(DataError, match=r"1 of 3 rows of a.csv .* such as 'zoe'"):
        read_groups(path, ["anna", "bob"])
    with pytest.raises(DataError, match="no whole number, such as 'anna'"):
        read_groups(write(tmp_path / "b.csv", "group,member\nx,0\nx,anna\n"))


@pytest.mark.parametrize("first", ["x,zoe", "z,anna"])
def test_a_first_member_is_no_header_if_the_group_comes_again(tmp_path, first):
    path = write(tmp_path / "a.csv", f"{first}\nx,bob\ny,anna\ny,zoe\n")
    with pytest.raises(DataError, match=r"of 4 rows of a.csv .* such as 'zoe'"):
        read_groups(path, ["anna", "bob"])


def test_a_member_twice(tmp_path):
    path = write(tmp_path / "a.csv", "x,bob\ny,anna\nx,bob\n")
    with pytest.raises(DataError, match=r"a.csv lists 'bob' more than once in group 'x'"):
        read_groups(path, ["anna", "bob"])
    path = write(tmp_path / "a.csv", "x,1\nx,1\n")
    with pytest.raises(DataError, match="lists 1 more than once in group 'x'"):
        read_groups(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [("", "is empty"), ("group,member\n", "nothing follows"), ("x,0\n,1\n", "line 2 of a.csv")],
)
def test_files_that_cannot_be_used(tmp_path, data, message):
    with pytest.raises(DataError, match=message):
        read_groups(write(tmp_path / "a.csv", data))


@pytest.mark.skipif(not ADULT.exists(), reason="the UCI Adult census is not on this machine")
def test_ages_in_the_census(tmp_path):
    census = pl.read_csv(ADULT, has_header=False).drop_nulls()
    ages = census.select(age=census.columns[0])
    ages.write_csv(tmp_path / "ages.csv")
    points = read_coordinates(tmp_path / "ages.csv", ["age"], metric="absolute")
    assert len(points) == 32_561
    groups = Groups.from_distance(points, 0, metric="absolute")
    assert groups.num_groups == 73
    # The same households, as it were, from a file.
    pl.DataFrame({"age": ages["age"], "row": range(32_561)}).write_parquet(tmp_path / "g.parquet")
    listed = Groups.from_sets(read_groups(tmp_path / "g.parquet"), num_users=32_561)
    assert sorted(listed.sizes.tolist()) == sorted(groups.sizes.tolist())
    assert (listed.size_protecting() == groups.size_protecting()).all()
    wider = Groups.from_distance(points, 5, metric="absolute")
    near = abs(points[:, 0] - points[0, 0]) <= 5
    assert wider.of(0).tolist() == near.nonzero()[0].tolist()


@pytest.fixture
def survey(tmp_path):
    path = tmp_path / "survey.csv"
    pl.DataFrame(
        {"age": [20, 21, 35, 36], "x": [0.0, 3.0, 0.0, 9.0], "y": [0.0, 4.0, 1.0, 9.0],
         "name": ["a", "b", "c", "d"], "answer": ["yes", "no", "no", "yes"]}
    ).write_csv(path)  # fmt: skip
    return path


def members(opened):
    groups = opened.groups
    return [groups.group(i).tolist() for i in range(groups.num_groups)]


def test_one_column_is_measured_by_its_difference(survey):
    opened = Grouping(by=("age",), radius=1).open(survey)
    assert members(opened) == [[0, 1], [2, 3]]
    assert opened.num_users == 4
    assert opened.coordinates.tolist() == [[20.0], [21.0], [35.0], [36.0]]


def test_several_columns_are_measured_along_a_straight_line(survey):
    opened = Grouping(by=("x", "y"), radius="5").open(survey)
    assert opened.groups.of(1).tolist() == [0, 1, 2]


def test_lengths_are_for_the_surface_of_the_earth(survey):
    opened = Grouping(by=("x", "y"), metric="haversine", radius="200km").open(survey)
    assert opened.groups.of(0).tolist() == [0, 2]
    with pytest.raises(ParameterError, match="units such as km are for metric haversine"):
        Grouping(by=("x", "y"), radius="5km").open(survey)


def test_a_group_may_have_a_size_instead(survey):
    opened = Grouping(by=("age",), group_size=2).open(survey)
    assert set(opened.groups.sizes.tolist()) == {2}


def test_a_graph_names_people_by_row_or_by_a_column(survey, tmp_path):
    by_row = tmp_path / "edges.csv"
    by_row.write_text("0,1\n1,2\n")
    opened = Grouping(graph=by_row, hops=2).open(survey)
    assert opened.groups.of(0).tolist() == [0, 1, 2]
    assert opened.groups.of(3).tolist() == [3]
    by_name = tmp_path / "names.csv"
    by_name.write_text("d,a\n")
    opened = Grouping(graph=by_name, id_column="name").open(survey)
    assert opened.groups.of(3).tolist() == [0, 3]
    assert opened.coordinates is None


def test_a_file_lists_groups(survey, tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("group,member\nh1,a\nh1,b\nh2,c\nh2,d\n")
    opened = Grouping(groups_file=path, id_column="name").open(survey)
    assert members(opened) == [[0, 1], [2, 3]]


def test_an_empty_table_has_nobody_to_group(tmp_path):
    table, edges = tmp_path / "empty.csv", tmp_path / "edges.csv"
    table.write_text("answer\n")
    edges.write_text("0,1\n")
    with pytest.raises(DataError, match="nobody to group"):
        Grouping(graph=edges).open(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "formed in 0 ways"),
        ({"by": ("x",), "radius": 1.0, "graph": Path("e.csv")}, "formed in 2 ways"),
        ({"by": ("x",)}, "exactly one of radius and group_size"),
        ({"by": ("x",), "radius": 1.0, "group_size": 3}, "exactly one of radius and group_size"),
        ({"graph": Path("e.csv"), "radius": 1.0}, "for groups by columns only"),
        ({"by": ("x",), "radius": 1.0, "hops": 3}, "hops = 3 is for groups of a graph only"),
        ({"by": ("x",), "radius": 1.0, "id_column": "name"}, "id_column = 'name' is for a graph"),
    ],
)
def test_contradicting_options_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        Grouping(**options)


@pytest.mark.parametrize(
    ("grouping", "value", "wider"),
    [
        (Grouping(by=("x",), radius=1.0), "2", Grouping(by=("x",), radius="2")),
        (Grouping(by=("x",), group_size=3), "7", Grouping(by=("x",), radius="7")),
        (Grouping(graph=Path("e.csv")), "2", Grouping(graph=Path("e.csv"), hops=2)),
        (Grouping(groups_file=Path("g.csv")), "h.csv", Grouping(groups_file=Path("h.csv"))),
    ],
)
def test_everybody_within_another_reach(grouping, value, wider):
    assert grouping.within(value) == wider


def test_a_number_of_hops_must_be_one():
    with pytest.raises(ParameterError, match="'many' is not a whole number"):
        Grouping(graph=Path("e.csv")).within("many")


def test_what_groups_are_formed_by_is_public():
    assert Grouping(by=("x", "y"), radius=1.0).public_columns == ("x", "y")
    assert Grouping(graph=Path("e.csv"), id_column="name").public_columns == ("name",)
    assert Grouping(graph=Path("e.csv")).public_columns == ()


def test_coordinates_are_floats(survey):
    assert Grouping(by=("age",), radius=1).open(survey).coordinates.dtype == np.float64


def test_a_person_in_no_group_is_named_by_the_id(tmp_path):
    people = write(tmp_path / "people.csv", "id,answer\nanna,yes\nbert,no\ndora,no\n")
    grouping = Grouping(
        groups_file=write(tmp_path / "g.csv", "group,member\n1,anna\n1,bert\n"), id_column="id"
    )
    with pytest.raises(ParameterError, match="1 person of 3 is in no group, the first is dora"):
        grouping.open(people)
