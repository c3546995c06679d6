"""Channels of whole collections: n users randomize, a shuffler hides who said what.

A dataset is the tuple of the n values, one of k for each user; channels from datasets have k^n rows
in lexicographic order, labelled with these tuples. Channels on histograms, tuples of k counts, are
far smaller. The shuffler commutes with any randomizer: proof in docs/results/leakage-channels.md.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 7, 8, 10 and 23.
"""

import math
from collections.abc import Hashable
from fractions import Fraction
from functools import reduce
from itertools import product
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channel import Channel, as_channel
from shuffledp.leakage.matrices import (
    frozen,
    is_exact_array,
    require_dense_size,
    scaled_rows,
)

Truth = float | int | Fraction

# Datasets, each with a label.
MOST_DATASETS = 2_000_000

# Rows times columns of a table of whole numbers that is made here: 1.6 GB.
LARGEST_TABLE = 200_000_000


# Multiplications that take ten or twenty seconds, of doubles and of long integers; and what a user
# costs besides, however few histograms there are.
_MOST_STEPS = 10**9
_MOST_STEPS_EXACT = 5 * 10**7
_STEPS_PER_USER = 10**4


def require_sizes(num_users: int, domain_size: int) -> tuple[int, int]:
    """Return both as integers, at least 1 and at least 2, or raise `ParameterError`."""
    return require_at_least("num_users", num_users, 1), require_at_least(
        "domain_size", domain_size, 2
    )


def num_histograms(num_users: int, domain_size: int) -> int:
    """Return C(n + k - 1, k - 1), the number of histograms of n users over k values."""
    return math.comb(num_users + domain_size - 1, domain_size - 1)


def histograms(num_users: int, domain_size: int) -> NDArray[np.int64]:
    """Return all histograms of n >= 0 users, shape (number, k), from (0, ..., n) to (n, 0, ...)."""
    total = num_histograms(num_users, domain_size)
    if total * domain_size > LARGEST_TABLE:
        raise ParameterError(
            f"there are {total:.6g} histograms of {num_users} users over {domain_size} values, too "
            "many to list: use fewer users or values, or the closed forms"
        )
    return _histograms(num_users, domain_size)


def _histograms(num_users: int, domain_size: int) -> NDArray[np.int64]:
    counts = np.arange(num_users + 1)
    if domain_size == 1:
        return counts[-1:, None]
    if domain_size == 2:
        return np.stack([counts, num_users - counts], axis=1)
    tables = [_histograms(num_users - first, domain_size - 1) for first in counts.tolist()]
    firsts = np.repeat(counts, [len(table) for table in tables])
    return np.column_stack([firsts, np.concatenate(tables)])


def histogram_ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each histogram, shape (..., k), among all of as many users, in order."""
    size = counts.shape[-1]
    remaining = counts.sum(axis=-1)
    # Row s, column r: C(s + r, r).
    ways = np.ones((int(remaining.max()) + 1, size), dtype=np.int64)
    for parts in range(1, size):
        np.cumsum(ways[:, parts - 1], out=ways[:, parts])
    ranks = np.zeros(remaining.shape, dtype=np.int64)
    for place in range(size - 1):
        after = remaining - counts[..., place]
        ranks += ways[remaining, size - 1 - place] - ways[after, size - 1 - place]
        remaining = after
    return ranks


def datasets(num_users: int, domain_size: int) -> NDArray[np.int64]:
    """Return all k^n datasets, shape (k^n, n), from (0, ..., 0) on, or refuse."""
    values = np.arange(_num_datasets_in_all(num_users, domain_size))
    return np.stack(np.unravel_index(values, (domain_size,) * num_users), axis=1).astype(np.int64)


def dataset_histograms(values: NDArray[np.int64], domain_size: int) -> NDArray[np.int64]:
    """Return the histogram of each dataset, shape (..., k) for shape (..., n)."""
    return np.stack([np.count_nonzero(values == x, axis=-1) for x in range(domain_size)], axis=-1)


def num_datasets(histogram: NDArray[np.int64]) -> int:
    """Return the number of datasets that have this histogram: the paper's #h(x), exactly."""
    counts = histogram.tolist()
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


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
    """Return the laws for ``users`` users, given those for one fewer; a column for each law."""
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
    """Return the law of the histogram of reports for each histogram of values."""
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


def checked_truth(truth: Truth, domain_size: int) -> float | Fraction:
    """Return the probability of a true report, exact where it is an integer or a fraction.

    Of doubles, those within rounding of 1/k count as 1/k; below that results for randomized
    response fail.
    """
    k = require_at_least("domain_size", domain_size, 2)
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
        least = (1.0 - 4.0 * math.ulp(1.0)) / k
    if not 0 <= number <= 1:
        raise ParameterError(f"truth = {truth} is not in [1/k, 1]: it is a probability; try 0.75")
    if number < least:
        raise OutOfRegimeError(
            f"truth = {truth} is below 1/domain_size = {1.0 / k:.6g}: randomized response is taken "
            "to report the true value at least as often as any other (p >= 1/k); relabel the "
            "reports, or give the channel"
        )
    return number


