"""Channels: what is taken and refused, cascades, and equality."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from oracles.random_channels import channels
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import Channel, as_channel, is_refined_by

HALF = Fraction(1, 2)
NOISE = [[0.75, 0.25], [0.25, 0.75]]


def test_two_kinds():
    dense, exact = Channel(NOISE), Channel([[HALF, HALF], [0, 1]])
    assert repr([dense, exact]) == "[Channel(2 x 2, dense), Channel(2 x 2, exact)]"
    assert (dense.is_exact, exact.is_exact) == (False, True)
    assert exact.matrix[1].tolist() == [0, 1]
    assert all(type(entry) is Fraction for entry in exact.matrix.ravel())
    assert (dense.num_inputs, dense.num_outputs) == (2, 2)
    assert exact.to_dense().dtype == np.float64


def test_integers_are_exact_and_one_float_makes_all_floats():
    assert Channel(np.eye(2, dtype=np.int64)).is_exact
    assert Channel(np.eye(2, dtype=bool)).is_exact
    mixed = Channel([[HALF, HALF], [0.25, Fraction(3, 4)]])
    assert mixed.matrix.dtype == np.float64
    assert not Channel(np.eye(2, dtype=np.float32)).is_exact


def test_a_matrix_is_copied_and_closed():
    for array in (np.array(NOISE), np.array([[HALF, HALF]] * 2, dtype=object)):
        channel = Channel(array)
        before = channel.matrix.tolist()
        array[0] = [0, 1]
        assert channel.matrix.tolist() == before
        with pytest.raises(ValueError, match="read-only"):
            channel.matrix[0, 0] = 1.0
    with pytest.raises(AttributeError):
        channel.matrix = None
    assert pickle.loads(pickle.dumps(channel)) == channel  # noqa: S301  # our own bytes


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], r"^row 1 of the channel sums to 1.1, not 1, off by 0.1"),
        ([[0.5, 0.5], [0.5, 0.5 - 2e-9]], r"row 1 .* off by -2e-09"),
        ([[HALF, HALF], [HALF, Fraction(1, 3)]], r"row 1 .* 5/6, not 1, off by -1/6"),
        ([[1.5, -0.5], [0.5, 0.5]], r"row 0 of the channel\[1\] = -0.5 is not in"),
        ([[2, -1], [0, 1]], r"row 0 of the channel\[1\] = -1 is not in"),
        ([[0.5, 0.5], [np.nan, 0.5]], r"row 1 of the channel\[0\] = nan is not in"),
        ([[0.5, np.inf], [0.5, 0.5]], r"row 0 .* sums to inf"),
        ([[1e308, 1e308, 1e308]] * 2, r"row 0 .* sums to inf"),
    ],
)
def test_rows_that_are_no_laws(matrix, words):
    with pytest.raises(ParameterError, match=words):
        Channel(matrix)


@pytest.mark.parametrize("labels", ["abc", "aa"])
def test_labels(labels):
    with pytest.raises(ParameterError, match=r"inputs has \d labels, .* of them different: give 2"):
        Channel(NOISE, inputs=labels)
    with pytest.raises(ParameterError, match=r"outputs has \d labels"):
        Channel(NOISE, outputs=labels)


@settings(max_examples=40)
@given(channels(num_inputs=2, num_outputs=3), channels(num_inputs=3))
def test_cascades_of_both_kinds_agree(first, second):
    expected = [
        [sum(row[y] * second.matrix[y, z] for y in range(3)) for z in range(second.num_outputs)]
        for row in first.matrix.tolist()
    ]
    product = first @ second
    assert product.is_exact
    assert product.matrix.tolist() == expected
    for left in (first, Channel(first.to_dense())):
        mixed = left @ Channel(second.to_dense())
        assert mixed.to_dense() == pytest.approx(product.to_dense(), abs=1e-15)
        assert not mixed.is_exact


@settings(max_examples=40)
@given(channels(num_outputs=3), channels(num_inputs=3, num_outputs=4), channels(num_inputs=4))
def test_cascades_are_associative(first, second, third):
    assert (first @ second) @ third == first @ (second @ third)


def test_sums_within_the_tolerance_do_not_add_up():
    loose = Channel([[1.0 + 9e-10]])
    assert (loose @ loose @ loose).matrix[0, 0] == 1.0


def test_labels_go_through():
    first = Channel(NOISE, inputs="ab", outputs="cd")
    second = Channel(NOISE, inputs="cd", outputs="ef")
    assert ((first @ second).inputs, (first @ second).outputs) == (("a", "b"), ("e", "f"))
    assert (first @ Channel(NOISE)).outputs is None


def test_what_does_not_fit():
    first = Channel(NOISE, inputs="ab", outputs="cd")
    with pytest.raises(ParameterError, match=r"2 outputs cannot be followed by 1 inputs"):
        first @ Channel([[1.0]])
    with pytest.raises(ParameterError, match=r"label 0 is 'c' there, 'a' here"):
        first @ first
    with pytest.raises(
        ParameterError, match=r"inputs of both channels differ: label 1 is 'b' .* 'c'"
    ):
        is_refined_by(first, Channel(NOISE, inputs="ac"))
    with pytest.raises(TypeError, match=r"unsupported|does not support ufuncs"):
        first @ np.eye(2)
    with pytest.raises(TypeError, match=r"unsupported|does not support ufuncs"):
        np.eye(2) @ first


def test_equality():
    dense = Channel(NOISE)
    exact = Channel([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    assert dense == exact == as_channel(NOISE)
    assert as_channel(dense) is dense
    assert dense != Channel(NOISE, inputs="ab")
    assert dense != Channel([[1.0]])
    assert dense != NOISE
