"""An account of an exchange: ours, the published theorem, and a trusted shuffler, side by side."""

import json

import networkx as nx
import pytest

from graph_families import (
    complete_graph,
    complete_with_pendant,
    cycle_graph,
    random_regular_graph,
    star_graph,
)
from shuffledp.amplification.registry import account_epsilon
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.network import mixing
from shuffledp.network.account import account_network
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import NetworkMixing

ANY = LocalProfile(epsilon0=1.0)

#: A complete graph of five and a triangle, apart from each other.
TWO_PIECES = Graph.from_edges(
    [(i, j) for i in range(5) for j in range(i)] + [(5, 6), (6, 7), (5, 7)]
)


def test_all_numbers_are_there_and_in_order():
    found = account_network(complete_graph(500), ANY, rounds="auto", delta=1e-6)
    assert found.rounds <= 3
    assert found.uniform_epsilon.upper <= found.epsilon.upper <= 1.01 * found.uniform_epsilon.upper
    assert found.spectral_gap == pytest.approx(1 - 1 / 499, abs=0.02)
    assert found.irregularity == pytest.approx(1.0)
    record = json.loads(json.dumps(found.to_json_dict()))
    assert set(record) >= {
        "num_users", "rounds", "epsilon", "uniform_epsilon", "spectral_gap", "gamma",
    }  # fmt: skip
    assert record["epsilon"]["lower"] <= record["epsilon"]["upper"]


FEW_HUBS = nx.barabasi_albert_graph(300, 3, seed=1)
SMALL_WORLD = nx.watts_strogatz_graph(500, 6, 0.1, seed=1)


@pytest.mark.parametrize(
    ("made", "within"),
    [
        (FEW_HUBS, 0.01),
        (SMALL_WORLD, 0.1),
        pytest.param(FEW_HUBS, 0.1, marks=pytest.mark.slow),
        pytest.param(SMALL_WORLD, 0.01, marks=pytest.mark.slow),
    ],
)
def test_the_epsilon_of_chosen_rounds_is_as_near_as_promised(made, within):
    graph = Graph.from_edges(list(made.edges))
    found = account_network(graph, ANY, rounds="auto", delta=1e-5, within=within)
    # Every digit counts: it is the target itself that was proved.
    assert found.epsilon.upper <= (1.0 + within) * found.uniform_epsilon.upper
    fewer = account_network(graph, ANY, rounds=found.rounds - 1, delta=1e-5)
    assert fewer.epsilon.upper > (1.0 + within) * fewer.uniform_epsilon.upper


def test_what_was_proved_of_one_law_is_said_of_no_other():
    mixing = NetworkMixing(complete_graph(500))
    family = RandomizerFamily.K_RANDOMIZED_RESPONSE
    narrow, wide = LocalProfile(epsilon0=1.0, family=family, domain_size=9), ANY
    terms = {"delta": 1e-6}
    rounds = mixing.fewest_rounds(narrow, within=0.5, **terms)
    before = NetworkMixing(complete_graph(500)).epsilon(wide, rounds=rounds, **terms)
    assert mixing.epsilon(wide, rounds=rounds, **terms) == before
    for changed in ({"delta": 1e-7}, {"delta": 1e-6, "num_dishonest": 9}):
        fresh = NetworkMixing(complete_graph(500)).epsilon(narrow, rounds=rounds, **changed)
        assert mixing.epsilon(narrow, rounds=rounds, **changed) == fresh


def test_the_worst_user_has_a_name():
    pendant = complete_with_pendant(20)
    named = Graph.from_edges(
        [(i, int(j)) for i in range(pendant.num_users) for j in pendant.neighbours_of(i) if i < j],
        labels=[f"user {i}" for i in range(pendant.num_users)],
    )
    found = account_network(named, ANY, rounds=2, delta=1e-3)
    assert found.worst_user == f"user {pendant.degrees.argmin()}"
    plain = account_network(pendant, ANY, rounds=2, delta=1e-3)
    assert plain.worst_user == str(pendant.degrees.argmin())


def test_without_rounds_it_is_the_local_epsilon():
    found = account_network(complete_graph(5), ANY, rounds=0, delta=1e-3)
    assert found.epsilon.upper == pytest.approx(1.0, rel=2e-3)  # what delta buys of one report
    assert found.separation == 1.0


def test_of_several_pieces_the_largest_is_taken_if_asked_for():
    with pytest.raises(ParameterError, match="2 components"):
        account_network(TWO_PIECES, ANY, rounds=30, delta=1e-3)
    largest = account_network(TWO_PIECES, ANY, rounds=30, delta=1e-3, components="largest")
    assert (largest.num_users, largest.num_components) == (5, 2)


