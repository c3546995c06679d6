"""Majority vote: guess a person's answer from the released answers of those most like that person.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, section 5. The adversary knows everybody's public value, whose place each row of
the release is, and perhaps further, privileged data. Where answers go with these data, the noise
that a local randomizer adds to each report averages out over the neighbours.
"""

import math
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.attacks.rows import require_codes_below, require_neighbourhoods

# The share is given in floating point: 0.9 of 50 resamplings are 45, not 45.000000000000001.
_SLACK = 1e-9


def choose_neighbours(
    starts: NDArray[np.integer[Any]],
    members: NDArray[np.integer[Any]],
    group_of: NDArray[np.integer[Any]],
    *,
    num_neighbours: SupportsIndex = 25,
    privileged: NDArray[Any] | None = None,
    is_category: NDArray[np.bool_] | None = None,
    include_own: bool = True,
    entropy: Entropy,
) -> NDArray[np.int32]:
    """Return the rows that the adversary reads about each person.

    Parameters
    ----------
    starts : ndarray of integers, shape (g + 1,)
        Neighbourhood a, everybody within the attack's radius of some public value, is
        ``members[starts[a]:starts[a + 1]]``.
    members : ndarray of integers, shape (m,)
        Sorted and distinct within each neighbourhood.
    group_of : ndarray of integers, shape (n,)
        Each person's neighbourhood.
    num_neighbours : int
        How many rows are read about a person, >= 1.
    privileged : ndarray, shape (n,) or (n, p), optional
        Further data about people. The most similar are those with the smallest sum, over the
        columns, of absolute differences: scale the columns before. Without it members are chosen
        at random.
    is_category : ndarray of bool, shape (p,), optional
        Columns whose numbers are codes: two that differ are one apart.
    include_own : bool
        Whether the person's own row is one of those that are read; nobody is more similar.
    entropy : Entropy
        Decides between those who are equally similar.

    Returns
    -------
    ndarray of int32, shape (n, num_neighbours)
        Rows of people, in no order that matters. Where a neighbourhood is too small, -1 fills
        the end.

    Raises
    ------
    ParameterError
        If shapes do not fit together, or ``num_neighbours`` is below 1.
    DataError
        If privileged data are not finite.

    Notes
    -----
    Source: this module's docstring. Gower, "A general coefficient of similarity and some of its
    properties", Biometrics 27, 1971, for columns of both kinds. Cost: one look at each pair of
    a person and a neighbour, 13 to 17 ns each; without privileged data half a microsecond a person.

    Examples
    --------
    >>> rows = choose_neighbours(
    ...     np.array([0, 3]), np.arange(3), np.zeros(3, int), num_neighbours=2,
    ...     privileged=np.array([1.0, 5.0, 2.0]), entropy=Entropy.from_seed(0),
    ... )
    >>> rows.tolist()
    [[0, 2], [1, 2], [2, 0]]
    """
    from shuffledp.groups.attacks import majority_vote_kernels as kernels

    size = require_at_least("num_neighbours", num_neighbours, 1)
    rows = require_neighbourhoods(starts, members, group_of)
    num_people = rows.group_of.size
    words = entropy.words(num_people)
    chosen = np.full((num_people, size), -1, dtype=np.int32)
    if privileged is None:
        kernels.choose_at_random(
            rows.starts, rows.members, rows.group_of, include_own, words, chosen
        )
        return chosen
    traits, categories = _traits(privileged, is_category, num_people)
    kernels.choose_most_similar(
        rows.starts, rows.members, rows.group_of, traits, categories, include_own, words, chosen
    )
    return chosen


