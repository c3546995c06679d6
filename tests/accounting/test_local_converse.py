import math

import pytest
from scipy.stats import binom

from oracles.profiles import any_randomizer
from shuffledp.accounting.amplification.clones import CLONES
from shuffledp.accounting.amplification.erlingsson import general_epsilon, small_epsilon
from shuffledp.accounting.amplification.feldman_2021 import FELDMAN_2021_NUMERICAL
from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.accounting.local_converse import (
    central_epsilon_upper,
    local_epsilon0_lower,
    local_error_lower,
    shuffling_penalty_lower,
)
from shuffledp.core.errors import ParameterError

FAILURE = 0.25


def counting_error(epsilon, delta):
    """Half a distance k at which no (epsilon, delta)-DP count is right on both sides.

    If the error is below k/2 with probability above 1 - FAILURE on two datasets k apart, the events
    are disjoint; group privacy demands 1 - FAILURE <= e^(k epsilon) FAILURE + the group's delta.
    """
    k = 0
    while True:
        grown = math.exp((k + 1) * epsilon)
        group_delta = delta * sum(math.exp(j * epsilon) for j in range(k + 1))
        if grown * FAILURE + group_delta >= 1.0 - FAILURE:
            return 0.5 * k
        k += 1


def randomized_response_error(epsilon0, num_users, ones):
    """The (1 - FAILURE) quantile of the error of the unbiased count."""
    p = math.exp(epsilon0)
    keep = p / (p + 1.0)
    law = binom.pmf(range(num_users + 1), ones, keep)
    other = binom.pmf(range(num_users + 1), num_users - ones, 1.0 - keep)
    sums = [0.0] * (2 * num_users + 1)
    for i, mass in enumerate(law):
        if mass > 1e-14:
            for j, share in enumerate(other):
                sums[i + j] += mass * share
    errors = sorted(
        (abs((s - num_users * (1.0 - keep)) / (2.0 * keep - 1.0) - ones), mass)
        for s, mass in enumerate(sums)
    )
    total = 0.0
    for error, mass in errors:
        total += mass
        if total >= 1.0 - FAILURE:
            return error
    raise AssertionError


@pytest.mark.parametrize("epsilon0", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("identical", [False, True])
def test_randomized_response_does_not_beat_the_converse(epsilon0, identical):
    num_users, delta = 400, 1e-6
    lower = local_error_lower(
        lambda epsilon: counting_error(epsilon, delta),
        epsilon0=epsilon0,
        num_users=num_users,
        delta=delta,
        identical_randomizers=identical,
    )
    worst = max(randomized_response_error(epsilon0, num_users, ones) for ones in (0, 200, 400))
    assert 0.0 < lower <= worst
    # and it says more than the central bound at epsilon0
    assert lower > counting_error(epsilon0, delta)


@pytest.mark.parametrize("epsilon0", [1e-6, 0.1, 0.49, 2.0, 8.0])
@pytest.mark.parametrize("num_users", [1, 2, 1000, 10**8])
def test_the_central_epsilon_is_the_smallest_of_those_that_hold(epsilon0, num_users):
    delta = 1e-6
    found = central_epsilon_upper(epsilon0, num_users=num_users, delta=delta)
    assert found <= epsilon0
    assert found <= FELDMAN_2021_NUMERICAL.epsilon(any_randomizer(epsilon0), num_users, delta).upper
    if num_users > 1:
        assert found <= general_epsilon(epsilon0, num_users, delta)
    identical = central_epsilon_upper(
        epsilon0, num_users=num_users, delta=delta, identical_randomizers=True
    )
    assert identical <= found
    best = account_epsilon(any_randomizer(epsilon0), num_users=num_users, delta=delta)
    assert best.lower <= identical
    assert identical <= CLONES.epsilon(any_randomizer(epsilon0), num_users, delta).upper


def test_the_penalty_of_the_paper():
    for epsilon0 in (0.01, 0.1, 0.49):
        for num_users in (1000, 10**6):
            for delta in (0.009, 1e-9):
                penalty = shuffling_penalty_lower(epsilon0, num_users=num_users, delta=delta)
                simple = math.sqrt(num_users / -math.log(delta)) / 12.0
                assert penalty >= simple
                assert small_epsilon(epsilon0, num_users, delta) >= epsilon0 / penalty


def test_the_penalty_at_its_ends():
    assert shuffling_penalty_lower(0.0, num_users=100, delta=1e-6) == 1.0
    assert shuffling_penalty_lower(1.0, num_users=1, delta=1e-300) == pytest.approx(1.0)
    assert shuffling_penalty_lower(1e-9, num_users=10**6, delta=1e-3) == math.inf
    for epsilon0 in (201.0, 1e300):
        assert shuffling_penalty_lower(epsilon0, num_users=10**15, delta=1e-6) >= 1.0
    penalties = [shuffling_penalty_lower(0.5, num_users=10**i, delta=1e-6) for i in range(1, 7)]
    assert penalties == sorted(penalties)


@pytest.mark.parametrize("target", [1e-4, 0.01, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("identical", [False, True])
def test_least_local_epsilon0(target, identical):
    known = {"num_users": 10_000, "delta": 1e-6, "identical_randomizers": identical}
    found = local_epsilon0_lower(target, **known)
    assert found >= target
    assert central_epsilon_upper(found, **known) <= target
    assert central_epsilon_upper(found * (1.0 + 1e-5), **known) > target


def test_least_local_epsilon0_at_its_ends():
    assert local_epsilon0_lower(200.0, num_users=10, delta=1e-6) == 200.0
    assert local_epsilon0_lower(1e300, num_users=10, delta=1e-6) == 1e300
    # so lax a delta that epsilon0 hardly matters; still an answer
    assert 150.0 <= local_epsilon0_lower(150.0, num_users=10, delta=1e-6) <= 151.0
    assert local_epsilon0_lower(0.1, num_users=10**15, delta=1e-6) > 20.0


@pytest.mark.parametrize("error", [math.nan, -1.0])
def test_what_is_no_error(error):
    with pytest.raises(ParameterError, match="central_error"):
        local_error_lower(lambda _: error, epsilon0=1.0, num_users=10, delta=1e-6)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon0": -1.0}, "epsilon0"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"num_users": 0}, "num_users"),
        ({"num_users": 10**15 + 1}, "num_users"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
    ],
)
def test_arguments_out_of_range(change, name):
    arguments = {"epsilon0": 1.0, "num_users": 10, "delta": 1e-6} | change
    with pytest.raises(ParameterError, match=name):
        central_epsilon_upper(**arguments)
    with pytest.raises(ParameterError, match="central_epsilon"):
        local_epsilon0_lower(math.nan, num_users=10, delta=1e-6)
