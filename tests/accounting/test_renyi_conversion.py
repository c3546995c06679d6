"""The detour over Renyi divergences: sound, and never better than the way without it."""

import math

import pytest

from oracles import profiles
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.accounting.renyi_conversion import (
    RENYI_CONVERTED,
    converted_delta,
    converted_epsilon,
)
from shuffledp.core.errors import PrecisionError
from shuffledp.core.profile import LocalProfile

CASES = [
    (profiles.any_randomizer(1.0), 1000),
    (profiles.any_randomizer(4.0), 10_000),
    (profiles.k_rr(1.0, 2), 100),
    (profiles.k_rr(2.0, 8), 1000),
]


@pytest.mark.parametrize(("profile", "num_users"), CASES)
def test_it_loses_some_per_cent_of_epsilon(profile, num_users):
    best = account_epsilon(profile, num_users=num_users, delta=1e-6)
    assert best.upper < converted_epsilon(profile, num_users, 1e-6) < 1.2 * best.upper


@pytest.mark.parametrize(("profile", "num_users"), CASES)
def test_it_loses_a_factor_of_delta(profile, num_users):
    epsilon = account_epsilon(profile, num_users=num_users, delta=1e-6).upper
    best = account_delta(profile, num_users=num_users, epsilon=epsilon)
    assert best.upper < converted_delta(profile, num_users, epsilon) < 10.0 * best.upper


@pytest.mark.parametrize(("profile", "num_users"), CASES)
def test_epsilon_and_delta_are_inverse(profile, num_users):
    epsilon = converted_epsilon(profile, num_users, 1e-6)
    assert 0.5e-6 < converted_delta(profile, num_users, epsilon) < 2e-6


def test_delta_is_the_formula_at_the_best_order():
    profile, num_users, epsilon = profiles.any_randomizer(1.0), 1000, 0.2
    found = converted_delta(profile, num_users, epsilon)
    orders = [float(order) for order in range(2, 250)]
    curve = ShuffledRelease(profile=profile, num_users=num_users).renyi(orders, with_lower=False)
    direct = min(
        (1.0 - 1.0 / order) ** (order - 1.0) / order * math.exp((order - 1.0) * (value - epsilon))
        for order, value in zip(curve.orders, curve.upper, strict=True)
    )
    assert direct * (1.0 - 1e-6) <= found < 1.3 * direct


def test_nothing_is_gained_below_one_user_or_said_above_one():
    assert converted_delta(profiles.any_randomizer(1.0), 1, 1e-9) <= 1.0
    assert converted_epsilon(profiles.any_randomizer(1.0), 1, 1e-6) >= 1.0


@pytest.mark.parametrize(
    ("profile", "num_users", "delta", "match"),
    [
        (LocalProfile(epsilon0=0.0), 100, 1e-6, "epsilon0"),
        (LocalProfile(epsilon0=201.0), 100, 1e-6, "epsilon0"),
        (LocalProfile(epsilon0=0.0), 100, None, "epsilon0"),
        (LocalProfile(epsilon0=1.0, delta0=1e-9), 100, 1e-6, "delta0"),
        (LocalProfile(epsilon0=1.0), 10**7, 1e-6, "fewer users"),
    ],
)
def test_hypotheses(profile, num_users, delta, match):
    assert match in RENYI_CONVERTED.violated_hypothesis(profile, num_users, delta)


def test_within_its_hypotheses_it_says_so():
    for delta in (1e-6, None):
        violated = RENYI_CONVERTED.violated_hypothesis(LocalProfile(epsilon0=1.0), 1000, delta)
        assert violated is None
    profile = LocalProfile(epsilon0=1.0)
    assert RENYI_CONVERTED.epsilon(profile, 1000, 1e-6).upper == converted_epsilon(
        profile, 1000, 1e-6
    )
    assert RENYI_CONVERTED.delta(profile, 1000, 0.2).upper == converted_delta(profile, 1000, 0.2)


def test_orders_beyond_double_precision_are_refused():
    with pytest.raises(PrecisionError, match="beyond double precision"):
        converted_delta(LocalProfile(epsilon0=1.0), 10**7, 0.5)
