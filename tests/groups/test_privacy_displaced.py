"""Noise on places: how rarely crowds are small, and what that makes of epsilon and delta."""

import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import binom, poisson

from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.groups.privacy import (
    DISPLACEMENT_ASSUMPTIONS,
    crowd_with_mean,
    displaced_epsilon,
)

ONE = LocalProfile(epsilon0=1.0)
BINARY = LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2)


@pytest.mark.parametrize("mean", [1.0, 1.5, 4.0, 7.3, 60.0, 470.0, 1e4, 1e9])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_crowds_are_no_smaller_than_poisson_says(mean, delta):
    law = crowd_with_mean(mean, delta=delta)
    assert law.sizes[0] <= mean + 1
    for size, miss in zip(law.sizes, law.misses, strict=True):
        exact = poisson.cdf(size - 2, mean)
        assert miss >= exact * (1 - 1e-9)
        assert miss <= 3.0 * exact or size <= 2 or miss <= 1e-290
    assert law.misses[-1] <= max(1e-4 * delta, math.exp(-mean) * 1.0001)


def test_sums_of_unequal_coins_are_no_smaller():
    generator = Entropy.from_seed(1).generator()
    for _ in range(40):
        chances = generator.random(int(generator.integers(2, 60))) ** generator.uniform(0.2, 5.0)
        masses = np.ones(1)
        for chance in chances:
            masses = np.convolve(masses, [1.0 - chance, chance])
        law = crowd_with_mean(float(chances.sum()) * (1 - 1e-12), delta=1e-9)
        if law is not None:
            for size, miss in zip(law.sizes, law.misses, strict=True):
                assert miss >= masses[: size - 1].sum() - 1e-15


def test_the_binomial_law_is_the_worst_of_sums():
    # Hoeffding's theorem and that of Anderson and Samuels, where they are used.
    for users, chance in ((10, 0.3), (40, 0.9), (500, 0.02)):
        mean = users * chance
        for count in range(int(mean)):
            assert binom.cdf(count, users, chance) <= poisson.cdf(count, mean) * (1 + 1e-12)


@pytest.mark.parametrize("mean", [1.5, 4.0, 7.3, 60.0])
def test_that_nobody_hides_the_victim_is_rounded_up(mean):
    law = crowd_with_mean(mean, delta=1e-9)
    miss = dict(zip(law.sizes, law.misses, strict=True))[2]
    with mp.workdps(40):
        assert mp.exp(-mpf(mean)) <= miss


def test_too_small_a_crowd_hides_nobody():
    assert crowd_with_mean(0.99, delta=1e-6) is None
    assert displaced_epsilon(ONE, num_users=9, expected_crowd=0.5, delta=1e-6).method == "local"


@pytest.mark.parametrize("profile", [ONE, BINARY])
def test_epsilon_falls_with_the_crowd_between_both_ends(profile):
    asked = {"num_users": 2_001, "delta": 1e-6}
    found = [
        displaced_epsilon(profile, expected_crowd=mean, **asked)
        for mean in (0.0, 30.0, 200.0, 1_000.0, 2_000.0)
    ]
    uppers = [each.upper for each in found]
    assert all(later <= earlier for earlier, later in pairwise(uppers))
    assert uppers[0] == pytest.approx(1.0, rel=1e-5)
    uniform = account_epsilon(profile, num_users=2_001, delta=1e-6)
    assert uppers[-1] == uniform.upper
    few = {"num_users": 3, "delta": 1e-3}
    nearly = displaced_epsilon(profile, expected_crowd=1.9, **few)
    assert nearly.upper > account_epsilon(profile, **few).upper
    assert all(each.lower <= each.upper for each in found)
    assert all(each.assumptions[:4] == DISPLACEMENT_ASSUMPTIONS for each in found)
    # The random size costs little: some 4 % here.
    smaller = account_epsilon(profile, num_users=1_001, delta=1e-6).upper
    assert smaller <= uppers[3] <= 1.05 * smaller


@pytest.mark.parametrize("mean", [1.0, 2.0, 3.0])
def test_victims_whom_nobody_hides_count(mean):
    delta = 0.05
    epsilon = displaced_epsilon(ONE, num_users=5, expected_crowd=mean, delta=delta).upper
    alone = [account_delta(ONE, num_users=1 + k, epsilon=epsilon).upper for k in range(5)]
    assert binom.pmf(np.arange(5), 4, mean / 4.0) @ alone <= delta * (1.0 + 1e-9)


def test_without_a_lower_end_and_with_delta_zero():
    asked = {"num_users": 100, "expected_crowd": 60.0}
    assert displaced_epsilon(ONE, delta=1e-6, with_lower=False, **asked).lower is None
    assert displaced_epsilon(ONE, delta=0.0, **asked).method == "local"


@pytest.mark.parametrize(
    ("crowd", "message"), [(-1.0, "expected_crowd"), (math.nan, "expected_crowd"), (9.5, "above 9")]
)
def test_impossible_crowds_are_refused(crowd, message):
    with pytest.raises(ParameterError, match=message):
        displaced_epsilon(ONE, num_users=10, expected_crowd=crowd, delta=1e-6)
