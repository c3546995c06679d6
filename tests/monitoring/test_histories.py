import datetime as dt
import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.made_histories import dense, outage
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.monitoring import histories as histories_module
from shuffledp.monitoring.histories import Histories, open_histories

_NAMES = {"user": "id", "time": "day", "value": "on"}


def opened(rows, **options) -> Histories:
    frame = pl.DataFrame(rows, schema=["id", "day", "on"], orient="row")
    return open_histories(frame, **(_NAMES | options))


def as_text(histories: Histories) -> list[tuple[str, int, int]]:
    """All changes, by identifier."""
    return [
        (histories.user_ids[int(user)], period, int(value) + (not histories.labels))
        for period in range(1, histories.periods + 1)
        for user, value in zip(*histories.changes_at(period), strict=True)
    ]


def values_over_time(rows, users, periods, *, before=0):
    """What every user has at the end of every period, straight from the rule."""
    table = {}
    for user in users:
        told = sorted((day, value) for who, day, value in rows if who == user)
        for t in range(1, periods + 1):
            so_far = [value for day, value in told if day <= t]
            table[user, t] = so_far[-1] if so_far else before
    return table


histories_of_a_few = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(1, 6)), st.integers(0, 1), min_size=1, max_size=16
)


@given(histories_of_a_few, st.data())
def test_changes_are_those_of_the_rule_in_any_order_of_rows(drawn, data):
    rows = [(f"u{user}", day, value) for (user, day), value in drawn.items()]
    shuffled = data.draw(st.permutations(rows))
    histories = opened(shuffled, periods=6)
    users = sorted({row[0] for row in rows})
    table = values_over_time(rows, users, 6)
    expected = [
        (user, t, table[user, t])
        for t, user in itertools.product(range(1, 7), users)
        if table[user, t] != table.get((user, t - 1), 0)
    ]
    assert as_text(histories) == expected
    truth = [sum(table[user, t] for user in users) for t in range(1, 7)]
    assert histories.true_counts()[:, 0].tolist() == truth


@given(histories_of_a_few)
def test_the_value_at_the_end_of_a_period_counts(drawn):
    rows = [(f"u{user}", day, value) for (user, day), value in drawn.items()]
    weekly = opened(rows, every=3, periods=2)
    table = values_over_time(rows, {row[0] for row in rows}, 6)
    for t in (1, 2):
        now = sum(value for (_, day), value in table.items() if day == 3 * t)
        assert weekly.true_counts()[t - 1, 0] == now
    daily = opened(rows, periods=6)
    assert weekly.users.size <= daily.users.size


def test_dense_rows_and_events_are_the_same_histories():
    columns = {"user": "user", "time": "time", "value": "value"}
    changes = outage(60, 20)
    rows = pl.concat(dense(changes, 20))
    assert rows.height == 60 * 20 > 3 * changes.height
    events = open_histories(changes, **columns, periods=20)
    for table in (
        rows,
        rows.sort("user", "time"),
        rows.sample(fraction=1.0, shuffle=True, seed=1),
    ):
        other = open_histories(table, **columns)
        assert as_text(other) == as_text(events)


def test_categories_begin_with_nothing():
    rows = [("a", 2, "x"), ("b", 1, "y"), ("a", 3, "y"), ("b", 3, "y")]
    histories = opened(rows, categories=["x", "y"])
    assert as_text(histories) == [("b", 1, 1), ("a", 2, 0), ("a", 3, 1)]
    assert histories.true_counts().tolist() == [[0, 1], [1, 1], [0, 2]]


def test_the_same_row_twice_is_harmless_and_another_value_is_not():
    assert as_text(opened([("a", 1, 1), ("a", 1, 1)])) == [("a", 1, 1)]
    message = "user 'a' at time 2 has two different values in the table: leave one of these rows"
    for rows in ([("a", 2, 1), ("a", 2, 0)], [("a", 3, 1), ("a", 2, 1), ("a", 2, 0)]):
        with pytest.raises(DataError, match=message):
            opened(rows)


def test_a_first_row_of_the_value_before_contradicts_a_second_one_too():
    with pytest.raises(DataError, match="two different values"):
        opened([("a", 2, 0), ("a", 2, 1)])


def test_one_user_and_one_period():
    histories = opened([("a", 1, 0)])
    assert (histories.num_users, histories.periods, histories.users.size) == (1, 1, 0)
    assert histories.true_counts().tolist() == [[0]]


def test_values_go_on_beyond_the_last_row():
    longer = opened([("a", 1, 1), ("b", 2, 1)], periods=4)
    assert longer.true_counts()[:, 0].tolist() == [1, 2, 2, 2]
    assert longer.changes_at(4)[0].size == 0
    assert longer.period_labels == ("1", "2", "3", "4")


