"""Tables of histories: values, users, rows."""

import datetime as dt
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.monitoring import history_tables as history_users
from shuffledp.monitoring import history_tables as tables
from shuffledp.monitoring.history_tables import open_history_table, user_coder, value_coding


def codes(columns, value, **options):
    frame = pl.DataFrame(columns)
    coding = value_coding(value, **options)
    return frame.lazy().select(coding.expression(frame.schema, "x.csv")).collect().to_series()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, None], [1, 0, None]),
        ([1, 0, 2, None], [1, 0, None, None]),
        ([1.0, 0.0, 0.5, float("nan")], [1, 0, None, None]),
        (["1", " TRUE", "false", "0", "no", None], [1, 1, 0, 0, None, None]),
    ],
)
def test_booleans(values, expected):
    assert codes({"v": values}, "v").to_list() == expected


def test_categories_are_places_in_the_list():
    assert codes({"v": ["b", "a", "c", None]}, "v", categories="ab").to_list() == [1, 0, None, None]
    assert codes({"v": [3, 1, 2]}, "v", categories=[1, 3]).to_list() == [1, 0, None]


def test_before_the_first_row_there_is_nothing():
    assert value_coding("v").before == 0
    assert value_coding("v", categories="ab").before == -1


@pytest.mark.parametrize(
    ("value", "options", "error", "message"),
    [
        ("v", {"categories": "a"}, DomainError, "fewer than two"),
        ("v", {"categories": "aa"}, DomainError, "more than once"),
    ],
)
def test_what_is_no_domain_is_refused(value, options, error, message):
    with pytest.raises(error, match=message):
        value_coding(value, **options)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([["a"]], {}, "no boolean"),
        ([["a"]], {"categories": "ab"}, "no list of answers"),
    ],
)
def test_a_column_of_another_type_is_refused(values, options, message):
    with pytest.raises(DataError, match=message):
        codes({"v": values}, "v", **options)


def coder_of(batches, dtype=pl.String):
    def all_batches():
        return iter([pl.Series("user", batch, dtype=dtype) for batch in batches])

    numbers = [each for batch in batches for each in batch]
    limits = (min(numbers), max(numbers)) if dtype == pl.Int64 and numbers else None
    return user_coder(all_batches, limits)


def series(users, dtype=pl.String):
    return pl.Series("anything", users, dtype=dtype)


@given(st.lists(st.lists(st.text(max_size=3), max_size=40), max_size=5))
def test_texts_are_numbered_by_their_order(batches):
    coder = coder_of(batches)
    distinct = sorted({each.encode() for batch in batches for each in batch})
    assert [each.encode() for each in coder.ids] == distinct
    for batch in batches:
        expected = [distinct.index(each.encode()) for each in batch]
        assert coder.codes(series(batch)).tolist() == expected


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)), max_size=5))
def test_numbers_are_numbered_by_their_order(batches):
    coder = coder_of(batches, pl.Int64)
    distinct = sorted({each for batch in batches for each in batch})
    assert coder.ids.to_list() == distinct
    for batch in batches:
        expected = [distinct.index(each) for each in batch]
        assert coder.codes(series(batch, pl.Int64)).tolist() == expected


@pytest.mark.parametrize("scale", [1, 10**9])
def test_a_number_that_was_not_there_has_no_code(scale):
    coder = coder_of([[scale, 3 * scale]], pl.Int64)
    for other in (0, 2 * scale, 4 * scale):
        assert coder.codes(series([scale, other], pl.Int64)) is None
    assert coder.codes(series([3 * scale], pl.Int64)).tolist() == [1]
    assert coder.codes(series([], pl.Int64)).tolist() == []


def test_a_text_that_was_not_there_has_no_code():
    coder = coder_of([["a", "b"]])
    assert coder.codes(series(["c"])) is None
    assert coder.codes(series(["c"])) is None
    assert coder.codes(series(["b"])).tolist() == [1]


def test_many_users_in_many_batches():
    ids = [f"{i * 7919 % 5000}" for i in range(20_000)]
    coder = coder_of([ids[start : start + 999] for start in range(0, 20_000, 999)])
    codes = coder.codes(series(ids))
    assert coder.ids.gather(codes).to_list() == ids


def _colliding(bad_seeds):
    def hashes(users, seed):
        found = users.hash(seed).to_numpy()
        return found % np.uint64(3) if seed in bad_seeds else found

    return hashes


