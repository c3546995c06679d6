"""Channel matrices and labels as they are handed in: checked, and closed for writing."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.rationals import (
    LARGEST_EXACT_CELLS,
    SUM_TOLERANCE,
    as_numbers,
    frozen,
    is_exact_array,
)

# Doubles of a dense matrix (1.6 GB), and entries of a sparse one that are stored (2.4 GB).
LARGEST_DENSE_CELLS = 200_000_000
LARGEST_STORED_ENTRIES = 200_000_000

Labels = tuple[Hashable, ...] | None


def is_sparse_matrix(matrix: object) -> bool:
    """Whether ``matrix`` is a SciPy sparse array or matrix; does not import SciPy."""
    return hasattr(matrix, "tocsr")


def require_dense_size(what: str, num_inputs: int, num_outputs: int, *, exact: bool) -> None:
    """Refuse dense matrices beyond 2e8 doubles, or 4e6 fractions, before they are made."""
    limit = LARGEST_EXACT_CELLS if exact else LARGEST_DENSE_CELLS
    if num_inputs * num_outputs > limit:
        raise ParameterError(
            f"{what} would have {num_inputs} x {num_outputs} = {num_inputs * num_outputs} "
            f"{'exact fractions' if exact else 'cells'}, above {limit}: "
            + ("use floats, or " if exact else "")
            + "work on histograms or with the closed forms"
        )


def require_stored_size(what: str, num_entries: int) -> None:
    """Refuse sparse matrices that would store more than 2e8 entries, before they are made."""
    if num_entries > LARGEST_STORED_ENTRIES:
        raise ParameterError(
            f"{what} would store {num_entries} entries, above {LARGEST_STORED_ENTRIES}: "
            "work on histograms or with the closed forms"
        )


def checked_labels(name: str, labels: Iterable[Hashable] | None, size: int) -> Labels:
    """Return labels as a tuple of distinct names, one for each of ``size``; None stays None."""
    if labels is None:
        return None
    names = tuple(labels)
    if len(names) != size:
        raise ParameterError(f"{name} has {len(names)} labels, not {size}: give one for each")
    try:
        counts = Counter(names)
    except TypeError:
        raise ParameterError(
            f"{name} has a label that cannot be hashed: give text, numbers or tuples"
        ) from None
    if len(counts) < size:
        double = next(label for label in names if counts[label] > 1)
        raise ParameterError(f"{name} has the label {double!r} twice: give distinct labels")
    return names


def _row_name(row: int, inputs: Labels) -> str:
    """Name a row in a message, with its label where it has one."""
    return f"row {row}" if inputs is None else f"row {row} (input {inputs[row]!r})"


def _check_rows(sums: NDArray[Any], inputs: Labels) -> None:
    """Raise unless every row sums to one; ``sums`` are the sums of rows."""
    if is_exact_array(sums):
        wrong = [row for row, total in enumerate(sums) if total != 1]
        if wrong:
            total = sums[wrong[0]]
            raise ParameterError(
                f"{_row_name(wrong[0], inputs)} of the channel sums to {total}, not 1, off by "
                f"{total - 1}: divide the row by its sum"
            )
        return
    off = np.flatnonzero(~(np.abs(sums - 1.0) <= SUM_TOLERANCE))
    if len(off):
        total = float(sums[off[0]])
        raise ParameterError(
            f"{_row_name(int(off[0]), inputs)} of the channel sums to {total:.12g}, not 1, off by "
            f"{total - 1.0:.3g}, more than {SUM_TOLERANCE:g}: divide the row by its sum"
        )


def _refuse_entry(row: int, column: int, value: object, inputs: Labels) -> None:
    raise ParameterError(
        f"entry {value} of the channel, in {_row_name(row, inputs)}, column {column}, is not in "
        "[0, 1]: probabilities are non-negative"
    )


def _is_private(array: NDArray[Any]) -> bool:
    """Whether nobody can write into ``array``: neither it nor what it views is open."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return True


def _checked_dense(matrix: object, inputs: Iterable[Hashable] | None) -> tuple[Any, Labels]:
    array = as_numbers("the channel matrix", matrix, 2)
    exact = is_exact_array(array)
    require_dense_size("the channel", *array.shape, exact=exact)
    labels = checked_labels("inputs", inputs, len(array))
    least = int(array.argmin())  # the first NaN, where there is one
    row, column = divmod(least, array.shape[1])
    if not array[row, column] >= 0:
        _refuse_entry(row, column, array[row, column], labels)
    with np.errstate(over="ignore"):
        _check_rows(array.sum(axis=1), labels)
    if _is_private(array) and array.flags.c_contiguous:
        return array, labels
    return frozen(array.copy(order="C")), labels


def _checked_sparse(matrix: Any, inputs: Iterable[Hashable] | None) -> tuple[Any, Labels]:
    from scipy.sparse import csr_array

    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError(
            f"the channel matrix has shape {matrix.shape}: give rows for inputs and columns for "
            "outputs, at least one of each"
        )
    if matrix.dtype.kind not in "fiub":
        raise ParameterError(
            f"the channel matrix holds {matrix.dtype}, which are no real numbers: give floats"
        )
    require_stored_size("the channel", matrix.nnz)
    table = csr_array(matrix, dtype=np.float64, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    labels = checked_labels("inputs", inputs, table.shape[0])
    if table.nnz:
        least = int(table.data.argmin())
        if not table.data[least] >= 0.0:
            row = int(np.searchsorted(table.indptr, least, side="right")) - 1
            _refuse_entry(row, int(table.indices[least]), table.data[least], labels)
    with np.errstate(over="ignore"):
        _check_rows(table.sum(axis=1), labels)
    return frozen_sparse(table), labels


def frozen_sparse(table: Any) -> Any:
    """Return a csr_array, which nobody else may hold, after closing it for writing."""
    table.sort_indices()
    for part in (table.data, table.indices, table.indptr):
        part.setflags(write=False)
    return table


def checked_matrix(matrix: object, inputs: Iterable[Hashable] | None) -> tuple[Any, Labels]:
    """Return a channel matrix that is checked and read-only, and the labels of its rows.

    Raises `ParameterError`, which names the row or entry, by label where there is one.
    """
    if is_sparse_matrix(matrix):
        return _checked_sparse(matrix, inputs)
    return _checked_dense(matrix, inputs)
