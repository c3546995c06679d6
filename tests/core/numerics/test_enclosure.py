import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import (
    Enclosure,
    exp_difference,
    exp_minus_one_upper,
    round_up,
)


def test_ends_in_order():
    assert Enclosure(0.25, 0.5) == Enclosure(0.25, 0.5)
    assert Enclosure(0.25, 0.25).upper == 0.25


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.5), (math.nan, 1.0), (0.0, math.nan)])
def test_an_empty_enclosure_is_round_off(lower, upper):
    with pytest.raises(PrecisionError, match="round-off"):
        Enclosure(lower, upper)


@given(st.floats(1e-290, 1e300), st.integers(1, 100))
def test_round_up_gives_back_an_ulp_an_operation(value, operations):
    rounded = Fraction(round_up(value, operations=operations))
    assert rounded >= Fraction(value) * (1 + Fraction(operations, 2) * Fraction(2) ** -52)
    assert rounded <= Fraction(value) * (1 + 2 * operations * Fraction(2) ** -52)


def test_zero_stays_zero():
    assert round_up(0.0) == 0.0
    assert exp_minus_one_upper(0.0) == 0.0


@given(st.floats(1e-300, 700.0))
def test_exp_minus_one_is_an_upper_bound_by_a_hair(value):
    with mpmath.workdps(400):
        exact = mpmath.expm1(mpmath.mpf(value))
        assert mpmath.mpf(exp_minus_one_upper(value)) >= exact
        assert exp_minus_one_upper(value) / exact < 1 + 8 * math.ulp(1.0)


@given(st.floats(0.0, 600.0), st.one_of(st.floats(0.0, 1.0), st.floats(1.0 - 1e-9, 1.0)))
@example(199.99, 51.86757744911141 / 199.99)
def test_a_difference_of_exponentials_has_five_roundings_at_any_size(high, share):
    low = min(high * share, high)
    with mpmath.workdps(400):
        exact = mpmath.exp(mpmath.mpf(high)) - mpmath.exp(mpmath.mpf(low))
        assert (
            abs(mpmath.mpf(exp_difference(high, low)) - exact) <= exact * 5 * mpmath.mpf(2) ** -52
        )
