"""Charts as plain plotly.js figures: dictionaries with ``data`` and ``layout``.

Colours are written as names of CSS variables, ``var(--accent)``; the page's script puts in the
values of the light or the dark theme when it draws. Building plain dictionaries instead of
``plotly.graph_objects`` keeps plotly's second of import time out; a test validates them with it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

from shuffledp.collection.results import Result
from shuffledp.report.formatting import brief, percent, rounded, shorten
from shuffledp.report.statement import safe_delta
from shuffledp.report.tables import EstimateRow, estimate_headings, estimate_rows
from shuffledp.report.wording import main_estimates, wording

MOST_BARS = 30  # more cannot be read; the table beside the chart is complete

_WIDE_LABEL, _NARROW_LABEL = 34, 14  # characters on a desktop, on a phone
AXIS = {
    "fixedrange": True,  # a finger on the chart scrolls the page
    "automargin": True,
    "gridcolor": "var(--line)",
    "zeroline": False,
    "linecolor": "var(--line-strong)",
    "tickfont": {"color": "var(--ink-soft)", "size": 13},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart and what stands in for it where it cannot be seen.

    Parameters
    ----------
    name : str
        Identifier on the page.
    spec : dict
        ``data``, ``layout``, and ``narrow``: layout entries replaced on a phone.
    description : str
        What the chart shows, for screen readers.
    headings, rows : tuple
        The same numbers as a table; empty where the page has the table anyway.
    """

    name: str
    spec: dict[str, Any]
    description: str
    headings: tuple[str, str] = ("", "")
    rows: tuple[tuple[str, str], ...] = ()


def estimates_figure(result: Result) -> Figure:
    """Return bars of the estimates with their confidence intervals.

    Up to 30 stand in the order of the question; of more, the 30 largest, by size.
    """
    rows, words = estimate_rows(result), wording(result)
    shown = list(range(len(rows)))
    if len(rows) > MOST_BARS:
        estimates = main_estimates(result)
        shown = sorted(shown, key=lambda i: -estimates[i])[:MOST_BARS]
    interval = estimate_headings(result).interval
    layout = base_layout(height=70 + (38 if len(shown) <= 12 else 26) * len(shown))
    layout["xaxis"] = {
        **AXIS,
        "tickformat": words.tick_format,
        "zeroline": True,
        "zerolinewidth": 1.5,
        "zerolinecolor": "var(--line-strong)",
    }
    layout["yaxis"] = {
        **AXIS,
        "tickmode": "array",
        "tickvals": list(range(len(shown))),
        "ticktext": [_plain(rows[i].value, _WIDE_LABEL) for i in shown],
        "ticks": "outside",
        "ticklen": 6,
        "tickcolor": "rgba(0,0,0,0)",
        "showgrid": False,
        "showline": False,
        "range": [len(shown) - 0.5, -0.5],  # the first answer on top
    }
    narrow = [_plain(rows[i].value, _NARROW_LABEL) for i in shown]
    which = f"each of {len(rows)}" if len(shown) == len(rows) else f"the {MOST_BARS} largest"
    return Figure(
        name="chart-estimates",
        spec={
            "data": _bars(result, rows, shown),
            "layout": layout,
            "narrow": {"yaxis.ticktext": narrow, "xaxis.nticks": 5},
        },
        description=(
            f"Bar chart of the estimated {words.plural}, {which}, with {interval}s. "
            "The table of estimates holds the same numbers."
        ),
    )


