"""Files of two columns: edges between people, or groups and their members.

Text files come in many dialects: commas, tabs, semicolons or spaces; with a header or without;
with comments that start with ``#`` or ``%``. All of them are brought into one form first.
"""

import io
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.labels import label_expression
from shuffledp.collection.source.reading import reading
from shuffledp.collection.source.tables import scan
from shuffledp.core.errors import DataError, ParameterError

if TYPE_CHECKING:
    import polars as pl

_PARQUET = (".parquet", ".pq")
_COMMENT_LINE = re.compile(rb"(?m)^[ \t]*[#%].*$")
_EMPTY_LINES = re.compile(rb"\s*\n")
_SPACES = re.compile(rb"[ \t]+")
_SPACES_AROUND_LINES = re.compile(rb"(?m)^ +| +$")


def read_two_columns(path: str | PathLike[str]) -> "pl.DataFrame":
    """Read a file of two columns as text, a header line included.

    Parameters
    ----------
    path : str or path-like
        A Parquet file of two columns, or a text file in UTF-8 of any other name.

    Returns
    -------
    polars.DataFrame
        Columns ``first`` and ``second`` of text without spaces around it.

    Raises
    ------
    DataError
        If the file cannot be read, or a row has not exactly two fields.
    """
    import polars as pl

    location = Path(path)
    with reading(location.name):
        if location.suffix.lower() in _PARQUET:
            table = _labels_of_parquet(location)
        else:
            table = _labels_of_text(location)
    if table.width != 2:
        raise DataError(
            f"{location.name} has {table.width} column{'s' * (table.width != 1)}: keep the two "
            "that count, separated by commas, tabs or spaces"
        )
    table.columns = ["first", "second"]
    table = table.select(pl.all().str.strip_chars())
    is_short = table["first"].is_null() | table["second"].is_null()
    is_short |= (table["first"] == "") | (table["second"] == "")
    if is_short.any():
        row = is_short.arg_true()[0] + 1
        raise DataError(
            f"line {row:,} of {location.name}, not counting comments and empty lines, has only one "
            "field: give two a line"
        )
    return table


def _labels_of_parquet(location: Path) -> "pl.DataFrame":
    """Return all columns of a Parquet file as text."""
    frame = scan(location)
    schema = frame.collect_schema()
    return frame.select(label_expression(name, schema[name]) for name in schema).collect()


def _labels_of_text(location: Path) -> "pl.DataFrame":
    """Return all columns of a text file as text."""
    import polars as pl

    try:
        data = location.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise DataError(f"cannot read {location}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"cannot read {location}: it is a folder") from None
    data = data.replace(b"\r\n", b"\n")
    if b"#" in data or b"%" in data:
        data = _COMMENT_LINE.sub(b"", data)
    data = _EMPTY_LINES.sub(b"\n", data.strip() + b"\n")
    if data == b"\n":
        raise DataError(f"{location.name} is empty: give two fields a line")
    first_line = data[: data.index(b"\n")]
    separator = next((mark for mark in (b",", b"\t", b";") if mark in first_line), b" ")
    if separator == b" ":
        data = _SPACES_AROUND_LINES.sub(b"", _SPACES.sub(b" ", data))
    return pl.read_csv(
        io.BytesIO(data),
        separator=separator.decode(),
        has_header=False,
        infer_schema=False,
    )


def numbers_of(
    labels: "pl.Series", ids: Sequence[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the number that each label stands for, and whether it stands for one.

    Parameters
    ----------
    labels : polars.Series of text
        Labels of people.
    ids : sequence of str, optional
        The label of each person, in order. Without it, labels are the numbers themselves.

    Returns
    -------
    numbers : ndarray of int64, shape (m,)
        -1 where there is none.
    is_known : ndarray of bool, shape (m,)
        Whether there is one.

    Raises
    ------
    ParameterError
        If ``ids`` holds a label twice.
    """
    import polars as pl

    if ids is None:
        found = labels.cast(pl.Int64, strict=False)
    else:
        if len(set(ids)) < len(ids):
            raise ParameterError("ids holds a label twice: give every person one of their own")
        number_of = pl.DataFrame(
            {"label": pl.Series(ids, dtype=pl.String), "number": np.arange(len(ids))}
        )
        asked = labels.rename("label").to_frame()
        found = asked.join(number_of, on="label", how="left", maintain_order="left")["number"]
    return found.fill_null(-1).to_numpy(), found.is_not_null().to_numpy()


def num_header_lines(table: "pl.DataFrame", origin: str, *, names_nobody: bool) -> int:
    """Return 1 if the first line is a header, else 0.

    Parameters
    ----------
    table : polars.DataFrame
        As `read_two_columns` returns it.
    origin : str
        Name of the file.
    names_nobody : bool
        Whether the first line fails to name people where the others should.

    Raises
    ------
    DataError
        If there is nothing but a header.
    """
    if not names_nobody or any((column == column[0]).sum() > 1 for column in table):
        return 0
    if table.height == 1:
        raise DataError(
            f"{origin} has one line, {table[0, 0]!r} and {table[0, 1]!r}, which names nobody in "
            "the survey: if it is a header, nothing follows it"
        )
    return 1


def require_policy(unknown: str) -> None:
    """Raise `ParameterError` unless this is what may be done with unknown labels."""
    if unknown not in ("error", "drop"):
        raise ParameterError(f"unknown = {unknown!r} is not one of error, drop")


def unknown_label(
    origin: str, label: str, *, num_rows: int, total: int, ids: Sequence[str] | None
) -> DataError:
    """Return the error for labels that stand for nobody.

    Parameters
    ----------
    origin : str
        Name of the file.
    label : str
        The first of them.
    num_rows, total : int
        How many rows have one, of how many.
    ids : sequence of str, optional
        The label of each person; without it, labels should have been numbers.
    """
    counted = f"{num_rows:,} of {total:,} rows of {origin}"
    if ids is None:
        return DataError(
            f"{counted} name somebody by what is no whole number, such as {label!r}: number people "
            "by their row, from 0, or say which column holds their identifiers"
        )
    return DataError(
        f"{counted} name somebody who is not in the survey, such as {label!r}: look for another "
        "spelling, or leave such rows out with unknown='drop'"
    )
