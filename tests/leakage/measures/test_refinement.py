"""Refinement: evidence for every answer, and both answers right."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from oracles.leakage_cases import SIZES, cascades, floats, matrices
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.channels.matrices import as_numbers, to_fractions
from shuffledp.leakage.measures.gains import matrix_gain
from shuffledp.leakage.measures.refinement import is_equivalent, refinement
from shuffledp.leakage.measures.vulnerability import posterior_vulnerability

GOOD = [[Fraction(9, 10), Fraction(1, 10)], [Fraction(1, 10), Fraction(9, 10)]]
BAD = [[Fraction(7, 10), Fraction(3, 10)], [Fraction(3, 10), Fraction(7, 10)]]


def random_channel(generator, *shape):
    table = generator.random(shape) ** 4
    return table / table.sum(axis=1, keepdims=True)


@st.composite
def pairs(draw):
    """Two channels on the same secrets."""
    num_inputs = draw(SIZES)
    return tuple(draw(SIZES.flatmap(lambda m: matrices(num_inputs, m))) for _ in range(2))


@settings(max_examples=30)
@given(cascades())
def test_processing_refines(case):
    _, matrix, after, table = case
    first = Channel.from_matrix(matrix)
    second = first @ Channel.from_matrix(after)
    for found in (refinement(first, second), refinement(floats(matrix), second.to_dense())):
        assert found
        assert found.distance <= 1e-9
        assert (found.margin, found.separating_gain) == (0.0, None)
    gain = matrix_gain(table)
    assert posterior_vulnerability(None, second, gain) <= posterior_vulnerability(None, first, gain)


@settings(max_examples=30)
@given(pairs())
def test_every_separation_is_seen(pair):
    first, second = (Channel.from_matrix(matrix) for matrix in pair)
    found = refinement(first, second)
    if found.holds:
        return
    assert not found
    gain = found.separating_gain
    assert 0.0 <= gain.matrix.min() <= gain.matrix.max() <= 1.0
    exact = matrix_gain(to_fractions(gain.matrix))
    margin = posterior_vulnerability(None, second, exact) - posterior_vulnerability(
        None, first, exact
    )
    assert margin > 0
    assert found.margin == pytest.approx(float(margin), rel=1e-6, abs=1e-12)
    loose = refinement(first.to_float(), csr_array(second.to_dense()))
    assert loose.margin == pytest.approx(found.margin, rel=1e-6, abs=1e-9)


@settings(max_examples=30)
@given(pairs())
def test_equivalence_is_refinement_both_ways(pair):
    first, second = (Channel.from_matrix(matrix) for matrix in pair)
    both = refinement(first, second).holds and refinement(second, first).holds
    assert is_equivalent(first, second) == both
    assert is_equivalent(first.to_float(), second.to_float()) == both


@settings(max_examples=30)
@given(pairs(), st.randoms(use_true_random=False))
def test_reordered_and_split_outputs_are_equivalent(pair, shuffle):
    matrix = as_numbers("matrix", pair[0], 2)
    order = list(range(matrix.shape[1]))
    shuffle.shuffle(order)
    split = np.hstack([matrix[:, order] / 3, matrix * Fraction(2, 3)])
    assert is_equivalent(matrix, split)
    assert is_equivalent(floats(pair[0]), split.astype(float))


def test_more_noise_is_safer():
    down, up = refinement(GOOD, BAD), refinement(BAD, GOOD)
    assert down.holds
    # Half of the distance, and half again since the gains are in [0, 1]: the best guess of each
    # output is right with probability 9/10 instead of 7/10.
    assert up.holds is False
    assert up.margin == pytest.approx(0.2, abs=1e-12)


def test_methods_of_the_channel():
    first = Channel.from_matrix(GOOD, inputs="ab", outputs="cd")
    second = Channel.from_matrix(BAD, inputs="ab", outputs="ef")
    assert first.refined_by(second)
    assert not second.refined_by(first)
    assert first.is_equivalent(first)
    assert not first.is_equivalent(second)


def test_larger_channels():
    generator = Entropy.from_seed(7).generator()
    first = random_channel(generator, 20, 15)
    second = first @ random_channel(generator, 15, 12)
    second /= second.sum(axis=1, keepdims=True)
    found = refinement(first, second)
    assert found.holds
    assert found.distance <= 1e-9
    against = refinement(second, first)
    assert not against.holds
    assert against.margin > 0.01


def test_the_solvers_tolerance_is_taken_out():
    generator = Entropy.from_seed(9).generator()
    for _ in range(12):
        inputs, middle, outputs = generator.integers(2, 12, 3)
        first = random_channel(generator, inputs, middle)
        second = first @ random_channel(generator, middle, outputs)
        second /= second.sum(axis=1, keepdims=True)
        assert refinement(first, second).distance <= 1e-12


def test_within_the_tolerance_only():
    shift = Fraction(1, 10**10)
    close = [[1 - shift, shift], [0, 1]]
    # The second is a little less noisy than the first: exactly, no refinement.
    loose = refinement(floats(close), np.eye(2))
    assert loose.holds
    assert 0.0 < loose.distance <= 1e-9
    tight = refinement(floats(close), np.eye(2), tolerance=1e-12)
    assert not tight.holds
    assert tight.margin == pytest.approx(5e-11, rel=1e-3)


def test_round_off_may_leave_it_open():
    generator = Entropy.from_seed(9).generator()
    first = random_channel(generator, 6, 6)
    second = first @ random_channel(generator, 6, 6)
    with pytest.raises(PrecisionError, match="refinement is open"):
        refinement(first, second, tolerance=1e-18)


def test_refused():
    with pytest.raises(ParameterError, match="have 2 and 3 inputs"):
        refinement(np.eye(2), np.eye(3))
    with pytest.raises(ParameterError, match="have 2 and 3 inputs"):
        is_equivalent(np.eye(2), np.eye(3))
    with pytest.raises(ParameterError, match="linear program with 512000 coefficients"):
        refinement(np.full((80, 80), 1.0 / 80.0), np.full((80, 80), 1.0 / 80.0))
    for decide in (refinement, is_equivalent):
        with pytest.raises(ParameterError, match="tolerance"):
            decide(np.eye(2), np.eye(2), tolerance=0.0)


def test_a_solver_that_fails(monkeypatch):
    failed = SimpleNamespace(success=False, message="out of steps")
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *args, **kwargs: failed)
    with pytest.raises(PrecisionError, match="out of steps"):
        refinement(np.eye(2), np.eye(2))
