"""Channel matrices, labels and laws as they are handed in: checked, and closed for writing.

Numbers are doubles, or fractions where every entry is rational. Proportional columns of a channel
tell the adversary the same, and can be merged.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError

# A Fraction takes some 100 bytes: an array of this size about half a gigabyte.
LARGEST_EXACT_CELLS = 4_000_000

# How far a sum of doubles may be from one. A law that is off by t changes what is computed from it,
# where gains are non-negative, by a factor within 1 - t and 1 + t.
SUM_TOLERANCE = 1e-9


def is_exact_array(values: object) -> bool:
    """Whether ``values`` is an array of fractions, as `as_numbers` makes them."""
    return isinstance(values, np.ndarray) and values.dtype == np.object_


def _fraction(value: Rational) -> Fraction:
    """Return ``value`` with Python's own integers: NumPy's would overflow without a word."""
    if type(value) is Fraction:
        return value
    return Fraction(int(value.numerator), int(value.denominator))


def _from_objects(name: str, array: NDArray[np.object_]) -> NDArray[Any]:
    """Return fractions if all entries are rational, else doubles."""
    entries = array.ravel().tolist()
    if all(isinstance(entry, Rational) for entry in entries):
        exact = np.empty(len(entries), dtype=np.object_)
        exact[:] = [_fraction(entry) for entry in entries]
        return exact.reshape(array.shape)
    if any(isinstance(entry, (str, bytes, complex)) for entry in entries):
        raise ParameterError(f"{name} has an entry that is not a number: give real numbers")
    try:
        return np.array([float(entry) for entry in entries]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} has an entry that is not a number: give real numbers in rows of one length"
        ) from None


def as_numbers(name: str, values: object, num_dimensions: int) -> NDArray[Any]:
    """Return ``values`` as an array of doubles, or of fractions where all entries are rational."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(f"{name} has rows of different lengths: give a full table") from None
    if array.ndim != num_dimensions:
        raise ParameterError(
            f"{name} has {array.ndim} dimensions, not {num_dimensions}: give "
            + ("a flat list of numbers" if num_dimensions == 1 else "a list of rows")
        )
    if array.size == 0:
        raise ParameterError(f"{name} is empty, of shape {array.shape}: give at least one number")
    if array.dtype.kind == "f":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind not in "biuO":
        raise ParameterError(
            f"{name} holds {array.dtype}, which are no real numbers: give floats or fractions"
        )
    if array.size > LARGEST_EXACT_CELLS:
        raise ParameterError(
            f"{name} would hold {array.size} exact fractions, above {LARGEST_EXACT_CELLS}: "
            "give float64"
        )
    return _from_objects(name, array.astype(np.object_))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return ``array``, which nobody else may hold, after closing it for writing."""
    array.setflags(write=False)
    return array


def to_floats(exact: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return fractions, each rounded once to the nearest double."""
    flat = np.array([float(entry) for entry in exact.ravel().tolist()], dtype=np.float64)
    return flat.reshape(exact.shape)


