import csv
import json

import polars as pl
import pytest

from shuffledp.core.errors import OutputError
from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.simulation import MonitorResult, simulate_monitoring

_NAMES = {"user": "id", "time": "day", "value": "on"}


def simulated(**options) -> MonitorResult:
    domain = {"categories": "ab"} if options.pop("categories", False) else {}
    values = ["a", "b", "a"] if domain else [True, False, True]
    frame = pl.DataFrame(
        {"id": [1, 2, 3], "day": ["2024-02-28", "2024-02-28", "2024-02-29"], "on": values}
    )
    histories = open_histories(frame, **_NAMES, **domain, periods=3)
    return simulate_monitoring(histories, max_changes=1, epsilon0=1.0, delta=1e-6, seed=1)


def test_rows_hold_estimate_and_truth_for_every_period():
    result = simulated()
    rows = list(result.rows())
    assert [row["time"] for row in rows] == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert [row["period"] for row in rows] == [1, 2, 3]
    assert [row["true_count"] for row in result.true_rows()] == [1, 2, 2]
    assert "true_count" not in rows[0]
    assert [row["count"] for row in rows] == result.running.counts.tolist()
    assert "value" not in rows[0]


def test_rows_hold_one_line_a_value():
    rows = list(simulated(categories=True).true_rows())
    assert [(row["period"], row["value"], row["true_count"]) for row in rows] == [
        (1, "a", 1),
        (1, "b", 1),
        (2, "a", 2),
        (2, "b", 1),
        (3, "a", 2),
        (3, "b", 1),
    ]


def test_files_say_what_the_result_says(tmp_path):
    result = simulated()
    folder = result.save(tmp_path / "out")
    with (folder / "estimates.csv").open() as file:
        written = list(csv.DictReader(file))
    expected = [{name: str(value) for name, value in row.items()} for row in result.rows()]
    assert written == expected
    record = json.loads((folder / "result.json").read_text())
    assert record["guarantee"]["epsilon"]["upper"] == result.central.epsilon_upper
    assert {name: record[name] for name in ("through", "num_users", "values")} == {
        "through": 3,
        "num_users": 3,
        "values": [],
    }


def test_results_are_not_replaced_unasked(tmp_path):
    result = simulated()
    result.save(tmp_path / "out")
    with pytest.raises(OutputError, match="is not empty: choose another"):
        result.save(tmp_path / "out")
    result.save(tmp_path / "out", overwrite=True)
    names = {each.name for each in (tmp_path / "out").iterdir()}
    assert names == {
        ".shuffledp-results.json",
        "estimates.csv",
        "result.json",
        "true-counts-not-private.csv",
    }
