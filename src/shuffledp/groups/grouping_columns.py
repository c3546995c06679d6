"""Public columns by which people are grouped: coordinates, identifiers, and lengths as written."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import reading, require_column, scan
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.formation.points import first_fault, require_metric

if TYPE_CHECKING:
    import polars as pl

_METRES = {"": Decimal(1), "m": Decimal(1), "km": Decimal(1000), "mi": Decimal("1609.344")}
_LENGTH = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_length(text: str) -> float:
    """Return a length in metres.

    Parameters
    ----------
    text : str
        A number >= 0 and a unit: m, km or mi (international miles). Without a unit, metres.

    Returns
    -------
    float
        The number of double precision nearest to the length.

    Raises
    ------
    ParameterError
        If the text is no such length.

    Examples
    --------
    >>> [parse_length(text) for text in ("5km", "2.5 mi", "300")]
    [5000.0, 4023.36, 300.0]
    """
    match = _LENGTH.fullmatch(text)
    if match is None or match[2].lower() not in _METRES:
        raise ParameterError(
            f"length = {text!r} is no length: write a number >= 0 and a unit, one of m, km, mi, "
            "for example 5km"
        )
    metres = float(Decimal(match[1]) * _METRES[match[2].lower()])
    if not math.isfinite(metres):
        raise ParameterError(
            f"length = {text!r} is not finite: give at most 20000km, half way round"
        )
    return metres


def read_coordinates(
    path: str | PathLike[str], columns: Sequence[str], *, metric: str
) -> NDArray[np.float64]:
    """Read the public coordinates of each person.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file in which each row is one person.
    columns : sequence of str
        Names of the columns; latitude before longitude.
    metric : {"euclidean", "haversine", "absolute"}
        What they will be measured by, which decides how many columns and which values there
        may be.

    Returns
    -------
    ndarray of float64, shape (num_users, d)
        Finite, in file order.

    Raises
    ------
    DataError
        If the file or a column cannot be used, or a value is missing, no number or out of range:
        everybody needs a place. The message names row and column.
    ParameterError
        If the metric does not exist, or takes another number of columns.
    """
    location = Path(path)
    names = [columns] if isinstance(columns, str) else list(columns)
    if len(set(names)) < len(names):
        raise ParameterError(f"columns {', '.join(names)}: name each column once")
    require_metric(metric, len(names))
    with reading(location.name):
        frame = scan(location)
        schema = frame.collect_schema()
        for name in names:
            require_column(name, schema.names(), location)
        selected = frame.select(
            *(_number(name, schema[name]).alias(f"number {i}") for i, name in enumerate(names)),
        ).collect()
    if selected.is_empty():
        raise DataError(f"{location.name} has no rows: give one row a person")
    # Contiguous, and with NaN where there was no number.
    points = np.ascontiguousarray(selected.to_numpy(), dtype=np.float64)
    if fault := first_fault(points, metric):
        row, column, reason = fault
        if not math.isfinite(points[row, column]):
            with reading(location.name):
                held = frame.select(names[column]).slice(row, 1).collect().item()
            shown = "nothing" if held is None or held == "" else f"{held!r}, which is no number"
            reason = f"holds {shown}; correct it, or leave such people out beforehand"
        raise DataError(f"row {row + 1:,} of column {names[column]!r} of {location.name}: {reason}")
    return points


def _number(name: str, dtype: "pl.DataType") -> "pl.Expr":
    """Return the polars expression of a column as numbers, null where the text is none.

    Raises
    ------
    DataError
        If the column holds neither text nor numbers.
    """
    import polars as pl

    if dtype == pl.String:
        return pl.col(name).str.strip_chars().cast(pl.Float64, strict=False)
    if dtype.is_numeric() or dtype == pl.Null:
        return pl.col(name).cast(pl.Float64)
    raise DataError(f"column {name!r} is of type {dtype}: coordinates are numbers")
