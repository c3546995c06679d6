"""Numbers over trials: their mean, their deviation, and the rows of a table."""

import csv
import math

from shuffledp.groups.attacks.survey import COLUMNS, Measured, write_measured


def measured(*trials, **changes):
    return Measured(task="t", measure="m", arrangement="raw", trials=trials, **changes)


def test_the_deviation_is_that_of_a_sample():
    found = measured(1.0, 2.0, 6.0)
    assert found.mean == 3.0
    assert found.standard_deviation == math.sqrt((4.0 + 1.0 + 9.0) / 2.0)
    assert measured(0.5).standard_deviation is None


def test_the_better_of_an_attack_and_the_own_report_is_named():
    weak = measured(0.5, 0.52, own_report=(0.72, 0.74))
    assert weak.better == "own report"
    assert (weak.of_better().mean, weak.mean) == (0.73, 0.51)
    assert (weak.row()["own_report"], weak.row()["better"]) == (0.73, "own report")
    strong = measured(0.9, own_report=(0.9,))
    assert strong.better == "t"
    assert strong.of_better() is strong
    assert (measured(0.5).row()["own_report"], measured(0.5).row()["better"]) == (None, None)


def test_json_and_csv(tmp_path):
    results = [measured(0.25, 0.75), measured(0.5, lower=0.1, upper=0.9, bound=1.0)]
    assert results[0].to_json_dict()["trials"] == [0.25, 0.75]
    write_measured(results, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["standard_deviation"] == repr(results[0].standard_deviation)
    assert (rows[0]["bound"], rows[0]["num_trials"]) == ("", "2")
    assert [rows[1][name] for name in ("mean", "lower", "upper", "bound")] == [
        "0.5", "0.1", "0.9", "1.0",
    ]  # fmt: skip
    assert rows[1]["standard_deviation"] == ""
