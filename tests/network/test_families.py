"""Families of graphs: closed forms, and random regular graphs against all there are."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network import families, graph_kernels
from shuffledp.network.families import (
    complete_graph,
    complete_with_pendant,
    cycle_graph,
    random_regular_graph,
    star_graph,
)

#: Of all statistical tests of this module together.
FALSE_POSITIVE_RATE = 1e-9
NUM_STATISTICAL_TESTS = 4


def edges_of(graph):
    """Return the edges as a frozen set of ordered pairs."""
    return frozenset(
        (user, int(other))
        for user in range(graph.num_users)
        for other in graph.neighbours_of(user)
        if user < other
    )


# ---------------------------------------------------------------- fixed graphs


@given(st.integers(1, 40))
def test_complete_graphs(num_users):
    graph = complete_graph(num_users)
    assert edges_of(graph) == frozenset(combinations(range(num_users), 2))


@given(st.integers(3, 40))
def test_cycles_and_stars_and_pendants(num_users):
    around = {tuple(sorted((user, (user + 1) % num_users))) for user in range(num_users)}
    assert edges_of(cycle_graph(num_users)) == around
    assert edges_of(star_graph(num_users)) == {(0, user) for user in range(1, num_users)}
    complete = set(combinations(range(num_users - 1), 2))
    graph = complete_with_pendant(num_users)
    assert edges_of(graph) == complete | {(0, num_users - 1)}
    assert graph.neighbours_of(num_users - 1).tolist() == [0]


@pytest.mark.parametrize(
    ("make", "least"),
    [(complete_graph, 1), (cycle_graph, 3), (star_graph, 2), (complete_with_pendant, 3)],
)
def test_numbers_of_users_that_are_refused(make, least):
    assert make(least).num_users == least
    with pytest.raises(ParameterError, match=f"num_users = {least - 1} is below {least}"):
        make(least - 1)
    with pytest.raises(ParameterError, match="num_users = nan is not a whole number"):
        make(math.nan)
    with pytest.raises(ParameterError, match="num_users = 2,147,483,648 is above"):
        make(2**31)
    with pytest.raises(ParameterError, match=r"edges, above the limit of 1,073,741,823"):
        make(2**31 - 1)


def test_the_most_users_of_complete_graphs(monkeypatch):
    assert 46_341 * 46_340 <= families.MOST_ENTRIES < 46_342 * 46_341
    monkeypatch.setattr(families, "MOST_ENTRIES", 20)
    assert complete_graph(5).num_edges == 10
    with pytest.raises(ParameterError, match="would have 15 edges, above the limit of 10"):
        complete_graph(6)


# ---------------------------------------------------------------- random regular graphs


@given(st.data())
def test_every_user_has_as_many_neighbours_as_asked(data):
    num_users = data.draw(st.integers(1, 30))
    degree = data.draw(st.integers(0, num_users - 1))
    seed = data.draw(st.integers(0, 100))
    if num_users * degree % 2:
        degree -= 1
    graph = random_regular_graph(num_users, degree, Entropy.from_seed(seed))
    assert graph.degrees.tolist() == [degree] * num_users


@pytest.mark.parametrize(("num_users", "degree"), [(2_000, 10), (301, 150), (300, 151), (300, 297)])
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


@pytest.mark.parametrize(("num_users", "degree", "count"), [(6, 1, 15), (6, 4, 15), (4, 2, 3)])
def test_graphs_without_switches_are_exactly_uniform(num_users, degree, count):
    # Degree 1 needs no switches; the others are complements of it.
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
        (2**31, 2, "num_users = 2,147,483,648 is above 2,147,483,647"),
        (5, -1, "degree = -1 is below 0"),
        (5, 5, r"degree = 5 is not in \[0, 4\]"),
        (1, 1, r"degree = 1 is not in \[0, 0\]"),
        (5, 3, r"num_users \* degree = 5 \* 3 is odd"),
        (5, 2.0, "degree = 2.0 is not a whole number"),
        (2**30, 2, "would have 1,073,741,824 edges, above the limit"),
    ],
)
def test_degrees_that_are_refused(num_users, degree, message):
    with pytest.raises(ParameterError, match=message):
        random_regular_graph(num_users, degree, Entropy.from_seed(0))


# ---------------------------------------------------------------- switches


def half_edges(pairs, size):
    """Return the partners of half-edges that are paired so."""
    partner = np.full(size, -1, dtype=np.int32)
    for first, second in pairs:
        partner[first], partner[second] = second, first
    return partner


def multigraph(partner, degree):
    """Return how often each pair of users is joined, loops included."""
    pairs = [(h // degree, int(p) // degree) for h, p in enumerate(partner) if h < p]
    return Counter(tuple(sorted(pair)) for pair in pairs)


@given(num_users=st.integers(1, 8), degree=st.integers(1, 4), seed=st.integers(0, 1000))
def test_bad_half_edges_are_those_of_loops_and_repeats(num_users, degree, seed):
    if num_users * degree % 2:
        num_users += 1
    order = Entropy.from_seed(seed).generator().permutation(num_users * degree)
    partner = half_edges(order.reshape(-1, 2), order.size)
    found = set(graph_kernels.bad_half_edges(partner, degree).tolist())
    bad = set()
    for user in range(num_users):
        seen = {user}
        for h in range(user * degree, (user + 1) * degree):
            other = int(partner[h]) // degree
            if other in seen:
                bad.add(h)
            seen.add(other)
    assert found == bad
    is_simple = all(u != v and times == 1 for (u, v), times in multigraph(partner, degree).items())
    assert (not found) == is_simple


def repaired(partner, degree, half_words, most_trials=100):
    """Run the repair with these draws; return its progress."""
    bad = graph_kernels.bad_half_edges(partner, degree)
    progress = np.zeros(2, dtype=np.int64)
    words = np.array(half_words, dtype=np.uint32)
    graph_kernels.repair(partner, degree, bad, progress, words, most_trials)
    return progress.tolist(), bad.size


def draw_of(chosen, size):
    """Return a half word that is accepted and chooses this half-edge."""
    return -(-((chosen * 2 + 1) * 2**31) // size)


def test_a_loop_is_switched_with_the_edge_chosen():
    # User 0 has the loop (0, 1); users 1 to 4 are joined in a cycle by half-edges 2 to 9.
    pairs = [(0, 1), (3, 4), (5, 6), (7, 8), (9, 2)]
    partner = half_edges(pairs, 10)
    progress, _ = repaired(partner, 2, [draw_of(5, 10)])
    assert progress == [1, 0]
    assert multigraph(partner, 2) == Counter([(1, 2), (0, 2), (0, 3), (3, 4), (1, 4)])


def test_switches_that_make_bad_edges_are_not_done():
    pairs = [(0, 1), (3, 4), (5, 6), (7, 8), (9, 2)]
    partner = half_edges(pairs, 10)
    before = partner.copy()
    progress, _ = repaired(partner, 2, [draw_of(0, 10), draw_of(1, 10)])
    assert progress == [0, 2]
    assert (partner == before).all()
    # Refused draws leave no trace: of 10 values, 2^32 mod 10 = 6 half words are refused.
    assert repaired(partner, 2, [0])[0] == [0, 0]


def test_two_loops_are_not_made_a_double_edge_and_it_is_noticed():
    partner = half_edges([(0, 1), (2, 3)], 4)
    progress, _ = repaired(partner, 2, [draw_of(2, 4)] * 10, most_trials=5)
    assert progress == [graph_kernels.STUCK, 5]
    assert multigraph(partner, 2) == Counter([(0, 0), (1, 1)])


def test_a_pairing_that_cannot_be_repaired_is_drawn_anew(monkeypatch):
    # Five users with a loop each: any switch of two of them makes a double edge.
    loops = half_edges([(2 * user, 2 * user + 1) for user in range(5)], 10)
    pairings = [loops, loops.copy()]
    draw = families._pairing

    def pairing(num_half_edges, entropy):
        return pairings.pop() if pairings else draw(num_half_edges, entropy)

    monkeypatch.setattr(families, "_pairing", pairing)
    graph = random_regular_graph(5, 2, Entropy.from_seed(5))
    assert pairings == []
    assert graph.degrees.tolist() == [2] * 5
