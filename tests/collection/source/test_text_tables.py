"""Text tables as other programs write them: separators, encodings, packed, without a header."""

import enum
import gzip
import io
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from collection.source.opened import (
    answers_from_values,
    open_answer_sets,
    open_table,
)
from shuffledp.collection.source import tables
from shuffledp.collection.source.tables import source_of_values
from shuffledp.core.errors import DataError, DomainError, EmptyRowsWarning, ParameterError
from shuffledp.core.labels import checked_domain

TABLE = "id,answer,note\n1,yes,a;b\n2,no,c\n3,yes,\n"


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def codes(path, **how):
    column = open_table(path, "answer", domain=["no", "yes"], **how)
    return np.concatenate(list(column.blocks())).tolist()


# ---------------------------------------------------------------- separators
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_told_from_the_first_rows(tmp_path, separator):
    text = "id,answer,note\n1,yes,a b\n2,no,c\n3,yes,\n".replace(",", separator)
    path = write(tmp_path / "a.csv", text)
    assert codes(path) == codes(path, csv_separator=separator) == [1, 0, 1]


def test_texts_with_separators_do_not_mislead(tmp_path):
    assert codes(write(tmp_path / "a.csv", TABLE)) == [1, 0, 1]
    assert codes(write(tmp_path / "b.csv", '"id;x",answer\n"1;2",yes\n"3;4",no\n')) == [1, 0]
    # One column, whose header alone has a semicolon.
    drinks = open_table(write(tmp_path / "c.csv", "drinks; today\ntea\nwine\n"), "drinks; today")
    assert drinks.num_users == 2


def test_a_separator_that_is_given_wins(tmp_path):
    path = write(tmp_path / "a.csv", "id,answer:note\n1,yes\n")
    with pytest.raises(DataError, match="no column 'answer'"):
        codes(path)
    path = write(tmp_path / "a.csv", "id:answer\n1:yes\n2:no\n")
    assert codes(path, csv_separator=":") == [1, 0]
    for wrong in ("", "::", "\n", '"', "§"):
        with pytest.raises(ParameterError, match=r"csv_separator = .* is not one ASCII character"):
            codes(path, csv_separator=wrong)


def test_sets_and_words_take_separators_too(tmp_path):
    path = write(tmp_path / "a.csv", "id;answer\n1;yes, no\n2;no\n")
    sets = open_answer_sets(path, "answer", domain=["no", "yes"], max_answers=2, separator=",")
    assert [block.tolist() for block in sets.blocks()] == [[[1, 0], [0, -1]]]
    assert open_table(path, "answer", csv_separator=";").num_users == 2


# ---------------------------------------------------------------- headers
def test_no_header(tmp_path):
    path = write(tmp_path / "a.csv", "1;yes\n2;no\n")
    column = open_table(path, "column_2", domain=["no", "yes"], header=False)
    assert [block.tolist() for block in column.blocks()] == [[1, 0]]
    with pytest.raises(DataError, match="its columns: column_1, column_2"):
        open_table(path, "answer", header=False)


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = write(tmp_path / "a.csv", "answer,answer\nyes,no\nno,no\n")
    with pytest.raises(DataError, match=r"a\.csv has two columns called 'answer': name each"):
        codes(path)
    assert open_table(path, "column_1", domain=["no", "yes", "answer"], header=False).num_users == 3


@pytest.mark.slow
def test_a_header_longer_than_the_sample_is_read(tmp_path):
    names = [f"answer{number}" for number in range(10_000)]
    text = ",".join(names) + "\n" + "yes," * 9_999 + "no\n" + "no," * 9_999 + "no\n"
    path = write(tmp_path / "a.csv", text)
    assert open_table(path, "answer7", domain=["no", "yes"]).num_users == 2


