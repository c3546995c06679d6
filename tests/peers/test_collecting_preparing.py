"""Terms and keys in files; who has which value; where a relay listens."""

import json
import stat
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest

from graph_families import star_graph
from shuffledp import (
    AnswerSets,
    Categories,
    Mean,
    VectorMean,
)
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, OutputError, ParameterError
from shuffledp.deploy.servers import http_server
from shuffledp.network.graph import Graph
from shuffledp.peers.collecting import (
    prepare_terms,
    read_key,
    read_terms,
    traffic_facts,
    write_collection,
)
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.peer_runner import read_node_values, value_of_one
from shuffledp.peers.terms import nearest_laziness

YES_NO = Categories(domain=("yes", "no"))


def test_terms_and_key_come_back(tmp_path, collection):
    terms_path, key_path = write_collection(tmp_path / "c", collection.terms, collection.keys)
    assert stat.S_IMODE(key_path.stat().st_mode) == 0o600
    terms = read_terms(terms_path)
    assert terms.digest() == collection.terms.digest()
    assert terms.asked == collection.asked
    assert read_key(key_path, terms).mail_key == terms.analyzer_mail_key
    with pytest.raises(OutputError, match="exists: choose another"):
        write_collection(tmp_path / "c", collection.terms, collection.keys)
    with pytest.raises(OutputError, match="cannot write"):
        write_collection(terms_path / "c", collection.terms, collection.keys)


def test_two_collections_are_never_the_same(collection):
    again = prepare_terms(collection.graph, collection.asked, collection.keys, rounds=3)
    assert again.digest() != collection.terms.digest()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 1}', "\ud800"])
def test_what_are_no_terms_is_refused(tmp_path, text):
    path = tmp_path / "terms.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(DataError, match="terms"):
        read_terms(path)


def test_absent_terms_and_terms_of_another_size_of_reports_are_refused(tmp_path, collection):
    with pytest.raises(DataError, match="No such file"):
        read_terms(tmp_path / "terms.json")
    written = json.loads(collection.terms.to_json())
    path = tmp_path / "terms.json"
    path.write_text(json.dumps({**written, "report_bytes": 2}))
    with pytest.raises(DataError, match="or another size of reports"):
        read_terms(path)


def test_wrong_and_damaged_keys_are_refused(tmp_path, collection):
    path = tmp_path / "analyzer.key"
    with pytest.raises(DataError, match="No such file"):
        read_key(path, collection.terms)
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot use the key"):
        read_key(path, collection.terms)
    path.write_bytes(PrivateKeys.generate().to_bytes())
    with pytest.raises(DataError, match="does not fit the terms"):
        read_key(path, collection.terms)


def test_facts_say_what_taking_part_costs(make_collection):
    collection = make_collection()
    facts = dict(traffic_facts(collection.terms, collection.graph))
    slots = collection.terms.slots[0]
    assert facts["messages a user and round"] == str(slots)
    star = make_collection(star_graph(5), laziness=0.5)
    facts = dict(traffic_facts(star.terms, star.graph))
    low, high = facts["messages a user and round"].split(" to ")
    assert int(low) < int(high)


@pytest.mark.parametrize("laziness", [-0.1, 1.0, float("nan")])
def test_laziness_out_of_range(laziness):
    with pytest.raises(ParameterError, match="laziness"):
        nearest_laziness(laziness)


def test_laziness_stays_below_one():
    assert nearest_laziness(1.0 - 1e-9) == 65535 / 65536


def path_of(num_nodes, labels=None):
    graph = Graph.from_edges(list(pairwise(range(num_nodes))))
    return replace(graph, labels=labels)


def write(folder, **columns):
    path = folder / "t.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def test_rows_are_nodes_where_nobody_is_named(tmp_path):
    table = write(tmp_path, answer=["yes", "no", "no", "yes"])
    found = read_node_values(YES_NO, table, "answer", graph=path_of(4))
    assert found == {0: 0, 1: 1, 2: 1, 3: 0}
    with pytest.raises(DataError, match="4 rows and the graph 5 nodes"):
        read_node_values(YES_NO, table, "answer", graph=path_of(5))


def test_rows_are_found_by_name(tmp_path):
    table = write(tmp_path, id=["c", "a"], answer=["yes", "no"])
    names = ("a", "b", "c")
    found = read_node_values(YES_NO, table, "answer", graph=path_of(3, names), id_column="id")
    assert found == {2: 0, 0: 1}
    with pytest.raises(DataError, match="'c' in column 'id', who is no node"):
        read_node_values(YES_NO, table, "answer", graph=path_of(2, ("a", "b")), id_column="id")


