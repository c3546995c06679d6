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
from shuffledp.leakage import builders
from shuffledp.leakage.builders import (
    checked_truth,
    dataset_histograms,
    datasets,
    histogram_ranks,
    histograms,
    num_datasets,
    num_histograms,
    product_channel,
    randomizer_channel,
    reduced_product_channel,
    reduced_randomizer_channel,
    reduced_shuffle_channel,
    response_channel,
    shuffle_channel,
)
from shuffledp.leakage.channel import Channel

SIZES = [(n, k) for n in range(6) for k in range(1, 5)]


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_all_histograms_in_order(n, k):
    expected = [list(row) for row in itertools.product(range(n + 1), repeat=k) if sum(row) == n]
    table = histograms(n, k)
    assert table.tolist() == expected
    assert num_histograms(n, k) == len(expected)
    assert histogram_ranks(table).tolist() == list(range(len(expected)))


@pytest.mark.parametrize(("n", "k"), [(n, k) for n, k in SIZES if n and k > 1])
def test_all_datasets_in_order(n, k):
    expected = list(itertools.product(range(k), repeat=n))
    table = datasets(n, k)
    assert [tuple(row) for row in table.tolist()] == expected
    counts = dataset_histograms(table, k)
    assert counts.sum(axis=1).tolist() == [n] * len(expected)
    sizes = Counter(map(tuple, counts.tolist()))
    assert sizes == {tuple(row): num_datasets(row) for row in histograms(n, k)}


def test_ranks_of_large_histograms():
    table = histograms(60, 4)
    assert histogram_ranks(table).tolist() == list(range(math.comb(63, 3)))


def test_numbers_of_any_size():
    assert num_histograms(10**9, 10**4) > 10**4000
    assert num_datasets(np.array([30] * 4)) == math.factorial(120) // math.factorial(30) ** 4


def test_what_cannot_be_listed():
    with pytest.raises(
        ParameterError, match=r"5e\+17 histograms of 1000000000 .* too many to list"
    ):
        histograms(10**9, 3)
    with pytest.raises(ParameterError, match=r"would have 2\^21 rows"):
        datasets(21, 2)


HALF = Fraction(1, 2)


@settings(max_examples=30)
@given(st.integers(1, 3), channels(most=3))
def test_products(n, channel):
    labelled = Channel(channel.matrix, outputs=[f"y{y}" for y in range(channel.num_outputs)])
    whole = product_channel(n, labelled)
    assert whole.is_exact
    assert whole.inputs == tuple(itertools.product(range(channel.num_inputs), repeat=n))
    assert whole.outputs == tuple(itertools.product(labelled.outputs, repeat=n))
    for x, dataset in enumerate(whole.inputs):
        for y, reports in enumerate(itertools.product(range(channel.num_outputs), repeat=n)):
            pairs = zip(dataset, reports, strict=True)
            assert whole.matrix[x, y] == math.prod(channel.matrix[pair] for pair in pairs)
    assert product_channel(n, channel.to_dense()).is_close(whole, tolerance=1e-15)


def test_products_may_leave_the_tolerance_of_their_factor():
    loose = [[1.0 + 9e-10]]
    assert product_channel(3, loose).matrix[0, 0] > 1.0 + 2e-9
    assert reduced_product_channel(3, loose).matrix[0, 0] > 1.0 + 2e-9


@settings(max_examples=40)
@given(st.integers(1, 5), channels(most=3))
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
    assert reduced_product_channel(n, channel.to_float()).is_close(reduced, tolerance=1e-14)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 2), (5, 3), (3, 5)])
@pytest.mark.parametrize("extra", [0, Fraction(1, 3), 1])
def test_reduced_response_is_lemma_30(n, k, extra):
    truth = Fraction(1, k) + extra * Fraction(k - 1, k)
    channel = reduced_randomizer_channel(n, k, truth)
    for x, before in enumerate(channel.inputs):
        for y, after in enumerate(channel.outputs):
            assert channel.matrix[x, y] == histogram_probability(before, after, truth)
    close = reduced_randomizer_channel(n, k, float(truth))
    assert close.is_close(channel, tolerance=1e-14)


def test_reduced_response_of_many_users():
    channel = reduced_randomizer_channel(300, 2, 0.8)
    np.testing.assert_allclose(channel.matrix.sum(axis=1), 1.0, rtol=1e-13)
    assert channel.matrix[100, 120] == pytest.approx(
        float(histogram_probability([100, 200], [120, 180], Fraction(4, 5))), rel=1e-12
    )
    # The mean count of value 0 is p a + (1 - p)(n - a).
    counts = np.arange(301)
    np.testing.assert_allclose(channel.matrix @ counts, 60.0 + 0.6 * counts, rtol=1e-12)


