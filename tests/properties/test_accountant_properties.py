"""What must hold for every input: monotone, consistent, and the same for the same thing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import profiles
from oracles.family_laws import both_ends
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# Declared relative width of an enclosure: a bound may move by that much against the trend. delta
# moves by up to ten times as much as epsilon does.
EPSILON_SLACK = 1.0 + 8e-6
DELTA_SLACK = 1.0 + 8e-5

families = st.sampled_from(
    [(family, k) for family in RandomizerFamily for k in (2, 3, 10) if family != "any" or k == 3]
)
epsilons0 = st.one_of(st.floats(0.01, 8.0), st.floats(1e-6, 20.0))
users = st.one_of(st.integers(1, 50), st.integers(1, 20_000))
deltas = st.floats(-12.0, -0.5).map(lambda exponent: 10.0**exponent)
shares = st.floats(0.0, 0.97)


def profile_of(family, epsilon0):
    return LocalProfile(epsilon0=epsilon0, family=family[0], domain_size=family[1])


def epsilon_of(family, epsilon0, num_users, delta):
    profile = profile_of(family, epsilon0)
    return account_epsilon(profile, num_users=num_users, delta=delta, with_lower=False).upper


def delta_of(family, epsilon0, num_users, epsilon):
    profile = profile_of(family, epsilon0)
    return account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False).upper


@given(families, epsilons0, users, deltas)
def test_epsilon_and_delta_are_each_others_inverse(family, epsilon0, num_users, delta):
    epsilon = epsilon_of(family, epsilon0, num_users, delta)
    assert 0.0 <= epsilon <= epsilon0
    assert delta_of(family, epsilon0, num_users, epsilon) <= delta * DELTA_SLACK


@given(families, epsilons0, users, deltas, st.floats(1.0, 3.0))
def test_epsilon_grows_with_epsilon0(family, epsilon0, num_users, delta, factor):
    smaller = epsilon_of(family, epsilon0, num_users, delta)
    assert smaller <= epsilon_of(family, epsilon0 * factor, num_users, delta) * EPSILON_SLACK


@pytest.mark.slow
@given(families, epsilons0, users, deltas, st.integers(0, 10_000))
def test_epsilon_falls_with_more_users(family, epsilon0, num_users, delta, more):
    larger = epsilon_of(family, epsilon0, num_users, delta)
    assert epsilon_of(family, epsilon0, num_users + more, delta) <= larger * EPSILON_SLACK


@given(families, epsilons0, users, deltas, st.floats(1.0, 1e6))
def test_epsilon_falls_with_delta(family, epsilon0, num_users, delta, factor):
    larger = epsilon_of(family, epsilon0, num_users, delta)
    at_larger_delta = epsilon_of(family, epsilon0, num_users, min(delta * factor, 0.9))
    if delta * factor <= 0.9:
        assert at_larger_delta <= larger * EPSILON_SLACK


@given(families, epsilons0, users, shares, st.floats(0.0, 1.0))
def test_delta_falls_with_epsilon(family, epsilon0, num_users, share, further):
    larger = delta_of(family, epsilon0, num_users, share * epsilon0)
    at_larger_epsilon = share + (0.97 - share) * further
    smaller = delta_of(family, epsilon0, num_users, at_larger_epsilon * epsilon0)
    assert smaller <= larger * DELTA_SLACK


@given(families, epsilons0, users, shares)
def test_bounds_do_not_cross_and_lie_in_range(family, epsilon0, num_users, share):
    profile = profile_of(family, epsilon0)
    bound = account_delta(profile, num_users=num_users, epsilon=share * epsilon0)
    assert 0.0 < bound.upper <= 1.0
    assert bound.lower is None or 0.0 <= bound.lower <= bound.upper


@given(families, epsilons0, users, shares)
def test_best_is_no_worse_than_any_method(family, epsilon0, num_users, share):
    profile, epsilon = profile_of(family, epsilon0), share * epsilon0
    best = account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False)
    for name, method in METHODS.items():
        if method.violated_hypothesis(profile, num_users, None) is None:
            other = account_delta(
                profile, num_users=num_users, epsilon=epsilon, method=name, with_lower=False
            )
            assert best.upper <= other.upper * DELTA_SLACK, name


@given(epsilons0, users, shares, st.integers(2, 10**6))
def test_knowing_the_randomizer_never_hurts(epsilon0, num_users, share, k):
    general = delta_of(("any", None), epsilon0, num_users, share * epsilon0)
    for family in (("k-rr", k), ("symmetric-unary", k), ("optimized-unary", k)):
        named = delta_of((RandomizerFamily(family[0]), k), epsilon0, num_users, share * epsilon0)
        assert named <= general * DELTA_SLACK


@given(epsilons0, users, shares, st.integers(2, 50), st.integers(0, 50))
def test_more_answers_hide_the_victim_better(epsilon0, num_users, share, k, more):
    few = METHODS["k-rr-blanket"].delta(profiles.k_rr(epsilon0, k), num_users, share * epsilon0)
    many = both_ends(profiles.k_rr(epsilon0, k + more), num_users, share * epsilon0)
    assert many.lower <= few.upper


@settings(max_examples=20)
@given(epsilons0, users, deltas)
def test_two_answers_are_never_worse_than_the_class(epsilon0, num_users, delta):
    binary = account_epsilon(profiles.k_rr(epsilon0, 2), num_users=num_users, delta=delta)
    general = account_epsilon(profiles.any_randomizer(epsilon0), num_users=num_users, delta=delta)
    assert binary.upper <= general.upper * EPSILON_SLACK
    assert general.lower <= general.upper


@pytest.mark.slow
@given(families, epsilons0, users, deltas)
def test_the_same_question_has_the_same_answer(family, epsilon0, num_users, delta):
    first = epsilon_of(family, epsilon0, num_users, delta)
    epsilon_of(family, epsilon0 * 1.5, num_users + 1, delta / 2.0)
    assert epsilon_of(family, epsilon0, num_users, delta) == first
