import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles.binary import BinaryConvolution
from oracles.multiprecision import binary_delta
from oracles.profiles import any_randomizer, k_rr
from shuffledp.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.amplification.binary_randomized_response_kernels import (
    Rates,
    first_excess,
    log_divergence_upper,
    pair_divergence,
    pair_divergence_upper,
    saddle_tilt,
)
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.errors import OutOfRegimeError

SHARES = (0.0, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95)


def rates(epsilon0, epsilon):
    """p - 1, e - 1 and p - e."""
    excess = math.exp(epsilon) * math.expm1(epsilon0 - epsilon)
    return Rates(math.expm1(epsilon0), math.expm1(epsilon), excess)


@pytest.mark.parametrize("epsilon0", [0.05, 0.3, 1.0, 3.0, 8.0, 15.0, 21.0])
@pytest.mark.parametrize("num_users", [2, 5, 31, 100, 300])
def test_against_convolution_over_all_data(num_users, epsilon0):
    truth = BinaryConvolution(epsilon0, num_users)
    binary = BinaryRandomizedResponse(epsilon0, num_users)
    for share in SHARES:
        exact = truth.delta(epsilon0 * share)
        if exact < 1e-290:
            continue
        found = binary.enclose(epsilon0 * share)
        assert found.lower <= exact * (1.0 + 1e-11)
        assert found.upper >= exact * (1.0 - 1e-11)
        assert found.upper - found.lower <= 2.5e-7 * found.upper


@pytest.mark.parametrize("num_users", [2, 5, 31, 100, 300])
def test_terms_of_huge_size_are_refused_or_right(num_users):
    # At epsilon0 = 30 terms of size e^epsilon cancel; "best" then falls back on other methods.
    epsilon0 = 30.0
    truth = BinaryConvolution(epsilon0, num_users)
    for share in SHARES:
        exact = truth.delta(epsilon0 * share)
        found = account_delta(k_rr(epsilon0, 2), num_users=num_users, epsilon=epsilon0 * share)
        assert found.upper >= exact * (1.0 - 1e-11)
        assert found.lower <= exact * (1.0 + 1e-11)


@pytest.mark.parametrize(
    ("num_users", "epsilon0", "epsilon", "worst"),
    [
        (5, 1.0, 0.2, {1, 3}),
        (30, 3.0, 0.3, {8}),
        (300, 5.0, 0.0, {149, 150}),
        (100, 5.0, 0.0, {49, 50}),
    ],
)
def test_where_the_worst_data_are_not_at_an_end(num_users, epsilon0, epsilon, worst):
    deltas = BinaryConvolution(epsilon0, num_users).deltas(epsilon)
    assert int(deltas.argmax()) in worst
    assert max(deltas[0], deltas[-1]) < 0.9 * deltas.max()  # the ends alone would miss a tenth
    found = BinaryRandomizedResponse(epsilon0, num_users).enclose(epsilon)
    assert found.upper == pytest.approx(deltas.max(), rel=2e-7)
    assert found.lower == pytest.approx(deltas.max(), rel=2e-7)
    inverse = account_epsilon(k_rr(epsilon0, 2), num_users=num_users, delta=0.999 * deltas.max())
    assert inverse.lower > epsilon  # an account by the ends alone would be below epsilon here


@pytest.mark.parametrize("num_users", [2500, 5000])
def test_stretches_agree_with_every_number_of_ones(num_users):
    # Beyond 2,000 users the data are settled in stretches; here each one is also looked at.
    epsilon0, delta = 1.0, 1e-6
    found = BinaryRandomizedResponse(epsilon0, num_users).enclose_epsilon(delta, epsilon0)
    at_upper = max(
        pair_divergence(float(j), float(num_users - 1 - j), rates(epsilon0, found.upper))[0]
        for j in range(num_users)
    )
    at_lower = max(
        pair_divergence(float(j), float(num_users - 1 - j), rates(epsilon0, found.lower))[0]
        for j in range(num_users)
    )
    assert at_upper <= delta < at_lower * (1.0 + 1e-9)
    assert found.upper - found.lower <= 5e-6 * found.upper


