"""Loads that matter: what is left out is negligible, and no bound errs downwards."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shuffledp.leakage.fullest_bin import least_load, load_window


@given(st.integers(1, 10**9), st.integers(2, 10**4))
def test_window(balls, bins):
    window = load_window(balls, bins)
    assert least_load(balls, bins) <= window.first <= window.last <= balls
    assert 0.0 <= window.beyond <= 1e-12 * max(1.0, math.sqrt(balls / bins))


@pytest.mark.parametrize(("balls", "bins"), [(5, 3), (40, 2), (1000, 10), (1000, 900), (10**5, 7)])
def test_beyond_is_an_upper_bound(balls, bins):
    window = load_window(balls, bins)
    rest = range(window.last + 1, min(balls, window.last + 200))
    union = bins * math.fsum(stats.binom.sf(load, balls, 1.0 / bins) for load in rest)
    assert union <= window.beyond


@pytest.mark.parametrize(("balls", "bins"), [(10**5, 1000), (10**6, 10**4), (10**4, 300)])
def test_below_is_negligible(balls, bins):
    window = load_window(balls, bins)
    assert window.first > least_load(balls, bins)
    one = stats.binom.logcdf(window.first - 1, balls, 1.0 / bins)
    assert bins * one <= math.log(1e-18)


def test_nothing_beyond_all_balls():
    assert load_window(1, 5).beyond == 0.0
    assert load_window(2, 5) == (1, 1, 0.0)


def test_slowly_falling_bound():
    # At the last load of two balls too many the ratio of two terms is no geometric one.
    assert load_window(3, 2).beyond < 1.0
