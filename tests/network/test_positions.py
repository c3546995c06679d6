"""Bounds on position laws: safe and tight beside exact fractions, on walks of every kind."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from oracles.exact_walks import all_graphs, exact_laws, far_walk, shape, small_walks
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph
from shuffledp.network.positions import (
    PositionBounds,
    exact_position_bounds,
    has_stationary_reference,
)
from shuffledp.network.walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    position_distribution,
)

WALKS = small_walks()
TWITCH = Path(__file__).parents[4] / "shared" / "data" / "twitch_de_lcc_edges.csv"

# What widening to the safe side may cost, relative to the exact number.
TIGHT = Fraction(1, 10**11)


def is_at_most(bound, exact, slack=TIGHT):
    """Return whether a lower bound holds, and is tight."""
    return exact * (1 - slack) <= Fraction(bound) <= exact


def is_at_least(bound, exact, slack=TIGHT):
    """Return whether an upper bound holds, and is tight."""
    return exact <= Fraction(bound) <= exact * (1 + slack)


def check_against_fractions(walk, bounds):
    """Compare every number with the exact one."""
    laws = exact_laws(walk, bounds.rounds)
    places = [Fraction(mu) for mu in bounds.reference]
    users = range(walk.num_users)
    for i, law in enumerate(laws):
        kept = sum(law)
        assert all(p == 0 for p, mu in zip(law, places, strict=True) if mu == 0)
        ratios = [p / mu for p, mu in zip(law, places, strict=True) if mu > 0] or [Fraction(0)]
        assert is_at_most(bounds.low[i], min(ratios))
        if walk.colluding is None:
            assert bounds.missed is None
        else:
            assert 1 - kept <= Fraction(bounds.missed[i]) <= 1 - kept + TIGHT
        if kept == 0:
            assert np.isinf(bounds.high[i])
            assert bounds.collision[i] == 1.0
        else:
            assert is_at_least(bounds.high[i], max(ratios) / kept)
            assert is_at_least(bounds.collision[i], sum((p / kept) ** 2 for p in law))
    for j in users:
        column = [law[j] for law in laws]
        assert is_at_most(bounds.load[j], sum(column))
        assert is_at_most(bounds.least[j], min(column))
        assert is_at_least(bounds.greatest[j], max(column))
    mass = sum(min(law[j] for law in laws) for j in users)
    assert is_at_most(bounds.common_mass, mass)


@pytest.mark.parametrize("name", WALKS)
def test_bounds_beside_exact_fractions(name):
    walk = WALKS[name]
    asked = [3, 0, 2] if walk.most_rounds else [9, 0, 4, 1, 4]
    found = exact_position_bounds(walk, asked)
    assert [bounds.rounds for bounds in found] == asked
    for bounds in found:
        check_against_fractions(walk, bounds)


def test_bounds_on_all_graphs_of_four_users():
    for graph in all_graphs(4):
        check_against_fractions(*with_bounds(RandomWalk.on(graph), 3))


def with_bounds(walk, rounds):
    """Return the walk and its bounds after some rounds."""
    (bounds,) = exact_position_bounds(walk, [rounds])
    return walk, bounds


def test_overlaps_are_true_of_every_pair():
    for name in ("star and edge", "complete and pendant", "absences, lazy", "hub colludes"):
        walk, bounds = with_bounds(WALKS[name], 3)
        laws = exact_laws(walk, 3)
        for v, law in enumerate(laws):
            kept = sum(law)
            overlaps = bounds.overlaps_with(v)
            assert overlaps[v] == 1.0
            for i in set(range(walk.num_users)) - {v}:
                kappa = Fraction(overlaps[i])
                assert kappa == 0 or all(
                    laws[i][j] * kept >= kappa * law[j] for j in range(walk.num_users)
                )


def test_the_stationary_law_is_the_reference_where_walks_tend_to_it():
    connected = shape("star and edge")
    assert has_stationary_reference(RandomWalk.on(connected))
    _, bounds = with_bounds(RandomWalk.on(connected), 200)
    assert (bounds.reference == connected.stationary_law()).all()
    assert bounds.low == pytest.approx(1.0)
    assert bounds.high == pytest.approx(1.0)
    assert bounds.common_mass == pytest.approx(1.0)
    for name in ("two pieces", "changing", "absences", "leaf colludes", "one"):
        assert not has_stationary_reference(WALKS[name])


def test_the_mean_of_all_laws_is_the_reference_elsewhere():
    walk, bounds = with_bounds(WALKS["changing"], 3)
    mean = position_distribution(walk, np.arange(5), 3).mean(axis=0)
    assert bounds.reference == pytest.approx(mean, rel=1e-14)
    walk, bounds = with_bounds(WALKS["hub colludes"], 2)
    assert bounds.reference.sum() == pytest.approx(1.0)
    assert bounds.reference[0] == 0.0


def test_bipartite_graphs_and_pieces_have_no_overlap():
    for name in ("path", "two pieces", "nobody knows anybody"):
        _, bounds = with_bounds(WALKS[name], 8)
        assert (bounds.low == 0.0).all()
        assert bounds.common_mass == 0.0


def test_many_blocks_of_starts_with_progress():
    generator = Entropy.from_seed(4).generator()
    cycle = [(i, (i + 1) % 200) for i in range(200)]
    graph = Graph.from_edges(np.concatenate([cycle, generator.integers(0, 200, size=(500, 2))]))
    calls = []
    walk = RandomWalk.on(graph)
    first, last = exact_position_bounds(walk, [2, 6], on_progress=lambda *call: calls.append(call))
    assert calls == [("position laws", done, 200) for done in (64, 128, 192, 200)]
    pi = graph.stationary_law()
    for bounds, rounds in ((first, 2), (last, 6)):
        laws = position_distribution(walk, np.arange(200), rounds)
        assert bounds.low == pytest.approx((laws / pi).min(axis=1))
        assert bounds.high == pytest.approx((laws / pi).max(axis=1))
        assert bounds.collision == pytest.approx((laws**2).sum(axis=1))
        assert bounds.load == pytest.approx(laws.sum(axis=0))
        assert bounds.least == pytest.approx(laws.min(axis=0))
        assert bounds.greatest == pytest.approx(laws.max(axis=0))


def test_an_error_in_the_callback_stops_the_work():
    def stop(stage, done, total):
        raise KeyboardInterrupt

    graph = Graph.from_edges([(i, i + 1) for i in range(999)])
    with pytest.raises(KeyboardInterrupt):
        exact_position_bounds(RandomWalk.on(graph), [1], on_progress=stop)


def test_what_was_set_to_zero_is_on_the_safe_side():
    walk, bounds = with_bounds(*far_walk())
    laws = exact_laws(walk, bounds.rounds)
    pi = [Fraction(p) for p in bounds.reference]
    for i, law in enumerate(laws):
        ratios = [p / mu for p, mu in zip(law, pi, strict=True)]
        assert Fraction(bounds.low[i]) <= min(ratios)
        assert Fraction(bounds.high[i]) >= max(ratios)
        assert Fraction(bounds.collision[i]) >= sum(p**2 for p in law)
    # The far end holds less than a float can, and yet more than nothing.
    assert 0 < laws[0][18] < LEAST_PROBABILITY
    assert bounds.low[0] == 0.0
    assert (bounds.greatest >= bounds.least).all()


def test_places_that_are_reached_with_less_than_a_float_holds_are_kept():
    # User 0 passes his report on but for 2^-53 a round, and user 1 is away.
    away = [[False, True]] * 25
    walk, bounds = with_bounds(RandomWalk.with_absences(shape("pair"), away, laziness=2.0**-53), 25)
    laws = exact_laws(walk, 25)
    assert float(laws[0][0]) == 0.0 < laws[0][0]
    assert bounds.reference[0] > 0.0
    for i, law in enumerate(laws):
        ratios = [p / Fraction(mu) for p, mu in zip(law, bounds.reference, strict=True)]
        assert Fraction(bounds.low[i]) <= min(ratios)
        assert is_at_least(bounds.high[i], max(ratios))


def test_no_rounds_asked_for_and_too_many():
    assert exact_position_bounds(WALKS["path"], []) == ()
    with pytest.raises(ParameterError, match="above 3"):
        exact_position_bounds(WALKS["changing"], [1, 4])
    with pytest.raises(ParameterError, match="no correct digit"):
        exact_position_bounds(WALKS["path"], [10**16])


def test_bounds_that_make_no_sense():
    two = np.ones(2)
    bounds = PositionBounds(rounds=1, low=two, high=two, collision=two)
    assert bounds.common_mass is None
    with pytest.raises(ValueError, match="read-only"):
        bounds.low[0] = 2.0
    for wrong in (np.ones(3), np.array([1.0, np.nan]), np.array([1.0, -1.0])):
        with pytest.raises(ParameterError, match="high has shape"):
            PositionBounds(rounds=1, low=two, high=wrong, collision=two)


def test_a_real_graph():
    if not TWITCH.exists():
        pytest.skip("no Twitch graph in the shared data folder")
    graph = Graph.from_edges(np.loadtxt(TWITCH, delimiter=",", skiprows=1, dtype=np.int64))
    _, bounds = with_bounds(RandomWalk.on(graph), 1)
    # After one round a report is with one of d neighbours.
    assert bounds.collision == pytest.approx(1.0 / graph.degrees)
    assert (bounds.low == 0.0).all()
