"""The page of a plan: the error of every randomizer, and what others used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from shuffledp.collection.plan import Plan
from shuffledp.report import dummies, wording
from shuffledp.report.drawing import COLOURS, Axis, Bar, Figure, Line, bars_figure, lines_figure
from shuffledp.report.formatting import given, rounded
from shuffledp.report.page import page_html, render_page
from shuffledp.report.precedents import PRECEDENTS

_MOST_TIMES = 20.0  # worse than the best: no bar


class Section(NamedTuple):
    """A table under its heading, with a chart above it if there is one."""

    name: str
    heading: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    figure: Figure | None = None
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPage:
    """A page of charts and tables, as its template takes it."""

    title: str
    lead: str
    command: str
    sections: tuple[Section, ...]
    key_figures: tuple[tuple[str, ...], ...] = ()


@page_html.register
def _(subject: Plan) -> str:
    points = subject.errors_by_epsilon()
    sections = [
        Section(
            "errors",
            "What each randomizer would give",
            *wording.plan_table(subject),
            figure_of_errors(subject),
            "Expected standard error of an estimate about these users, "
            f"{subject.question.expected_for}; less is better. The chosen one is darker.",
        ),
        Section("dummies", "Dummies", ("", ""), dummies.plan_rows(subject)),
        Section(
            "curve",
            "Error against epsilon",
            *wording.curve_table(subject, points),
            figure_of_curve(subject, points),
            "Expected standard error at other central targets, all else as planned.",
        ),
        Section(
            "known",
            "What known deployments used",
            ("deployment", "published parameters"),
            [(each.title, f"{each.parameters}; {each.source}") for each in PRECEDENTS],
        ),
    ]
    page = ChartPage(
        title=f"Plan for {subject.question.describe()}",
        lead=f"Every bar is a randomizer at the largest local loss that meets epsilon <= "
        f"{given(subject.target_epsilon)} at delta = {given(subject.target_delta)} with "
        f"{subject.num_users:,} honest users. True answers are "
        f"{wording.true_answers('planned', is_bare=math.isinf(subject.randomizer.epsilon0))}.",
        command="plan",
        sections=tuple(each for each in sections if each.rows),
        key_figures=key_figures(subject),
    )
    return render_page("charts.html", page=page, title=page.title, lead=page.lead)


def key_figures(plan: Plan) -> tuple[tuple[str, str, str], ...]:
    """Return the strip of figures on top: both guarantees first."""
    local = "no local noise", wording.TOGETHER
    if math.isfinite(plan.randomizer.epsilon0):
        epsilon0, odds, guess = wording.local_limits(plan.randomizer.profile, rounds=plan.rounds)
        name = "epsilon0" if plan.rounds == 1 else "epsilon"
        local = f"{name} = {epsilon0}", f"odds up to {odds}, right guess up to {guess}"
    return (
        (
            "Central privacy loss",
            f"epsilon <= {rounded(plan.guarantee.epsilon_upper, up=True)}",
            f"proved upper bound, at delta = {given(plan.target_delta)}",
        ),
        (
            "Without the shuffler",
            *local,
        ),
        (
            "Standard error",
            wording.error_text(plan, plan.expected_standard_error),
            "; at most ".join(
                [f"expected, {plan.question.expected_for}", *wording.worst_error(plan)]
            ),
        ),
        ("Users", f"{plan.num_users:,}", plan.randomizer.name),
    )


def figure_of_curve(plan: Plan, points: Sequence[tuple[float, tuple[float, ...]]]) -> Figure | None:
    """Return error against epsilon of the chosen randomizer and the runner-up, where finite."""
    points = [each for each in points if all(map(math.isfinite, each[1]))]
    if len(points) < 2:
        return None
    second, over = plan.runner_up, partial(Line, x=tuple(epsilon for epsilon, _ in points))
    names = map(_title, (plan, *(() if second is None else (second,))))
    each_errors = zip(*(errors for _, errors in points), strict=True)
    lines = [
        over(name=name, y=errors, colour=colour)
        for name, errors, colour in zip(names, each_errors, COLOURS, strict=False)
    ]
    return lines_figure(
        "chart-curve",
        lines,
        x=Axis(title="\u03b5", is_log=True),
        y=Axis(title="standard error", is_log=True),
        here=plan.target_epsilon,
    )


def figure_of_errors(plan: Plan) -> Figure:
    """Return a bar a randomizer; those without a finite error, or far worse, have none."""
    choices: list[Any] = [plan, *plan.alternatives]
    choices.sort(key=lambda each: each.expected_standard_error)
    most = _MOST_TIMES * choices[0].expected_standard_error
    bars = []
    for each in choices:
        error = each.expected_standard_error
        is_near = error <= most
        bars.append(
            Bar(
                label=wording.choice_name(each),
                value=error if is_near else 0.0,
                text=wording.error_text(plan, error) if is_near else "more than 20 times the least",
                colour="var(--accent)" if each is plan else "var(--accent-soft)",
                title=f"{_title(each)}\n"
                f"\u03b5\u2080 = {rounded(each.randomizer.epsilon0, up=True)}\n"
                f"{each.randomizer.num_report_bytes:,} bytes a report",
            )
        )
    return bars_figure(
        "chart-errors",
        bars,
        x=Axis(is_share=wording.wording(plan.question).is_share),
        description=(
            f"Bar chart of the expected standard error of {len(choices)} randomizers. The table "
            "below holds the same numbers."
        ),
    )


def _title(choice: Any) -> str:
    """Return the full name of a choice's randomizer, and whose dummies join it."""
    title = wording.randomizer_title(choice.randomizer)
    return f"{title}, {wording.choice_name(choice)}" if choice.dummies else title
