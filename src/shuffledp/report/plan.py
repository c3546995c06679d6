"""A plan: the lines that say it, and a page with the error of every randomizer."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from shuffledp.collection.choices import Alternative
from shuffledp.collection.plan import Plan
from shuffledp.report.charts import ChartPage, ChartSection, Line, lines_figure
from shuffledp.report.figures import COLOURS, Figure, axis, bar_names, base_layout
from shuffledp.report.formatting import given, rounded
from shuffledp.report.page import page_html
from shuffledp.report.precedents import PRECEDENTS
from shuffledp.report.wording import (
    PLAN_HEADINGS,
    curve_table,
    error_text,
    local_limits,
    plan_rows,
    randomizer_title,
    wording,
)

_LONGEST_NAME = 34  # characters beside a bar
_MOST_TIMES = 20.0  # worse than the best: no bar


@page_html.register
def _(subject: Plan) -> str:
    section = ChartSection(
        name="errors",
        heading="What each randomizer would give",
        figure=figure_of_errors(subject),
        caption=(
            "Expected standard error of an estimate about these users, "
            f"{subject.question.expected_for}; less is better. The chosen one is darker."
        ),
        is_table_open=True,
    )
    lead = (
        f"Every bar is a randomizer at the largest local loss that meets epsilon <= "
        f"{given(subject.target_epsilon)} at delta = {given(subject.target_delta)} with "
        f"{subject.num_users:,} honest users."
    )
    points = subject.errors_by_epsilon()
    headings, rows = curve_table(subject, points)
    curve = ChartSection(
        name="curve",
        heading="Error against epsilon",
        figure=figure_of_curve(subject, points),
        caption="Expected standard error at other central targets, all else as planned.",
        headings=headings,
        rows=tuple(rows),
    )
    known = ChartSection(
        name="known",
        heading="What known deployments used",
        headings=("deployment", "published parameters"),
        rows=tuple((each.title, f"{each.parameters}; {each.source}") for each in PRECEDENTS),
    )
    title = f"Plan for {subject.question.describe()}"
    return page_html(
        ChartPage(
            title=title,
            lead=lead,
            command="plan",
            sections=(section, *((curve,) if rows else ()), known),
            key_figures=_key_figures(subject),
        )
    )


def _key_figures(plan: Plan) -> tuple[tuple[str, str, str, str], ...]:
    """Return the strip of figures on top: both guarantees first."""
    epsilon0, odds, guess = local_limits(plan.randomizer.profile, rounds=plan.rounds)
    return (
        (
            "Central privacy loss",
            f"epsilon <= {rounded(plan.guarantee.epsilon_upper, up=True)}",
            f"proved upper bound, at delta = {given(plan.target_delta)}",
            "",
        ),
        (
            "Without the shuffler",
            f"{'epsilon0' if plan.rounds == 1 else 'epsilon'} = {epsilon0}",
            f"odds up to {odds}, right guess up to {guess}",
            "",
        ),
        (
            "Standard error",
            error_text(plan, plan.expected_standard_error),
            f"expected, {plan.question.expected_for}",
            "",
        ),
        ("Users", f"{plan.num_users:,}", plan.randomizer.name, ""),
    )


def figure_of_curve(plan: Plan, points: Sequence[tuple[float, tuple[float, ...]]]) -> Figure | None:
    """Return error against epsilon of the chosen randomizer and the runner-up, where finite."""
    points = [each for each in points if all(map(math.isfinite, each[1]))]
    if len(points) < 2:
        return None
    second = plan.runner_up
    laws = [plan.randomizer, *(() if second is None else (second.randomizer,))]
    lines = [
        Line(
            name=randomizer_title(law),
            x=tuple(epsilon for epsilon, _ in points),
            y=tuple(errors[place] for _, errors in points),
            colour=colour,
        )
        for place, (law, colour) in enumerate(zip(laws, COLOURS, strict=False))
    ]
    return lines_figure(
        "chart-curve",
        lines,
        x_title="\u03b5",
        y_title="standard error",
        x_scale="log",
        y_scale="log",
        here=plan.target_epsilon,
    )


def figure_of_errors(plan: Plan) -> Figure:
    """Return a bar a randomizer; those without a finite error, or far worse, have none."""
    choices: list[Any] = [plan, *plan.alternatives]
    choices.sort(key=lambda each: each.expected_standard_error)
    most = _MOST_TIMES * choices[0].expected_standard_error
    errors = [each.expected_standard_error for each in choices]
    layout = base_layout(height=70 + 38 * len(choices))
    tick_format = wording(plan.question).error_tick_format
    layout["xaxis"] = axis(tickformat=tick_format, rangemode="tozero")
    layout["yaxis"] = bar_names([_short_name(each) for each in choices])
    bars = {
        "type": "bar",
        "x": [error if error <= most else 0.0 for error in errors],
        "y": list(range(len(choices))),
        "width": 0.62,
        "text": [
            error_text(plan, error) if error <= most else "more than 20 times the least"
            for error in errors
        ],
        "marker": {
            "color": ["var(--accent)" if each is plan else "var(--accent-soft)" for each in choices]
        },
        "customdata": [
            f"{escape(randomizer_title(each.randomizer))}<br>"
            f"\u03b5\u2080 = {rounded(each.randomizer.epsilon0, up=True)}<br>"
            f"{each.randomizer.num_report_bytes:,} bytes a report"
            for each in choices
        ],
    }
    return Figure(
        name="chart-errors",
        spec={"data": [bars], "layout": layout, "narrow": {}},
        description=(
            f"Bar chart of the expected standard error of {len(choices)} randomizers. The table "
            "below holds the same numbers."
        ),
        headings=PLAN_HEADINGS,
        rows=tuple(plan_rows(plan)),
    )


def _short_name(choice: Plan | Alternative) -> str:
    """Return the randomizer's name as it stands beside its bar."""
    name = choice.randomizer.name
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "\u2026"
