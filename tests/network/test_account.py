"""An account of an exchange: ours, the published theorem, and a trusted shuffler, side by side."""

import json

import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.network.account import account_network
from shuffledp.network.graphs.families import complete_graph, complete_with_pendant, star_graph
from shuffledp.network.graphs.graph import Graph

ANY = LocalProfile(epsilon0=1.0)

#: A complete graph of five and a triangle, apart from each other.
TWO_PIECES = Graph.from_edges(
    [(i, j) for i in range(5) for j in range(i)] + [(5, 6), (6, 7), (5, 7)]
)


def test_all_numbers_are_there_and_in_order():
    found = account_network(complete_graph(500), ANY, rounds="auto", delta=1e-6)
    assert found.rounds <= 3
    assert found.uniform_epsilon.upper <= found.epsilon.upper <= 1.01 * found.uniform_epsilon.upper
    assert found.epsilon.upper < found.published_epsilon
    assert found.spectral_gap == pytest.approx(1 - 1 / 499, abs=0.02)
    assert found.irregularity == pytest.approx(1.0)
    assert found.is_regular
    assert not found.is_bipartite
    record = json.loads(json.dumps(found.to_json_dict()))
    assert set(record) >= {
        "num_users", "rounds", "epsilon", "uniform_epsilon", "paper_epsilon", "spectral_gap",
        "gamma",
    }  # fmt: skip
    assert record["epsilon"]["lower"] <= record["epsilon"]["upper"]


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


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_published_theorems_are_looser(protocol):
    found = account_network(
        complete_graph(2000), ANY, rounds=6, delta=1e-6, protocol=protocol, with_lower=False
    )
    assert found.epsilon.upper < found.published_epsilon
    assert "Liew" in found.published_source


def test_published_theorems_say_nothing_outside_their_hypotheses():
    law = LocalProfile(epsilon0=150.0)
    assert account_network(complete_graph(5), law, rounds=3, delta=1e-3).published_epsilon is None
    assert account_network(complete_graph(5), ANY, rounds=3, delta=0.0).published_epsilon is None
    approximate = LocalProfile(epsilon0=1.0, delta0=1e-9)
    found = account_network(complete_graph(5), approximate, rounds=3, delta=1e-3)
    assert found.published_epsilon is None


def test_pieces_exchange_on_their_own():
    with pytest.raises(ParameterError, match="2 components"):
        account_network(TWO_PIECES, ANY, rounds=30, delta=1e-3)
    largest = account_network(TWO_PIECES, ANY, rounds=30, delta=1e-3, components="largest")
    each = account_network(TWO_PIECES, ANY, rounds=30, delta=1e-3, components="each")
    assert (largest.num_users, each.num_users) == (5, 3)
    assert (largest.num_components, each.num_components) == (2, 2)
    assert each.epsilon.upper >= largest.epsilon.upper
    auto = account_network(TWO_PIECES, ANY, rounds="auto", delta=0.3, components="each")
    assert auto.rounds >= 1


def test_a_randomizer_that_is_named_has_less():
    law = LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2)
    ask = {"rounds": 5, "delta": 1e-6, "with_lower": False}
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
        ({"num_dishonest": 9}, "num_dishonest = 9"),
        ({"num_dishonest": -1}, "num_dishonest = -1"),
    ):
        with pytest.raises(ParameterError, match=message):
            account_network(graph, ANY, **{"rounds": 3, "delta": 1e-3, **arguments})
    with pytest.raises(ParameterError, match="bipartite"):
        account_network(star_graph(5), ANY, rounds=3, delta=1e-3)
