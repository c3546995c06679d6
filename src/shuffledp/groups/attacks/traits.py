"""Columns that describe people, as numbers whose differences can be added up."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import reading, require_column, scan
from shuffledp.core.errors import DataError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traits:
    """What is known about people, one row a person.

    Parameters
    ----------
    values : ndarray, shape (n, p)
        Numbers, divided by their range, or codes of categories.
    is_category : ndarray of bool, shape (p,)
        Which columns are codes.
    """

    values: NDArray[np.float64]
    is_category: NDArray[np.bool_]


def read_traits(path: str | PathLike[str], columns: Sequence[str]) -> Traits:
    """Read columns of numbers or of categories.

    Parameters
    ----------
    path : path
        A CSV, TSV or Parquet file; each row is a person.
    columns : sequence of str
        At least one name. A column of which every value is a number counts as numbers.

    Returns
    -------
    Traits
        In the order of the rows and of the columns. Columns weigh the same: two people are at
        most 1 apart in each.

    Raises
    ------
    DataError
        If the file or a column cannot be used, or a value is missing or not finite.

    Notes
    -----
    Source: Gower, "A general coefficient of similarity and some of its properties", Biometrics
    27, 1971.
    """
    import polars as pl

    location = Path(path)
    if not columns:
        raise DataError(f"no column of {location.name} is named: name at least one")
    with reading(location.name):
        frame = scan(location)
        names = frame.collect_schema().names()
        for column in columns:
            require_column(column, names, location)
        table = frame.select([pl.col(column) for column in columns]).collect()
    values = np.empty((table.height, len(columns)))
    is_category = np.zeros(len(columns), dtype=np.bool_)
    for index, column in enumerate(columns):
        values[:, index], is_category[index] = _numbers(table[column], location.name)
    return Traits(values=values, is_category=is_category)


def _numbers(column: "pl.Series", origin: str) -> tuple[NDArray[np.float64], bool]:
    """Return a column's numbers over their range, or codes of its categories."""
    import polars as pl

    text = column.cast(pl.String, strict=False).str.strip_chars()
    absent = text.is_null() | (text == "")
    if absent.any():
        row = int(absent.arg_true()[0]) + 1
        raise DataError(
            f"column {column.name!r} of {origin} has no value in row {row:,}: fill it or leave "
            "the row out first"
        )
    numbers = text.cast(pl.Float64, strict=False)
    if column.dtype == pl.Boolean or numbers.null_count():
        codes = np.unique(text.to_numpy(), return_inverse=True)[1]
        return codes.astype(np.float64).reshape(-1), True
    found = numbers.to_numpy().astype(np.float64)
    if not np.isfinite(found).all():
        row = int(np.argmin(np.isfinite(found))) + 1
        raise DataError(
            f"column {column.name!r} of {origin} is not finite in row {row:,}: fill it or leave "
            "the row out first"
        )
    spread = float(found.max() - found.min()) if found.size else 0.0
    return (found / spread if spread > 0.0 else found), False
