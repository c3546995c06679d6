"""Families of graphs: closed forms, and random regular graphs against all there are."""

import math
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import random_regular_graph

#: Of all statistical tests of this module together.
FALSE_POSITIVE_RATE = 1e-9
NUM_STATISTICAL_TESTS = 3


def edges_of(graph):
    """Return the edges as a frozen set of ordered pairs."""
    return frozenset(
        (user, int(other))
        for user in range(graph.num_users)
        for other in graph.neighbours_of(user)
        if user < other
    )


# ---------------------------------------------------------------- fixed graphs


# ---------------------------------------------------------------- random regular graphs


@given(st.data())
def test_every_user_has_as_many_neighbours_as_asked(data):
    num_users = data.draw(st.integers(1, 30))
    degree = data.draw(st.integers(0, (num_users - 1) // 2))
    seed = data.draw(st.integers(0, 100))
    if num_users * degree % 2:
        degree -= 1
    graph = random_regular_graph(num_users, degree, Entropy.from_seed(seed))
    assert graph.degrees.tolist() == [degree] * num_users


@pytest.mark.parametrize(("num_users", "degree"), [(2_000, 10), (301, 100), (300, 121)])
def test_graphs_that_need_many_switches(num_users, degree):
    entropy = Entropy.from_seed(3)
    graph = random_regular_graph(num_users, degree, entropy)
    assert (graph.degrees == degree).all()
    again = random_regular_graph(num_users, degree, entropy)
    assert (graph.neighbours != again.neighbours).any()


def test_the_same_seed_gives_the_same_graph():
    first, second = (random_regular_graph(50, 4, Entropy.from_seed(7)) for _ in range(2))
    assert (first.neighbours == second.neighbours).all()


def all_regular_graphs(num_users, degree):
    """Return the edge sets of all regular graphs on labelled users."""
    found = []
    pairs = list(combinations(range(num_users), 2))
    for edges in combinations(pairs, num_users * degree // 2):
        counts = Counter(user for edge in edges for user in edge)
        if len(counts) == num_users and set(counts.values()) == {degree}:
            found.append(frozenset(edges))
    return found


def are_plausible(counts, num_draws, probability):
    """Return whether no count of a cell is too far from its mean, by Chernoff's bound."""
    limit = math.log(2 * len(counts) * NUM_STATISTICAL_TESTS / FALSE_POSITIVE_RATE)
    return all(num_draws * divergence(k / num_draws, probability) <= limit for k in counts)


def divergence(p, q):
    """Return the relative entropy of two coins."""
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


@pytest.mark.parametrize(("num_users", "degree", "count"), [(6, 1, 15), (4, 1, 3)])
def test_graphs_without_switches_are_exactly_uniform(num_users, degree, count):
    graphs = all_regular_graphs(num_users, degree)
    assert len(graphs) == count
    num_draws = 1_500
    entropy = Entropy.from_seed(11)
    drawn = Counter(
        edges_of(random_regular_graph(num_users, degree, entropy)) for _ in range(num_draws)
    )
    assert set(drawn) <= set(graphs)
    assert are_plausible([drawn[g] for g in graphs], num_draws, 1 / count)
    # A planted law, in which one graph is twice as likely.
    assert not are_plausible([2 * num_draws // count], num_draws, 1 / count)


def test_graphs_with_switches_are_all_drawn_and_edges_are_exactly_alike():
    # 70 graphs: 60 cycles through all six users and 10 pairs of triangles. As renumbering does not
    # change the law, each edge is in two fifths of the draws, whatever the switches.
    graphs = all_regular_graphs(6, 2)
    assert len(graphs) == 70
    num_draws = 3_000
    entropy = Entropy.from_seed(12)
    drawn = Counter(edges_of(random_regular_graph(6, 2, entropy)) for _ in range(num_draws))
    assert set(drawn) == set(graphs)
    per_edge = [
        sum(times for graph, times in drawn.items() if edge in graph)
        for edge in combinations(range(6), 2)
    ]
    assert are_plausible(per_edge, num_draws, 2 / 5)
    assert not are_plausible([3 * num_draws // 10], num_draws, 2 / 5)


@pytest.mark.parametrize(
    ("num_users", "degree", "message"),
    [
        (0, 0, "num_users = 0 is below 1"),
        (5, -1, "degree = -1 is below 0"),
        (5, 5, "degree = 5 is not below half of num_users = 5"),
        (4, 2, "degree = 2 is not below half of num_users = 4"),
        (1, 1, "degree = 1 is not below half of num_users = 1"),
        (7, 3, r"num_users \* degree = 7 \* 3 is odd"),
        (5, 2.0, "degree = 2.0 is not a whole number"),
    ],
)
def test_degrees_that_are_refused(num_users, degree, message):
    with pytest.raises(ParameterError, match=message):
        random_regular_graph(num_users, degree, Entropy.from_seed(0))
