"""Numbers and vectors of all users as a stream, and the limits within which they lie.

Limits are stated beforehand: limits that were read from the data would depend on the users that
they are to protect.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    MISSING_TEXTS,
    MissingPolicy,
    Source,
    as_checked,
    changed,
    dropped_caution,
    open_source,
    require_users,
    rows_text,
)
from shuffledp.core.checks import require_finite, require_positive
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress

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
class Range:
    """Numbers between two limits.

    Parameters
    ----------
    low, high : float
        Finite, low < high; both belong to the range.

    Raises
    ------
    ParameterError
        If they are not.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, require_finite(name, getattr(self, name)))
        if not self.low < self.high:
            raise ParameterError(
                f"range {self.low:g},{self.high:g} is the wrong way round or empty: give the "
                "smallest possible value first, as in 0,120"
            )
        if not math.isfinite(self.high - self.low):
            raise ParameterError(f"range {self.low:g},{self.high:g} is too wide for a float")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberTable:
    """Checked numbers of all users, or vectors (``is_vector``, if only of one coordinate).

    ``is_clipped`` if values outside the limits were moved to the nearest one inside.
    """

    names: tuple[str, ...]
    origin: str
    num_users: int
    num_missing: int
    is_clipped: bool
    is_vector: bool
    limits: Limits = field(repr=False)
    _source: Source = field(repr=False)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading the columns adds to the assumptions, one sentence each."""
        return dropped_caution(self.num_missing, self.num_users)

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield the values of all users in file order; a second call reads the data again."""
        return as_checked(self._values(), self.origin, self.num_users)

    def _values(self) -> Iterator[NDArray[np.float64]]:
        """Yield values within the limits, shape (m,), or (m, d) for vectors."""
        for batch in _batches(self._source):
            values = batch.values[~batch.is_missing]
            if self.is_clipped:
                values = self.limits.clip(values)
            if self.limits.outside(values).any():
                raise changed(self.origin)
            yield values if self.is_vector else values[:, 0]


def open_numbers(
    path: str | PathLike[str],
    columns: str | Sequence[str],
    *,
    limits: Limits,
    clip: bool = False,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> NumberTable:
    """Open columns of numbers of a file in which each row is one user, and check every value.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file.
    columns : str or sequence of str
        One name for numbers; several, in order, for vectors.
    limits : Range or Ball
        Where values may lie; to be known without looking at the data.
    clip : bool
        Move values outside to the nearest one inside, instead of refusing them.
    missing : {"error", "drop"}
        What to do with rows in which a number is missing.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    NumberTable
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
        open_source(path, *names),
        is_vector=not isinstance(columns, str),
        limits=limits,
        clip=clip,
        missing=missing,
        report=on_progress,
    )


def numbers_from_values(
    values: object,
    *,
    names: Sequence[str],
    limits: Limits,
    clip: bool = False,
    is_vector: bool = False,
) -> NumberTable:
    """Check numbers in memory, one row a user: shape (n,), or (n, d) for vectors."""
    import polars as pl

    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"values are not all numbers ({error}): convert them first") from None
    expected = (array.shape[0] if array.ndim else 0, len(names)) if is_vector else (array.size,)
    if array.shape != expected:
        raise DataError(
            f"values have shape {array.shape}: give one "
            + (f"row of {len(names)} numbers a user" if is_vector else "number a user")
        )
    table = array.reshape(-1, len(names))
    frame = pl.DataFrame({name: table[:, i] for i, name in enumerate(names)}).lazy()
    source = Source(frame=frame, names=tuple(names), origin="values")
    return _survey_numbers(source, is_vector=is_vector, limits=limits, clip=clip)


def _survey_numbers(
    source: Source,
    *,
    is_vector: bool,
    limits: Limits,
    clip: bool,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    report: Progress | None = None,
) -> NumberTable:
    """Make the first pass: count the users and check every value."""
    names, where = source.names, source.where
    if len(set(names)) < len(names) or not names:
        raise ParameterError(f"columns {', '.join(names)}: name each column once, at least one")
    policy = MissingPolicy.named(missing, unless="numbers")
    report = report or no_progress
    num_rows = num_missing = num_outside = 0
    first_outside: tuple[int, list[float]] | None = None
    for batch in _batches(source, check=True):
        _require_numbers(batch, source, num_rows)
        if policy is MissingPolicy.ERROR and batch.is_missing.any():
            row = num_rows + int(np.argmax(batch.is_missing)) + 1
            raise DataError(
                f"row {row:,} of {where} has no number (null, NaN or empty): pass --missing drop "
                "to leave such rows out"
            )
        is_outside = limits.outside(batch.values) & ~batch.is_missing
        if not clip and is_outside.any():
            if first_outside is None:
                at = int(np.argmax(is_outside))
                first_outside = (num_rows + at + 1, batch.values[at].tolist())
            num_outside += int(is_outside.sum())
        num_missing += int(batch.is_missing.sum())
        num_rows += len(batch.values)
        report("checking", num_rows, None)
    report("checking", num_rows, num_rows)
    if first_outside is not None:
        row, value = first_outside
        raise DomainError(
            f"row {row:,} of {where} holds a value{value_note(value)} outside {limits}; "
            f"{rows_text(num_outside)} of {num_rows:,} hold such values: state wider limits, or "
            "pass --clip to move them to the nearest value inside"
        )
    num_users = num_rows - num_missing
    require_users(num_users, f"{where} has {rows_text(num_users)} with a number")
    return NumberTable(
        names=names,
        origin=source.origin,
        num_users=num_users,
        num_missing=num_missing,
        is_clipped=clip,
        is_vector=is_vector,
        limits=limits,
        _source=source,
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some rows: values of shape (m, d) with NaN where there is none, and which rows lack one."""

    values: NDArray[np.float64]
    is_missing: NDArray[np.bool_]
    is_bad: NDArray[np.bool_]


def _batches(source: Source, *, check: bool = False) -> Iterator[_Batch]:
    """Yield the rows as numbers."""
    import polars as pl

    expressions = map(_expressions, source.names, source.dtypes)
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


def _expressions(name: str, dtype: "pl.DataType") -> tuple["pl.Expr", "pl.Expr"]:
    """Return a column as numbers, and where it has none."""
    import polars as pl

    column = pl.col(name)
    if dtype == pl.String:
        text = column.str.strip_chars()
        number = text.cast(pl.Float64, strict=False)
        is_nan = number.is_nan().fill_null(value=False)  # null where the text is no number
        return number, column.is_null() | text.is_in(list(MISSING_TEXTS)) | is_nan
    if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null):
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
