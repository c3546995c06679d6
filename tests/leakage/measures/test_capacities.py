"""Capacities: bounds that nothing exceeds, and that are attained."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from oracles.leakage_cases import cases, floats
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.measures.gains import matrix_gain
from shuffledp.leakage.measures.vulnerability import (
    additive_capacity,
    additive_leakage,
    min_capacity_bits,
    multiplicative_bayes_capacity,
    multiplicative_capacity,
    multiplicative_leakage,
    posterior_vulnerability,
    prior_vulnerability,
)


@settings(max_examples=50)
@given(cases())
def test_multiplicative_capacities(case):
    prior, matrix, table = case
    channel, gain = Channel.from_matrix(matrix), matrix_gain(table)
    capacity = multiplicative_capacity(prior, channel)
    largest = multiplicative_bayes_capacity(channel)
    assert isinstance(capacity, Fraction)
    assert capacity <= largest <= min(channel.num_inputs, channel.num_outputs)
    # Nothing exceeds them ...
    before = prior_vulnerability(prior, gain)
    assert posterior_vulnerability(prior, channel, gain) <= capacity * before
    # ... and they are attained.
    attaining = matrix_gain(
        [[int(x == w) / p if p else 0 for x, p in enumerate(prior)] for w in range(len(prior))]
    )
    assert multiplicative_leakage(prior, channel, attaining) == capacity
    assert multiplicative_leakage(None, channel) == largest
    assert min_capacity_bits(channel) == pytest.approx(math.log2(largest))
    for form in (floats(matrix), csr_array(floats(matrix))):
        assert multiplicative_capacity(floats(prior), form) == pytest.approx(float(capacity))
        assert multiplicative_bayes_capacity(form) == pytest.approx(float(largest))


def additive_capacity_gain(prior, channel):
    """Return the gain of the proof: one guess an output, and one worth 0."""
    law = np.array(prior)
    raised = (channel.matrix > law @ channel.matrix).astype(object)
    return matrix_gain(np.vstack([raised.T - (law @ raised)[:, None], [[0] * len(prior)]]))


@settings(max_examples=50)
@given(cases(), st.data())
def test_additive_capacity(case, data):
    prior, matrix, _ = case
    channel = Channel.from_matrix(matrix)
    capacity = additive_capacity(prior, channel)
    assert isinstance(capacity, Fraction)
    # Nothing 1-spanning exceeds it; a constant for each guess does not matter ...
    entry = st.integers(0, 6).map(lambda n: Fraction(n, 6))
    row = st.lists(entry, min_size=len(prior), max_size=len(prior))
    table = data.draw(st.lists(row, min_size=1, max_size=4))
    assert additive_leakage(prior, channel, matrix_gain(table)) <= capacity
    # ... and it is attained.
    gain = additive_capacity_gain(prior, channel)
    assert prior_vulnerability(prior, gain) == 0
    assert additive_leakage(prior, channel, gain) == capacity
    spans = gain.matrix.max(axis=1) - gain.matrix.min(axis=1)
    assert spans.max() <= 1
    for form in (floats(matrix), csr_array(floats(matrix))):
        assert additive_capacity(floats(prior), form) == pytest.approx(float(capacity), abs=1e-15)