def test_tables_of_nodes_are_read_as_all_tables(tmp_path):
    table, options = tmp_path / "t.csv", {"graph": path_of(2, ("a", "b")), "header": False}
    table.write_text("a!1,5\nb!2,5\n")
    asked = [Mean(low=0, high=9), table, "column_2"]
    ways = options | {"id_column": "column_1", "csv_separator": "!"}
    found = read_node_values(*asked, **ways, decimal=",")
    assert found == {0: 1.5, 1: 2.5}
    with pytest.raises(DataError, match=r"row 2 of .* has no identifier"):
        read_node_values(*asked, **ways, decimal=",", missing_texts=["b"])


def test_numbers_name_nodes_of_a_graph_without_names(tmp_path):
    table = write(tmp_path, id=["2", "0"], answer=["yes", "no"])
    found = read_node_values(YES_NO, table, "answer", graph=path_of(3), id_column="id")
    assert list(found) == [2, 0]


def test_nobody_has_two_rows(tmp_path):
    table = write(tmp_path, id=["a", "a"], answer=["yes", "no"])
    with pytest.raises(DataError, match="hold one identifier"):
        read_node_values(YES_NO, table, "answer", graph=path_of(2, ("a", "b")), id_column="id")


def test_every_question_reads_its_columns(tmp_path):
    table = write(tmp_path, x=[0.5, 1.0], y=[0.0, 0.0], word=["a", "b"], set=["a;b", "b"])
    options = {"graph": path_of(2)}
    number = read_node_values(Mean(low=0, high=1), table, "x", **options)
    assert number == {0: 0.5, 1: 1.0}
    vector = read_node_values(VectorMean(names=("x", "y"), norm_bound=1.0), table, None, **options)
    assert {node: row.tolist() for node, row in vector.items()} == {0: [0.5, 0.0], 1: [1.0, 0.0]}
    sets = read_node_values(
        AnswerSets(domain=("a", "b", "c"), max_answers=2), table, "set", **options
    )
    assert [sorted(row) for row in sets.values()] == [[0, 1], [-1, 1]]
    with pytest.raises(ParameterError, match="column is missing"):
        read_node_values(YES_NO, table, None, **options)


def test_large_tables_come_in_blocks(tmp_path):
    size = (1 << 18) + 5
    table = tmp_path / "t.parquet"
    pl.DataFrame({"answer": ["no"] * (size - 1) + ["yes"], "word": ["a"] * size}).write_parquet(
        table
    )
    options = {"graph": path_of(size)}
    found = read_node_values(YES_NO, table, "answer", **options)
    assert (len(found), found[0], found[size - 1]) == (size, 1, 0)


@pytest.mark.parametrize(
    ("asked_for", "message"),
    [
        ({"rounds": 10**12}, r"rounds = 10{12} is not a whole number in \[1, 1048577\)"),
        (
            {"rounds": 5, "dummies": DummyLaw.from_text("poisson:1e6")},
            "2,000,000 a device",
        ),
    ],
)
def test_terms_that_cannot_be_are_refused_before_the_work(collection, asked_for, message):
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    with pytest.raises(ParameterError, match=message):
        prepare_terms(graph, collection.asked, collection.keys, **asked_for)


def test_one_user_s_value_as_text():
    assert value_of_one(YES_NO, 4, "no") == {4: 1}
    assert value_of_one(Mean(low=0, high=9), 0, "2.5") == {0: 2.5}
    with pytest.raises(DataError, match="outside the domain"):
        value_of_one(YES_NO, 4, "maybe")
    with pytest.raises(DataError, match="not a number"):
        value_of_one(Mean(low=0, high=9), 0, "two")
    with pytest.raises(ParameterError, match="no single text"):
        value_of_one(VectorMean(names=("x", "y"), norm_bound=1.0), 0, "2")


def test_where_a_relay_can_listen():
    with http_server.listen("127.0.0.1", 0) as first:
        url = http_server.url_of(first)
        assert url.startswith("http://127.0.0.1:")
        with pytest.raises(OutputError, match="in use"):
            http_server.listen("127.0.0.1", int(url.rpartition(":")[2]))
    with pytest.raises(ParameterError, match="has no IP address"):
        http_server.listen("somewhere", 0)
    with pytest.raises(OutputError, match="cannot listen"):
        http_server.listen("192.0.2.1", 0)
