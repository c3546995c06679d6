"""Channels of whole collections: n users randomize, a shuffler hides who said what.

A dataset is the tuple of the n values, one of k for each user; channels from datasets have k^n rows
in lexicographic order, labelled with these tuples. Channels on histograms are far smaller, and
labelled with tuples of k counts. Sizes that cannot be held are refused with the size; what is known
in closed form needs no channel.

*The shuffler commutes with any randomizer.* For a permutation s of positions let P_s be the channel
that moves the value at position i to position s(i). A shuffle S is the mean of all P_s: given a
dataset, each arrangement of it comes from equally many s. N applies one randomizer R to each
position independently, so N(x, z) is the product of R(x_i, z_i), which does not change when x and z
are permuted alike: P_s N = N P_s. The mean over s is S N = N S. ∎ (The paper proves it for k-ary
randomized response, Prop. 11, and believes it for any, Sec. VII. It needs one R for all users.)

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 7, 8, 10 and 23.
"""

import math
from collections.abc import Hashable
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.channels.count_laws import count_laws
from shuffledp.leakage.channels.histograms import (
    dataset_histograms,
    datasets,
    histogram_ranks,
    histograms,
    num_datasets,
    require_sizes,
)
from shuffledp.leakage.channels.matrices import (
    frozen_sparse,
    require_dense_size,
    require_stored_size,
)
from shuffledp.leakage.channels.position_matrices import permutation_matrix, walk_matrix
from shuffledp.leakage.channels.rationals import frozen
from shuffledp.leakage.channels.responses import Truth, response_channel
from shuffledp.leakage.priors import checked_prior, is_exact_prior

# Datasets, each with a label.
MOST_DATASETS = 2_000_000


def _num_datasets_in_all(num_users: int, num_values: int) -> int:
    """Return k^n, or refuse beyond 2e6 rows without computing it, and beyond 20 users."""
    if num_users * math.log(max(num_values, 2)) > math.log(MOST_DATASETS) + 1e-9:
        raise ParameterError(
            f"a channel from datasets of {num_users} users over {num_values} values would have "
            f"{num_values}^{num_users} rows, labelled with {num_users} values each, above "
            f"{MOST_DATASETS} rows or 20 users: work on histograms or with the closed forms"
        )
    return int(num_values**num_users)


def _rows(table: NDArray[np.int64]) -> tuple[Hashable, ...]:
    """Return rows as tuples, to be used as labels."""
    return tuple(map(tuple, table.tolist()))


def _labels(labels: tuple[Hashable, ...] | None, size: int) -> tuple[Hashable, ...]:
    return tuple(range(size)) if labels is None else labels


def product_channel(num_users: int, channel: object) -> Channel:
    """Return N for any randomizer: each user reports through one channel, independently.

    Parameters
    ----------
    num_users : int
        n >= 1.
    channel : Channel or array_like, shape (k, m)
        The randomizer R: values to reports.

    Returns
    -------
    Channel
        k^n datasets to m^n datasets of reports, labelled with tuples of the labels of R (else of
        indices). Exact or sparse where R is.

    Raises
    ------
    ParameterError
        If there are more than 2e6 datasets or 2e8 cells (sparse: stored entries; exact: 4e6).

    Examples
    --------
    >>> product_channel(2, [[0.5, 0.5], [0.0, 1.0]]).matrix[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    one = as_channel(channel)
    n = require_at_least("num_users", num_users, 1)
    k, m = (_num_datasets_in_all(n, size) for size in one.matrix.shape)
    if one.is_sparse:
        from scipy.sparse import csr_array, kron

        require_stored_size("the channel from datasets", one.matrix.nnz**n)
        matrix: Any = frozen_sparse(csr_array(reduce(kron, [one.matrix] * n)))
    else:
        require_dense_size("the channel from datasets", k, m, exact=one.is_exact)
        matrix = frozen(reduce(np.kron, [one.matrix] * n))
    inputs = tuple(product(_labels(one.inputs, one.num_inputs), repeat=n))
    outputs = tuple(product(_labels(one.outputs, one.num_outputs), repeat=n))
    return Channel.from_trusted(matrix, inputs=inputs, outputs=outputs)


def randomizer_channel(num_users: int, num_values: int, truth: Truth) -> Channel:
    """Return N for k-ary randomized response (Definition 10).

    Parameters
    ----------
    num_users, num_values : int
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
    n, k = require_sizes(num_users, num_values)
    _num_datasets_in_all(n, k)
    return product_channel(n, response_channel(k, truth))


