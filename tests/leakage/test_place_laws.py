"""Laws of places, against channels of real shufflers in full, their draws, and closed forms."""

import math

import numpy as np
import pytest

from graph_families import cycle_graph
from network.walks import position_distribution
from oracles.shuffler_channels import all_permutations, mallows_channel, walk_channel
from shuffledp.core.entropy import Entropy
from shuffledp.groups.mallows import (
    MallowsModel,
    MallowsShuffler,
    target_place_law,
)
from shuffledp.groups.privacy import MALLOWS_DISTANCES
from shuffledp.groups.reference_orders import ReferenceOrder
from shuffledp.leakage.any_shuffler import crowd_vulnerability_upper, positions_vulnerability
from shuffledp.leakage.channel import randomizer_channel, shuffle_channel
from shuffledp.leakage.counts.others import Response
from shuffledp.leakage.uninformed import shuffled_vulnerability
from shuffledp.network.walk import RandomWalk

# Of the one statistical test: Hoeffding at 4 outcomes and a few, both sides.
FALSE_POSITIVE_RATE = 1e-9

BINARY = [[0.8, 0.2], [0.2, 0.8]]
distances = pytest.mark.parametrize("distance", MALLOWS_DISTANCES)


def network_channel(walk, rounds, domain_size):
    """Who holds which reports after a walk."""
    return walk_channel(position_distribution(walk, np.arange(4), rounds), domain_size)


def uninformed(channel, num_users, target):
    """How often a bit is guessed right, all data sets being equally likely."""
    table = channel.to_dense().reshape(2**target, 2, -1, channel.num_outputs)
    return 0.5 * table.mean(axis=(0, 2)).max(axis=0).sum()


@distances
@pytest.mark.parametrize("theta", [0.0, 0.4, 3.0, math.inf])
def test_place_laws_are_those_of_all_permutations(distance, theta):
    for n in (1, 2, 5):
        model = MallowsModel(distance=distance, num_items=n, theta=theta)
        table, law = all_permutations(model)
        assert law.sum() == pytest.approx(1.0, rel=1e-14)
        exact = [law[table[:, j] == 0].sum() for j in range(n)]
        found = target_place_law(model)
        assert found == pytest.approx(exact, rel=1e-11, abs=1e-14)
        assert found.sum() == pytest.approx(1.0, rel=1e-13)
        assert not found.flags.writeable


@distances
@pytest.mark.parametrize("theta", [0.2, 1.5])
def test_place_laws_give_what_the_whole_channel_leaks(distance, theta):
    model = MallowsModel(distance=distance, num_items=4, theta=theta)
    channel = randomizer_channel(4, 2, 0.8) @ mallows_channel(model, 2)
    found = positions_vulnerability(target_place_law(model), BINARY)
    assert found.lower - 1e-12 <= uninformed(channel, 4, 0) <= found.upper + 1e-12
    for target in range(1, 4):
        assert uninformed(channel, 4, target) <= found.upper + 1e-12


def test_uniform_and_identity_permutations():
    shuffle = shuffle_channel(4, 2).to_dense()
    uniform = mallows_channel(MallowsModel(distance="kendall", num_items=4, theta=0.0), 2)
    assert np.allclose(uniform.to_dense(), shuffle, atol=1e-14)
    still = mallows_channel(MallowsModel(distance="hamming", num_items=4, theta=math.inf), 3)
    assert np.array_equal(still.to_dense(), np.eye(81))


def test_the_reference_order_is_that_of_the_shuffler():
    """Each of many draws of the shuffler itself, counted by what it releases."""
    order = np.array([2, 0, 3, 1])
    reference = ReferenceOrder(order=order, name="test", distance="kendall", sensitivity=1)
    shuffler = MallowsShuffler(reference=reference, theta=0.8)
    channel = mallows_channel(shuffler.model, 2, order)
    values = np.array([1, 0, 0, 0])
    row = channel.to_dense()[channel.inputs.index(tuple(values.tolist()))]
    entropy = Entropy.from_seed(11)
    draws = 20_000
    ends = [int(shuffler.shuffle(values, entropy).argmax()) for _ in range(draws)]
    shares = np.bincount(ends, minlength=4) / draws
    places = [channel.outputs.index(tuple(np.eye(4, dtype=int)[j].tolist())) for j in range(4)]
    allowed = math.sqrt(math.log(2 * 4 / FALSE_POSITIVE_RATE) / (2 * draws))
    assert np.abs(shares - row[places]).max() < allowed
    # The negative control: another order is told apart.
    wrong = mallows_channel(shuffler.model, 2).to_dense()[channel.inputs.index((1, 0, 0, 0))]
    assert np.abs(shares - wrong[places]).max() > allowed


def test_walks_as_channels():
    walk = RandomWalk(cycle_graph(4), laziness=0.5)
    still = network_channel(walk, 0, 2)
    assert uninformed(still, 4, 1) == pytest.approx(1.0)
    noise = randomizer_channel(4, 2, 0.8)
    values = []
    for rounds in (0, 1, 2, 4, 60):
        exact = uninformed(noise @ network_channel(walk, rounds, 2), 4, 1)
        laws = position_distribution(walk, np.arange(4), rounds)
        seen = laws[1] > 0.0
        overlaps = (np.delete(laws, 1, axis=0)[:, seen] / laws[1][seen]).min(axis=1)
        bound = crowd_vulnerability_upper(
            Response.of(0.8, 2), np.minimum(overlaps * (1.0 - 1e-12), 1.0)
        )
        assert exact <= bound * (1.0 + 1e-12)
        values.append(exact)
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(shuffled_vulnerability(4, 2, 0.8).upper, rel=1e-9)


def test_large_laws_add_up():
    model = MallowsModel(distance="kendall", num_items=100_000, theta=0.01)
    assert target_place_law(model).sum() == pytest.approx(1.0, rel=1e-12)
    hamming = target_place_law(MallowsModel(distance="hamming", num_items=10**6, theta=10.0))
    assert positions_vulnerability(hamming, BINARY).method == "positions-bounded"
