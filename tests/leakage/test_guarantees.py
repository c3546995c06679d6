"""Guarantees turned into vulnerabilities, against mechanisms listed in full."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.any_shuffler import (
    telling_losses,
    vulnerability_from_curve,
    vulnerability_from_guarantee,
)


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
        narrow = vulnerability_from_curve(prior, [(loss, hockey_stick(laws, loss)), *wide])
        assert found * (1.0 - 1e-14) <= narrow <= vulnerability_from_curve(prior, wide)


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


def test_a_curve_needs_a_point():
    with pytest.raises(ParameterError, match="points is empty"):
        vulnerability_from_curve([0.5, 0.5], [])
