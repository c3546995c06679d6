"""Numbers and vectors of all users as a stream, and the limits within which they lie.

Limits are stated beforehand: limits that were read from the data would depend on the users that
they are to protect.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    MISSING_TEXTS,
    Column,
    Source,
    changed,
    counted,
    dropped_caution,
    no_answers,
    open_source,
    reading,
    require_missing,
    require_users,
    rows_text,
    source_of_values,
)
from shuffledp.core.checks import require_positive
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.randomizers.number_randomizer import Span

if TYPE_CHECKING:
    import polars as pl

_LARGEST = np.finfo(np.float64).max


class Limits(Protocol):
    """Where the values of users may lie."""

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        ...

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row moved to the nearest one inside."""
        ...


@dataclass(frozen=True, slots=True)
class Range(Span):
    """Numbers between two limits, low < high; both belong to the range."""

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        is_inside = (values >= self.low) & (values <= self.high)
        return np.logical_not(is_inside.all(axis=1))

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each value moved to the nearest one inside."""
        return np.clip(values, self.low, self.high)

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class Ball:
    """Vectors up to a Euclidean norm.

    Parameters
    ----------
    norm_bound : float
        Finite and positive.

    Raises
    ------
    ParameterError
        If it is not.
    """

    norm_bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm_bound", require_positive("norm_bound", self.norm_bound))

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        largest, _, lengths = _norms(values)
        return np.logical_not(largest <= self.norm_bound * (1.0 + 1e-12) / lengths)

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row shortened to the bound where it is longer.

        An infinite coordinate counts as the largest float.
        """
        finite = np.clip(values, -_LARGEST, _LARGEST)
        largest, directions, lengths = _norms(finite)
        is_long = largest > self.norm_bound / lengths
        return np.where(is_long[:, None], directions * (self.norm_bound / lengths)[:, None], finite)

    def __str__(self) -> str:
        return f"the ball of norm {self.norm_bound:g}"


