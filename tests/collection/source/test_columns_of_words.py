"""Columns of texts from an open domain."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from collection.source.opened import open_words, words_from_values
from shuffledp.collection.source import tables
from shuffledp.core.errors import DataError, ParameterError


def texts_of(column):
    return [text for block in column.blocks() for text in block.to_list()]


def csv_of(folder, *texts):
    path = folder / "a.csv"
    path.write_text("word\n" + "".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


TEXTS = ["tea", "maté", "two words", "01", "\u65e5\u672c\u8a9e", "  spaces stay"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_texts_stay_as_they_are(tmp_path, suffix):
    frame, path = pl.DataFrame({"label": 1, "word": TEXTS}), tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if suffix == "csv" else "\t")
    column = open_words(path, "word")
    assert (column.num_users, column.num_missing, column.cautions) == (6, 0, ())
    assert texts_of(column) == texts_of(column) == [text.strip() for text in TEXTS]


def test_other_types_go_by_their_labels(tmp_path):
    pl.DataFrame({"word": [1.0, 2.5]}).write_parquet(tmp_path / "a.parquet")
    assert texts_of(open_words(tmp_path / "a.parquet", "word")) == ["1", "2.5"]


def test_missing_texts_are_an_error_by_default(tmp_path):
    for missing in ("", "NaN", "null"):
        with pytest.raises(
            DataError,
            match=r"'word' .* 1 row without .* row 2: pass missing='drop'",
        ):
            open_words(csv_of(tmp_path, "tea", f'"{missing}"', "tea"), "word")


def test_missing_texts_can_be_dropped(tmp_path):
    column = open_words(csv_of(tmp_path, "tea", '""', "nan", "wine"), "word", missing="drop")
    assert (column.num_users, column.num_missing) == (2, 2)
    assert texts_of(column) == ["tea", "wine"]
    assert column.cautions[0].startswith("Dropped: 2 rows")


def test_missing_is_no_category_of_words(tmp_path):
    with pytest.raises(ParameterError, match="'category' makes no sense for words"):
        open_words(csv_of(tmp_path, "a", "b"), "word", missing="category")


def test_one_user_has_nobody_to_hide_among(tmp_path):
    with pytest.raises(DataError, match=r"has 1 row with a value \(1 row without\): a shuffled"):
        open_words(csv_of(tmp_path, "a", '""'), "word", missing="drop")


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(DataError, match="did you mean 'word'"):
        open_words(csv_of(tmp_path, "a", "b"), "wrod")
    with pytest.raises(DataError, match="no such file"):
        open_words(tmp_path / "absent.csv", "word")
    (tmp_path / "b.csv").write_text("word,x\na,1\nb,1,2\n")
    with pytest.raises(DataError, match="more fields than the header"):
        open_words(tmp_path / "b.csv", "word")


@pytest.mark.parametrize("second", [("a",), ("a", "b", "c"), ("a", '""')])
def test_a_file_that_changes_between_the_passes(tmp_path, second):
    column = open_words(csv_of(tmp_path, "a", "b"), "word")
    csv_of(tmp_path, *second)
    with pytest.raises(DataError, match="changed while it was being read"):
        texts_of(column)


def test_blocks_have_one_size_whatever_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 1000)
    frame = pl.DataFrame({"word": ["tea", "wine"] * 1250})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=300)
    for name in ("a.csv", "a.parquet"):
        column = open_words(tmp_path / name, "word")
        assert [len(block) for block in column.blocks()] == [1000, 1000, 500]
        assert texts_of(column) == ["tea", "wine"] * 1250


def test_progress_is_reported(tmp_path):
    calls = []
    path = csv_of(tmp_path, "a", "b")
    open_words(path, "word", on_progress=lambda *call: calls.append(call))
    assert calls == [("checking", 2, None), ("checking", 2, 2)]


@pytest.mark.parametrize(
    "values",
    [["a", "b"], np.array(["a", "b"]), pl.Series(["a", "b"]), pd.Series(["a", "b"])],
    ids=["list", "numpy", "polars", "pandas"],
)
def test_values_in_memory(values):
    column = words_from_values(values)
    assert texts_of(column) == ["a", "b"]


def test_missing_values_in_memory():
    with pytest.raises(DataError, match="column 'word' of values has 1 row without an answer"):
        words_from_values(["a", None])
    with pytest.raises(DataError, match="answers of one type"):
        words_from_values(["a", 1])