def _bars(result: Result, rows: list[EstimateRow], shown: list[int]) -> list[dict[str, Any]]:
    """Return bars of the estimates and whiskers of their intervals."""
    estimates = main_estimates(result)
    lower, upper = result.estimates.lower.tolist(), result.estimates.upper.tolist()
    interval = estimate_headings(result).interval
    # Positions are numbers and labels only tick texts, so that equal shortened labels stay two
    # bars and a label such as 2024-01-01 is no date.
    places = list(range(len(shown)))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [estimates[i] for i in shown],
        "y": places,
        "width": 0.62,
        "marker": {"color": "var(--accent-soft)", "line": {"width": 0}},
        "customdata": [
            f"<b>{_plain(rows[i].value, 60)}</b><br>{rows[i].estimate}<br>"
            f"{interval}: {rows[i].interval}"
            for i in shown
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    # The interval is drawn around its own middle: a Wilson interval is not centred on the
    # unbiased estimate, and need not contain it once that was post-processed.
    whiskers = {
        "type": "scatter",
        "mode": "markers",
        "x": [(lower[i] + upper[i]) / 2 for i in shown],
        "y": places,
        "marker": {"opacity": 0, "size": 1},
        "error_x": {
            "type": "data",
            "array": [(upper[i] - lower[i]) / 2 for i in shown],
            "color": "var(--ink)",
            "thickness": 1.5,
            "width": 4,
        },
        "hoverinfo": "skip",
    }
    return [bars, whiskers]


def num_users_figure(result: Result) -> Figure | None:
    """Return epsilon against the number of users, or None with fewer than two finite points."""
    points = _finite(result.epsilon_by_num_users)
    if len(points) < 2:
        return None
    numbers, epsilons = zip(*points, strict=True)
    # Above a falling curve there is room to the right, except at its very end.
    num_users = result.guarantee.num_users
    position = "top right" if num_users < 0.5 * numbers[-1] else "bottom left"
    figure = _curve_figure(
        result,
        name="chart-num-users",
        title="Number of users",
        points=points,
        labels=[f"{number:,}" for number in numbers],
        here=_this_run(num_users, result, position),
    )
    layout = figure.spec["layout"]
    decades = [10**d for d in range(16) if numbers[0] <= 10**d <= numbers[-1]]
    ticks = decades if len(decades) > 1 else list(numbers)
    layout["xaxis"] |= {
        "type": "log",
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [_short_count(tick) for tick in ticks],
    }
    if max(epsilons) > 10.0 * min(epsilons) > 0.0:  # epsilon falls as 1/sqrt(n): a straight line
        layout["yaxis"] |= {"type": "log", "dtick": 1, "rangemode": "normal"}
    return figure


def honest_share_figure(result: Result) -> Figure | None:
    """Return epsilon against the share of honest users, or None as above."""
    points = _finite(result.epsilon_by_honest_share)
    if len(points) < 2:
        return None
    everyone = result.guarantee.num_users == result.num_users
    figure = _curve_figure(
        result,
        name="chart-honest-share",
        title="Share of honest users",
        points=points,
        labels=[percent(share, 0 if (100 * share).is_integer() else 1) for share, _ in points],
        here=_this_run(1.0, result, "bottom left") if everyone else [],
    )
    figure.spec["layout"]["xaxis"] |= {"tickformat": ".0%", "range": [0, 1.04], "nticks": 6}
    return figure


def _finite(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that can be drawn, from left to right."""
    return sorted(point for point in points if math.isfinite(point[1]))


def _curve_figure(
    result: Result,
    *,
    name: str,
    title: str,
    points: list[tuple[float, float]],
    labels: list[str],
    here: list[dict[str, Any]],
) -> Figure:
    """Return the safe epsilon as a curve, this run as a point on it, the target as a line."""
    xs, epsilons = zip(*points, strict=True)
    shown = [rounded(epsilon, up=True) for epsilon in epsilons]
    curve = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(xs),
        "y": list(epsilons),
        "line": {"color": "var(--accent)", "width": 2},
        "marker": {"size": 5},
        "customdata": [
            f"{label}<br><b>\u03b5 \u2264 {epsilon}</b>"
            for label, epsilon in zip(labels, shown, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    target = {
        "type": "scatter",
        "mode": "lines+markers+text",
        "marker": {"size": 10, "opacity": 0},  # keeps the text off the line
        "x": [xs[0], xs[-1]],
        "y": [result.target_epsilon] * 2,
        "line": {"color": "var(--ink-soft)", "width": 1, "dash": "dot"},
        # On the left the falling curve is far above its end, so there is room.
        "text": [f"asked: {brief(result.target_epsilon)}", ""],
        "textposition": "bottom right",
        "textfont": {"color": "var(--ink-soft)", "size": 12},
        "hoverinfo": "skip",
    }
    layout = base_layout(height=320)
    label = {"font": {"color": "var(--ink-soft)", "size": 13}, "standoff": 12}
    layout["xaxis"] = {**AXIS, "title": {"text": title, **label}}
    layout["yaxis"] = {**AXIS, "title": {"text": "Safe \u03b5", **label}, "rangemode": "tozero"}
    return Figure(
        name=name,
        spec={"data": [target, curve, *here], "layout": layout, "narrow": {}},
        description=(
            f"Line chart of the safe epsilon at delta = {safe_delta(result.guarantee)} against the "
            f"{title.lower()}: from {shown[0]} at {labels[0]} to {shown[-1]} at {labels[-1]}. "
            "The table below holds the numbers."
        ),
        headings=(title, "Safe epsilon"),
        rows=tuple(zip(labels, shown, strict=True)),
    )


def _this_run(x: float, result: Result, position: str) -> list[dict[str, Any]]:
    """Return the mark of the run itself, if its epsilon is finite."""
    if math.isinf(result.guarantee.epsilon_upper):
        return []
    mark = {"size": 11, "color": "var(--accent)", "line": {"color": "var(--page)", "width": 2}}
    return [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [x],
            "y": [result.guarantee.epsilon_upper],
            "marker": mark,
            "text": ["this run"],
            "textposition": position,
            "textfont": {"color": "var(--ink)", "size": 13},
            "hoverinfo": "skip",
        }
    ]


def base_layout(*, height: int) -> dict[str, Any]:
    """Return what all charts share."""
    return {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "showlegend": False,
        "dragmode": False,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--font)", "color": "var(--ink)"},
        "hoverlabel": {
            "bgcolor": "var(--page)",
            "bordercolor": "var(--line-strong)",
            "font": {"color": "var(--ink)", "family": "var(--font)"},
        },
    }


def _plain(text: str, limit: int) -> str:
    """Return a label that plotly shows as it is: shortened, no tags, its direction kept inside."""
    # Between two dollar signs plotly would look for a formula.
    safe = escape(shorten(text, limit), quote=False).replace("$", "&#36;")
    return f"\u2068{safe}\u2069"


def _short_count(number: float) -> str:
    """Return 1000 as 1k, 10**6 as 1M, 10**9 as 1B."""
    for scale, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= scale:
            return f"{number / scale:.3g}{letter}"
    return f"{number:g}"
