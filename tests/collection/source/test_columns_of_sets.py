"""Sets of answers: texts with separators, or lists."""

import numpy as np
import polars as pl
import pytest

from collection.source.opened import answer_sets_from_values, open_answer_sets
from shuffledp.collection.source import tables
from shuffledp.core.errors import DataError, DomainError, ParameterError

DOMAIN = ("bike", "bus", "car")


def sets_of(column):
    """Return the codes of each user, without the filling; check that it stands at the end."""
    table = np.concatenate(list(column.blocks()))
    assert table.dtype == np.int32
    rows = [row[row >= 0].tolist() for row in table]
    assert all(row[: len(kept)].tolist() == kept for row, kept in zip(table, rows, strict=True))
    return rows


def csv_of(folder, *texts, name="a.csv"):
    path = folder / name
    path.write_text("id\tx\n".replace("\t", "," if name == "a.csv" else "\t"), encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        for text in texts:
            file.write(f"1,{text}\n" if name == "a.csv" else f"1\t{text}\n")
    return path


def opened(path, *, max_answers=2, domain=DOMAIN, **options):
    return open_answer_sets(path, "x", domain=domain, max_answers=max_answers, **options)


@pytest.mark.parametrize(
    ("separator", "name"), [(";", "a.csv"), ("|", "a.csv"), (", ", "a.tsv"), ("and", "a.csv")]
)
def test_separators(tmp_path, separator, name):
    texts = [f"car{separator}bike", "bus", f" bike {separator} bus "]
    column = opened(csv_of(tmp_path, *texts, name=name), separator=separator)
    assert sets_of(column) == sets_of(column) == [[2, 0], [1], [0, 1]]
    assert (column.num_users, column.num_missing, column.cautions) == (3, 0, ())
    assert [block.shape for block in column.blocks()] == [(3, 2)]


def test_an_empty_separator_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="separator is empty"):
        opened(csv_of(tmp_path, "car", "bus"), separator="")


def test_blanks_and_empty_sets_are_users_without_answers(tmp_path):
    column = opened(csv_of(tmp_path, "", "  ", ";;", "bus;;", '""'))
    assert sets_of(column) == [[], [], [], [1], []]
    assert column.num_users == 5


def test_repeated_answers_count_once(tmp_path):
    column = opened(csv_of(tmp_path, "bus;bus; bus ", "car;bike;car"))
    assert sets_of(column) == [[1], [2, 0]]


@pytest.mark.parametrize("inner", [pl.String, None])
def test_lists_of_parquet(tmp_path, inner):
    lists = [["car", "bike"], None, [], ["bus", None, "", "bus"]]
    series = pl.Series(lists, dtype=pl.List(inner) if inner else None)
    pl.DataFrame({"x": series}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"1 row without an answer .* row 2"):
        opened(tmp_path / "a.parquet")
    assert sets_of(opened(tmp_path / "a.parquet", missing="drop")) == [[2, 0], [], [1]]


def test_texts_of_parquet(tmp_path):
    pl.DataFrame({"x": ["car;bike", "", "bus", None]}).write_parquet(tmp_path / "a.parquet")
    assert sets_of(opened(tmp_path / "a.parquet", missing="drop")) == [[2, 0], [], [1]]


@pytest.mark.parametrize("values", [[1, 2], [[1], [2]], [True, False]])
def test_other_types_are_refused(tmp_path, values):
    pl.DataFrame({"x": values}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"'x' is of type .*: give text with sep"):
        opened(tmp_path / "a.parquet")


def test_too_many_answers_are_named_with_their_row(tmp_path):
    path = csv_of(tmp_path, "bus", "car;bike;bus", "car;bike;bus")
    with pytest.raises(
        DomainError,
        match=r"row 2 of column 'x' of a\.csv .* more than max_answers = 2 answers; 2 rows of 3",
    ):
        opened(path)
    assert sets_of(opened(path, max_answers=3)) == [[1], [2, 0, 1], [2, 0, 1]]
    assert sets_of(opened(path, truncate=True)) == [[1], [2, 0], [2, 0]]


def test_truncating_keeps_different_answers(tmp_path):
    path = csv_of(tmp_path, "bus;bus;car;bike", "bus")
    assert sets_of(opened(path, truncate=True)) == [[1, 2], [1]]


def test_answers_outside_the_domain_are_named_with_their_row(tmp_path):
    path = csv_of(tmp_path, "bus", "bike;plane", "ship")
    with pytest.raises(
        DomainError, match=r"row 2 of column 'x' .* holds a value with an answer outside"
    ):
        opened(path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_answers": 4}, ParameterError, "max_answers = 4 is above k = 3"),
        ({"max_answers": 0}, ParameterError, "max_answers = 0"),
        ({"domain": ["bus"], "max_answers": 1}, DomainError, "only 'bus'"),
        ({"domain": ["bus", "bus"]}, DomainError, "more than once"),
    ],
)
def test_impossible_questions(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        opened(csv_of(tmp_path, "bus", "bus"), **options)


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(DataError, match="no column 'x'"):
        (tmp_path / "b.csv").write_text("y\nbus\nbus\n")
        opened(tmp_path / "b.csv")
    with pytest.raises(DataError, match="1 row with a value: a shuffled collection"):
        opened(csv_of(tmp_path, "bus"))


@pytest.mark.parametrize(
    "second", [("bus",), ("bus", "car", "car"), ("bus", "plane"), ("bus", "bus;car;bike")]
)
def test_a_file_that_changes_between_the_passes(tmp_path, second):
    column = opened(csv_of(tmp_path, "bus", "car"))
    csv_of(tmp_path, *second)
    with pytest.raises(DataError, match="changed while it was being read"):
        sets_of(column)


def test_blocks_have_one_size_whatever_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 1000)
    frame = pl.DataFrame({"x": ["bus;car", "bike"] * 1250})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=300)
    for name in ("a.csv", "a.parquet"):
        column = opened(tmp_path / name)
        assert [len(block) for block in column.blocks()] == [1000, 1000, 500]
        assert sets_of(column) == [[1, 2], [0]] * 1250


def test_a_row_in_a_later_block_is_named_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 100)
    with pytest.raises(DomainError, match=r"row 251 of .* holds a value with an answer outside"):
        opened(csv_of(tmp_path, *["bus"] * 250, "plane"))
    with pytest.raises(DomainError, match=r"row 251 .* more than max_answers = 2 answers"):
        opened(csv_of(tmp_path, *["bus"] * 250, "bus;car;bike"))


def test_progress_is_reported(tmp_path):
    calls = []
    opened(csv_of(tmp_path, "bus", "car"), on_progress=lambda *call: calls.append(call))
    assert calls == [("checking", 2, None), ("checking", 2, 2)]


def test_values_in_memory():
    column = answer_sets_from_values(
        (each for each in [("car", "bike"), {"bus"}, []]), domain=DOMAIN, max_answers=2
    )
    assert sets_of(column) == [[2, 0], [1], []]
    assert "frame" not in repr(column)


@pytest.mark.parametrize("values", [[[1], [2]], [["bus"], [3.5]], [{"bus": 0}, {"car": 1}]])
def test_values_that_are_no_texts(values):
    with pytest.raises(DataError, match="values are not lists of text"):
        answer_sets_from_values(values, domain=DOMAIN, max_answers=2)
