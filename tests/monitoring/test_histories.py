import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.made_histories import dense, outage
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring import histories as histories_module
from shuffledp.monitoring.histories import Histories, open_histories

_NAMES = {"user": "id", "time": "day", "value": "on"}


def opened(rows, **options) -> Histories:
    frame = pl.DataFrame(rows, schema=["id", "day", "on"], orient="row")
    return open_histories(frame, **(_NAMES | options))


def as_text(histories: Histories) -> list[tuple[str, int, int]]:
    """All changes, by identifier."""
    return [
        (histories.user_ids[int(user)], period, int(value))
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
    assert weekly.num_changes <= daily.num_changes


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
        assert other.digest(20) == events.digest(20)


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


def test_a_large_table_out_of_order_says_what_to_do(monkeypatch):
    monkeypatch.setattr(histories_module, "_MOST_ROWS_TO_SORT", 2)
    assert opened([("a", 1, 1), ("b", 1, 1), ("a", 2, 0)]).num_changes == 3
    with pytest.raises(DataError, match=r"not in order of time and there are 3.* sort the table"):
        opened([("a", 2, 1), ("b", 1, 1), ("a", 1, 0)])


def test_one_user_and_one_period():
    histories = opened([("a", 1, 0)])
    assert (histories.num_users, histories.periods, histories.num_changes) == (1, 1, 0)
    assert histories.true_counts().tolist() == [[0]]
    assert histories.digest(0) == b""


def test_values_go_on_beyond_the_last_row():
    longer = opened([("a", 1, 1), ("b", 2, 1)]).with_periods(4)
    assert longer.true_counts()[:, 0].tolist() == [1, 2, 2, 2]
    assert longer.changes_at(4).users.size == 0
    assert longer.with_periods(2).true_counts()[:, 0].tolist() == [1, 2]
    with pytest.raises(ParameterError, match=r"periods = 1 leaves out changes .* up to period 2"):
        longer.with_periods(1)
    with pytest.raises(ParameterError, match="periods"):
        longer.with_periods(0)


def test_digests_tell_histories_apart():
    rows = [("a", 1, 1), ("b", 2, 1)]
    base = opened(rows)
    assert base.digest(2) == opened([*rows, ("a", 2, 1)]).digest(2)
    others = [
        [("a", 1, 1), ("b", 1, 1)],
        [("a", 2, 1), ("b", 2, 1)],
        [("b", 1, 1), ("a", 2, 1)],
        [*rows, ("a", 2, 0)],
    ]
    assert len({base.digest(2), *(opened(each, periods=2).digest(2) for each in others)}) == 5
    assert base.digest(1) == opened([*rows, ("a", 2, 0)]).digest(1)


def test_users_keep_their_numbers_and_new_ones_follow():
    rows = [("b", 1, 1), ("a", 2, 1), ("c", 2, 1), ("b", 2, 0)]
    histories = opened(rows)
    earlier = pl.Series("user", ["c", "b", "gone"])
    numbered = histories.numbered_like(earlier)
    assert numbered.user_ids.to_list() == ["c", "b", "gone", "a"]
    assert sorted(as_text(numbered)) == sorted(as_text(histories))
    assert numbered.changes_at(2).users.tolist() == [0, 1, 3]
    assert histories.numbered_like(histories.user_ids) is histories
    with pytest.raises(DataError, match="users of the table are named by String"):
        histories.numbered_like(pl.Series("user", [1]))


def test_who_begins_late_has_nothing_before():
    rows = [("a", 1, 1), ("b", 1, 1), ("b", 2, 0), ("c", 1, 1), ("c", 4, 0), ("d", 1, 1)]
    rows += [("d", 3, 0)]
    histories = opened(rows)
    late = histories.begun(((0, 1), (1, 3)))
    # b was off again by then; c is on from then on; d switched off in the very period: nothing.
    assert as_text(late) == [("a", 1, 1), ("c", 3, 1), ("c", 4, 0)]
    assert late.true_counts()[:, 0].tolist() == [1, 1, 2, 1]
    assert histories.begun(((0, 1),)) is histories


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