# ---------------------------------------------------------------- encodings and packed files
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path, encoding):
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    data = marks.get(encoding, b"") + "answer;note\nyes;\u00fc\nno;\u65e5\n".encode(encoding)
    assert codes(write(tmp_path / "a.csv", data)) == [1, 0]
    path = write(tmp_path / "a.csv.gz", gzip.compress(data))
    column = open_table(path, "answer", domain=["no", "yes"])
    assert (
        [each.tolist() for each in column.blocks()]
        == [[1, 0]]
        == [each.tolist() for each in column.blocks()]
    )


def test_packed_tables_may_have_tabs(tmp_path):
    path = write(tmp_path / "a.tsv.gz", gzip.compress(b"id\tanswer\n1\tyes\n2\tno\n"))
    assert codes(path) == [1, 0]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"PK\x03\x04\x00\x00sheet", "it is a spreadsheet: save it as CSV"),
        ("a.csv", b"\x89PNG\r\n\x00\x00", "it is not text, whatever its name says"),
        ("a.csv", b"\xff\xfea\x00b", "no complete text in UTF-16"),
        ("a.csv.gz", b"answer\nyes\n", "no complete gzip file"),
        ("a.csv.gz", gzip.compress(b"answer\nyes\n")[:-4], "no complete gzip file"),
    ],
)
def test_what_is_no_text_gets_one_line(tmp_path, name, data, message):
    with pytest.raises(DataError, match=message) as error:
        codes(write(tmp_path / name, data))
    assert "\n" not in str(error.value)