@pytest.mark.parametrize(
    ("num_users", "epsilon0", "reference"),
    [(10_000, 1.0, 0.03565884), (10_000, 3.0, 0.16922951)],
)
def test_reference_values(num_users, epsilon0, reference):
    # theory 2.3
    bound = account_epsilon(k_rr(epsilon0, 2), num_users=num_users, delta=1e-6)
    assert bound.method == "binary-exact"
    assert bound.upper == pytest.approx(reference, rel=1e-6, abs=1e-6)
    assert bound.lower == pytest.approx(reference, rel=1e-6, abs=1e-6)
    assert bound.gap < 5e-6


@pytest.mark.parametrize("num_users", [1, 2, 7])
@pytest.mark.parametrize("epsilon0", [1e-12, 0.1, 1.0, 5.0, 36.0, 150.0])
@pytest.mark.parametrize("ulps", [1, 16, 10**6])
def test_just_below_epsilon0(num_users, epsilon0, ulps):
    # p - e cancels here, so its relative error must be part of the budget.
    epsilon = epsilon0 - ulps * math.ulp(epsilon0)
    exact = binary_delta(epsilon0, epsilon, num_users)
    bound = account_delta(k_rr(epsilon0, 2), num_users=num_users, epsilon=epsilon)
    assert bound.lower <= exact <= bound.upper


@pytest.mark.parametrize("epsilon0", [380.0, 500.0, 709.0, 710.0, 1e4, 1e308])
@pytest.mark.parametrize("num_users", [1, 2, 3, 10, 10**6])
def test_enormous_epsilon0_neither_fails_nor_gains(num_users, epsilon0):
    bound = account_epsilon(k_rr(epsilon0, 2), num_users=num_users, delta=1e-9)
    assert 0.99 * epsilon0 < bound.upper <= epsilon0
    half = account_delta(k_rr(epsilon0, 2), num_users=num_users, epsilon=0.5 * epsilon0)
    assert half.upper == pytest.approx(1.0, abs=1e-9)
    assert half.upper <= 1.0


def test_delta_below_all_doubles_is_reported_as_the_smallest():
    found = BinaryRandomizedResponse(0.5, 100_000).enclose(0.4)
    assert found.lower == 0.0
    assert found.upper == 1e-300


def test_zero_from_epsilon0_on_and_where_total_variation_is_below_delta():
    binary = BinaryRandomizedResponse(1.0, 50)
    assert binary.enclose(1.0).upper == 0.0
    assert binary.enclose(7.0).upper == 0.0
    truth = BinaryConvolution(1.0, 50)
    found = binary.enclose_epsilon(truth.delta(0.0) * 1.001, 1.0)
    assert found.lower == found.upper == 0.0
    assert binary.enclose_epsilon(truth.delta(0.0) * 0.999, 1.0).lower > 0.0


def test_deltas_above_what_is_ever_reached():
    bound = account_epsilon(k_rr(1.0, 2), num_users=1, delta=0.9)
    assert bound.upper == bound.lower == 0.0


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300, 1e-200])
def test_deltas_at_the_edge_of_doubles(delta):
    bound = account_epsilon(k_rr(1.0, 2), num_users=2000, delta=delta)
    assert 0.0 < bound.lower <= bound.upper <= 1.0


def test_large_batches():
    for num_users in (10**9, 10**12):
        bound = account_epsilon(k_rr(2.0, 2), num_users=num_users, delta=1e-9)
        assert bound.gap < 1e-5


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.05, 12.0), st.floats(0.0, 0.97))
def test_one_pair_against_convolution(high, low, epsilon0, share):
    n, epsilon = high + low + 1, epsilon0 * share
    exact = BinaryConvolution(epsilon0, n).deltas(epsilon)[high]
    arguments = (float(high), float(low), rates(epsilon0, epsilon))
    value, size = pair_divergence(*arguments)
    assert value == pytest.approx(exact, rel=1e-10, abs=1e-14 * size)
    assert pair_divergence_upper(*arguments, 1e-300) >= exact * (1.0 - 1e-12) - 1e-15 * size


