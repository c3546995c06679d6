"""Laws over secrets: what is taken, what is refused and in which words."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.matrices import checked_prior, is_exact_prior, uniform_prior

THIRDS = [Fraction(1, 3), Fraction(2, 3)]


def test_uniform_is_a_law():
    assert uniform_prior(1).tolist() == [1.0]
    assert uniform_prior(3, exact=True).tolist() == [Fraction(1, 3)] * 3
    assert checked_prior(None, 3).tolist() == [1 / 3] * 3
    assert checked_prior(None, 3, exact=True).tolist() == [Fraction(1, 3)] * 3


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_uniform_needs_a_size(size):
    with pytest.raises(ParameterError, match="size = "):
        uniform_prior(size)


def test_kinds_of_numbers():
    assert is_exact_prior(None)
    assert is_exact_prior(THIRDS)
    assert is_exact_prior(np.array([0, 1]))
    assert not is_exact_prior([0.0, 1.0])
    assert not is_exact_prior([Fraction(1, 2), 0.5])
    assert checked_prior(THIRDS, 2, exact=True).tolist() == THIRDS
    rounded = checked_prior(THIRDS, 2)
    assert rounded.dtype == np.float64
    assert rounded.tolist() == [1 / 3, 2 / 3]
    # NumPy's integers would overflow in the arithmetic of fractions.
    large = checked_prior(np.array([0, 1], dtype=np.int8), 2, exact=True)
    assert type(large[1].numerator) is int


def test_a_prior_is_copied_and_closed():
    given = np.array([0.25, 0.75])
    law = checked_prior(given, 2)
    given[0] = 0.5
    assert law.tolist() == [0.25, 0.75]
    exact_given = np.array(THIRDS, dtype=object)
    exact = checked_prior(exact_given, 2, exact=True)
    exact_given[0] = Fraction(1)
    assert exact[0] == Fraction(1, 3)
    for array in (law, exact, uniform_prior(2), uniform_prior(2, exact=True)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_sums_within_the_tolerance_are_not_rescaled():
    assert checked_prior([0.5, 0.5 + 9e-10], 2)[1] == 0.5 + 9e-10


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.5], r"2 entries, not 3: give one probability for each input"),
        ([0.5, 0.25, 0.5], r"sums to 1.25, not 1, off by 0.25, more than 1e-09"),
        ([0.5, 0.25, 0.25 - 2e-9], r"off by -2e-09"),
        ([Fraction(1, 3), Fraction(1, 3), Fraction(1, 4)], r"sums to 11/12, not 1, off by -1/12"),
        ([0.6, -0.1, 0.5], r"prior\[1\] = -0.1 is not in \[0, 1\]"),
        ([2, -1, 0], r"prior\[1\] = -1 is not in"),
        ([0.5, np.nan, 0.5], r"prior\[1\] = nan is not in"),
        ([0.5, np.inf, 0.5], r"sums to inf, not 1"),
        ([1e308, 1e308, 1e308], r"sums to inf, not 1"),
        ([[0.5, 0.25, 0.25]], r"2 dimensions, not 1: give a flat list of numbers"),
        ([], r"empty"),
        (["a", "b", "c"], r"no real numbers"),
        (0.5, r"0 dimensions, not 1"),
    ],
)
def test_what_is_no_law(prior, words):
    with pytest.raises(ParameterError, match=words):
        checked_prior(prior, 3)


def test_floats_are_not_taken_for_exact():
    with pytest.raises(ParameterError, match=r"floats where exact fractions are needed"):
        checked_prior([0.5, 0.5], 2, exact=True)