def test_standard_input(monkeypatch):
    stream = SimpleNamespace(buffer=io.BytesIO(b"id;answer\n1;yes\n2;no\n3;yes\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    column = open_table("-", "answer")
    assert (column.num_users, column.question.labels) == (3, ("no", "yes"))
    assert [each.tolist() for each in column.blocks()] == [[1, 0, 1]]
    with pytest.raises(DataError, match="standard input is empty"):
        open_table("-", "answer")


# ---------------------------------------------------------------- decimal commas
def test_decimal_commas_where_semicolons_separate(tmp_path):
    def values(text):
        path = write(tmp_path / "a.csv", text)
        question = sdp.VectorMean(["x", "y"], norm_bound=9999)
        blocks = sdp.collection.open_column(path, None, question).blocks()
        return np.concatenate(list(blocks)).tolist()

    assert values("x;y\n1,5;2\n-0,25;1e1\n") == [[1.5, 2.0], [-0.25, 10.0]]
    assert values("x;y\n1.234,5;2\n1;3\n") == [[1234.5, 2.0], [1.0, 3.0]]
    with pytest.raises(DataError, match=r"row 1 .* no number"):
        values('x,y\n"1,5",2\n1,3\n')
    with pytest.raises(DataError, match=r"row 2 .* no number"):
        values("x;y\n1,5;2\n1.2;x\n0,5;x\n".replace("1.2", "12.34.5"))


@pytest.mark.parametrize(
    ("text", "stated", "expected"),
    [
        ("x;y;z\n1.234;2;3,5\n10;3;0,5\n", None, [1234.0, 10.0]),  # commas elsewhere in the file
        ("x;y\n1.234.567;2\n10;3\n", None, [1234567.0, 10.0]),
        ("x;y\n0.125;2\n1.234;3\n", None, [0.125, 1.234]),
        ("x;y\n1.234;2\n10;3\n", ".", [1.234, 10.0]),
        ("x;y\n1.234;2\n10;3\n", ",", [1234.0, 10.0]),
        ('x,y\n"1,5",2\n"1.000",3\n', ",", [1.5, 1000.0]),
        ("x;y\n1,234.5;2\n7;3\n", None, [1234.5, 7.0]),
        ("x;y\n10;1.234\n11;1,5\n", None, [10.0, 11.0]),  # no mark in the column that is asked
    ],
)
def test_one_decimal_mark_a_file(tmp_path, text, stated, expected):
    path = write(tmp_path / "a.csv", text)
    column = sdp.collection.open_column(path, "x", sdp.Mean(0, 1e7), decimal=stated)
    assert np.concatenate(list(column.blocks())).tolist() == expected


@pytest.mark.parametrize(
    "text", ["x;y\n1.234;2\n10;3\n", "x;y\n1,234;2\n10;3\n", "x;y\n1.5;2\n10;3,5\n"]
)
def test_numbers_that_could_be_either_are_refused(tmp_path, text):
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(DataError, match=r"could be either: say .* decimal='.' or decimal=','"):
        sdp.collection.open_column(path, "x", sdp.Mean(0, 1e7))


# ---------------------------------------------------------------- the form of a table
def test_the_header_is_read_as_a_whole_record(tmp_path):
    names = [*(f"answer{number}" for number in range(10_000)), "answer7"]
    path = write(tmp_path / "a.csv", ",".join(names) + "\n")
    with pytest.raises(DataError, match="two columns called 'answer7'"):
        open_table(path, "answer1")
    path = write(tmp_path / "b.csv", '"id\nof user";answer\n1;yes\n2;no\n')
    assert codes(path) == [1, 0]
    path = write(tmp_path / "c.csv", '"an\nswer","an\nswer"\nyes,no\nno,no\n')
    with pytest.raises(DataError, match="two columns called"):
        open_table(path, "an\nswer")


def test_an_empty_line_of_several_columns_is_nobody(tmp_path):
    for end in ("\n", "\r\n"):
        path = write(tmp_path / "a.csv", f"1,yes{end}2,no{end}{end}3,yes{end}{end}")
        column = open_table(path, "column_2", header=False)
        assert (column.num_users, column.num_missing) == (3, 0)
    with pytest.raises(DataError, match="1 row without an answer"):  # of one column, somebody's
        open_table(write(tmp_path / "b.csv", "answer\nyes\n\nno\n"), "answer")


def test_rows_below_a_table_of_a_spreadsheet_are_warned_of(tmp_path):
    for name, end in (("a.csv", ";;\r\n;;\r\n"), ("b.csv", ";;"), ("c.tsv", "\t\t\n")):
        row = end[0].join(["1", "yes", "x"])
        path = write(tmp_path / name, f"{end[0].join(['id', 'answer', 'z'])}\n{row}\n{row}\n{end}")
        with pytest.warns(EmptyRowsWarning, match="ends in a row of separators alone"):
            assert open_table(path, "answer", missing="category", domain=["yes", "no"])
    for text in ("answer\nyes\nno\n\n", "answer,x\nyes,\nno,\n"):
        assert open_table(write(tmp_path / "d.csv", text), "answer", missing="drop").num_users == 2


def test_a_line_for_spreadsheets_is_explained(tmp_path):
    path = write(tmp_path / "a.csv", "sep=;\nanswer;x\nyes;1\nno;2\n")
    with pytest.raises(DataError, match="begins with 'sep=', a line for spreadsheets alone"):
        open_table(path, "answer")


# ---------------------------------------------------------------- texts for no answer
def test_texts_for_no_answer_can_be_declared(tmp_path):
    path = write(tmp_path / "a.csv", "x,answer\n1,yes\n-99,NA\n2,no\n")
    column = open_table(path, "answer", domain=["no", "yes"], missing="drop", missing_texts=["NA"])
    assert (column.num_users, column.num_missing) == (2, 1)
    for question in (sdp.Mean(-100, 100), sdp.HeavyHitters(max_bytes=4)):
        column = sdp.collection.open_column(
            path, "x", question, missing="drop", missing_texts=["-99"]
        )
        assert (column.num_users, column.num_missing) == (2, 1)
    sets = sdp.AnswerSets(["yes", "no"], max_answers=1)
    column = sdp.collection.open_column(path, "answer", sets, missing="drop", missing_texts=["NA"])
    assert (column.num_users, column.num_missing) == (2, 1)
    with pytest.raises(ParameterError, match="missing_texts has 'no', which the domain lists"):
        open_table(path, "answer", domain=["no", "yes"], missing_texts=["no"])


# ---------------------------------------------------------------- what looks alike
ALIKE = ("caf\xe9 au lait", "cafe\u0301 au lait", " caf\xe9\xa0au\u2009lait\u200b ")


def test_texts_that_look_alike_are_one_answer(tmp_path):
    path = tmp_path / "a.csv"
    pl.DataFrame({"id": range(4), "answer": [*ALIKE, "tea"]}).write_csv(path)
    for domain in (["tea", each] for each in ALIKE):
        assert np.concatenate(
            list(open_table(path, "answer", domain=domain, other=True).blocks())
        ).tolist() == [1, 1, 1, 0]
        assert sdp.Categories(domain).value_of_one(ALIKE[2]).tolist() == [1]


class Colour(str, enum.Enum):  # noqa: UP042  # the older kind, whose str is not its value
    RED, BLUE = "red", "blue"


def test_members_of_enumerations_are_their_values():
    question = sdp.Categories(Colour)
    assert question.domain == ("red", "blue")
    assert all(type(label) is str for label in question.domain)
    assert next(question.column([Colour.BLUE, Colour.RED]).blocks()).tolist() == [1, 0]
    assert question.value_of_one(Colour.BLUE).tolist() == [1]


# ---------------------------------------------------------------- lists of answers
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", " a"], "domain lists 'a' and ' a', which nobody can tell apart"),
        (["e\u0301", "\xe9"], r"lists 'e\\u0301' and '\xe9', which nobody"),
        ([True, 1], "lists True and 1, which nobody"),
        ([0, False], "lists 0 and False, which nobody"),
        ([1, "1"], "lists 1 and '1', which nobody"),
        (["a", "a"], "lists 'a' more than once"),
        ([1, 1.0], "lists '1' more than once"),
        (["a", "a\u200b"], r"lists 'a' and 'a\\u200b', which nobody"),
        (["a", None], "has an empty answer at position 2"),
        (["a", float("nan")], "has an empty answer at position 2"),
    ],
)
def test_answers_that_look_alike_are_refused_with_the_pair(values, message):
    with pytest.raises(DomainError, match=message):
        checked_domain(values)
    with pytest.raises(DomainError, match=message):
        sdp.Categories(values)