def _within_groups(groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sizes of each row's group and, row by row, all members of its group in order."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    sizes = counts[groups]
    row_starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(row_starts, sizes)
    return sizes, order[np.repeat(starts[groups], sizes) + within]


def shuffle_channel(num_users: int, num_values: int, *, exact: bool = False) -> Channel:
    """Return S: the values in an order drawn uniformly (Definition 7).

    Parameters
    ----------
    num_users, num_values : int
        n >= 1 and k >= 2.
    exact : bool, optional
        Return fractions.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets; sparse, unless exact.

    Raises
    ------
    ParameterError
        If there are more than 2e6 datasets, or more than 2e8 entries (exact: 4e6 cells).

    Examples
    --------
    >>> shuffle_channel(2, 2).to_dense()
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """
    n, k = require_sizes(num_users, num_values)
    total = _num_datasets_in_all(n, k)
    if exact:
        require_dense_size("the channel from datasets", total, total, exact=True)
    # A histogram of s datasets has s^2 entries.
    require_stored_size(
        "the channel from datasets", sum(num_datasets(row) ** 2 for row in histograms(n, k))
    )
    table = datasets(n, k)
    labels = _rows(table)
    sizes, members = _within_groups(histogram_ranks(dataset_histograms(table, k)))
    if exact:
        matrix: Any = np.full((total, total), Fraction(0))
        rows = np.repeat(np.arange(total), sizes)
        matrix[rows, members] = [Fraction(1, size) for size in sizes[rows].tolist()]
        frozen(matrix)
    else:
        from scipy.sparse import csr_array

        starts = np.concatenate(([0], np.cumsum(sizes)))
        values = np.repeat(1.0 / sizes, sizes)
        matrix = frozen_sparse(csr_array((values, members, starts), shape=(total, total)))
    return Channel.from_trusted(matrix, inputs=labels, outputs=labels)


def reduced_shuffle_channel(num_users: int, num_values: int, *, exact: bool = False) -> Channel:
    """Return S^r: the histogram of the dataset, and nothing else (Definition 8).

    Equivalent to `shuffle_channel`: there, columns of one histogram are equal (Prop. 9).

    Parameters
    ----------
    num_users, num_values : int
        n >= 1 and k >= 2.
    exact : bool, optional
        Return fractions.

    Returns
    -------
    Channel
        k^n datasets to histograms; sparse, unless exact.

    Raises
    ------
    ParameterError
        If there are more than 2e6 datasets (exact: 4e6 cells).

    Examples
    --------
    >>> channel = reduced_shuffle_channel(2, 2)
    >>> channel.outputs
    ((0, 2), (1, 1), (2, 0))
    >>> channel.to_dense()[1]
    array([0., 1., 0.])
    """
    n, k = require_sizes(num_users, num_values)
    total = _num_datasets_in_all(n, k)
    columns = histograms(n, k)
    if exact:
        require_dense_size("the channel to histograms", total, len(columns), exact=True)
    table = datasets(n, k)
    ranks = histogram_ranks(dataset_histograms(table, k))
    if exact:
        matrix: Any = np.full((total, len(columns)), Fraction(0))
        matrix[np.arange(total), ranks] = Fraction(1)
        frozen(matrix)
    else:
        from scipy.sparse import csr_array

        parts = (np.ones(total), ranks, np.arange(total + 1))
        matrix = frozen_sparse(csr_array(parts, shape=(total, len(columns))))
    return Channel.from_trusted(matrix, inputs=_rows(table), outputs=_rows(columns))


def reduced_product_channel(num_users: int, channel: object) -> Channel:
    """Return N^r for any randomizer: histograms of values to histograms of reports.

    The law of the histogram of the reports depends on the values only through theirs. So the
    uniform prior of Definition 23 plays no part, and N S^r = S^r N^r (Prop. 26) for any randomizer.

    Parameters
    ----------
    num_users : int
        n >= 1.
    channel : Channel or array_like, shape (k, m)
        The randomizer R: values to reports.

    Returns
    -------
    Channel
        Histograms over k values to histograms over m reports; dense, exact where R is.

    Raises
    ------
    ParameterError
        If there are more than 2e8 cells (exact: 4e6) or it would take more than 1e9
        multiplications (exact: 5e7): about 1100 users with two values and two reports.

    Notes
    -----
    Cost, for m reports: m times the sum over j <= n of the number of histograms of j values times
    that of j reports. No dataset is ever listed.
    """
    one = as_channel(channel)
    n = require_at_least("num_users", num_users, 1)
    matrix = count_laws(one.matrix if one.is_exact else one.to_dense(), n)
    return Channel.from_trusted(
        frozen(matrix),
        inputs=_rows(histograms(n, one.num_inputs)),
        outputs=_rows(histograms(n, one.num_outputs)),
    )


def reduced_randomizer_channel(num_users: int, num_values: int, truth: Truth) -> Channel:
    """Return N^r for k-ary randomized response (Definition 23), histograms to histograms.

    Parameters
    ----------
    num_users, num_values : int
        n >= 1 and k >= 2.
    truth : float, int or Fraction
        Probability p of reporting the true value, in [1/k, 1]. Fractions and integers give an exact
        channel.

    Returns
    -------
    Channel
        See `reduced_product_channel`, also for sizes.

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
    n, k = require_sizes(num_users, num_values)
    return reduced_product_channel(n, response_channel(k, truth))


def permutation_channel(
    permutations: ArrayLike, probabilities: ArrayLike, num_values: int
) -> Channel:
    """Return the channel of a shuffler that draws its permutation from any law.

    Output z has z[s(i)] = x[i]: s(i) is the position in which user i's value is released.

    Parameters
    ----------
    permutations : array_like of int, shape (M, n)
        Rows s, each a permutation of 0, ..., n - 1.
    probabilities : array_like, shape (M,)
        Their law; fractions and integers give an exact channel. See `checked_prior`.
    num_values : int
        k >= 2.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets; sparse, unless exact. To randomize first, cascade
        `randomizer_channel` with it; the order matters only if users have different randomizers.

    Raises
    ------
    ParameterError
        If a row is no permutation, the probabilities are no law, or M k^n is above 2e7 (exact:
        2e6).

    Examples
    --------
    >>> channel = permutation_channel([[1, 2, 0]], [1.0], 2)
    >>> channel.outputs[channel.to_dense()[channel.inputs.index((0, 0, 1))].argmax()]
    (1, 0, 0)
    """
    table = np.asarray(permutations)
    if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "iu":
        raise ParameterError(
            f"permutations has shape {table.shape} and entries {table.dtype}: give rows of whole "
            "numbers, one for each permutation"
        )
    n, k = require_sizes(table.shape[1], num_values)
    wrong = np.flatnonzero((np.sort(table, axis=1) != np.arange(n)).any(axis=1))
    if len(wrong):
        raise ParameterError(
            f"permutations[{wrong[0]}] = {table[wrong[0]].tolist()} is no permutation of "
            f"0, ..., {n - 1}: each position occurs once"
        )
    law = checked_prior(probabilities, len(table), exact=is_exact_prior(probabilities))
    _num_datasets_in_all(n, k)
    matrix = permutation_matrix(table.astype(np.int64), law, k)
    labels = _rows(datasets(n, k))
    return Channel.from_trusted(matrix, inputs=labels, outputs=labels)


def walk_channel(position_laws: object, num_values: int) -> Channel:
    """Return the channel of reports that walk to holders, who then show all that they hold.

    Report i ends at holder h with probability ``position_laws[i, h]``, independently of all others.
    Each holder shows how many reports of each value he holds, in no order.

    Parameters
    ----------
    position_laws : array_like or Channel, shape (n, m)
        Rows sum to one. Fractions and integers give an exact channel.
    num_values : int
        k >= 2.

    Returns
    -------
    Channel
        k^n datasets to holdings, tuples with a histogram for each holder; sparse, unless exact.
        Only holdings that occur are columns.

    Raises
    ------
    ParameterError
        If rows are no laws, or k^n times the number of ways in which reports can end is above 2e7
        (exact: 2e6), or holdings do not fit 63 bits: small n only, up to 6 users or so.

    Examples
    --------
    >>> channel = walk_channel([[0.5, 0.5], [0.5, 0.5]], 2)
    >>> channel.outputs[:2]
    (((0, 0), (0, 2)), ((0, 0), (1, 1)))
    >>> channel.num_outputs, float(channel.to_dense()[0].max())
    (10, 0.5)
    """
    k = require_at_least("num_values", num_values, 2)
    try:
        laws = as_channel(position_laws)
    except ParameterError as error:
        raise ParameterError(f"position_laws: {error}") from None
    _num_datasets_in_all(laws.num_inputs, k)
    matrix, holdings = walk_matrix(laws.matrix if laws.is_exact else laws.to_dense(), k)
    outputs = tuple(tuple(map(tuple, row)) for row in holdings.tolist())
    inputs = _rows(datasets(laws.num_inputs, k))
    return Channel.from_trusted(matrix, inputs=inputs, outputs=outputs)
