import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles.multiprecision import single_report
from shuffledp.accounting.amplification.local import single_report_delta, single_report_epsilon


@given(st.floats(1e-12, 700.0), st.floats(0.0, 1.0))
def test_delta_is_an_upper_bound_by_a_hair(epsilon0, share):
    epsilon = min(epsilon0 * share, epsilon0)
    delta = single_report_delta(epsilon0, epsilon)
    exact = single_report(epsilon0, epsilon)
    assert delta >= exact
    assert delta <= exact * (1 + mpf("1e-14"))


@pytest.mark.parametrize("epsilon0", [5e-324, 1e-320, 1e-310, 1e-300])
def test_delta_of_a_tiny_epsilon0_is_not_zero(epsilon0):
    assert single_report_delta(epsilon0, 0.0) >= single_report(epsilon0, 0.0) > 0


@given(st.floats(1e-9, 700.0), st.one_of(st.floats(1e-300, 1.0 - 1e-9), st.just(1e-16)))
def test_epsilon_is_the_inverse_and_rounds_up(epsilon0, delta):
    epsilon = single_report_epsilon(epsilon0, delta)
    assert 0.0 <= epsilon <= epsilon0
    with mp.workdps(400):
        p = mp.exp(mpf(epsilon0))
        inside = p - mpf(delta) * (p + 1)
        exact = mp.log(inside) if inside > 1 else mpf(0)
        assert epsilon >= exact
        # log1p loses what delta is close to (p - 1)/(p + 1) by
        assert epsilon - exact <= 1e-6 * epsilon0 + 32 * math.ulp(epsilon0)


def test_the_ends():
    assert single_report_epsilon(1.0, 0.0) == 1.0
    assert single_report_epsilon(0.0, 0.5) == 0.0
    assert single_report_epsilon(1.0, 0.999) == 0.0
    assert single_report_epsilon(1.0, 0.5) == 0.0
    assert single_report_epsilon(1e308, 0.5) <= 1e308
    assert single_report_delta(1.0, 1.0) == 0.0
    assert single_report_delta(0.0, 0.0) == 0.0
    assert single_report_delta(1e308, 0.0) == 1.0
    assert single_report_delta(1e308, 9e307) == 1.0
