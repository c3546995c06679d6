import datetime as dt

import polars as pl
import pytest

from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.monitoring.histories.generated_histories import generate_histories
from shuffledp.monitoring.histories.history_scenarios import SCENARIOS


def changes_a_user(path, *, boolean: bool) -> pl.Series:
    """How often each user's value changes, a first value other than false included."""
    rows = pl.read_parquet(path).sort("user", "time")
    value = pl.col("value")
    before = value.shift(1).over("user")
    first = value if boolean else pl.lit(value=True)
    is_change = pl.when(before.is_null()).then(first).otherwise(value != before)
    return rows.group_by("user").agg(is_change.sum().alias("n")).sort("user")["n"]


def generated(tmp_path, **options):
    settings = {"num_users": 300, "periods": 40, "scenario": "outage", "seed": 1} | options
    return generate_histories(tmp_path / "histories.parquet", **settings)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("max_changes", [1, 2, None])
def test_nobody_changes_more_often_than_stated(tmp_path, scenario, max_changes):
    made = generated(tmp_path, scenario=scenario, max_changes=max_changes)
    changes = changes_a_user(made.path, boolean=not made.domain)
    assert changes.len() == 300
    assert changes.max() <= made.max_changes
    assert made.max_changes == (max_changes or SCENARIOS[scenario].max_changes)
    assert made.num_overflowing == 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_share_of_users_with_more_changes_is_exact(tmp_path, scenario):
    made = generated(tmp_path, scenario=scenario, max_changes=3, overflow=0.1)
    changes = changes_a_user(made.path, boolean=not made.domain)
    assert made.num_overflowing == (changes > 3).sum() == 30
    assert changes.max() == 7


@pytest.mark.parametrize("scenario", ["travel", "versions"])
def test_dense_rows_and_events_say_the_same(tmp_path, scenario):
    options = {"num_users": 50, "periods": 12, "scenario": scenario, "seed": 2, "overflow": 0.2}
    options["max_changes"] = 2
    events = pl.read_parquet(generate_histories(tmp_path / "a.parquet", **options).path)
    dense = pl.read_parquet(generate_histories(tmp_path / "b.parquet", dense=True, **options).path)
    assert dense.height == 50 * 12
    assert dense["time"].is_sorted()
    filled = (
        dense.select("user", "time")
        .join(events, on=["user", "time"], how="left")
        .sort("user", "time")
        .with_columns(pl.col("value").forward_fill().over("user"))
    )
    assert filled.equals(dense.sort("user", "time"))


def test_events_are_sorted_by_time_and_begin_with_every_user(tmp_path):
    rows = pl.read_parquet(generated(tmp_path).path)
    assert rows["time"].is_sorted()
    assert rows.filter(pl.col("time") == 1)["user"].sort().to_list() == list(range(1, 301))


def test_a_seed_gives_the_same_file(tmp_path):
    first = pl.read_parquet(generated(tmp_path).path)
    assert pl.read_parquet(generated(tmp_path, overwrite=True).path).equals(first)
    other = pl.read_parquet(generated(tmp_path, overwrite=True, seed=2).path)
    assert not other.equals(first)


def test_chunks_of_users_join_up(tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.monitoring.histories.generated_histories._USERS_A_CHUNK", 64)
    monkeypatch.setattr("shuffledp.monitoring.histories.generated_histories._ROWS_A_FRAME", 100)
    made = generated(tmp_path, max_changes=2, overflow=0.1)
    changes = changes_a_user(made.path, boolean=True)
    assert changes.len() == 300
    assert (changes > 2).sum() == 30
    rows = pl.read_parquet(made.path)
    assert rows.height == made.num_rows
    assert rows["time"].is_sorted()


def test_dates_begin_at_the_first(tmp_path):
    made = generated(tmp_path, start=dt.date(2024, 2, 28), dense=True, num_users=2, periods=3)
    days = pl.read_parquet(made.path)["time"].unique().sort().to_list()
    assert days == [dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]


@pytest.mark.parametrize("dense", [False, True])
def test_one_user_and_one_period(tmp_path, dense):
    made = generated(tmp_path, num_users=1, periods=1, dense=dense)
    assert pl.read_parquet(made.path).height == made.num_rows == 1
    assert made.max_changes == 1


def test_progress_ends_with_all_rows(tmp_path):
    calls = []
    made = generated(tmp_path, on_progress=lambda *call: calls.append(call))
    assert calls[0] == ("drawing histories", 300, 300)
    assert calls[-1] == ("writing histories", made.num_rows, made.num_rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_users": 0}, "num_users"),
        ({"num_users": 2**31}, "at most"),
        ({"periods": 0}, "periods"),
        ({"periods": 2**20 + 1}, "at most"),
        ({"max_changes": 0}, "max_changes"),
        ({"scenario": "war"}, "not one of"),
        ({"overflow": 1.5}, r"not in \[0, 1\]"),
        ({"overflow": float("nan")}, "overflow"),
        ({"overflow": 0.1, "periods": 4}, "nobody can change more often"),
    ],
)
def test_what_cannot_be_generated_is_refused(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        generated(tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_replaced_unasked(tmp_path):
    generated(tmp_path)
    before = (tmp_path / "histories.parquet").read_bytes()
    with pytest.raises(OutputError, match="exists: choose another name"):
        generated(tmp_path, seed=5)
    assert (tmp_path / "histories.parquet").read_bytes() == before


def test_a_folder_or_another_format_is_refused(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        generate_histories(tmp_path / "folder.parquet", num_users=1, periods=1)
    with pytest.raises(ParameterError, match=r"does not end in \.parquet"):
        generate_histories(tmp_path / "histories.csv", num_users=1, periods=1)


def test_nothing_is_left_of_what_could_not_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        generate_histories(tmp_path / "file" / "a.parquet", num_users=1, periods=1)

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generated(tmp_path, on_progress=stop)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
