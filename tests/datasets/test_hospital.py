"""Discharge files of the user's own: columns by name, and rows that cannot be used."""

import numpy as np
import polars as pl
import pytest

from shuffledp.core.errors import DataError
from shuffledp.datasets.hospital import load_hospital

ROWS = {
    "FIRST_PAYMENT_SRC": ["MC", "HM", " MC", "ZZ"],
    "latitude": ["29.76", "32.8", "29.76", "-30"],
    "longitude": ["-95.37", "-96.8", "-95.37", "180"],
    "TOTAL_CHARGES": ["1200.50", "8", "0", "1e5"],
}


def write(path, **changes):
    frame = pl.DataFrame(ROWS | changes)
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_discharges(tmp_path, ending):
    discharges = load_hospital(write(tmp_path / f"pudf.{ending}"))
    assert discharges.payment_names == ("HM", "MC", "ZZ")
    assert discharges.payments.tolist() == [1, 0, 1, 2]
    assert discharges.places[1].tolist() == [32.8, -96.8]
    assert discharges.amounts.tolist() == [1200.5, 8.0, 0.0, 1e5]


def test_columns_are_named_by_the_user(tmp_path):
    path = tmp_path / "own.parquet"
    pl.DataFrame({"paid": [1, 2], "lat": [1.5, 2.0], "lon": [3, 4]}).write_parquet(path)
    discharges = load_hospital(path, payment="paid", latitude="lat", longitude="lon", amount=None)
    assert discharges.payment_names == ("1", "2")
    assert discharges.amounts is None
    assert discharges.places.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latitude": ["1", "91", "x", "2"]}, r"'latitude'.*row 2, is not .*\[-90, 90\] \(2 such"),
        ({"longitude": ["1", "2", None, "3"]}, r"'longitude'.*row 3, is not a number in \[-180"),
        ({"TOTAL_CHARGES": ["1", "NaN", "2", "3"]}, "'TOTAL_CHARGES'.*row 2, is not a number"),
        ({"FIRST_PAYMENT_SRC": [None, "a", "b", "c"]}, "row 1, has no value"),
    ],
)
def test_bad_rows(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        load_hospital(write(tmp_path / "pudf.parquet", **changes))


def test_unusable_files(tmp_path):
    with pytest.raises(DataError, match="has no column 'payment'"):
        load_hospital(write(tmp_path / "pudf.csv"), payment="payment")
    with pytest.raises(DataError, match="there is no such file"):
        load_hospital(tmp_path / "none.csv")
    empty = tmp_path / "empty.parquet"
    pl.DataFrame({name: [] for name in ROWS}, dict.fromkeys(ROWS, pl.String)).write_parquet(empty)
    with pytest.raises(DataError, match="has no rows"):
        load_hospital(empty)
    many = {name: [str(row % 90) for row in range(300)] for name in ROWS}
    many["FIRST_PAYMENT_SRC"] = [str(row) for row in range(300)]
    with pytest.raises(DataError, match="300 methods of payment: at most 255"):
        load_hospital(write(tmp_path / "many.csv", **many))
