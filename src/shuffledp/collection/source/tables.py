"""Tables: one column of a CSV or Parquet file, or values in memory, as an `AnswerColumn`.

A CSV file is read as text throughout, so that a label is what the file says ("01" stays "01")
and no guess from the first rows can fail on a later one.
"""

import difflib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.collection.source.answers import AnswerColumn, Source, survey_column
from shuffledp.collection.source.column import MissingPolicy
from shuffledp.collection.source.labels import checked_domain
from shuffledp.collection.source.reading import reading
from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")


def open_table(
    path: str | PathLike[str],
    column: str,
    *,
    domain: Iterable[object] | None = None,
    other: bool = False,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> AnswerColumn:
    """Open a column of a file in which each row is one user, and check every value of it.

    Parameters
    ----------
    path : str or path-like
        A ``.csv`` (comma), ``.tsv`` (tab) or ``.parquet`` file; CSV in UTF-8 with a header.
    column : str
        Name of the column with the answers.
    domain : iterable, optional
        The possible answers. Without it they are read from the file: then the list depends on
        the data, which `AnswerColumn.cautions` says.
    other : bool
        Count values outside the domain as one more answer, ``"other"``.
    missing : {"error", "drop", "category"}
        What to do with rows without an answer.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    AnswerColumn
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or the column cannot be used, or a row has no answer.
    DomainError
        If a value lies outside the domain, or fewer than two answers are possible.
    """
    location = Path(path)
    with reading(location.name):
        frame = scan(location)
        schema = frame.collect_schema()
        require_column(column, schema.names(), location)
        source = Source(
            frame=frame,
            name=column,
            dtype=schema[column],
            origin=location.name,
            check_all_columns=is_text_table(location),
        )
        return survey_column(
            source,
            domain=None if domain is None else checked_domain(domain),
            other=other,
            missing=missing,
            on_progress=on_progress,
        )


def answers_from_values(
    values: Iterable[object],
    *,
    domain: Iterable[object] | None = None,
    other: bool = False,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    name: str = "answer",
) -> AnswerColumn:
    """Check answers that are in memory already, one element a user.

    Parameters
    ----------
    values : iterable
        A list, NumPy array, or polars or pandas series of text, numbers, booleans or dates.
    domain, other, missing
        As for `open_table`.
    name : str
        How to call the column in messages.

    Returns
    -------
    AnswerColumn
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the values are of mixed types or a value is missing.
    DomainError
        If a value lies outside the domain, or fewer than two answers are possible.

    Examples
    --------
    >>> column = answers_from_values(["no", "yes", "no"], domain=["yes", "no"])
    >>> [codes.tolist() for codes in column.blocks()]
    [[1, 0, 1]]
    """
    series = series_of(name, values)
    source = Source(frame=series.to_frame().lazy(), name=name, dtype=series.dtype, origin="values")
    return survey_column(
        source,
        domain=None if domain is None else checked_domain(domain),
        other=other,
        missing=missing,
    )


def read_domain(path: str | PathLike[str]) -> tuple[str, ...]:
    """Return the domain written in a text file, one answer a line; empty lines are skipped.

    Parameters
    ----------
    path : str or path-like
        A text file in UTF-8.

    Returns
    -------
    tuple of str
        One label an answer.

    Raises
    ------
    DataError
        If the file cannot be read.
    DomainError
        If an answer is listed twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DataError(f"cannot read the domain from {path}: {reason}") from None
    return checked_domain(line.strip() for line in text.splitlines() if line.strip())


def is_text_table(path: Path) -> bool:
    """Return whether the file's name is that of text, so that whole rows should be checked."""
    return path.suffix.lower() in _SEPARATORS


def scan(path: Path) -> "pl.LazyFrame":
    """Return a lazy frame over the file; nothing but its header is read yet."""
    import polars as pl

    suffix = path.suffix.lower()
    if not path.is_file():
        reason = "it is a folder" if path.is_dir() else "there is no such file"
        raise DataError(f"cannot read {path}: {reason}")
    if suffix in _PARQUET:
        return pl.scan_parquet(path, glob=False)
    if suffix in _SEPARATORS:
        return pl.scan_csv(path, separator=_SEPARATORS[suffix], infer_schema=False, glob=False)
    known = ", ".join((*_SEPARATORS, *_PARQUET))
    raise DataError(f"cannot read {path}: its name ends in none of {known}; convert or rename it")


def require_column(column: str, names: list[str], path: Path) -> None:
    """Raise unless the file has the column; suggest the nearest name and list them all."""
    if column in names:
        return
    by_lower = {name.lower(): name for name in names}
    nearest = difflib.get_close_matches(column.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; did you mean {by_lower[nearest[0]]!r}?" if nearest else ""
    shown = ", ".join(names[:20]) + ", ..." * (len(names) > 20)
    raise DataError(f"{path.name} has no column {column!r}{hint} (its columns: {shown})")


def series_of(name: str, values: Iterable[object]) -> "pl.Series":
    """Return the values as a polars series."""
    import polars as pl

    if hasattr(values, "to_numpy") and not isinstance(values, pl.Series):
        values = values.to_numpy()  # a pandas series, without the need for pyarrow
    if (num_axes := getattr(values, "ndim", 1)) != 1:
        raise DataError(f"{name} has {num_axes} dimensions: give one answer a user")
    if str(getattr(values, "dtype", "object")) == "object":  # no array, or one of Python objects
        values = list(values)
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{name} does not hold answers of one type ({reason}): convert them to text first"
        ) from None
