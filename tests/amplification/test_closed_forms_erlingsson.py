import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer, k_rr
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.errors import OutOfRegimeError

NUM_USERS = st.integers(2, 10**15)
DELTAS = st.floats(1e-300, 0.999)
HAIR = mpf("1e-12")


def general_epsilon(epsilon0, num_users, delta):
    return METHODS["erlingsson"].epsilon(any_randomizer(epsilon0), num_users, delta).upper


def general_delta(epsilon0, num_users, epsilon):
    return METHODS["erlingsson"].delta(any_randomizer(epsilon0), num_users, epsilon).upper


def moderate_epsilon(epsilon0, num_users, delta):
    return METHODS["erlingsson-moderate"].epsilon(any_randomizer(epsilon0), num_users, delta).upper


def small_epsilon(epsilon0, num_users, delta):
    return METHODS["erlingsson-small"].epsilon(any_randomizer(epsilon0), num_users, delta).upper


def exact_general(epsilon0, num_users, delta):
    p = mp.exp(mpf(epsilon0))
    step = 2 * p**2 * mp.expm1(mpf(epsilon0)) / num_users
    return step * mp.sqrt(2 * num_users * -mp.log(mpf(delta))) + num_users * step * mp.expm1(step)


def exact_moderate(epsilon0, num_users, delta):
    growth = mp.exp(2 * mpf(epsilon0)) * mp.expm1(mpf(epsilon0))
    return growth * mp.sqrt(8 * -mp.log(mpf(delta)) / num_users) + 6 * growth**2 / num_users


def exact_small(epsilon0, num_users, delta):
    return 12 * mpf(epsilon0) * mp.sqrt(-mp.log(mpf(delta)) / num_users)


@pytest.mark.parametrize(
    ("ours", "exact"),
    [
        (general_epsilon, exact_general),
        (moderate_epsilon, exact_moderate),
        (small_epsilon, exact_small),
    ],
)
@given(st.floats(1e-12, 12.0), NUM_USERS, DELTAS)
def test_formulas_from_above_by_a_hair(ours, exact, epsilon0, num_users, delta):
    value, truth = ours(epsilon0, num_users, delta), exact(epsilon0, num_users, delta)
    if math.isinf(value):
        assert truth > 700
        return
    # A step of a few hundred loses as many ulps in its exponential.
    step = 2.0 * math.exp(2.0 * epsilon0) * math.expm1(epsilon0) / num_users
    assert truth <= value <= truth * (1 + HAIR * max(1.0, step))


@given(st.floats(1e-6, 3.0), st.integers(1000, 10**12), st.floats(1e-250, 0.9))
def test_delta_forms_are_inverses(epsilon0, num_users, around):
    epsilon = float(exact_general(epsilon0, num_users, around))
    delta = general_delta(epsilon0, num_users, epsilon)
    assert delta == pytest.approx(around, rel=1e-6) or delta == 1.0
    if delta == 1.0:  # given up where the drift takes all of epsilon
        return
    assert exact_general(epsilon0, num_users, delta) <= epsilon
    # and no smaller delta would do, but for the rounding of a large exponent
    assert exact_general(epsilon0, num_users, delta * (1.0 - 1e-11)) >= epsilon * (1.0 - 1e-12)


@pytest.mark.parametrize(
    ("method", "exact"),
    [
        ("erlingsson", exact_general),
        ("erlingsson-moderate", exact_moderate),
        ("erlingsson-small", exact_small),
    ],
)
@pytest.mark.parametrize("epsilon0", [1e-6, 0.01, 0.1, 0.49])
@pytest.mark.parametrize("num_users", [1000, 10**6, 10**12])
def test_through_the_registry_in_both_directions(method, exact, epsilon0, num_users):
    profile = any_randomizer(epsilon0)
    for delta in (1e-200, 1e-12, 1e-3, 0.0099):
        by_delta = account_epsilon(
            profile, num_users=num_users, delta=delta, method=method, with_lower=False
        )
        truth = exact(epsilon0, num_users, delta)
        assert truth <= by_delta.upper <= truth * (1 + HAIR)
        if by_delta.upper < epsilon0:
            back = account_delta(
                profile,
                num_users=num_users,
                epsilon=by_delta.upper,
                method=method,
                with_lower=False,
            )
            assert delta * (1.0 - 1e-12) <= back.upper <= delta * (1.0 + 1e-9)
            assert exact(epsilon0, num_users, back.upper) <= by_delta.upper
            assert by_delta.method == back.method == method


