"""What is shown of a monitored statistic: which curves and rows, in which words."""

import numpy as np
import pytest

from report.monitor_views import build_view
from shuffledp.report.monitor_view import (
    MOST_CURVES,
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
    assert table_headings(view).numbers == (
        "Estimate",
        "Share",
        "Standard error",
        "Band",
        "True count",
        "Error",
    )
    rows = table_rows(view)
    assert [row.name for row in rows] == list(view.periods)
    assert rows[0].numbers == ("-10", "-1.00%", "10", "-40 to 20", "0", "-10")
    several = build_view(num_curves=3, truth=False)
    assert table_headings(several).numbers == ("Value", "Estimate", "Standard error", "Band")
    rows = table_rows(several)
    assert len(rows) == 24
    assert rows[1].numbers == ("value 1", "0", "10", "-30 to 30")


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
