"""Charts as plain dictionaries with ``data``, ``layout`` and ``narrow``, which `drawing` draws.

Colours are written as names of CSS variables, ``var(--accent)``, so that both themes hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from shuffledp.collection.results import Result
from shuffledp.report.formatting import shorten
from shuffledp.report.wording import (
    EstimateRow,
    estimate_headings,
    estimate_rows,
    main_estimates,
    wording,
)

MOST_BARS = 30  # more cannot be read; the table beside the chart is complete

# Readable on the white page and on the dark one.
COLOURS = ("#1f77b4", "#c4621a", "#2f8f4e", "#c8414b", "#8a63c9", "#8c6d4f", "#c2559d", "#25858f")

_WIDE_LABEL, _NARROW_LABEL = 34, 14  # characters on a desktop, on a phone


class LegendEntry(NamedTuple):
    """How one line or band is drawn, and what it is: our own words, or a label from outside."""

    colour: str
    text: str = ""
    label: str = ""
    dashes: str = ""
    is_shade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, with the words and numbers that stand in for it where it cannot be seen."""

    name: str
    spec: dict[str, Any]  # ``data``, ``layout``, and ``narrow``: what a phone replaces in it
    description: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()  # empty where the page has the table anyway
    legend: tuple[LegendEntry, ...] = ()


def base_layout(*, height: int) -> dict[str, Any]:
    """Return what all charts share."""
    return {"height": height}


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis, with a title if there is one."""
    return {"title": title, **more}


def line(
    x: Sequence[float],
    y: Sequence[float | None],
    colour: str,
    *,
    texts: Sequence[str] | None = None,
    mode: str = "lines+markers",
    width: float = 2.0,
    dash: str = "solid",
    marker: int = 5,
) -> dict[str, Any]:
    """Return a line; with texts, they are shown on hovering. Where a value is None is a gap."""
    return {
        "type": "scatter",
        "mode": mode,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": width, "dash": dash},
        "marker": {"size": marker, "color": colour},
        "customdata": list(texts or ()),
    }


def figure_of_estimates(result: Result) -> Figure:
    """Return bars with intervals: up to 30 in the question's order; of more, the 30 largest."""
    rows, words = estimate_rows(result), wording(result.question)
    shown = list(range(len(rows)))
    if len(rows) > MOST_BARS:
        estimates = main_estimates(result)
        shown = sorted(shown, key=lambda i: -estimates[i])[:MOST_BARS]
    layout = base_layout(height=70 + (38 if len(shown) <= 12 else 26) * len(shown))
    layout["xaxis"] = axis(tickformat=words.tick_format)
    layout["yaxis"] = bar_names([plain_label(rows[i].value, _WIDE_LABEL) for i in shown])
    narrow = [plain_label(rows[i].value, _NARROW_LABEL) for i in shown]
    which = f"each of {len(rows)}" if len(shown) == len(rows) else f"the {MOST_BARS} largest"
    return Figure(
        name="chart-estimates",
        spec={
            "data": _bars(result, rows, shown),
            "layout": layout,
            "narrow": {"yaxis.ticktext": narrow, "xaxis.nticks": 5},
        },
        description=(
            f"Bar chart of the estimated {words.plural}, {which}, with "
            f"{estimate_headings(result).interval}s. The table of estimates holds the same numbers."
        ),
    )


def bar_names(names: list[str]) -> dict[str, Any]:
    """Return the axis that names bars from top to bottom."""
    return axis(
        tickvals=list(range(len(names))),
        ticktext=names,
        showgrid=False,
        range=[len(names) - 0.5, -0.5],
    )


def _bars(result: Result, rows: list[EstimateRow], shown: list[int]) -> list[dict[str, Any]]:
    """Return bars of the estimates and whiskers of their intervals."""
    estimates = main_estimates(result)
    lower, upper = result.estimates.lower.tolist(), result.estimates.upper.tolist()
    interval = estimate_headings(result).interval
    bars = {
        "type": "bar",
        "x": [estimates[i] for i in shown],
        "y": list(range(len(shown))),
        "width": 0.62,
        "marker": {"color": "var(--accent-soft)"},
        "customdata": [
            f"{plain_label(rows[i].value, 60)}<br>{rows[i].estimate}<br>"
            f"{interval}: {rows[i].interval}"
            for i in shown
        ],
    }
    # The interval is drawn around its own middle: a Wilson interval is not centred on the
    # unbiased estimate, and need not contain it once that was post-processed.
    whiskers = {
        "type": "scatter",
        "mode": "none",
        "x": [(lower[i] + upper[i]) / 2 for i in shown],
        "y": list(range(len(shown))),
        "error_x": {
            "array": [(upper[i] - lower[i]) / 2 for i in shown],
            "color": "var(--ink)",
            "thickness": 1.5,
        },
    }
    return [bars, whiskers]


def plain_label(text: str, limit: int) -> str:
    """Return a label that is shown as it is: shortened, no tags, its direction kept inside."""
    return f"\u2068{escape(shorten(text, limit), quote=False)}\u2069"
