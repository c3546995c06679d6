"""Rounds of shuffled bits: above and below what enumeration and the slow accountant say."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shuffledp.accounting import ShuffledRelease
from shuffledp.accounting.binary_rounds import (
    _groups,
    binary_rounds_epsilon,
    binary_rounds_epsilon0,
)
from shuffledp.collection.profiles import named_profile
from shuffledp.core.errors import ParameterError


def count_law(num_high, num_low, q):
    """Number of ones among the reports of users who hold a one, and of those who hold a zero."""
    law = [1.0]
    for chance in [1.0 - q] * num_high + [q] * num_low:
        padded = [0.0, *law, 0.0]
        law = [chance * padded[s] + (1.0 - chance) * padded[s + 1] for s in range(len(law) + 1)]
    return law


def exact_delta(epsilon0, num_users, rounds, epsilon):
    """Largest delta over all data: what the others hold, and which way the victim's bits change."""
    q = 1.0 / (math.exp(epsilon0) + 1.0)
    pairs = []
    for ones in range(num_users):
        zero, one = (count_law(ones + bit, num_users - 1 - ones + 1 - bit, q) for bit in (0, 1))
        pairs += [(zero, one), (one, zero)]
    largest = 0.0
    for chosen in itertools.combinations_with_replacement(pairs, rounds):
        total = 0.0
        for counts in itertools.product(range(num_users + 1), repeat=rounds):
            p = math.prod(pair[0][s] for pair, s in zip(chosen, counts, strict=True))
            r = math.prod(pair[1][s] for pair, s in zip(chosen, counts, strict=True))
            total += max(p - math.exp(epsilon) * r, 0.0)
        largest = max(largest, total)
    return largest


@pytest.mark.parametrize(
    ("num_users", "rounds", "epsilon0", "delta"),
    [(1, 2, 1.0, 0.01), (2, 1, 1.0, 0.05), (3, 2, 0.7, 0.02), (4, 2, 2.0, 1e-3), (6, 1, 1.5, 1e-3)],
)
def test_enumeration_of_all_data_lies_between_the_ends(num_users, rounds, epsilon0, delta):
    bound = binary_rounds_epsilon(epsilon0, num_users=num_users, rounds=rounds, delta=delta)
    assert 0.0 < bound.lower <= bound.upper <= rounds * epsilon0 * (1.0 + 1e-12)
    assert exact_delta(epsilon0, num_users, rounds, bound.upper) <= delta
    assert exact_delta(epsilon0, num_users, rounds, bound.lower) >= delta * (1.0 - 1e-9)
    # and the upper end is not far up: a smaller one would be wrong
    assert exact_delta(epsilon0, num_users, rounds, 0.9 * bound.upper) > delta


def slow(epsilon0, num_users, rounds, delta):
    profile = named_profile("k-rr", epsilon0=epsilon0, domain_size=2)
    return (ShuffledRelease(profile=profile, num_users=num_users) * rounds).epsilon(delta)


@pytest.mark.parametrize(
    ("num_users", "rounds", "epsilon0", "delta"),
    [(50, 3, 1.0, 1e-6), (1000, 100, 0.3, 1e-6), (20_000, 10, 3.0, 1e-9), (10**5, 365, 6.0, 1e-8)],
)
def test_the_slow_accountant_agrees_within_two_percent(num_users, rounds, epsilon0, delta):
    bound = binary_rounds_epsilon(epsilon0, num_users=num_users, rounds=rounds, delta=delta)
    exact = slow(epsilon0, num_users, rounds, delta)
    assert exact.lower <= bound.upper <= 1.02 * exact.upper
    assert 0.98 * exact.lower <= bound.lower <= exact.upper
    # twice the users would be told apart from that many
    doubled = binary_rounds_epsilon(epsilon0, num_users=2 * num_users, rounds=rounds, delta=delta)
    assert doubled.upper < exact.lower


def test_nobody_else_hides_anything():
    bound = binary_rounds_epsilon(0.5, num_users=1, rounds=4, delta=1e-12)
    assert bound.upper == pytest.approx(2.0, rel=1e-9)
    assert bound.upper >= 2.0 - 1e-9
    assert bound.method == "pure composition"


