"""The window between longitudinal protocols and the accountant."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.core.monitoring_profile import MonitoringProfile

HALF = Fraction(1, 2)


def profile(**changes):
    fields = {
        "protocol": "predrawn-signs",
        "epsilon0": 1.0,
        "max_changes": 3,
        "num_levels": 4,
        "sign_correlations": (Fraction(1), HALF, Fraction(-1, 8)),
        "uniform_share": HALF,
        "alternating": False,
    }
    return MonitoringProfile(**(fields | changes))


def test_correlations_that_are_not_on_record_are_zero():
    assert [profile().correlation(order) for order in range(5)] == [1, HALF, Fraction(-1, 8), 0, 0]
    assert profile().gap == 0.5
    assert profile(sign_correlations=(Fraction(1),)).gap == 0.0


def test_a_correlation_has_an_order():
    with pytest.raises(ParameterError, match="order"):
        profile().correlation(-1)


@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1e-300, "1", None])
def test_epsilon0_must_be_a_finite_number(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        profile(epsilon0=epsilon0)


@pytest.mark.parametrize("name", ["max_changes", "num_levels"])
@pytest.mark.parametrize("value", [0, -1, 1.0, "1", None])
def test_counts_are_whole_numbers_from_one(name, value):
    with pytest.raises(ParameterError, match=name):
        profile(**{name: value})


@pytest.mark.parametrize("share", [Fraction(-1, 2**70), 1 + Fraction(1, 2**70), math.nan])
def test_the_uniform_share_is_a_probability(share):
    with pytest.raises(ParameterError, match="uniform_share"):
        profile(uniform_share=share)


@pytest.mark.parametrize(
    ("correlations", "says"),
    [
        ((), "has 0 entries"),
        ((Fraction(1),) + (Fraction(0),) * 4, "at most max_changes = 3"),
        ((HALF, HALF), "r_0"),
        ((Fraction(1), Fraction(1), Fraction(3, 2)), "outside"),
        ((Fraction(1), Fraction(-1, 2)), "exchange the two signs"),
    ],
)
def test_correlations_are_those_of_signs(correlations, says):
    with pytest.raises(ParameterError, match=says):
        profile(sign_correlations=correlations)


def test_numbers_are_stored_as_plain_ones():
    # float32 arithmetic further down would round upper bounds to 24 bits, in either direction.
    stored = profile(epsilon0=np.float32(0.1), max_changes=np.int64(3), num_levels=np.uint8(4))
    assert type(stored.epsilon0) is float
    assert type(stored.max_changes) is type(stored.num_levels) is int


def test_it_is_frozen_and_compares_by_value():
    assert profile() == profile()
    assert profile() != profile(alternating=True)
    with pytest.raises(AttributeError):
        profile().epsilon0 = 0.1
