"""What is shown of a monitored statistic and of a plan for one: curves, rows and words."""

import dataclasses
import math

import polars as pl
import pytest

from shuffledp.monitoring.comparison import RepeatedTask, everybody_with_dummies
from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.plan import plan_monitoring
from shuffledp.monitoring.simulation import simulate_monitoring
from shuffledp.report.monitor import (
    HEADINGS,
    band_text,
    comparison_rows,
    plan_rows,
    result_rows,
    users_and_share,
)


def test_numbers_of_users_come_with_their_share():
    assert users_and_share(4_100.4, 1_000_000) == "4,100 users (0.41%)"
    assert users_and_share(0.0, 10) == "0 users (0.0%)"


NUM_USERS = 60


def simulated(*, categories=None, seed=1, **options):
    values = [True, False] if categories is None else list(categories)
    rows = pl.DataFrame(
        {
            "id": range(NUM_USERS),
            "day": [1] * NUM_USERS,
            "value": [values[user % len(values)] for user in range(NUM_USERS)],
        }
    )
    histories = open_histories(
        rows, user="id", time="day", value="value", categories=categories, periods=4
    )
    return simulate_monitoring(
        histories, max_changes=2, epsilon0=1.0, delta=1e-6, seed=seed, **options
    )


def test_facts_say_how_it_ran():
    facts = dict(result_rows(simulated())["done"])
    assert facts["Values"] == "on or off"
    categories = ["a", "b", "c", "d", "e"]
    facts = dict(result_rows(simulated(categories=categories, seed=None, smoothed=True))["done"])
    assert facts["Values"] == "5 values, hadamard encoding"
    assert "smoothed" in facts["Estimator"]


def test_bands_are_called_what_they_are():
    assert band_text(0.999) == "99.9% band for all periods at once"


@pytest.fixture(scope="module")
def planned():
    return plan_monitoring(periods=8, max_changes=2, num_users=2_000, epsilon0=1.0, delta=1e-6)


def test_the_worst_period_comes_first(planned):
    facts = plan_rows(planned)["plan"]
    widths = planned.half_widths(simultaneous=True)
    assert facts[0][0] == "error"
    assert facts[0][1].startswith(f"\u00b1{widths.max():,.0f} users (")
    assert facts[2] == ("", "95% band for all periods at once")
    assert "95% for each alone" in facts[3][1]


def test_rows_have_the_plan_first_and_all_that_it_is_compared_with(planned):
    rows = comparison_rows(planned)
    assert {len(row) for row in rows} == {len(HEADINGS)}
    assert rows[0][0] == "this plan: monitoring"
    assert rows[1][0] == "this plan, once all reports are there"
    names = [row[0] for row in rows[2:]]
    assert names[:2] == [each.name for each in planned.comparison.collections[:2]]
    assert names[2] == "1 answer each, in periods drawn in secret"
    least = planned.comparison.few_answers.least_standard_error
    assert [row[3] for row in rows[:2]] == ["-", "-"]
    assert rows[4][3] == f"{least:,.0f}"


def test_what_clients_do(planned):
    facts = dict(plan_rows(planned)["plan"])
    assert facts["users"] == "2,000"
    assert facts["periods"] == "8 (4 levels)"
    assert facts["protocol"] == "predrawn-signs"
    # levels with 8, 4, 2 and 1 nodes; two bits for the level, one for the sign
    assert facts["a user sends"] == "3.8 reports in all, on average, of 3 bits each"


def test_what_says_nothing_has_an_infinite_error(planned):
    useless = dataclasses.replace(
        planned.comparison,
        everybody_local=dataclasses.replace(
            planned.comparison.everybody_local,
            standard_error=math.inf,
            least_standard_error=math.inf,
        ),
    )
    without = dataclasses.replace(planned, comparison=useless)
    assert comparison_rows(without)[2][1:4] == ("infinite", "-", "infinite")


@pytest.mark.parametrize("epsilon0", [3.0, math.inf])
def test_dummies_have_a_row_and_their_lines_of_guarantee(planned, epsilon0):
    assert [name for name, _ in plan_rows(planned)["advice"]] == ["advice"]
    task = RepeatedTask(domain_size=2, periods=8, num_users=2_000, delta=1e-6)
    repeated = everybody_with_dummies(task, epsilon=0.9876, epsilon0=epsilon0)
    compared = dataclasses.replace(planned.comparison, with_dummies=repeated)
    found = dataclasses.replace(planned, comparison=compared)
    row = comparison_rows(found)[-1]
    assert row[0] == repeated.name
    assert row[HEADINGS.index("epsilon0")] == "infinity"
    facts = dict(plan_rows(found)["advice"])
    width = repeated.dummies.half_width
    assert facts["dummies"].startswith(f"{width:,} for each answer and period on average, ")
    assert f" {width * 2 * 8:,} in all; law gaussian:" in facts["dummies"]
    assert facts["with them"].startswith("epsilon <= 0.987")
    assert "however often it changes and whoever else lies" in facts["with them"]
    said = "every answer" if math.isinf(epsilon0) else "epsilon0 <= 3.000 for each distinct value"
    assert said in facts["without"]