def test_reports_that_say_nothing():
    bound = binary_rounds_epsilon(0.0, num_users=10, rounds=10, delta=1e-6)
    assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_where_round_off_dominates_losses_add_up():
    bound = binary_rounds_epsilon(0.1, num_users=1000, rounds=20, delta=1e-300)
    assert bound.method == "pure composition"
    assert 0.0 <= bound.lower <= bound.upper <= 2.0 * (1.0 + 1e-12)
    neither = binary_rounds_epsilon(40.0, num_users=10, rounds=10, delta=1e-300)
    assert neither.upper == pytest.approx(400.0)
    assert 399.9 <= neither.lower <= neither.upper  # nearly every loss is nearly 40
    found = binary_rounds_epsilon0(num_users=10, rounds=10, epsilon=300.0, delta=1e-300)
    assert found.lower == pytest.approx(30.0)
    assert found.upper >= found.lower


def test_losses_whose_squares_vanish():
    bound = binary_rounds_epsilon(1e-200, num_users=10, rounds=10, delta=1e-6)
    assert bound.lower == 0.0 <= bound.upper <= 1e-199 * (1.0 + 1e-12)


@given(st.integers(1, 3000))
@example(1)
@example(128)
@example(129)
def test_every_data_is_in_a_stretch_and_every_stretch_in_its_group(num_users):
    others = num_users - 1
    covered = set()
    for (ones, zeros), members in _groups(num_users):
        for fewest_ones, fewest_zeros in members:
            # who holds all these holds all those: what is added is post-processing
            assert ones <= fewest_ones
            assert zeros <= fewest_zeros
            covered.update(range(int(fewest_ones), others - int(fewest_zeros) + 1))
    assert covered == set(range(others + 1))


@settings(max_examples=4)
@given(
    st.integers(1, 10**6),
    st.integers(1, 400),
    st.floats(-2.0, 1.0).map(lambda exponent: 10.0**exponent),
    st.floats(-12.0, -2.0).map(lambda exponent: 10.0**exponent),
)
def test_the_largest_epsilon0(num_users, rounds, epsilon, delta):
    found = binary_rounds_epsilon0(num_users=num_users, rounds=rounds, epsilon=epsilon, delta=delta)
    assert epsilon / rounds * (1.0 - 1e-9) <= found.lower <= found.upper <= 40.0
    met = binary_rounds_epsilon(found.lower, num_users=num_users, rounds=rounds, delta=delta)
    assert met.upper <= epsilon * (1.0 + 1e-12)
    if found.upper < 40.0:
        missed = binary_rounds_epsilon(found.upper, num_users=num_users, rounds=rounds, delta=delta)
        assert missed.lower >= epsilon * (1.0 - 1e-6)
    assert found.upper <= 1.05 * found.lower or num_users < 1000


def test_the_strength_grows_like_the_root_of_users_over_rounds():
    def strength(num_users, rounds):
        found = binary_rounds_epsilon0(num_users=num_users, rounds=rounds, epsilon=0.5, delta=1e-8)
        return 2.0 * math.sinh(0.5 * found.lower)

    reference = strength(10**6, 400)
    assert strength(4 * 10**6, 400) == pytest.approx(2.0 * reference, rel=0.02)
    assert strength(10**6, 1600) == pytest.approx(0.5 * reference, rel=0.02)


def test_targets_beyond_all_reports_and_below_amplification():
    alone = binary_rounds_epsilon0(num_users=1, rounds=2, epsilon=200.0, delta=1e-6)
    assert (alone.lower, alone.upper) == (40.0, 40.0)
    tiny = binary_rounds_epsilon0(num_users=2, rounds=3, epsilon=1e-9, delta=1e-12)
    assert float(Fraction(1, 3)) * 1e-9 * (1.0 - 1e-9) <= tiny.lower <= tiny.upper


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("epsilon0", math.nan),
        ("epsilon0", 40.5),
        ("epsilon0", -1.0),
        ("num_users", 0),
        ("rounds", 0),
        ("rounds", 1.5),
        ("delta", 0.0),
        ("delta", math.nan),
    ],
)
def test_arguments_out_of_range(name, wrong):
    arguments = {"epsilon0": 1.0, "num_users": 10, "rounds": 2, "delta": 1e-6, name: wrong}
    with pytest.raises(ParameterError, match=name):
        binary_rounds_epsilon(arguments.pop("epsilon0"), **arguments)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_targets_out_of_range(wrong):
    with pytest.raises(ParameterError, match="epsilon"):
        binary_rounds_epsilon0(num_users=10, rounds=2, epsilon=wrong, delta=1e-6)
