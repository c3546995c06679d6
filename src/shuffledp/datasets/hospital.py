"""Hospital discharges: how patients paid, by where the hospital is, from a file of the user's own.

The Texas Department of State Health Services gives out such files (Public Use Data File, PUDF)
after registration, under terms that forbid passing them on, so none is shipped. Its records name
the hospital, not the place: join the hospitals' coordinates to them first.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.reading import reading
from shuffledp.collection.source.tables import require_column, scan
from shuffledp.core.errors import DataError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalDischarges:
    """Patients of some hospitals.

    Parameters
    ----------
    places : ndarray of float64, shape (n, 2)
        Latitude and longitude of the hospital, in degrees; public.
    payments : ndarray of uint8, shape (n,)
        Index into ``payment_names``; private.
    payment_names : tuple of str
        Methods of payment, in alphabetical order.
    amounts : ndarray of float64, shape (n,), or None
        What was charged; known to a well-informed attacker.
    """

    places: NDArray[np.float64]
    payments: NDArray[np.uint8]
    payment_names: tuple[str, ...]
    amounts: NDArray[np.float64] | None

    def __post_init__(self) -> None:
        for each in (self.places, self.payments, self.amounts):
            if each is not None:
                each.setflags(write=False)


def load_hospital(
    path: str | os.PathLike[str],
    *,
    payment: str = "FIRST_PAYMENT_SRC",
    latitude: str = "latitude",
    longitude: str = "longitude",
    amount: str | None = "TOTAL_CHARGES",
) -> HospitalDischarges:
    """Read discharges from a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : str or path-like
        One row a patient.
    payment, latitude, longitude : str
        Names of the columns. The default of ``payment`` is PUDF's.
    amount : str or None
        Name of the column with the charges; None where there is none.

    Returns
    -------
    HospitalDischarges
        One row a patient, in the file's order.

    Raises
    ------
    DataError
        If a column is missing, or a row lacks a value, has a number that is none, or a place
        that is not on earth.
    """
    import polars as pl

    location = Path(path)
    wanted = [payment, latitude, longitude, *([] if amount is None else [amount])]
    with reading(location.name):
        frame = scan(location)
        for column in wanted:
            require_column(column, frame.collect_schema().names(), location)
        table = frame.select(wanted).collect()
    if table.is_empty():
        raise DataError(f"{location.name} has no rows")
    names = table[payment].cast(pl.String)
    if names.null_count():
        raise DataError(_row_message(location, payment, names.is_null(), "has no value"))
    found, codes = np.unique(names.str.strip_chars().to_numpy(), return_inverse=True)
    if found.size > np.iinfo(np.uint8).max:
        raise DataError(f"column {payment!r} has {found.size:,} methods of payment: at most 255")
    places = [
        _numbers(table[column], location, largest)
        for column, largest in ((latitude, 90.0), (longitude, 180.0))
    ]
    return HospitalDischarges(
        places=np.column_stack(places),
        payments=codes.astype(np.uint8),
        payment_names=tuple(found.tolist()),
        amounts=None if amount is None else _numbers(table[amount], location, np.inf),
    )


def _numbers(column: "pl.Series", location: Path, largest: float) -> NDArray[np.float64]:
    """Return a column as finite numbers of at most that size."""
    import polars as pl

    numbers = column.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    good = (numbers.is_finite() & (numbers.abs() <= largest)).fill_null(value=False)
    if not good.all():
        limits = "a number" if largest == np.inf else f"a number in [-{largest:g}, {largest:g}]"
        raise DataError(_row_message(location, column.name, ~good, f"is not {limits}"))
    return numbers.to_numpy()


def _row_message(location: Path, column: str, bad: "pl.Series", what: str) -> str:
    """Say where the first bad value stands, and how many there are."""
    row = int(bad.arg_true()[0]) + 1
    return f"column {column!r} of {location.name}, row {row:,}, {what} ({bad.sum():,} such rows)"
