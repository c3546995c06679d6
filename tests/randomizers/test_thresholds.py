import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    exp_lower,
    log_ratio_upper,
    response_law,
    response_threshold,
    settle,
)

EXACT = Context(prec=150)


def exact_exp(exponent):
    return Fraction(EXACT.exp(Decimal(exponent)))


@given(k=st.integers(2, 10**7), epsilon0=st.floats(0.0, 60.0))
def test_k_rr_threshold_is_the_least_that_is_private_enough(k, epsilon0):
    threshold = response_threshold(epsilon0, k)
    loss = exact_exp(epsilon0)
    assert 1 <= threshold <= WORD_VALUES // k

    def ratio(t):
        return Fraction(WORD_VALUES - (k - 1) * t, t)

    if threshold < WORD_VALUES // k:
        assert 1 < ratio(threshold) <= loss
    if 1 < threshold < WORD_VALUES // k:
        assert ratio(threshold - 1) > loss


@given(epsilon0=st.floats(0.0, 90.0))
def test_unary_thresholds_are_the_least_that_are_private_enough(epsilon0):
    for threshold, loss in (
        (response_threshold(epsilon0 / 2), exact_exp(Decimal(epsilon0) / 2)),
        (response_threshold(epsilon0), exact_exp(epsilon0)),
    ):
        assert 1 <= threshold <= 2**63
        assert Fraction(WORD_VALUES - threshold, threshold) <= max(loss, 1)
        if threshold > 1:
            assert Fraction(WORD_VALUES - threshold + 1, threshold - 1) > loss


@given(numerator=st.integers(1, 2**128), denominator=st.integers(1, 2**128))
def test_logarithm_is_the_least_float_above(numerator, denominator):
    ratio = Fraction(max(numerator, denominator), min(numerator, denominator))
    rounded = log_ratio_upper(ratio)
    if ratio == 1:
        assert rounded == 0.0
        return
    exact = EXACT.ln(EXACT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    assert Decimal(math.nextafter(rounded, 0.0)) < exact <= Decimal(rounded)


def test_logarithm_of_a_ratio_next_to_one_keeps_its_size():
    assert log_ratio_upper(Fraction(2**64 + 1, 2**64)) == pytest.approx(2.0**-64, rel=1e-15)


@pytest.mark.parametrize("epsilon0", [0.0, 0.5, 44.3, 44.4, 1e6, 1e308])
def test_settling_twice_changes_nothing(epsilon0):
    first = settle(epsilon0, response_law)
    assert first == settle(first[1], response_law)
    assert first[1] <= epsilon0


@pytest.mark.parametrize("exponent", [1e-9, 0.1, 1.0, 44.0])
def test_exponentials_are_rounded_down_by_little(exponent):
    found = exp_lower(exponent)
    exact = exact_exp(exponent)
    assert exact * (1 - Fraction(1, 10**98)) < found < exact
