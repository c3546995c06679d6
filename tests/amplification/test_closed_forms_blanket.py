import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import enumeration
from oracles.family_laws import both_ends
from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer, k_rr, symmetric_unary
from shuffledp.amplification.clones_and_families import clone_law
from shuffledp.amplification.closed_forms import (
    BLANKET_BENNETT,
    BLANKET_HOEFFDING,
    amplification_variable,
    inequality_delta,
)

METHODS = (BLANKET_HOEFFDING, BLANKET_BENNETT)
PROFILES = (any_randomizer, lambda epsilon0: k_rr(epsilon0, 2), lambda epsilon0: k_rr(epsilon0, 8))


def exact(profile, num_users, epsilon, inequality):
    """The formulas of the module at sixty digits."""
    p, e = mp.exp(mpf(profile.epsilon0)), mp.exp(mpf(epsilon))
    a = e - 1
    if profile.domain_size is None:
        gamma, size, second = 1 / p, mpf(1), p * (1 + e**2) - 2 * e
    else:
        k = profile.domain_size
        size = gamma = k / (p + k - 1)
        second = gamma**2 / k * ((p - e) ** 2 + (1 - p * e) ** 2 + (k - 2) * (1 - e) ** 2)
    if inequality == "hoeffding":
        b = size * (p - 1) * (1 + e)
        factor, exponent = b**2 / (4 * a), 2 * a**2 / b**2
    else:
        b = size * (p - e)
        u = a * b / second
        factor = b / mp.log1p(u)
        exponent = second / b**2 * ((1 + u) * mp.log1p(u) - u)
    return factor / (gamma * num_users) * (1 - gamma * (1 - mp.exp(-exponent))) ** num_users


@pytest.mark.parametrize("name", ["hoeffding", "bennett"])
@given(
    st.sampled_from(PROFILES),
    st.one_of(st.floats(1e-6, 30.0), st.floats(100.0, 200.0)),
    st.integers(1, 10**15),
    st.one_of(st.just(0.0), st.floats(1e-9, 1.0)),
)
def test_formulas_from_above_by_a_hair(name, make, epsilon0, num_users, share):
    profile, epsilon = make(epsilon0), min(share * epsilon0, epsilon0 * (1.0 - 1e-9))
    value = inequality_delta(profile, num_users, epsilon, bennett=name == "bennett")
    if epsilon == 0.0:
        assert value == 1.0
        return
    truth = exact(profile, num_users, epsilon, name)
    assert min(truth, 1) <= value
    if 1e-250 < truth < 0.99:
        assert value <= truth * (1 + mpf("1e-8"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("num_users", [1, 5, 100, 3000])
@pytest.mark.parametrize("epsilon0", [0.05, 0.5, 1.0, 3.0, 6.0])
def test_above_what_they_bound(method, epsilon0, num_users):
    for share in (0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 0.999):
        epsilon = share * epsilon0
        clones = [clone_law(epsilon0)]
        for profile, laws in (
            (any_randomizer(epsilon0), clones),
            (symmetric_unary(epsilon0, 4), clones),
            (k_rr(epsilon0, 2), None),
            (k_rr(epsilon0, 5), None),
        ):
            closed = method.delta(profile, num_users, epsilon).upper
            assert closed >= both_ends(profile, num_users, epsilon, laws).lower


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_above_the_enumeration(method):
    for k, num_users in ((2, 8), (3, 6)):
        for epsilon0 in (0.3, 1.5):
            truth = enumeration.ShuffledDivergence(
                enumeration.randomized_response(k, math.exp(epsilon0)), num_users
            )
            for share in (0.3, 0.6, 0.9):
                for profile in (k_rr(epsilon0, k), any_randomizer(epsilon0)):
                    closed = method.delta(profile, num_users, share * epsilon0).upper
                    assert closed >= truth.delta(share * epsilon0)


@pytest.mark.parametrize("name", ["hoeffding", "bennett"])
def test_the_lemma_for_a_fixed_number_of_terms(name):
    # E[(L_1 + ... + L_m)_+] by listing all terms of k-RR, against factor * exp(-m exponent)
    for k, epsilon0, share in itertools.product((2, 4), (0.3, 1.0, 3.0), (0.1, 0.5, 0.9)):
        epsilon = share * epsilon0
        p, e = math.exp(epsilon0), math.exp(epsilon)
        gamma, drift, width, largest, moment = amplification_variable(k_rr(epsilon0, k), epsilon)
        values = [(1 / k, p - e), (1 / k, 1 - p * e), ((k - 2) / k, 1 - e)]
        values = [(mass, gamma * value) for mass, value in values]
        assert sum(mass * value for mass, value in values) == pytest.approx(-drift)
        second = sum(mass * value**2 for mass, value in values)
        assert second == pytest.approx(moment, rel=1e-9)
        assert max(value for _, value in values) == pytest.approx(largest)
        for m in range(1, 6):
            truth = sum(
                math.prod(mass for mass, _ in terms) * max(sum(value for _, value in terms), 0.0)
                for terms in itertools.product(values, repeat=m)
            )
            if name == "hoeffding":
                factor = width**2 / (4.0 * drift)
                exponent = 2.0 * (drift / width) ** 2
            else:
                u = drift * largest / moment
                factor = largest / math.log1p(u)
                exponent = moment / largest**2 * ((1 + u) * math.log1p(u) - u)
            assert truth <= factor * math.exp(-m * exponent)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@given(st.sampled_from(PROFILES), st.floats(0.01, 5.0), st.integers(10, 10**12))
def test_epsilon_is_on_the_safe_side_of_its_own_delta(method, make, epsilon0, num_users):
    profile = make(epsilon0)
    for delta in (1e-200, 1e-12, 1e-6, 0.1):
        epsilon = method.epsilon(profile, num_users, delta).upper
        assert 0.0 < epsilon <= epsilon0
        assert method.delta(profile, num_users, epsilon).upper <= delta
        if epsilon < epsilon0:
            less = method.delta(profile, num_users, epsilon * (1.0 - 1e-6)).upper
            assert less > delta


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_ends(method):
    for profile in (any_randomizer(1.0), k_rr(1.0, 3)):
        assert method.delta(profile, 1000, 1.0).upper == 0.0
        assert method.delta(profile, 1000, 0.0).upper == 1.0
        assert method.delta(profile, 10**15, 0.999).upper == 1e-300
        assert method.epsilon(profile, 1, 1e-300).upper == 1.0
        assert method.violated_hypothesis(profile, 1000, 0.0) == "delta > 0"
    for epsilon0 in (201.0, 1e4, 1e308):
        assert method.delta(any_randomizer(epsilon0), 10**15, 1.0).upper == 1.0
        assert method.epsilon(any_randomizer(epsilon0), 10**15, 1e-6).upper == epsilon0
    assert method.delta(any_randomizer(200.0), 10**15, 199.0).upper == 1.0
    assert method.epsilon(any_randomizer(0.0), 10, 1e-6).upper == 0.0
    # e^epsilon0 - e^epsilon underflows
    assert method.delta(any_randomizer(1e-99), 10, 0.999e-99).upper <= 1.0


def test_each_is_the_smaller_one_somewhere():
    small, large = any_randomizer(0.5), any_randomizer(3.0)
    hoeffding, bennett = (
        [method.epsilon(profile, 10**6, 1e-6).upper for profile in (small, large)]
        for method in METHODS
    )
    assert hoeffding[0] < bennett[0]
    assert bennett[1] < hoeffding[1]