def test_truth_decides_the_kind():
    assert randomizer_channel(2, 2, 1).is_exact
    assert randomizer_channel(2, 2, 1) == product_channel(2, np.eye(2))
    assert reduced_randomizer_channel(2, 2, HALF).is_exact
    assert not randomizer_channel(2, 2, 1.0).is_exact
    assert not randomizer_channel(2, 2, np.float64(0.5)).is_exact


@pytest.mark.parametrize("build", [randomizer_channel, reduced_randomizer_channel])
def test_truth_is_checked(build):
    with pytest.raises(OutOfRegimeError, match=r"truth = 0\.3 is below 1/domain_size = 0.333333"):
        build(2, 3, 0.3)
    with pytest.raises(ParameterError, match="truth = nan"):
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
    with pytest.raises(
        ParameterError, match=r"would have 2\^21 rows, labelled with 21 values each, above 2000000"
    ):
        build(21, 2)
    with pytest.raises(ParameterError, match=r"would have 10000\^1000000000 rows"):
        build(10**9, 10**4)


def test_what_is_too_large():
    with pytest.raises(ParameterError, match=r"16384 x 16384 = 268435456 cells, above 200000000"):
        randomizer_channel(14, 2, 0.75)
    with pytest.raises(ParameterError, match=r"2\^1000000000 rows"):
        randomizer_channel(10**9, 2, 0.75)
    with pytest.raises(ParameterError, match=r"1\^1000000000 rows"):
        product_channel(10**9, [[1.0]])  # one dataset, but its label would be long
    with pytest.raises(ParameterError, match=r"2048 x 2048 = 4194304 exact fractions, above"):
        randomizer_channel(11, 2, Fraction(3, 4))
    with pytest.raises(ParameterError, match=r"2048 x 2048 = 4194304 exact fractions, above"):
        shuffle_channel(11, 2, exact=True)
    with pytest.raises(ParameterError, match=r"524288 x 20 = 10485760 exact fractions"):
        reduced_shuffle_channel(19, 2, exact=True)
    with pytest.raises(ParameterError, match=r"65536 x 65536 = 4294967296 cells, above"):
        shuffle_channel(16, 2)


def test_what_is_too_large_on_histograms(monkeypatch):
    with pytest.raises(ParameterError, match=r"45451 x 45451 = \d+ cells, above 200000000"):
        reduced_randomizer_channel(300, 3, 0.75)
    with pytest.raises(ParameterError, match=r"5001 x 5001, would take above 1e\+09 mult.* users$"):
        reduced_randomizer_channel(5000, 2, 0.75)
    with pytest.raises(
        ParameterError, match=r"would take above 5e\+07 mult.* fewer users, or floats"
    ):
        reduced_randomizer_channel(1000, 2, Fraction(3, 4))
    monkeypatch.setattr(builders, "_MOST_STEPS", 10**6)
    with pytest.raises(ParameterError, match=r"1 x 1, would take above 1e\+06"):
        reduced_product_channel(10**9, [[1.0]])


def test_a_large_reduced_shuffler():
    channel = reduced_shuffle_channel(10, 3)
    assert channel.matrix.shape == (3**10, 66)
    assert np.count_nonzero(channel.matrix) == 3**10
    np.testing.assert_array_equal(channel.matrix.sum(axis=0)[:2], [1, 10])


PERMUTATIONS = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.permutations(list(range(n))), min_size=1, max_size=5)
)


@pytest.mark.parametrize("k", range(2, 60))
def test_the_double_nearest_to_one_over_k_is_taken(k):
    assert checked_truth(1.0 / k, k) == 1.0 / k
    row = response_channel(k, 1.0 / k).matrix[0]
    np.testing.assert_allclose(row, 1.0 / k, rtol=1e-14)
    with pytest.raises(OutOfRegimeError, match="is below"):
        checked_truth(1.0 / k - 1e-14, k)


def test_responses():
    exact = response_channel(3, Fraction(1, 2))
    assert exact.is_exact
    assert exact.inputs == exact.outputs == (0, 1, 2)
    assert exact.matrix[1].tolist() == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    assert response_channel(2, 1).matrix.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ParameterError, match=r"100000 x 100000 = 10000000000 cells"):
        response_channel(10**5, 0.5)
    with pytest.raises(ParameterError, match="domain_size = 1 is below 2"):
        response_channel(1, 1.0)