def test_hashes_that_collide_are_noticed_and_another_seed_is_taken(monkeypatch):
    monkeypatch.setattr(history_users, "_hashes", _colliding({0, 1}))
    ids = [str(i) for i in range(50)]
    coder = coder_of([ids])
    assert coder.ids.gather(coder.codes(series(ids))).to_list() == ids
    monkeypatch.setattr(history_users, "_hashes", _colliding(range(10)))
    with pytest.raises(DataError, match="cannot be told apart"):
        coder_of([ids])


def test_a_hash_that_collides_later_names_nobody_else(monkeypatch):
    coder = coder_of([["a"]])
    hash_of_a = history_users._hashes(series(["a"]), 0)
    monkeypatch.setattr(history_users, "_hashes", lambda users, seed: hash_of_a.copy())
    assert coder.codes(series(["b"])) is None


def test_too_many_users_are_refused(monkeypatch):
    monkeypatch.setattr(history_users, "_MOST_USERS", 3)
    with pytest.raises(DataError, match="more than 2 users"):
        coder_of([["a", "b"], ["c", "d"]])


_NAMES = {"user": "id", "time": "day", "value": "on"}


def table(rows, **options):
    frame = pl.DataFrame(rows, schema=["id", "day", "on"], orient="row")
    return open_history_table(frame, **_NAMES, **options)


def all_rows(opened):
    blocks = list(opened.blocks())
    return [np.concatenate(column).tolist() for column in zip(*blocks, strict=True)]


ROWS = [("b", 1, True), ("a", 2, False), ("b", 3, False), ("c", 3, True)]


def test_rows_become_codes_in_the_order_of_the_table():
    opened = table(ROWS)
    assert opened.user_ids.to_list() == ["a", "b", "c"]
    assert (opened.periods, opened.num_rows) == (3, 4)
    assert all_rows(opened) == [[1, 0, 1, 2], [1, 2, 3, 3], [1, 0, 0, 1]]
    assert all_rows(opened) == all_rows(opened)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_files_of_all_formats_say_the_same(tmp_path, suffix):
    frame = pl.DataFrame(ROWS, schema=["id", "day", "on"], orient="row")
    path = tmp_path / f"x{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if suffix == ".csv" else "\t")
    opened = open_history_table(path, **_NAMES)
    assert opened.origin == path.name
    assert all_rows(opened) == all_rows(table(ROWS))


@pytest.mark.parametrize(
    "ids", [[5, 6, 7], [-3, 10**6, 10**15], [0, 1, 2**62], ["7", "5", "6"], ["ä", "b", ""]]
)
def test_users_are_numbered_by_their_sorted_identifiers(ids):
    opened = table([(each, 1, False) for each in ids])
    assert opened.user_ids.to_list() == sorted(ids)
    assert [sorted(ids)[code] for code in all_rows(opened)[0]] == ids


def test_small_and_unsigned_numbers_and_categories_name_users():
    for dtype in (pl.UInt8, pl.Categorical):
        ids = pl.Series(["3", "200"]).cast(pl.Int64 if dtype == pl.UInt8 else pl.String).cast(dtype)
        frame = pl.DataFrame({"id": ids, "day": [1, 1], "on": [0, 1]})
        assert open_history_table(frame, **_NAMES).user_ids.len() == 2


def test_blocks_join_up(monkeypatch):
    monkeypatch.setattr(tables, "_ROWS_A_BLOCK", 7)
    for make in (str, int, lambda i: i * 10**9):
        rows = [(make(i % 25), 1 + i // 25, i % 2) for i in range(100)]
        opened = table(rows)
        assert opened.user_ids.len() == 25
        users, times, values = all_rows(opened)
        found = list(zip(opened.user_ids.gather(users).to_list(), times, values, strict=True))
        assert found == rows


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ((None, 2, True), DataError, r"row 3 of the table has nothing in column 'id': fill it"),
        (("b", None, True), DataError, "row 3 of the table has nothing in column 'day'"),
        (("b", 2, None), DataError, "row 3 of the table has nothing in column 'on'"),
        (("b", 2, 5), DomainError, r"row 3 of the table holds a value that is neither 0/1"),
    ],
)
def test_a_row_that_lacks_something_is_named(row, error, message):
    opened = table([("a", 1, 0), ("a", 2, 1), row])
    with pytest.raises(error, match=message):
        list(opened.blocks())


def test_values_outside_a_domain_are_named_with_it():
    opened = table([("a", 1, "x"), ("a", 2, "z")], categories=["x", "y"])
    with pytest.raises(DomainError, match=r"row 2 of .* no category of .* \(x, y\): list all"):
        list(opened.blocks())


def test_a_time_written_otherwise_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("id,day,on\na,2024-01-01,1\na,01/02/2024,0\n")
    opened = open_history_table(tmp_path / "x.csv", **_NAMES)
    with pytest.raises(DataError, match=r"row 2 of x.csv has time '01/02/2024' in column 'day'"):
        list(opened.blocks())


