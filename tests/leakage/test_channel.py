"""Channels: what is taken and refused, cascades, blocks, equality and reduction."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix, csr_array

from oracles.random_channels import channels, laws
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage import matrices
from shuffledp.leakage.channel import (
    Channel,
    as_channel,
    exact_product,
    require_same_inputs,
)

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


@pytest.mark.parametrize("kind", [coo_array, csr_array, csc_matrix])
def test_sparse_matrices_are_written_out(kind):
    table = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    assert Channel(kind(np.array(table))) == Channel(table)


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


def test_a_row_without_a_label_is_named_by_its_number():
    with pytest.raises(ParameterError, match=r"^row 1 of the channel sums to 0.9, not 1"):
        Channel([[1.0], [0.9]])


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
        (csr_array((0, 2)), r"is empty, of shape \(0, 2\)"),
        (coo_array(np.ones(2)), r"1 dimensions, not 2"),
        (csr_array(np.array([[1j]])), r"complex128, which are no real numbers"),
    ],
)
def test_what_is_no_matrix(matrix, words):
    with pytest.raises(ParameterError, match=words):
        Channel(matrix)


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
    for matrix in (np.full((2, 3), 1 / 3), csr_array(np.full((2, 3), 1 / 3))):
        with pytest.raises(ParameterError, match=r"= 6 cells, above 5: work on histograms"):
            Channel(matrix)
    with pytest.raises(ParameterError, match=r"the cascade would have 3 x 2 = 6 cells"):
        Channel(np.ones((3, 1))) @ Channel([[0.5, 0.5]])


def test_exact_sizes(monkeypatch):
    monkeypatch.setattr(matrices, "LARGEST_EXACT_CELLS", 5)
    with pytest.raises(ParameterError, match=r"2 x 3 = 6 exact fractions, above 5: use floats, or"):
        Channel([[1], [1]]) @ Channel([[HALF, HALF, 0]])
    with pytest.raises(ParameterError, match=r"would hold 6 exact fractions, above 5"):
        Channel([[1, 0, 0]] * 2)


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
    for left in (first, first.to_float()):
        for right in (second, second.to_float()):
            mixed = left @ right
            assert mixed.is_close(product, tolerance=1e-15)
            assert mixed.is_exact == (left.is_exact and right.is_exact)


@settings(max_examples=40)
@given(channels(num_outputs=3), channels(num_inputs=3, num_outputs=4), channels(num_inputs=4))
def test_cascades_are_associative(first, second, third):
    assert (first @ second) @ third == first @ (second @ third)


def test_products_may_leave_the_tolerance_of_their_factors():
    loose = Channel([[1.0 + 9e-10]])
    assert (loose @ loose @ loose).matrix[0, 0] > 1.0 + 2e-9


def test_labels_go_through():
    first = Channel(NOISE, inputs="ab", outputs="cd")
    second = Channel(NOISE, inputs="cd", outputs="ef")
    assert ((first @ second).inputs, (first @ second).outputs) == (("a", "b"), ("e", "f"))
    assert (first @ Channel(NOISE)).outputs is None


def test_what_does_not_fit():
    first = Channel(NOISE, inputs="ab", outputs="cd")
    with pytest.raises(ParameterError, match=r"2 outputs cannot be followed by one with 1 inputs"):
        first @ Channel([[1.0]])
    with pytest.raises(ParameterError, match=r"number 0 is 'c' there and 'a' here; use the same"):
        first @ first
    with pytest.raises(ParameterError, match=r"2 and 1 inputs have different secrets"):
        require_same_inputs(first, Channel([[1.0]]))
    with pytest.raises(ParameterError, match=r"the inputs of the first .* number 1 is 'b' .* 'c'"):
        require_same_inputs(first, Channel(NOISE, inputs="ac"))
    with pytest.raises(TypeError, match=r"unsupported|does not support ufuncs"):
        first @ np.eye(2)
    with pytest.raises(TypeError, match=r"unsupported|does not support ufuncs"):
        np.eye(2) @ first


def test_floats_of_fractions():
    exact = Channel([[Fraction(3, 4), Fraction(1, 4)], [HALF, HALF]], inputs="ab")
    floats = exact.to_float()
    assert floats == exact
    assert floats.matrix.dtype == np.float64
    assert floats.to_float() is floats


def test_equality():
    dense = Channel(NOISE)
    exact = Channel([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    assert dense == exact
    assert exact == Channel(exact.matrix)
    assert len({dense, exact}) == 1
    assert dense != Channel(NOISE, inputs="ab")
    assert dense != Channel(NOISE, outputs="ab")
    assert dense != Channel([[1.0]])
    assert dense != NOISE
    other = Channel([[0.75 + 1e-10, 0.25 - 1e-10], [0.25, 0.75]])
    assert other != dense
    assert other.is_close(dense, tolerance=2e-10)
    assert not other.is_close(dense)
    assert not exact.is_close(Channel([[HALF, HALF], [HALF, HALF]]), tolerance=0.2)
    assert exact.is_close(Channel([[HALF, HALF], [HALF, HALF]]), tolerance=0.25)
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


HALF_REDUCTION = Fraction(1, 2)


def directions(channel):
    """Return the columns divided by their sums, those of zeros left out."""
    table = channel.matrix.T.tolist()
    return [tuple(entry / sum(column) for entry in column) for column in table if sum(column)]


@st.composite
def repetitive_channels(draw):
    """Draw a channel whose columns are multiples of few."""
    base = draw(channels(num_outputs=3))
    shares = [draw(laws(3)) for _ in range(3)]
    spread = [
        [shares[y][z // 3] if z % 3 == y else Fraction(0) for z in range(9)] for y in range(3)
    ]
    return base @ Channel(spread)


@settings(max_examples=40)
@given(repetitive_channels())
def test_what_is_merged_can_be_split_again(channel):
    """Reduced and not, each is the other's cascade with some channel, so they are equivalent."""
    reduced = channel.reduce()
    merge, split = [], [[Fraction(0)] * channel.num_outputs for _ in range(reduced.num_outputs)]
    known = directions(reduced)
    masses = channel.matrix.sum(axis=0) / reduced.matrix.sum()
    totals = reduced.matrix.sum(axis=0) / reduced.matrix.sum()
    for y, column in enumerate(channel.matrix.T.tolist()):
        row = [Fraction(0)] * reduced.num_outputs
        if sum(column):
            group = known.index(tuple(entry / sum(column) for entry in column))
            split[group][y] = masses[y] / totals[group]
        else:
            group = 0
        row[group] = Fraction(1)
        merge.append(row)
    assert channel @ Channel(merge) == reduced
    assert reduced @ Channel(split) == channel