def majority_guesses(
    released: NDArray[np.integer[Any]],
    neighbours: NDArray[np.int32],
    *,
    num_values: SupportsIndex,
    entropy: Entropy,
) -> NDArray[np.int32]:
    """Return the most frequent value in the rows that are read about each person.

    Parameters
    ----------
    released : ndarray of integers, shape (n,)
        The release: row i lies in person i's place. Values in [0, num_values).
    neighbours : ndarray of int32, shape (n, K)
        See `choose_neighbours`.
    num_values : int
        Number of possible values, >= 1.
    entropy : Entropy
        Decides between values that are equally frequent, all being equally likely.

    Returns
    -------
    ndarray of int32, shape (n,)
        -1 where nothing could be read.

    Raises
    ------
    ParameterError
        If shapes do not fit together or a value is out of range.

    Notes
    -----
    Source: this module's docstring. The most frequent report is also the likeliest answer under
    k-ary randomized response, whatever its epsilon0 > 0. Cost: 2 to 3 ns a row that is read.

    Examples
    --------
    >>> neighbours = np.array([[0, 1, 2], [1, -1, -1]], dtype=np.int32)
    >>> majority_guesses(
    ...     np.array([0, 1, 1]), neighbours, num_values=2, entropy=Entropy.from_seed(0)
    ... ).tolist()
    [1, 1]
    """
    from shuffledp.groups.attacks import majority_vote_kernels as kernels

    count = require_at_least("num_values", num_values, 1)
    codes = require_codes_below("released", released, count)
    table = _neighbour_table(neighbours, codes.size)
    guesses = np.empty(table.shape[0], dtype=np.int32)
    kernels.vote(codes, table, count, entropy.words(1)[0], guesses)
    return guesses


def is_vulnerable(
    num_right: NDArray[np.integer[Any]],
    *,
    num_resamplings: SupportsIndex,
    success: SupportsFloat = 0.9,
) -> NDArray[np.bool_]:
    """Return whose value is guessed in at least that share of the resamplings.

    Parameters
    ----------
    num_right : ndarray of integers, shape (n,)
        In how many resamplings of the local reports each person's value was guessed.
    num_resamplings : int
        How many there were, >= 1.
    success : float
        The share that makes somebody vulnerable, in (0, 1].

    Returns
    -------
    ndarray of bool, shape (n,)
        Its mean is the share rho of vulnerable people.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Notes
    -----
    Source: this module's docstring. Somebody with the commonest answer can be vulnerable without
    any leak: where 95 % give one answer, guessing it is right about 95 %. Compare with the uniform
    shuffle, which tells nothing else.

    Examples
    --------
    >>> is_vulnerable(np.array([44, 45, 50]), num_resamplings=50).tolist()
    [False, True, True]
    """
    trials = require_at_least("num_resamplings", num_resamplings, 1)
    share = 1.0 if success == 1.0 else require_open_unit("success", success)
    needed = math.ceil(share * trials - _SLACK)
    vulnerable: NDArray[np.bool_] = np.asarray(num_right) >= needed
    return vulnerable


def _traits(
    privileged: NDArray[Any], is_category: NDArray[np.bool_] | None, num_people: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return privileged data as a table of finite numbers, and which columns are categories."""
    table = np.array(privileged, dtype=np.float64, ndmin=1, order="C")
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[0] != num_people:
        raise ParameterError(
            f"privileged has shape {table.shape}: give one row for each of the {num_people} people"
        )
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise DataError(
            f"privileged data of row {row} are not finite numbers: fill or drop them first"
        )
    num_columns = table.shape[1]
    if is_category is None:
        return table, np.zeros(num_columns, dtype=np.bool_)
    categories = np.array(is_category, dtype=np.bool_)
    if categories.shape != (num_columns,):
        raise ParameterError(
            f"is_category has shape {categories.shape}: give one value for each of the "
            f"{num_columns} columns of privileged"
        )
    return table, categories


def _neighbour_table(neighbours: NDArray[np.int32], num_rows: int) -> NDArray[np.int32]:
    """Return the rows to read, once checked: the loop trusts them."""
    table = np.array(neighbours, dtype=np.int32, order="C")
    if table.ndim != 2:
        raise ParameterError(
            f"neighbours has {table.ndim} axes: give the table that choose_neighbours returns"
        )
    if table.size and (int(table.min()) < -1 or int(table.max()) >= num_rows):
        raise ParameterError(
            f"neighbours names rows outside [0, {num_rows}): the release has {num_rows} rows"
        )
    return table
