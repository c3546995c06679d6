import csv
import json

import polars as pl

from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.simulation import (
    MonitorResult,
    simulate_monitoring,
    write_monitor_result,
)

_NAMES = {"user": "id", "time": "day", "value": "on"}


def simulated(**options) -> MonitorResult:
    domain = {"categories": "ab"} if options.pop("categories", False) else {}
    values = ["a", "b", "a"] if domain else [True, False, True]
    frame = pl.DataFrame(
        {"id": [1, 2, 3], "day": ["2024-02-28", "2024-02-28", "2024-02-29"], "on": values}
    )
    histories = open_histories(frame, **_NAMES, **domain, periods=3)
    return simulate_monitoring(histories, max_changes=1, epsilon0=1.0, delta=1e-6, seed=1)


def written(result, folder, name):
    write_monitor_result(result, folder, parameters={})
    with (folder / name).open() as file:
        return list(csv.DictReader(file))


def test_rows_hold_estimate_and_truth_for_every_period(tmp_path):
    result = simulated()
    rows = written(result, tmp_path, "estimates.csv")
    assert [row["time"] for row in rows] == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert [row["period"] for row in rows] == ["1", "2", "3"]
    assert list(rows[0]) == ["period", "time", "count", "standard_error", "lower", "upper"]
    for name, column in result.running.to_dict().items():
        assert [row[name] for row in rows] == [str(each) for each in column]
    truth = written(result, tmp_path, "true-counts-not-private.csv")
    assert [row["true_count"] for row in truth] == ["1", "2", "2"]


def test_rows_hold_one_line_a_value(tmp_path):
    rows = written(simulated(categories=True), tmp_path, "true-counts-not-private.csv")
    assert [(row["period"], row["value"], row["true_count"]) for row in rows] == [
        ("1", "a", "1"),
        ("1", "b", "1"),
        ("2", "a", "2"),
        ("2", "b", "1"),
        ("3", "a", "2"),
        ("3", "b", "1"),
    ]


def test_the_record_says_what_the_result_says(tmp_path):
    result = simulated()
    write_monitor_result(result, tmp_path, parameters={"user": "id"})
    record = json.loads((tmp_path / "result.json").read_text())
    assert record["guarantee"]["epsilon"]["upper"] == result.central.epsilon_upper
    assert {name: record[name] for name in ("periods", "num_users", "values", "parameters")} == {
        "periods": 3,
        "num_users": 3,
        "values": [],
        "parameters": {"user": "id"},
    }