def test_labels_are_those_of_the_first_column():
    channel = Channel(
        [[HALF_REDUCTION, 0, HALF_REDUCTION, 0], [HALF_REDUCTION, 0, 0, HALF_REDUCTION]],
        inputs="xy",
        outputs="abcd",
    )
    for kind in (channel, channel.to_float()):
        reduced = kind.reduce()
        assert (reduced.inputs, reduced.outputs) == (("x", "y"), ("a", "c", "d"))
    blind = Channel([[0.25, 0.75], [0.25, 0.75]], outputs="ab").reduce()
    assert blind.outputs == ("a",)
    np.testing.assert_allclose(blind.matrix, [[1.0], [1.0]], rtol=1e-15)
    assert Channel([[0.25, 0.75], [0.25, 0.75]]).reduce().outputs is None


def test_the_tolerance_is_relative_and_entry_by_entry():
    tiny = 1e-200
    apart = Channel([[0.5, 0.5], [1 - tiny, tiny]])
    assert apart.reduce() is apart
    # Zero is like zero only, however small the other entry is.
    nearly = Channel([[0.5, 0.5, 0.0], [0.5, 0.5 - tiny, tiny]])
    assert nearly.reduce().num_outputs == 2
    touched = Channel(np.array([[0.5, 0.5], [0.5, 0.5], [tiny, 1.0]]))
    assert touched.reduce() is touched
    off = Channel([[0.5, 0.5], [0.5 + 1e-6, 0.5 - 1e-6]])
    assert off.reduce() is off
    assert off.reduce(tolerance=1e-5).num_outputs == 1


@pytest.mark.parametrize("tolerance", [-1e-12, np.nan, np.inf, 0.1])
def test_tolerances_out_of_range(tolerance):
    with pytest.raises(ParameterError, match="tolerance = "):
        Channel([[1.0]]).reduce(tolerance=tolerance)


def test_different_columns_with_one_weighted_sum_are_told_apart(monkeypatch):
    """Where the sum that sorts columns says nothing, they are still compared entry by entry."""

    class Constant:
        def generator(self):
            return self

        def random(self, size):
            return np.zeros(size)

    monkeypatch.setattr(matrices.Entropy, "from_seed", lambda _seed: Constant())
    exact = Channel(
        [
            [Fraction(1, 8), Fraction(1, 4), Fraction(1, 8), Fraction(1, 2)],
            [Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)],
            [Fraction(0), Fraction(1, 2), Fraction(0), Fraction(1, 2)],
        ]
    )
    assert exact.to_float().reduce().is_close(exact.reduce(), tolerance=1e-15)
    assert exact.reduce().num_outputs == 3


def test_large_channels_are_merged_in_blocks(monkeypatch):
    generator = Entropy.from_seed(11).generator()
    base = generator.random((40, 30))
    base /= base.sum(axis=1, keepdims=True)
    which = generator.integers(0, 30, size=200)
    share = generator.random(200)
    for column in range(30):
        share[which == column] /= share[which == column].sum()
    channel = Channel(base[:, which] * share)
    whole = channel.reduce()
    assert whole.num_outputs == len(set(which.tolist()))
    monkeypatch.setattr(matrices, "_BLOCK_CELLS", 64)
    assert channel.reduce() == whole
    np.testing.assert_allclose(whole.matrix, base[:, list(dict.fromkeys(which.tolist()))])


@settings(max_examples=40)
@given(repetitive_channels())
def test_columns_of_one_direction_are_added(channel):
    reduced = channel.reduce()
    found = directions(reduced)
    assert len(found) == reduced.num_outputs
    assert len(set(found)) == len(found)
    # In the order in which they first appear, and none is lost.
    assert found == list(dict.fromkeys(directions(channel)))
    assert reduced.matrix.sum(axis=1).tolist() == [1] * channel.num_inputs
    assert reduced.reduce() is reduced
    # Doubles: the same columns, up to rounding.
    again = channel.to_float().reduce()
    assert again.is_close(reduced, tolerance=1e-14)
    assert again.reduce() is again
    assert not again.matrix.flags.writeable