def test_arrays_cannot_be_changed():
    histories = opened([("a", 1, 1)])
    with pytest.raises(ValueError, match="read-only"):
        histories.users[0] = 5


def test_many_users_agree_with_a_table_of_all_values():
    rng = Entropy.from_seed(5).generator()
    states = rng.integers(0, 3, (200, 30))
    users, days = np.meshgrid(np.arange(200), np.arange(30), indexing="ij")
    frame = pl.DataFrame(
        {"id": users.reshape(-1), "day": days.reshape(-1) + 1, "on": states.reshape(-1)}
    )
    histories = open_histories(frame, **_NAMES, categories=[0, 1, 2])
    expected = [[(states[:, t] == value).sum() for value in range(3)] for t in range(30)]
    assert histories.true_counts().tolist() == expected


def test_progress_counts_rows():
    calls = []
    opened([("a", 2, 1), ("a", 1, 0)], on_progress=lambda *call: calls.append(call))
    assert calls[0] == ("reading users", 0, 2)
    assert calls[-1] == ("sorting histories", 2, 2)


# ---------------------------------------------------------------- values
def values_of(values, **options):
    """What users are told to have at period 1, in the order of users."""
    frame = pl.DataFrame({"id": range(len(values)), "day": 1, "on": values})
    found = open_histories(frame, **_NAMES, **options)
    now = np.full(len(values), -1)
    users, codes = found.changes_at(1)
    now[users] = codes
    return now.tolist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False], [0, -1]),
        ([1, 0], [0, -1]),
        ([1.0, 0.0], [0, -1]),
        (["1", " TRUE", "false", "0"], [0, 0, -1, -1]),
    ],
)
def test_booleans(values, expected):
    assert values_of(values) == expected


def test_categories_are_places_in_the_list():
    assert values_of(["b", "a"], categories="ab") == [1, 0]
    assert values_of([3, 1], categories=[1, 3]) == [1, 0]


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
    with pytest.raises(error, match=message):
        opened([("a", 1, 0), ("a", 2, 1), row])


@pytest.mark.parametrize("values", [[1.0, float("nan")], ["1", "no"], [1.0, 0.5]])
def test_what_is_no_boolean_is_refused(values):
    with pytest.raises(DomainError, match=r"row 2 of .* neither 0/1"):
        values_of(values)


def test_values_outside_a_domain_are_named_with_it():
    with pytest.raises(DomainError, match=r"row 2 of .* no category of .* \(x, y\): list all"):
        opened([("a", 1, "x"), ("a", 2, "z")], categories=["x", "y"])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"categories": "a"}, "fewer than two"), ({"categories": "aa"}, "more than once")],
)
def test_what_is_no_domain_is_refused(options, message):
    with pytest.raises(DomainError, match=message):
        opened([("a", 1, "a")], **options)


@pytest.mark.parametrize(
    ("options", "message"), [({}, "no boolean"), ({"categories": "ab"}, "no list of answers")]
)
def test_a_column_of_another_type_is_refused(options, message):
    with pytest.raises(DataError, match=message):
        opened([("a", 1, ["a"])], **options)


# ---------------------------------------------------------------- users and rows
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_files_of_all_formats_say_the_same(tmp_path, suffix):
    rows = [("b", 1, True), ("a", 2, False), ("b", 3, False), ("c", 3, True)]
    frame = pl.DataFrame(rows, schema=["id", "day", "on"], orient="row")
    path = tmp_path / f"x{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if suffix == ".csv" else "\t")
    found = open_histories(path, **_NAMES)
    assert found.column == "on"
    assert as_text(found) == as_text(opened(rows))


@pytest.mark.parametrize(
    "ids", [[5, 6, 7], [-3, 10**6, 10**15], [0, 1, 2**62], ["7", "5", "6"], ["\u00e4", "b", "01"]]
)
def test_users_are_numbered_by_their_sorted_identifiers(ids):
    found = opened([(each, 1, place == 1) for place, each in enumerate(ids)])
    assert found.user_ids.to_list() == sorted(ids)
    assert as_text(found) == [(ids[1], 1, 1)]


def test_small_and_unsigned_numbers_and_categories_name_users():
    for dtype in (pl.UInt8, pl.Categorical):
        ids = pl.Series(["3", "200"]).cast(pl.Int64 if dtype == pl.UInt8 else pl.String).cast(dtype)
        frame = pl.DataFrame({"id": ids, "day": [1, 1], "on": [0, 1]})
        assert open_histories(frame, **_NAMES).num_users == 2


