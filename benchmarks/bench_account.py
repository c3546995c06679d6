"""Milliseconds and bracket widths of the accountant, beside the published algorithm.

The baseline is what the clone bound's authors publish, in NumPy and SciPy: for each epsilon of a
bisection, a sum over every number of clones that matters. ``extra_info`` has

- ``bracket``: relative width of the rigorous enclosure of the method's own value;
- ``gap``: relative distance from what is published to what is proved to be unavoidable;
- ``times_baseline``: how much faster than the baseline, measured just before in the same run.
"""

import time

import numpy as np
import pytest
from scipy import stats

from oracles.family_laws import atom_epsilon
from shuffledp.amplification import clones_and_families as families
from shuffledp.amplification.registry import METHODS, account_epsilon
from shuffledp.core.profile import LocalProfile, RandomizerFamily

DELTA = 1e-6
EPSILONS0 = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
USERS = tuple(10**power for power in range(3, 13))
LARGEST_FOR_BASELINE = 10**6  # beyond it the baseline takes minutes
BISECTION_STEPS = 30


def published_algorithm(epsilon0, num_users):
    """Return the clone bound by a sum over all numbers of clones, for each step of a bisection."""
    p = np.exp(epsilon0)
    mass = 2 / (p + 1)
    spread = 8 * np.sqrt(num_users * mass * (1 - mass)) + 10
    clones = np.arange(
        max(0, int(num_users * mass - spread)), min(num_users - 1, int(num_users * mass + spread))
    )
    weights = stats.binom.pmf(clones, num_users - 1, mass)
    low, high = 0.0, epsilon0
    for _ in range(BISECTION_STEPS):
        epsilon = (low + high) / 2
        e = np.exp(epsilon)
        threshold = np.floor((p * e - 1) / ((p - 1) * (1 + e)) * (clones + 1)) + 1
        one_less = stats.binom.sf(threshold - 2, clones, 0.5)
        tail = stats.binom.sf(threshold - 1, clones, 0.5)
        delta = weights @ ((p - e) / (p + 1) * one_less - (p * e - 1) / (p + 1) * tail)
        low, high = (epsilon, high) if delta > DELTA else (low, epsilon)
    return high


def record(benchmark, bound, enclosure):
    """Keep what the time was spent for; where epsilon is 0, everything is exact."""
    benchmark.extra_info["upper"] = bound.upper
    benchmark.extra_info["gap"] = bound.gap
    width = enclosure.upper - enclosure.lower
    benchmark.extra_info["bracket"] = width / enclosure.upper if width > 0.0 else 0.0


@pytest.mark.parametrize("num_users", USERS)
@pytest.mark.parametrize("epsilon0", EPSILONS0)
def test_any_randomizer(benchmark, epsilon0, num_users):
    """Bound epsilon of any epsilon0-LDP randomizer; the lower end is timed apart."""
    profile = LocalProfile(epsilon0=epsilon0)
    if num_users <= LARGEST_FOR_BASELINE:
        start = time.perf_counter()
        expected = published_algorithm(epsilon0, num_users)
        baseline_seconds = time.perf_counter() - start
    account_epsilon(profile, num_users=1000, delta=DELTA)  # compile
    account_epsilon(profile, num_users=10**8, delta=DELTA)
    enclosure = benchmark.pedantic(
        atom_epsilon,
        (families.clone_law(epsilon0), num_users, DELTA, epsilon0),
        rounds=5,
        warmup_rounds=1,
    )
    start = time.perf_counter()
    bound = account_epsilon(profile, num_users=num_users, delta=DELTA)
    benchmark.extra_info["milliseconds_with_lower_end"] = 1e3 * (time.perf_counter() - start)
    record(benchmark, bound, enclosure)
    if num_users <= LARGEST_FOR_BASELINE:
        assert bound.upper == pytest.approx(expected, rel=1e-4)
        if benchmark.enabled:
            median = benchmark.stats.stats.median
            benchmark.extra_info["times_baseline"] = baseline_seconds / median


@pytest.mark.parametrize("num_users", USERS)
@pytest.mark.parametrize("k", [2, 16, 1024, 10_000])
@pytest.mark.parametrize("epsilon0", [1.0, 4.0])
def test_k_randomized_response(benchmark, epsilon0, k, num_users):
    """Account for k-RR, lower end included."""
    profile = LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=k
    )
    account_epsilon(profile, num_users=1000, delta=DELTA)  # compile
    bound = benchmark.pedantic(
        account_epsilon,
        (profile,),
        {"num_users": num_users, "delta": DELTA},
        rounds=3,
        warmup_rounds=1,
    )
    enclosure = (
        METHODS["binary-exact"].epsilon(profile, num_users, DELTA)
        if k == 2
        else atom_epsilon(families.family_law(profile), num_users, DELTA, profile.epsilon0)
    )
    record(benchmark, bound, enclosure)
