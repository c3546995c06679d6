"""Lemma 30 and its form for any k against enumeration of all datasets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channels import histogram_transitions as module
from shuffledp.leakage.channels.histogram_transitions import (
    histogram_probability,
    log_histogram_probability,
)
from shuffledp.leakage.channels.histograms import (
    dataset_histograms,
    histogram_at,
    histograms,
    num_histograms,
)
from shuffledp.leakage.channels.responses import checked_truth, response_channel

SIZES = [(1, 2), (4, 2), (5, 2), (1, 3), (4, 3), (3, 4)]


def by_enumeration(before, after, truth):
    """Return the sum over all datasets of reports with histogram ``after``, of Definition 10."""
    k, n = len(before), sum(before)
    values = [value for value, count in enumerate(before) for _ in range(count)]
    other = (1 - truth) / (k - 1)
    total = Fraction(0)
    for reports in itertools.product(range(k), repeat=n):
        if dataset_histograms(list(reports), k).tolist() == list(after):
            same = sum(x == y for x, y in zip(values, reports, strict=True))
            total += truth**same * other ** (n - same)
    return total


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("extra", [Fraction(0), Fraction(1, 7), Fraction(2, 3), Fraction(1)])
def test_against_all_datasets(n, k, extra):
    truth = Fraction(1, k) + extra * Fraction(k - 1, k)
    table = histograms(n, k).tolist()
    before = table[len(table) // 3]
    found = [histogram_probability(before, after, truth) for after in table]
    assert found == [by_enumeration(before, after, truth) for after in table]
    assert sum(found) == 1
    for after, exact in zip(table, found, strict=True):
        close = histogram_probability(before, after, float(truth))
        assert isinstance(close, float)
        # With truth 1/k in doubles there is nothing to keep, and no more than rounding is left.
        assert close == pytest.approx(float(exact), rel=1e-13, abs=1e-15 if extra == 0 else 0.0)
        log = log_histogram_probability(before, after, truth)
        assert log == pytest.approx(math.log(exact) if exact else -math.inf, abs=1e-12)


@given(st.integers(1, 60), st.data())
def test_the_binary_sum_is_the_general_one(n, data):
    truth = data.draw(st.fractions(Fraction(1, 2), 1, max_denominator=50))
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    before, after = [a, n - a], [b, n - b]
    exact = histogram_probability(before, after, truth)
    assert module._exact_any(before, after, truth) == exact
    if exact:
        logs = [form(before, after, float(truth)) for form in (module._log_binary, module._log_any)]
        assert logs == pytest.approx([math.log(exact)] * 2, abs=1e-11)


@given(st.integers(2, 40), st.integers(3, 5), st.data())
def test_floats_are_close_to_fractions(n, k, data):
    last = num_histograms(n, k) - 1
    ranks = data.draw(st.lists(st.integers(0, last), min_size=2, max_size=2))
    before, after = histogram_at(ranks, n, k).tolist()
    kept = data.draw(st.fractions(Fraction(1, 50), 1, max_denominator=50))
    truth = Fraction(1, k) + kept * Fraction(k - 1, k)
    exact = histogram_probability(before, after, truth)
    found = histogram_probability(before, after, float(truth))
    assert found == pytest.approx(float(exact), rel=1e-12, abs=0.0)


def test_many_users():
    """The mean of the reports is known, and the law sums to one, where nobody can enumerate."""
    truth, n = 0.8, 3000
    law = np.array([histogram_probability([n, 0], [b, n - b], truth) for b in range(n + 1)])
    assert law.sum() == pytest.approx(1.0, abs=1e-11)
    assert law @ np.arange(n + 1) == pytest.approx(truth * n, rel=1e-11)
    # All users have one value: the reports are multinomial.
    log = log_histogram_probability([600, 0, 0], [480, 60, 60], truth)
    multinomial = math.lgamma(601) - math.lgamma(481) - 2 * math.lgamma(61)
    assert log == pytest.approx(multinomial + 480 * math.log(0.8) + 120 * math.log(0.1), abs=1e-10)
    assert histogram_probability([9000, 0, 0], [0, 9000, 0], truth) == 0.0
    assert log_histogram_probability([9000, 0, 0], [0, 9000, 0], truth) == pytest.approx(
        9000 * math.log(0.1), rel=1e-13
    )


def test_no_noise_and_all_noise():
    assert histogram_probability([2, 1], [2, 1], 1) == 1
    assert histogram_probability([2, 1], [1, 2], 1) == 0
    assert histogram_probability([2, 1, 0], [2, 1, 0], 1.0) == pytest.approx(1.0, abs=1e-15)
    assert histogram_probability([2, 1, 0], [1, 2, 0], 1.0) == 0.0
    assert histogram_probability([2, 1], [1, 2], 1.0) == 0.0
    assert histogram_probability([3, 0, 0], [1, 1, 1], 1 / 3) == pytest.approx(6 / 27, rel=1e-14)
    assert histogram_probability([0, 0], [0, 0], 0.75) == 1.0
    assert histogram_probability([0, 0, 0], [0, 0, 0], Fraction(1, 2)) == 1


def test_the_exponent_is_the_number_of_matches():
    """Eq. 25 as a law: another truth probability gives another answer."""
    assert histogram_probability([2, 1], [2, 1], Fraction(3, 4)) == Fraction(33, 64)
    assert histogram_probability([2, 1], [2, 1], Fraction(1, 2)) == Fraction(3, 8)


@pytest.mark.parametrize(
    ("before", "after", "truth", "words"),
    [
        ([1, 2], [1, 1, 1], 0.5, "from_histogram has 2 values and to_histogram 3"),
        ([1, 2], [1, 1], 0.5, "from_histogram has 3 users and to_histogram 2"),
        ([1, -2], [1, 1], 0.5, "from_histogram has the count -2"),
        ([1, 2], [0.5, 2.5], 0.5, "to_histogram has entries that are not whole numbers"),
        ([3], [3], 0.5, "num_values = 1 is below 2"),
        ([1, 2], [1, 2], math.nan, r"truth = nan is not in \[1/k, 1\]"),
        ([1, 2], [1, 2], 1.5, r"truth = 1.5 is not in"),
        ([1, 2], [1, 2], Fraction(-1, 2), r"truth = -1/2 is not in"),
        ([1, 2], [1, 2], "p", r"truth = 'p' is not a number"),
        ([10**8, 0], [10**8, 0], 0.5, r"above 10000000 for 2 values: use fewer users$"),
        ([6000, 0], [6000, 0], Fraction(1, 2), r"above 5000 for 2 values: .* a float for truth"),
        ([10**5, 0, 0], [10**5, 0, 0], 0.5, r"100000 users, above 20000 for 3 values"),
        ([3000, 0, 0], [3000, 0, 0], Fraction(1, 2), r"above 1000 for 3 .* or a float for truth"),
    ],
)
def test_bad_input(before, after, truth, words):
    with pytest.raises(ParameterError, match=words):
        histogram_probability(before, after, truth)


def test_logarithms_are_checked_too():
    with pytest.raises(ParameterError, match="truth = 'p' is not a number"):
        log_histogram_probability([1, 2], [1, 2], "p")
    with pytest.raises(ParameterError, match=r"above 20000 for 3 values: use fewer users$"):
        log_histogram_probability([10**5, 0, 0], [10**5, 0, 0], Fraction(1, 2))
    below = Fraction(1, 3) - Fraction(1, 10**30)  # rounds to the double nearest to 1/3
    with pytest.raises(OutOfRegimeError, match="is below 1/3"):
        log_histogram_probability([1, 1, 1], [1, 1, 1], below)


@pytest.mark.parametrize("truth", [0.33, Fraction(33, 100), 0])
def test_the_hypothesis(truth):
    with pytest.raises(OutOfRegimeError, match=r"truth = .* is below 1/3"):
        histogram_probability([1, 1, 1], [1, 1, 1], truth)


@pytest.mark.parametrize("k", range(2, 60))
def test_the_double_nearest_to_one_over_k_is_taken(k):
    assert checked_truth(1.0 / k, k) == 1.0 / k
    row = response_channel(k, 1.0 / k).matrix[0]
    np.testing.assert_allclose(row, 1.0 / k, rtol=1e-14)
    with pytest.raises(OutOfRegimeError, match="is below"):
        checked_truth(math.nextafter(1.0 / k, 0.0), k)


def test_responses():
    exact = response_channel(3, Fraction(1, 2))
    assert exact.is_exact
    assert exact.inputs == exact.outputs == (0, 1, 2)
    assert exact.matrix[1].tolist() == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    assert response_channel(2, 1).matrix.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ParameterError, match=r"100000 x 100000 = 10000000000 cells"):
        response_channel(10**5, 0.5)
    with pytest.raises(ParameterError, match="num_values = 1 is below 2"):
        response_channel(1, 1.0)
