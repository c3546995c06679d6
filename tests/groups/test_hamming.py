"""Hamming's Mallows model: the law of its distance, and permutations with forced places."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import mpmath
import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups.mallows import HammingMallows, permute_all_but


def derangements(up_to):
    """Return the exact derangement numbers D_0, ..., D_n."""
    numbers = [1, 0]
    for d in range(2, up_to + 1):
        numbers.append((d - 1) * (numbers[d - 1] + numbers[d - 2]))
    return numbers[: up_to + 1]


def exact_law(num_items, theta):
    """Return the probabilities C(n, d) D_d e^(-theta d) / psi, to 400 digits."""
    with mpmath.workdps(400):
        weights = [
            math.comb(num_items, d) * number * mpmath.exp(-mpmath.mpf(theta) * d)
            for d, number in enumerate(derangements(num_items))
        ]
        psi = mpmath.fsum(weights)
        return [weight / psi for weight in weights]


@pytest.mark.parametrize("num_items", [2, 17, 400])
@pytest.mark.parametrize("theta", [0.0, 1e-300, 0.1, 1.0, 2.9, 5.0, 6.1, 50.0, 300.0])
def test_mean_from_derangement_numbers(num_items, theta):
    law = exact_law(num_items, theta)
    model = HammingMallows(num_items=num_items, theta=theta)
    with mpmath.workdps(400):
        mean = mpmath.fsum(d * p for d, p in enumerate(law))
    assert abs(model.mean_distance() - mean) <= 1e-12 * mean


def test_forcing_a_subset_gives_the_law_of_the_distance():
    # Exactly, with e^theta = 5/2: sum over s of P(s) P(n - s others keep n - s - d in place).
    growth, num_items = Fraction(5, 2), 7
    numbers = derangements(num_items)
    weights = [(growth - 1) ** s / math.factorial(s) for s in range(num_items + 1)]
    found = [Fraction(0)] * (num_items + 1)
    for s, weight in enumerate(weights):
        others = num_items - s
        for d in range(others + 1):
            share = Fraction(math.comb(others, d) * numbers[d], math.factorial(others))
            found[d] += weight / sum(weights) * share
    claimed = [math.comb(num_items, d) * numbers[d] / growth**d for d in range(num_items + 1)]
    assert found == [weight / sum(claimed) for weight in claimed]


@pytest.mark.parametrize("num_forced", range(5))
def test_forced_sets_and_the_rest_are_uniform_over_all_shuffles(num_forced, monkeypatch):
    # Every shuffle of four items once: each (set, permutation of the others) equally often.
    monkeypatch.setattr(
        "shuffledp.groups.mallows.UniformShuffler.shuffle",
        lambda self, items, entropy: np.array(entropy),
    )
    found = {}
    for order in permutations(range(4)):
        pi = tuple(permute_all_but(4, num_forced, order))
        found[pi] = found.get(pi, 0) + 1
    expected = {}
    copies = math.factorial(num_forced)  # orders that differ in what is not used
    for fixed in combinations(range(4), num_forced):
        others = [place for place in range(4) if place not in fixed]
        for order in permutations(others):
            pi = list(range(4))
            for place, item in zip(others, order, strict=True):
                pi[place] = item
            expected[tuple(pi)] = expected.get(tuple(pi), 0) + copies
    assert found == (expected if num_forced < 4 else {(0, 1, 2, 3): 24})


def test_many_items():
    # Far from both ends the fixed points are a Poisson variate of mean e^theta.
    model = HammingMallows(num_items=10**9, theta=8.0)
    fixed = math.exp(8.0)
    assert model.mean_distance() == pytest.approx(10**9 - fixed, rel=1e-12)


def test_one_item_stays():
    for theta in (0.0, 1.0, math.inf):
        model = HammingMallows(num_items=1, theta=theta)
        assert model.sample(Entropy.from_seed(1)).tolist() == [0]
        assert model.mean_distance() == 0.0
