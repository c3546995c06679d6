"""Histograms of n users over k values: how many there are, which, in what order, and their sizes.

A histogram is a row (h_0, ..., h_{k-1}) of counts that sum to n. Rows are in lexicographic order:
(0, ..., 0, n) comes first and (n, 0, ..., 0) last. A dataset is a row of n values in {0, ..., k-1},
also in lexicographic order: (0, ..., 0) comes first.

*Rank.* Let s_i be what is left to parts i, i+1, ..., and r_i = k - 1 - i the number of parts after
i. The histograms that agree with h before part i and are smaller there have j < h_i in it, and
C(s_i - j + r_i - 1, r_i - 1) completions each. The sum telescopes to
C(s_i + r_i, r_i) - C(s_{i+1} + r_i, r_i), and the rank is the sum of this over i.

*The law of the histogram of n reports, for every histogram of the n true values.*

Users report independently through one channel R, so the law depends on the values only through
their histogram a. Take one user with value v away: the histogram of all reports is that of the
others plus one more, drawn from row v. So the law of a is made from that of a - e_v, user by user,
without ever listing datasets. All terms are non-negative: doubles are good to a relative error of
about n times the number of outputs times 1e-16.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.matrices import is_exact_array, require_dense_size, scaled_rows

# Rows times columns of a table that is made here: 1.6 GB of whole numbers.
LARGEST_TABLE = 200_000_000

_LARGEST_RANK = 2**63 - 1


def require_sizes(num_users: int, num_values: int) -> tuple[int, int]:
    """Return both as integers, at least 1 and at least 2, or raise `ParameterError`."""
    return require_at_least("num_users", num_users, 1), require_at_least(
        "num_values", num_values, 2
    )


def num_histograms(num_users: int, num_values: int) -> int:
    """Return C(n + k - 1, k - 1), the number of histograms of n users over k values.

    Parameters
    ----------
    num_users, num_values : int
        n >= 0 and k >= 1.

    Returns
    -------
    int
        Exact, of any size.

    Examples
    --------
    >>> num_histograms(3, 2), num_histograms(200, 5)
    (4, 70058751)
    """
    n = require_at_least("num_users", num_users, 0)
    k = require_at_least("num_values", num_values, 1)
    return math.comb(n + k - 1, k - 1)


def _binomial_table(n: int, k: int) -> NDArray[np.int64]:
    """Return C(s + r, r) for s in [0, n], by rows, and r in [0, k - 1]; all fit, or raise."""
    largest = num_histograms(n, k)
    if largest > _LARGEST_RANK or (n + 1) * k > LARGEST_TABLE:
        raise ParameterError(
            f"there are {largest:.6g} histograms of {n} users over {k} values, too many to number: "
            "use fewer users or values, or the closed forms"
        )
    table = np.ones((n + 1, k), dtype=np.int64)
    for parts in range(1, k):
        np.cumsum(table[:, parts - 1], out=table[:, parts])
    return table


def histogram_at(ranks: ArrayLike, num_users: int, num_values: int) -> NDArray[np.int64]:
    """Return the histograms with the given ranks.

    Parameters
    ----------
    ranks : array_like of int
        Each in [0, `num_histograms`); of any shape.
    num_users, num_values : int
        n >= 0 and k >= 1.

    Returns
    -------
    numpy.ndarray of int64, shape ``ranks.shape + (num_values,)``

    Raises
    ------
    ParameterError
        If a rank is outside, or ranks do not fit 63 bits.

    Examples
    --------
    >>> histogram_at([0, 1, 3], 3, 2).tolist()
    [[0, 3], [1, 2], [3, 0]]
    """
    n = require_at_least("num_users", num_users, 0)
    k = require_at_least("num_values", num_values, 1)
    table = _binomial_table(n, k)
    left = np.array(_whole("ranks", ranks))
    if np.any((left < 0) | (left >= table[n, k - 1])):
        raise ParameterError(f"ranks has an entry outside [0, {table[n, k - 1]}): number from zero")
    counts = np.zeros((*left.shape, k), dtype=np.int64)
    remaining = np.full(left.shape, n, dtype=np.int64)
    for part in range(k - 1):
        column = table[:, k - 1 - part]
        # The least remainder s with C(s + r, r) >= C(remaining + r, r) - left.
        smaller = np.searchsorted(column, column[remaining] - left)
        counts[..., part] = remaining - smaller
        left -= column[remaining] - column[smaller]
        remaining = smaller
    counts[..., k - 1] = remaining
    return counts


def histogram_ranks(histograms: ArrayLike) -> NDArray[np.int64]:
    """Return the position of each histogram in lexicographic order, from zero.

    Parameters
    ----------
    histograms : array_like of int, shape (..., k)
        Counts, at least zero, that sum to one number n in every row.

    Returns
    -------
    numpy.ndarray of int64, shape (...)
        The inverse of `histogram_at`.

    Raises
    ------
    ParameterError
        If counts are negative or rows have different sums, or ranks do not fit 63 bits.

    Examples
    --------
    >>> histogram_ranks([[0, 3], [3, 0]]).tolist()
    [0, 3]
    """
    counts = _whole("histograms", histograms)
    if counts.ndim == 0 or counts.size == 0:
        raise ParameterError(
            f"histograms has shape {counts.shape}: give at least one row of counts"
        )
    if counts.min() < 0:
        raise ParameterError(f"histograms has the count {counts.min()}: counts are at least 0")
    totals = counts.sum(axis=-1)
    n, k = int(totals.max()), counts.shape[-1]
    if totals.min() != n:
        raise ParameterError(
            f"histograms of {totals.min()} and of {n} users are mixed: rank them apart"
        )
    table = _binomial_table(n, k)
    ranks = np.zeros(totals.shape, dtype=np.int64)
    remaining = np.array(totals)
    for part in range(k - 1):
        after = remaining - counts[..., part]
        ranks += table[remaining, k - 1 - part] - table[after, k - 1 - part]
        remaining = after
    return ranks


def _whole(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return whole numbers as int64, or raise."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"{name} has entries that are not whole numbers: give integers")
    return array.astype(np.int64, copy=False)


def histograms(num_users: int, num_values: int) -> NDArray[np.int64]:
    """Return all histograms of ``num_users`` users over ``num_values`` values, in order.

    Parameters
    ----------
    num_users, num_values : int
        n >= 0 and k >= 1.

    Returns
    -------
    numpy.ndarray of int64, shape (num_histograms(n, k), k)

    Raises
    ------
    ParameterError
        If the table had more than 2e8 entries.

    Examples
    --------
    >>> histograms(3, 2).tolist()
    [[0, 3], [1, 2], [2, 1], [3, 0]]
    """
    total = num_histograms(num_users, num_values)
    if total * num_values > LARGEST_TABLE:
        raise ParameterError(
            f"there are {total:.6g} histograms of {num_users} users over {num_values} values, too "
            "many to list: use fewer users or values, or the closed forms"
        )
    return histogram_at(np.arange(total), num_users, num_values)


def datasets(num_users: int, num_values: int) -> NDArray[np.int64]:
    """Return all k^n datasets of n users over k values, in order.

    Parameters
    ----------
    num_users, num_values : int
        n >= 1 and k >= 2.

    Returns
    -------
    numpy.ndarray of int64, shape (k^n, n)

    Raises
    ------
    ParameterError
        If the table had more than 2e8 entries.

    Examples
    --------
    >>> datasets(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    n, k = require_sizes(num_users, num_values)
    if n * math.log(k) > math.log(LARGEST_TABLE) or n * k**n > LARGEST_TABLE:
        raise ParameterError(
            f"there are {k}^{n} datasets of {n} users over {k} values, too many to list: work on "
            "histograms or with the closed forms"
        )
    return np.stack(np.unravel_index(np.arange(k**n), (k,) * n), axis=1).astype(np.int64)


def dataset_histograms(values: ArrayLike, num_values: int) -> NDArray[np.int64]:
    """Return the histogram of each dataset.

    Parameters
    ----------
    values : array_like of int, shape (..., n)
        Datasets, with values in {0, ..., k - 1}.
    num_values : int
        k >= 1.

    Returns
    -------
    numpy.ndarray of int64, shape (..., k)

    Raises
    ------
    ParameterError
        If a value is outside.

    Examples
    --------
    >>> dataset_histograms([[0, 1, 0], [1, 1, 1]], 2).tolist()
    [[2, 1], [0, 3]]
    """
    k = require_at_least("num_values", num_values, 1)
    table = _whole("values", values)
    if np.any((table < 0) | (table >= k)):
        raise ParameterError(f"values has an entry outside [0, {k}): number the values from zero")
    return np.stack([np.count_nonzero(table == value, axis=-1) for value in range(k)], axis=-1)


def num_datasets(histogram: ArrayLike) -> int:
    """Return the number of datasets that have this histogram, n!/(h_0! ... h_{k-1}!).

    Parameters
    ----------
    histogram : array_like of int, shape (k,)
        Counts, at least zero.

    Returns
    -------
    int
        Exact, of any size: the paper's #h(x).

    Raises
    ------
    ParameterError
        If the counts are no flat list of whole numbers >= 0.

    Examples
    --------
    >>> num_datasets([2, 1]), num_datasets([0, 4])
    (3, 1)
    """
    return math.prod(
        math.comb(total, count) for total, count in zip(*_running_totals(histogram), strict=True)
    )


def checked_histogram(name: str, histogram: ArrayLike) -> list[int]:
    """Return counts as a list of Python integers, or raise `ParameterError`."""
    counts = _whole(name, histogram)
    if counts.ndim != 1 or counts.size == 0:
        raise ParameterError(f"{name} has shape {counts.shape}: give one count for each value")
    if counts.min() < 0:
        raise ParameterError(f"{name} has the count {counts.min()}: counts are at least 0")
    return [int(count) for count in counts]


def _running_totals(histogram: ArrayLike) -> tuple[list[int], list[int]]:
    """Return how many users there are up to each value, and the counts."""
    counts = checked_histogram("histogram", histogram)
    return np.cumsum(counts).tolist(), counts


# Multiplications that take ten or twenty seconds, of doubles and of long integers; and what a user
# costs besides, however few histograms there are.
_MOST_STEPS = 10**9
_MOST_STEPS_EXACT = 5 * 10**7
_STEPS_PER_USER = 10**4


def _require_feasible(num_users: int, shape: tuple[int, int], *, exact: bool) -> None:
    """Refuse what takes too much memory or too long, with the size it would need."""
    num_inputs, num_outputs = shape
    rows = num_histograms(num_users, num_inputs)
    columns = num_histograms(num_users, num_outputs)
    require_dense_size("the channel on histograms", rows, columns, exact=exact)
    steps = 0
    limit = _MOST_STEPS_EXACT if exact else _MOST_STEPS
    for users in range(1, num_users + 1):
        cells = num_histograms(users, num_inputs) * num_histograms(users, num_outputs)
        steps += num_outputs * cells + (0 if exact else _STEPS_PER_USER)
        if steps > limit:
            raise ParameterError(
                f"the channel on histograms, {rows} x {columns}, would take above {limit:.0e} "
                "multiplications: use fewer users" + (", or floats" if exact else "")
            )


def _grow(laws: NDArray[Any], response: NDArray[Any], users: int) -> NDArray[Any]:
    """Return the laws for ``users`` users, given those for one fewer; a column for each law.

    Laws are columns, so that what is added for one report are whole rows.
    """
    num_inputs, num_outputs = response.shape
    values = histograms(users, num_inputs)
    last = np.argmax(values > 0, axis=1)  # any value that somebody has
    values[np.arange(len(values)), last] -= 1
    others = np.take(laws, histogram_ranks(values), axis=1)
    reports = histograms(users - 1, num_outputs)
    shape = (num_histograms(users, num_outputs), len(values))
    grown = np.zeros(shape, dtype=laws.dtype)
    for report in range(num_outputs):
        reports[:, report] += 1
        target = histogram_ranks(reports)
        reports[:, report] -= 1
        grown[target] += others * response[last, report]
    return grown


def count_laws(response: NDArray[Any], num_users: int) -> NDArray[Any]:
    """Return the law of the histogram of reports for each histogram of values.

    Parameters
    ----------
    response : numpy.ndarray, shape (k, m)
        The channel R of one user: float64, or object, of `fractions.Fraction`.
    num_users : int
        n >= 1.

    Returns
    -------
    numpy.ndarray, shape (num_histograms(n, k), num_histograms(n, m))
        Of the same kind; rows and columns in lexicographic order.

    Raises
    ------
    ParameterError
        If that has more than 2e8 cells (exact: 4e6) or takes more than 1e9 multiplications (exact:
        5e7); sizes are named.

    Examples
    --------
    >>> count_laws(np.array([[0.75, 0.25], [0.25, 0.75]]), 2)
    array([[0.5625, 0.375 , 0.0625],
           [0.1875, 0.625 , 0.1875],
           [0.0625, 0.375 , 0.5625]])
    """
    exact = is_exact_array(response)
    _require_feasible(num_users, response.shape, exact=exact)
    if not exact:
        return _count_laws(response, num_users)
    flat, (scale,) = scaled_rows(response.reshape(1, -1))
    integers = _count_laws(flat.reshape(response.shape), num_users)
    whole = scale**num_users
    fractions = np.empty(integers.size, dtype=np.object_)
    fractions[:] = [Fraction(entry, whole) for entry in integers.ravel().tolist()]
    return fractions.reshape(integers.shape)


def _count_laws(response: NDArray[Any], num_users: int) -> NDArray[Any]:
    laws = np.ones((1, 1), dtype=response.dtype)
    for users in range(1, num_users + 1):
        laws = _grow(laws, response, users)
    return np.ascontiguousarray(laws.T)
