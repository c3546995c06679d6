"""``WordColumn``: one column of texts from an open domain, one row a user, read as a stream."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.collection.source.column import (
    BLOCK_ROWS,
    MissingPolicy,
    changed,
    dropped_caution,
    policy_of,
    too_few_users,
)
from shuffledp.collection.source.labels import MISSING_TEXTS, label_expression
from shuffledp.collection.source.reading import reading
from shuffledp.collection.source.tables import (
    is_text_table,
    require_column,
    scan,
    series_of,
)
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.progress import Progress, no_progress

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class WordColumn:
    """Checked texts of all users. Made by `open_words` and `words_from_values`.

    Parameters
    ----------
    name : str
        Name of the column.
    origin : str
        Where it comes from, for messages and ``privacy.json``.
    num_users : int
        Number of rows that take part.
    num_missing : int
        Number of rows without a text that were dropped.
    """

    name: str
    origin: str
    num_users: int
    num_missing: int
    _frame: "pl.LazyFrame" = field(repr=False)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading the column adds to the assumptions, one sentence each."""
        return (dropped_caution(self.num_missing, self.num_users),) if self.num_missing else ()

    def blocks(self) -> "Iterator[pl.Series]":
        """Yield the texts of all users in file order; a second call reads the data again.

        Yields
        ------
        polars.Series of text
            Without nulls, `num_users` in total.

        Raises
        ------
        DataError
            If the data are no longer those that were checked.
        """
        num_seen = 0
        with reading(self.origin):
            for texts in _batches(self._frame):
                present = texts.drop_nulls()
                num_seen += len(present)
                if num_seen > self.num_users:
                    raise changed(self.origin)
                yield present
        if num_seen != self.num_users:
            raise changed(self.origin)


def open_words(
    path: str | PathLike[str],
    column: str,
    *,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> WordColumn:
    """Open a column of texts of a file in which each row is one user.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file.
    column : str
        Name of the column. What is no text is read as its label: 1 as ``"1"``.
    missing : {"error", "drop"}
        What to do with rows without a text.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    WordColumn
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or the column cannot be used, a row has no text, or there are fewer than two
        users.
    """
    location = Path(path)
    with reading(location.name):
        frame = scan(location)
        schema = frame.collect_schema()
        require_column(column, schema.names(), location)
        return _survey_words(
            frame.with_columns(label_expression(column, schema[column]).alias("label")),
            name=column,
            origin=location.name,
            missing=missing,
            report=on_progress or no_progress,
            check_all_columns=is_text_table(location),
        )


def words_from_values(values: Iterable[object], *, name: str = "word") -> WordColumn:
    """Check texts that are in memory already, one element a user.

    Parameters
    ----------
    values : iterable
        A list, NumPy array, or polars or pandas series.
    name : str
        How to call the column in messages.

    Returns
    -------
    WordColumn
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If a value is missing, or there are fewer than two.

    Examples
    --------
    >>> column = words_from_values(["shuffle", "privacy"])
    >>> [block.to_list() for block in column.blocks()]
    [['shuffle', 'privacy']]
    """
    series = series_of(name, values)
    return _survey_words(
        series.to_frame().lazy().select(label_expression(name, series.dtype).alias("label")),
        name=name,
        origin="values",
        missing=MissingPolicy.ERROR,
        report=no_progress,
        check_all_columns=False,
    )


def _survey_words(
    frame: "pl.LazyFrame",
    *,
    name: str,
    origin: str,
    missing: MissingPolicy | str,
    report: Progress,
    check_all_columns: bool,
) -> WordColumn:
    """Make the first pass: count the users, and find rows without a text."""
    policy = policy_of(missing)
    if policy is MissingPolicy.CATEGORY:
        raise ParameterError("missing = 'category' makes no sense for words: choose error or drop")
    num_rows = num_missing = 0
    for texts in _batches(frame, check_all_columns=check_all_columns):
        is_missing = texts.is_null()
        if policy is MissingPolicy.ERROR and is_missing.any():
            row = num_rows + int(is_missing.arg_max() or 0) + 1
            raise DataError(
                f"row {row:,} of column {name!r} of {origin} has no text: pass --missing drop to "
                "leave such rows out"
            )
        num_missing += int(is_missing.sum())
        num_rows += len(texts)
        report("checking", num_rows, None)
    report("checking", num_rows, num_rows)
    if num_rows - num_missing < 2:
        raise too_few_users(f"column {name!r} of {origin} has {num_rows - num_missing} texts")
    return WordColumn(
        name=name,
        origin=origin,
        num_users=num_rows - num_missing,
        num_missing=num_missing,
        _frame=frame,
    )


def _batches(frame: "pl.LazyFrame", *, check_all_columns: bool = False) -> "Iterator[pl.Series]":
    """Yield the texts of all rows, null where there is none."""
    import polars as pl

    label = pl.col("label")
    texts = pl.when(~label.is_in(list(MISSING_TEXTS))).then(label)
    batches = frame.select(texts.alias("text")).collect_batches(
        chunk_size=BLOCK_ROWS,
        optimizations=pl.QueryOptFlags(projection_pushdown=not check_all_columns),
    )
    for batch in batches:
        yield batch.to_series()
