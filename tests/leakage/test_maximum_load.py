"""The expected maximum load: against fractions, the closed form, and one method by the other."""

import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.fullest_bin import (
    characteristic_tails,
    exact_maximum_load,
    excess_by,
    load_window,
    maximum_load,
    maximum_load_excess,
    recurrence_tails,
)

BOTH = (recurrence_tails, characteristic_tails)


exactly = functools.cache(exact_maximum_load)


def contains(enclosure, exact, roundings=0):
    """Whether a fraction is enclosed, if need be up to some roundings of the ends."""
    slack = Fraction(roundings * 2**-53) * abs(exact)
    return Fraction(enclosure.lower) - slack <= exact <= Fraction(enclosure.upper) + slack


def middle(enclosure):
    return (Fraction(enclosure.lower) + Fraction(enclosure.upper)) / 2


def width(enclosure):
    return (enclosure.upper - enclosure.lower) / enclosure.upper


def overlap(one, other):
    return one.lower <= other.upper and other.lower <= one.upper


SMALL = [(balls, bins) for balls in (1, 2, 3, 8, 21, 133, 500) for bins in (2, 3, 5, 13, 40, 501)]


@pytest.mark.parametrize(("balls", "bins"), SMALL)
def test_against_fractions(balls, bins):
    exact = exactly(balls, bins)
    excess = exact - Fraction(balls, bins)
    enclosures = [maximum_load_excess(balls, bins)]
    if balls > 1:  # two bins by the characteristic function too
        enclosures.append(excess_by(characteristic_tails, balls, bins))
    for found in enclosures:
        assert contains(found, excess)
        assert abs(middle(found) - excess) <= Fraction(1e-12) * excess
        assert width(found) <= 1e-10
    load = maximum_load(balls, bins)
    assert contains(load, exact)
    assert abs(middle(load) - exact) <= Fraction(1e-12) * exact


@pytest.mark.parametrize("bins", [10_000, 10**9])
def test_few_balls_in_many_bins(bins):
    # Birthdays: 1 + Pr[two share] + Pr[three share] + ...
    exact = exact_maximum_load(5, bins)
    assert contains(maximum_load(5, bins), exact)
    assert width(maximum_load(5, bins)) <= 1e-12


@pytest.mark.parametrize(
    ("balls", "bins"),
    [(30_000, 3), (40_000, 4), (10**6, 5), (30_000, 6), (40_000, 8), (10**6, 16), (60_000, 12)],
)
def test_methods_agree(balls, bins):
    one, other = (excess_by(tails, balls, bins) for tails in BOTH)
    assert overlap(one, other)
    assert abs(middle(one) - middle(other)) <= Fraction(2e-12) * middle(one)
    assert max(width(one), width(other)) <= 1e-9


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 5), (10**6, 16), (60_000, 12)])
@pytest.mark.parametrize(("one", "other"), [BOTH, BOTH[::-1]])
def test_one_ball_more_is_told_apart(balls, bins, one, other):
    # A negative control of the comparisons above: enclosures this narrow do see an error.
    assert not overlap(excess_by(one, balls, bins), excess_by(other, balls + 1, bins))


@pytest.mark.parametrize("balls", [1, 2, 3, 10**3, 10**5 + 1, 10**9 - 1, 10**9])
def test_two_bins(balls):
    with mpmath.workdps(40):
        log_choose = (
            mpmath.loggamma(balls)
            - mpmath.loggamma((balls - 1) // 2 + 1)
            - mpmath.loggamma(balls - (balls - 1) // 2)
        )
        exact = balls * mpmath.exp(log_choose - balls * mpmath.log(2))
    enclosures = [maximum_load_excess(balls, 2)]
    if balls > 10**4:
        enclosures.append(excess_by(recurrence_tails, balls, 2))
    for found in enclosures:
        assert found.lower <= exact <= found.upper
        assert width(found) <= 1e-11


@pytest.mark.parametrize(
    ("balls", "bins", "digits"), [(100, 3, 0.3826), (1000, 3, 0.3488), (200, 2, 0.5282)]
)
def test_published_values(balls, bins, digits):
    assert round(maximum_load(balls, bins).upper / balls, 4) == digits


@pytest.mark.parametrize(
    ("balls", "bins"), [(1000, 5), (10**6, 5), (10**9, 5), (10**5, 1000), (10**9, 10**4)]
)
def test_precision(balls, bins):
    assert width(maximum_load(balls, bins)) <= 3e-12
    assert width(maximum_load_excess(balls, bins)) <= 1e-10


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 30), (10**9, 10**4), (3 * 10**4, 4)])
def test_few_loads_stand_for_all(balls, bins):
    # The truncation of the sum over loads is an estimate: here all loads are added up.
    window = load_window(balls, bins)
    loads = np.arange(window.first, window.last + 1)
    assert len(loads) > 700
    tails, errors = characteristic_tails(balls, bins, loads)
    total = (window.first * bins - balls) / bins + math.fsum(tails)
    found = maximum_load_excess(balls, bins)
    assert found.lower - errors.sum() <= total <= found.upper + errors.sum()
    assert width(found) <= 1e-10


@given(st.integers(1, 10**9), st.integers(2, 10**4))
def test_between_what_is_sure(balls, bins):
    found = maximum_load(balls, bins)
    assert max(balls / bins, 1.0) * (1.0 - 1e-15) <= found.lower
    assert found.upper <= balls
    assert width(found) <= 1e-10


@given(st.integers(1, 10**6), st.integers(2, 300))
def test_monotone(balls, bins):
    # One ball more raises the excess and lowers the share; one bin more lowers the load.
    here, more = maximum_load_excess(balls, bins), maximum_load_excess(balls + 1, bins)
    assert here.lower <= more.upper
    load = maximum_load(balls, bins)
    share, next_share = load.upper / balls, maximum_load(balls + 1, bins).lower / (balls + 1)
    assert next_share <= share * (1.0 + 1e-15)
    assert maximum_load(balls, bins + 1).lower <= load.upper


@pytest.mark.parametrize(("balls", "bins"), [(7, 3), (60, 4), (12, 30)])
def test_tails_add_up(balls, bins):
    least = -(-balls // bins)
    tails, errors = characteristic_tails(balls, bins, np.arange(least, balls))
    exact = exact_maximum_load(balls, bins) - least
    total = sum(map(Fraction, tails.tolist()), Fraction(0))
    slack = sum(map(Fraction, errors.tolist()), Fraction(0))
    assert total - slack <= exact <= total + slack
    assert slack <= 1e-11


@pytest.mark.parametrize("bad", [0, -3, 2.0, math.nan, math.inf, "7", None, 10**15 + 1])
def test_bad_sizes(bad):
    for call in (maximum_load, maximum_load_excess):
        with pytest.raises(ParameterError, match="num_balls"):
            call(bad, 3)
        with pytest.raises(ParameterError, match="num_bins"):
            call(3, bad)


def test_one_bin_is_refused():
    with pytest.raises(ParameterError, match="num_bins = 1 is below 2"):
        maximum_load(5, 1)
