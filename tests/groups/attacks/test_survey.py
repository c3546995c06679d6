"""Columns about people become numbers on one scale, or codes."""

import math

import numpy as np
import pytest

from shuffledp.core.errors import DataError
from shuffledp.groups.attacks.survey import Measured, read_traits


def write(tmp_path, text):
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_numbers_are_scaled_and_words_are_coded(tmp_path):
    path = write(tmp_path, "pay,town,one\n10,x,5\n30,y,5\n20,x,5\n")
    traits = read_traits(path, ["pay", "town", "one"])
    assert traits.values.tolist() == [[0.5, 0.0, 5.0], [1.5, 1.0, 5.0], [1.0, 0.0, 5.0]]
    assert traits.is_category.tolist() == [False, True, False]


def test_typed_tables(tmp_path):
    import polars as pl

    path = tmp_path / "people.parquet"
    pl.DataFrame({"yes": [True, False], "pay": [1, 3]}).write_parquet(path)
    traits = read_traits(path, ["yes", "pay"])
    assert traits.is_category.tolist() == [True, False]
    assert np.ptp(traits.values, axis=0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a\n1\n\n", [], "name at least one"),
        ("a,b\n1,1\n,2\n", ["a"], "no value in row 2"),
        ("a\n1\ninf\n", ["a"], "not finite in row 2"),
        ("a\n1\n", ["b"], "no column 'b'"),
    ],
)
def test_refusals(tmp_path, text, columns, message):
    with pytest.raises(DataError, match=message):
        read_traits(write(tmp_path, text), columns)


def measured(*trials, **changes):
    return Measured(task="t", measure="m", arrangement="raw", trials=trials, **changes)


def test_the_deviation_is_that_of_a_sample():
    found = measured(1.0, 2.0, 6.0)
    assert found.mean == 3.0
    assert found.standard_deviation == math.sqrt((4.0 + 1.0 + 9.0) / 2.0)
    assert measured(0.5).standard_deviation is None


def test_the_better_of_an_attack_and_the_own_report_is_named():
    weak = measured(0.5, 0.52, own_report=(0.72, 0.74))
    assert weak.better == "own report"
    assert (weak.of_better().mean, weak.mean) == (0.73, 0.51)
    assert (weak.to_json_dict()["own_report"], weak.to_json_dict()["better"]) == (
        0.73,
        "own report",
    )
    strong = measured(0.9, own_report=(0.9,))
    assert strong.better == "t"
    assert strong.of_better() is strong
    assert (measured(0.5).to_json_dict()["own_report"], measured(0.5).to_json_dict()["better"]) == (
        None,
        None,
    )


def test_json():
    assert measured(0.25, 0.75).to_json_dict()["trials"] == [0.25, 0.75]


def test_traits_have_the_decimal_mark_of_their_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;y\n1.234;0,5\n1234;1,5\n0;2,5\n")
    traits = read_traits(path, ["x", "y"])
    assert not traits.is_category.any()
    assert traits.values.tolist() == [[1.0, 0.25], [1.0, 0.75], [0.0, 1.25]]
    with pytest.raises(DataError, match="has no value in row 2"):
        read_traits(path, ["y"], missing_texts=["1,5"])