@pytest.mark.parametrize("make", [str, int, lambda i: i * 10**9])
def test_blocks_join_up(monkeypatch, make):
    rows = [(make(i % 25), 1 + i // 25, i % 2) for i in range(100)]
    expected = opened(rows)
    monkeypatch.setattr(histories_module, "_ROWS_A_BLOCK", 7)
    for each in (rows, sorted(rows, key=lambda row: row[1] % 3)):
        assert as_text(opened(each)) == as_text(expected)


@pytest.mark.parametrize("rows", [[], [("a", None, True)]])
def test_an_empty_table_is_refused(rows):
    frame = pl.DataFrame(
        rows, schema={"id": pl.String, "day": pl.Int64, "on": pl.Boolean}, orient="row"
    )
    with pytest.raises(DataError, match="has no row with a time: give a row for each user"):
        open_histories(frame, **_NAMES)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("")
    with pytest.raises(DataError, match=r"x\.csv is empty"):
        open_histories(tmp_path / "x.csv", **_NAMES)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no complete Parquet file"):
        open_histories(tmp_path / "x.parquet", **_NAMES)
    with pytest.raises(DataError, match="there is no such file"):
        open_histories(tmp_path / "y.parquet", **_NAMES)


def test_rows_of_another_length_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("id,day,on\na,1,1\nb,1,0,1\n")
    with pytest.raises(DataError, match="more fields than the header"):
        open_histories(tmp_path / "x.csv", **_NAMES)


def test_an_unknown_column_is_named_with_the_nearest():
    frame = pl.DataFrame({"id": [1], "days": [1], "on": [1]})
    with pytest.raises(DataError, match="has no column 'day'; did you mean 'days'"):
        open_histories(frame, **_NAMES)


@pytest.mark.parametrize("names", [{"time": "id"}, {"value": "id"}])
def test_a_column_is_one_thing_only(names):
    frame = pl.DataFrame({"id": ["a"], "day": [1], "on": [True]})
    with pytest.raises(ParameterError, match="twice"):
        open_histories(frame, **(_NAMES | names))


def test_users_named_by_fractions_or_dates_are_refused():
    for first in (0.5, dt.date(2024, 1, 1)):
        with pytest.raises(DataError, match="name users by whole numbers or text"):
            opened([(first, 1, True)])


def test_numbers_above_64_bits_are_refused():
    big = pl.Series([1, 2**63], dtype=pl.UInt64)
    for columns in ({"id": big, "day": [1, 1]}, {"id": ["a", "b"], "day": big}):
        with pytest.raises(DataError, match=r"cannot read the table: .*9223372036854775808"):
            open_histories(pl.DataFrame(columns | {"on": [True, False]}), **_NAMES)


@pytest.mark.parametrize("make", [int, str])
@pytest.mark.parametrize("ids", [[1, 2], [0, 1], [1, 9], [1, 3, 3], [1, None]])
def test_a_table_that_changes_meanwhile_is_noticed(monkeypatch, make, ids):
    def later(rows, **options):
        users = pl.Series([None if each is None else make(each) for each in ids])
        changed = pl.DataFrame({"user code": users}).with_columns(
            pl.lit(1).cast(pl.Int64).alias("time code"),
            pl.lit(0).cast(pl.Int64).alias("value code"),
        )
        return read(changed.lazy(), **options)

    read = histories_module._changes
    monkeypatch.setattr(histories_module, "_changes", later)
    with pytest.raises(DataError, match="changed while it was being read"):
        opened([(make(1), 1, True), (make(3), 1, True)])


# ---------------------------------------------------------------- times
def periods_of(values, **options):
    """In which period each value of a column of times lies."""
    ids = [f"{place:03}" for place in range(len(values))]
    frame = pl.DataFrame({"id": ids, "day": values, "on": True})
    return [period for _, period, _ in sorted(as_text(open_histories(frame, **_NAMES, **options)))]


def labels_of(values, **options):
    frame = pl.DataFrame({"id": range(len(values)), "day": values, "on": True})
    return open_histories(frame, **_NAMES, **options).period_labels


def test_numbers_are_periods_as_they_are():
    assert periods_of([3, 1, 7]) == [3, 1, 7]
    assert periods_of(["3", " 1", "7"]) == [3, 1, 7]


def test_numbers_may_begin_elsewhere_and_be_grouped():
    assert periods_of([0, 6, 7, 13, 14], start=0, every=7) == [1, 1, 2, 2, 3]
    assert periods_of([0, 6, 7], start="0", every="7") == [1, 1, 2]
    assert periods_of([-(2**62) + 1, 2**62 - 1], start=-(2**62) + 1, every=2**61) == [1, 4]


def test_dates_begin_with_the_earliest():
    days = [dt.date(2024, 3, 1), dt.date(2024, 2, 28), dt.date(2024, 2, 29)]
    assert periods_of(days) == [3, 1, 2]
    assert periods_of([str(day) for day in days]) == [3, 1, 2]
    assert periods_of(days, start="2024-02-01", every="2w") == [3, 2, 3]
    assert periods_of(days, start=dt.date(2023, 12, 31), every="1mo") == [4, 3, 3]


def moments(*texts):
    return [dt.datetime.fromisoformat(text) for text in texts]


def test_hours_begin_on_the_hour_and_days_at_midnight():
    early = moments("2024-01-01 10:59", "2024-01-01 11:00")
    assert periods_of(early, every="1h") == [1, 2]
    assert periods_of(early) == [1, 1]
    late = moments("2024-01-01 23:59", "2024-01-02 00:00")
    assert periods_of(late) == [1, 2]
    assert periods_of(late, every="1mo") == [1, 1]
    assert periods_of(late, start="2023-12-31 23:59", every="1d") == [2, 2]


@pytest.mark.parametrize("text", ["2024-01-01 10:30:00", "2024-01-01T10:30:00", "2024-01-01 10:30"])
def test_moments_in_text(text):
    assert labels_of([text], every="1h") == ("2024-01-01 10:00:00",)


def test_a_column_counts_by_the_clock_of_its_own_zone():
    zoned = pl.Series("t", [dt.datetime(2024, 7, 1, 22, 30, tzinfo=dt.UTC)])
    assert labels_of(zoned.dt.convert_time_zone("Europe/Paris")) == ("2024-07-02 00:00:00",)


def test_labels_are_the_first_moment_of_a_period():
    assert labels_of([15], every=7) == ("1", "8", "15")
    day = [dt.date(2024, 1, 31)]
    assert labels_of(day, periods=2) == ("2024-01-31", "2024-02-01")
    assert labels_of(day, every="1mo", periods=3) == ("2024-01-01", "2024-02-01", "2024-03-01")
    assert labels_of(["2024-01-31"], periods=2) == ("2024-01-31", "2024-02-01")
    hours = labels_of(moments("2024-01-31 00:00:01"), every="1h", periods=2)
    assert hours == ("2024-01-31 00:00:00", "2024-01-31 01:00:00")


def test_times_are_shown_as_in_the_table():
    rows = [("a", dt.date(2024, 1, 1), True), ("a", dt.date(2024, 1, 1), False)]
    with pytest.raises(DataError, match="user 'a' at time 2024-01-01 has two different values"):
        opened(rows)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"periods": 2}, DataError, r"time 3 .* is in period 3, beyond periods = 2: pass a larger"),
        ({"start": 2}, DataError, "time 1 .* is before the first period, which begins at 2"),
        ({"periods": 0}, ParameterError, "periods"),
        ({"periods": 2**20 + 1}, ParameterError, "periods = 1048577 is above 1,048,576"),
        ({"start": -(2**20)}, DataError, "is beyond the 1,048,576 periods that there may be"),
        ({"start": "2024-01-01"}, ParameterError, "no whole number"),
        ({"start": True}, ParameterError, "no whole number"),
        ({"every": 0}, ParameterError, "below 1"),
        ({"every": "1d"}, ParameterError, "no whole number"),
        ({"start": 2**62}, ParameterError, "start = .* is not between"),
        ({"every": str(10**26)}, ParameterError, "every = .* is not between"),
    ],
)
def test_numbers_outside_the_periods_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        opened([("b", 1, True), ("a", 2, False), ("c", 3, True)], **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"every": "0d"}, ParameterError, "no length of time"),
        ({"every": 7}, ParameterError, "no length of time"),
        ({"start": "soon"}, ParameterError, "is no date"),
        ({"start": "01-01-24"}, ParameterError, "is no date"),
        ({"start": "2024-02-01"}, DataError, "time 2024-01-01 .* which begins at 2024-02-01"),
        ({"start": "1024-02-01", "every": "1h"}, DataError, "is beyond the 1,048,576 periods"),
    ],
)
def test_dates_outside_the_periods_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        opened([("b", dt.date(2024, 1, 1), True)], **options)


@pytest.mark.parametrize("time", [-(2**63), -(2**62), 2**62, 2**63 - 1])
def test_times_whose_differences_would_overflow_are_outside(time):
    with pytest.raises(DataError, match=f"time {time} .* (before the first|beyond the)"):
        opened([("a", time, True), ("b", 2, True)], every=2)


@pytest.mark.parametrize("value", ["soon", 1.5, [1], "05-01-24", "-2024-01-05"])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(DataError, match="no time: give whole numbers, dates"):
        opened([("a", value, True)])


@pytest.mark.parametrize(("first", "second"), [("2024-01-01", "02-01-24"), ("3", "x")])
def test_a_time_written_otherwise_is_named(first, second):
    with pytest.raises(DataError, match=rf"row 2 of the table has time '{second}' in column 'day'"):
        opened([("a", first, True), ("a", second, True)])
