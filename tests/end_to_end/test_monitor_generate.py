"""``shuffledp monitor generate``: files that hold what they say."""

import json

import click
import polars as pl
import pytest
from click.testing import CliRunner

from shuffledp.cli.monitor_generate import SCENARIOS, day, generate
from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.monitoring.histories.history_scenarios import SCENARIOS as LAWS


def run(*arguments):
    outcome = CliRunner().invoke(
        generate, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )
    return outcome.stdout


def test_the_names_are_those_of_the_library():
    assert tuple(LAWS) == SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_file_of_changes(tmp_path, scenario):
    path = tmp_path / "histories.parquet"
    size = ("--num-users", 200, "--periods", 30, "--seed", 1)
    printed = run(path, "--scenario", scenario, *size)
    assert f"scenario      {scenario}\n" in printed
    table = pl.read_parquet(path)
    assert table.columns == ["user", "time", "value"]
    assert table["user"].n_unique() == 200
    assert f"rows          {table.height:,}, one a change\n" in printed
    record = json.loads(run(path, "--scenario", scenario, *size, "--overwrite", "--json"))
    assert record["num_rows"] == table.height
    assert record["domain"] == list(LAWS[scenario].domain)
    assert pl.read_parquet(path).equals(table)


def test_rows_of_all_periods_with_days_and_more_changes_than_allowed(tmp_path):
    path = tmp_path / "dense.parquet"
    options = ("--dense", "--start", "2026-01-31", "--max-changes", 1, "--overflow", 0.1)
    printed = run(path, "--num-users", 50, "--periods", 8, "--seed", 1, *options)
    assert "1 a user, but 5 users" in printed
    table = pl.read_parquet(path)
    assert table.height == 400
    assert table["time"].min() == day("2026-01-31")
    assert table["time"].max() == day("2026-02-07")


def test_bad_requests(tmp_path):
    size = ("--num-users", 5, "--periods", 4)
    path = tmp_path / "x.parquet"
    with pytest.raises(ParameterError, match=r"does not end in \.parquet"):
        run(tmp_path / "x.csv", *size)
    with pytest.raises(ParameterError, match="overflow = 2 is not in"):
        run(path, *size, "--overflow", 2)
    with pytest.raises(click.BadParameter, match="is not one of 'adoption'"):
        run(path, *size, "--scenario", "storm")
    with pytest.raises(click.BadParameter, match="write it like 2026-01-31"):
        run(path, *size, "--start", "31.1.2026")
    assert not path.exists()
    run(path, *size)
    with pytest.raises(OutputError, match="exists"):
        run(path, *size)
