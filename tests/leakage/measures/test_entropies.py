"""Entropies against their definitions and the laws that they obey."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array

from oracles.leakage_cases import cascades, cases, floats
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.measures.entropies import (
    conditional_guessing_entropy,
    conditional_shannon_entropy_bits,
    guessing_entropy,
    min_entropy_bits,
    min_entropy_leakage_bits,
    mutual_information_bits,
    shannon_entropy_bits,
)


def entropy(law):
    return math.fsum(-float(p) * math.log2(p) for p in law if p > 0)


def guesses(weights):
    return sum(i * w for i, w in enumerate(sorted(weights, reverse=True), 1))


@settings(max_examples=50)
@given(cases())
def test_by_definition(case):
    prior, matrix, _ = case
    joint = [[p * c for c in row] for p, row in zip(prior, matrix, strict=True)]
    columns = list(zip(*joint, strict=True))
    totals = [sum(column) for column in columns]
    left = math.fsum(
        float(total) * entropy([cell / total for cell in column])
        for column, total in zip(columns, totals, strict=True)
        if total > 0
    )
    for form in (Channel.from_matrix(matrix), floats(matrix), csr_array(floats(matrix))):
        law = floats(prior)
        assert conditional_shannon_entropy_bits(law, form) == pytest.approx(left, abs=1e-13)
        assert mutual_information_bits(law, form) == pytest.approx(entropy(prior) - left, abs=1e-13)
        assert conditional_guessing_entropy(law, form) == pytest.approx(
            float(sum(guesses(column) for column in columns))
        )
    assert shannon_entropy_bits(floats(prior)) == pytest.approx(entropy(prior))
    exact = conditional_guessing_entropy(prior, Channel.from_matrix(matrix))
    assert isinstance(exact, Fraction)
    assert exact == sum(guesses(column) for column in columns)
    assert guessing_entropy(prior) == guesses(prior)
    assert guessing_entropy(floats(prior)) == pytest.approx(float(guesses(prior)))
    assert min_entropy_bits(prior) == pytest.approx(-math.log2(max(prior)))
    assert min_entropy_leakage_bits(prior, Channel.from_matrix(matrix)) == pytest.approx(
        min_entropy_bits(prior) + math.log2(sum(max(column) for column in columns)), abs=1e-13
    )


@settings(max_examples=50)
@given(cascades())
def test_secrecy_only_grows_by_processing(case):
    prior, matrix, after, _ = case
    first = Channel.from_matrix(matrix)
    second = first @ Channel.from_matrix(after)
    for before, measure in (
        (shannon_entropy_bits(prior), conditional_shannon_entropy_bits),
        (guessing_entropy(prior), conditional_guessing_entropy),
    ):
        assert measure(prior, first) <= measure(prior, second) + 1e-13
        assert measure(prior, second) <= before + 1e-13
    information = mutual_information_bits(prior, first)
    assert 0.0 <= mutual_information_bits(prior, second) <= information + 1e-13


@pytest.mark.parametrize("tilt", [1e-2, 1e-4, 1e-6, 1e-8, 2.0**-30])
def test_little_information_keeps_its_digits(tilt):
    matrix = np.array([[0.5 + tilt, 0.5 - tilt], [0.5 - tilt, 0.5 + tilt]])
    # 1 - h(1/2 + t) = (2 t^2 + (4/3) t^4 + ...) / ln 2
    truth = (2.0 * tilt**2 + 4.0 / 3.0 * tilt**4 + 32.0 / 15.0 * tilt**6) / math.log(2.0)
    assert mutual_information_bits(None, matrix) == pytest.approx(truth, rel=1e-7)
    assert mutual_information_bits(None, csr_array(matrix)) == pytest.approx(truth, abs=1e-15)


def test_extreme_chances():
    law = [1.0 - 1e-300, 1e-300]
    assert mutual_information_bits(law, np.eye(2)) == pytest.approx(1e-300 * 300 / math.log10(2))
    law = [1.0, 5e-324]
    assert 0.0 <= mutual_information_bits(law, [[1.0, 0.0], [0.0, 1.0]]) < 1e-300
    assert 0.0 <= conditional_shannon_entropy_bits(law, [[0.5, 0.5], [0.5, 0.5]]) < 1e-300


def test_certainty():
    for measure in (shannon_entropy_bits, min_entropy_bits):
        assert measure([1.0, 0.0]) == 0.0
        assert math.copysign(1.0, measure([1.0, 0.0])) == 1.0
    assert guessing_entropy([1, 0]) == 1
    assert guessing_entropy([Fraction(1, 5)] * 5) == 3
    assert conditional_shannon_entropy_bits(None, np.eye(4)) == 0.0
    assert mutual_information_bits(None, np.ones((4, 1))) == 0.0


def test_bad_input():
    for measure in (shannon_entropy_bits, guessing_entropy, min_entropy_bits):
        with pytest.raises(ParameterError, match="prior sums to"):
            measure([0.5, 0.6])
    for measure in (
        conditional_shannon_entropy_bits,
        conditional_guessing_entropy,
        mutual_information_bits,
    ):
        with pytest.raises(ParameterError, match="prior has 1 entries, not 2"):
            measure([1.0], np.eye(2))