@pytest.mark.parametrize("method", ["erlingsson", "erlingsson-moderate", "erlingsson-small"])
def test_no_delta_is_claimed_where_none_is_proved(method):
    # At epsilon = 0, and below the drift, the theorem says nothing.
    assert (
        account_delta(any_randomizer(0.4), num_users=2000, epsilon=0.0, method=method).upper == 1.0
    )


@pytest.mark.parametrize("method", ["erlingsson", "erlingsson-moderate", "erlingsson-small"])
@pytest.mark.parametrize("epsilon0", [5e-324, 1e-320, 1e-300])
def test_a_delta_of_zero_by_underflow_is_not_claimed(method, epsilon0):
    bound = account_delta(any_randomizer(epsilon0), num_users=10**6, epsilon=0.0, method=method)
    assert bound.upper > 0.0


@pytest.mark.parametrize("method", ["erlingsson", "erlingsson-moderate", "erlingsson-small"])
def test_the_floor_of_deltas_is_the_same_for_every_method(method):
    # The registry promises: at least 1e-300 unless delta is exactly 0.
    bound = account_delta(any_randomizer(0.01), num_users=10**9, epsilon=0.009, method=method)
    assert bound.upper == 1e-300


@pytest.mark.parametrize(
    ("method", "epsilon0", "num_users", "delta", "hypothesis"),
    [
        ("erlingsson", 0.1, 1, 1e-6, "num_users > 1"),
        ("erlingsson-moderate", 2.0, 1000, 1e-6, r"epsilon0 <= ln\(num_users / 4\) / 3"),
        ("erlingsson-moderate", 0.1, 1, 1e-6, r"epsilon0 <= ln\(num_users / 4\) / 3"),
        ("erlingsson-moderate", 0.1, 4, 1e-6, r"epsilon0 <= ln\(num_users / 4\) / 3"),
        ("erlingsson-small", 0.1, 999, 1e-6, "num_users >= 1000"),
        ("erlingsson-small", 0.5, 1000, 1e-6, "epsilon0 < 1/2"),
        ("erlingsson-small", 0.1, 1000, 0.01, "delta < 1/100"),
    ],
)
def test_outside_their_hypotheses(method, epsilon0, num_users, delta, hypothesis):
    with pytest.raises(OutOfRegimeError, match=hypothesis) as caught:
        account_epsilon(any_randomizer(epsilon0), num_users=num_users, delta=delta, method=method)
    assert method in str(caught.value)
    assert f"num_users = {num_users}" in str(caught.value)


def test_the_small_form_gives_no_delta_outside_its_regime():
    profile = any_randomizer(0.4)
    edge = small_epsilon(0.4, 10_000, 0.00999)
    inside = account_delta(profile, num_users=10_000, epsilon=edge, method="erlingsson-small")
    outside = account_delta(
        profile, num_users=10_000, epsilon=0.99 * edge, method="erlingsson-small"
    )
    assert inside.upper == pytest.approx(0.00999, rel=1e-9)
    assert outside.upper == 1.0


@pytest.mark.parametrize("epsilon0", [4.0, 8.0, 100.0, 199.0, 300.0])
def test_no_finite_bound_is_no_bound(epsilon0):
    assert general_epsilon(epsilon0, 10, 1e-6) >= min(exact_general(epsilon0, 10, 1e-6), 1e308)
    assert general_delta(epsilon0, 10, 1.0) == 1.0


@pytest.mark.parametrize("epsilon0", [8.0, 30.0, 100.0, 199.0])
def test_infinity_is_an_error_that_says_what_to_use(epsilon0):
    with pytest.raises(OutOfRegimeError, match="no finite bound here; use method='best'"):
        account_epsilon(any_randomizer(epsilon0), num_users=100, delta=1e-6, method="erlingsson")


@pytest.mark.parametrize("epsilon0", [201.0, 1e4, 1e308])
def test_from_far_beyond_any_amplification_the_local_bound_answers(epsilon0):
    bound = account_epsilon(
        any_randomizer(epsilon0), num_users=100, delta=1e-6, method="erlingsson"
    )
    assert bound.method == "local"
    assert 0.99 * epsilon0 < bound.upper <= epsilon0


def test_they_are_never_the_best():
    for epsilon0 in (0.01, 0.1, 0.4):
        for num_users in (10_000, 10**7):
            best = account_epsilon(k_rr(epsilon0, 8), num_users=num_users, delta=1e-6)
            for name in ("erlingsson", "erlingsson-moderate", "erlingsson-small"):
                assert METHODS[name].violated_hypothesis(k_rr(epsilon0, 8), num_users, 1e-6) is None
                other = account_epsilon(
                    k_rr(epsilon0, 8), num_users=num_users, delta=1e-6, method=name
                )
                assert best.upper < other.upper