def response_channel(domain_size: int, truth: Truth) -> Channel:
    """Return k-ary randomized response of one user: truth on the diagonal, else (1 - p)/(k - 1)."""
    probability = checked_truth(truth, domain_size)
    exact = isinstance(probability, Fraction)
    require_dense_size("the response channel", domain_size, domain_size, exact=exact)
    other = (1 - probability) / (domain_size - 1)
    matrix = np.full((domain_size, domain_size), other)  # object where it is a Fraction
    np.fill_diagonal(matrix, probability)
    labels = tuple(range(domain_size))
    return Channel(frozen(matrix), inputs=labels, outputs=labels)


def _num_datasets_in_all(num_users: int, domain_size: int) -> int:
    """Return k^n, or refuse beyond 2e6 rows without computing it, and beyond 20 users."""
    if num_users * math.log(max(domain_size, 2)) > math.log(MOST_DATASETS) + 1e-9:
        raise ParameterError(
            f"a channel from datasets of {num_users} users over {domain_size} values would have "
            f"{domain_size}^{num_users} rows, labelled with {num_users} values each, above "
            f"{MOST_DATASETS} rows or 20 users: work on histograms or with the closed forms"
        )
    return int(domain_size**num_users)


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
        indices). Exact where R is.

    Raises
    ------
    ParameterError
        If there are more than 2e6 datasets or 2e8 cells (exact: 4e6).

    Examples
    --------
    >>> product_channel(2, [[0.5, 0.5], [0.0, 1.0]]).matrix[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    one = as_channel(channel)
    n = require_at_least("num_users", num_users, 1)
    k, m = (_num_datasets_in_all(n, size) for size in one.matrix.shape)
    require_dense_size("the channel from datasets", k, m, exact=one.is_exact)
    matrix = frozen(reduce(np.kron, [one.matrix] * n))
    inputs = tuple(product(_labels(one.inputs, one.num_inputs), repeat=n))
    outputs = tuple(product(_labels(one.outputs, one.num_outputs), repeat=n))
    return Channel.from_trusted(matrix, inputs=inputs, outputs=outputs)


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
    n, k = require_sizes(num_users, domain_size)
    _num_datasets_in_all(n, k)
    return product_channel(n, response_channel(k, truth))


def shuffle_channel(num_users: int, domain_size: int, *, exact: bool = False) -> Channel:
    """Return S: the values in an order drawn uniformly (Definition 7).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.
    exact : bool, optional
        Return fractions.

    Returns
    -------
    Channel
        k^n datasets to k^n datasets.

    Raises
    ------
    ParameterError
        If there are more than 2e8 cells (exact: 4e6).

    Examples
    --------
    >>> shuffle_channel(2, 2).to_dense()
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """
    n, k = require_sizes(num_users, domain_size)
    total = _num_datasets_in_all(n, k)
    require_dense_size("the channel from datasets", total, total, exact=exact)
    table = datasets(n, k)
    labels = _rows(table)
    ranks = histogram_ranks(dataset_histograms(table, k))
    matrix = np.full((total, total), Fraction(0) if exact else 0.0)
    for rank, histogram in enumerate(histograms(n, k)):
        members = np.flatnonzero(ranks == rank)
        size = num_datasets(histogram)
        matrix[np.ix_(members, members)] = Fraction(1, size) if exact else 1.0 / size
    return Channel.from_trusted(frozen(matrix), inputs=labels, outputs=labels)


def reduced_shuffle_channel(num_users: int, domain_size: int, *, exact: bool = False) -> Channel:
    """Return S^r: the histogram of the dataset, and nothing else (Definition 8).

    Equivalent to `shuffle_channel`: there, columns of one histogram are equal (Prop. 9).

    Parameters
    ----------
    num_users, domain_size : int
        n >= 1 and k >= 2.
    exact : bool, optional
        Return fractions.

    Returns
    -------
    Channel
        k^n datasets to histograms.

    Raises
    ------
    ParameterError
        If there are more than 2e6 datasets or 2e8 cells (exact: 4e6).

    Examples
    --------
    >>> channel = reduced_shuffle_channel(2, 2)
    >>> channel.outputs
    ((0, 2), (1, 1), (2, 0))
    >>> channel.to_dense()[1]
    array([0., 1., 0.])
    """
    n, k = require_sizes(num_users, domain_size)
    total = _num_datasets_in_all(n, k)
    columns = histograms(n, k)
    require_dense_size("the channel to histograms", total, len(columns), exact=exact)
    table = datasets(n, k)
    matrix = np.full((total, len(columns)), Fraction(0) if exact else 0.0)
    matrix[np.arange(total), histogram_ranks(dataset_histograms(table, k))] = (
        Fraction(1) if exact else 1.0
    )
    return Channel.from_trusted(frozen(matrix), inputs=_rows(table), outputs=_rows(columns))


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
    n, k = require_sizes(num_users, domain_size)
    return reduced_product_channel(n, response_channel(k, truth))
