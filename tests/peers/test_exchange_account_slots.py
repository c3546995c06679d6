"""Slots: never fewer than the exact law of the number of reports asks for."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, poisson

from peers.exercises import ring
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph
from shuffledp.network.walk import RandomWalk
from shuffledp.peers import exchange_account as module
from shuffledp.peers.exchange_account import mean_loads, messages_for, overload_probability

STAR = Graph.from_edges([(0, leaf) for leaf in range(1, 6)])
TADPOLE = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], num_users=5)


@given(
    mean=st.floats(min_value=1e-6, max_value=500.0),
    excess=st.integers(min_value=1, max_value=60),
)
def test_the_tail_is_above_that_of_a_poisson_count(mean, excess):
    least = int(np.ceil(mean)) + excess
    exact = poisson.logsf(least - 1, mean)
    assert module._log_tails(mean, least) >= exact - 1e-12 * abs(exact)


@given(
    chances=st.lists(st.fractions(min_value=0, max_value=1), min_size=1, max_size=7),
    least=st.integers(min_value=0, max_value=8),
)
def test_the_tail_is_above_that_of_any_sum_of_indicators(chances, least):
    exact = Fraction(0)
    for outcome in product((0, 1), repeat=len(chances)):
        if sum(outcome) >= least:
            term = Fraction(1)
            for happens, chance in zip(outcome, chances, strict=True):
                term *= chance if happens else 1 - chance
            exact += term
    bound = np.exp(module._log_tails(float(sum(chances)), least))
    assert bound >= float(exact) * (1 - 1e-12)


def test_nobody_to_hold_for():
    assert module._log_tails(0.0, 1) == -np.inf
    assert module._log_tails(0.0, 0) == 0.0


def exact_loads(graph, rounds, laziness, away, there):
    """The same loads by dense matrices, in fractions."""
    n = graph.num_users
    loads = [[Fraction(int(there[u])) for u in range(n)]]
    for r in range(rounds):
        new = [Fraction(0)] * n
        for u in range(n):
            row = graph.neighbours[graph.starts[u] : graph.starts[u + 1]].tolist()
            row = [v for v in row if there[v]]
            stays = Fraction(1) if away[r][u] or not row else Fraction(laziness)
            new[u] += loads[-1][u] * stays
            for v in row:
                new[v] += loads[-1][u] * (1 - stays) / len(row)
        loads.append(new)
    return np.array(loads, dtype=float)


@pytest.mark.parametrize("laziness", [0.0, 0.25])
@pytest.mark.parametrize("graph", [STAR, TADPOLE])
def test_loads_are_those_of_the_walk(graph, laziness):
    n = graph.num_users
    away = np.zeros((4, n), dtype=bool)
    away[1, 0] = away[2, 2] = True
    there = np.ones(n, dtype=bool)
    there[1] = False
    for absent, registered in ((np.zeros_like(away), np.ones(n, dtype=bool)), (away, there)):
        loads = mean_loads(walk_of(graph, absent, registered, laziness), 4)
        exact = exact_loads(graph, 4, laziness, absent, registered)[:, registered]
        assert loads == pytest.approx(exact, rel=3e-9)
        assert (loads >= exact).all()


def walk_of(graph, absences, registered, laziness=0.0):
    """The walk of the registered users."""
    nodes = np.flatnonzero(registered)
    away = list(absences[:, nodes])
    return RandomWalk(graph.subgraph(nodes), absences=away, laziness=laziness)


def overload(
    graph, rounds, slots, *, absences=None, registered=None, handed_in=None, per_neighbour=0
):
    everybody = np.ones(graph.num_users, dtype=bool)
    absences = np.zeros((rounds, graph.num_users), dtype=bool) if absences is None else absences
    registered = everybody if registered is None else registered
    handed_in = everybody if handed_in is None else handed_in
    walk = walk_of(graph, absences, registered)
    return overload_probability(
        walk,
        mean_loads(walk, rounds),
        np.array(slots)[registered],
        per_neighbour=per_neighbour,
        handed_in=handed_in[registered],
    )


def test_slots_meet_their_failure_and_one_fewer_does_not():
    for graph in (STAR, TADPOLE, ring(30)):
        room, _ = messages_for(graph, rounds=3, failure=1e-6)
        assert overload(graph, 3, room) <= 1e-6
        fewer = np.maximum(room - 1, 1)
        assert overload(graph, 3, fewer) > 1e-6


def test_a_regular_graph_needs_the_same_of_everybody():
    assert len(set(messages_for(ring(30), rounds=5)[0].tolist())) == 1


def test_slots_suffice_for_the_exact_law_of_a_star():
    # All five leaves' reports meet at the hub: the mean is 5, and so is the count.
    assert messages_for(STAR, rounds=1, failure=0.1)[0][0] >= 5


def test_slots_of_a_large_crowd_are_those_of_a_poisson_count():
    room = int(messages_for(ring(1000), rounds=10, failure=1e-9)[0][0])
    allowed = 1e-9 / 11_000
    assert poisson.sf(room, 1.0) <= allowed < poisson.sf(room - 2, 1.0)
    assert binom.sf(room, 1000, 1 / 1000) <= allowed


def test_per_neighbour_meets_its_failure_and_one_fewer_does_not():
    graph = ring(30)
    _, each = messages_for(graph, rounds=3, failure=2e-6, even_traffic=True)
    plenty = np.full(30, 60)
    assert overload(graph, 3, plenty, per_neighbour=each) <= 1e-6
    fewer = each - 1
    assert overload(graph, 3, plenty, per_neighbour=fewer) > 1e-6


def test_even_traffic_meets_its_failure_with_both_numbers():
    for failure in np.geomspace(1e-9, 1e-2, 30):
        room, each = messages_for(ring(30), rounds=3, failure=failure, even_traffic=True)
        assert overload(ring(30), 3, room, per_neighbour=each) <= failure


def test_absences_and_missing_users_raise_the_probability():
    room, _ = messages_for(TADPOLE, rounds=3, failure=1e-6)
    away = np.zeros((3, 5), dtype=bool)
    away[:, 3] = True
    usual = overload(TADPOLE, 3, room)
    assert overload(TADPOLE, 3, room, absences=away) > usual
    there = np.array([False, False, True, True, True])
    assert overload(TADPOLE, 3, room, registered=there) < usual


def test_who_leaves_for_good_overflows_in_vain():
    room, _ = messages_for(TADPOLE, rounds=3, failure=1e-6)
    for first in (0, 1, 2):
        away = np.zeros((3, 5), dtype=bool)
        away[first:, 3] = True
        others = np.arange(5) != 3
        gone = overload(TADPOLE, 3, room, absences=away, handed_in=others)
        # Who comes back may have drawn a batch in each round, which the relay refused.
        assert gone < 1e-6 < overload(TADPOLE, 3, room - 1, absences=away)


def drops(graph, rounds, slots, away, handed_in):
    """Return the chance that a report is dropped before its holder is last heard of, by listing."""
    n, held = graph.num_users, {tuple(range(graph.num_users)): (Fraction(1), Fraction(0))}
    heard = [
        [any(not late[u] for late in away[r:]) or handed_in[u] for u in range(n)]
        for r in range(rounds + 1)
    ]  # fmt: skip
    for r in range(rounds + 1):
        after = {}
        for places, (fine, dropped) in held.items():
            full = any(places.count(u) > slots and heard[r][u] for u in range(n))
            masses = (0, fine + dropped) if full else (fine, dropped)
            options = []
            for u in places:
                row = graph.neighbours[graph.starts[u] : graph.starts[u + 1]].tolist()
                options.append([u] if r == rounds or away[r][u] else row)
            share = Fraction(1, int(np.prod([len(each) for each in options])))
            for moved in product(*options):
                old = after.get(moved, (0, 0))
                after[moved] = tuple(a + b * share for a, b in zip(old, masses, strict=True))
        held = after
    return float(sum(dropped for _, dropped in held.values()))


@pytest.mark.parametrize("handed_in", [(1, 1, 1, 1), (1, 1, 1, 0), (0, 1, 1, 0)])
@pytest.mark.parametrize("absent", [[], [3], [0, 3]])
def test_no_fewer_overloads_than_there_are(absent, handed_in):
    kite = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])
    away = np.zeros((3, 4), dtype=bool)
    away[1:, absent] = True
    came = np.array(handed_in, dtype=bool)
    for room in (1, 2, 3):
        bound = overload(kite, 3, [room] * 4, absences=away, handed_in=came)
        assert drops(kite, 3, room, away, came) <= bound
    # Each round has its own tail.
    loads = mean_loads(walk_of(kite, away, np.ones(4, dtype=bool)), 3)
    tails = np.exp(module._log_tails(loads, 10.0))
    last = [max([r for r in range(3) if not away[r][u]], default=-1) for u in range(4)]
    wanted = sum(tails[: (4 if came[u] else last[u] + 1), u].sum() for u in range(4))
    found = overload(kite, 3, [9] * 4, absences=away, handed_in=came)
    assert wanted <= found <= wanted * (1.0 + 1e-8)


def test_graphs_without_edges():
    alone = Graph.from_edges(np.empty((0, 2), dtype=int), num_users=2)
    assert messages_for(alone, rounds=1)[0].tolist() == [12, 12]
    assert messages_for(alone, rounds=1, even_traffic=True)[1] >= 1
    assert overload(alone, 1, [40, 40], per_neighbour=1) < 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds = 0 is below 1"),
        ({"rounds": 1, "laziness": 1.0}, "laziness = 1.0 is not in"),
        ({"rounds": 1, "laziness": float("nan")}, "laziness = nan is not finite"),
    ],
)
def test_parameters_out_of_range(options, message):
    with pytest.raises(ParameterError, match=message):
        messages_for(STAR, **options)
    with pytest.raises(ParameterError, match="failure = 0"):
        messages_for(STAR, rounds=1, failure=0)
