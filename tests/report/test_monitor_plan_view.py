"""A plan as rows and lines: what stands first, and what cannot be said in numbers."""

import dataclasses
import math

import pytest

from shuffledp.monitoring.plan import plan_monitoring
from shuffledp.report.monitor_plan_view import (
    HEADINGS,
    comparison_rows,
    design_facts,
    error_facts,
    error_lines,
)


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
    assert [line.is_elsewhere for line in error_lines(planned)] == [False] * 3 + [True] * 3
    useless = dataclasses.replace(
        planned.comparison,
        everybody_local=dataclasses.replace(
            planned.comparison.everybody_local, standard_error=math.inf
        ),
    )
    without = dataclasses.replace(planned, comparison=useless)
    assert len(error_lines(without)) == 5
    assert comparison_rows(without)[1][1:3] == ("infinite", "-")
