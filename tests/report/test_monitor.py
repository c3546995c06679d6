"""What is shown of a monitored statistic and of a plan for one: curves, rows and words."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

from report.monitor_views import build_view
from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.plan import plan_monitoring
from shuffledp.monitoring.simulation import simulate_monitoring
from shuffledp.report.monitor import (
    HEADINGS,
    MOST_CURVES,
    band_text,
    comparison_rows,
    design_facts,
    error_facts,
    monitor_plan_page,
    result_facts,
    result_view,
    shown_periods,
    table_headings,
    table_rows,
    users_and_share,
)


def test_widths_and_how_many_true_counts_lie_outside():
    view = build_view()
    assert view.worst_half_width == pytest.approx(30.0)
    assert view.mean_half_width == pytest.approx(30.0)
    assert view.num_outside == 0
    tight = build_view(num_curves=2)
    curve = tight.curves[0]
    moved = type(curve)(
        label="x",
        estimates=curve.estimates,
        standard_errors=curve.standard_errors,
        lower=curve.estimates - 5.0,
        upper=curve.estimates + 5.0,
        truth=curve.truth,
    )
    assert build_view(curves=(moved, tight.curves[1])).num_outside == 8
    assert build_view(truth=False).num_outside == 0


def test_the_largest_curves_are_drawn_in_their_order():
    view = build_view(num_curves=9)
    assert [each.label for each in view.drawn] == [f"value {i}" for i in range(9 - MOST_CURVES, 9)]
    assert len(build_view(num_curves=MOST_CURVES).drawn) == MOST_CURVES


def test_one_curve_shows_its_share_and_several_their_labels():
    view = build_view()
    assert table_headings(view) == (
        "Period",
        "Estimate",
        "Share",
        "Standard error",
        "Band",
        "True count",
        "Error",
    )
    rows = table_rows(view)
    assert [row[0] for row in rows] == list(view.periods)
    assert rows[0][1:] == ("-10", "-1.00%", "10", "-40 to 20", "0", "-10")
    several = build_view(num_curves=3, truth=False)
    assert table_headings(several) == ("Period", "Value", "Estimate", "Standard error", "Band")
    rows = table_rows(several)
    assert len(rows) == 24
    assert rows[1][1:] == ("value 1", "0", "10", "-30 to 30")


@pytest.mark.parametrize(("num_periods", "num_curves", "shown"), [(1, 1, 1), (500, 2, 500)])
def test_short_tables_have_every_period(num_periods, num_curves, shown):
    view = build_view(num_periods, num_curves=num_curves)
    assert list(shown_periods(view)) == list(range(shown))


def test_long_tables_have_periods_spread_to_the_last():
    view = build_view(600, num_curves=40)
    shown = list(shown_periods(view))
    assert shown[0] == 0
    assert shown[-1] == 599
    assert len(shown) == 25
    assert np.ptp(np.diff(shown)) <= 1
    assert len(table_rows(view)) == 1_000
    crowded = build_view(600, num_curves=200)
    assert len(shown_periods(crowded)) == 12


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


def test_one_curve_of_a_boolean():
    result = simulated()
    view = result_view(result, what="value", arguments=("'table.csv'", "user='id'"))
    (curve,) = view.curves
    assert curve.label == ""
    assert curve.truth.tolist() == [30.0] * 4
    assert curve.estimates.tolist() == result.running.counts.tolist()
    assert view.is_level_hidden
    assert view.is_seeded
    assert view.num_outside == result.num_outside_bands
    compile(view.code, "page", "exec")
    assert "open_histories('table.csv', user='id')" in view.code
    assert "seed=" in view.code


def test_a_curve_for_each_category():
    result = simulated(categories=["a", "b", "c", "d", "e"], seed=None, smoothed=True)
    view = result_view(result, what="value")
    assert [curve.label for curve in view.curves] == ["a", "b", "c", "d", "e"]
    assert {float(curve.truth[0]) for curve in view.curves} == {12.0}
    assert not view.is_seeded
    assert "seed" not in view.code
    facts = dict(result_facts(result))
    assert facts["Values"] == "5 values, hadamard encoding"
    assert "smoothed" in facts["Estimator"]
    assert facts["Randomness"].startswith("cryptographic")


@pytest.mark.parametrize(("is_simultaneous", "end"), [(True, "at once"), (False, "by itself")])
def test_bands_are_called_what_they_are(is_simultaneous, end):
    text = band_text(0.999, is_simultaneous=is_simultaneous)
    assert text.startswith("99.9% band for")
    assert text.endswith(end)


@pytest.fixture(scope="module")
def planned():
    return plan_monitoring(periods=8, max_changes=2, num_users=2_000, epsilon0=1.0, delta=1e-6)


def test_the_worst_period_comes_first(planned):
    facts = error_facts(planned)
    widths = planned.errors["least-squares"].simultaneous_half_widths
    assert facts[0][0] == "error"
    assert facts[0][1].startswith(f"\u00b1{widths.max():,.0f} users (")
    assert facts[2] == ("", "95% band for all periods at once")
    assert "95% for each alone" in facts[3][1]


def test_rows_have_the_plan_first_and_all_that_it_is_compared_with(planned):
    rows = comparison_rows(planned)
    assert {len(row) for row in rows} == {len(HEADINGS)}
    assert rows[0][0] == "this plan: monitoring"
    assert [row[0] for row in rows[1:]] == [each.name for each in planned.comparison.collections]


def test_what_clients_do(planned):
    facts = dict(design_facts(planned))
    assert facts["users"] == "2,000"
    assert facts["periods"] == "8 (4 levels)"
    assert facts["protocol"] == planned.reason
    # levels with 8, 4, 2 and 1 nodes; two bits for the level, one for the sign
    assert facts["a user sends"] == "3.8 reports in all, on average, of 3 bits each"


def test_what_says_nothing_has_no_line(planned):
    def dashes(plan):
        (section,) = monitor_plan_page(plan).sections
        return [trace["line"]["dash"] for trace in section.figure.spec["data"]]

    assert dashes(planned) == ["solid"] * 3 + ["dash"] * 3
    useless = dataclasses.replace(
        planned.comparison,
        everybody_local=dataclasses.replace(
            planned.comparison.everybody_local, standard_error=math.inf
        ),
    )
    without = dataclasses.replace(planned, comparison=useless)
    assert len(dashes(without)) == 5
    assert comparison_rows(without)[1][1:3] == ("infinite", "-")
