"""Guarantees and random crowds, against mechanisms and walks in full."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.shuffler_channels import walk_channel
from shuffledp.amplification.random_crowd import CrowdLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.any_shuffler import (
    crowd_vulnerability_upper,
    telling_losses,
    vulnerability_from_guarantee,
)
from shuffledp.leakage.channel import randomizer_channel
from shuffledp.leakage.counts.others import Response
from shuffledp.leakage.uninformed import shuffled_vulnerability


def guessed_right(prior, laws):
    """V of a mechanism."""
    return float(np.max(np.asarray(prior)[:, None] * laws, axis=0).sum())


def hockey_stick(laws, epsilon):
    """The least delta of a mechanism at epsilon, over all pairs of values."""
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) for a, b in product(laws, laws)
    )


def best_mechanism(prior, epsilon, delta):
    """The mechanism of the proof, for the best number of values."""
    order = np.argsort(prior)[::-1]
    size = len(prior)
    e = math.exp(-epsilon)
    heads = np.cumsum(np.asarray(prior)[order])
    j = 1 + int(np.argmax(heads / (1.0 + np.arange(size) * e)))
    m = 1.0 / (1.0 + (j - 1) * e)
    laws = np.zeros((size, size))
    laws[:, order[:j]] = (1.0 - delta) / j
    laws[order[j:], order[j:]] = delta
    for x in order[:j]:
        laws[x, order[:j]] = (1.0 - delta) * m * e
        laws[x, x] = delta + (1.0 - delta) * m
    return laws


def random_law(generator, size):
    return generator.dirichlet(np.full(size, generator.uniform(0.2, 2.0)))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_small_mechanism_does_better(size):
    generator = Entropy.from_seed(size).generator()
    tight = 0
    for _ in range(300):
        prior = random_law(generator, size)
        laws = np.array([random_law(generator, generator.integers(1, 6))] * size)
        if generator.random() < 0.8:
            laws = generator.dirichlet(np.full(4, 0.7), size=size)
        for epsilon in (0.0, 0.3, 1.0, *telling_losses(prior)[:2]):
            bound = vulnerability_from_guarantee(prior, epsilon, hockey_stick(laws, epsilon))
            truth = guessed_right(prior, laws)
            assert truth <= bound * (1.0 + 1e-14)
            tight += bound <= truth * 1.01
    assert tight > 20  # the bound is no triviality


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(any),
    st.sampled_from([0.0, 0.1, 1.0, 4.0, 700.0]),
    st.sampled_from([0.0, 1e-6, 0.1, 0.5, 1.0]),
)
def test_attained_for_every_prior(weights, epsilon, delta):
    prior = np.array(weights) / sum(weights)
    laws = best_mechanism(prior, epsilon, delta)
    assert np.allclose(laws.sum(axis=1), 1.0)
    assert hockey_stick(laws, epsilon) <= delta + 1e-13
    truth = guessed_right(prior, laws)
    assert vulnerability_from_guarantee(prior, epsilon, delta) == pytest.approx(truth, rel=1e-13)


@pytest.mark.parametrize("k", [2, 3, 16])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 7)])
def test_uniform_prior_in_closed_form(k, delta):
    exact = (5 + (k - 1) * delta) / Fraction(5 + k - 1)
    found = vulnerability_from_guarantee([1.0 / k] * k, math.log(5.0), float(delta))
    assert float(exact) <= found <= float(exact) * (1.0 + 1e-13)


def test_two_values_from_the_exact_curve():
    generator = Entropy.from_seed(0).generator()
    for _ in range(100):
        prior = random_law(generator, 2)
        laws = generator.dirichlet(np.full(5, 0.7), size=2)
        low, high = sorted(range(2), key=lambda x: prior[x])
        (loss,) = telling_losses(prior)
        one_way = float(np.maximum(laws[low] - math.exp(loss) * laws[high], 0.0).sum())
        found = prior[high] + prior[low] * one_way
        assert found == pytest.approx(guessed_right(prior, laws), rel=1e-12)
        assert vulnerability_from_guarantee(prior, loss, one_way) == pytest.approx(found)
        wide = [(each, hockey_stick(laws, each)) for each in (0.0, 0.5, 2.0)]
        for point in [(loss, hockey_stick(laws, loss)), *wide]:
            assert found * (1.0 - 1e-14) <= vulnerability_from_guarantee(prior, *point)


def test_the_simpler_bound_with_posteriors_is_weaker():
    """a (1 + e^-epsilon (k - 1) delta) with a the largest posterior: true, and never better."""
    generator = Entropy.from_seed(1).generator()
    for _ in range(200):
        prior = random_law(generator, 4)
        epsilon, delta = generator.uniform(0.0, 3.0), generator.uniform(0.0, 0.3)
        odds = prior * math.exp(epsilon)
        largest = float(np.max(odds / (odds + 1.0 - prior)))
        weaker = largest * (1.0 + math.exp(-epsilon) * 3.0 * delta)
        ours = vulnerability_from_guarantee(prior, epsilon, delta)
        assert ours <= min(weaker, 1.0) * (1.0 + 1e-13)


def test_monotone():
    prior = [0.5, 0.3, 0.2]
    losses = [0.0, 0.1, 0.5, 1.0, 5.0, math.inf]
    deltas = [0.0, 1e-9, 0.2, 1.0]
    table = [[vulnerability_from_guarantee(prior, e, d) for d in deltas] for e in losses]
    assert np.all(np.diff(table, axis=0) >= 0.0)
    assert np.all(np.diff(table, axis=1) >= 0.0)
    assert table[0][0] == pytest.approx(0.5, rel=1e-13)
    assert table[0][-1] == table[-1][0] == 1.0


def test_certain_values_and_single_ones():
    assert vulnerability_from_guarantee([1.0], 0.0) == 1.0
    assert vulnerability_from_guarantee([0.0, 1.0, 0.0], 0.0) == 1.0
    assert telling_losses([1.0]) == ()
    assert telling_losses([0.0, 1.0]) == ()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([0.5, 0.6], 1.0, 0.0), "prior"),
        (([], 1.0, 0.0), "prior"),
        (([0.5, math.nan], 1.0, 0.0), "prior"),
        (([0.5, 0.5], -1.0, 0.0), "epsilon"),
        (([0.5, 0.5], math.nan, 0.0), "epsilon"),
        (([0.5, 0.5], 1.0, 1.5), "delta"),
        (([0.5, 0.5], 1.0, math.nan), "delta"),
        (([0.5, 0.5], 1.0, -0.1), "delta"),
    ],
)
def test_bad_input(arguments, name):
    with pytest.raises(ParameterError, match=name):
        vulnerability_from_guarantee(*arguments)


GRAPHS = {
    "path": [[0, 1], [1, 2], [2, 3]],
    "star": [[0, 1], [0, 2], [0, 3]],
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "triangle with a pendant": [[0, 1], [1, 2], [2, 0], [2, 3]],
}


def laws_after(edges, rounds):
    """Laws of the holders of all reports on a lazy walk, one a row."""
    step = np.zeros((4, 4))
    for a, b in edges:
        step[a, b] = step[b, a] = 1.0
    step = 0.5 * np.eye(4) + 0.5 * step / step.sum(axis=1, keepdims=True)
    return np.linalg.matrix_power(step, rounds)


def views_of_target(laws, truth, target):
    """The release for each dataset of bits: shape (2, 2, 2, 2, outputs), the target's bit first."""
    channel = randomizer_channel(4, 2, truth) @ walk_channel(laws, 2)
    table = channel.to_dense().reshape(2, 2, 2, 2, -1)
    return np.moveaxis(table, target, 0)


