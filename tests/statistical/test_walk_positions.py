"""Simulated reports are where the position laws say: chi-square tests, and planted flaws.

Every test has a fixed seed, so it gives the same answer on every run. The declared rate is the
probability that correct code would fail for a seed chosen at random.
"""

import numpy as np
import pytest
from scipy.special import chdtri

from network.walks import position_distribution
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.network.walk import (
    RandomWalk,
    simulate_positions,
)

# For the whole module; each of the tests takes an equal share. The statistic's law is within
# O(1 / least expected count) of chi-square, and the rate is held far below what the suite may
# spend.
FALSE_POSITIVE_RATE = 1e-10
NUM_TESTS = 8
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS

NUM_REPORTS = 60_000
LEAST_EXPECTED = 50.0

# A triangle with a pendant and a star, degrees 1 to 4; user 7 knows nobody.
EDGES = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (3, 5), (3, 6)]
GRAPH = Graph.from_edges(EDGES, num_users=8)
OTHER = Graph.from_edges([(i, (i + 3) % 8) for i in range(8)])
AWAY = [[u in away for u in range(8)] for away in ({2}, {3, 0}, set(), {3}, {1, 2})]

WALKS = {
    "static": RandomWalk(GRAPH),
    "lazy": RandomWalk(GRAPH, laziness=0.3),
    "absences": RandomWalk(GRAPH, absences=AWAY, laziness=0.1),
}


def statistic(walk, holders, start, rounds=5):
    """Return Pearson's statistic and its degrees of freedom, rare places taken together.

    Infinite if a report is where the law has nothing.
    """
    expected = position_distribution(walk, start, rounds) * holders.size
    observed = np.bincount(holders, minlength=expected.size)
    if observed[expected == 0.0].any():
        return np.inf, 1
    frequent = expected >= LEAST_EXPECTED
    expected = np.append(expected[frequent], expected[~frequent].sum())
    observed = np.append(observed[frequent], observed[~frequent].sum())
    present = expected > 0.0
    parts = (observed - expected)[present] ** 2 / expected[present]
    return float(parts.sum()), np.count_nonzero(present) - 1


def is_rejected(walk, simulate):
    """Return whether holders differ from the laws, summed over the starts."""
    total, freedom = 0.0, 0
    for start in range(walk.num_users):
        value, degrees = statistic(walk, simulate(np.full(NUM_REPORTS, start)), start)
        total, freedom = total + value, freedom + degrees
    return bool(total > chdtri(freedom, RATE_PER_TEST))


@pytest.mark.parametrize("name", WALKS)
def test_positions_have_the_stated_laws(name):
    walk = WALKS[name]
    entropy = Entropy.from_seed(301)
    assert not is_rejected(walk, lambda s: simulate_positions(walk, 5, entropy, starts=s))


def test_reports_that_start_together_move_apart():
    # Independent: pairs of reports of one start are on pairs of places by the product law.
    walk = WALKS["lazy"]
    holders = simulate_positions(walk, 5, Entropy.from_seed(302), starts=np.zeros(400_000, int))
    law = position_distribution(walk, 0, 5)[:7]
    expected = np.outer(law, law) * 200_000
    pairs = np.zeros((7, 7))
    np.add.at(pairs, (holders[::2], holders[1::2]), 1)
    assert expected.min() > LEAST_EXPECTED
    assert ((pairs - expected) ** 2 / expected).sum() < chdtri(48, RATE_PER_TEST)


def test_coins_of_a_large_graph():
    # Of users with 1000 neighbours each, every neighbour is as likely: no remainder, no pattern.
    hub = Graph.from_edges([(0, k) for k in range(1, 1001)])
    holders = simulate_positions(
        RandomWalk(hub), 1, Entropy.from_seed(303), starts=np.zeros(500_000, dtype=int)
    )
    counts = np.bincount(holders, minlength=1001)
    assert counts[0] == 0
    assert ((counts[1:] - 500.0) ** 2 / 500.0).sum() < chdtri(999, RATE_PER_TEST)


# ---------------------------------------------------------------- negative controls
def planted(walk, choose):
    """Return a simulation in plain NumPy that chooses among neighbours as it likes."""
    generator = Entropy.from_seed(304).generator()

    def simulate(starts):
        holders = starts.copy()
        for r in range(5):
            graph = walk.graph
            degrees = graph.degrees[holders]
            moving = (degrees > 0) & (generator.random(holders.size) >= walk.laziness)
            if walk.absences:
                moving &= ~walk.absences[r][holders]
            chosen = graph.starts[holders] + choose(generator, holders, degrees)
            holders = np.where(moving, graph.neighbours[chosen % graph.neighbours.size], holders)
        return holders

    return simulate


def uniformly(generator, holders, degrees):
    """Choose rightly."""
    return (generator.random(holders.size) * degrees).astype(int)


def the_first_more_often(generator, holders, degrees):
    """Choose the remainder of four bits: 6 of 16 for the first of three."""
    return generator.integers(16, size=holders.size) % np.maximum(degrees, 1)


def without_the_last(generator, holders, degrees):
    """Never choose the last of four."""
    return uniformly(generator, holders, np.where(degrees == 4, 3, degrees))


def test_the_planted_simulation_is_right_but_for_its_flaw():
    for name in ("lazy", "absences"):
        assert not is_rejected(WALKS[name], planted(WALKS[name], uniformly))


@pytest.mark.parametrize("choose", [the_first_more_often, without_the_last])
def test_planted_choices_are_found(choose):
    assert is_rejected(WALKS["static"], planted(WALKS["static"], choose))


@pytest.mark.parametrize(
    ("walk", "wrong"),
    [
        ("lazy", RandomWalk(GRAPH, laziness=0.33)),
        ("static", RandomWalk(GRAPH, laziness=0.01)),
        # Absences are not a coin of each report, nor does another order of rounds do.
        ("absences", RandomWalk(GRAPH, absences=AWAY[::-1], laziness=0.1)),
        ("static", RandomWalk(OTHER)),
    ],
)
def test_wrong_laws_are_found(walk, wrong):
    entropy = Entropy.from_seed(305)
    assert is_rejected(WALKS[walk], lambda s: simulate_positions(wrong, 5, entropy, starts=s))
