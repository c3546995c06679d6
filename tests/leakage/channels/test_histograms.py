"""Histograms and datasets: all of them, in order, and how many datasets have each histogram."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels import histograms as module
from shuffledp.leakage.channels.histograms import (
    checked_histogram,
    dataset_histograms,
    datasets,
    histogram_at,
    histogram_ranks,
    histograms,
    num_datasets,
    num_histograms,
)

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
    assert sizes == {tuple(row): num_datasets(row) for row in histograms(n, k).tolist()}


@given(st.integers(0, 10**5), st.integers(1, 4), st.data())
def test_ranks_and_histograms_are_inverse_at_any_size(n, k, data):
    total = num_histograms(n, k)
    ranks = data.draw(st.lists(st.integers(0, min(total, 2**63) - 1), min_size=1, max_size=4))
    found = histogram_at(ranks, n, k)
    assert found.shape == (len(ranks), k)
    assert found.min() >= 0
    assert found.sum(axis=1).tolist() == [n] * len(ranks)
    assert histogram_ranks(found).tolist() == ranks


def test_shapes_are_kept():
    ranks = np.arange(6).reshape(2, 3)
    found = histogram_at(ranks, 2, 3)
    assert found.shape == (2, 3, 3)
    np.testing.assert_array_equal(histogram_ranks(found), ranks)
    np.testing.assert_array_equal(ranks, np.arange(6).reshape(2, 3))  # not written into
    assert histogram_at(4, 5, 2).tolist() == [4, 1]
    assert int(histogram_ranks([4, 1])) == 4
    assert dataset_histograms([0, 2, 2], 3).tolist() == [1, 0, 2]


def test_numbers_of_any_size():
    assert num_histograms(10**9, 10**4) > 10**4000
    assert num_datasets([10**5, 1]) == 10**5 + 1
    assert num_datasets([30] * 4) == math.factorial(120) // math.factorial(30) ** 4


def test_what_cannot_be_listed_or_numbered(monkeypatch):
    with pytest.raises(
        ParameterError, match=r"5.0\d*e\+06 histograms of 3162 .* too many to number"
    ):
        monkeypatch.setattr(module, "LARGEST_TABLE", 9000)
        histogram_at([0], 3162, 3)
    monkeypatch.undo()
    with pytest.raises(ParameterError, match=r"histograms of 1000000000 users over 5 .* to number"):
        histogram_at([0], 10**9, 5)
    with pytest.raises(ParameterError, match=r"too many to number"):
        histogram_ranks([10**9, 0, 0, 0])
    with pytest.raises(
        ParameterError, match=r"5e\+17 histograms of 1000000000 .* too many to list"
    ):
        histograms(10**9, 3)
    for n in (40, 10**9):
        with pytest.raises(ParameterError, match=rf"there are 2\^{n} datasets .* too many to list"):
            datasets(n, 2)
    with pytest.raises(ParameterError, match="too many to list"):
        datasets(27, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: num_histograms(-1, 2), "num_users = -1 is below 0"),
        (lambda: histograms(3, 0), "num_values = 0 is below 1"),
        (lambda: datasets(0, 2), "num_users = 0 is below 1"),
        (lambda: datasets(2, 1), "num_values = 1 is below 2"),
        (lambda: histogram_at([4], 3, 2), r"ranks has an entry outside \[0, 4\)"),
        (lambda: histogram_at([-1], 3, 2), r"ranks has an entry outside \[0, 4\)"),
        (lambda: histogram_at([0.5], 3, 2), "ranks has entries that are not whole numbers"),
        (lambda: histogram_ranks([[1, 2], [2, 2]]), "histograms of 3 and of 4 users are mixed"),
        (lambda: histogram_ranks([[1, -2]]), "histograms has the count -2"),
        (lambda: histogram_ranks(np.zeros((0, 2), dtype=int)), r"has shape \(0, 2\)"),
        (lambda: histogram_ranks(3), r"has shape \(\)"),
        (lambda: dataset_histograms([0, 2], 2), r"values has an entry outside \[0, 2\)"),
        (lambda: dataset_histograms([-1], 2), r"values has an entry outside \[0, 2\)"),
        (lambda: num_datasets([1, -1]), "histogram has the count -1"),
        (lambda: num_datasets([[1]]), r"histogram has shape \(1, 1\)"),
        (lambda: checked_histogram("name", np.zeros(0, dtype=int)), r"name has shape \(0,\)"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
