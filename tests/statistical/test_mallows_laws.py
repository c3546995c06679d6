"""Draws of every Mallows model follow their law: on all of S_4, and in moments at n = 1e5.

Every test has a fixed seed, so it gives the same answer on every run. The declared rate is the
probability that correct code would fail for a seed chosen at random.
"""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import chdtri
from scipy.stats import binom

from oracles.mallows import DISTANCES, moments_of_distance
from shuffledp.core.entropy import Entropy
from shuffledp.groups.exact_draws import LazyUniform, draw_truncated_poisson
from shuffledp.groups.mallows import (
    MallowsModel,
    draw_by_swaps,
    draw_lehmer_code,
    permutation_of_code,
    permute_all_but,
)
from shuffledp.groups.privacy import MALLOWS_DISTANCES

# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 64
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS

NUM_DRAWS = 12_000
PERMUTATIONS = {pi: index for index, pi in enumerate(permutations(range(4)))}


def distance_of(name):
    return DISTANCES[name]


def law(name, theta):
    """Return the probabilities of all permutations of four items."""
    distances = [distance_of(name)(pi) for pi in PERMUTATIONS]
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


@pytest.mark.parametrize("theta", [0.0, 2.0**-40, 1e-12, 0.2, 0.45, 1.2, 5.0])
@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_all_permutations_of_four_items(name, theta):
    entropy = Entropy.from_seed(201)
    model = MallowsModel(distance=name, num_items=4, theta=theta)
    assert not is_rejected(counts_of(lambda: model.sample(entropy)), law(name, theta))


@pytest.mark.parametrize("theta", [0.2, 1.2])
def test_all_permutations_when_every_draw_is_settled_with_decimals(theta):
    entropy = Entropy.from_seed(202)

    def kendall():
        return permutation_of_code(draw_lehmer_code(4, theta, entropy, margin=math.inf))

    def cayley():
        return draw_by_swaps(4, theta, entropy, margin=math.inf)

    def hamming():
        # No bit is known at first, so that every draw is refined.
        uniform = LazyUniform(prefix=0, num_bits=0, entropy=entropy)
        return permute_all_but(4, draw_truncated_poisson(4, theta, uniform), entropy)

    for name, draw in (("kendall", kendall), ("cayley", cayley), ("hamming", hamming)):
        assert not is_rejected(counts_of(draw, 1_000), law(name, theta))


# ---------------------------------------------------------------- moments at n = 1e5
# Eight standard deviations: by Bernstein's inequality, for 1e5 independent parts none of which has
# more than a few thousandths of the whole deviation, that has probability below 2 e^-29 = 5e-13.
DEVIATIONS = 8.0
# Under Hamming's distance so many places stay, and move, that both are nearly normal variates.
MANY = {
    "kendall": [1e-12, 1e-5, 3e-3, 0.5, 2.0],
    "hamming": [math.log(1e3), math.log(3e4), math.log(9e4)],
    "cayley": [0.3, 3.0, 8.0, 11.5, 14.0],
}


@pytest.mark.parametrize(
    ("name", "theta"), [(name, theta) for name, thetas in MANY.items() for theta in thetas]
)
def test_distances_of_many_items(name, theta):
    num_items = 100_000
    model = MallowsModel(distance=name, num_items=num_items, theta=theta)
    distance = distance_of(name)(model.sample(Entropy.from_seed(203)))
    mean, variance = moments_of_distance(name, num_items, theta)
    deviation = math.sqrt(variance)
    assert abs(distance - mean) < DEVIATIONS * deviation
    # A law with theta off by a few per cent is found where theta matters.
    if name == "kendall" and theta >= 3e-3:
        other, _ = moments_of_distance(name, num_items, 1.06 * theta)
        assert abs(distance - other) > DEVIATIONS * deviation


