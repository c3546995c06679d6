import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from oracles.mallows import DISTANCES
from oracles.preservation_published import (
    permutations_not_preserving,
    published_preservation,
    restricted_arrangements,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.shuffling import preserved_share, required_members

# Two-sided limits at confidence 1 - 1e-11 each, 24 of them.
FALSE_POSITIVE_RATE = 3e-10
SURE = 1.0 - 1e-11


def test_shares_are_read_as_decimals():
    assert [required_members(5, eta) for eta in (0, 0.2, 0.4, 0.6, 0.8, 1)] == list(range(6))
    assert required_members(10, 0.30000000000000004) == 4


def test_shares_given_back_require_no_more():
    for size in range(1, 60):
        for kept in range(size + 1):
            pi = np.arange(2 * size)
            pi[kept:size], pi[size : 2 * size - kept] = (
                pi[size : 2 * size - kept],
                pi[kept:size].copy(),
            )
            eta = preserved_share([pi] * 5, np.arange(size), delta=0.5, confidence=0.5)
            assert required_members(size, eta) == kept
            assert eta == pytest.approx(kept / size, abs=1e-15)


def draws_of(name, n, theta, count, generator):
    """Draws from the list of all permutations, for any distance."""
    distance = DISTANCES[name]
    everything = [np.array(pi, np.int64) for pi in itertools.permutations(range(n))]
    weights = np.array([math.exp(-theta * distance(pi)) for pi in everything])
    weights /= weights.sum()
    chosen = generator.choice(len(everything), size=count, p=weights)
    return everything, weights, [everything[each] for each in chosen]


@pytest.mark.parametrize("name", ["kendall", "cayley", "hamming"])
@pytest.mark.parametrize("places", [(0, 1, 2), (0, 2, 4)])
def test_simulated_limits_hold_for_every_distance(name, places):
    generator = Entropy.from_seed(31).generator()
    everything, weights, draws = draws_of(name, 5, 0.5, 3000, generator)
    stays = np.array([sum(pi[j] in places for j in places) for pi in everything])
    for delta in (0.25, 0.7):
        found = preserved_share(iter(draws), places, delta=delta, confidence=SURE)
        true_eta = max(r for r in range(4) if weights[stays < r].sum() <= delta) / 3
        assert found <= true_eta
        # It does not err far: at a delta somewhat larger that much stays.
        assert (
            found >= max(r for r in range(4) if weights[stays < r].sum() <= delta - 0.1) / 3 - 1e-12
        )


def test_a_planted_wrong_law_is_outside_the_limits():
    generator = Entropy.from_seed(32).generator()
    _, _, draws = draws_of("kendall", 5, 3.0, 3000, generator)
    everything, weights, _ = draws_of("kendall", 5, 0.5, 1, generator)
    stays = np.array([sum(pi[j] < 3 for j in range(3)) for pi in everything])
    wrong = max(r for r in range(4) if weights[stays < r].sum() <= 0.5) / 3
    assert preserved_share(draws, [0, 1, 2], delta=0.5, confidence=SURE) > wrong


@pytest.mark.parametrize("delta", [0.1, 0.37])
@pytest.mark.parametrize("num_draws", [10, 37])
def test_order_statistics_cover_as_often_as_they_say(num_draws, delta):
    # Exactly, for one law: the number that stay is 0, 1 or 2 with these probabilities.
    law = np.array([0.3, 0.5, 0.2])
    true_share = max(r for r in range(3) if law[:r].sum() <= delta) / 2
    confidence = 0.8
    onesided = 0.0
    for zeros in range(num_draws + 1):
        for ones in range(num_draws - zeros + 1):
            twos = num_draws - zeros - ones
            stayed = np.repeat([0, 1, 2], [zeros, ones, twos])
            pi = {0: [2, 3, 0, 1], 1: [0, 2, 1, 3], 2: [0, 1, 2, 3]}
            draws = [np.array(pi[each]) for each in stayed]
            found = preserved_share(draws, [0, 1], delta=delta, confidence=confidence)
            chance = binom.pmf(zeros, num_draws, 0.3)
            chance *= binom.pmf(ones, num_draws - zeros, 0.5 / 0.7)
            onesided += chance * (found > true_share)
    assert onesided <= 0.2


def test_too_few_draws_say_nothing_and_enough_do():
    identity = np.arange(6)
    enough = 459  # the least N with 0.99^N <= 0.01
    few, many = (
        preserved_share([identity] * number, [1, 2], delta=0.01, confidence=0.99)
        for number in (enough - 1, enough)
    )
    assert (few, many) == (0.0, 1.0)


def test_bad_arguments_are_named():
    for name, changes in (("confidence", {"confidence": 1.0}), ("delta", {"delta": 0.0})):
        with pytest.raises(ParameterError, match=name):
            preserved_share([np.arange(3)], [0], **({"delta": 0.1} | changes))


@pytest.mark.parametrize("barred", range(5))
@pytest.mark.parametrize("free", range(3))
def test_arrangements_are_counted(barred, free):
    found = sum(
        all(pi[i] != i for i in range(barred))
        for pi in itertools.permutations(range(barred + free))
    )
    assert restricted_arrangements(barred, free) == found


@pytest.mark.parametrize("n", range(1, 7))
def test_every_permutation_is_counted_at_its_distance(n):
    for size in range(1, n + 1):
        counts = {k: [0] * (n + 1) for k in range(size + 1)}
        for pi in itertools.permutations(range(n)):
            leaving = sum(pi[j] >= size for j in range(size))
            displaced = sum(pi[j] != j for j in range(n))
            for k in range(leaving):
                counts[k][displaced] += 1
        for k, expected in counts.items():
            assert permutations_not_preserving(n, size, k) == expected


def test_the_statement_as_printed_is_wrong():
    # With the extra binomial(i + j, j) three items would have 4 permutations instead of 2 at h = 3.
    size, n, k, h = 2, 3, 0, 3
    f = restricted_arrangements
    printed = sum(
        math.comb(size, j)
        * math.comb(n - size, j)
        * math.comb(size - j, i)
        * math.comb(i + j, j)
        * f(i, j)
        * math.comb(n - size - j, h - 2 * j - i)
        * f(h - 2 * j - i, j)
        for j in range(k + 1, min(size, h // 2) + 1)
        for i in range(min(size - j, h - 2 * j) + 1)
    )
    assert printed == 4
    assert permutations_not_preserving(n, size, k)[h] == 2


@pytest.mark.parametrize("decay", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_probabilities_by_full_enumeration(decay):
    n, size = 5, 3
    for eta in (0.0, 1 / 3, 0.5, 0.7, 1.0):
        lost = total = Fraction(0)
        for pi in itertools.permutations(range(n)):
            weight = decay ** sum(pi[j] != j for j in range(n))
            total += weight
            if sum(pi[j] < size for j in range(size)) < eta * size:
                lost += weight
        assert published_preservation(n, decay, size, eta=eta) == lost / total


def test_bad_arguments_are_named_of_preservation_published():
    for name, arguments in (
        ("num_items", (0, 1, 0)),
        ("num_items", (201, 1, 0)),
        ("subset_size", (3, 0, 0)),
        ("subset_size", (3, 4, 0)),
        ("most_leaving", (3, 2, -1)),
    ):
        with pytest.raises(ParameterError, match=name):
            permutations_not_preserving(*arguments)
    for decay in (Fraction(-1), Fraction(3, 2)):
        with pytest.raises(ParameterError, match="decay"):
            published_preservation(3, decay, 2, eta=0.5)