def test_pictures_that_a_joiner_changes_are_two_answers():
    women = "\U0001f469", "\U0001f469"
    assert len(checked_domain(["".join(women), "\u200d".join(women)])) == 2


@pytest.mark.parametrize("values", [[1, True], [0.5, False], ["yes", True], [np.True_, 1]])
def test_booleans_are_neither_numbers_nor_texts(values):
    for question in (sdp.Categories(["yes", "1", "true"]), sdp.Mean(0, 1)):
        with pytest.raises(DataError, match=r"holds booleans among .*: convert them first"):
            question.column(values)


def test_missing_as_an_answer_has_to_be_listed():
    values = ["yes", "no", None]
    with pytest.raises(DomainError, match="'missing', which is not in the domain: list it there"):
        sdp.Categories(["yes", "no"]).column(values, missing="category")
    listed = sdp.Categories(["yes", "no", "missing"]).column(values, missing="category")
    assert [code for block in listed.blocks() for code in block] == [0, 1, 2]


def test_answers_read_from_the_data_that_look_alike_are_one():
    assert answers_from_values(["a", " a", "b"]).question.labels == ("a", "b")


def test_numbers_of_numpy_have_the_labels_of_python():
    assert checked_domain(np.array([True, False])) == ("true", "false")
    assert checked_domain(np.array([1.0, 2.5], dtype=np.float32)) == ("1", "2.5")


# ---------------------------------------------------------------- values in memory
class Arrow:
    """Only what Arrow's interface for Python promises."""

    def __init__(self, series):
        self._series = series

    def __iter__(self):
        return iter(self._series.to_list())

    def __arrow_c_stream__(self, requested_schema=None):
        return self._series.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["no", "yes"])])
