"""``NumberTable``: one or more columns of numbers, one row a user, read as a stream.

As for answers, the first pass counts the users and checks every value, and the second hands the
values out to be randomized, each exactly once. Limits are stated beforehand: limits that were read
from the data would depend on the users that they are to protect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.column import (
    BLOCK_ROWS,
    MissingPolicy,
    changed,
    dropped_caution,
    policy_of,
    rows_text,
    too_few_users,
)
from shuffledp.collection.source.labels import MISSING_TEXTS
from shuffledp.collection.source.limits import Limits
from shuffledp.collection.source.reading import reading
from shuffledp.collection.source.tables import is_text_table, require_column, scan
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberTable:
    """Checked numbers of all users. Made by `open_numbers` and `numbers_from_values`.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    origin : str
        Where they come from, for messages and ``privacy.json``.
    num_users : int
        Number of rows that take part.
    num_missing : int
        Number of rows without a value that were dropped.
    is_clipped : bool
        Whether values outside the limits were moved to the nearest one inside.
    is_vector : bool
        Whether a row is a vector, if only of one coordinate.
    limits : Range or Ball
        Where values may lie.
    """

    names: tuple[str, ...]
    origin: str
    num_users: int
    num_missing: int
    is_clipped: bool
    is_vector: bool
    limits: Limits = field(repr=False)
    _frame: "pl.LazyFrame" = field(repr=False)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading the columns adds to the assumptions, one sentence each."""
        if not self.num_missing:
            return ()
        return (dropped_caution(self.num_missing, self.num_users),)

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield the values of all users in file order; a second call reads the data again.

        Yields
        ------
        ndarray of float64, shape (m,), or (m, d) for vectors
            Within the limits, `num_users` rows in total.

        Raises
        ------
        DataError
            If the data are no longer those that were checked.
        """
        num_seen = 0
        with reading(self.origin):
            for batch in _batches(self._frame, self.names):
                values = batch.values[~batch.is_missing]
                if self.is_clipped:
                    values = self.limits.clip(values)
                num_seen += len(values)
                if num_seen > self.num_users or self.limits.outside(values).any():
                    raise changed(self.origin)
                yield values if self.is_vector else values[:, 0]
        if num_seen != self.num_users:
            raise changed(self.origin)


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
    location = Path(path)
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    with reading(location.name):
        frame = scan(location)
        for name in names:
            require_column(name, frame.collect_schema().names(), location)
        return _survey_numbers(
            frame,
            names,
            origin=location.name,
            is_vector=not isinstance(columns, str),
            limits=limits,
            clip=clip,
            missing=missing,
            report=on_progress or no_progress,
            check_all_columns=is_text_table(location),
        )


def numbers_from_values(
    values: object,
    *,
    names: Sequence[str],
    limits: Limits,
    clip: bool = False,
    is_vector: bool = False,
) -> NumberTable:
    """Check numbers that are in memory already, one row a user.

    Parameters
    ----------
    values : array-like, shape (n,), or (n, d) for vectors
        Of numbers: a list, NumPy array, or polars or pandas series or frame.
    names : sequence of str
        How to call the columns.
    limits, clip
        As for `open_numbers`.
    is_vector : bool
        Whether a row is a vector.

    Returns
    -------
    NumberTable
        Checked, and ready to be read once more.

    Raises
    ------
    DataError, DomainError
        As for `open_numbers`.

    Examples
    --------
    >>> from shuffledp.collection.source.limits import Range
    >>> table = numbers_from_values([1, 2.5], names=["age"], limits=Range(low=0, high=120))
    >>> [block.tolist() for block in table.blocks()]
    [[1.0, 2.5]]
    """
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
    return _survey_numbers(
        frame,
        tuple(names),
        origin="values",
        is_vector=is_vector,
        limits=limits,
        clip=clip,
        missing=MissingPolicy.ERROR,
        report=no_progress,
        check_all_columns=False,
    )


def _survey_numbers(  # what two public functions share
    frame: "pl.LazyFrame",
    names: tuple[str, ...],
    *,
    origin: str,
    is_vector: bool,
    limits: Limits,
    clip: bool,
    missing: MissingPolicy | str,
    report: Progress,
    check_all_columns: bool,
) -> NumberTable:
    """Make the first pass: count the users and check every value."""
    if len(set(names)) < len(names) or not names:
        raise ParameterError(f"columns {', '.join(names)}: name each column once, at least one")
    policy = policy_of(missing)
    if policy is MissingPolicy.CATEGORY:
        raise ParameterError(
            "missing = 'category' makes no sense for numbers: choose error or drop"
        )
    where = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))} of {origin}"
    num_rows = num_missing = num_outside = 0
    first_outside: tuple[int, list[float]] | None = None
    for batch in _batches(frame, names, check_all_columns=check_all_columns):
        _require_numbers(batch, frame, names, where, num_rows)
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
    if num_rows - num_missing < 2:
        raise too_few_users(f"{where} has {rows_text(num_rows - num_missing)} with a number")
    return NumberTable(
        names=names,
        origin=origin,
        num_users=num_rows - num_missing,
        num_missing=num_missing,
        is_clipped=clip,
        is_vector=is_vector,
        limits=limits,
        _frame=frame,
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some rows: values of shape (m, d) with NaN where there is none, and which rows lack one."""

    values: NDArray[np.float64]
    is_missing: NDArray[np.bool_]
    is_bad: NDArray[np.bool_]


def _batches(
    frame: "pl.LazyFrame", names: tuple[str, ...], *, check_all_columns: bool = False
) -> Iterator[_Batch]:
    """Yield the rows of a frame as numbers."""
    import polars as pl

    schema = frame.collect_schema()
    numbers, missing = zip(*(_expressions(name, schema[name]) for name in names), strict=True)
    lacks = pl.any_horizontal(*missing)
    bad = pl.any_horizontal(
        *(number.is_null() & ~absent for number, absent in zip(numbers, missing, strict=True))
    )
    selected = frame.select(
        *(number.alias(f"number {i}") for i, number in enumerate(numbers)),
        lacks.alias("missing"),
        bad.alias("bad"),
    )
    batches = selected.collect_batches(
        chunk_size=BLOCK_ROWS,
        optimizations=pl.QueryOptFlags(projection_pushdown=not check_all_columns),
    )
    for batch in batches:
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


def _require_numbers(
    batch: _Batch, frame: "pl.LazyFrame", names: tuple[str, ...], where: str, start: int
) -> None:
    """Raise for the first value of a batch that is no number."""
    if not batch.is_bad.any():
        return
    row = start + int(np.argmax(batch.is_bad))
    values = frame.select(names).slice(row, 1).collect().row(0)
    raise DataError(
        f"row {row + 1:,} of {where} holds a value{value_note(values)} that is no number: "
        "write numbers like 12.5, and leave unknown ones empty"
    )
