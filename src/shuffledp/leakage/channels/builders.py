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

*k-ary randomized response as a channel for one user, and its truth probability, checked.*

*Matrices of shufflers that are not uniform: laws of permutations, and reports that walk.*

Rows are the k^n datasets in lexicographic order.
"""

import math
from collections.abc import Hashable
from fractions import Fraction
from functools import reduce
from itertools import product
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.channels.histograms import (
    count_laws,
    dataset_histograms,
    datasets,
    histogram_ranks,
    histograms,
    num_datasets,
    require_sizes,
)
from shuffledp.leakage.channels.matrices import (
    frozen,
    frozen_sparse,
    is_exact_array,
    require_dense_size,
    require_stored_size,
    scaled_rows,
)
from shuffledp.leakage.priors import checked_prior, is_exact_prior

Truth = float | int | Fraction


def checked_truth(truth: Truth, num_values: int) -> float | Fraction:
    """Return the probability of a true report, exact where it is an integer or a fraction.

    Parameters
    ----------
    truth : float, int or Fraction
        p in [1/k, 1]. Of doubles, the one nearest to 1/k counts as 1/k.
    num_values : int
        k >= 2.

    Raises
    ------
    OutOfRegimeError
        If p is in [0, 1/k): all results for randomized response assume that the true value is at
        least as probable as any other.
    ParameterError
        If p is NaN or outside [0, 1], or k < 2.

    Examples
    --------
    >>> checked_truth(1, 2), checked_truth(0.75, 2)
    (Fraction(1, 1), 0.75)
    """
    k = require_at_least("num_values", num_values, 2)
    number: float | Fraction
    if isinstance(truth, Rational):
        number = Fraction(int(truth.numerator), int(truth.denominator))
        least: float | Fraction = Fraction(1, k)
    else:
        try:
            number = float(truth)
        except (TypeError, ValueError):
            raise ParameterError(
                f"truth = {truth!r} is not a number: give one in [1/k, 1]"
            ) from None
        least = 1.0 / k
    if not 0 <= number <= 1:
        raise ParameterError(f"truth = {truth} is not in [1/k, 1]: it is a probability; try 0.75")
    if number < least:
        raise OutOfRegimeError(
            f"truth = {truth} is below 1/{k}: randomized response is taken to report the true "
            "value at least as often as any other; relabel the reports"
        )
    return number


def response_channel(num_values: int, truth: Truth) -> Channel:
    """Return k-ary randomized response of one user: truth on the diagonal, else (1 - p)/(k - 1).

    Parameters
    ----------
    num_values : int
        k >= 2, up to 14142 (exact: 2000).
    truth : float, int or Fraction
        p in [1/k, 1]; see `checked_truth`. Fractions and integers give an exact channel.

    Returns
    -------
    Channel
        Values to reports, both labelled 0, ..., k - 1.

    Raises
    ------
    OutOfRegimeError, ParameterError
        As `checked_truth`; and if the matrix is too large.

    Notes
    -----
    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Definition 10.

    Examples
    --------
    >>> response_channel(3, 0.5).matrix
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    probability = checked_truth(truth, num_values)
    exact = isinstance(probability, Fraction)
    require_dense_size("the response channel", num_values, num_values, exact=exact)
    other = (1 - probability) / (num_values - 1)
    matrix = np.full((num_values, num_values), other)  # object where it is a Fraction
    np.fill_diagonal(matrix, probability)
    labels = range(num_values)
    return Channel.from_matrix(frozen(matrix), inputs=labels, outputs=labels)


# Moves of a dataset by a permutation, or of all reports of a dataset to holders: some seconds.
_MOST_MOVES = 20_000_000
_MOST_MOVES_EXACT = 2_000_000

# Entries that are collected before equal ones are added.
_BLOCK = 1 << 22

# Positions are coded by digits in 63 bits.
_LARGEST_CODE = 2**63


def _require_moves(what: str, num_moves: int, *, exact: bool) -> None:
    limit = _MOST_MOVES_EXACT if exact else _MOST_MOVES
    if num_moves > limit:
        raise ParameterError(
            f"the channel of {what} would take {num_moves} moves, above {limit}: use fewer users "
            "or values" + (", or floats" if exact else "")
        )