@pytest.mark.parametrize("num_users", [2, 31, 300])
@pytest.mark.parametrize("epsilon0", [0.05, 1.0, 8.0, 21.0])
def test_what_is_left_by_a_chernoff_bound_is_above_the_divergence(num_users, epsilon0):
    for share in (*SHARES, 0.999):
        arguments = rates(epsilon0, epsilon0 * share)
        for j, exact in enumerate(BinaryConvolution(epsilon0, num_users).deltas(epsilon0 * share)):
            pair = (float(j), float(num_users - 1 - j), arguments)
            if exact > 1e-290:
                assert log_divergence_upper(*pair) >= math.log(exact) - 1e-9
            for enough in (1e-2, 1e-8, 1e-100):
                found = max(pair_divergence_upper(*pair, enough), 1e-300)  # which may underflow
                assert found >= exact * (1.0 - 1e-11)


@given(st.integers(1, 40), st.floats(0.3, 6.0), st.floats(0.0, 0.9), st.floats(0.3, 1.2))
def test_first_excess_skips_nothing(num_users, epsilon0, share, factor):
    deltas = BinaryConvolution(epsilon0, num_users).deltas(epsilon0 * share)
    target = deltas.max() * factor
    start = 0.0
    while start >= 0.0:
        found = first_excess(num_users - 1.0, rates(epsilon0, epsilon0 * share), target, start)
        stop = num_users if found < 0.0 else int(found)
        # nothing that was passed over exceeds the target
        assert np.all(deltas[int(start) : stop] <= target * (1.0 + 1e-10) + 1e-300)
        if found >= 0.0:
            assert deltas[stop] >= target * (1.0 - 1e-6) - 1e-13
        start = -1.0 if found < 0.0 or found + 1.0 >= num_users else found + 1.0


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(1e-9, 0.4999), st.floats(0.01, 0.99))
def test_saddle_tilt_puts_the_mean_at_s(high, low, q, share):
    if high + low < 2:
        return
    s = min(max(round(share * (high + low)), 1), high + low - 1)
    r = saddle_tilt(float(high), float(low), q, float(s))
    mean = high * (1.0 - q) * r / (q + (1.0 - q) * r) + low * q * r / (1.0 - q + q * r)
    assert mean == pytest.approx(s, rel=1e-6)


def test_the_last_outcome_needs_an_infinite_tilt():
    assert saddle_tilt(3.0, 4.0, 0.2, 7.0) == math.inf


@pytest.mark.parametrize("profile", [any_randomizer(1.0), k_rr(1.0, 3)])
def test_only_for_binary_randomized_response(profile):
    with pytest.raises(OutOfRegimeError, match="k = 2"):
        account_delta(profile, num_users=10, epsilon=0.5, method="binary-exact")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon0", "num_users", "shares"),
    [(0.3, 40, (1 - 1e-9, 0.5)), (1.0, 10**6, (1 - 1e-6, 0.999, 0.7)), (0.1, 10**15, (0.9, 1e-9))],
)
def test_a_published_epsilon_holds_up_to_the_total_variation(epsilon0, num_users, shares):
    """It was 4e-4 of delta short where losses are far below their deviation."""
    binary = BinaryRandomizedResponse(epsilon0, num_users)
    for share in shares:
        delta = share * binary.enclose(0.0).lower
        found = binary.enclose_epsilon(delta, epsilon0)
        assert binary.enclose(found.upper).upper <= delta
        deviation = 2.0 * math.sinh(0.5 * epsilon0) / math.sqrt(num_users)
        assert found.upper - found.lower <= 1e-5 * max(found.upper, deviation)


