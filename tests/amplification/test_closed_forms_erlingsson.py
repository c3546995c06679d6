import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import enumeration
from oracles.family_laws import both_ends
from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer, k_rr
from shuffledp.amplification.closed_forms import (
    ERLINGSSON_COMPOSED,
    optimal_composition_delta,
    optimal_composition_epsilon,
    step_epsilon,
)
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.entropy import Entropy
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


def composed(step, num_steps, epsilon):
    """Kairouz, Oh, Viswanath as a sum over all numbers of ones, at sixty digits."""
    q, e = 1 / (1 + mp.exp(-mpf(step))), mp.exp(mpf(epsilon))
    total = mpf(0)
    for ones in range(num_steps + 1):
        gain = (
            q**ones * (1 - q) ** (num_steps - ones) - e * q ** (num_steps - ones) * (1 - q) ** ones
        )
        total += mp.binomial(num_steps, ones) * max(gain, 0)
    return total


@pytest.mark.parametrize("step", [1e-9, 1e-4, 0.05, 0.5, 2.0, 6.0, 17.0])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 10, 57, 150])
def test_composition_against_the_sum(step, num_steps):
    for share in (0.0, 1e-3, 0.03, 0.1, 0.3, 0.51, 0.9, 0.9999):
        epsilon = share * num_steps * step
        exact = composed(step, num_steps, epsilon)
        found = optimal_composition_delta(step, num_steps, epsilon)
        assert exact <= found
        if exact > 1e-270:
            assert found <= exact * (1 + mpf("3e-10"))


@pytest.mark.parametrize("step", [1e-3, 0.05, 0.3])
def test_composition_of_many_steps_by_a_recurrence(step):
    num_steps = 20_000
    odds = mp.exp(mpf(step))
    for share in (1e-4, 0.02, 0.1):
        epsilon = share * num_steps * step
        ones = math.floor((num_steps + epsilon / step) / 2) + 1
        mass = mp.binomial(num_steps, ones) * odds**ones / (1 + odds) ** num_steps
        exact = mpf(0)
        while ones <= num_steps:
            term = mass * -mp.expm1(mpf(epsilon) - (2 * ones - num_steps) * mpf(step))
            exact += max(term, 0)
            if exact > 0 and term < exact * mpf("1e-30") and ones > num_steps * odds / (1 + odds):
                break
            mass *= odds * (num_steps - ones) / (ones + 1)
            ones += 1
        found = optimal_composition_delta(step, num_steps, epsilon)
        assert exact <= found <= max(exact, mpf("1e-280")) * (1 + mpf("1e-9"))


def test_composition_in_the_central_limit():
    # n steps of mu/sqrt(n): a Gaussian mechanism with mean shift mu, at n = 1e15
    mu, n = 0.5, 10**15
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0))  # noqa: E731
    for epsilon in (0.0, 0.3, 1.5):
        exact = normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)
        found = optimal_composition_delta(mu / math.sqrt(n), n, epsilon)
        assert found == pytest.approx(exact, rel=1e-5)


def test_composition_at_its_ends():
    assert optimal_composition_delta(0.1, 10, 1.0 + 1e-9) == 0.0
    assert optimal_composition_delta(0.1, 10, 0.999999) > 0.0
    # far below the mean of the loss, and far above it
    assert optimal_composition_delta(2.0, 10**6, 0.0) == 1.0
    assert 0.0 < optimal_composition_delta(1e-3, 10**6, 900.0) <= 1e-283
    assert optimal_composition_delta(5e-324, 1, 0.0) > 0.0
    assert optimal_composition_epsilon(1e-14, 10**15, 1e-3) == 0.0


@given(st.floats(1e-9, 3.0), st.integers(1, 10**15), st.floats(1e-250, 0.99))
def test_composition_inverts_upwards(step, num_steps, delta):
    epsilon = optimal_composition_epsilon(step, num_steps, delta)
    assert 0.0 <= epsilon <= num_steps * step
    if epsilon < num_steps * step:
        assert optimal_composition_delta(step, num_steps, epsilon) <= delta
        if epsilon > 0.0:
            less = epsilon * (1.0 - 1e-6) - 1e-300
            assert optimal_composition_delta(step, num_steps, less) > delta


@given(st.floats(1e-6, 1.0), st.integers(1, 10**9), st.floats(0.0, 1.0))
def test_more_steps_never_help(step, num_steps, share):
    epsilon = share * num_steps * step
    fewer = optimal_composition_delta(step, num_steps, epsilon)
    assert optimal_composition_delta(step, 2 * num_steps, epsilon) >= fewer * (1.0 - 1e-6)
    assert optimal_composition_delta(step, num_steps, 1.01 * epsilon) <= fewer


