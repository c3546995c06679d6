"""Tables, their columns and labels."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collection.source.opened import answers_from_values, open_table
from shuffledp.collection.questions import categories
from shuffledp.collection.source import tables
from shuffledp.collection.source.tables import reading, rows_of_numbers
from shuffledp.core import labels
from shuffledp.core.display import showing_values
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.labels import (
    checked_domain,
    label_expression,
    label_of,
    read_domain,
    require_two_answers,
    sorted_labels,
)

# ---------------- tables
DOMAIN = ("yes", "no", "refused")


def codes_of(column):
    blocks = list(column.blocks())
    return np.concatenate(blocks).tolist() if blocks else []


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.fixture(params=["csv", "tsv", "parquet"])
def table(request, tmp_path):
    frame = pl.DataFrame({"id": [1, 2, 3, 4], "answer": ["no", "yes", "refused", "no"]})
    path = tmp_path / f"answers.{request.param}"
    if request.param == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if request.param == "csv" else "\t")
    return path


def test_a_declared_domain_gives_its_codes(table):
    column = open_table(table, "answer", domain=DOMAIN)
    assert column.num_users == 4
    assert column.question.labels == DOMAIN
    assert codes_of(column) == [1, 0, 2, 1]
    assert column.cautions == ()


def test_a_domain_read_from_the_data_is_sorted_and_says_so(table):
    column = open_table(table, "answer")
    assert column.question.labels == ("no", "refused", "yes")
    assert codes_of(column) == [0, 2, 1, 0]
    assert "read from the data" in column.cautions[0]


def test_the_data_can_be_read_again(table):
    column = open_table(table, "answer")
    assert codes_of(column) == codes_of(column)


def test_the_representation_shows_no_answers(table):
    assert "refused', 'yes'" in repr(open_table(table, "answer"))
    assert "label" not in repr(open_table(table, "answer"))


def test_blocks_have_one_size_whatever_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 1000)
    frame = pl.DataFrame({"answer": ["yes", "no"] * 1250})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=300)
    for name in ("a.csv", "a.parquet"):
        column = open_table(tmp_path / name, "answer", domain=DOMAIN)
        assert [block.size for block in column.blocks()] == [1000, 1000, 500]
        assert codes_of(column) == [0, 1] * 1250


def test_csv_is_text_so_late_surprises_do_no_harm(tmp_path):
    path = write(tmp_path / "a.csv", "answer\n" + "1\n" * 5000 + "01\nnone\n")
    assert open_table(path, "answer").question.labels == ("01", "1", "none")


def test_numbers_booleans_and_dates_become_labels(tmp_path):
    frame = pl.DataFrame(
        {"number": [1.0, 2.5], "flag": [True, False], "day": ["2020-01-02", "2021-01-02"]}
    ).with_columns(pl.col("day").str.to_date())
    frame.write_parquet(tmp_path / "a.parquet")
    domains = [open_table(tmp_path / "a.parquet", name).question.labels for name in frame.columns]
    assert domains == [("1", "2.5"), ("false", "true"), ("2020-01-02", "2021-01-02")]


def test_domain_of_numbers_matches_numbers_in_the_file(tmp_path):
    pl.DataFrame({"rating": [1.0, 3.0, None]}).write_parquet(tmp_path / "a.parquet")
    column = open_table(tmp_path / "a.parquet", "rating", domain=[1, 2, 3], missing="drop")
    assert codes_of(column) == [0, 2]


# ------------------------------------------------------------------ values outside, and missing


def test_a_value_outside_is_named_with_its_row(tmp_path):
    path = write(tmp_path / "a.csv", "answer\nyes\nno\nmaybe\nmaybe\nno\n")
    with pytest.raises(
        DomainError, match=r"row 3 of .* holds a value outside .*2 rows of 5"
    ) as error:
        open_table(path, "answer", domain=DOMAIN)
    assert "other=True" in str(error.value)


def test_other_takes_what_is_outside():
    column = answers_from_values(["yes", "maybe", "no", "x"], domain=DOMAIN, other=True)
    assert column.question.labels == (*DOMAIN, "other")
    assert codes_of(column) == [0, 3, 1, 3]


def test_other_may_be_listed_already():
    column = answers_from_values(["x", "other"], domain=["yes", "other"], other=True)
    assert column.question.labels == ("yes", "other")
    assert codes_of(column) == [1, 1]


def test_other_needs_a_domain():
    with pytest.raises(ParameterError, match="needs a domain"):
        answers_from_values(["yes"], other=True)


MISSING = ["yes", None, "", "NaN", "null", "no"]


def test_missing_answers_are_an_error_with_count_and_first_row():
    with pytest.raises(DataError, match=r"4 rows without an answer .* first is row 2"):
        answers_from_values(MISSING, domain=DOMAIN)


def test_one_missing_answer_is_said_in_the_singular():
    with pytest.raises(DataError, match="1 row without an answer"):
        answers_from_values([1.0, float("nan"), 2.0])


def test_missing_answers_can_be_dropped():
    column = answers_from_values(MISSING, domain=DOMAIN, missing="drop")
    assert (column.num_users, column.num_missing) == (2, 4)
    assert codes_of(column) == [0, 1]
    assert "4 rows without an answer" in column.cautions[0]


def test_missing_answers_can_be_an_answer():
    column = answers_from_values(MISSING, domain=DOMAIN, missing="category", other=True)
    assert column.question.labels == (*DOMAIN, "other", "missing")
    assert codes_of(column) == [0, 4, 4, 4, 4, 1]
    assert column.cautions == ()


def test_a_domain_may_list_texts_that_usually_mean_missing():
    column = answers_from_values(["null", "nan", None], domain=["null", "nan"], missing="drop")
    assert codes_of(column) == [0, 1]


def test_missing_texts_are_not_read_as_answers():
    assert answers_from_values(MISSING, missing="drop").question.labels == ("no", "yes")


def test_unknown_policy():
    with pytest.raises(ParameterError, match="error, drop, category"):
        answers_from_values(["a", "b"], missing="ignore")


# ------------------------------------------------------------------ values in memory


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b"],
        ("b", "a", "b"),
        (letter for letter in "bab"),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pl.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Index(["b", "a", "b"]),
        pd.Categorical(["b", "a", "b"]),
        pd.array(["b", "a", "b"]),
    ],
    ids=[
        *("list", "tuple", "generator", "numpy", "objects", "polars"),
        *("pandas", "pandas-category", "pandas-index", "pandas-categorical", "pandas-array"),
    ],
)
def test_values_in_memory(values):
    column = answers_from_values(values)
    assert column.question.labels == ("a", "b")
    assert codes_of(column) == [1, 0, 1]


def test_numpy_numbers_in_memory():
    assert codes_of(answers_from_values(np.array([2, 0, 2]), domain=range(3))) == [2, 0, 2]


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "category"])
def test_large_numbers_of_pandas_beside_gaps(dtype):
    numbers = [2**53 + 1, 2**53]
    series = pd.Series([*numbers, None], dtype="Int64").astype(dtype)
    assert codes_of(answers_from_values(series, domain=numbers, missing="drop")) == [0, 1]
    floats = pd.DataFrame({"a": [2.0**60]})
    with pytest.raises(DataError, match="2 dimensions"):
        answers_from_values(floats)


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_every_unit(unit):
    days = np.array(["2026-01-02", "2026-01-03"], dtype=f"datetime64[{unit}]")
    assert codes_of(answers_from_values(days, domain=days)) == [0, 1]
    series = pd.Series(days)
    assert codes_of(answers_from_values(series, domain=series)) == [0, 1]
    assert codes_of(answers_from_values(list(days), domain=list(days))) == [0, 1]


def test_times_finer_than_labels_are_refused():
    times = np.array(["2026-01-02T00:00:00.000000001", "2026-01-02"], dtype="datetime64[ns]")
    for values, how in ((times, {}), (times.astype("M8[us]"), {"domain": times})):
        with pytest.raises(
            DataError, match=r"^times are finer than microseconds, as labels are: round them$"
        ):
            answers_from_values(values, **how)


def test_floats_of_32_bits_have_the_digits_that_they_show():
    numbers = pl.Series([0.1, 0.2], dtype=pl.Float32)
    for domain in (numbers, numbers.to_numpy(), pd.Series(numbers.to_numpy())):
        assert answers_from_values(numbers, domain=domain).question.labels == ("0.1", "0.2")


def test_arrow_types_that_polars_does_not_know_are_refused():
    class Unknown:
        def __iter__(self):
            return iter("ab")

        def __arrow_c_stream__(self, requested_schema=None):
            raise pl.exceptions.ComputeError("the datatype is still not supported")

    with pytest.raises(DataError, match="cannot read values: the datatype is still not"):
        answers_from_values(Unknown())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", 1], "answers of one type"),
        (np.zeros((2, 2)), "2 dimensions"),
        ([["a"], ["b"]], "is of type List"),
        ([], "0 rows"),
        (["a"], "1 row with a value:"),
        ([2**53 + 1, 0.5], r"whole numbers above 2\^53 among floats"),
        ([10**400, 0.5], r"whole numbers above 2\^53 among floats"),
        ([None, None], "2 rows without an answer"),
    ],
)
def test_values_that_are_no_answers(values, message):
    with pytest.raises(DataError, match=message):
        answers_from_values(values)


def test_values_are_in_no_message_unless_asked_for():
    for call in (
        lambda: answers_from_values([1, "secret"]),
        lambda: rows_of_numbers([[1.0, "secret"]], ["a", "b"]),
    ):
        with pytest.raises(DataError) as refused:
            call()
        assert "secret" not in str(refused.value)
        with showing_values(), pytest.raises(DataError, match=r" \("):
            call()


def test_one_user_left_after_dropping():
    with pytest.raises(DataError, match=r"1 row with a value \(1 row without\)"):
        answers_from_values(["a", None], domain=["a", "b"], missing="drop")


def test_a_single_answer_is_no_domain():
    with pytest.raises(DomainError, match="only 'a'"):
        answers_from_values(["a", "a"])
    with pytest.raises(DomainError, match="domain has only 'a'"):
        answers_from_values(["a", "a"], domain=["a"])


def test_identifiers_are_no_answers(monkeypatch):
    monkeypatch.setattr(categories, "MAX_DISCOVERED", 10)
    with pytest.raises(DomainError, match="more than 10 distinct values"):
        answers_from_values(range(11))
    assert len(answers_from_values(range(10)).question.labels) == 10


# ------------------------------------------------------------------ files that cannot be used


def test_the_nearest_column_is_suggested(table):
    with pytest.raises(DataError, match=r"did you mean 'answer'\? \(its columns: id, answer\)"):
        open_table(table, "Anwser")


def test_no_suggestion_without_a_near_name(table):
    with pytest.raises(DataError, match=r"no column 'zzz' \(its columns"):
        open_table(table, "zzz")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"answer\n", "0 rows"),
        (b"answer\nyes\n", "1 row with a value:"),
        (b"answer\nyes\n\xff\xfe\n", "not text in UTF-8"),
        (b"answer,x\nyes,1\nno,1,2\n", "more fields than the header"),
        (b"x,answer\n1,yes\n1,a,no\n", "more fields than the header"),
        (b'answer\nyes\n"no\n', "quotation mark"),
        (b"answer,b\n" + b'n"o,1\nyes,2\n' * 20, "quotation mark"),
    ],
)
def test_bad_csv(tmp_path, data, message):
    path = write(tmp_path / "a.csv", data)
    with pytest.raises(DataError, match=message) as error:
        open_table(path, "answer", domain=("yes", "no"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -8])
def test_truncated_parquet(tmp_path, keep):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"answer": ["yes", "no"] * 1000}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="no complete Parquet file"):
        open_table(path, "answer")


def test_parquet_with_damaged_pages(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"answer": ["yes", "no"] * 10_000}).write_parquet(path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"cannot read a\.parquet"):
        open_table(path, "answer")


def test_absent_files_folders_and_other_formats(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        open_table(tmp_path / "a.csv", "answer")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(DataError, match="it is a folder"):
        open_table(tmp_path / "b.csv", "answer")
    with pytest.raises(DataError, match=r"none of \.csv, \.tsv"):
        open_table(write(tmp_path / "c.xlsx", b"x"), "answer")


def test_a_file_name_is_no_pattern(tmp_path):
    path = write(tmp_path / "a[1]*.csv", "answer\nyes\nno\n")
    assert open_table(path, "answer").num_users == 2


@pytest.mark.parametrize("more", ["yes\n", "maybe\n", "\n"])
def test_a_file_that_changes_between_the_passes(tmp_path, more):
    path = write(tmp_path / "a.csv", "answer\nyes\nno\n")
    column = open_table(path, "answer", domain=DOMAIN)
    write(path, "answer\nyes\n" + more)
    if more == "yes\n":
        write(path, "answer\nyes\n")
    with pytest.raises(DataError, match="changed while it was being read"):
        codes_of(column)


def test_a_file_that_is_damaged_between_the_passes(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"answer": ["yes", "no"]}).write_parquet(path)
    column = open_table(path, "answer")
    path.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"a\.parquet"):
        codes_of(column)


def test_progress_is_reported(table):
    calls = []
    open_table(table, "answer", on_progress=lambda *call: calls.append(call))
    assert calls[-1] == ("checking", 4, 4)
    assert ("reading the answers", 4, 4) in calls


def test_domain_files(tmp_path):
    path = write(tmp_path / "domain.txt", "yes\n\n no, thanks \nrefused\n")
    assert read_domain(path) == ("yes", "no, thanks", "refused")


@pytest.mark.parametrize("data", [None, b"\xff\xff"])
def test_domain_files_that_cannot_be_read(tmp_path, data):
    path = tmp_path / "domain.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DataError, match=r"(No such file|it is not text in UTF-8)"):
        read_domain(path)


# ---------------- labels
DATES = [dt.datetime.fromisoformat(each) for each in ("2024-01-01", "2024-01-01 02:03:04.0005")]
COLUMNS = {
    "text": pl.Series(["yes", " no", "01", "übrig"]),
    "boolean": pl.Series([True, False]),
    "integer": pl.Series([3, -1, 0], dtype=pl.Int16),
    "float": pl.Series([1.0, 0.5, -0.0, float("inf"), 12345678.0]),
    "small float": pl.Series([1e-7, 1e16, 0.1, 1e22, float("nan"), None]),
    "datetime": pl.Series([*DATES, None]),
    "zoned": pl.Series(DATES[:1], dtype=pl.Datetime("ms", "Europe/Paris")),
    "marked": pl.Series(["e\u0301", "a\xa0b", "\t", "a\u200bb", "a\u3000"]),
    "date": pl.Series([dt.date(2020, 1, 2)]),
    "time": pl.Series([dt.time(3, 4, 5)]),
    "decimal": pl.Series([decimal.Decimal("1.50")]),
    "categorical": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
    "enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_and_its_values_have_the_same_labels(name):
    series = COLUMNS[name].alias("x")
    labels = series.to_frame().select(label_expression("x", series.dtype)).to_series().to_list()
    assert [each or "" for each in labels] == [label_of(value) for value in series.to_list()]


def scalars():
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    times = st.datetimes() | st.dates() | st.times()
    return text | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats() | times


@given(scalars(), st.none() | st.just("filler"))
def test_every_value_has_one_label(value, filler):
    series = pl.Series("x", [value, None], strict=True)
    labels = series.to_frame().select(label_expression("x", series.dtype)).to_series().to_list()
    assert (labels[0] or "") == label_of(value)
    assert labels[1] is None
    if isinstance(value, str):
        assert label_of(label_of(value)) == label_of(value)


def test_whole_floats_lose_their_fraction_and_negative_zero_its_sign():
    assert [label_of(value) for value in (1.0, 2.5, -0.0)] == ["1", "2.5", "0"]
    assert label_of(np.int8(3)) == "3"
    assert label_of(np.datetime64("2024-01-02T03:04")) == "2024-01-02 03:04:00"


def test_missing_values_stay_missing():
    series = pl.Series("x", [1.5, None])
    labels = series.to_frame().select(label_expression("x", series.dtype)).to_series().to_list()
    assert labels == ["1.5", None]


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [dt.timedelta(1)], [b"ab"]])
def test_columns_that_hold_no_answers_are_refused(values):
    series = pl.Series("x", values)
    with pytest.raises(DataError, match="'x' is of type"):
        label_expression("x", series.dtype)


def test_domain_keeps_its_order():
    assert checked_domain(["b", 1, False, 2.0]) == ("b", "1", "false", "2")


@pytest.mark.parametrize(
    ("values", "message"),
    [(["a", "b", "a"], "'a' more than once"), (["a", ""], "empty answer at position 2")],
)
def test_bad_domains_are_refused(values, message):
    with pytest.raises(DomainError, match=message):
        checked_domain(values)


@pytest.mark.parametrize("labels", [(), ("a",)])
def test_a_question_needs_two_answers(labels):
    with pytest.raises(DomainError, match="at least two possible answers"):
        require_two_answers(labels, "domain")


def test_labels_are_sorted_as_numbers_if_they_all_are():
    assert sorted_labels({"10", "9", "-1"}) == ("-1", "9", "10")
    assert sorted_labels({"10", "9", "x"}) == ("10", "9", "x")


# ---------------- reading
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (pl.exceptions.ComputeError("first\nsecond"), "^cannot read f: first$"),
        (pl.exceptions.ComputeError(""), "^cannot read f: unknown error$"),
        (PermissionError(13, "no"), "^cannot read f: permission denied$"),
    ],
)
def test_errors_become_one_line(error, message):
    with pytest.raises(DataError, match=message), reading("f"):
        raise error


def test_own_errors_pass():
    with pytest.raises(DomainError, match="mine"), reading("f"):
        raise DomainError("mine")


@pytest.mark.parametrize(("mark", "text"), [(".", "1,234.5"), (",", "1.234,5")])
def test_numbers_in_groups_have_one_decimal_mark(mark, text):
    assert labels._with_points(pl.Series([text, None]), mark).to_list() == ["1234.5", None]
