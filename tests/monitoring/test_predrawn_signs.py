"""The threshold law: its formulas, its rounding, and that no other law tells more."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.signs import ExchangeableSigns, PredrawnSigns, SampledChange

EPSILON0 = st.floats(1e-6, 40.0)


def formula(k, radius, e0):
    """Return the gap of a threshold law at the whole loss."""
    ball = sum(comb(k, i) for i in range(radius + 1))
    return (e0 - 1) * comb(k - 1, radius) / (2**k + (e0 - 1) * ball)


def precise_log(ratio):
    """Return ln of a fraction to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@given(k=st.integers(1, 62), epsilon0=EPSILON0)
def test_the_loss_is_exact_rounded_up_and_at_most_what_was_asked_for(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    exact = precise_log(law.signs.loss_ratio)
    assert exact <= Decimal(law.epsilon0) <= Decimal(epsilon0)
    assert Decimal(math.nextafter(law.epsilon0, 0.0)) <= exact
    # The coin's 64 bits lose little, as long as epsilon0 does not come near them.
    assert law.epsilon0 >= epsilon0 * (1 - 1e-9) - math.exp(epsilon0) / 2**62


@given(k=st.integers(1, 62), epsilon0=EPSILON0)
def test_the_gap_is_that_of_the_best_threshold(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    assert law.exact_gap == law.signs.correlation(1)
    best = max(formula(k, radius, math.exp(epsilon0)) for radius in range(k))
    assert law.gap == pytest.approx(best, rel=1e-8)
    assert law.gap == pytest.approx(formula(k, law.radius, math.exp(epsilon0)), rel=1e-8)


@given(k=st.integers(1, 30), epsilon0=EPSILON0)
def test_patterns_are_likely_up_to_where_they_say_more_than_the_gap(k, epsilon0):
    # Dinkelbach: weight i is high if and only if (k - 2 i) / k is above the gap.
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    slack = Fraction(1, 10**6)
    assert Fraction(k - 2 * law.radius, k) > law.exact_gap - slack
    assert Fraction(k - 2 * law.radius - 2, k) < law.exact_gap + slack


@given(k=st.integers(1, 62), epsilon0=EPSILON0)
def test_it_tells_at_least_what_a_sampled_change_tells(k, epsilon0):
    ours = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    sampled = SampledChange(max_changes=k, epsilon0=epsilon0).gap
    assert ours >= sampled * (1 - 1e-8)
    if k == 1:
        assert ours == pytest.approx(math.tanh(epsilon0 / 2), rel=1e-8)
    if epsilon0 > 0.01 and k > 1:
        assert ours > sampled


@given(k=st.integers(1, 62), epsilon0=st.floats(1e-3, 20.0))
def test_the_gap_falls_like_the_root_of_the_number_of_changes(k, epsilon0):
    gap = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    assert gap >= math.tanh(epsilon0 / 2) * math.sqrt(2 / (math.pi * (k + 1))) * (1 - 1e-8)
    assert gap <= math.expm1(epsilon0) / math.sqrt(math.pi * (2 * k - 1))


def best_exchangeable_gap(k, e0):
    """Return the largest gap of an exchangeable law with loss ln(e0), by linear programming."""
    # Variables: densities F_0 ... F_k relative to uniform, and the least of them, m.
    share = np.array([comb(k, i) / 2**k for i in range(k + 1)])
    means = np.array([(k - 2 * i) / k for i in range(k + 1)])
    upper = np.hstack([np.eye(k + 1), -e0 * np.ones((k + 1, 1))])
    lower = np.hstack([-np.eye(k + 1), np.ones((k + 1, 1))])
    answer = linprog(
        -np.append(share * means, 0.0),
        A_ub=np.vstack([upper, lower]),
        b_ub=np.zeros(2 * k + 2),
        A_eq=np.append(share, 0.0)[None, :],
        b_eq=[1.0],
    )
    assert answer.success
    return -answer.fun


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 12, 20])
def test_no_exchangeable_law_has_a_larger_gap(k, epsilon0):
    best = best_exchangeable_gap(k, math.exp(epsilon0))
    gap = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    assert gap == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("epsilon0", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_no_law_at_all_whose_signs_have_equal_means_has_a_larger_gap(k, epsilon0):
    # One variable a pattern, then the least probability and the gap.
    patterns = np.array(list(product([1, -1], repeat=k)))
    size, e0 = len(patterns), math.exp(epsilon0)
    columns = (np.full((size, 1), -e0), np.ones((size, 1)))
    bounds = [
        np.hstack([sign * np.eye(size), column, np.zeros((size, 1))])
        for sign, column in zip((1, -1), columns, strict=True)
    ]
    means = np.hstack([patterns.T, np.zeros((k, 1)), -np.ones((k, 1))])
    total = np.append(np.ones(size), [0.0, 0.0])[None, :]
    answer = linprog(
        np.append(np.zeros(size + 1), -1.0),
        A_ub=np.vstack(bounds),
        b_ub=np.zeros(2 * size),
        A_eq=np.vstack([total, means]),
        b_eq=np.append(1.0, np.zeros(k)),
    )
    assert answer.success
    gap = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    assert gap == pytest.approx(-answer.fun, rel=1e-6)


def annulus_law(k, kept, turned, inner, outer):
    """Return independent signs, but patterns outside an annulus are all equally likely."""
    inside = [kept ** (k - i) * turned**i for i in range(k + 1)]
    outside = [i for i in range(k + 1) if not inner <= i <= outer]
    if not outside:
        return ExchangeableSigns(weights=tuple(inside))
    count = sum(comb(k, i) for i in outside)
    level = sum(comb(k, i) * inside[i] for i in outside)
    return ExchangeableSigns(
        weights=tuple(level if i in outside else inside[i] * count for i in range(k + 1))
    )


@pytest.mark.parametrize("k", [3, 9, 16])
def test_flips_within_an_annulus_tell_less(k):
    closest = 0.0
    for kept in (101, 110, 130, 200, 300):
        for inner, outer in [(0, k), (0, k // 2), (1, k - 1), (k // 4, k // 2), (0, k - 2)]:
            signs = annulus_law(k, kept, 100, inner, outer)
            loss = float(precise_log(signs.loss_ratio))
            ours = PredrawnSigns(max_changes=k, epsilon0=loss).gap
            theirs = float(signs.correlation(1))
            assert theirs < ours
            closest = max(closest, theirs / ours)
    assert closest > 0.6  # else the comparison would be with poor laws only


def test_no_privacy_loss_tells_nothing():
    law = PredrawnSigns(max_changes=5, epsilon0=0.0)
    assert (law.epsilon0, law.gap, law.coin_threshold) == (0.0, 0.0, 0)
    assert law.signs.least_density == 1
    assert PredrawnSigns(max_changes=5, epsilon0=1e-30).epsilon0 == 0.0


@pytest.mark.parametrize("k", [1, 4, 62])
def test_any_large_epsilon0_gives_the_same_law(k):
    laws = {PredrawnSigns(max_changes=k, epsilon0=each) for each in (100.0, 1e3, 1e308)}
    (law,) = laws
    assert (law.radius, law.coin_threshold) == (0, 2**64 - 1)
    assert law.epsilon0 == pytest.approx((64 + k) * math.log(2), rel=1e-12)
    assert law.profile(num_levels=1, alternating=False).uniform_share > 0


@given(k=st.integers(1, 62), epsilon0=st.floats(0.0, 1e3))
def test_a_law_rebuilt_from_what_it_printed_is_the_same(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    again = PredrawnSigns(max_changes=k, epsilon0=law.epsilon0)
    assert again == law
    assert again.identity == law.identity


def test_one_sign_has_no_pairs():
    assert PredrawnSigns(max_changes=1, epsilon0=1.0).pair_correlation == 0.0
    law = PredrawnSigns(max_changes=2, epsilon0=1.0)
    assert law.pair_correlation == float(law.signs.correlation(2)) > 0


def test_the_profile_says_it_exactly():
    law = PredrawnSigns(max_changes=6, epsilon0=2.0)
    profile = law.profile(num_levels=9, alternating=True)
    assert profile.sign_correlations == law.signs.correlations
    assert len(profile.sign_correlations) == 7
    assert profile.uniform_share == law.signs.least_density
    assert profile.uniform_share == 1 - Fraction(law.coin_threshold, 2**64)
    assert (profile.protocol, profile.epsilon0) == ("predrawn-signs", law.epsilon0)
    assert (profile.max_changes, profile.num_levels, profile.alternating) == (6, 9, True)


@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1.0, "1", None])
def test_epsilon0_must_be_a_number(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        PredrawnSigns(max_changes=2, epsilon0=epsilon0)


@pytest.mark.parametrize("k", [0, -1, 1.0, None])
def test_changes_are_counted(k):
    with pytest.raises(ParameterError, match="max_changes"):
        PredrawnSigns(max_changes=k, epsilon0=1.0)


def test_too_many_signs_for_a_key():
    assert PredrawnSigns(max_changes=62, epsilon0=1.0).gap > 0.05
    with pytest.raises(ParameterError, match=r"max_changes = 63 is above 62.*sampled-change"):
        PredrawnSigns(max_changes=63, epsilon0=1.0)