def test_arrow_arrays_and_dictionary_arrays(dtype):
    values = Arrow(pl.Series(["yes", None, "no"], dtype=dtype))
    column = answers_from_values(values, domain=["no", "yes"], missing="drop")
    assert [each.tolist() for each in column.blocks()] == [[1, 0]]


def missing_in_pandas():
    pd = pytest.importorskip("pandas")
    values = ["yes", None, "no"]
    return [pd.Series(values, dtype=dtype) for dtype in (None, object, "string", "category")]


@pytest.mark.parametrize("number", range(4))
def test_missing_values_of_pandas(number):
    series = missing_in_pandas()[number]
    plan = sdp.plan(sdp.Categories(["no", "yes"]), num_users=200, epsilon=1.0, delta=1e-6)
    values = series.repeat(100)
    with pytest.raises(DataError, match=r"100 rows without an answer.*missing='drop'"):
        sdp.run(plan, values)
    result = sdp.run(plan, values, missing="drop", seed=1)
    assert result.num_users == 200
    assert "Dropped: 100 rows" in result.warnings[0]
    with pytest.raises(
        DomainError, match=r"counts rows without an answer as 'missing', which is not in the"
    ):
        sdp.run(plan, values, missing="category")
    counted = sdp.Categories(["no", "yes", "missing"])
    all_of_them = sdp.plan(counted, num_users=300, epsilon=1.0, delta=1e-6)
    assert sdp.run(all_of_them, values, missing="category", seed=1).num_users == 300


def test_missing_numbers_of_pandas():
    pd = pytest.importorskip("pandas")
    for dtype in ("Int64", "float64", object):
        series = pd.Series([1, None, 3], dtype=dtype)
        column = sdp.Mean(0, 5).column(series, missing="drop")
        assert [each.tolist() for each in column.blocks()] == [[1.0, 3.0]]


def test_missing_sets_words_and_vectors():
    sets = sdp.AnswerSets(["a", "b"], max_answers=1)
    with pytest.raises(DataError, match=r"1 row without an answer .* is row 2"):
        sets.column([["a"], None, []])
    column = sets.column([["a"], None, []], missing="drop")
    assert (column.num_users, column.num_missing) == (2, 1)
    assert column.cautions[0].startswith("Dropped: 1 row")
    with pytest.raises(DataError, match="not lists of text"):
        sets.column(["a", "b"])
    vectors = sdp.VectorMean(["x", "y"]).column([[0.1, 0.2], [0.3, np.nan], [0, 0]], missing="drop")
    assert (vectors.num_users, vectors.num_missing) == (2, 1)


@pytest.mark.parametrize(
    "values", [{"yes", "no"}, frozenset(["yes"]), {"yes": 1}, "yes", b"yes", 5]
)
def test_what_is_no_list_of_answers_is_refused(values):
    with pytest.raises(DataError, match="does not hold one answer a user"):
        source_of_values("answer", values)
    with pytest.raises(DataError, match="does not hold one answer a user"):
        sdp.AnswerSets(["yes", "no"], max_answers=1).column(values)


def test_a_set_is_no_domain():
    with pytest.raises(ParameterError, match="is a set, which has no order"):
        sdp.Categories({"yes", "no"})


def test_an_empty_line_of_many_columns_is_nobody_and_keeps_the_order(tmp_path):
    names = [f"c{place}" for place in range(3000)]
    rows = [[str(row)] * 3000 for row in range(40)]
    lines = [",".join(row) for row in [names, *rows]]
    lines[7:7] = [""]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n\r\n")
    source = tables.open_source(tmp_path / "a.csv", "c2999")
    found = pl.concat(source.batches(source.frame.select("c2999"), check=True)).to_series()
    assert found.to_list() == [str(row) for row in range(40)]
