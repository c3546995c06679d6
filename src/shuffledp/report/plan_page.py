"""A plan as a page: the error of every randomizer as a chart, and the same as a table."""

from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.report.figures import AXIS, Figure, base_layout
from shuffledp.report.formatting import given, rounded
from shuffledp.report.page import document
from shuffledp.report.plan_view import HEADINGS, error_text, plan_rows
from shuffledp.report.sections import figure_place, section
from shuffledp.report.typesetting import typeset
from shuffledp.report.wording import randomizer_title, wording_for
from shuffledp.report.writing import write_text_atomically

if TYPE_CHECKING:
    from shuffledp.collection.plan import Alternative, Plan

_LONGEST_NAME = 34  # characters beside a bar


def write_plan_page(plan: "Plan", path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML page about a plan.

    Parameters
    ----------
    plan : Plan
        Of any kind of question.
    path : str or path-like
        Where to; an existing file is replaced in one step.

    Returns
    -------
    Path
        The file written, about 5 MB.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    figure = errors_figure(plan)
    lead = (
        f"Every bar is a randomizer at the largest local loss that meets epsilon <= "
        f"{given(plan.target_epsilon)} at delta = {given(plan.target_delta)} with "
        f"{plan.num_users:,} honest users."
    )
    caption = (
        f"Expected standard error of an estimate about these users, {plan.question.expected_for}; "
        "less is better. The chosen one is darker."
    )
    body = section(
        "errors",
        "What each randomizer would give",
        figure_place(figure, caption) + _table(plan),
    )
    title = f"Plan for {plan.question.describe()}"
    page = document(
        title=escape(title),
        lead=typeset(lead),
        body=[body],
        figures=[figure],
        eyebrow="shuffledp plan",
    )
    return write_text_atomically(path, page)


def errors_figure(plan: "Plan") -> Figure:
    """Return bars of the expected standard error of every randomizer that was compared.

    Parameters
    ----------
    plan : Plan
        Whose choice is drawn in another colour. Randomizers without a finite error, and those
        more than twenty times worse than the best, are named but have no bar.
    """
    choices: list[Any] = [plan, *plan.alternatives]
    choices.sort(key=lambda each: each.expected_standard_error)
    most = 20.0 * choices[0].expected_standard_error
    errors = [each.expected_standard_error for each in choices]
    names = [_short_title(each) for each in choices]
    layout = base_layout(height=70 + 38 * len(choices))
    layout["xaxis"] = {
        **AXIS,
        "tickformat": wording_for(plan.question).error_tick_format,
        "rangemode": "tozero",
    }
    layout["yaxis"] = {
        **AXIS,
        "tickmode": "array",
        "tickvals": list(range(len(choices))),
        "ticktext": names,
        "showgrid": False,
        "range": [len(choices) - 0.5, -0.5],
    }
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [error if error <= most else 0.0 for error in errors],
        "y": list(range(len(choices))),
        "width": 0.62,
        "text": [_error_label(plan, error, most) for error in errors],
        "textposition": "auto",
        "marker": {
            "color": ["var(--accent)" if each is plan else "var(--accent-soft)" for each in choices]
        },
        "customdata": [
            f"<b>{escape(randomizer_title(each.randomizer))}</b><br>"
            f"\u03b50 = {rounded(each.randomizer.epsilon0, up=True)}<br>"
            f"{each.randomizer.num_report_bytes:,} bytes a report"
            for each in choices
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    return Figure(
        name="chart-errors",
        spec={"data": [bars], "layout": layout, "narrow": {"xaxis.nticks": 4}},
        description=(
            f"Bar chart of the expected standard error of {len(choices)} randomizers. The table "
            "below holds the same numbers."
        ),
    )


def _short_title(choice: "Plan | Alternative") -> str:
    """Return the randomizer's name as it stands beside its bar."""
    name = choice.randomizer.name
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "\u2026"


def _error_label(plan: "Plan", error: float, most: float) -> str:
    """Return the error as text; one without a bar says so."""
    return error_text(plan, error) if error <= most else "more than 20 times the least"


def _table(plan: "Plan") -> str:
    """Return the same numbers, with the other trust models, as a table."""
    head = "".join(f'<th scope="col">{typeset(name)}</th>' for name in HEADINGS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{typeset(cell)}</td>" for cell in row) + "</tr>"
        for row in plan_rows(plan)
    )
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
