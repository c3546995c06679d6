"""Merging proportional columns, and the law of the posterior that rests on it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.random_channels import channels, laws
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage import matrices
from shuffledp.leakage.channel import Channel

HALF = Fraction(1, 2)


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
    assert not next(again.column_blocks(1)).flags.writeable


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
    channel = Channel([[HALF, 0, HALF, 0], [HALF, 0, 0, HALF]], inputs="xy", outputs="abcd")
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
@given(repetitive_channels(), st.data())
def test_posteriors(channel, data):
    prior = data.draw(laws(channel.num_inputs))
    hyper = channel.hyper(prior)
    assert hyper.is_exact
    assert hyper.prior.tolist() == prior
    joint = {}
    for column in channel.matrix.T.tolist():
        masses = [belief * entry for belief, entry in zip(prior, column, strict=True)]
        if sum(masses):
            posterior = tuple(mass / sum(masses) for mass in masses)
            joint[posterior] = joint.get(posterior, 0) + sum(masses)
    assert dict(zip(map(tuple, hyper.inners.tolist()), hyper.outer.tolist(), strict=True)) == joint
    assert hyper.num_posteriors == len(joint)
    for floats in (channel.to_float(),):
        close = floats.hyper([float(belief) for belief in prior])
        assert not close.is_exact
        np.testing.assert_allclose(close.outer, hyper.outer.astype(float), rtol=1e-13)
        np.testing.assert_allclose(close.inners, hyper.inners.astype(float), rtol=1e-13)
        assert not close.outer.flags.writeable
        assert not close.inners.flags.writeable


def test_posteriors_of_mixed_kinds():
    exact = Channel([[HALF, HALF], [0, 1]])
    hyper = exact.hyper()
    assert repr(hyper) == "HyperDistribution(2 posteriors over 2)"
    assert hyper.outer.tolist() == [Fraction(1, 4), Fraction(3, 4)]
    assert not exact.hyper([0.5, 0.5]).is_exact
    assert not exact.to_float().hyper().is_exact
    sure = exact.hyper([0, 1])
    assert sure.outer.tolist() == [1]
    assert sure.inners.tolist() == [[0, 1]]
    assert all(type(entry) is Fraction for entry in sure.inners.ravel())


def test_outputs_below_all_doubles_have_no_posterior():
    hyper = Channel([[1.0, 1e-300], [1.0, 0.0]]).hyper([1e-300, 1.0])
    assert hyper.outer.tolist() == [1.0]
    assert not np.isnan(hyper.inners).any()


def test_what_is_no_prior_of_the_channel():
    channel = Channel([[HALF, HALF], [0, 1]])
    with pytest.raises(ParameterError, match="3 entries, not 2"):
        channel.hyper([0.5, 0.25, 0.25])
