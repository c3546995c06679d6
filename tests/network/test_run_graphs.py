"""Graphs from files: names and their order, headers, dialects, and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.network.run import read_graph

DATA = Path(__file__).parents[3] / "shared" / "data"


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def edges_of(graph):
    """Return the edges between names, or between numbers where there are none."""
    names = graph.labels or range(graph.num_users)
    return {
        (names[user], names[other])
        for user in range(graph.num_users)
        for other in graph.neighbours_of(user)
        if user < other
    }


# ---------------------------------------------------------------- dialects


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("plain.csv", "0,1\n1,2\n2,2\n"),
        ("header.csv", "u,v\n0,1\n1,2\n2,2\n"),
        ("quoted.csv", '"u","v"\n"0","1"\n1, 2\n2,2'),
        ("windows.csv", "\ufeffu,v\r\n0,1\r\n1,2\r\n2,2\r\n"),
        ("mark.csv", "\ufeff0,1\n1,2\n2,2\n"),
        ("empty-lines.csv", "\n0,1\n\n\n1,2\n  \n2,2\n\n"),
        ("tabs.tsv", "0\t1\n1\t2\n2\t2\n"),
        ("semicolons.txt", "from;to\n0;1\n1;2\n2;2\n"),
        ("spaces.txt", "0 1\n1  2\n 2 \t2 \n"),
        ("one-space.txt", "# nodes: 3\n0 1\n1 2\n2 2\n"),
        ("comments.txt", "# who knows whom\n% 3 edges\n\n0\t1\n1\t2\n2\t2\n"),
        ("comments.csv", "# u, v\nu,v\n0,1\n1,2\n%\n2,2\n"),
        ("no-suffix", "source target\n0 1\n1 2\n2 2\n"),
    ],
)
def test_dialects(tmp_path, name, data):
    path = write(tmp_path / name, data)
    graph = read_graph(path)
    assert (graph.num_users, graph.num_edges, graph.num_self_loops) == (3, 2, 1)
    assert edges_of(graph) == {(0, 1), (1, 2)}
    assert graph.labels is None


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int32, pl.UInt64, pl.Float64, pl.String])
def test_parquet(tmp_path, dtype):
    frame = pl.DataFrame({"u": [0, 1, 2], "v": [1, 2, 2]}).cast(dtype)
    frame.write_parquet(tmp_path / "edges.parquet")
    graph = read_graph(tmp_path / "edges.parquet")
    assert edges_of(graph) == {(0, 1), (1, 2)}
    assert graph.num_self_loops == 1


# ---------------------------------------------------------------- names


def test_whole_numbers_are_in_increasing_order(tmp_path):
    graph = read_graph(write(tmp_path / "a.csv", "u,v\n30,7\n7,5\n7,30\n"))
    assert graph.labels == ("5", "7", "30")
    assert edges_of(graph) == {("7", "30"), ("5", "7")}
    assert graph.num_duplicates == 1


@pytest.mark.parametrize("names", [(5, 7, 30), (0, 10**6, 2**63 - 1), (59, 60, 61)])
def test_numbers_that_are_left_out_make_no_users(tmp_path, names):
    low, middle, high = names
    path = write(tmp_path / "a.csv", f"{high},{middle}\n{middle},{low}\n")
    graph = read_graph(path)
    assert graph.labels == tuple(map(str, names))
    assert [graph.neighbours_of(user).tolist() for user in range(3)] == [[1], [0, 2], [1]]


def test_text_is_in_the_order_of_first_appearance(tmp_path):
    graph = read_graph(write(tmp_path / "a.csv", "from,to\nbob,anna\ncarl,7\n7,bob\n bob ,zoe\n"))
    assert graph.labels == ("bob", "anna", "carl", "7", "zoe")
    assert edges_of(graph) == {("bob", "anna"), ("carl", "7"), ("bob", "7"), ("bob", "zoe")}


def test_numbers_too_large_for_64_bits_are_text(tmp_path):
    large, larger = str(2**63), str(2**70)
    graph = read_graph(write(tmp_path / "a.csv", f"{larger},{large}\n"))
    assert graph.labels == (larger, large)
    frame = pl.DataFrame({"u": [2**64 - 1], "v": [3]}, schema={"u": pl.UInt64, "v": pl.UInt64})
    frame.write_parquet(tmp_path / "a.parquet")
    assert read_graph(tmp_path / "a.parquet").labels == (str(2**64 - 1), "3")


NAMES = st.integers(-3, 12).map(str) | st.sampled_from(["anna", "bob", "u", "v"])


@given(lines=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=8), windows=st.booleans())
def test_both_readers_agree(tmp_path_factory, lines, windows):
    path = tmp_path_factory.getbasetemp() / "agree.csv"
    end = "\r\n" if windows else "\n"
    write(path, "".join(f"{first},{second}{end}" for first, second in lines))
    outcomes = []
    for extra in ("", f"# a comment{end}"):
        write(path, path.read_text() + extra)
        try:
            graph = read_graph(path)
            outcomes.append((graph.labels, graph.num_users, edges_of(graph)))
        except DataError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        ("u,v\nanna,bob\n", ("anna", "bob")),
        ("u,v\n5,7\n", ("5", "7")),
        ("anna,bob\nbob,carl\n", ("anna", "bob", "carl")),
        ("anna,bob\ncarl,anna\n", ("anna", "bob", "carl")),
        ("anna,anna\nbob,carl\n", ("anna", "bob", "carl")),
        ("5,7\nbob,carl\n", ("5", "7", "bob", "carl")),
        ("5,u\n8,9\n", ("5", "u", "8", "9")),
        (f"{2**64},{2**65}\n8,9\n", (str(2**64), str(2**65), "8", "9")),
    ],
)
def test_headers_and_first_edges(tmp_path, data, labels):
    assert read_graph(write(tmp_path / "a.csv", data)).labels == labels


def test_columns_of_parquet_have_names_so_no_row_is_a_header(tmp_path):
    pl.DataFrame({"u": ["a", "c"], "v": ["b", "d"]}).write_parquet(tmp_path / "a.parquet")
    assert read_graph(tmp_path / "a.parquet").labels == ("a", "b", "c", "d")


def test_one_line_of_text_could_be_either(tmp_path):
    for data in ("anna,bob\n", "# edges\nanna,bob"):
        with pytest.raises(DataError, match="one line, 'anna' and 'bob', which may be a header"):
            read_graph(write(tmp_path / "a.csv", data))
    assert read_graph(write(tmp_path / "a.csv", "5,7\n")).labels == ("5", "7")


# ---------------------------------------------------------------- surveys


def test_with_ids_users_are_rows(tmp_path):
    path = write(tmp_path / "a.csv", "one,other\nbob,anna\nanna,007\n")
    ids = ["anna", "zoe", "bob", "007"]
    graph = read_graph(path, ids=ids)
    assert graph.labels == tuple(ids)
    assert [graph.neighbours_of(user).tolist() for user in range(4)] == [[2, 3], [], [0], [0]]
    assert read_graph(path, ids=np.array(ids)).labels == tuple(ids)


def test_ids_that_are_numbers_in_order_are_no_labels(tmp_path):
    path = write(tmp_path / "a.csv", "u,v\n2,0\n")
    graph = read_graph(path, ids=["0", "1", "2", "3"])
    assert graph.labels is None
    assert (graph.num_users, graph.num_isolated) == (4, 2)
    assert read_graph(path, ids=["2", "0"]).labels == ("2", "0")


def test_people_outside_of_the_survey_are_refused(tmp_path):
    path = write(tmp_path / "a.csv", "u,v\nanna,bob\nbob,zoe\n")
    with pytest.raises(DataError, match=r"1 of 2 rows of a\.csv .* such as 'zoe'"):
        read_graph(path, ids=["anna", "bob"])


def test_bad_arguments(tmp_path):
    path = write(tmp_path / "a.csv", "0,1\n")
    with pytest.raises(ParameterError, match="ids holds a label twice"):
        read_graph(path, ids=["0", "1", "0"])


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "a.csv is empty"),
        ("# nothing\n\n", "a.csv is empty"),
        ("u,v\n", "has one line, 'u' and 'v', which may be a header"),
        ("0,1,0.5\n1,2,0.5\n", "a.csv has 3 columns: keep the two"),
        ("u,v,weight\n0,1,2\n", "a.csv has 3 columns: keep the two"),
        ("# by weight\n0 1 0.5\n1 2 0.5\n", "a.csv has 3 columns: keep the two"),
        ("0;1;2;3\n1;2;3;4\n", "a.csv has 4 columns: keep the two"),
        ("0\n1\n", "has 1 column: keep the two"),
        ("0,1\n1,2,3\n", "more fields"),
        ("0,1\n1,\n", "line 2 of a.csv, .* has only one field"),
        ("0,1\n1\n", "line 2 of a.csv"),
        (b"0,1\n\xff,2\n", "not text in UTF-8"),
        (b"\xff,1\n1,2\n", "not text in UTF-8"),
        ("0,1\n1,-1\n", "a.csv names somebody by -1: people are numbered from 0"),
        ("-7,-1\n1,2\n", "a.csv names somebody by -7"),
        ("-7,-1\n1,2\n# end\n", "a.csv names somebody by -7"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, data, message):
    with pytest.raises(DataError, match=message) as error:
        read_graph(write(tmp_path / "a.csv", data))
    assert "\n" not in str(error.value)


def test_weights_are_refused_with_ids_too(tmp_path):
    path = write(tmp_path / "a.csv", "u,v,weight\n0,1,2\n")
    with pytest.raises(DataError, match="has 3 columns: keep the two"):
        read_graph(path, ids=["0", "1"])


def test_parquet_that_cannot_be_used(tmp_path):
    with pytest.raises(DataError, match="no complete Parquet file"):
        read_graph(write(tmp_path / "a.parquet", "u,v\n"))
    pl.DataFrame({"u": [0, None], "v": [1, 2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"line 2 of b\.parquet"):
        read_graph(tmp_path / "b.parquet")
    pl.DataFrame({"u": [0], "v": [1], "w": [2]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"c\.parquet has 3 columns: keep the two"):
        read_graph(tmp_path / "c.parquet")
    pl.DataFrame({"u": [0]}).write_parquet(tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d\.parquet has 1 column: keep the two"):
        read_graph(tmp_path / "d.parquet")
    pl.DataFrame({"u": [], "v": []}, schema={"u": pl.Int64, "v": pl.Int64}).write_parquet(
        tmp_path / "e.parquet"
    )
    with pytest.raises(DataError, match=r"e\.parquet has no rows"):
        read_graph(tmp_path / "e.parquet")


def test_absent_files_and_folders(tmp_path):
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(DataError, match="no such file"):
            read_graph(tmp_path / name)
    with pytest.raises(DataError, match="it is a folder"):
        read_graph(tmp_path)


# ---------------------------------------------------------------- real graphs


@pytest.mark.skipif(not DATA.exists(), reason="the real graphs are not on this machine")
@pytest.mark.parametrize(
    ("name", "num_users", "num_edges", "irregularity"),
    [
        ("facebook_lcc_edges.csv", 22_470, 170_823, 4.0181),
        ("twitch_de_lcc_edges.csv", 9_498, 153_138, 7.9152),
        ("deezer_europe_lcc_edges.csv", 28_281, 92_752, 2.4675),
        ("enron_lcc_edges.csv", 33_696, 180_811, 13.2655),
    ],
)
def test_real_graphs(name, num_users, num_edges, irregularity):
    graph = read_graph(DATA / name)
    assert (graph.num_users, graph.num_edges, graph.num_components) == (num_users, num_edges, 1)
    assert graph.irregularity == pytest.approx(irregularity, abs=6e-5)
    assert graph.labels is None
