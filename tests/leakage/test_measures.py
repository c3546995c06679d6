"""Gain functions and vulnerabilities, by definition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.leakage_cases import by_definition, cascades, cases, floats
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage import measures as vulnerability
from shuffledp.leakage.channel import Channel
from shuffledp.leakage.measures import (
    GainFunction,
    additive_leakage,
    identity_gain,
    matrix_gain,
    min_capacity_bits,
    multiplicative_leakage,
    posterior_vulnerability,
    prior_vulnerability,
    single_target_gain,
    tries_gain,
)


def test_single_target():
    inputs = [(a, b) for a in "xyz" for b in "uv"]
    gain = single_target_gain(inputs, target=1)
    assert gain.num_guesses == 2
    assert gain.classes.tolist() == [0, 1] * 3
    assert not gain.is_identity


@pytest.mark.parametrize(
    ("inputs", "target", "message"),
    [
        (None, 0, "inputs is empty"),
        ([], 0, "inputs is empty"),
        (["ab"], 0, r"inputs\[0\] = 'ab' is no tuple"),
        ([(0, 1), 5], 0, r"inputs\[1\] = 5 is no tuple"),
        ([(0, 1)], 2, r"target = 2 is not among the 2 people"),
        ([(0, 1)], -1, "target = -1 is below 0"),
    ],
)
def test_single_target_refuses(inputs, target, message):
    with pytest.raises(ParameterError, match=message):
        single_target_gain(inputs, target)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, math.nan]], r"matrix\[0, 1\] = nan is not finite"),
        ([[1.0], [math.inf]], r"matrix\[1, 0\] = inf is not finite"),
        ([1.0, 2.0], "matrix has 1 dimensions"),
        ([], "matrix"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([["a"]], "matrix"),
    ],
)
def test_tables_that_are_none(table, message):
    with pytest.raises(ParameterError, match=message):
        matrix_gain(table)


def test_tables_are_copied_and_closed():
    table = np.array([[1.0, 0.0]])
    gain = matrix_gain(table)
    table[0, 0] = 5.0
    assert gain.table.tolist() == [[1.0, 0.0]]
    assert not gain.table.flags.writeable
    assert not gain.is_exact
    assert matrix_gain([[1, Fraction(1, 3)]]).is_exact
    assert repr(gain) == "GainFunction(1 x 2, table)"


@pytest.mark.parametrize(("size", "tries"), [(0, 1), (3, 0), (-1, 1)])
def test_sizes_refused(size, tries):
    with pytest.raises(ParameterError, match="below 1"):
        tries_gain(size, tries)


def test_gains_are_compared_by_identity():
    gain = identity_gain(2)
    assert isinstance(gain, GainFunction)
    assert gain != identity_gain(2)


HALF = Fraction(1, 2)


def random_law(generator, *shape):
    """Rows that sum to one, with zeros."""
    table = generator.random(shape) * (generator.random(shape) < 0.6) + 1e-3
    return table / table.sum(axis=-1, keepdims=True)


def in_all_forms(matrix):
    """The same channel, exact and in doubles."""
    return Channel(matrix), floats(matrix)


@settings(max_examples=50)
@given(cases())
def test_tables(case):
    prior, matrix, table = case
    truth = by_definition(prior, matrix, table)
    exact, dense = in_all_forms(matrix)
    found = posterior_vulnerability(prior, exact, matrix_gain(table))
    assert isinstance(found, Fraction)
    assert found == truth
    for form in (dense, exact):
        found = posterior_vulnerability(floats(prior), form, matrix_gain(table))
        assert isinstance(found, float)
        assert found == pytest.approx(float(truth), rel=1e-14)
    # Nothing is exact that is made from a floating-point number.
    assert isinstance(posterior_vulnerability(prior, dense, matrix_gain(table)), float)
    assert isinstance(posterior_vulnerability(prior, exact, matrix_gain(floats(table))), float)


@settings(max_examples=50)
@given(cases(), st.integers(1, 5))
def test_tries(case, tries):
    prior, matrix, _ = case
    size = len(prior)
    sets = itertools.combinations(range(size), min(tries, size))
    table = [[int(x in chosen) for x in range(size)] for chosen in sets]
    truth = by_definition(prior, matrix, table)
    exact, dense = in_all_forms(matrix)
    gain = tries_gain(size, tries)
    assert posterior_vulnerability(prior, exact, gain) == truth
    for form in (dense,):
        assert posterior_vulnerability(floats(prior), form, gain) == pytest.approx(float(truth))
    assert prior_vulnerability(prior, gain) == by_definition(prior, [[1]] * size, table)


@settings(max_examples=50)
@given(cases(), st.data())
def test_classes(case, data):
    prior, matrix, _ = case
    size = len(prior)
    said = data.draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size))
    gain = single_target_gain([(answer, "z") for answer in said])
    table = [[int(answer == guess) for answer in said] for guess in dict.fromkeys(said)]
    truth = by_definition(prior, matrix, table)
    exact, dense = in_all_forms(matrix)
    assert posterior_vulnerability(prior, exact, gain) == truth
    for form in (dense,):
        assert posterior_vulnerability(floats(prior), form, gain) == pytest.approx(float(truth))


@settings(max_examples=50)
@given(cascades())
def test_data_processing_inequality(case):
    prior, matrix, after, table = case
    gain = matrix_gain(table)
    first = Channel(matrix)
    second = first @ Channel(after)
    before = prior_vulnerability(prior, gain)
    assert (
        before
        <= posterior_vulnerability(prior, second, gain)
        <= posterior_vulnerability(prior, first, gain)
    )
    assert additive_leakage(prior, first, gain) == (
        posterior_vulnerability(prior, first, gain) - before
    )
    if before > 0:
        assert multiplicative_leakage(prior, first, gain) * before == (
            posterior_vulnerability(prior, first, gain)
        )


@settings(max_examples=50)
@given(cases(), st.data())
def test_convex_in_the_prior(case, data):
    prior, matrix, table = case
    size = len(prior)
    other = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any))
    other = [Fraction(weight, sum(other)) for weight in other]
    middle = [HALF * a + HALF * b for a, b in zip(prior, other, strict=True)]
    gain, channel = matrix_gain(table), Channel(matrix)
    for value in (
        lambda law: prior_vulnerability(law, gain),
        lambda law: posterior_vulnerability(law, channel, gain),
    ):
        assert value(middle) <= HALF * value(prior) + HALF * value(other)


@settings(max_examples=30)
@given(cases())
def test_the_min_capacity_is_what_no_prior_and_no_gain_exceeds(case):
    prior, matrix, table = case
    channel, gain = Channel(matrix), matrix_gain([[abs(g) for g in r] for r in table])
    most = sum(max(column) for column in zip(*matrix, strict=True))
    assert min_capacity_bits(channel) == pytest.approx(math.log2(most), abs=1e-12)
    if prior_vulnerability(prior, gain) > 0:
        assert multiplicative_leakage(prior, channel, gain) <= most


def test_no_ratio_to_nothing():
    nothing = matrix_gain([[0, 1], [0, 0]])
    with pytest.raises(ParameterError, match="use additive_leakage"):
        multiplicative_leakage([1, 0], [[1, 0], [0, 1]], nothing)


def test_a_prior_or_a_gain():
    with pytest.raises(ParameterError, match="both missing"):
        prior_vulnerability(None)
    with pytest.raises(ParameterError, match="prior has 2 entries, not 3"):
        prior_vulnerability([0.5, 0.5], identity_gain(3))


@pytest.mark.parametrize("shape", [(3000, 7), (7, 9001), (40, 40), (1, 5), (5, 1)])
def test_blocks(shape, monkeypatch):
    monkeypatch.setattr(vulnerability, "_BLOCK_CELLS", 64)
    generator = Entropy.from_seed(7).generator()
    matrix = random_law(generator, *shape)
    prior = random_law(generator, shape[0])
    joint = prior[:, None] * matrix
    table = generator.random((3, shape[0])) - 0.2
    table[0] = np.abs(table[0])
    tries = min(3, shape[0])
    said = generator.integers(0, 4, shape[0])
    gain = single_target_gain([(int(answer),) for answer in said])
    totals = np.array(
        [joint[said == answer].sum(axis=0) for answer in range(4) if (said == answer).any()]
    )
    truths = {
        identity_gain(shape[0]): joint.max(axis=0).sum(),
        tries_gain(shape[0], tries): np.sort(joint, axis=0)[-tries:].sum(),
        gain: totals.max(axis=0).sum(),
        matrix_gain(table): (table @ joint).max(axis=0).sum(),
    }
    for form in (matrix, np.asfortranarray(matrix)):
        for asked, truth in truths.items():
            found = posterior_vulnerability(prior, form, asked)
            assert found == pytest.approx(truth, rel=1e-13)


def test_published_example():
    # k-ary randomized response of one person, uniform prior: the chance to tell the truth.
    channel = [[Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)]]
    rows = [np.roll(channel[0], shift).tolist() for shift in range(3)]
    assert posterior_vulnerability(None, rows) == Fraction(3, 5)
    assert additive_leakage(None, rows) == Fraction(4, 15)
    assert multiplicative_leakage(None, rows) == Fraction(9, 5)


@pytest.mark.parametrize(
    ("prior", "channel", "gain", "message"),
    [
        ([0.5, 0.5], np.eye(3), None, "prior has 2 entries, not 3"),
        ([0.5, 0.6], np.eye(2), None, "prior sums to 1.1"),
        ([1.5, -0.5], np.eye(2), None, "prior"),
        ([0.5, 0.5], np.eye(2), identity_gain(3), "gain has 3 inputs, the channel 2"),
        ([0.5, 0.5], [[0.5, 0.6], [0.0, 1.0]], None, "row 0 of the channel sums to 1.1"),
    ],
)
def test_what_does_not_fit(prior, channel, gain, message):
    for measure in (posterior_vulnerability, additive_leakage):
        with pytest.raises(ParameterError, match=message):
            measure(prior, channel, gain)


@pytest.mark.parametrize(
    ("table", "allowed"),
    [
        ([[1, -1], [-1, 1], [0, 0]], True),
        ([[3, 2], [-9, 4]], True),
        ([[-0.5, 1.0], [0.0, 0.0]], True),
        ([[1, -2], [-2, 1]], False),
        ([[2.0, -1.0], [-1.0, 2.0]], False),
    ],
)
def test_a_guess_without_risk_is_needed(table, allowed):
    if allowed:
        gain = matrix_gain(table)
        for chance in np.linspace(0.0, 1.0, 11):
            assert prior_vulnerability([chance, 1.0 - chance], gain) >= 0.0
    else:
        with pytest.raises(ParameterError, match="add a guess worth 0"):
            matrix_gain(table)
