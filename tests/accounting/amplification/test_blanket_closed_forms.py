import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import enumeration
from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer, k_rr, symmetric_unary
from shuffledp.accounting.amplification.blanket_closed_forms import (
    BLANKET_BENNETT,
    amplification_variable,
    bennett_delta,
)
from shuffledp.accounting.amplification.families import CLONES, K_RR_BLANKET

PROFILES = (any_randomizer, lambda epsilon0: k_rr(epsilon0, 2), lambda epsilon0: k_rr(epsilon0, 8))


def exact(profile, num_users, epsilon):
    """The formulas of the module at sixty digits."""
    p, e = mp.exp(mpf(profile.epsilon0)), mp.exp(mpf(epsilon))
    a = e - 1
    if profile.domain_size is None:
        gamma, size, second = 1 / p, mpf(1), p * (1 + e**2) - 2 * e
    else:
        k = profile.domain_size
        size = gamma = k / (p + k - 1)
        second = gamma**2 / k * ((p - e) ** 2 + (1 - p * e) ** 2 + (k - 2) * (1 - e) ** 2)
    b = size * (p - e)
    u = a * b / second
    factor = b / mp.log1p(u)
    exponent = second / b**2 * ((1 + u) * mp.log1p(u) - u)
    return factor / (gamma * num_users) * (1 - gamma * (1 - mp.exp(-exponent))) ** num_users


@given(
    st.sampled_from(PROFILES),
    st.floats(1e-6, 30.0),
    st.integers(1, 10**15),
    st.one_of(st.just(0.0), st.floats(1e-9, 1.0)),
)
def test_formulas_from_above_by_a_hair(make, epsilon0, num_users, share):
    profile, epsilon = make(epsilon0), min(share * epsilon0, epsilon0 * (1.0 - 1e-9))
    value = bennett_delta(profile, num_users, epsilon)
    if epsilon == 0.0:
        assert value == 1.0
        return
    truth = exact(profile, num_users, epsilon)
    assert min(truth, 1) <= value
    if 1e-250 < truth < 0.99:
        assert value <= truth * (1 + mpf("1e-8"))


@pytest.mark.parametrize("num_users", [1, 5, 100, 3000])
@pytest.mark.parametrize("epsilon0", [0.05, 0.5, 1.0, 3.0, 6.0])
def test_above_what_they_bound(epsilon0, num_users):
    for share in (0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 0.999):
        epsilon = share * epsilon0
        for profile, exact_method in (
            (any_randomizer(epsilon0), CLONES),
            (symmetric_unary(epsilon0, 4), CLONES),
            (k_rr(epsilon0, 2), K_RR_BLANKET),
            (k_rr(epsilon0, 5), K_RR_BLANKET),
        ):
            closed = BLANKET_BENNETT.delta(profile, num_users, epsilon).upper
            assert closed >= exact_method.delta(profile, num_users, epsilon).lower


def test_above_the_enumeration():
    for k, num_users in ((2, 8), (3, 6)):
        for epsilon0 in (0.3, 1.5):
            truth = enumeration.ShuffledDivergence(
                enumeration.randomized_response(k, math.exp(epsilon0)), num_users
            )
            for share in (0.3, 0.6, 0.9):
                for profile in (k_rr(epsilon0, k), any_randomizer(epsilon0)):
                    closed = BLANKET_BENNETT.delta(profile, num_users, share * epsilon0).upper
                    assert closed >= truth.delta(share * epsilon0)


def test_the_lemma_for_a_fixed_number_of_terms():
    # E[(L_1 + ... + L_m)_+] by listing all terms of k-RR, against factor * exp(-m exponent)
    for k, epsilon0, share in itertools.product((2, 4), (0.3, 1.0, 3.0), (0.1, 0.5, 0.9)):
        epsilon = share * epsilon0
        p, e = math.exp(epsilon0), math.exp(epsilon)
        law = amplification_variable(k_rr(epsilon0, k), epsilon)
        values = [(1 / k, p - e), (1 / k, 1 - p * e), ((k - 2) / k, 1 - e)]
        values = [(mass, law.gamma * value) for mass, value in values]
        assert sum(mass * value for mass, value in values) == pytest.approx(-law.drift)
        second = sum(mass * value**2 for mass, value in values)
        assert second == pytest.approx(law.second_moment, rel=1e-9)
        assert max(value for _, value in values) == pytest.approx(law.largest)
        for m in range(1, 6):
            truth = sum(
                math.prod(mass for mass, _ in terms) * max(sum(value for _, value in terms), 0.0)
                for terms in itertools.product(values, repeat=m)
            )
            u = law.drift * law.largest / law.second_moment
            factor = law.largest / math.log1p(u)
            exponent = law.second_moment / law.largest**2 * ((1 + u) * math.log1p(u) - u)
            assert truth <= factor * math.exp(-m * exponent)


@given(st.sampled_from(PROFILES), st.floats(0.01, 5.0), st.integers(10, 10**12))
def test_epsilon_is_on_the_safe_side_of_its_own_delta(make, epsilon0, num_users):
    profile = make(epsilon0)
    for delta in (1e-200, 1e-12, 1e-6, 0.1):
        epsilon = BLANKET_BENNETT.epsilon(profile, num_users, delta).upper
        assert 0.0 < epsilon <= epsilon0
        assert BLANKET_BENNETT.delta(profile, num_users, epsilon).upper <= delta
        if epsilon < epsilon0:
            less = BLANKET_BENNETT.delta(profile, num_users, epsilon * (1.0 - 1e-6)).upper
            assert less > delta


def test_the_ends():
    for profile in (any_randomizer(1.0), k_rr(1.0, 3)):
        assert BLANKET_BENNETT.delta(profile, 1000, 1.0).upper == 0.0
        assert BLANKET_BENNETT.delta(profile, 1000, 0.0).upper == 1.0
        assert BLANKET_BENNETT.delta(profile, 10**15, 0.999).upper == 1e-300
        assert BLANKET_BENNETT.epsilon(profile, 1, 1e-300).upper == 1.0
        assert BLANKET_BENNETT.violated_hypothesis(profile, 1000, 0.0) == "delta > 0"
    for epsilon0 in (201.0, 1e4, 1e308):
        assert BLANKET_BENNETT.delta(any_randomizer(epsilon0), 10**15, 1.0).upper == 1.0
        assert BLANKET_BENNETT.epsilon(any_randomizer(epsilon0), 10**15, 1e-6).upper == epsilon0
    assert BLANKET_BENNETT.delta(any_randomizer(200.0), 10**15, 199.0).upper == 1.0
    assert BLANKET_BENNETT.epsilon(any_randomizer(0.0), 10, 1e-6).upper == 0.0
    # e^epsilon0 - e^epsilon underflows
    assert BLANKET_BENNETT.delta(any_randomizer(1e-99), 10, 0.999e-99).upper <= 1.0
