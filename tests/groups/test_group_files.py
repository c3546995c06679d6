"""Lists of groups and members, and those that cannot be used."""

from pathlib import Path

import polars as pl
import pytest

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.grouping import read_coordinates, read_groups
from shuffledp.groups.groups import Groups

ADULT = Path(__file__).parents[3] / "shared" / "data" / "adult.data"


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


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


def test_unknown_members_are_counted_and_refused_or_dropped(tmp_path):
    path = write(tmp_path / "a.csv", "x,bob\ny,anna\nx,zoe\n")
    with pytest.raises(DataError, match=r"1 of 3 rows of a.csv .* such as 'zoe'"):
        read_groups(path, ["anna", "bob"])
    assert lists(read_groups(path, ["anna", "bob"], unknown="drop")) == [[1], [0]]
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


def test_bad_policy(tmp_path):
    with pytest.raises(ParameterError, match="'ignore' is not one of error, drop"):
        read_groups(write(tmp_path / "a.csv", "x,0\n"), unknown="ignore")


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