def test_few_items_move_for_large_theta_under_hamming():
    # P(d >= k) is below (n e^-theta)^k / (1 - n e^-theta): here 3^-40 1.5 = 1e-19.
    model = MallowsModel(distance="hamming", num_items=100_000, theta=math.log(3e5))
    assert distance_of("hamming")(model.sample(Entropy.from_seed(209))) < 40


def test_most_items_move_for_small_theta_under_hamming():
    # Fixed points are at most a Poisson variate of mean e^0.3; above 40 with probability 1e-43.
    model = MallowsModel(distance="hamming", num_items=100_000, theta=0.3)
    assert np.count_nonzero(model.sample(Entropy.from_seed(204)) == np.arange(100_000)) <= 40


@pytest.mark.parametrize(
    ("name", "theta"),
    [("hamming", 0.3), ("hamming", math.log(5e4)), ("cayley", 0.3), ("cayley", 11.5)],
)
def test_displacements_of_many_items(name, theta):
    # The number of items that move, 5e4 or more, has a relative deviation below 1 / 200. Given it,
    # each goes anywhere: the mean over them has a relative deviation of about 0.71 / 220.
    model = MallowsModel(distance=name, num_items=100_000, theta=theta)
    moved = np.abs(model.sample(Entropy.from_seed(205)) - np.arange(100_000)).mean()
    share = moments_of_distance("hamming", 100_000, theta)[0] / 100_000
    if name == "cayley":  # the last item is swapped or not, and all are like the last
        share = 99_999 / (99_999 + math.exp(theta))
    assert moved == pytest.approx(share * 100_001 / 3.0, rel=0.06)


# ---------------------------------------------------------------- negative controls
def clipped_geometric(generator, theta):
    """Draw Kendall's code wrongly: too large values become the largest."""
    values = np.floor(generator.exponential(size=4) / theta)
    return permutation_of_code(np.minimum(values, [3, 2, 1, 0]).astype(np.int64))


def swaps_with_any_place(generator, theta):
    """Draw Cayley's swaps wrongly: a swap may be with the place itself."""
    pi = np.arange(4)
    for j in range(1, 4):
        if generator.random() < j / (j + math.exp(theta)):
            other = generator.integers(j + 1)
            pi[[j, other]] = pi[[other, j]]
    return pi


def coin_for_each_place(generator, theta):
    """Draw Hamming's permutations wrongly: each place is kept by a coin of its own."""
    free = np.flatnonzero(generator.random(4) < 1 / (1 + math.exp(theta) - 1))
    pi = np.arange(4)
    pi[free] = generator.permutation(free)
    return pi


def poisson_cut_off(generator, theta):
    """Draw Hamming's permutations wrongly: more forced places than places become all."""
    forced = min(4, generator.poisson(math.expm1(theta)))
    free = generator.permutation(4)[forced:]
    pi = np.arange(4)
    pi[np.sort(free)] = free
    return pi


@pytest.mark.parametrize(
    ("name", "flawed"),
    [
        ("kendall", clipped_geometric),
        ("cayley", swaps_with_any_place),
        ("hamming", coin_for_each_place),
        ("hamming", poisson_cut_off),
    ],
)
def test_planted_flaws_are_found(name, flawed):
    generator = Entropy.from_seed(206).generator()
    assert is_rejected(counts_of(lambda: flawed(generator, 1.2)), law(name, 1.2))


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_another_theta_is_found(name):
    entropy, model = Entropy.from_seed(207), MallowsModel(distance=name, num_items=4, theta=1.2)
    counts = counts_of(lambda: model.sample(entropy))
    assert is_rejected(counts, law(name, 1.0))
    assert is_rejected(counts, law(name, 1.4))


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_the_law_of_another_distance_is_found(name):
    entropy, model = Entropy.from_seed(208), MallowsModel(distance=name, num_items=4, theta=0.45)
    counts = counts_of(lambda: model.sample(entropy))
    for other in set(MALLOWS_DISTANCES) - {name}:
        assert is_rejected(counts, law(other, 0.45))
