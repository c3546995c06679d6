"""Who hides the worst-off user, on any walk and by any bounds on positions."""

import numpy as np
import pytest

from graph_families import complete_graph
from network.walks import ANY, DELTA, PENDANT, wheel
from shuffledp.network.hiding import Hiding
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.positions import exact_position_bounds
from shuffledp.network.privacy import network_walk_epsilon
from shuffledp.network.walk import RandomWalk, position_distribution


def test_hiding_of_no_bounds_but_low_and_high():
    bounds = NetworkMixing(PENDANT).position_bounds(5)
    hiding = Hiding.of(bounds)
    assert hiding.overlaps.size == 3
    assert 0.0 <= hiding.separation <= 1.0


@pytest.mark.parametrize(("method", "rounds"), [("exact", 9), ("spectral", 16)])
def test_what_all_laws_share_may_hide_better(method, rounds):
    """At a large delta the thin places do not matter: the common part of all laws decides."""
    hiding = NetworkMixing(wheel(60), positions=method).hiding(rounds)
    overlaps, missed = hiding.decompositions(delta=0.05)
    assert overlaps.shape == (2, 59)
    assert 0.0 < missed[1] < 0.05
    assert hiding.decompositions(delta=1e-9)[0].shape == (1, 59)
    both = hiding.epsilon(ANY, delta=0.05, with_lower=False).upper
    first = network_walk_epsilon(ANY, overlaps=hiding.overlaps, delta=0.05, with_lower=False).upper
    second = network_walk_epsilon(
        ANY, overlaps=overlaps[1], missed=missed[1], delta=0.05, with_lower=False
    ).upper
    assert both <= min(first, second) * (1.0 + 1e-9)  # the weighted blanket may be less still


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