def test_a_randomizer_that_is_named_has_less():
    law = LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2)
    ask = {"rounds": 5, "delta": 1e-6}
    named = account_network(complete_graph(300), law, **ask)
    assert named.epsilon.upper < account_network(complete_graph(300), ANY, **ask).epsilon.upper


def test_bad_arguments_are_refused():
    graph = complete_graph(5)
    for arguments, message in (
        ({"delta": 2.0}, "delta = 2"),
        ({"rounds": -1}, "rounds = -1"),
        ({"rounds": 1.5}, "rounds = 1.5"),
        ({"components": "some"}, "components = 'some'"),
        ({"protocol": "none"}, "protocol = 'none'"),
        ({"laziness": 1.0}, "laziness = 1"),
        ({"laziness": None}, "laziness = None"),
        ({"num_dishonest": 5}, "num_dishonest = 5 is above 4"),
        ({"num_dishonest": -1}, "num_dishonest = -1"),
    ):
        with pytest.raises(ParameterError, match=message):
            account_network(graph, ANY, **{"rounds": 3, "delta": 1e-3, **arguments})
    with pytest.raises(ParameterError, match="bipartite"):
        account_network(star_graph(5), ANY, rounds=3, delta=1e-3)


PROFILE = LocalProfile(epsilon0=1.0)
DELTA = 1e-4


def uniform(num_users):
    return account_epsilon(PROFILE, num_users=num_users, delta=DELTA, with_lower=False).upper


LOCAL = uniform(1)


def after(graph, rounds, **asked):
    """Return the accounts after several numbers of rounds, which share one pass."""
    return account_network(graph, PROFILE, rounds=rounds, delta=DELTA, **asked)


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_several_numbers_of_rounds_share_a_pass(protocol, monkeypatch):
    graph = random_regular_graph(200, 8, Entropy.from_seed(1))
    passes = []
    exact = mixing.exact_position_bounds
    monkeypatch.setattr(
        mixing,
        "exact_position_bounds",
        lambda walk, rounds, **how: passes.append(list(rounds)) or exact(walk, rounds, **how),
    )
    found = after(graph, (40, 0, 3, 3), protocol=protocol)
    assert passes == [[40, 0, 3]]
    table = found.to_dict()
    assert table["rounds"] == [40, 0, 3, 3]
    last, local, early, again = table["epsilon_upper"]
    assert (local, early) == (LOCAL, again)
    assert local >= early >= last
    assert table["uniform_epsilon"] == [uniform(200)] * 4
    if protocol == "all":
        assert uniform(200) <= last <= 1.01 * uniform(200)
    else:
        # About 63 % of the reports are handed in, which hides more than the smaller crowd loses.
        assert 0.5 * uniform(200) < last < uniform(200)
    alone = account_network(graph, PROFILE, rounds=3, delta=DELTA, protocol=protocol)
    assert found.rows[2] == alone
    assert found.to_json_dict()["accounts"][2] == alone.to_json_dict()


def test_spectral_bounds_are_no_smaller_than_exact_ones():
    graph = complete_with_pendant(40)
    exact, spectral = (
        after(graph, (1, 2, 4, 30), positions=method) for method in ("exact", "spectral")
    )
    assert {each.method for each in exact.rows} == {"exact"}
    assert {each.method for each in spectral.rows} == {"spectral"}
    # Epsilon may be smaller: where eigenvalues are used, two laws Q are tried.
    for rounds in (1, 2, 4, 30):
        known, bounded = (
            NetworkMixing(graph, positions=method).position_bounds(rounds)
            for method in ("exact", "spectral")
        )
        assert (known.low >= bounded.low * (1.0 - 1e-12)).all()
        assert (known.high <= bounded.high * (1.0 + 1e-12)).all()
    # The pendant's report is at its one neighbour after one round: nothing is hidden.
    assert exact.rows[0].epsilon.upper == LOCAL
    assert exact.rows[-1].epsilon.upper == pytest.approx(uniform(graph.num_users), rel=1e-3)


def test_lazy_walks_mix_where_others_do_not():
    even = cycle_graph(10)
    with pytest.raises(ParameterError, match="bipartite"):
        after(even, 400)
    found = after(even, 400, laziness=0.5)
    assert found.epsilon.upper == pytest.approx(uniform(10), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": ()}, "rounds is empty"),
        ({"rounds": (3, -1)}, "rounds = -1"),
        ({"delta": float("nan")}, "delta = nan"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = {"rounds": (1,), "delta": DELTA} | changes
    with pytest.raises(ParameterError, match=message):
        account_network(cycle_graph(5), PROFILE, **arguments)
