"""Identifiers from files."""

import polars as pl
import pytest

from shuffledp.collection.source.edge_files import read_ids
from shuffledp.core.errors import DataError


def write(path, data):
    path.write_text(data)
    return path


def test_identifiers_are_labels(tmp_path):
    path = write(tmp_path / "a.csv", "id\nanna\n bob \n007\n")
    assert read_ids(path, "id") == ["anna", "bob", "007"]
    pl.DataFrame({"whole": [3.0, 1.0], "int": [7, 8]}).write_parquet(tmp_path / "a.parquet")
    assert read_ids(tmp_path / "a.parquet", "whole") == ["3", "1"]
    assert read_ids(tmp_path / "a.parquet", "int") == ["7", "8"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("id,x\na,1\nb,1\na,1\n", r"rows 1 and 3 of column 'id' of a.csv hold .* 'a'"),
        ("id,x\na,1\n,1\nNaN,1\n", r"row 2 of column 'id' of a.csv has no identifier \(2 rows"),
        ("id,x\n", "has no rows"),
        ("ids,x\na,1\n", "no column 'id'; did you mean 'ids'"),
    ],
)
def test_identifiers_that_cannot_be_used(tmp_path, data, message):
    with pytest.raises(DataError, match=message) as error:
        read_ids(write(tmp_path / "a.csv", data), "id")
    assert "\n" not in str(error.value)


def test_missing_identifiers_in_parquet(tmp_path):
    pl.DataFrame({"id": ["a", None]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="row 2 of column 'id'"):
        read_ids(tmp_path / "a.parquet", "id")
