"""Edge lists in all their dialects, and those that cannot be used."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shuffledp.collection.source.edge_files import read_edges, read_ids
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.grouping import read_groups
from shuffledp.groups.groups import Groups
from shuffledp.network.run import read_graph

DATA = Path(__file__).parents[4] / "shared" / "data"
EXPECTED = [[0, 1], [1, 2], [2, 2]]


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("plain.csv", "0,1\n1,2\n2,2\n"),
        ("header.csv", "u,v\n0,1\n1,2\n2,2\n"),
        ("quoted.csv", '"u","v"\n"0","1"\n1, 2\n2,2'),
        ("windows.csv", "\ufeffu,v\r\n0,1\r\n1,2\r\n2,2\r\n"),
        ("empty-lines.csv", "\n0,1\n\n\n1,2\n  \n2,2\n\n"),
        ("tabs.tsv", "0\t1\n1\t2\n2\t2\n"),
        ("semicolons.txt", "from;to\n0;1\n1;2\n2;2\n"),
        ("spaces.txt", "0 1\n1  2\n 2 \t2 \n"),
        ("comments.txt", "# who knows whom\n% 3 edges\n0 1\n  # more\n1 2\n2 2\n"),
        ("comments.csv", "# u, v\nu,v\n0,1\n1,2\n%\n2,2\n"),
        ("no-suffix", "source target\n0 1\n1 2\n2 2\n"),
    ],
)
def test_dialects(tmp_path, name, data):
    edges = read_edges(write(tmp_path / name, data))
    assert edges.tolist() == EXPECTED
    assert edges.dtype == np.int64


@pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt64, pl.Float64, pl.String])
def test_parquet(tmp_path, dtype):
    frame = pl.DataFrame({"u": [0, 1, 2], "v": [1, 2, 2]}).cast(dtype)
    frame.write_parquet(tmp_path / "edges.parquet")
    assert read_edges(tmp_path / "edges.parquet").tolist() == EXPECTED


def test_labels_become_rows_of_the_survey(tmp_path):
    path = write(tmp_path / "a.csv", "one,other\nbob,anna\nanna,007\n")
    assert read_edges(path, ["anna", "bob", "007"]).tolist() == [[1, 0], [0, 2]]
    assert read_edges(path, np.array(["anna", "bob", "007"])).tolist() == [[1, 0], [0, 2]]


def test_labels_may_be_numbers_of_another_count(tmp_path):
    path = write(tmp_path / "a.csv", "u,v\n17,5\n5,9\n")
    assert read_edges(path, ["5", "9", "17"]).tolist() == [[2, 0], [0, 1]]


def test_unknown_labels_are_counted_and_refused(tmp_path):
    path = write(tmp_path / "a.csv", "u,v\nanna,bob\nbob,zoe\nyan,zoe\n")
    with pytest.raises(DataError, match=r"2 of 3 rows of a.csv .* such as 'zoe'"):
        read_edges(path, ["anna", "bob"])
    with pytest.raises(DataError, match=r"3 of 3 rows of a.csv .*no whole number, such as 'anna'"):
        read_edges(path)


@pytest.mark.parametrize("first", ["anna,zoe", "zoe,yan"])
def test_a_first_edge_is_no_header_if_its_people_come_again_or_are_known(tmp_path, first):
    path = write(tmp_path / "a.csv", f"{first}\nzoe,bob\nanna,bob\n")
    with pytest.raises(DataError, match=r"2 of 3 rows"):
        read_edges(path, ["anna", "bob"])


def test_unknown_labels_when_no_row_is_known_twice(tmp_path):
    path = write(tmp_path / "a.csv", "0,1\n1,x\n")
    with pytest.raises(DataError, match=r"1 of 2 rows of a.csv name somebody .* such as 'x'"):
        read_edges(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "a.csv is empty"),
        ("# nothing\n\n", "a.csv is empty"),
        ("u,v\n", "has one line, 'u' and 'v': nothing follows"),
        ("u,v,w\n0,1,2\n", "has 3 columns: keep the two"),
        ("0\n1\n", "has 1 column:"),
        ("0,1\n1,2,3\n", "more fields"),
        ("0,1\n1,\n", "line 2 of a.csv, .* has only one field"),
        ("0,1\n1\n", "line 2 of a.csv"),
        ("0 1\n1\n", "line 2 of a.csv"),
        (b"0,1\n\xff,2\n", "not text in UTF-8"),
        ("0,1\n0.5,2\n", "no whole number, such as '0.5'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, data, message):
    with pytest.raises(DataError, match=message) as error:
        read_edges(write(tmp_path / "a.csv", data))
    assert "\n" not in str(error.value)


def test_parquet_that_cannot_be_used(tmp_path):
    with pytest.raises(DataError, match="no complete Parquet file"):
        read_edges(write(tmp_path / "a.parquet", "u,v\n"))
    pl.DataFrame({"u": [0, None], "v": [1, 2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"line 2 of b\.parquet"):
        read_edges(tmp_path / "b.parquet")
    pl.DataFrame({"u": [0], "v": [1], "w": [2]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(DataError, match="has 3 columns"):
        read_edges(tmp_path / "c.parquet")


def test_absent_files_and_folders(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_edges(tmp_path / "a.csv")
    with pytest.raises(DataError, match="it is a folder"):
        read_edges(tmp_path)


def test_bad_arguments(tmp_path):
    path = write(tmp_path / "a.csv", "0,1\n")
    with pytest.raises(ParameterError, match="ids holds a label twice"):
        read_edges(path, ["0", "1", "0"])


@pytest.mark.skipif(not DATA.exists(), reason="the real graphs are not on this machine")
def test_friendships_on_twitch():
    edges = read_edges(DATA / "twitch_de_lcc_edges.csv")
    assert edges.shape == (153_138, 2)
    groups = Groups.from_graph(edges, num_users=9_498)
    # Each edge once and no loops: a group is a person and as many friends as there are edges.
    degrees = np.bincount(edges.reshape(-1), minlength=9_498)
    assert (groups.sizes[groups.group_of] == degrees + 1).all()
    assert groups.num_groups < 9_498
    assert groups.cautions() == ()


# ------------------------------------------------------------------ one step from text to name
def test_packed_files_are_unpacked_before_anything_is_read(tmp_path):
    for comment in range(40):  # packed bytes have line breaks, hashes and marks anywhere
        data = f"# {comment * 'x'}\n0,1\n1,2\n2,2\n".encode()
        path = write(tmp_path / "a.csv.gz", gzip.compress(data, mtime=comment))
        assert read_edges(path).tolist() == EXPECTED
    assert read_edges(write(tmp_path / "b.csv", "0,1\n1,2\n2,2\n".encode("utf-16"))).tolist() == (
        EXPECTED
    )


@pytest.mark.parametrize("missing", ["nan", "null", "NA", "None"])
def test_a_missing_name_is_no_hub(tmp_path, missing):
    lines = [f"p{i},p{i + 1}\np{i},{missing}" for i in range(0, 40, 2)]
    path = write(tmp_path / "a.csv", "\n".join(lines) + "\n")
    with pytest.raises(DataError, match=f"20 of 40 rows of a.csv have '{missing}' for a name"):
        read_graph(path)
    groups = write(tmp_path / "g.csv", f"group,member\n{missing},0\n{missing},1\nb,2\n")
    with pytest.raises(DataError, match=f"2 of 3 rows of g.csv have '{missing}' for a name"):
        read_groups(groups)
    ids = write(tmp_path / "ids.csv", f"id,x\na,1\n{missing},2\n")
    with pytest.raises(DataError, match="has no identifier"):
        read_ids(ids, "id")


def test_01_and_1_are_two_people(tmp_path):
    path = write(tmp_path / "a.csv", "01,2\n1,2\n")
    with pytest.raises(DataError, match="no whole number, such as '01'"):
        read_edges(path)
    assert read_graph(path).labels == ("01", "2", "1")
    assert read_edges(path, ["1", "01", "2"]).tolist() == [[1, 2], [0, 2]]


def test_names_have_the_form_of_answers(tmp_path):
    path = write(tmp_path / "a.csv", "a,b\njos\u00e9,anna\xa0\n")
    assert read_edges(path, ["anna", "jose\u0301"]).tolist() == [[1, 0]]
