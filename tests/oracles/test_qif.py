"""Leakage against qif, an independent implementation in C++, on random channels.

Its ``double`` functions are compared to round-off, those on rationals exactly.
"""

import platform
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.leakage_cases import SIZES, cascades, cases, floats, matrices
from shuffledp.core.entropy import Entropy
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.measures.entropies import (
    conditional_guessing_entropy,
    conditional_shannon_entropy_bits,
    guessing_entropy,
    min_entropy_leakage_bits,
    mutual_information_bits,
    shannon_entropy_bits,
)
from shuffledp.leakage.measures.gains import identity_gain, matrix_gain
from shuffledp.leakage.measures.refinement import is_equivalent, refinement
from shuffledp.leakage.measures.vulnerability import (
    additive_capacity,
    additive_leakage,
    best_strategy,
    multiplicative_bayes_capacity,
    multiplicative_leakage,
    posterior_vulnerability,
    prior_vulnerability,
)

if sys.platform != "linux" or platform.machine() != "x86_64":
    pytest.skip("qif publishes no wheel for this platform", allow_module_level=True)

from qif import channel as qif_channel
from qif import measure as qif_measure
from qif import refinement as qif_refinement


def rationals(matrix):
    """As qif takes them."""
    return np.array([[Fraction(cell) for cell in row] for row in matrix], dtype=object)


@given(cases())
def test_vulnerability_in_fractions(case):
    prior, matrix, table = case
    channel, gain = Channel.from_matrix(matrix), matrix_gain(table)
    law, rows, gains = np.array(prior, dtype=object), rationals(matrix), rationals(table)
    theirs = qif_measure.g_vuln
    assert prior_vulnerability(prior, gain) == theirs.prior(gains, law)
    assert posterior_vulnerability(prior, channel, gain) == theirs.posterior(gains, law, rows)
    assert prior_vulnerability(prior) == qif_measure.bayes_vuln.prior(law)
    assert posterior_vulnerability(prior, channel) == qif_measure.bayes_vuln.posterior(law, rows)
    assert additive_leakage(prior, channel, gain) == theirs.add_leakage(gains, law, rows)
    assert multiplicative_bayes_capacity(channel) == qif_measure.bayes_vuln.mult_capacity(rows)
    assert conditional_guessing_entropy(prior, channel) == qif_measure.guessing.posterior(law, rows)
    assert guessing_entropy(prior) == qif_measure.guessing.prior(law)
    assert additive_capacity(prior, channel) == theirs.add_capacity(law, rows, True)
    if prior_vulnerability(prior, gain) > 0:
        assert multiplicative_leakage(prior, channel, gain) == theirs.mult_leakage(gains, law, rows)


@pytest.mark.parametrize("shape", [(2, 2), (5, 9), (30, 20), (91, 400)])
def test_measures_in_floating_point(shape):
    generator = Entropy.from_seed(7).generator()
    matrix = generator.random(shape) ** 3
    matrix /= matrix.sum(axis=1, keepdims=True)
    prior = generator.random(shape[0])
    prior /= prior.sum()
    table = generator.random((6, shape[0]))
    ours = [
        posterior_vulnerability(prior, matrix),
        posterior_vulnerability(prior, matrix, matrix_gain(table)),
        multiplicative_leakage(prior, matrix, matrix_gain(table)),
        min_entropy_leakage_bits(prior, matrix),
        shannon_entropy_bits(prior),
        conditional_shannon_entropy_bits(prior, matrix),
        mutual_information_bits(prior, matrix),
        conditional_guessing_entropy(prior, matrix),
        additive_capacity(prior, matrix),
    ]
    theirs = [
        qif_measure.bayes_vuln.posterior(prior, matrix),
        qif_measure.g_vuln.posterior(table, prior, matrix),
        qif_measure.g_vuln.mult_leakage(table, prior, matrix),
        qif_measure.bayes_vuln.min_entropy_leakage(prior, matrix),
        qif_measure.shannon.prior(prior),
        qif_measure.shannon.posterior(prior, matrix),
        qif_measure.shannon.add_leakage(prior, matrix),
        qif_measure.guessing.posterior(prior, matrix),
        qif_measure.g_vuln.add_capacity(prior, matrix, True),
    ]
    assert ours == pytest.approx(theirs, rel=1e-10)
    strategy = qif_measure.g_vuln.strategy(table, prior, matrix)
    assert list(best_strategy(prior, matrix, matrix_gain(table))) == strategy.ravel().tolist()


@st.composite
def pairs(draw):
    num_inputs = draw(SIZES)
    return tuple(draw(SIZES.flatmap(lambda m: matrices(num_inputs, m))) for _ in range(2))


@settings(max_examples=40)
@given(pairs())
def test_refinement(pair):
    first, second = (rationals(matrix) for matrix in pair)
    theirs = qif_refinement.refined_by(first, second)
    assert refinement(first, second).holds == theirs
    assert is_equivalent(first, second) == (theirs and qif_refinement.refined_by(second, first))


@settings(max_examples=20)
@given(cascades())
def test_refinement_of_cascades(case):
    _, matrix, after, _ = case
    second = rationals(matrix) @ rationals(after)
    assert qif_refinement.refined_by(rationals(matrix), second)
    assert refinement(rationals(matrix), second).holds


@given(cases())
def test_composition(case):
    _, matrix, _ = case
    ours = Channel.from_matrix(floats(matrix))
    theirs = qif_channel.compose.parallel(floats(matrix), floats(matrix))
    gain = identity_gain(len(matrix))
    assert posterior_vulnerability(None, ours.parallel(ours), gain) == pytest.approx(
        posterior_vulnerability(None, theirs, gain)
    )
