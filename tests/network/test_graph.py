"""Graphs: rows against plain Python and networkx, components, sides, and what is refused."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_families import adjacency, cycle_graph, star_graph
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph

DATA = Path(__file__).parents[3] / "shared" / "data"


@st.composite
def edge_lists(draw):
    """Return a number of users, and edges with loops and repeats among them."""
    num_users = draw(st.integers(1, 12))
    user = st.integers(0, num_users - 1)
    return num_users, draw(st.lists(st.tuples(user, user), max_size=30))


def graph_of(num_users, edges):
    return Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2), num_users=num_users)


def rows_of(graph):
    return [graph.neighbours_of(user).tolist() for user in range(graph.num_users)]


def random_edges(seed, num_users, num_edges):
    return Entropy.from_seed(seed).generator().integers(0, num_users, size=(num_edges, 2))


# ---------------------------------------------------------------- edges


@given(edge_lists())
def test_rows_are_those_of_the_definition(given_edges):
    num_users, edges = given_edges
    graph = graph_of(num_users, edges)
    proper = [edge for edge in edges if edge[0] != edge[1]]
    distinct = {frozenset(edge) for edge in proper}
    assert rows_of(graph) == [
        [other for other in range(num_users) if {user, other} in distinct]
        for user in range(num_users)
    ]
    assert graph.num_users == num_users
    assert graph.num_edges == len(distinct)
    assert graph.num_self_loops == len(edges) - len(proper)
    assert graph.num_duplicates == len(proper) - len(distinct)
    assert graph.degrees.tolist() == [len(row) for row in rows_of(graph)]
    assert graph.num_isolated == rows_of(graph).count([])
    assert graph.starts.dtype == np.int64
    assert graph.neighbours.dtype == np.int32
    assert not graph.starts.flags.writeable
    assert not graph.neighbours.flags.writeable


@given(edge_lists())
def test_law_and_irregularity_are_exact(given_edges):
    graph = graph_of(*given_edges)
    degrees = [len(row) for row in rows_of(graph)]
    total = sum(degrees)
    law = [Fraction(d, total) if total else Fraction(1, len(degrees)) for d in degrees]
    assert graph.stationary_law().tolist() == [float(share) for share in law]
    assert graph.irregularity == float(len(law) * sum(share**2 for share in law))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_edges_of_any_integer_type_and_layout(dtype, order):
    edges = np.array([[3, 1], [0, 3], [1, 3]], dtype=dtype, order=order)
    edges.flags.writeable = False
    graph = Graph.from_edges(edges)
    assert rows_of(graph) == [[3], [3], [], [0, 1]]
    assert graph.num_duplicates == 1


def test_fewest_users_and_no_edges():
    for edges in ([], np.empty((0, 2)), [(0, 0)]):
        graph = Graph.from_edges(edges, num_users=1)
        assert (graph.num_users, graph.num_edges, graph.num_isolated) == (1, 0, 1)
        assert graph.stationary_law().tolist() == [1.0]
        assert graph.irregularity == 1.0
        assert graph.components().tolist() == [0]
        assert not graph.is_bipartite()
        assert graph.largest_component()[0] is graph
        assert adjacency(graph).toarray().tolist() == [[0.0]]
    assert Graph.from_edges([], num_users=3).num_components == 3


def test_labels_are_kept():
    graph = Graph.from_edges([(0, 1)], labels=["anna", "bob"])
    assert graph.labels == ("anna", "bob")
    assert repr(graph) == "Graph(num_users=2, num_edges=1)"


@pytest.mark.parametrize(
    ("edges", "num_users", "message"),
    [
        ([], None, "there are no edges, so num_users cannot be told"),
        ([], 0, "num_users = 0 is below 1"),
        ([(0, 1)], 0, "num_users = 0 is below 1"),
        ([(0, 1)], 2.5, "num_users = 2.5 is not a whole number"),
        ([(0, 1)], 2**31, r"num_users = 2,147,483,648 is above 2,147,483,647"),
        ([(0, 2**31 - 1)], None, r"num_users = 2,147,483,648 is above 2,147,483,647"),
        ([(0, -1)], None, r"edges\[0, 1\] = -1 is not in \[0, num_users = 1\)"),
        ([(-3, -1)], None, r"edges\[0, 0\] = -3 is not in \[0, num_users = 1\)"),
        ([(0, 1), (2, 1)], 2, r"edges\[1, 0\] = 2 is not in \[0, num_users = 2\)"),
        ([(0.0, 1.0)], None, "shape .1, 2. and dtype float64: give integers"),
        ([(float("nan"), 1)], None, "dtype float64"),
        ([("0", "1")], None, "give integers"),
        ([(True, False)], None, "dtype bool"),
        ([0, 1], None, r"shape \(2,\)"),
        ([(0, 1, 2)], None, r"shape \(1, 3\)"),
        ([(0, 1), (2,)], None, "not all pairs"),
    ],
)
def test_edges_that_are_refused(edges, num_users, message):
    with pytest.raises(ParameterError, match=message) as error:
        Graph.from_edges(edges, num_users=num_users)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["anna"], "labels has 1 entries for 2 users"),
        (["anna", "anna"], "labels holds a name twice"),
        ([0, 1], "labels are not all text"),
    ],
)
def test_labels_that_are_refused(labels, message):
    with pytest.raises(ParameterError, match=message):
        Graph.from_edges([(0, 1)], labels=labels)


# ---------------------------------------------------------------- rows given


# ---------------------------------------------------------------- other libraries


# ---------------------------------------------------------------- components and sides


@pytest.mark.parametrize("num_edges", [5, 30, 100, 300])
@pytest.mark.parametrize("seed", [1, 2])
def test_components_and_sides_are_those_of_networkx(seed, num_edges):
    networkx = pytest.importorskip("networkx")
    graph = graph_of(60, random_edges(seed, 60, num_edges))
    other = networkx.from_scipy_sparse_array(adjacency(graph))
    expected = sorted(networkx.connected_components(other), key=lambda c: (-len(c), min(c)))
    components = graph.components()
    assert components.dtype == np.int32
    found = [set(np.flatnonzero(components == i).tolist()) for i in range(graph.num_components)]
    assert found == expected
    parts = [other.subgraph(users) for users in expected if len(users) > 1]
    assert graph.is_bipartite() == any(networkx.is_bipartite(part) for part in parts)
    largest, kept = graph.largest_component()
    assert kept.dtype == np.int64
    assert kept.tolist() == sorted(expected[0])
    assert largest.num_edges == parts[0].number_of_edges()
    assert largest.is_bipartite() == networkx.is_bipartite(parts[0])
    assert [other.degree(user) for user in kept.tolist()] == largest.degrees.tolist()


@pytest.mark.parametrize("length", [3, 4, 5, 6, 1000, 1001])
def test_cycles_have_sides_if_even(length):
    assert cycle_graph(length).is_bipartite() == (length % 2 == 0)


def test_any_component_with_sides_counts_but_no_lonely_user():
    triangle = [(0, 1), (1, 2), (2, 0)]
    assert not graph_of(4, triangle).is_bipartite()
    assert graph_of(5, [*triangle, (3, 4)]).is_bipartite()
    assert not graph_of(6, [*triangle, (3, 4), (4, 5), (5, 3)]).is_bipartite()


def test_equal_components_are_in_the_order_of_their_first_users():
    graph = graph_of(7, [(5, 6), (1, 3), (2, 4)])
    assert graph.components().tolist() == [3, 0, 1, 0, 1, 2, 2]
    largest, kept = graph.largest_component()
    assert kept.tolist() == [1, 3]
    assert largest.num_users == 2


# ---------------------------------------------------------------- parts


@given(edge_lists(), st.data())
def test_subgraphs_are_those_of_the_definition(given_edges, data):
    graph = graph_of(*given_edges)
    order = data.draw(st.permutations(range(graph.num_users)))
    users = order[: data.draw(st.integers(1, graph.num_users))]
    part = graph.subgraph(users)
    assert rows_of(part) == [
        [i for i, other in enumerate(users) if other in graph.neighbours_of(user)] for user in users
    ]
    assert (part.num_self_loops, part.num_duplicates, part.labels) == (0, 0, None)


def test_subgraphs_keep_labels():
    graph = Graph.from_edges([(0, 2), (1, 3), (3, 4)], labels=list("abcde"))
    assert graph.subgraph(np.array([3, 0])).labels == ("d", "a")
    largest, kept = graph.largest_component()
    assert largest.labels == ("b", "d", "e")
    assert kept.tolist() == [1, 3, 4]


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ([], "users is empty"),
        ([0, 0], "holds a user twice"),
        ([3], r"users = 3 is not in \[0, 3\)"),
        ([-1], r"users = -1 is not in"),
        ([0.0], "users has shape"),
        ([[0]], r"users has shape \(1, 1\)"),
    ],
)
def test_subgraphs_that_are_refused(users, message):
    with pytest.raises(ParameterError, match=message):
        star_graph(3).subgraph(users)


# ---------------------------------------------------------------- real graphs


@pytest.mark.skipif(not DATA.exists(), reason="the real graphs are not on this machine")
@pytest.mark.parametrize(
    ("name", "num_users", "num_edges", "irregularity", "at_smaller_end"),
    [
        ("facebook_lcc_edges.csv", 22_470, 170_823, 4.0181, 5.0148),
        ("twitch_de_lcc_edges.csv", 9_498, 153_138, 7.9152, 7.5840),
        ("deezer_europe_lcc_edges.csv", 28_281, 92_752, 2.4675, 3.5633),
        ("enron_lcc_edges.csv", 33_696, 180_811, 13.2655, 36.8664),
    ],
)
def test_real_graphs(name, num_users, num_edges, irregularity, at_smaller_end):
    edges = np.loadtxt(DATA / name, np.int64, delimiter=",", skiprows=1)
    # Table 4 of arXiv:2204.03919 prints 5.0064 and then the last three of these.
    counted_once = np.bincount(edges.min(axis=1))
    misprint = num_users * np.sum((counted_once / num_edges) ** 2)
    assert misprint == pytest.approx(at_smaller_end, abs=6e-5)
    graph = Graph.from_edges(edges)
    assert (graph.num_users, graph.num_edges) == (num_users, num_edges)
    assert (graph.num_self_loops, graph.num_duplicates) == (0, 0)
    assert graph.irregularity == pytest.approx(irregularity, abs=6e-5)
    law = graph.stationary_law()
    assert num_users * (law @ law) == pytest.approx(graph.irregularity, rel=1e-12)
    assert graph.num_components == 1
    assert not graph.is_bipartite()
