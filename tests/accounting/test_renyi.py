"""The detour over Renyi divergences: sound, and never better than the way without it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import discrete_pairs, gaussian_pairs, profiles
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.accounting.discretization import dominated_loss, dominating_loss
from shuffledp.accounting.privacy_loss import HockeyStickCurve, PrivacyLoss
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.accounting.renyi import (
    RENYI_CONVERTED,
    converted_delta,
    converted_epsilon,
    epsilon_from_renyi,
    renyi_divergence,
    renyi_of_loss,
)
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile

PAIRS = {
    "one bit": [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))],
    "three answers": [
        (Fraction(1, 2), Fraction(1, 4)),
        (Fraction(1, 4), Fraction(1, 2)),
        (Fraction(1, 4), Fraction(1, 4)),
    ],
    "lopsided": [(Fraction(1, 3), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 2))],
    "nearly equal": [
        (Fraction(10001, 20000), Fraction(1, 2)),
        (Fraction(9999, 20000), Fraction(1, 2)),
    ],
}

# One curve for all examples, so that its values are computed once.
THREE_ANSWERS = discrete_pairs.curve_of(PAIRS["three answers"])


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("order", [1.0, 1.0001, 1.5, 2.0, 10.0, 100.0, 1000.0, math.inf])
def test_small_pairs_exactly(name, order):
    pair = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in PAIRS[name]]
    curve = discrete_pairs.curve_of(PAIRS[name])
    for swapped in (False, True):
        rows = [(q, p) for p, q in pair] if swapped else pair
        exact = (
            max(mp.log(p / q) for p, q in rows)
            if math.isinf(order)
            else discrete_pairs.renyi(rows, order)
        )
        asked = curve.reversed if swapped else curve
        upper = renyi_divergence(asked, order, upper=True)
        lower = renyi_divergence(asked, order, upper=False)
        assert lower <= exact <= upper
        assert lower >= 0.998 * exact
        # the highest loss of the pair may be that of the other order
        assert upper <= 1.002 * exact or math.isinf(order)
        assert upper <= curve.highest


@pytest.mark.parametrize("order", [1.0, 2.0, 10.0, 100.0, math.inf])
def test_a_rare_but_large_loss(order):
    # far beyond what the deviation suggests, where knots are few
    pair = [
        (Fraction(21, 10000), Fraction(1, 10000)),
        (Fraction(9979, 10000), Fraction(9999, 10000)),
    ]
    curve = discrete_pairs.curve_of(pair)
    rows = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in pair]
    exact = mp.log(21) if math.isinf(order) else discrete_pairs.renyi(rows, order)
    upper = renyi_divergence(curve, order, upper=True)
    lower = renyi_divergence(curve, order, upper=False)
    assert 0.5 * exact <= lower <= exact <= upper <= 1.1 * exact


@pytest.mark.parametrize("mu", [1e-7, 0.01, 1.0])
@pytest.mark.parametrize("order", [1.0, 1.5, 10.0])
def test_gaussian_divergences_from_below(mu, order):
    curve = gaussian_pairs.curve(mu)
    exact = order * mu * mu / 2.0
    lower = renyi_divergence(curve, order, upper=False)
    assert 0.998 * exact <= lower <= exact
    assert renyi_divergence(curve, order, upper=True) == math.inf  # no value excludes it


def test_a_gaussian_that_ends_from_above():
    # Beyond 0.3 = 30 deviations the tail no longer matters.
    gaussian = gaussian_pairs.curve(0.01)
    curve = HockeyStickCurve(forward=gaussian.forward, backward=gaussian.backward, highest=0.3)
    for order in (1.0, 2.0, 60.0):
        exact = order * 1e-4 / 2.0
        assert exact <= renyi_divergence(curve, order, upper=True) <= 1.002 * exact
    # A finer grid helps, as asked.
    close = renyi_divergence(curve, 2.0, upper=True, accuracy=1e-4)
    assert 1e-4 <= close <= 1.0002e-4


@settings(max_examples=30)
@given(st.floats(1.0, 50.0), st.floats(1.0, 50.0))
def test_divergences_grow_with_the_order(first, second):
    low, high = sorted((first, second))
    least = renyi_divergence(THREE_ANSWERS, low, upper=False)
    assert least <= renyi_divergence(THREE_ANSWERS, high, upper=True)


def test_nothing_to_tell_apart():
    zero = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 0.0), backward=lambda _: Enclosure(0.0, 0.0), highest=1.0
    )
    for order in (1.0, 2.0, math.inf):
        assert renyi_divergence(zero, order, upper=True) == 0.0
    tiny = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 1e-9), backward=lambda _: Enclosure(0.0, 1e-9), highest=1.0
    )
    assert renyi_divergence(tiny, 2.0, upper=False) == 0.0
    assert renyi_divergence(tiny, math.inf, upper=False) == 0.0


@pytest.mark.parametrize("order", [1.5, 2.0, 30.0])
def test_of_a_law(order):
    pair = PAIRS["three answers"]
    rows = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in pair]
    exact = discrete_pairs.renyi(rows, order)
    curve = discrete_pairs.curve_of(pair)
    upper = renyi_of_loss(dominating_loss(curve, 0.0078125, 1e-12), order)
    lower = renyi_of_loss(dominated_loss(curve, 0.0078125, 1e-12), order)
    assert 0.97 * exact <= lower <= exact <= upper <= 1.02 * exact


def test_of_odd_laws():
    def law(masses, infinite, direction):
        return PrivacyLoss(
            interval=1.0,
            first=0,
            masses=np.array(masses),
            infinite_mass=infinite,
            error=0.0,
            direction=direction,
        )

    assert renyi_of_loss(law([0.9], 0.1, "upper"), 2.0) == math.inf
    assert renyi_of_loss(law([0.0], 0.0, "lower"), 2.0) == 0.0
    assert renyi_of_loss(law([0.5], 0.0, "lower"), 2.0) == 0.0
    for order in (1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match="order"):
            renyi_of_loss(law([1.0], 0.0, "upper"), order)


@pytest.mark.parametrize("order", [0.999, -1.0, math.nan])
def test_orders_below_one_are_refused(order):
    curve = gaussian_pairs.curve(1.0)
    with pytest.raises(ParameterError, match="order"):
        renyi_divergence(curve, order, upper=True)
    with pytest.raises(ParameterError, match="order"):
        epsilon_from_renyi([order], [1.0], 1e-6)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
def test_conversion_against_the_gaussian(rho, delta):
    # D_alpha = rho alpha: a valid epsilon, and not far above the exact one.
    orders = [1.0 + 0.5 * 1.05**i for i in range(250)]
    epsilon = epsilon_from_renyi(orders, [rho * order for order in orders], delta)
    mu = math.sqrt(2.0 * rho)
    assert gaussian_pairs.delta(mu, epsilon) <= delta
    assert gaussian_pairs.delta(mu, 0.85 * epsilon) > delta


def test_conversion_is_attained():
    # At one order the bound is sharp for loss epsilon + ln(alpha/(alpha - 1)) or -inf.
    alpha, epsilon = mpf(3), mpf(2)
    loss = epsilon + mp.log(alpha / (alpha - 1))
    chance = mpf(1) / 100
    divergence = mp.log(chance * mp.exp((alpha - 1) * loss)) / (alpha - 1)
    delta = chance * (1 - mp.exp(epsilon - loss))
    found = epsilon_from_renyi([3.0], [float(divergence)], float(delta))
    assert found == pytest.approx(2.0, abs=1e-12)


def test_conversion_of_odd_orders():
    assert epsilon_from_renyi([math.inf, 1.0], [0.7, 0.1], 1e-6) == 0.7
    assert epsilon_from_renyi([1.0], [0.1], 1e-6) == math.inf
    assert epsilon_from_renyi([], [], 1e-6) == math.inf
    assert epsilon_from_renyi([2.0], [math.inf], 1e-6) == math.inf
    assert epsilon_from_renyi([2.0], [0.0], 0.9) == 0.0
    with pytest.raises(ParameterError, match="2 orders but 1 values"):
        epsilon_from_renyi([2.0, 3.0], [0.1], 1e-6)
    with pytest.raises(ParameterError, match="value"):
        epsilon_from_renyi([2.0], [math.nan], 1e-6)
    with pytest.raises(ParameterError, match="delta"):
        epsilon_from_renyi([2.0], [1.0], 0.0)


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
