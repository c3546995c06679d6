"""Capacities: bounds that nothing exceeds, and that are attained."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from oracles.leakage_cases import cases, floats, laws, matrices
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.measures.capacities import (
    additive_capacity,
    min_capacity_bits,
    multiplicative_bayes_capacity,
    multiplicative_capacity,
    shannon_capacity_bits,
)
from shuffledp.leakage.measures.entropies import mutual_information_bits
from shuffledp.leakage.measures.gains import matrix_gain
from shuffledp.leakage.measures.vulnerability import (
    additive_leakage,
    multiplicative_leakage,
    posterior_vulnerability,
    prior_vulnerability,
)


def noisy_entropy(p):
    return sum(-q * math.log2(q) for q in (p, 1.0 - p) if q > 0.0)


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


# ---------------------------------------------------------------- Shannon capacity
@pytest.mark.parametrize("p", [0.0, 0.1, 0.25, 0.499])
def test_binary_symmetric(p):
    found = shannon_capacity_bits([[1.0 - p, p], [p, 1.0 - p]])
    assert found.lower <= 1.0 - noisy_entropy(p) <= found.upper
    assert found.upper - found.lower <= 1e-9 * found.upper + 1e-12


@pytest.mark.parametrize("q", [0.01, 0.5, 0.9])
def test_z_channel(q):
    # Known in closed form: log2(1 + (1 - q) q^(q / (1 - q))).
    truth = math.log2(1.0 + (1.0 - q) * q ** (q / (1.0 - q)))
    for form in (np.array([[1.0, 0.0], [q, 1.0 - q]]), csr_array([[1.0, 0.0], [q, 1.0 - q]])):
        found = shannon_capacity_bits(form)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 1e-8


def test_erasure_and_noiseless():
    e = 0.3
    found = shannon_capacity_bits([[1.0 - e, 0.0, e], [0.0, 1.0 - e, e]])
    assert found.lower <= 1.0 - e <= found.upper <= 1.0 - e + 1e-9
    found = shannon_capacity_bits(np.eye(7))
    assert found.lower <= math.log2(7.0) <= found.upper
    found = shannon_capacity_bits(np.full((3, 4), 0.25))
    assert found.lower == 0.0
    assert found.upper <= 1e-12


@settings(max_examples=50)
@given(st.integers(2, 4).flatmap(lambda n: matrices(n, 3)), st.data())
def test_nothing_holds_more(matrix, data):
    found = shannon_capacity_bits(Channel.from_matrix(matrix))
    prior = data.draw(laws(len(matrix)))
    assert mutual_information_bits(prior, matrix) <= found.upper
    assert found.upper <= min_capacity_bits(matrix) + 1e-9 or found.gap > 1e-9
    assert found.upper - found.lower <= 1e-6


def test_outputs_that_never_occur():
    wide = np.array([[0.5, 0.0, 0.5], [0.1, 0.0, 0.9]])
    narrow = wide[:, [0, 2]]
    truth = shannon_capacity_bits(narrow)
    for form in (wide, csr_array(wide), csr_array(narrow)):
        found = shannon_capacity_bits(form)
        assert found.lower == pytest.approx(truth.lower, rel=1e-8)
        assert found.upper == pytest.approx(truth.upper, rel=1e-8)


def test_a_stopped_iteration_says_so():
    rows = np.linspace(0.0, 1.0, 12)
    matrix = np.column_stack([(1.0 - rows) ** 2, 2.0 * rows * (1.0 - rows), rows**2])
    early = shannon_capacity_bits(matrix, max_iterations=3)
    late = shannon_capacity_bits(matrix, max_iterations=3000)
    assert early.lower <= late.lower <= late.upper <= early.upper
    assert early.gap > 10.0 * late.gap
    assert late.upper - late.lower <= 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tolerance": 0.0}, "tolerance"), ({"max_iterations": 0}, "max_iterations")],
)
def test_shannon_refuses(options, message):
    with pytest.raises(ParameterError, match=message):
        shannon_capacity_bits(np.eye(2), **options)