@pytest.mark.parametrize("rows", [[], [("a", None, True)]])
def test_an_empty_table_is_refused(rows):
    frame = pl.DataFrame(
        rows, schema={"id": pl.String, "day": pl.Int64, "on": pl.Boolean}, orient="row"
    )
    with pytest.raises(DataError, match="has no row with a time: give a row for each user"):
        open_history_table(frame, **_NAMES)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("")
    with pytest.raises(DataError, match=r"x\.csv is empty"):
        open_history_table(tmp_path / "x.csv", **_NAMES)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no complete Parquet file"):
        open_history_table(tmp_path / "x.parquet", **_NAMES)
    with pytest.raises(DataError, match="there is no such file"):
        open_history_table(tmp_path / "y.parquet", **_NAMES)


def test_rows_of_another_length_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("id,day,on\na,1,1\nb,1,0,1\n")
    with pytest.raises(DataError, match="more fields than the header"):
        open_history_table(tmp_path / "x.csv", **_NAMES)


def test_an_unknown_column_is_named_with_the_nearest():
    frame = pl.DataFrame({"id": [1], "days": [1], "on": [1]})
    with pytest.raises(DataError, match="has no column 'day'; did you mean 'days'"):
        open_history_table(frame, **_NAMES)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"periods": 2}, DataError, r"time 3 .* is in period 3, beyond periods = 2: pass a larger"),
        ({"start": 2}, DataError, "time 1 .* is before the first period, which begins at 2"),
        ({"periods": 0}, ParameterError, "periods"),
        ({"periods": 2**20 + 1}, ParameterError, "periods = 1,048,577 is not in"),
        ({"start": -(2**20)}, DataError, "in period 1,048,580, beyond the 1,048,576 that"),
    ],
)
def test_times_outside_the_periods_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        table(ROWS, **options)


@pytest.mark.parametrize("time", [-(2**63), -(2**62), 2**62, 2**63 - 1])
def test_times_whose_differences_would_overflow_are_refused(time):
    # Beyond 64 bits period 1 would come out for a time long before the start.
    with pytest.raises(DataError, match="times that are not between"):
        table([("a", time, True), ("b", 2, True)], every=2)


def test_numbers_above_64_bits_are_refused_as_what_they_are():
    big = pl.Series([1, 2**63], dtype=pl.UInt64)
    frame = pl.DataFrame({"id": big, "day": [1, 1], "on": [True, False]})
    with pytest.raises(DataError, match=r"row 2 of .* has user 9223372036854775808 in column 'id'"):
        list(open_history_table(frame, **_NAMES).blocks())
    frame = pl.DataFrame({"id": ["a"], "day": big[1:], "on": [True]})
    with pytest.raises(DataError, match="times that are not between"):
        open_history_table(frame, **_NAMES)


@pytest.mark.parametrize("names", [{"time": "id"}, {"value": "id"}])
def test_a_column_is_one_thing_only(names):
    frame = pl.DataFrame(ROWS, schema=["id", "day", "on"], orient="row")
    with pytest.raises(ParameterError, match="twice"):
        open_history_table(frame, **(_NAMES | names))


def test_more_periods_than_rows_are_allowed():
    assert table(ROWS, periods=365).periods == 365


def test_users_named_by_fractions_or_dates_are_refused():
    for first in (0.5, dt.date(2024, 1, 1)):
        with pytest.raises(DataError, match="name users by whole numbers or text"):
            table([(first, 1, True)])


@pytest.mark.parametrize("make", [int, lambda i: i * 10**9])
@pytest.mark.parametrize("ids", [[1, 3, 3], [1, 2], [0, 1], [1, 9]])
def test_a_table_that_changes_meanwhile_is_noticed(make, ids):
    opened = table([(make(1), 1, True), (make(3), 1, True)])
    later = table([(make(each), 1, True) for each in ids])
    with pytest.raises(DataError, match="changed while it was being read"):
        list(replace(opened, _frame=later._frame).blocks())


def test_a_text_that_nobody_was_named_by_is_noticed():
    opened = table([("a", 1, True)])
    later = replace(opened, _frame=table([("b", 1, True)])._frame)
    with pytest.raises(DataError, match="changed while it was being read"):
        list(later.blocks())


def test_messages_show_identifiers_and_times():
    opened = table([("a", dt.date(2024, 1, 1), True)])
    time = int(np.datetime64("2024-01-01").astype(int))
    assert opened.describe(0, time) == "user 'a' at time 2024-01-01"
