"""Channels of whole collections: n users randomize, a shuffler hides who said what.

A dataset is the tuple of the n values, one of k for each user; channels from datasets have k^n rows
in lexicographic order, labelled with these tuples. Channels on histograms, tuples of k counts, are
far smaller. The shuffler commutes with any randomizer: proof in docs/results/leakage-channels.md.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 7, 8, 10 and 23.
"""

from collections import Counter
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import SupportsIndex

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.leakage.channel import Channel, Truth, checked_truth, require_cells

_Table = list[tuple[int, ...]]


def datasets(num_users: SupportsIndex, domain_size: SupportsIndex) -> _Table:
    """Return all k^n datasets from (0, ..., 0) on, or refuse."""
    n = require_at_least("num_users", num_users, 1)
    k = require_at_least("domain_size", domain_size, 2)
    # Beyond 40 users there are too many in any case: their number is not computed.
    require_cells("the channel from datasets", k ** min(n, 40), 1, exact=True)
    return list(product(range(k), repeat=n))


def _histograms(table: _Table, domain_size: int) -> _Table:
    """Return the histogram of each dataset."""
    return [tuple(map(values.count, range(domain_size))) for values in table]


def product_channel(num_users: int, randomizer: Channel) -> Channel:
    """Return N for any randomizer: each user reports through it, independently."""
    inputs, outputs = (datasets(num_users, size) for size in randomizer.matrix.shape)
    exact = randomizer.is_exact
    require_cells("the channel from datasets", len(inputs), len(outputs), exact=exact)
    matrix = reduce(np.kron, [randomizer.matrix] * num_users)
    return Channel(matrix, tuple(inputs), tuple(outputs))


def reduced_product_channel(num_users: int, randomizer: Channel) -> Channel:
    """Return N^r for any randomizer: histograms of values to histograms of reports.

    All datasets of one histogram lead to the same law, so that one row of N S^r is enough, and the
    uniform prior of Definition 23 plays no part.
    """
    of_rows = _histograms(datasets(num_users, randomizer.num_inputs), randomizer.num_inputs)
    firsts = {histogram: row for row, histogram in reversed([*enumerate(of_rows)])}
    inputs, full = tuple(sorted(firsts)), product_channel(num_users, randomizer)
    chosen = Channel(full.matrix[[firsts[each] for each in inputs]], inputs, full.outputs)
    return chosen @ reduced_shuffle_channel(num_users, randomizer.num_outputs)


def _response(domain_size: int, truth: Truth) -> Channel:
    """Return k-ary randomized response of one user: truth on the diagonal, else (1 - p)/(k - 1)."""
    probability = checked_truth(truth, domain_size)
    matrix = np.full((domain_size, domain_size), (1 - probability) / (domain_size - 1))
    np.fill_diagonal(matrix, probability)
    return Channel(matrix)


def randomizer_channel(num_users: int, domain_size: int, truth: Truth) -> Channel:
    """Return N for k-ary randomized response (Definition 10).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.
    truth : float, int or Fraction
        Probability p of reporting the true value, in [1/k, 1]. Fractions and integers give an exact
        channel.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If p is no probability, or there are more than 2e8 cells (exact: 4e6).

    Examples
    --------
    >>> randomizer_channel(1, 2, 0.75).matrix
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return product_channel(num_users, _response(domain_size, truth))


def shuffle_channel(num_users: int, domain_size: int) -> Channel:
    """Return S: the values in an order drawn uniformly (Definition 7).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets, exact.

    Raises
    ------
    ParameterError
        If there are more than 4e6 cells.

    Examples
    --------
    >>> shuffle_channel(2, 2).to_dense()
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """
    table = datasets(num_users, domain_size)
    require_cells("the channel from datasets", len(table), len(table), exact=True)
    of_rows = _histograms(table, domain_size)
    sizes = Counter(of_rows)
    matrix = [[Fraction(one == other, sizes[one]) for other in of_rows] for one in of_rows]
    return Channel(matrix, tuple(table), tuple(table))


def reduced_shuffle_channel(num_users: int, domain_size: int) -> Channel:
    """Return S^r: the histogram of the dataset, and nothing else (Definition 8).

    Equivalent to `shuffle_channel`: there, columns of one histogram are equal (Prop. 9).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.

    Returns
    -------
    Channel
        k^n datasets to histograms, exact.

    Raises
    ------
    ParameterError
        If there are more than 4e6 cells.

    Examples
    --------
    >>> channel = reduced_shuffle_channel(2, 2)
    >>> channel.outputs
    ((0, 2), (1, 1), (2, 0))
    >>> channel.to_dense()[1]
    array([0., 1., 0.])
    """
    table = datasets(num_users, domain_size)
    of_rows = _histograms(table, domain_size)
    columns = sorted(set(of_rows))
    require_cells("the channel to histograms", len(table), len(columns), exact=True)
    matrix = [[int(each == column) for column in columns] for each in of_rows]
    return Channel(matrix, tuple(table), tuple(columns))


def reduced_randomizer_channel(num_users: int, domain_size: int, truth: Truth) -> Channel:
    """Return N^r for k-ary randomized response (Definition 23), histograms to histograms.

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.
    truth : float, int or Fraction
        Probability p of reporting the true value, in [1/k, 1]. Fractions and integers give an exact
        channel.

    Returns
    -------
    Channel
        Sizes are limited as for `randomizer_channel`, from which it is made.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If p is no probability, or the channel is too large.

    Examples
    --------
    >>> channel = reduced_randomizer_channel(3, 2, Fraction(3, 4))
    >>> channel.inputs[1], channel.matrix[1].tolist()
    ((1, 2), [Fraction(9, 64), Fraction(33, 64), Fraction(19, 64), Fraction(3, 64)])
    """
    return reduced_product_channel(num_users, _response(domain_size, truth))