def _norms(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest coordinate of each row, the row divided by it, and the norm of that.

    The norm of a row is the product of the first and the last; taken apart so that no square
    overflows or vanishes. A row of zeros counts as of length 1, divided by 1.
    """
    largest = np.max(np.abs(values), axis=1, initial=0.0)
    is_usable = (largest > 0.0) & (largest < math.inf)  # dividing infinity by itself gives NaN
    directions = values / np.where(is_usable, largest, 1.0)[:, None]
    directions[~is_usable] = 0.0
    lengths = np.sqrt((directions * directions).sum(axis=1))
    return largest, directions, np.where(lengths > 0.0, lengths, 1.0)


def open_numbers(
    path: str | PathLike[str],
    columns: str | Sequence[str],
    *,
    limits: Limits,
    clip: bool = False,
    missing: str = "error",
    csv_separator: str | None = None,
    header: bool = True,
    on_progress: Progress | None = None,
) -> Column:
    """Open columns of numbers of a file in which each row is one user, and check every value.

    Parameters
    ----------
    path : str or path-like
        As for `open_table`. Where semicolons stand between the fields of a text table, 12,5 is
        12.5, unless a column also has numbers with a point.
    columns : str or sequence of str
        One name for numbers; several, in order, for vectors.
    limits : Range or Ball
        Where values may lie; to be known without looking at the data.
    clip : bool
        Move values outside to the nearest one inside, instead of refusing them.
    missing : {"error", "drop"}
        What to do with rows in which a number is missing.
    csv_separator, header, on_progress
        As for `open_table`.

    Returns
    -------
    Column
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or a column cannot be used, a value is no number or missing, or there are
        fewer than two users.
    DomainError
        If a value lies outside the limits; the message counts them and names the first.
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    return _survey_numbers(
        open_source(path, *names, csv_separator=csv_separator, header=header),
        is_vector=not isinstance(columns, str),
        limits=limits,
        clip=clip,
        missing=missing,
        report=on_progress or no_progress,
    )


def numbers_from_values(
    values: Any,
    *,
    names: Sequence[str],
    limits: Limits,
    clip: bool = False,
    missing: str = "error",
    is_vector: bool = False,
) -> Column:
    """Check numbers in memory, one row a user: shape (n,), or (n, d) for vectors."""
    import polars as pl

    if not is_vector:
        source = source_of_values(names[0], values)
        return _survey_numbers(source, is_vector=False, limits=limits, clip=clip, missing=missing)
    array = rows_of_numbers(values, names)
    frame = pl.DataFrame({name: array[:, i] for i, name in enumerate(names)}).lazy()
    source = Source(frame=frame, names=tuple(names), origin="values")
    return _survey_numbers(source, is_vector=True, limits=limits, clip=clip, missing=missing)


def rows_of_numbers(values: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """Return vectors that are in memory as an array, one row a user."""
    try:
        given = np.asarray(values)
        array = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"values are not all numbers ({error}): convert them first") from None
    if given.dtype == np.bool_:
        raise DataError("values are booleans, which are no numbers: give 0 and 1")
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DataError(
            f"values have shape {array.shape}: give one row of {len(names)} numbers a user"
        )
    return array


def _survey_numbers(
    source: Source,
    *,
    is_vector: bool,
    limits: Limits,
    clip: bool,
    missing: str,
    report: Progress = no_progress,
) -> Column:
    """Make the first pass: count the users and check every value."""
    names, where = source.names, source.where
    if len(set(names)) < len(names) or not names:
        raise ParameterError(f"columns {', '.join(names)}: name each column once, at least one")
    require_missing(missing, unless="numbers")
    num_rows = num_missing = num_outside = first_missing = 0
    first_outside: tuple[int, list[float]] | None = None
    for start, batch in counted(_batches(source, check=True), report):
        _require_numbers(batch, source, start)
        if not num_missing and batch.is_missing.any():
            first_missing = start + int(np.argmax(batch.is_missing)) + 1
        is_outside = limits.outside(batch.values) & ~batch.is_missing
        if first_outside is None and is_outside.any():
            at = int(np.argmax(is_outside))
            first_outside = (start + at + 1, batch.values[at].tolist())
        num_outside += int(is_outside.sum())
        num_missing += int(batch.is_missing.sum())
        num_rows += len(batch)
    if missing == "error" and num_missing:
        raise no_answers(where, num_missing, first_missing, category=False)
    if first_outside is not None and not clip:
        row, value = first_outside
        raise DomainError(
            f"row {row:,} of {where} holds a value{value_note(value)} outside {limits}; "
            f"{rows_text(num_outside)} of {num_rows:,} hold such values: state wider limits, or "
            "pass clip=True to move them to the nearest value inside"
        )
    num_users = num_rows - num_missing
    require_users(num_users, f"{where} has {rows_text(num_users)} with a number")

    def values() -> Iterator[NDArray[np.float64]]:
        """Yield values within the limits, shape (m,), or (m, d) for vectors."""
        for batch in _batches(source):
            rows = batch.values[~batch.is_missing]
            rows = limits.clip(rows) if clip else rows
            if limits.outside(rows).any():
                raise changed(source.origin)
            yield rows if is_vector else rows[:, 0]

    return Column(
        names=names,
        origin=source.origin,
        num_users=num_users,
        num_missing=num_missing,
        checked_for=(("vectors", names, limits) if is_vector else ("numbers", limits)),
        cautions=dropped_caution(num_missing, num_users),
        _read=values,
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some rows: values of shape (m, d) with NaN where there is none, and which rows lack one."""

    values: NDArray[np.float64]
    is_missing: NDArray[np.bool_]
    is_bad: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


def _batches(source: Source, *, check: bool = False) -> Iterator[_Batch]:
    """Yield the rows as numbers."""
    import polars as pl

    commas = _decimal_commas(source)
    expressions = [
        _expressions(name, dtype, comma=name in commas)
        for name, dtype in zip(source.names, source.dtypes, strict=True)
    ]
    numbers, missing = zip(*expressions, strict=True)
    bad = (number.is_null() & ~absent for number, absent in zip(numbers, missing, strict=True))
    selected = source.frame.select(
        *(number.alias(f"number {i}") for i, number in enumerate(numbers)),
        pl.any_horizontal(*missing).alias("missing"),
        pl.any_horizontal(*bad).alias("bad"),
    )
    for batch in source.batches(selected, check=check):
        values = batch.select(pl.exclude("missing", "bad")).to_numpy()
        yield _Batch(
            np.ascontiguousarray(values, dtype=np.float64),
            batch["missing"].to_numpy(),
            batch["bad"].to_numpy(),
        )


def _decimal_commas(source: Source) -> frozenset[str]:
    """Return the columns of a table with semicolons in which no number has a decimal point."""
    import polars as pl

    if not source.has_decimal_commas:
        return frozenset()
    points = source.frame.select(pl.col(source.names).str.contains(".", literal=True).any())
    with reading(source.origin):
        has_point = points.collect().row(0)
    return frozenset(name for name, found in zip(source.names, has_point, strict=True) if not found)


def _expressions(name: str, dtype: "pl.DataType", *, comma: bool) -> tuple["pl.Expr", "pl.Expr"]:
    """Return a column as numbers, and where it has none."""
    import polars as pl

    column = pl.col(name)
    if dtype == pl.String:
        text = column.str.strip_chars()
        plain = text.str.replace(",", ".", literal=True) if comma else text
        number = plain.cast(pl.Float64, strict=False)
        is_nan = number.is_nan().fill_null(value=False)  # null where the text is no number
        return number, column.is_null() | text.is_in(list(MISSING_TEXTS)) | is_nan
    if dtype == pl.Boolean:
        raise DataError(
            f"column {name!r} is of type Boolean, which is no number: give 0 and 1, or ask for the "
            "shares of true and false"
        )
    if dtype.is_numeric() or dtype == pl.Null:
        number = column.cast(pl.Float64)
        return number, number.is_null() | number.is_nan()
    raise DataError(f"column {name!r} is of type {dtype}, which is no column of numbers")


def _require_numbers(batch: _Batch, source: Source, start: int) -> None:
    """Raise for the first value of a batch that is no number."""
    if not batch.is_bad.any():
        return
    row = start + int(np.argmax(batch.is_bad))
    values = source.frame.select(source.names).slice(row, 1).collect().row(0)
    raise DataError(
        f"row {row + 1:,} of {source.where} holds a value{value_note(values)} that is no number: "
        "write numbers like 12.5, and leave unknown ones empty"
    )