@given(st.floats(1e-12, 17.0), st.integers(2, 10**15))
def test_step_from_above_by_a_hair(epsilon0, num_users):
    p = mp.exp(mpf(epsilon0))
    step = step_epsilon(epsilon0, num_users)
    if math.isinf(step):
        assert p**2 >= num_users * (1 - mpf("1e-14"))
        return
    exact = mp.log1p(p**2 * mp.expm1(mpf(epsilon0)) / num_users)
    assert exact <= step <= exact * (1 + mpf("1e-14"))
    assert step < epsilon0 * (1.0 + 1e-14)


def swap_step(channel, first, others, index, prefix):
    """Law of report ``index`` (0 = the first) of Algorithm 5, given the reports before."""
    n = len(others) + 1
    weights = np.zeros(n)
    for swapped in range(n):
        data = [first, *others]
        data[0], data[swapped] = data[swapped], data[0]
        weights[swapped] = math.prod(
            channel[x][y] for x, y in zip(data[:index], prefix, strict=True)
        )
    law = np.zeros(channel.shape[1])
    for swapped in range(n):
        data = [first, *others]
        data[0], data[swapped] = data[swapped], data[0]
        law += weights[swapped] * channel[data[index]]
    return law / weights.sum()


@pytest.mark.parametrize(("p", "num_users"), [(1.2, 3), (1.5, 4), (2.0, 5)])
def test_no_step_of_the_swapping_algorithm_loses_more(p, num_users):
    channel = np.array(enumeration.randomized_response(3, p))
    allowed = step_epsilon(math.log(p), num_users)
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(3), num_users - 1):
        for index in range(num_users):
            for prefix in itertools.product(range(3), repeat=index):
                laws = [swap_step(channel, x, others, index, prefix) for x in range(2)]
                worst = max(worst, float(np.abs(np.log(laws[0] / laws[1])).max()))
    assert 0.3 * allowed < worst <= allowed


def test_the_ratio_lemma():
    generator = Entropy.from_seed(5).generator()
    for _ in range(2000):
        p = math.exp(generator.uniform(0.0, 3.0))
        t = generator.uniform(0.0, 1.0)
        s, other = generator.uniform(0.0, t), generator.uniform(0.0, t)
        a = p ** generator.uniform(-1.0, 1.0)
        b = min(max(a * p ** generator.uniform(-1.0, 1.0), 1.0 / p), p)
        ratio = (1.0 + s * (a - 1.0)) / (1.0 + other * (b - 1.0))
        assert ratio <= (1.0 + t * (p - 1.0)) * (1.0 + 1e-12)


@pytest.mark.parametrize(("epsilon0", "num_users"), [(0.1, 4), (0.3, 6), (0.5, 5)])
def test_above_the_enumeration_and_the_clones(epsilon0, num_users):
    truth = enumeration.ShuffledDivergence(
        enumeration.randomized_response(3, math.exp(epsilon0)), num_users
    )
    profile = any_randomizer(epsilon0)
    for share in (0.0, 0.2, 0.5, 0.9):
        upper = ERLINGSSON_COMPOSED.delta(profile, num_users, share * epsilon0).upper
        assert upper >= truth.delta(share * epsilon0)
        assert upper >= both_ends(profile, num_users, share * epsilon0).lower


@given(st.floats(1e-4, 3.0), st.integers(10**3, 10**12), st.floats(1e-100, 0.5))
def test_never_above_theorem_7(epsilon0, num_users, delta):
    profile = any_randomizer(epsilon0)
    sharper = ERLINGSSON_COMPOSED.epsilon(profile, num_users, delta).upper
    assert sharper <= general_epsilon(epsilon0, num_users, delta)
    sharper_delta = ERLINGSSON_COMPOSED.delta(profile, num_users, 0.5 * sharper).upper
    theirs = general_delta(epsilon0, num_users, 0.5 * sharper)
    assert sharper_delta <= max(theirs * (1.0 + 1e-6), 1e-270)


@pytest.mark.parametrize(
    ("epsilon0", "num_users", "delta", "hypothesis"),
    [
        (1.0, 1, 1e-6, "num_users > 1"),
        (math.log(100.0) / 2 + 1e-12, 100, 1e-6, "e^(2 epsilon0) < num_users"),
        (0.0, 1, None, "num_users > 1"),
        (50.0, 10**15, None, "e^(2 epsilon0) < num_users"),
        (1e308, 10**15, None, "e^(2 epsilon0) < num_users"),
        (1.0, 100, 0.0, "delta > 0"),
    ],
)
def test_outside_its_hypotheses(epsilon0, num_users, delta, hypothesis):
    profile = any_randomizer(epsilon0)
    assert ERLINGSSON_COMPOSED.violated_hypothesis(profile, num_users, delta) == hypothesis


def test_nothing_to_hide():
    assert ERLINGSSON_COMPOSED.violated_hypothesis(any_randomizer(0.0), 10, 1e-6) is None
    assert ERLINGSSON_COMPOSED.epsilon(any_randomizer(0.0), 10, 1e-6).upper <= 1e-300
    assert ERLINGSSON_COMPOSED.delta(any_randomizer(0.0), 10, 0.0).upper <= 1e-280
