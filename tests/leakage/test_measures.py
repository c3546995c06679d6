"""Vulnerabilities, by definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.leakage_cases import by_definition, cascades, cases, floats
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import (
    Channel,
    min_capacity_bits,
    posterior_vulnerability,
    prior_vulnerability,
    single_target_gain,
)

HALF = Fraction(1, 2)


def test_single_target():
    inputs = [(a, b) for a in "xyz" for b in "uv"]
    gain = single_target_gain(inputs)
    assert gain.tolist() == [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]


@pytest.mark.parametrize("inputs", [None, []])
def test_single_target_refuses(inputs):
    with pytest.raises(ParameterError, match="inputs is empty"):
        single_target_gain(inputs)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, math.nan]], "not finite"),
        ([[1.0, 0.0], [0.0, math.inf]], "not finite"),
        ([1.0, 2.0], "gain has 1 dimensions"),
        ([], "gain"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([["a", "b"]], "gain has an entry that is not a number"),
        (np.eye(3), "gain has 3 inputs, the channel 2"),
        ([[1, -2], [-2, 1]], "add a guess worth 0"),
        ([[2.0, -1.0], [-1.0, 2.0]], "add a guess worth 0"),
    ],
)
def test_gains_that_are_none(table, message):
    with pytest.raises(ParameterError, match=message):
        posterior_vulnerability([0.5, 0.5], np.eye(2), table)


@settings(max_examples=50)
@given(cases())
def test_tables(case):
    prior, matrix, table = case
    truth = by_definition(prior, matrix, table)
    exact, dense = Channel(matrix), floats(matrix)
    found = posterior_vulnerability(prior, exact, table)
    assert isinstance(found, Fraction)
    assert found == truth
    for form in (dense, exact):
        found = posterior_vulnerability(floats(prior), form, table)
        assert isinstance(found, float)
        assert found == pytest.approx(float(truth), rel=1e-14)
    # Nothing is exact that is made from a floating-point number.
    assert isinstance(posterior_vulnerability(prior, dense, table), float)
    assert isinstance(posterior_vulnerability(prior, exact, floats(table)), float)


@settings(max_examples=50)
@given(cases(), st.data())
def test_a_target_among_several(case, data):
    prior, matrix, _ = case
    size = len(prior)
    said = data.draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size))
    gain = single_target_gain([(answer, "z") for answer in said])
    table = [[int(answer == guess) for answer in said] for guess in dict.fromkeys(said)]
    truth = by_definition(prior, matrix, table)
    assert posterior_vulnerability(prior, Channel(matrix), gain) == truth


@settings(max_examples=50)
@given(cascades())
def test_data_processing_inequality(case):
    prior, matrix, after, table = case
    first = Channel(matrix)
    second = first @ Channel(after)
    assert (
        prior_vulnerability(prior, table)
        <= posterior_vulnerability(prior, second, table)
        <= posterior_vulnerability(prior, first, table)
    )


@settings(max_examples=50)
@given(cases(), st.data())
def test_convex_in_the_prior(case, data):
    prior, matrix, table = case
    size = len(prior)
    other = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any))
    other = [Fraction(weight, sum(other)) for weight in other]
    middle = [HALF * a + HALF * b for a, b in zip(prior, other, strict=True)]
    for value in (
        lambda law: prior_vulnerability(law, table),
        lambda law: posterior_vulnerability(law, Channel(matrix), table),
    ):
        assert value(middle) <= HALF * value(prior) + HALF * value(other)


@settings(max_examples=30)
@given(cases())
def test_the_min_capacity_is_what_no_prior_and_no_gain_exceeds(case):
    prior, matrix, table = case
    most = sum(max(column) for column in zip(*matrix, strict=True))
    assert min_capacity_bits(Channel(matrix)) == pytest.approx(math.log2(most), abs=1e-12)
    before = prior_vulnerability(prior, table)
    assert posterior_vulnerability(prior, Channel(matrix), table) <= most * before


def test_a_prior_or_a_gain():
    with pytest.raises(ParameterError, match="both missing"):
        prior_vulnerability(None)
    with pytest.raises(ParameterError, match="prior has 2 entries, not 3"):
        prior_vulnerability([0.5, 0.5], np.eye(3))


def test_published_example():
    # k-ary randomized response of one person, uniform prior: the chance to tell the truth.
    channel = [[Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)]]
    rows = [np.roll(channel[0], shift).tolist() for shift in range(3)]
    assert posterior_vulnerability(None, rows) == Fraction(3, 5)


@pytest.mark.parametrize(
    ("prior", "channel", "message"),
    [
        ([0.5, 0.5], np.eye(3), "prior has 2 entries, not 3"),
        ([0.5, 0.6], np.eye(2), "prior sums to 1.1"),
        ([1.5, -0.5], np.eye(2), "prior"),
        ([0.5, 0.5], [[0.5, 0.6], [0.0, 1.0]], "row 0 of the channel sums to 1.1"),
    ],
)
def test_what_does_not_fit(prior, channel, message):
    with pytest.raises(ParameterError, match=message):
        posterior_vulnerability(prior, channel)


@pytest.mark.parametrize(
    "table", [[[1, -1], [-1, 1], [0, 0]], [[3, 2], [-9, 4]], [[-0.5, 1.0], [0.0, 0.0]]]
)
def test_a_guess_without_risk_is_enough(table):
    for chance in np.linspace(0.0, 1.0, 11):
        assert prior_vulnerability([chance, 1.0 - chance], table) >= 0.0
