"""Channels of whole collections against enumeration; their labels, limits and refusals."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.histogram_transitions import histogram_probability
from oracles.random_channels import channels
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channel import (
    Channel,
    product_channel,
    randomizer_channel,
    reduced_product_channel,
    reduced_randomizer_channel,
    reduced_shuffle_channel,
    shuffle_channel,
)

HALF = Fraction(1, 2)
SHAPES = st.tuples(st.integers(2, 3), st.integers(2, 3))


@settings(max_examples=30)
@given(st.integers(1, 3), SHAPES.flatmap(lambda shape: channels(*shape)))
def test_products(n, channel):
    whole = product_channel(n, channel)
    assert whole.is_exact
    assert whole.inputs == tuple(itertools.product(range(channel.num_inputs), repeat=n))
    assert whole.outputs == tuple(itertools.product(range(channel.num_outputs), repeat=n))
    for x, dataset in enumerate(whole.inputs):
        for y, reports in enumerate(whole.outputs):
            pairs = zip(dataset, reports, strict=True)
            assert whole.matrix[x, y] == math.prod(channel.matrix[pair] for pair in pairs)


@settings(max_examples=40)
@given(st.integers(1, 4), SHAPES.flatmap(lambda shape: channels(*shape)))
def test_laws_of_histograms(n, channel):
    """Each row is that of any dataset with the histogram, by enumeration of all reports."""
    reduced = reduced_product_channel(n, channel)
    k, m = channel.matrix.shape
    for x, histogram in enumerate(reduced.inputs):
        dataset = [value for value, count in enumerate(histogram) for _ in range(count)]
        law = Counter()
        for reports in itertools.product(range(m), repeat=n):
            counts = tuple(reports.count(report) for report in range(m))
            pairs = zip(dataset, reports, strict=True)
            law[counts] += math.prod(channel.matrix[pair] for pair in pairs)
        assert len(histogram) == k
        assert dict(zip(reduced.outputs, reduced.matrix[x], strict=True)) == law


@pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 2), (5, 3), (3, 5)])
@pytest.mark.parametrize("extra", [0, Fraction(1, 3), 1])
def test_reduced_response_is_lemma_30(n, k, extra):
    truth = Fraction(1, k) + extra * Fraction(k - 1, k)
    channel = reduced_randomizer_channel(n, k, truth)
    for x, before in enumerate(channel.inputs):
        for y, after in enumerate(channel.outputs):
            assert channel.matrix[x, y] == histogram_probability(before, after, truth)
    close = reduced_randomizer_channel(n, k, float(truth))
    assert close.to_dense() == pytest.approx(channel.to_dense(), abs=1e-14)


def test_truth_decides_the_kind():
    assert randomizer_channel(2, 2, 1).is_exact
    assert randomizer_channel(2, 2, 1) == product_channel(2, Channel(np.eye(2, dtype=int)))
    assert reduced_randomizer_channel(2, 2, HALF).is_exact
    assert not randomizer_channel(2, 2, 1.0).is_exact
    assert not randomizer_channel(2, 2, np.float64(0.5)).is_exact


@pytest.mark.parametrize("build", [randomizer_channel, reduced_randomizer_channel])
def test_truth_is_checked(build):
    with pytest.raises(OutOfRegimeError, match=r"0\.3 is below 1/k = 0.333333"):
        build(2, 3, 0.3)
    with pytest.raises(ParameterError, match="nan"):
        build(2, 3, math.nan)
    with pytest.raises(ParameterError, match="num_users = 0"):
        build(0, 3, 0.5)
    with pytest.raises(ParameterError, match="domain_size = 1"):
        build(2, 1, 1.0)


@pytest.mark.parametrize("build", [shuffle_channel, reduced_shuffle_channel])
def test_shufflers_need_sizes(build):
    with pytest.raises(ParameterError, match="num_users = 0"):
        build(0, 3)
    with pytest.raises(ParameterError, match="domain_size = 1"):
        build(2, 1)
    with pytest.raises(ParameterError, match=r"the channel from datasets would have"):
        build(30, 2)
    with pytest.raises(ParameterError, match=r"the channel from datasets would have"):
        build(10**9, 10**4)


def test_what_is_too_large():
    with pytest.raises(ParameterError, match=r"16384 x 16384 = 268435456 cells, above 200000000"):
        randomizer_channel(14, 2, 0.75)
    with pytest.raises(ParameterError, match=r"33554432 x 1 = 33554432 exact fractions, above"):
        randomizer_channel(25, 2, 0.75)
    with pytest.raises(ParameterError, match=r"2048 x 2048 = 4194304 exact fractions, above"):
        randomizer_channel(11, 2, Fraction(3, 4))
    with pytest.raises(ParameterError, match=r"2048 x 2048 = 4194304 exact fractions, above"):
        shuffle_channel(11, 2)
    with pytest.raises(ParameterError, match=r"524288 x 20 = 10485760 exact fractions"):
        reduced_shuffle_channel(19, 2)


@pytest.mark.parametrize("num_users", [8, pytest.param(10, marks=pytest.mark.slow)])
def test_a_large_reduced_shuffler(num_users):
    channel = reduced_shuffle_channel(num_users, 3)
    assert channel.matrix.shape == (3**num_users, math.comb(num_users + 2, 2))
    assert np.count_nonzero(channel.matrix) == 3**num_users
    np.testing.assert_array_equal(channel.matrix.sum(axis=0)[:2], [1, num_users])
