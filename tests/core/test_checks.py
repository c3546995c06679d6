import math

import numpy as np
import pytest

from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_finite,
    require_non_negative,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import ParameterError

# What nobody can mean as a number, and what a table reader hands over by accident.
NOT_NUMBERS = ["0.5", "", None, [0.5], {}, 1j, np.complex128(0.5), object()]


def non_negative(value):
    return require_non_negative("x", value)


def positive(value):
    return require_positive("x", value)


def open_unit(value):
    return require_open_unit("x", value)


def delta(value):
    return require_delta(value, name="x")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, *NOT_NUMBERS])
def test_finite_numbers_are_finite(value):
    with pytest.raises(ParameterError, match="x = "):
        require_finite("x", value)


@pytest.mark.parametrize("value", [-1e308, 0, np.float32(0.5)])
def test_finite_numbers_of_either_sign_are_let_through(value):
    assert require_finite("x", value) == float(value)


@pytest.mark.parametrize("check", [non_negative, positive, open_unit, delta])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, -5e-324, *NOT_NUMBERS])
def test_what_no_check_lets_through(check, value):
    with pytest.raises(ParameterError, match="x = "):
        check(value)


@pytest.mark.parametrize(
    ("check", "value"),
    [(positive, 0.0), (positive, -0.0), (open_unit, 0.0), (open_unit, 1.0), (delta, 1.0)],
)
def test_the_ends_that_are_outside(check, value):
    with pytest.raises(ParameterError, match="x = "):
        check(value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (non_negative, 0.0),
        (non_negative, 5e-324),
        (non_negative, 1.7e308),
        (positive, 5e-324),
        (open_unit, 5e-324),
        (open_unit, 1.0 - 2.0**-53),
        (delta, 0.0),
        (delta, 1.0 - 2.0**-53),
    ],
)
def test_the_ends_that_are_inside(check, value):
    assert check(value) == value


@pytest.mark.parametrize("check", [non_negative, positive, open_unit, delta])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_answer_is_a_plain_float(check, kind):
    # A float32 that went on would round everything computed from it to 24 bits, up or down.
    assert type(check(kind(0.25))) is float


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_whole_number_beyond_floats_is_our_error(value):
    with pytest.raises(ParameterError):
        non_negative(value)


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_booleans_are_no_numbers(value):
    with pytest.raises(ParameterError, match=r"x = .* is not a number"):
        require_finite("x", value)
    with pytest.raises(ParameterError, match=r"x = .* is not a whole number"):
        require_at_least("x", value, 0)


def test_delta_names_itself():
    with pytest.raises(ParameterError, match=r"delta = 2 is not in \[0, 1\)"):
        require_delta(2)


@pytest.mark.parametrize("value", [2.0, np.float64(2.0), math.nan, math.inf, "2", None, [2]])
def test_what_is_no_whole_number(value):
    with pytest.raises(ParameterError, match=r"n = .* is not a whole number"):
        require_at_least("n", value, 1)


@pytest.mark.parametrize("value", [0, -1, -(10**400), np.int8(-128), False])
def test_what_is_too_small(value):
    with pytest.raises(ParameterError, match="give an integer >= 1"):
        require_at_least("n", value, 1)


@pytest.mark.parametrize("value", [1, 10**400, np.int64(7), np.uint8(255)])
def test_whole_numbers_come_back_as_plain_integers(value):
    assert type(require_at_least("n", value, 1)) is int
    assert require_at_least("n", value, 1) == value
