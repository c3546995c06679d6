"""Refinement: never claimed against a gain that says otherwise, and seen where there is one."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.leakage_cases import SIZES, cascades, floats, matrices
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.channel import Channel, as_numbers, is_refined_by, posterior_vulnerability

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
    first = Channel(matrix)
    second = first @ Channel(after)
    assert is_refined_by(first, second)
    assert is_refined_by(floats(matrix), second.to_dense())
    gain = table
    assert posterior_vulnerability(None, second, gain) <= posterior_vulnerability(None, first, gain)


@settings(max_examples=40)
@given(pairs(), st.integers(0, 2**32))
def test_no_gain_says_otherwise(pair, seed):
    first, second = (Channel(floats(matrix)) for matrix in pair)
    tables = Entropy.from_seed(seed).generator().random((20, 3, first.num_inputs))
    gains = list(tables)
    more = max(
        posterior_vulnerability(None, second, gain) - posterior_vulnerability(None, first, gain)
        for gain in gains
    )
    if is_refined_by(first, second):
        assert more <= 1e-9
    if more > 1e-6:
        assert not is_refined_by(first, second)


@settings(max_examples=30)
@given(pairs(), st.randoms(use_true_random=False))
def test_reordered_and_split_outputs_are_equivalent(pair, shuffle):
    matrix = as_numbers("matrix", pair[0], 2)
    order = list(range(matrix.shape[1]))
    shuffle.shuffle(order)
    split = np.hstack([matrix[:, order] / 3, matrix * Fraction(2, 3)])
    assert is_refined_by(matrix, split)
    assert is_refined_by(split, matrix)


def test_more_noise_is_safer():
    assert is_refined_by(GOOD, BAD)
    assert not is_refined_by(BAD, GOOD)


def test_larger_channels():
    generator = Entropy.from_seed(7).generator()
    first = random_channel(generator, 20, 15)
    second = first @ random_channel(generator, 15, 12)
    second /= second.sum(axis=1, keepdims=True)
    assert is_refined_by(first, second)
    assert not is_refined_by(second, first)


@pytest.mark.parametrize(("shift", "counts"), [(1e-10, True), (1e-8, False)])
def test_within_the_tolerance_only(shift, counts):
    # The second is a little less noisy than the first: exactly, no refinement.
    assert is_refined_by([[1.0 - shift, shift], [0.0, 1.0]], np.eye(2)) == counts


def test_refused():
    with pytest.raises(ParameterError, match="2 and 3 inputs have different secrets"):
        is_refined_by(np.eye(2), np.eye(3))
    with pytest.raises(ParameterError, match="linear program with 512000 coefficients"):
        is_refined_by(np.full((80, 80), 1.0 / 80.0), np.full((80, 80), 1.0 / 80.0))


def test_a_solver_that_fails(monkeypatch):
    failed = SimpleNamespace(success=False, message="out of steps")
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *args, **kwargs: failed)
    with pytest.raises(PrecisionError, match="out of steps"):
        is_refined_by(np.eye(2), np.eye(2))
