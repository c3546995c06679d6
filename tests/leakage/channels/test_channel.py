"""Channels: what is taken and refused, cascades, parallel composition, blocks and equality."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import coo_array, csc_matrix, csr_array

from oracles.random_channels import channels
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels import matrices
from shuffledp.leakage.channels.channel import (
    Channel,
    as_channel,
    exact_product,
    require_same_inputs,
)

HALF = Fraction(1, 2)
NOISE = [[0.75, 0.25], [0.25, 0.75]]


def sparse(channel):
    """Return the same channel, sparse."""
    return Channel(csr_array(channel.to_dense()), channel.inputs, channel.outputs)


def test_three_kinds():
    dense, exact = Channel(NOISE), Channel([[HALF, HALF], [0, 1]])
    thin = Channel(csr_array(NOISE))
    assert repr([dense, exact, thin]) == (
        "[Channel(2 x 2, dense), Channel(2 x 2, exact), Channel(2 x 2, sparse)]"
    )
    assert (dense.is_exact, exact.is_exact, thin.is_exact) == (False, True, False)
    assert (dense.is_sparse, exact.is_sparse, thin.is_sparse) == (False, False, True)
    assert exact.matrix[1].tolist() == [0, 1]
    assert all(type(entry) is Fraction for entry in exact.matrix.ravel())
    assert (thin.num_inputs, thin.num_outputs) == (2, 2)
    np.testing.assert_array_equal(thin.to_dense(), NOISE)
    assert exact.to_dense().dtype == np.float64


def test_integers_are_exact_and_one_float_makes_all_floats():
    assert Channel(np.eye(2, dtype=np.int64)).is_exact
    assert Channel(np.eye(2, dtype=bool)).is_exact
    mixed = Channel([[HALF, HALF], [0.25, Fraction(3, 4)]])
    assert mixed.matrix.dtype == np.float64
    assert not Channel(np.eye(2, dtype=np.float32)).is_exact
    assert not Channel(csr_array(np.eye(2, dtype=np.int64))).is_exact


@pytest.mark.parametrize("kind", [coo_array, csr_array, csc_matrix])
def test_any_sparse_matrix_is_copied(kind):
    given_matrix = kind(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
    channel = Channel(given_matrix)
    given_matrix.data[:] = 7.0
    np.testing.assert_array_equal(channel.to_dense(), [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert channel.matrix.format == "csr"
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix.data[0] = 1.0


def test_stored_zeros_and_doubled_entries_are_tidied():
    rows, columns = [0, 0, 0, 1], [0, 0, 1, 1]
    channel = Channel(coo_array(([0.5, 0.5, 0.0, 1.0], (rows, columns)), shape=(2, 2)))
    assert channel.matrix.nnz == 2
    np.testing.assert_array_equal(channel.to_dense(), np.eye(2))


def test_a_writeable_array_is_copied_a_closed_one_is_not():
    array = np.array(NOISE)
    channel = Channel(array)
    array[0] = [0.0, 1.0]
    assert channel.matrix[0, 0] == 0.75
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 1.0
    closed = np.array(NOISE)
    closed.setflags(write=False)
    assert Channel(closed).matrix is closed
    # A closed view of an open array can be written through its owner.
    owner = np.array(NOISE)
    view = owner[:]
    view.setflags(write=False)
    assert not np.shares_memory(Channel(view).matrix, owner)
    # Rows must be contiguous.
    turned = np.array(NOISE).T
    turned.base.setflags(write=False)
    turned.setflags(write=False)
    assert Channel(turned).matrix.flags.c_contiguous


def test_an_exact_array_is_copied():
    array = np.array([[HALF, HALF]], dtype=object)
    channel = Channel(array)
    array[0, 0] = Fraction(1)
    assert channel.matrix[0, 0] == HALF


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], r"row 1 \(input 'b'\) .* sums to 1.1, not 1, off by 0.1, more"),
        ([[0.5, 0.5], [0.5, 0.5 - 2e-9]], r"row 1 .* off by -2e-09"),
        ([[HALF, HALF], [HALF, Fraction(1, 3)]], r"row 1 \(input 'b'\) .* 5/6, not 1, off by -1/6"),
        ([[1.5, -0.5], [0.5, 0.5]], r"entry -0.5 of the channel, in row 0 \(input 'a'\), column 1"),
        ([[2, -1], [0, 1]], r"entry -1 of the channel, in row 0"),
        (
            [[0.5, 0.5], [np.nan, 0.5]],
            r"entry nan of the channel, in row 1 \(input 'b'\), column 0",
        ),
        ([[0.5, np.inf], [0.5, 0.5]], r"row 0 .* sums to inf"),
        ([[1e308, 1e308, 1e308]] * 2, r"row 0 .* sums to inf"),
    ],
)
def test_rows_that_are_no_laws(matrix, words):
    with pytest.raises(ParameterError, match=words):
        Channel(matrix, inputs="ab")
    if isinstance(matrix[0][0], float):  # sparse matrices hold no fractions
        with pytest.raises(ParameterError, match=words):
            Channel(csr_array(np.array(matrix)), inputs="ab")


def test_a_row_without_a_label_is_named_by_its_number():
    with pytest.raises(ParameterError, match=r"^row 1 of the channel sums to 0.9, not 1"):
        Channel([[1.0], [0.9]])
    with pytest.raises(ParameterError, match=r"^row 0 of the channel sums to 0, not 1"):
        Channel(csr_array((2, 3)))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([], r"1 dimensions, not 2: give a list of rows"),
        ([[]], r"is empty, of shape \(1, 0\)"),
        ([0.5, 0.5], r"1 dimensions, not 2"),
        ([[0.5, 0.5], [1.0]], r"rows of different lengths"),
        ([["a", "b"]], r"no real numbers"),
        ([[1j, 0]], r"no real numbers"),
        ([[HALF, "0.5"]], r"not a number"),
        (np.array([[HALF, None]], dtype=object), r"not a number: give real numbers"),
        (csr_array((0, 2)), r"has shape \(0, 2\)"),
        (coo_array(np.ones(2)), r"has shape \(2,\)"),
        (csr_array(np.array([[1j]])), r"complex128, which are no real numbers"),
    ],
)
def test_what_is_no_matrix(matrix, words):
    with pytest.raises(ParameterError, match=words):
        Channel.from_matrix(matrix)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("abc", r"inputs has 3 labels, not 2: give one for each"),
        ("aa", r"inputs has the label 'a' twice"),
        ([[0], [1]], r"inputs has a label that cannot be hashed"),
    ],
)
def test_labels(labels, words):
    with pytest.raises(ParameterError, match=words):
        Channel(NOISE, inputs=labels)
    with pytest.raises(ParameterError, match=words.replace("inputs", "outputs")):
        Channel(NOISE, outputs=labels)


def test_sizes_are_refused_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(matrices, "LARGEST_DENSE_CELLS", 5)
    monkeypatch.setattr(matrices, "LARGEST_STORED_ENTRIES", 3)
    with pytest.raises(ParameterError, match=r"2 x 3 = 6 cells, above 5: work on histograms"):
        Channel(np.full((2, 3), 1 / 3))
    with pytest.raises(ParameterError, match=r"would store 4 entries, above 3"):
        Channel(csr_array(NOISE))
    thin = Channel(csr_array(np.eye(3)))
    with pytest.raises(ParameterError, match=r"the dense matrix would have 3 x 3 = 9 cells"):
        thin.to_dense()
    column = Channel(csr_array(np.ones((3, 1))))
    with pytest.raises(ParameterError, match=r"the cascade would have 3 x 2 = 6 cells"):
        column @ Channel([[0.5, 0.5]])
    with pytest.raises(ParameterError, match=r"the parallel composition would have 2 x 4 = 8"):
        Channel(NOISE).parallel(Channel(NOISE))
    row = Channel(csr_array([[0.5, 0.5]]))
    with pytest.raises(ParameterError, match=r"the parallel composition would store 4 entries"):
        row.parallel(row)
    monkeypatch.setattr(matrices, "LARGEST_STORED_ENTRIES", 5)
    thin = Channel(csr_array(NOISE))
    with pytest.raises(ParameterError, match=r"the steps of the cascade would store 8 entries"):
        thin @ thin


def test_exact_sizes(monkeypatch):
    monkeypatch.setattr(matrices, "LARGEST_EXACT_CELLS", 5)
    exact = Channel([[HALF, HALF]])
    with pytest.raises(ParameterError, match=r"2 x 3 = 6 exact fractions, above 5: use floats, or"):
        Channel([[1], [1]]) @ Channel([[HALF, HALF, 0]])
    with pytest.raises(ParameterError, match=r"the exact matrix would have 2 x 3 = 6"):
        Channel([[0.5, 0.25, 0.25]] * 2).to_exact()
    assert exact.to_exact() is exact
    monkeypatch.setattr(matrices, "LARGEST_EXACT_CELLS", 5)
    with pytest.raises(ParameterError, match=r"would hold 6 exact fractions, above 5"):
        Channel([[1, 0, 0]] * 2)


@settings(max_examples=40)
@given(channels(num_inputs=2, num_outputs=3), channels(num_inputs=3), channels(num_inputs=3))
def test_cascades_of_all_kinds_agree(first, second, third):
    expected = [
        [sum(row[y] * second.matrix[y, z] for y in range(3)) for z in range(second.num_outputs)]
        for row in first.matrix.tolist()
    ]
    product = first @ second
    assert product.is_exact
    assert product.matrix.tolist() == expected
    for left in (first, first.to_float(), sparse(first)):
        for right in (second, second.to_float(), sparse(second)):
            mixed = left @ right
            assert mixed.is_close(product, tolerance=1e-15)
            assert mixed.is_exact == (left.is_exact and right.is_exact)
            assert mixed.is_sparse == (left.is_sparse and right.is_sparse)
            both = right.parallel(sparse(third) if right.is_sparse else third)
            assert both.is_close(second.parallel(third), tolerance=1e-15)
            assert both.is_sparse == right.is_sparse


@settings(max_examples=40)
@given(channels(num_outputs=3), channels(num_inputs=3, num_outputs=4), channels(num_inputs=4))
def test_cascades_are_associative(first, second, third):
    assert (first @ second) @ third == first @ (second @ third)


@settings(max_examples=40)
@given(channels(num_inputs=3), channels(num_inputs=3))
def test_parallel_composition_multiplies_entries(first, second):
    both = first.parallel(second)
    for x in range(3):
        expected = [y * z for y in first.matrix[x] for z in second.matrix[x]]
        assert both.matrix[x].tolist() == expected
    mixed = sparse(first).parallel(second.to_float())
    assert not mixed.is_sparse
    assert mixed.is_close(both, tolerance=1e-15)


def test_products_may_leave_the_tolerance_of_their_factors():
    loose = Channel([[1.0 + 9e-10]])
    assert (loose @ loose @ loose).matrix[0, 0] > 1.0 + 2e-9
    assert loose.parallel(loose).matrix[0, 0] > 1.0 + 1e-9


def test_labels_go_through():
    first = Channel(NOISE, inputs="ab", outputs="cd")
    second = Channel(NOISE, inputs="cd", outputs="ef")
    assert ((first @ second).inputs, (first @ second).outputs) == (("a", "b"), ("e", "f"))
    both = first.parallel(Channel(NOISE, outputs="gh"))
    assert both.outputs == (("c", "g"), ("c", "h"), ("d", "g"), ("d", "h"))
    assert both.inputs == ("a", "b")
    assert Channel(NOISE).parallel(first).inputs == ("a", "b")
    assert Channel(NOISE).parallel(first).outputs is None
    assert (first @ Channel(NOISE)).outputs is None


def test_what_does_not_fit():
    first = Channel(NOISE, inputs="ab", outputs="cd")
    with pytest.raises(ParameterError, match=r"2 outputs cannot be followed by one with 1 inputs"):
        first @ Channel([[1.0]])
    with pytest.raises(ParameterError, match=r"number 0 is 'c' there and 'a' here; use the same"):
        first @ first
    with pytest.raises(ParameterError, match=r"2 and 1 inputs have different secrets"):
        first.parallel(Channel([[1.0]]))
    with pytest.raises(ParameterError, match=r"the inputs of the first .* number 1 is 'b' .* 'c'"):
        require_same_inputs(first, Channel(NOISE, inputs="ac"))
    with pytest.raises(TypeError, match=r"unsupported|does not support ufuncs"):
        first @ np.eye(2)
    with pytest.raises(TypeError, match=r"unsupported|does not support ufuncs"):
        np.eye(2) @ first


def test_only_channels_with_the_same_secrets_are_compared():
    narrow = Channel([[1.0]])
    with pytest.raises(ParameterError, match="different secrets"):
        Channel(NOISE).refined_by(narrow)
    with pytest.raises(ParameterError, match="different secrets"):
        Channel(NOISE).is_equivalent(narrow)


def test_comparisons_are_delegated():
    noise, blind = Channel(NOISE), Channel([[1.0], [1.0]])
    assert noise.refined_by(blind).holds
    assert not blind.refined_by(noise).holds
    assert noise.is_equivalent(Channel([row[::-1] for row in NOISE]))
    assert not noise.is_equivalent(blind)


def test_exact_and_back():
    floats = Channel([[0.75, 0.25], [0.5, 0.5]], inputs="ab")
    exact = floats.to_exact()
    assert exact.matrix.tolist() == [[Fraction(3, 4), Fraction(1, 4)], [HALF, HALF]]
    assert exact == floats
    assert exact.to_float() == floats
    assert floats.to_float() is floats
    assert exact.to_float().matrix.dtype == np.float64
    assert sparse(floats).to_exact() == exact


def test_binary_values_that_do_not_sum_to_one_need_rescaling():
    decimal = Channel([[0.5, 0.5], [0.9, 0.1]])
    with pytest.raises(ParameterError, match=r"row 1 .* sum to 1 \+ -?\d.*e-17, not exactly 1"):
        decimal.to_exact()
    rescaled = decimal.to_exact(rescale=True)
    assert rescaled.matrix.sum(axis=1).tolist() == [1, 1]
    assert rescaled.is_close(decimal, tolerance=1e-16)
    assert Channel(rescaled.matrix) == rescaled


@pytest.mark.parametrize("width", [1, 2, 3, 5, 100])
def test_blocks_of_columns(width):
    exact = Channel([[Fraction(1, 5)] * 5, [0, 0, HALF, HALF, 0]])
    for channel in (exact, exact.to_float(), sparse(exact)):
        blocks = list(channel.column_blocks(width))
        assert [block.shape[1] for block in blocks[:-1]] == [width] * (len(blocks) - 1)
        for block in blocks:
            assert block.dtype == np.float64
            assert not block.flags.writeable
        np.testing.assert_array_equal(np.hstack(blocks), exact.to_dense())
    dense = exact.to_float()
    assert np.shares_memory(next(dense.column_blocks(2)), dense.matrix)


@pytest.mark.parametrize("width", [0, -1, 1.5])
def test_blocks_need_a_width(width):
    with pytest.raises(ParameterError, match="num_columns = "):
        Channel(NOISE).column_blocks(width)


def test_equality():
    dense = Channel(NOISE)
    exact = Channel([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    thin = sparse(dense)
    assert dense == exact == thin
    assert thin == sparse(dense)
    assert exact == Channel(exact.matrix)
    assert len({dense, exact, thin}) == 1
    assert dense != Channel(NOISE, inputs="ab")
    assert dense != Channel(NOISE, outputs="ab")
    assert dense != Channel([[1.0]])
    assert dense != NOISE
    other = Channel([[0.75 + 1e-10, 0.25 - 1e-10], [0.25, 0.75]])
    assert other != dense
    assert other.is_close(dense, tolerance=2e-10)
    assert not other.is_close(dense)
    assert not sparse(other).is_close(thin)
    assert sparse(other).is_close(thin, tolerance=2e-10)
    assert not exact.is_close(other.to_exact(rescale=True))
    with pytest.raises(ParameterError, match="tolerance = "):
        dense.is_close(dense, tolerance=np.nan)


def test_a_channel_is_closed():
    channel = Channel(NOISE)
    with pytest.raises(AttributeError):
        channel.matrix = None
    assert pickle.loads(pickle.dumps(channel)) == channel  # noqa: S301  # our own bytes
    assert copy.copy(channel) == channel


def test_as_channel():
    channel = Channel(NOISE)
    assert as_channel(channel) is channel
    assert as_channel(NOISE) == channel


def test_exact_products_of_long_fractions():
    numbers = Entropy.from_seed(7).generator().integers(1, 10**6, size=(2, 3, 3)).tolist()
    first, second = (
        np.array([[Fraction(e, sum(row)) for e in row] for row in table], dtype=object)
        for table in numbers
    )
    np.testing.assert_array_equal(exact_product(first, second), first.dot(second))