def overlaps_of(laws, target):
    others = np.delete(laws, target, axis=0)
    seen = laws[target] > 0.0
    return np.minimum((others[:, seen] / laws[target][seen]).min(axis=1), 1.0)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("truth", [1.0, 0.8])
def test_above_walks_on_small_graphs(name, truth):
    for rounds in (0, 1, 2, 5):
        laws = laws_after(GRAPHS[name], rounds)
        for target in range(4):
            table = views_of_target(laws, truth, target)
            overlaps = overlaps_of(laws, target) * (1.0 - 1e-14)
            uninformed = 0.5 * table.mean(axis=(1, 2, 3)).max(axis=0).sum()
            bound = crowd_vulnerability_upper(Response.of(truth, 2), overlaps)
            assert uninformed <= bound * (1.0 + 1e-12)
            # The strongest knowledge, and the average over all of it.
            strong = 0.5 * table.max(axis=0).sum(axis=-1)
            bound = crowd_vulnerability_upper(Response.of(truth, 2), overlaps, is_strong=True)
            assert uninformed <= strong.mean() + 1e-12
            assert strong.max() <= bound * (1.0 + 1e-12)
            if rounds == 0:
                assert bound == pytest.approx(truth) == pytest.approx(strong.max())


def test_equal_once_mixed():
    """On a regular graph, mixed, the holders tell nothing more than a uniform shuffle would."""
    laws = laws_after(GRAPHS["cycle"], 200)
    table = views_of_target(laws, 0.8, 0)
    uninformed = 0.5 * table.mean(axis=(1, 2, 3)).max(axis=0).sum()
    overlaps = np.minimum(overlaps_of(laws, 0), 1.0)
    assert overlaps.min() > 1.0 - 1e-12
    bound = crowd_vulnerability_upper(Response.of(0.8, 2), overlaps)
    assert bound == pytest.approx(uninformed, rel=1e-10)
    assert bound == pytest.approx(shuffled_vulnerability(4, 2, 0.8).upper, rel=1e-10)


