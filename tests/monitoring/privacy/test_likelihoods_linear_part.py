"""The linear part against sums that are listed term by term."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.monitored_release import sampled_profile
from shuffledp.monitoring.privacy import likelihoods
from shuffledp.monitoring.privacy.likelihoods import (
    MOST_USERS,
    Overlap,
    linear_delta,
    mixed_law,
    pair_law,
    worst_law,
)


def sign_sum(count):
    """The exact law of a sum of so many fair signs."""
    return {2 * i - count: Fraction(math.comb(count, i), 2**count) for i in range(count + 1)}


def listed(parts, *, gap, share, num_users, growth, shift=Fraction(0)):
    """The mean positive part, by all M and all sums of signs; parts are (count, weight)."""
    total = Fraction(0)
    for others in range(num_users):
        chance = math.comb(num_users - 1, others) * share**others
        chance *= (1 - share) ** (num_users - 1 - others)
        law = {Fraction(0): Fraction(1)}
        for count, weight in parts:
            further = {}
            for a, p in law.items():
                for b, q in sign_sum(count * (others + 1)).items():
                    further[a + weight * b] = further.get(a + weight * b, 0) + p * q
            law = further
        crowd = gap / (others + 1)
        total += chance * sum(
            p * max(1 - growth + shift + crowd * value, 0) for value, p in law.items()
        )
    return total


GROWTH = Fraction(5, 4)
EPSILON = math.log(1.25)


@pytest.mark.parametrize("max_changes", [1, 2, 3])
@pytest.mark.parametrize("num_users", [1, 2, 5])
@pytest.mark.parametrize("shift", [Fraction(0), Fraction(1, 50), Fraction(-1, 20)])
def test_alternating_increments(max_changes, num_users, shift):
    gap, share = Fraction(3, 8), Fraction(5, 8)
    parts = [(max_changes - 1, 1 + GROWTH), (1, Fraction(1)), (1, GROWTH)]
    exact = float(
        listed(parts, gap=gap, share=share, num_users=num_users, growth=GROWTH, shift=shift)
    )
    law = worst_law(
        sampled_profile(max_changes, 3, num_levels=1, alternating=True), epsilon=EPSILON
    )
    arguments = {"gap": 0.375, "share": 0.625, "num_users": num_users, "epsilon": EPSILON}
    upper = linear_delta(law, **arguments, shift=float(shift))
    lower = linear_delta(law, upwards=False, **arguments, shift=float(shift))
    assert lower <= exact <= upper
    assert upper - lower <= 1e-3 * exact


@pytest.mark.parametrize(("max_changes", "num_users"), [(1, 60), (3, 40), (40, 6)])
def test_any_increments_of_a_crowd(max_changes, num_users):
    gap, share = Fraction(1, 4), Fraction(5, 8)
    exact = float(
        listed(
            [(max_changes, 1 + GROWTH)],
            gap=gap,
            share=share,
            num_users=num_users,
            growth=GROWTH,
        )
    )
    law = worst_law(
        sampled_profile(max_changes, 3, num_levels=1, alternating=False), epsilon=EPSILON
    )
    arguments = {"gap": 0.25, "share": 0.625, "num_users": num_users, "epsilon": EPSILON}
    lower, upper = linear_delta(law, upwards=False, **arguments), linear_delta(law, **arguments)
    assert lower <= exact <= upper
    assert upper - lower <= 1e-3 * exact


@pytest.mark.parametrize("max_changes", [200, 1_000, 3_000])
def test_the_law_of_many_changes_is_exact_and_rounded_up(max_changes):
    gap = Fraction(1, 16)
    growth = 1 + Fraction(1, 2)
    step = 1 + growth
    exact = float(
        sum(
            p * max(1 - growth + gap * step * value, 0)
            for value, p in sign_sum(max_changes).items()
        )
    )
    law = worst_law(
        sampled_profile(max_changes, 3, num_levels=1, alternating=False), epsilon=math.log(1.5)
    )
    upper = linear_delta(law, gap=1 / 16, share=1.0, num_users=1, epsilon=math.log(1.5))
    assert exact <= upper <= exact * 1.001
    mean = math.fsum(law.values * law.masses)
    variance = math.fsum(law.values**2 * law.masses)
    assert abs(mean) <= 1e-9
    assert variance == pytest.approx(max_changes * 6.25, rel=1e-9)


def test_masses_too_small_for_floats_are_left_out():
    law = worst_law(sampled_profile(5_000, 3, num_levels=1, alternating=True), epsilon=0.0)
    assert np.all(law.masses > 0.0)
    assert math.isclose(math.fsum(law.masses), 1.0, rel_tol=1e-9)


@pytest.mark.parametrize("moving", [0.5, 2 / 3])
def test_columns_in_which_nothing_changes(moving):
    law = worst_law(
        replace(sampled_profile(3, 3, num_levels=1, alternating=False), changing_share=moving),
        epsilon=0.0,
    )
    values = (-2.0, 0.0, 2.0)
    chances = (moving / 2, 1 - moving, moving / 2)
    exact = {}
    for a, p in zip(values, chances, strict=True):
        for b, q in zip(values, chances, strict=True):
            for c, r in zip(values, chances, strict=True):
                exact[a + b + c] = exact.get(a + b + c, 0.0) + p * q * r
    assert dict(zip(law.values.tolist(), law.masses.tolist(), strict=True)) == pytest.approx(exact)


@given(
    overlap=st.builds(
        Overlap,
        st.integers(0, 4),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
)
def test_pair_law_lists_all_signs(overlap):
    law = pair_law(overlap, epsilon=EPSILON)
    parts = zip(overlap, (1 + GROWTH, Fraction(1), GROWTH, GROWTH - 1), strict=True)
    exact = {Fraction(0): Fraction(1)}
    for count, weight in parts:
        further = {}
        for a, p in exact.items():
            for b, q in sign_sum(count).items():
                further[a + weight * b] = further.get(a + weight * b, 0) + p * q
        exact = further
    for power in (1, 2, 3, 4):
        moment = float(sum(p * value**power for value, p in exact.items()))
        found = math.fsum(law.masses * law.values**power)
        if len(exact) <= 100:
            assert found == pytest.approx(moment, rel=1e-9, abs=1e-9)
        else:  # merged into conditional means
            assert found <= moment * (1 + 1e-9) + 1e-9
    assert math.isclose(math.fsum(law.masses), 1.0)


def test_merging_errs_downwards_and_little():
    overlap = Overlap(100, 3, 3, 20)
    law = pair_law(overlap, epsilon=EPSILON)
    variance = 100 * 2.25**2 + 3 + 3 * 1.25**2 + 20 * 0.25**2
    found = math.fsum(law.masses * law.values**2)
    assert law.values.size <= likelihoods._MOST_VALUES + 1
    assert 0.99 * variance <= found <= variance
    mixed = mixed_law([law, pair_law(Overlap(0, 1, 1, 0), epsilon=EPSILON)], [0.25, 0.75])
    second = math.fsum(mixed.masses * mixed.values**2)
    small = 0.75 * (1 + 1.25**2)
    assert 0.97 * (0.25 * found + small) <= second <= 0.25 * found + small


def test_all_signs_equal_is_one_value():
    law = pair_law(Overlap(0, 0, 0, 2), epsilon=0.0)
    assert (law.values.tolist(), law.masses.tolist()) == ([0.0], [1.0])


def test_more_users_than_the_most_are_the_most():
    law = worst_law(sampled_profile(2, 3, num_levels=1, alternating=True), epsilon=1e-4)
    arguments = {"gap": 0.25, "share": 0.5, "epsilon": 1e-4}
    assert linear_delta(law, num_users=10**18, **arguments) == linear_delta(
        law, num_users=MOST_USERS, **arguments
    )