def scaled_rows(exact: NDArray[np.object_]) -> tuple[NDArray[np.object_], list[int]]:
    """Return integers and one scale per row: row i of ``exact`` is row i of these over its scale.

    Integer arithmetic is several times faster than that of fractions, which reduce every step.
    """
    rows, scales = [], []
    for row in exact.tolist():
        scale = math.lcm(*(entry.denominator for entry in row))
        rows.append([entry.numerator * (scale // entry.denominator) for entry in row])
        scales.append(scale)
    integers = np.empty(exact.shape, dtype=np.object_)
    integers[...] = rows
    return integers, scales


# Doubles of a matrix: 1.6 GB.
LARGEST_DENSE_CELLS = 200_000_000

Labels = tuple[Hashable, ...] | None


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


def checked_matrix(matrix: Any, inputs: Iterable[Hashable] | None) -> tuple[Any, Labels]:
    """Return a channel matrix that is checked and read-only, and the labels of its rows.

    Raises `ParameterError`, which names the row or entry, by label where there is one.
    """
    if hasattr(matrix, "toarray"):  # one of SciPy's sparse ones
        require_dense_size("the channel", math.prod(matrix.shape), 1, exact=False)
        matrix = matrix.toarray()
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
        first, second = (block / block.sum(axis=0) for block in pair)
        apart = np.abs(first - second) > tolerance * np.minimum(first, second)
        same[part] = ~apart.any(axis=0)
    return same


def _float_groups(matrix: Any, tolerance: float) -> NDArray[np.int64]:
    """Return for each column the first one of its group; -1 for columns of zeros."""
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
    merged = np.empty((len(matrix), len(starts)), dtype=matrix.dtype)
    height = max(1, _BLOCK_CELLS // matrix.shape[1])
    for top in range(0, len(matrix), height):
        rows = slice(top, top + height)
        np.add.reduceat(matrix[rows, order], starts, axis=1, out=merged[rows])
    return merged


def merged_columns(matrix: Any, tolerance: float) -> tuple[Any, list[int]] | None:
    """Return the matrix with proportional columns added, and the first column of each group."""
    exact = is_exact_array(matrix)
    groups = _exact_groups(matrix) if exact else _float_groups(matrix, tolerance)
    if np.array_equal(groups, np.arange(len(groups))):
        return None
    order = np.argsort(groups, kind="stable")
    order = order[np.count_nonzero(groups < 0) :]
    first_columns, starts = np.unique(groups[order], return_index=True)
    return frozen(_add_columns(matrix, order, starts)), first_columns.tolist()


def uniform_prior(size: int, *, exact: bool = False) -> NDArray[Any]:
    """Return the uniform law on ``size`` secrets."""
    number = require_at_least("size", size, 1)
    if exact:
        return frozen(np.array([Fraction(1, number)] * number, dtype=np.object_))
    return frozen(np.full(number, 1.0 / number))


def is_exact_prior(prior: ArrayLike | None) -> bool:
    """Whether ``prior`` holds fractions and integers only; None, the uniform law, does."""
    return prior is None or is_exact_array(as_numbers("prior", prior, 1))


def check_law(name: str, law: NDArray[Any]) -> None:
    """Raise unless entries are non-negative and sum to one."""
    least = int(law.argmin())  # the first NaN, where there is one
    if not law[least] >= 0:
        raise ParameterError(
            f"{name}[{least}] = {law[least]} is not in [0, 1]: probabilities are non-negative"
        )
    with np.errstate(over="ignore"):
        total = law.sum()
    if is_exact_array(law):
        if total != 1:
            raise ParameterError(
                f"{name} sums to {total}, not 1, off by {total - 1}: divide it by its sum"
            )
    elif not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ParameterError(
            f"{name} sums to {total:.12g}, not 1, off by {total - 1.0:.3g}, more than "
            f"{SUM_TOLERANCE:g}: divide it by its sum"
        )


def checked_prior(prior: ArrayLike | None, num_inputs: int, *, exact: bool = False) -> NDArray[Any]:
    """Return ``prior``, or the uniform law for None, as a read-only law over the secrets, or raise.

    Doubles must sum to one within 1e-9 and are not rescaled; with ``exact``, fractions are returned
    and doubles refused: their binary values rarely sum to one.
    """
    size = require_at_least("num_inputs", num_inputs, 1)
    if prior is None:
        return uniform_prior(size, exact=exact)
    law = as_numbers("prior", prior, 1)
    if len(law) != size:
        raise ParameterError(
            f"prior has {len(law)} entries, not {size}: give one probability for each input"
        )
    check_law("prior", law)
    if is_exact_array(law):
        return frozen(law.copy() if exact else to_floats(law))
    if exact:
        raise ParameterError(
            "prior holds floats where exact fractions are needed: give Fractions, or make the "
            "channel a float one with to_float()"
        )
    return frozen(law.copy())
