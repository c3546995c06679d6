"""Draws of the Mallows model follow its law: on all of S_4, and in moments at n = 1e5.

Every test has a fixed seed, so it gives the same answer on every run. The declared rate is the
probability that correct code would fail for a seed chosen at random.
"""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import chdtri
from scipy.stats import binom

from oracles.mallows import distance_moments, kendall_distance
from shuffledp.core.entropy import Entropy
from shuffledp.groups.kendall import KendallMallows, draw_lehmer_code, permutation_of_code

# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 16
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS

NUM_DRAWS = 12_000
PERMUTATIONS = {pi: index for index, pi in enumerate(permutations(range(4)))}


def law(theta):
    """Return the probabilities of all permutations of four items."""
    distances = [kendall_distance(pi) for pi in PERMUTATIONS]
    weights = np.array([math.exp(-theta * d) if d else 1.0 for d in distances])
    return weights / weights.sum()


def counts_of(draw, num_draws=NUM_DRAWS):
    """Return how often each permutation of four items came out."""
    counts = np.zeros(len(PERMUTATIONS), dtype=np.int64)
    for _ in range(num_draws):
        counts[PERMUTATIONS[tuple(draw().tolist())]] += 1
    return counts


def is_rejected(counts, probabilities):
    """Return whether counts differ from a law: exact binomial tails, and chi-square.

    Each permutation is tested by itself with exact tails, so that rare ones are, too; chi-square
    joins them only where each is expected 100 times or more. Half the rate for either.
    """
    total = counts.sum()
    share = RATE_PER_TEST / 2 / (2 * counts.size)
    if (binom.sf(counts - 1, total, probabilities) < share).any():
        return True
    if (binom.cdf(counts, total, probabilities) < share).any():
        return True
    expected = total * probabilities
    if expected.min() < 100.0:
        return False
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(statistic > chdtri(counts.size - 1, RATE_PER_TEST / 2))


@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e-12, 0.2, 0.45, 1.2, 5.0])
def test_all_permutations_of_four_items(theta):
    entropy = Entropy.from_seed(201)
    model = KendallMallows(num_items=4, theta=theta)
    assert not is_rejected(counts_of(lambda: model.sample(entropy)), law(theta))


@pytest.mark.parametrize("theta", [0.2, 1.2])
def test_all_permutations_when_every_draw_is_settled_with_decimals(theta):
    entropy = Entropy.from_seed(202)

    def kendall():
        return permutation_of_code(draw_lehmer_code(4, theta, entropy, margin=math.inf))

    assert not is_rejected(counts_of(kendall, 1_000), law(theta))


# ---------------------------------------------------------------- moments at n = 1e5
# Eight standard deviations: by Bernstein's inequality, for 1e5 independent parts none of which has
# more than a few thousandths of the whole deviation, that has probability below 2 e^-29 = 5e-13.
DEVIATIONS = 8.0
MANY = [1e-12, 1e-5, 3e-3, 0.5, 2.0]


@pytest.mark.parametrize("theta", MANY)
def test_distances_of_many_items(theta):
    num_items = 100_000
    model = KendallMallows(num_items=num_items, theta=theta)
    distance = kendall_distance(model.sample(Entropy.from_seed(203)))
    mean, variance = distance_moments(num_items, theta)
    deviation = math.sqrt(variance)
    assert abs(distance - mean) < DEVIATIONS * deviation
    # A law with theta off by a few per cent is found where theta matters.
    if theta >= 3e-3:
        other, _ = distance_moments(num_items, 1.06 * theta)
        assert abs(distance - other) > DEVIATIONS * deviation


# ---------------------------------------------------------------- negative controls
def clipped_geometric(generator, theta):
    """Draw Kendall's code wrongly: too large values become the largest."""
    values = np.floor(generator.exponential(size=4) / theta)
    return permutation_of_code(np.minimum(values, [3, 2, 1, 0]).astype(np.int64))


def test_a_planted_flaw_is_found():
    generator = Entropy.from_seed(206).generator()
    assert is_rejected(counts_of(lambda: clipped_geometric(generator, 1.2)), law(1.2))


def test_another_theta_is_found():
    entropy, model = Entropy.from_seed(207), KendallMallows(num_items=4, theta=1.2)
    counts = counts_of(lambda: model.sample(entropy))
    assert is_rejected(counts, law(1.0))
    assert is_rejected(counts, law(1.4))
