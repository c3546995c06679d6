"""Products of channel matrices: cascades, and two channels that look at the same secret."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.leakage.channels.matrices import (
    frozen_sparse,
    is_sparse_matrix,
    require_dense_size,
    require_stored_size,
)
from shuffledp.leakage.channels.rationals import (
    frozen,
    is_exact_array,
    scaled_rows,
    to_floats,
)


def _floats(matrix: Any) -> Any:
    """Return fractions as doubles, and everything else as it is."""
    return to_floats(matrix) if is_exact_array(matrix) else matrix


def exact_product(first: NDArray[np.object_], second: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the matrix product of fractions, computed with integers over common denominators."""
    left, row_scales = scaled_rows(first)
    right, column_scales = scaled_rows(second.T)
    product = left @ right.T
    table = np.empty(product.shape, dtype=np.object_)
    for row, scale in enumerate(row_scales):
        table[row] = [
            Fraction(entry, scale * other)
            for entry, other in zip(product[row], column_scales, strict=True)
        ]
    return table


def cascade_matrix(first: Any, second: Any) -> Any:
    """Return the product of two channel matrices whose shapes fit, read-only.

    Exact where both are, sparse where both are, else dense.
    """
    exact = is_exact_array(first) and is_exact_array(second)
    if is_sparse_matrix(first) and is_sparse_matrix(second):
        # Each stored entry (x, y) of the first meets all of row y of the second.
        require_stored_size(
            "the steps of the cascade", int(np.diff(second.indptr)[first.indices].sum())
        )
        return frozen_sparse(first @ second)
    require_dense_size("the cascade", first.shape[0], second.shape[1], exact=exact)
    if exact:
        return frozen(exact_product(first, second))
    product = _floats(first) @ _floats(second)
    return frozen(np.ascontiguousarray(product, dtype=np.float64))


def _parallel_sparse(first: Any, second: Any) -> Any:
    """Return all products of an entry of a row with one of the same row of the other matrix."""
    from scipy.sparse import csr_array

    mine, yours = np.diff(first.indptr), np.diff(second.indptr)
    per_row = mine.astype(np.int64) * yours
    total = int(per_row.sum())
    require_stored_size("the parallel composition", total)
    starts = np.concatenate(([0], np.cumsum(per_row)))
    rows = np.repeat(np.arange(len(per_row)), per_row)
    within = np.arange(total) - starts[rows]
    left = first.indptr[rows] + within // yours[rows]
    right = second.indptr[rows] + within % yours[rows]
    columns = first.indices[left].astype(np.int64) * second.shape[1] + second.indices[right]
    shape = (first.shape[0], first.shape[1] * second.shape[1])
    return csr_array((first.data[left] * second.data[right], columns, starts), shape=shape)


def parallel_matrix(first: Any, second: Any) -> Any:
    """Return entry (x, (y, z)) = first (x, y) times second (x, z), read-only, for equal inputs.

    Exact where both are, sparse where both are, else dense.
    """
    if is_sparse_matrix(first) and is_sparse_matrix(second):
        return frozen_sparse(_parallel_sparse(first, second))
    exact = is_exact_array(first) and is_exact_array(second)
    num_outputs = first.shape[1] * second.shape[1]
    require_dense_size("the parallel composition", first.shape[0], num_outputs, exact=exact)
    left, right = (
        matrix.toarray() if is_sparse_matrix(matrix) else matrix if exact else _floats(matrix)
        for matrix in (first, second)
    )
    product = left[:, :, np.newaxis] * right[:, np.newaxis, :]
    return frozen(product.reshape(len(left), num_outputs))
