"""Who shares a group, from columns, graphs and lists: every way, and every misuse in one line."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.grouping import Grouping


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


def test_rows_are_counted_once_where_the_number_is_known(survey, tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("0,1\n")
    assert Grouping(graph=edges).open(survey, num_users=6).num_users == 6


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
    ],
)
def test_contradicting_options_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        Grouping(**options)


@pytest.mark.parametrize(
    ("grouping", "value", "words"),
    [
        (Grouping(by=("x",), radius=1.0), "2", "within 2 of each other (x, absolute distance)"),
        (Grouping(by=("x",), group_size=3), "7", "the 6 nearest by x"),
        (Grouping(graph=Path("e.csv")), "2", "at most 2 hops apart in e.csv"),
        (Grouping(groups_file=Path("g.csv")), "h.csv", "listed in h.csv"),
    ],
)
def test_another_size_of_the_same_groups(grouping, value, words):
    assert words in grouping.varied(value).describe()


def test_a_reach_is_a_radius_even_where_groups_have_a_size():
    assert Grouping(by=("x",), group_size=3).within("2") == Grouping(by=("x",), radius="2")
    assert Grouping(by=("x",), radius=1.0).within("2") == Grouping(by=("x",), radius="2")
    assert Grouping(graph=Path("e.csv")).within("2").hops == 2


def test_another_size_must_be_a_number():
    with pytest.raises(ParameterError, match="'many' is not a whole number"):
        Grouping(graph=Path("e.csv")).varied("many")


def test_what_groups_are_formed_by_is_public():
    assert Grouping(by=("x", "y"), radius=1.0).public_columns == ("x", "y")
    assert Grouping(graph=Path("e.csv"), id_column="name").public_columns == ("name",)
    assert Grouping(graph=Path("e.csv")).public_columns == ()


def test_coordinates_are_floats(survey):
    assert Grouping(by=("age",), radius=1).open(survey).coordinates.dtype == np.float64
