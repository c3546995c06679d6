"""Bounds on position laws: safe and tight beside exact fractions, on walks of every kind."""

import pickle
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from network.walks import position_distribution
from oracles.exact_walks import all_graphs, exact_laws, far_walk, shape, small_walks
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.walk import (
    LEAST_PROBABILITY,
    RandomWalk,
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
    for i, law in enumerate(laws):
        assert all(p == 0 for p, mu in zip(law, places, strict=True) if mu == 0)
        ratios = [p / mu for p, mu in zip(law, places, strict=True) if mu > 0]
        assert is_at_most(bounds.low[i], min(ratios))
        assert is_at_least(bounds.high[i], max(ratios))


@pytest.mark.parametrize("name", WALKS)
def test_bounds_beside_exact_fractions(name):
    walk = WALKS[name]
    asked = [3, 0, 2] if walk.absences else [9, 0, 4, 1, 4]
    found = exact_position_bounds(walk, asked)
    assert [bounds.rounds for bounds in found] == asked
    for bounds in found:
        check_against_fractions(walk, bounds)


def test_bounds_on_all_graphs_of_four_users():
    for graph in all_graphs(4):
        check_against_fractions(*with_bounds(RandomWalk(graph), 3))


def with_bounds(walk, rounds):
    """Return the walk and its bounds after some rounds."""
    (bounds,) = exact_position_bounds(walk, [rounds])
    return walk, bounds


def test_the_stationary_law_is_the_reference_where_walks_tend_to_it():
    connected = shape("star and edge")
    _, bounds = with_bounds(RandomWalk(connected), 200)
    assert (bounds.reference == connected.stationary_law()).all()
    assert bounds.low == pytest.approx(1.0)
    assert bounds.high == pytest.approx(1.0)
    for name in ("two pieces", "absences", "one"):
        _, bounds = with_bounds(WALKS[name], 3)
        laws = position_distribution(WALKS[name], np.arange(WALKS[name].num_users), 3)
        assert bounds.reference == pytest.approx(laws.mean(axis=0), rel=1e-14)


def test_the_mean_of_all_laws_is_the_reference_elsewhere():
    walk, bounds = with_bounds(WALKS["absences"], 3)
    mean = position_distribution(walk, np.arange(5), 3).mean(axis=0)
    assert bounds.reference == pytest.approx(mean, rel=1e-14)


def test_bipartite_graphs_and_pieces_have_no_overlap():
    for name in ("path", "two pieces", "nobody knows anybody"):
        _, bounds = with_bounds(WALKS[name], 8)
        assert (bounds.low == 0.0).all()


def test_many_blocks_of_starts_with_progress():
    generator = Entropy.from_seed(4).generator()
    cycle = [(i, (i + 1) % 200) for i in range(200)]
    graph = Graph.from_edges(np.concatenate([cycle, generator.integers(0, 200, size=(500, 2))]))
    calls = []
    walk = RandomWalk(graph)
    first, last = exact_position_bounds(walk, [2, 6], on_progress=lambda *call: calls.append(call))
    assert calls == [("position laws", done, 200) for done in (64, 128, 192, 200)]
    pi = graph.stationary_law()
    for bounds, rounds in ((first, 2), (last, 6)):
        laws = position_distribution(walk, np.arange(200), rounds)
        assert bounds.low == pytest.approx((laws / pi).min(axis=1))
        assert bounds.high == pytest.approx((laws / pi).max(axis=1))


def test_blocks_in_other_processes_give_the_same():
    def elsewhere(function, items):
        return (pickle.loads(pickle.dumps(function))(item) for item in items)  # noqa: S301  # our own

    seen = np.array([True, False, True, True, True])
    for name in ("absences", "one"):
        walk = WALKS[name]
        how = {"seen": seen[: walk.num_users]}
        found = [
            exact_position_bounds(walk, [1, 3], engine=each, **how) for each in (None, elsewhere)
        ]
        for one, other in zip(*found, strict=True):
            for field in fields(one):
                here, there = getattr(one, field.name), getattr(other, field.name)
                if field.name != "given":
                    assert np.array_equal(here, there)
                elif here is not None:
                    assert np.array_equal(here.tails, there.tails)


def test_an_error_in_the_callback_stops_the_work():
    def stop(stage, done, total):
        raise KeyboardInterrupt

    graph = Graph.from_edges([(i, i + 1) for i in range(999)])
    with pytest.raises(KeyboardInterrupt):
        exact_position_bounds(RandomWalk(graph), [1], on_progress=stop)


def test_nothing_is_claimed_of_ratios_beyond_the_grid():
    bounds = exact_position_bounds(WALKS["absences"], [3])[0]
    assert bounds.weights(np.arange(2))[3] < 1.0
    beyond = replace(bounds, high=bounds.high + bounds.grid[-1])
    assert beyond.weights(np.arange(2))[3] == 1.0


def test_what_was_set_to_zero_is_on_the_safe_side():
    walk, bounds = with_bounds(*far_walk())
    laws = exact_laws(walk, bounds.rounds)
    pi = [Fraction(p) for p in bounds.reference]
    for i, law in enumerate(laws):
        ratios = [p / mu for p, mu in zip(law, pi, strict=True)]
        assert Fraction(bounds.low[i]) <= min(ratios)
        assert Fraction(bounds.high[i]) >= max(ratios)
    # The far end holds less than a float can, and yet more than nothing.
    assert 0 < laws[0][18] < LEAST_PROBABILITY
    assert bounds.low[0] == 0.0


def test_places_that_are_reached_with_less_than_a_float_holds_are_kept():
    # User 0 passes his report on but for 2^-53 a round, and user 1 is away.
    away = [[False, True]] * 25
    walk, bounds = with_bounds(RandomWalk(shape("pair"), absences=away, laziness=2.0**-53), 25)
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
        exact_position_bounds(WALKS["absences"], [1, 4])
    with pytest.raises(ParameterError, match="no correct digit"):
        exact_position_bounds(WALKS["path"], [10**16])


def test_bounds_that_make_no_sense():
    _, bounds = with_bounds(WALKS["triangle"], 1)
    with pytest.raises(ValueError, match="read-only"):
        bounds.low[0] = 2.0
    for wrong in (np.array([1.0, np.nan, 1.0]), np.array([1.0, -1.0, 1.0])):
        with pytest.raises(ParameterError, match="high has a number that is not >= 0"):
            replace(bounds, high=wrong)


def test_a_real_graph():
    if not TWITCH.exists():
        pytest.skip("no Twitch graph in the shared data folder")
    graph = Graph.from_edges(np.loadtxt(TWITCH, delimiter=",", skiprows=1, dtype=np.int64))
    _, bounds = with_bounds(RandomWalk(graph), 1)
    # After one round a report is with one of d neighbours.
    told = graph.matrix() @ (1.0 / graph.stationary_law()) / np.square(graph.degrees)
    assert (1.0 + bounds.chi_square >= told * (1.0 - 1e-9)).all()
    assert (1.0 + bounds.chi_square <= 1.05 * told).all()
    assert (bounds.low == 0.0).all()
