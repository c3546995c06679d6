"""Matrices of shufflers that are not uniform: laws of permutations, and reports that walk.

Rows are the k^n datasets in lexicographic order.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.histograms import datasets
from shuffledp.leakage.channels.matrices import frozen_sparse, require_dense_size
from shuffledp.leakage.channels.rationals import frozen, is_exact_array, scaled_rows

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