def _integers(probabilities: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return fractions as integers over one scale, and doubles as they are, over one."""
    if not is_exact_array(probabilities):
        return probabilities, 1
    flat, (scale,) = scaled_rows(probabilities.reshape(1, -1))
    return flat.reshape(probabilities.shape), scale


def _fractions(integers: NDArray[Any], scale: int) -> NDArray[np.object_]:
    table = np.empty(integers.size, dtype=np.object_)
    table[:] = [Fraction(entry, scale) for entry in integers.ravel().tolist()]
    return table.reshape(integers.shape)


def permutation_matrix(
    permutations: NDArray[np.int64], probabilities: NDArray[Any], num_values: int
) -> Any:
    """Return the matrix that moves the value at i to position s(i), for s drawn from a law.

    Parameters
    ----------
    permutations : numpy.ndarray of int64, shape (M, n)
        Checked rows s.
    probabilities : numpy.ndarray, shape (M,)
        Their law, float64 or object.
    num_values : int
        k.

    Returns
    -------
    scipy.sparse.csr_array or numpy.ndarray of object, shape (k^n, k^n)
    """
    exact = is_exact_array(probabilities)
    num_users = permutations.shape[1]
    table = datasets(num_users, num_values)
    total = len(table)
    _require_moves("permutations", total * len(permutations), exact=exact)
    if exact:
        require_dense_size("the channel of permutations", total, total, exact=True)
    # The index of a dataset is the number whose digits are its values.
    places = num_values ** (num_users - 1 - permutations.T)
    weights, scale = _integers(probabilities)
    rows = np.arange(total)
    if exact:
        moved = np.zeros((total, total), dtype=np.object_)
        for column, weight in zip(places.T, weights, strict=True):
            moved[rows, table @ column] += weight  # each row once
        return frozen(_fractions(moved, scale))
    from scipy.sparse import csr_array

    matrix = csr_array((total, total))
    width = max(1, _BLOCK // total)
    for start in range(0, len(weights), width):
        targets = table @ places[:, start : start + width]
        values = np.broadcast_to(weights[start : start + width], targets.shape)
        where = (np.repeat(rows, targets.shape[1]), targets.ravel())
        matrix = matrix + csr_array((values.ravel(), where), shape=(total, total))
    return frozen_sparse(matrix)


def _next_report(
    codes: NDArray[np.int64], weights: NDArray[Any], steps: NDArray[np.int64], law: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the law of what all holders hold once one more report has been handed to a holder."""
    reached = np.flatnonzero(law != 0)
    all_codes = (codes[:, np.newaxis] + steps[reached]).ravel()
    all_weights = (weights[:, np.newaxis] * law[reached]).ravel()
    distinct, inverse = np.unique(all_codes, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=weights.dtype)
    np.add.at(sums, inverse, all_weights)
    return distinct, sums


def _require_feasible_walk(position_laws: NDArray[Any], num_values: int) -> None:
    """Refuse what takes too long, or cannot be coded in 63 bits."""
    num_users, num_holders = position_laws.shape
    endings = math.prod(int(count) for count in np.count_nonzero(position_laws != 0, axis=1))
    exact = is_exact_array(position_laws)
    _require_moves("walks", num_values**num_users * endings, exact=exact)
    if (num_users + 1) ** (num_holders * num_values) > _LARGEST_CODE:
        raise ParameterError(
            f"the channel of walks of {num_users} reports to {num_holders} holders over "
            f"{num_values} values has too many outcomes to number: use fewer users or values"
        )


def walk_matrix(position_laws: NDArray[Any], num_values: int) -> tuple[Any, NDArray[np.int64]]:
    """Return the matrix from values to what each holder holds, and what that is for each column.

    Parameters
    ----------
    position_laws : numpy.ndarray, shape (n, m)
        Checked rows: the law of the holder of report i; float64 or object.
    num_values : int
        k.

    Returns
    -------
    matrix : scipy.sparse.csr_array or numpy.ndarray of object, shape (k^n, num_outputs)
        Columns in lexicographic order of what they stand for.
    holdings : numpy.ndarray of int64, shape (num_outputs, m, k)
        How many reports of each value each holder holds.

    Notes
    -----
    What is held is coded as a number with one digit in base n + 1 for each holder and value. Report
    by report, for each beginning of a dataset, the law of the code is extended and equal codes are
    added.
    """
    _require_feasible_walk(position_laws, num_values)
    num_users, num_holders = position_laws.shape
    num_digits, base = num_holders * num_values, num_users + 1
    places = np.array([base ** (num_digits - 1 - digit) for digit in range(num_digits)])
    steps = places.reshape(num_holders, num_values)
    laws, scale = _integers(position_laws)
    states = [(np.zeros(1, dtype=np.int64), np.ones(1, dtype=laws.dtype))]
    for law in laws:
        states = [
            _next_report(codes, weights, steps[:, value], law)
            for codes, weights in states
            for value in range(num_values)
        ]
    all_codes = np.concatenate([codes for codes, _ in states])
    outcomes, columns = np.unique(all_codes, return_inverse=True)
    holdings = (outcomes[:, np.newaxis] // places % base).reshape(-1, num_holders, num_values)
    values = np.concatenate([weights for _, weights in states])
    lengths = np.array([len(codes) for codes, _ in states])
    matrix = _stacked_rows(values, columns, lengths, len(outcomes))
    if is_exact_array(matrix):
        return frozen(_fractions(matrix, scale**num_users)), holdings
    return frozen_sparse(matrix), holdings


def _stacked_rows(
    values: NDArray[Any], columns: NDArray[np.int64], lengths: NDArray[np.int64], num_columns: int
) -> Any:
    """Return the matrix with the given entries of each row, all rows one after the other."""
    shape = (len(lengths), num_columns)
    if values.dtype == np.object_:
        require_dense_size("the channel of walks", *shape, exact=True)
        table = np.zeros(shape, dtype=np.object_)
        table[np.repeat(np.arange(len(lengths)), lengths), columns] = values
        return table
    from scipy.sparse import csr_array

    starts = np.concatenate(([0], np.cumsum(lengths)))
    return csr_array((values, columns, starts), shape=shape)


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
