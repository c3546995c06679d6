"""Leakage against qif, an independent implementation in C++, on random channels.

Its ``double`` functions are compared to round-off, those on rationals exactly.
"""

import math
import platform
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.leakage_cases import SIZES, cascades, cases, matrices
from shuffledp.core.entropy import Entropy
from shuffledp.leakage.channel import (
    Channel,
    is_refined_by,
    min_capacity_bits,
    posterior_vulnerability,
    prior_vulnerability,
)

if sys.platform != "linux" or platform.machine() != "x86_64":
    pytest.skip("qif publishes no wheel for this platform", allow_module_level=True)

from qif import measure as qif_measure
from qif import refinement as qif_refinement


def rationals(matrix):
    """As qif takes them."""
    return np.array([[Fraction(cell) for cell in row] for row in matrix], dtype=object)


@given(cases())
def test_vulnerability_in_fractions(case):
    prior, matrix, table = case
    channel, gain = Channel(matrix), table
    law, rows, gains = np.array(prior, dtype=object), rationals(matrix), rationals(table)
    theirs = qif_measure.g_vuln
    assert prior_vulnerability(prior, gain) == theirs.prior(gains, law)
    assert posterior_vulnerability(prior, channel, gain) == theirs.posterior(gains, law, rows)
    assert prior_vulnerability(prior) == qif_measure.bayes_vuln.prior(law)
    assert posterior_vulnerability(prior, channel) == qif_measure.bayes_vuln.posterior(law, rows)
    before, after = prior_vulnerability(prior, gain), posterior_vulnerability(prior, channel, gain)
    assert after - before == theirs.add_leakage(gains, law, rows)
    capacity = float(qif_measure.bayes_vuln.mult_capacity(rows))
    assert min_capacity_bits(channel) == pytest.approx(math.log2(capacity), abs=1e-12)
    if before > 0:
        assert after / before == theirs.mult_leakage(gains, law, rows)


@st.composite
def pairs(draw):
    num_inputs = draw(SIZES)
    return tuple(draw(SIZES.flatmap(lambda m: matrices(num_inputs, m))) for _ in range(2))


@settings(max_examples=40)
@given(pairs())
def test_refinement(pair):
    first, second = (rationals(matrix) for matrix in pair)
    theirs = qif_refinement.refined_by(first, second)
    assert is_refined_by(first, second) == theirs


@settings(max_examples=20)
@given(cascades())
def test_refinement_of_cascades(case):
    _, matrix, after, _ = case
    second = rationals(matrix) @ rationals(after)
    assert qif_refinement.refined_by(rationals(matrix), second)
    assert is_refined_by(rationals(matrix), second)


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
        posterior_vulnerability(prior, matrix, table),
        posterior_vulnerability(prior, matrix, table) / prior_vulnerability(prior, table),
    ]
    theirs = [
        qif_measure.bayes_vuln.posterior(prior, matrix),
        qif_measure.g_vuln.posterior(table, prior, matrix),
        qif_measure.g_vuln.mult_leakage(table, prior, matrix),
    ]
    assert ours == pytest.approx(theirs, rel=1e-10)
