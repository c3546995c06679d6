"""The census: columns, codes, bad lines, and the real file where it is at hand."""

from pathlib import Path

import numpy as np
import pytest

from shuffledp.core.errors import DataError
from shuffledp.datasets.adult import ADULT_FILE, INCOMES, load_adult
from shuffledp.datasets.fetching import sha256_of

DATA = Path(__file__).parents[3] / "shared" / "data"
LINE = "{}, Private, 1, Bachelors, 13, {}, Sales, Husband, White, Male, 0, 0, 40, Peru, {}\n"


def write(folder, *people):
    (folder / "adult.data").write_text("".join(LINE.format(*person) for person in people) + "\n")


def test_people(tmp_path):
    write(tmp_path, (39, "Widowed", "<=50K"), (17, "Divorced", ">50K."), (90, "Widowed", ">50K"))
    census = load_adult(tmp_path)
    assert census.num_users == 3
    assert census.ages.tolist() == [39, 17, 90]
    assert census.incomes.tolist() == [0, 1, 1]
    assert census.marital_statuses.tolist() == [1, 0, 1]
    assert census.marital_status_names == ("Divorced", "Widowed")
    assert census.first(2).ages.tolist() == [39, 17]
    assert not census.ages.flags.writeable


@pytest.mark.parametrize(
    ("person", "message"),
    [
        (("-1", "Widowed", "<=50K"), "line 2: the age is '-1'"),
        (("151", "Widowed", "<=50K"), "line 2: the age is '151'"),
        (("40", "Widowed", "rich"), "line 2: the income is 'rich'"),
        (("40", "Widowed, twice", "<=50K"), "line 2 has 16 values instead of 15"),
    ],
)
def test_bad_lines(tmp_path, person, message):
    write(tmp_path, (39, "Widowed", "<=50K"), person)
    with pytest.raises(DataError, match=message):
        load_adult(tmp_path)


def test_empty_and_missing(tmp_path):
    with pytest.raises(DataError, match=r"has no adult.data: download it with --fetch"):
        load_adult(tmp_path)
    write(tmp_path)
    with pytest.raises(DataError, match="is empty"):
        load_adult(tmp_path, fetch=True)  # it is there, so nothing is downloaded


@pytest.mark.skipif(not DATA.exists(), reason="the UCI Adult census is not on this machine")
def test_the_real_census():
    assert sha256_of(DATA / "adult.data") == ADULT_FILE.sha256
    assert (DATA / "adult.data").stat().st_size == ADULT_FILE.num_bytes
    census = load_adult(DATA)
    assert census.num_users == 32_561
    assert (census.ages.min(), census.ages.max()) == (17, 90)
    assert np.unique(census.ages).size == 73
    assert np.bincount(census.incomes).tolist() == [24_720, 7_841]
    assert len(census.marital_status_names) == 7
    assert INCOMES[0] == "<=50K"
