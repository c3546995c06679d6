"""The leading terms for many balls, against the exact expectation."""

import math

import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.fullest_bin import (
    asymptotic_excess,
    maximum_load,
    maximum_load_excess,
    normal_maximum_moments,
    published_approximation,
)


def test_moments_in_closed_form():
    root = math.sqrt(math.pi)
    closed = {
        1: (0.0, 1.0, 0.0),
        2: (1 / root, 1.0, 2.5 / root),
        3: (1.5 / root, 1.0 + math.sqrt(3.0) / (2.0 * math.pi), 3.75 / root),
    }
    for variables, moments in closed.items():
        assert normal_maximum_moments(variables) == pytest.approx(moments, abs=1e-13)
    mean_of_five = 5 / (4 * root) * (1 + 6 / math.pi * math.asin(1 / 3))
    assert normal_maximum_moments(5)[0] == pytest.approx(mean_of_five, rel=1e-13)


@pytest.mark.parametrize("bins", [3, 5, 20, 1000])
def test_error_of_three_terms(bins):
    for balls in (10**6, 10**8):
        found = maximum_load_excess(balls, bins)
        error = 0.5 * (found.lower + found.upper) - asymptotic_excess(balls, bins, num_terms=3)
        assert abs(error) <= bins**0.25 / 10.0 * bins / balls
        two = 0.5 * (found.lower + found.upper) - asymptotic_excess(balls, bins)
        assert 0.01 <= -two * math.sqrt(balls / bins) <= 1.0


@pytest.mark.parametrize("balls", [10**6, 10**6 + 1])
def test_two_bins_depend_on_parity(balls):
    found = maximum_load_excess(balls, 2)
    part = 1.0 / (8.0 * math.sqrt(math.pi * balls / 2))
    error = 0.5 * (found.lower + found.upper) - asymptotic_excess(balls, 2)
    assert error == pytest.approx(part if balls % 2 else -part, rel=1e-3)


@pytest.mark.parametrize(("bins", "share"), [(2, 0.68), (3, 0.81), (4, 0.87), (5, 0.92)])
def test_published_constant(bins, share):
    balls = 10**9
    exact = maximum_load(balls, bins).upper / balls - 1.0 / bins
    assert exact / (published_approximation(balls, bins) - 1.0 / bins) == pytest.approx(
        share, abs=5.1e-3
    )


@pytest.mark.parametrize(("bins", "too_large"), [(2, True), (8, True), (9, False)])
def test_where_the_published_form_errs(bins, too_large):
    exact = maximum_load(10**9, bins).upper / 10**9
    assert (published_approximation(10**9, bins) > exact) == too_large


def test_bad_numbers():
    with pytest.raises(ParameterError, match="num_terms = 4 is above 3"):
        asymptotic_excess(10, 3, num_terms=4)
    with pytest.raises(ParameterError, match="num_terms = 1 is below 2"):
        asymptotic_excess(10, 3, num_terms=1)
    for call in (asymptotic_excess, published_approximation):
        with pytest.raises(ParameterError, match="num_balls"):
            call(0, 3)
        with pytest.raises(ParameterError, match="num_bins"):
            call(3, 1)
    with pytest.raises(ParameterError, match="num_variables"):
        normal_maximum_moments(0)
