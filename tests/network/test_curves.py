"""Curves over rounds: ends known in closed form, order against the uniform shuffle, bad input."""

import numpy as np
import pytest

from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.network import curves as network_curves
from shuffledp.network.curves import network_curve, spread_rounds
from shuffledp.network.graphs.families import (
    complete_with_pendant,
    cycle_graph,
    random_regular_graph,
)
from shuffledp.network.mixing import NetworkMixing

PROFILE = LocalProfile(epsilon0=1.0)
DELTA = 1e-4


def uniform(num_users):
    return account_epsilon(PROFILE, num_users=num_users, delta=DELTA, with_lower=False).upper


LOCAL = uniform(1)


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_from_the_local_to_the_uniform_epsilon(protocol):
    graph = random_regular_graph(200, 8, Entropy.from_seed(1))
    curve = network_curve(
        graph, PROFILE, name="g", rounds=(40, 0, 3, 3), delta=DELTA, protocol=protocol
    )
    assert curve.rounds == (0, 3, 40)
    assert curve.method == "exact"
    assert curve.epsilon[0] == LOCAL
    assert curve.epsilon[0] >= curve.epsilon[1] >= curve.epsilon[2]
    assert curve.uniform_epsilon == uniform(200)
    assert (curve.num_users, curve.num_edges) == (200, 800)
    if protocol == "all":
        assert uniform(200) <= curve.epsilon[2] <= 1.01 * uniform(200)
        assert curve.rounds_within(0.01) == 40
    else:
        # About 63 % of the reports are handed in, which hides more than the smaller crowd loses.
        assert 0.5 * uniform(200) < curve.epsilon[2] < uniform(200)
    assert curve.to_json_dict()["epsilon"] == list(curve.epsilon)


def test_spectral_bounds_are_no_smaller_than_exact_ones():
    graph = complete_with_pendant(40)
    exact, spectral = (
        network_curve(graph, PROFILE, name="g", rounds=(1, 2, 4, 30), delta=DELTA, method=method)
        for method in ("exact", "spectral")
    )
    assert (exact.method, spectral.method) == ("exact", "spectral")
    # Epsilon may be smaller: where eigenvalues are used, two laws Q are tried.
    for rounds in (1, 2, 4, 30):
        known, bounded = (
            NetworkMixing(graph, method=method).position_bounds(rounds)
            for method in ("exact", "spectral")
        )
        assert (known.low >= bounded.low * (1.0 - 1e-12)).all()
        assert (known.high <= bounded.high * (1.0 + 1e-12)).all()
    # The pendant's report is at its one neighbour after one round: nothing is hidden.
    assert exact.epsilon[0] == LOCAL
    assert exact.epsilon[-1] == pytest.approx(uniform(graph.num_users), rel=1e-3)


def test_large_work_is_left_to_eigenvalues(monkeypatch):
    graph = random_regular_graph(200, 20, Entropy.from_seed(2))
    monkeypatch.setattr(network_curves, "_UNASKED_WORK", 200 * 4_000 * 40 - 1)
    curve = network_curve(graph, PROFILE, name="g", rounds=(1, 40), delta=DELTA)
    assert curve.method == "spectral"
    assert curve.epsilon[0] == LOCAL
    assert curve.epsilon[1] == pytest.approx(uniform(200), rel=1e-2)
    assert network_curve(graph, PROFILE, name="g", rounds=(39,), delta=DELTA).method == "exact"


def test_lazy_walks_mix_where_others_do_not():
    even = cycle_graph(10)
    with pytest.raises(ParameterError, match="bipartite"):
        network_curve(even, PROFILE, name="g", rounds=(100,), delta=DELTA)
    curve = network_curve(even, PROFILE, name="g", rounds=(400,), delta=DELTA, laziness=0.5)
    assert curve.epsilon[0] == pytest.approx(uniform(10), rel=1e-3)


def test_progress():
    stages = []
    network_curve(
        cycle_graph(5),
        PROFILE,
        name="pentagon",
        rounds=(1, 2),
        delta=DELTA,
        on_progress=lambda *stage: stages.append(stage),
    )
    assert ("pentagon: epsilon", 2, 2) in stages


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": ()}, "rounds is empty"),
        ({"rounds": (-1,)}, "rounds = -1"),
        ({"delta": 0.0}, "delta = 0"),
        ({"delta": float("nan")}, "delta = nan"),
        ({"method": "guess"}, "method = 'guess'"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = {"name": "g", "rounds": (1,), "delta": DELTA} | changes
    with pytest.raises(ParameterError, match=message):
        network_curve(cycle_graph(5), PROFILE, **arguments)


def test_spread_rounds():
    assert spread_rounds(3, 3) == (3,)
    assert spread_rounds(0, 30, 30)[:2] == (0, 1)
    for first, last in ((1, 100), (0, 10**6), (999, 5_000)):
        spread = spread_rounds(first, last)
        assert (spread[0], spread[-1]) == (first, last)
        assert len(spread) <= 30
        assert (np.diff(spread) > 0).all()
    with pytest.raises(ParameterError, match="give 0 <= first <= last"):
        spread_rounds(3, 2)
