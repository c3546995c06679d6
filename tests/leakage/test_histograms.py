"""Histograms and datasets: all of them, in order, and how many datasets have each histogram."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.builders import (
    dataset_histograms,
    datasets,
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
