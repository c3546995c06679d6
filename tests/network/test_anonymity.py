"""Who hides the worst-off user, on any walk and by any bounds on positions."""

from dataclasses import replace

import numpy as np
import pytest

from graph_families import complete_graph
from network.walks import ANY, DELTA, PENDANT, position_distribution
from shuffledp.core.dummies import DummyLaw
from shuffledp.network import anonymity
from shuffledp.network.anonymity import Hiding
from shuffledp.network.graph import Graph
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.walk import RandomWalk
from shuffledp.network.walk_accountant import NetworkMixing


def test_hiding_of_no_bounds_but_low_and_high():
    bounds = NetworkMixing(PENDANT).position_bounds(5)
    hiding = Hiding.of(bounds)
    assert hiding.overlaps.size == 3
    assert 0.0 <= hiding.separation <= 1.0


def test_a_walk_with_absences_has_its_hiding():
    graph = complete_graph(3)
    walk = RandomWalk(graph, absences=[[True, False, False], *[[False] * 3] * 3])
    laws = position_distribution(walk, np.arange(3), 4)
    hiding = Hiding.of(*exact_position_bounds(walk, (4,)))
    for victim in range(3):
        others = np.sort([(laws[i] / laws[victim]).min() for i in range(3) if i != victim])
        assert (hiding.overlaps <= np.minimum(others, 1.0) + 1e-12).all()
    assert hiding.epsilon(ANY, delta=DELTA).upper < 1.0


def test_a_target_is_met_just_where_epsilon_reaches_it():
    hiding = NetworkMixing(PENDANT).hiding(5)
    reached = hiding.epsilon(ANY, delta=DELTA).upper
    assert hiding.meets(ANY, epsilon=reached * (1 + 1e-6), delta=DELTA)
    assert not hiding.meets(ANY, epsilon=reached * (1 - 1e-3), delta=DELTA)


@pytest.mark.slow
def test_dummies_never_raise_epsilon(monkeypatch):
    """Not even where thinning with them is as good as weighing, but for half a percent."""
    ring = [(i, (i + step) % 10) for i in range(10) for step in (1, 2)]
    hiding = NetworkMixing(Graph.from_edges([*ring, (0, 5)])).hiding(4)
    plain = hiding.epsilon(ANY, delta=0.02)
    assert plain.method == "network-walk/weighted"

    def thinned(*args, dummies=None, **asked):
        found = anonymity_epsilon(*args, **asked)
        return found if dummies is None else replace(found, lower=None, upper=1.003 * plain.upper)

    anonymity_epsilon = anonymity.network_walk_epsilon
    monkeypatch.setattr(anonymity, "network_walk_epsilon", thinned)
    few = {"delta": 0.02, "dummies": DummyLaw.from_text("poisson:0.01")}
    found = hiding.epsilon(ANY, **few)
    assert (found.upper, found.lower) == (plain.upper, None)
    assert hiding.epsilon_of_share(ANY, 0.5, **few) == hiding.epsilon_of_share(ANY, 0.5, delta=0.02)