@given(
    st.lists(st.floats(0.0, 1.0), max_size=10),
    st.sampled_from([2, 3, 7]),
    st.sampled_from([Fraction(1), Fraction(9, 10), Fraction(1, 2)]),
    st.booleans(),
)
def test_above_the_average_over_the_crowd(overlaps, k, truth, strong):
    noise = float(k * (1 - truth) / (k - 1)) if strong else 1.0
    law = np.ones(1)
    for chance in overlaps:
        law = np.convolve(law, [1.0 - chance * noise, chance * noise])
    sizes = [shuffled_vulnerability(1 + m, k, truth) for m in range(law.size)]
    exact = math.fsum(mass * each.lower for mass, each in zip(law, sizes, strict=True))
    found = crowd_vulnerability_upper(Response.of(truth, k), np.array(overlaps), is_strong=strong)
    assert exact * (1.0 - 1e-12) <= found <= float(truth) * (1.0 + 1e-15)
    assert found <= exact * 1.02  # few users: all sizes are levels


def test_laws_of_crowds():
    certain = CrowdLaw(sizes=(50,), misses=(0.0,))
    doubtful = CrowdLaw(sizes=(50, 10), misses=(0.25, 0.0))
    inner, outer = (shuffled_vulnerability(m, 4, 0.7).upper for m in (50, 10))
    assert crowd_vulnerability_upper(Response.of(0.7, 4), certain) == pytest.approx(
        inner, rel=1e-12
    )
    mixed = crowd_vulnerability_upper(Response.of(0.7, 4), doubtful)
    assert mixed == pytest.approx(0.75 * inner + 0.25 * outer, rel=1e-12)
    strong = crowd_vulnerability_upper(Response.of(0.7, 4), certain, is_strong=True)
    by_coins = crowd_vulnerability_upper(Response.of(0.7, 4), np.ones(49), is_strong=True)
    assert inner < strong == pytest.approx(by_coins, rel=0.02)


def test_no_others_and_no_truth():
    assert crowd_vulnerability_upper(Response.of(0.75, 2), np.empty(0)) == pytest.approx(0.75)
    assert crowd_vulnerability_upper(
        Response.of(Fraction(1, 4), 4), np.full(9, 0.5)
    ) == pytest.approx(0.25)
