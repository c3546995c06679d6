"""Several targets at once, against all data, all guesses and all histograms."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.shuffled_guesses import identity, k_rr, random_rows, several_targets
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.several_targets import (
    GAINS,
    _greedy,
    several_targets_vulnerability,
)
from shuffledp.leakage.uninformed import exchangeable_vulnerability


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_all_data_listed(seed):
    rng = Entropy.from_seed(seed).generator()
    domain_size, num_outcomes = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    num_users = int(rng.integers(1, 5))
    num_targets = int(rng.integers(1, min(num_users, 3) + 1))
    channel = random_rows(rng, domain_size, num_outcomes)
    if rng.integers(3) == 0:
        channel = identity(domain_size)
    (prior,) = random_rows(rng, 1, domain_size)
    exact = several_targets(num_users, channel, prior, num_targets)
    for gain in GAINS:
        found = several_targets_vulnerability(
            num_users, channel, num_targets, prior=prior, gain=gain
        )
        assert found.lower <= exact[gain] <= found.upper
        assert found.upper - found.lower <= 1e-10


@pytest.mark.parametrize("channel", [identity(3), k_rr(3, 0.7), [[0.7, 0.3], [0.4, 0.6]]])
def test_one_target_is_the_single_target(channel):
    for num_users in (1, 7, 40):
        single = exchangeable_vulnerability(num_users, channel)
        for gain in GAINS:
            found = several_targets_vulnerability(num_users, channel, 1, gain=gain)
            assert found.lower <= single.upper
            assert single.lower <= found.upper
            assert found.upper - found.lower <= 1e-10


def test_everybody_a_target():
    # A shuffled dataset guessed whole: one over its number of orders, with two values, on average.
    n = 12
    exact = Fraction(
        sum(math.comb(n, i) * Fraction(1, math.comb(n, i)) for i in range(n + 1)), 2**n
    )
    found = several_targets_vulnerability(n, identity(2), n)
    assert found.lower <= exact <= found.upper
    assert found.upper == pytest.approx(float(exact), rel=1e-9)


def test_greedy_takes_the_largest_product():
    rng = Entropy.from_seed(3).generator()
    for _ in range(40):
        size, num_targets = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        counts = rng.multinomial(num_targets + int(rng.integers(0, 6)), np.full(size, 1.0 / size))
        best = max(
            math.prod(
                math.perm(int(count), guess.count(x)) for x, count in enumerate(counts.tolist())
            )
            for guess in itertools.combinations_with_replacement(range(size), num_targets)
        )
        total = int(counts.sum())
        found = _greedy(counts[None, :].astype(float), total, num_targets)[0]
        assert found == pytest.approx(best / math.perm(total, num_targets), rel=1e-13)


def test_order_of_gains():
    for num_targets in (2, 3):
        bounds = {
            gain: several_targets_vulnerability(30, k_rr(3, 0.8), num_targets, gain=gain)
            for gain in GAINS
        }
        single = exchangeable_vulnerability(30, k_rr(3, 0.8))
        assert bounds["all"].upper < single.lower < single.upper < bounds["any"].lower
        mean = bounds["expected"].upper
        assert bounds["all"].upper * num_targets < mean < num_targets * bounds["any"].lower
    # More targets, more users, more noise: never easier.
    ends = [several_targets_vulnerability(30, k_rr(3, 0.8), t).upper for t in (1, 2, 3, 4)]
    assert ends == sorted(ends, reverse=True)
    ends = [several_targets_vulnerability(n, k_rr(3, 0.8), 2).upper for n in (2, 5, 20, 60)]
    assert ends == sorted(ends, reverse=True)
    ends = [several_targets_vulnerability(30, k_rr(3, p), 2).upper for p in (0.4, 0.6, 0.8, 1.0)]
    assert ends == sorted(ends)


def test_blind_guesses_are_the_floor():
    blind = several_targets_vulnerability(50, k_rr(3, 1.0 / 3.0), 4)
    assert blind.lower == pytest.approx(3.0**-4, rel=1e-12)
    known = several_targets_vulnerability(50, k_rr(3, 0.9), 5, prior=[0, 0, 1])
    assert known.upper == 1.0
    assert known.lower == pytest.approx(1.0, abs=1e-11)
    unknown = several_targets_vulnerability(50, k_rr(3, 0.9), 2, prior=[0, 0, 1], gain="any")
    assert unknown.lower == pytest.approx(1.0, abs=1e-11)


def test_a_large_collection():
    expected = several_targets_vulnerability(10**9, k_rr(2, 0.8), 100, gain="expected")
    single = exchangeable_vulnerability(10**9, k_rr(2, 0.8))
    assert expected.upper == pytest.approx(100.0 * single.upper, rel=1e-12)
    crowd = several_targets_vulnerability(10**4, k_rr(2, 0.8), 2)
    assert 0.25 < crowd.lower <= crowd.upper < 0.26


@pytest.mark.parametrize(
    ("arguments", "named", "error", "match"),
    [
        ((0, identity(2), 1), {}, ParameterError, "num_users = 0"),
        ((5, identity(2), 0), {}, ParameterError, "num_targets = 0"),
        ((5, identity(2), 6), {}, ParameterError, "above num_users"),
        ((5, identity(2), 1), {"gain": "most"}, ParameterError, "gain = 'most'"),
        ((5, identity(2), 1), {"prior": [0.5, 0.4]}, ParameterError, "prior sums"),
        ((10**6, identity(5), 2), {}, OutOfRegimeError, "histograms"),
        ((100, k_rr(5, 0.8), 12), {}, OutOfRegimeError, "guesses"),
    ],
)
def test_refusals(arguments, named, error, match):
    with pytest.raises(error, match=match):
        several_targets_vulnerability(*arguments, **named)
