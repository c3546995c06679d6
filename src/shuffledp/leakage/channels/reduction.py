"""Merging proportional columns of a channel matrix: they tell the adversary the same."""

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.leakage.channels.matrices import frozen_sparse, is_sparse_matrix
from shuffledp.leakage.channels.rationals import frozen, is_exact_array, scaled_rows

#: Relative error up to which columns of doubles count as proportional.
REDUCTION_TOLERANCE = 1e-12

# Cells of a temporary, so that a large matrix is not doubled.
_BLOCK_CELLS = 1 << 20

# Columns are told apart by one weighted sum each before they are compared. The weights decide
# nothing but the speed, so any will do that have no arithmetic relation to the entries.
_WEIGHT_SEED = 20230710


def _exact_groups(matrix: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return for each column the first one proportional to it; -1 for columns of zeros."""
    columns, _ = scaled_rows(matrix.T)
    first: dict[Hashable, int] = {}
    groups = np.full(len(columns), -1, dtype=np.int64)
    for index, column in enumerate(columns.tolist()):
        divisor = math.gcd(*column)
        if divisor:
            direction = tuple(entry // divisor for entry in column)
            groups[index] = first.setdefault(direction, index)
    return groups


def _agree(
    matrix: Any, left: NDArray[np.int64], right: NDArray[np.int64], tolerance: float
) -> NDArray[np.bool_]:
    """Say for each pair of columns, divided by their sums, whether entries agree."""
    same = np.empty(len(left), dtype=np.bool_)
    width = max(1, _BLOCK_CELLS // matrix.shape[0])
    for start in range(0, len(left), width):
        part = slice(start, start + width)
        pair = [matrix[:, columns[part]] for columns in (left, right)]
        first, second = (block.toarray() if is_sparse_matrix(block) else block for block in pair)
        first = first / first.sum(axis=0)
        second = second / second.sum(axis=0)
        apart = np.abs(first - second) > tolerance * np.minimum(first, second)
        same[part] = ~apart.any(axis=0)
    return same


def _float_groups(matrix: Any, tolerance: float) -> NDArray[np.int64]:
    """Return for each column the first one of its group; -1 for columns of zeros.

    Columns that agree to the tolerance have weighted sums that do, up to rounding. So columns are
    sorted by these, and cut where neighbours differ by more. In each run all are compared with the
    first; those that differ from it, which takes a coincidence, form the runs of the next round.
    """
    num_inputs, num_outputs = matrix.shape
    weights = 1.0 + Entropy.from_seed(_WEIGHT_SEED).generator().random(num_inputs)
    sums = np.asarray(np.ones(num_inputs) @ matrix)
    positive = np.flatnonzero(sums > 0.0)
    keys = np.asarray(weights @ matrix)[positive] / sums[positive]
    rounding = 8.0 * math.ulp(1.0) * num_inputs
    order = np.argsort(keys, kind="stable")
    pending, keys = positive[order], keys[order]
    groups = np.full(num_outputs, -1, dtype=np.int64)
    while len(pending):
        is_start = np.concatenate(([True], np.diff(keys) > (tolerance + rounding) * keys[1:]))
        leaders = pending[np.flatnonzero(is_start)[np.cumsum(is_start) - 1]]
        same = leaders == pending
        others = np.flatnonzero(~same)
        same[others] = _agree(matrix, leaders[others], pending[others], tolerance)
        groups[pending[same]] = leaders[same]
        pending, keys = pending[~same], keys[~same]
    return _first_of_each(groups)


def _first_of_each(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rename each group after its first column."""
    first = np.full(len(groups), len(groups), dtype=np.int64)
    members = np.flatnonzero(groups >= 0)
    np.minimum.at(first, groups[members], members)
    return np.where(groups >= 0, first[groups], -1)


def _add_columns(matrix: Any, order: NDArray[np.int64], starts: NDArray[np.int64]) -> Any:
    """Return sums of columns: those of ``order`` from each of ``starts`` up to the next."""
    if is_sparse_matrix(matrix):
        from scipy.sparse import csr_array

        sizes = np.diff(np.append(starts, len(order)))
        target = np.repeat(np.arange(len(starts)), sizes)
        shape = (matrix.shape[1], len(starts))
        return matrix @ csr_array((np.ones(len(order)), (order, target)), shape=shape)
    merged = np.empty((len(matrix), len(starts)), dtype=matrix.dtype)
    height = max(1, _BLOCK_CELLS // matrix.shape[1])
    for top in range(0, len(matrix), height):
        rows = slice(top, top + height)
        np.add.reduceat(matrix[rows, order], starts, axis=1, out=merged[rows])
    return merged


def merged_columns(matrix: Any, tolerance: float) -> tuple[Any, list[int]] | None:
    """Return the matrix with proportional columns added, and the first column of each group.

    Zero columns go. None if there is nothing to merge and nothing to drop.
    """
    exact = is_exact_array(matrix)
    # Columns of a sparse matrix are taken out one by one, so it is turned by columns.
    table = matrix.tocsc() if is_sparse_matrix(matrix) else matrix
    groups = _exact_groups(matrix) if exact else _float_groups(table, tolerance)
    if np.array_equal(groups, np.arange(len(groups))):
        return None
    order = np.argsort(groups, kind="stable")
    order = order[np.count_nonzero(groups < 0) :]
    first_columns, starts = np.unique(groups[order], return_index=True)
    merged = _add_columns(matrix, order, starts)
    closed = frozen_sparse(merged) if is_sparse_matrix(merged) else frozen(merged)
    return closed, first_columns.tolist()
