"""Laws and tables: what is taken, what is refused and in which words."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channel import as_numbers, checked_prior, checked_truth, require_cells

HALF = Fraction(1, 2)
THIRDS = [Fraction(1, 3), Fraction(2, 3)]


def test_uniform_is_a_law():
    assert checked_prior(None, 3).tolist() == [1 / 3] * 3
    assert checked_prior(None, 3, exact=True).tolist() == [Fraction(1, 3)] * 3


def test_kinds_of_numbers():
    assert checked_prior(THIRDS, 2, exact=True).tolist() == THIRDS
    assert checked_prior([0.5, 0.5], 2, exact=True).dtype == np.float64
    assert checked_prior([HALF, 0.5], 2, exact=True).dtype == np.float64
    assert checked_prior(THIRDS, 2).tolist() == [1 / 3, 2 / 3]
    # NumPy's integers would overflow in the arithmetic of fractions.
    large = checked_prior(np.array([0, 1], dtype=np.int8), 2, exact=True)
    assert type(large[1].numerator) is int


def test_a_prior_is_copied_and_closed():
    given = np.array([0.25, 0.75])
    law = checked_prior(given, 2)
    given[0] = 0.5
    assert law.tolist() == [0.25, 0.75]
    for array in (law, checked_prior(THIRDS, 2, exact=True)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_sums_within_the_tolerance_are_not_rescaled():
    assert checked_prior([0.5, 0.5 + 9e-10], 2)[1] == 0.5 + 9e-10


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.5], r"2 entries, not 3: give one probability for each input"),
        ([0.5, 0.25, 0.5], r"sums to 1.25, not 1, off by 0.25"),
        ([0.5, 0.25, 0.25 - 2e-9], r"off by -2e-09"),
        ([Fraction(1, 3), Fraction(1, 3), Fraction(1, 4)], r"sums to 11/12, not 1, off by -1/12"),
        ([0.6, -0.1, 0.5], r"prior\[1\] = -0.1 is not in \[0, 1\]"),
        ([2, -1, 0], r"prior\[1\] = -1 is not in"),
        ([0.5, np.nan, 0.5], r"prior\[1\] = nan is not in"),
        ([0.5, np.inf, 0.5], r"sums to inf, not 1"),
        ([1e308, 1e308, 1e308], r"sums to inf, not 1"),
        ([[0.5, 0.25, 0.25]], r"2 dimensions: give 1"),
        ([], r"empty"),
        (["a", "b", "c"], r"not a number: give real numbers"),
        (0.5, r"0 dimensions: give 1"),
    ],
)
def test_what_is_no_law(prior, words):
    with pytest.raises(ParameterError, match=words):
        checked_prior(prior, 3)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([], r"1 dimensions: give 2"),
        ([[]], r"is empty, of shape \(1, 0\)"),
        ([[0.5, 0.5], [1.0]], r"rows of different lengths"),
        ([[1j, 0]], r"not a number"),
        ([[HALF, "0.5"]], r"not a number"),
        (np.array([[HALF, None]], dtype=object), r"not a number: give real numbers"),
    ],
)
def test_what_is_no_table(matrix, words):
    with pytest.raises(ParameterError, match=words):
        as_numbers("the channel matrix", matrix, 2)


def test_sizes(monkeypatch):
    with pytest.raises(ParameterError, match=r"65536 x 65536 = 4294967296 cells, above 200000000"):
        require_cells("it", 2**16, 2**16, exact=False)
    monkeypatch.setattr("shuffledp.leakage.channel.LARGEST_EXACT_CELLS", 5)
    with pytest.raises(ParameterError, match=r"6 x 1 = 6 exact fractions, above 5: use floats or"):
        as_numbers("it", [[1, 0, 0]] * 2, 2)


@pytest.mark.parametrize("k", range(2, 60))
def test_the_double_nearest_to_one_over_k_is_taken(k):
    assert checked_truth(1.0 / k, k) == 1.0 / k
    with pytest.raises(OutOfRegimeError, match="is below"):
        checked_truth(1.0 / k - 1e-14, k)