def test_an_epsilon_that_fails_its_check_is_raised(monkeypatch):
    """The number of ones that looks worst is not: the check finds another one."""
    expected = BinaryRandomizedResponse(1.0, 3_000).enclose_epsilon(1e-6, 1.0)
    monkeypatch.setattr(BinaryRandomizedResponse, "_worst_sampled", lambda self, _: 1700.0)
    found = BinaryRandomizedResponse(1.0, 3_000).enclose_epsilon(1e-6, 1.0)
    assert expected.lower * (1.0 - 1e-9) <= found.upper <= expected.upper * 1.001


def few_liars_delta(epsilon0, epsilon, ones, zeros, *, most=40):
    """Delta of one pair to 50 digits, by how many of the others lie; at most 40 of each kind."""
    with mpmath.workdps(50):
        lie = 1 / (mpmath.exp(epsilon0) + 1)

        def liars(users):
            masses = [(1 - lie) ** users]
            for k in range(min(most, users)):
                masses.append(masses[-1] * (users - k) / (k + 1) * lie / (1 - lie))
            return masses

        law = dict.fromkeys(range(-most - 1, most + 2), mpmath.mpf(0))
        for fewer, mass in enumerate(liars(ones)):
            for more, other in enumerate(liars(zeros)):
                law[more - fewer] += mass * other
        steps = [
            (law[k] * (1 - lie) + law[k - 1] * lie)
            - mpmath.exp(epsilon) * (law[k] * lie + law[k - 1] * (1 - lie))
            for k in range(-most, most + 1)
        ]
        return float(sum(max(step, 0) for step in steps))


@pytest.mark.parametrize(
    ("epsilon0", "num_users"),
    [(30.0, 10**10), (34.0, 10**12), (40.0, 10**15), (45.42, 708_015_058), (100.0, 10**15)],
)
def test_ends_where_hardly_any_of_many_users_lies(epsilon0, num_users):
    """Phases of 1e15 certain answers once left lower ends of 55, upper ends below the truth."""
    binary, others = BinaryRandomizedResponse(epsilon0, num_users), num_users - 1
    for share in (0.05, 0.25, 0.5, 0.8):
        epsilon = epsilon0 * share
        for ones in (0, others // 3, others - 1, others):
            exact = few_liars_delta(epsilon0, epsilon, ones, others - ones)
            assert binary._lower(epsilon, float(ones)) <= exact * (1.0 + 1e-14)
            if exact > 1e-30:  # what is left out by the count of liars is smaller
                assert binary._upper(epsilon, float(ones)) >= exact * (1.0 - 1e-14)
                assert binary._upper(epsilon, float(ones)) <= 1.0 + 1e-13
        assert account_delta(
            k_rr(epsilon0, 2), num_users=num_users, epsilon=epsilon
        ).upper >= few_liars_delta(epsilon0, epsilon, 0, others) * (1.0 - 1e-12)


@given(
    st.one_of(st.floats(1e-3, 8.0), st.floats(100.0, 200.0)),
    st.one_of(st.floats(0.0, 1.0, exclude_max=True), st.floats(0.999, 1.0, exclude_max=True)),
    st.integers(1, 5),
)
@example(199.99, 51.86757744911141 / 199.99, 3)
@example(192.27774035852292, 11.19982652840115 / 192.27774035852292, 5)
def test_both_ends_in_multiprecision_at_any_size_of_epsilon0(epsilon0, share, num_users):
    # Above 128, an ulp of epsilon0 is more than any constant room for roundings.
    epsilon = epsilon0 * share
    with mpmath.workdps(200):
        exact = binary_delta(epsilon0, epsilon, num_users)
        found = BinaryRandomizedResponse(epsilon0, num_users).enclose(epsilon)
        assert found.lower <= exact <= max(found.upper, 1e-300)
