"""Charts as plain plotly.js figures: dictionaries with ``data`` and ``layout``.

Colours are written as names of CSS variables, ``var(--accent)``; the page's script puts in the
values of the light or the dark theme when it draws. Building plain dictionaries instead of
``plotly.graph_objects`` keeps plotly's second of import time out; a test validates them with it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from shuffledp.collection.results import NetworkFacts, Result
from shuffledp.report.formatting import brief, count_text, percent, rounded, shorten
from shuffledp.report.wording import (
    EstimateRow,
    estimate_headings,
    estimate_rows,
    main_estimates,
    safe_delta,
    wording,
)

MOST_BARS = 30  # more cannot be read; the table beside the chart is complete

# Readable on the white page and on the dark one.
COLOURS = ("#1f77b4", "#c4621a", "#2f8f4e", "#c8414b", "#8a63c9", "#8c6d4f", "#c2559d", "#25858f")

_WIDE_LABEL, _NARROW_LABEL = 34, 14  # characters on a desktop, on a phone
_AXIS = {
    "fixedrange": True,  # a finger on the chart scrolls the page
    "automargin": True,
    "gridcolor": "var(--line)",
    "zeroline": False,
    "linecolor": "var(--line-strong)",
    "tickfont": {"color": "var(--ink-soft)", "size": 13},
}
_AXIS_TITLE = {"font": {"color": "var(--ink-soft)", "size": 13}, "standoff": 12}


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


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis, with a title if there is one."""
    return {**_AXIS, **({"title": {"text": title, **_AXIS_TITLE}} if title else {}), **more}


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
    hover: dict[str, Any] = {"hoverinfo": "skip"}
    if texts is not None:
        hover = {"customdata": list(texts), "hovertemplate": "%{customdata}<extra></extra>"}
    return {
        "type": "scatter",
        "mode": mode,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": width, "dash": dash},
        "marker": {"size": marker, "color": colour},
        **hover,
    }


def level(first: float, last: float, value: float, text: str) -> dict[str, Any]:
    """Return a dotted line across, with words on its left, where falling curves are far above."""
    return {
        **line((first, last), (value, value), "var(--ink-soft)", width=1, dash="dot"),
        "mode": "lines+markers+text",
        "marker": {"size": 10, "opacity": 0},  # keeps the text off the line
        "text": [text, ""],
        "textposition": "bottom right",
        "textfont": {"color": "var(--ink-soft)", "size": 12},
    }


def figure_of_estimates(result: Result) -> Figure:
    """Return bars with intervals: up to 30 in the question's order; of more, the 30 largest."""
    rows, words = estimate_rows(result), wording(result.question)
    shown = list(range(len(rows)))
    if len(rows) > MOST_BARS:
        estimates = main_estimates(result)
        shown = sorted(shown, key=lambda i: -estimates[i])[:MOST_BARS]
    layout = base_layout(height=70 + (38 if len(shown) <= 12 else 26) * len(shown))
    layout["xaxis"] = axis(
        tickformat=words.tick_format,
        zeroline=True,
        zerolinewidth=1.5,
        zerolinecolor="var(--line-strong)",
    )
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
    """Return the axis that names bars from top to bottom.

    Positions are numbers and labels only tick texts, so that equal shortened labels stay two bars
    and a label such as 2024-01-01 is no date.
    """
    return axis(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=names,
        ticks="outside",
        ticklen=6,
        tickcolor="rgba(0,0,0,0)",
        showgrid=False,
        showline=False,
        range=[len(names) - 0.5, -0.5],
    )


def _bars(result: Result, rows: list[EstimateRow], shown: list[int]) -> list[dict[str, Any]]:
    """Return bars of the estimates and whiskers of their intervals."""
    estimates = main_estimates(result)
    lower, upper = result.estimates.lower.tolist(), result.estimates.upper.tolist()
    interval = estimate_headings(result).interval
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [estimates[i] for i in shown],
        "y": list(range(len(shown))),
        "width": 0.62,
        "marker": {"color": "var(--accent-soft)", "line": {"width": 0}},
        "customdata": [
            f"<b>{plain_label(rows[i].value, 60)}</b><br>{rows[i].estimate}<br>"
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
        "y": list(range(len(shown))),
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


def figure_by_num_users(result: Result) -> Figure | None:
    """Return epsilon against the number of users, or None with fewer than two finite points."""
    points = _finite(result.epsilon_by_num_users)
    if len(points) < 2:
        return None
    numbers, epsilons = zip(*points, strict=True)
    # Above a falling curve there is room to the right, except at its very end.
    num_users = result.guarantee.num_users
    position = "top right" if num_users < 0.5 * numbers[-1] else "bottom left"
    figure = _epsilon_figure(
        "chart-num-users",
        "Number of users",
        points,
        [f"{number:,}" for number in numbers],
        level_at=(result.target_epsilon, f"asked: {brief(result.target_epsilon)}"),
        about=f"at delta = {safe_delta(result.guarantee)} against the number of users",
        here=_this_run(num_users, result, position),
    )
    decades = [10**d for d in range(16) if numbers[0] <= 10**d <= numbers[-1]]
    ticks = decades if len(decades) > 1 else list(numbers)
    figure.spec["layout"]["xaxis"] |= {
        "type": "log",
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [count_text(tick) for tick in ticks],
    }
    if max(epsilons) > 10.0 * min(epsilons) > 0.0:  # epsilon falls as 1/sqrt(n): a straight line
        figure.spec["layout"]["yaxis"] |= _LOGARITHMIC
    return figure


def figure_by_honest_share(result: Result) -> Figure | None:
    """Return epsilon against the share of honest users, or None as above."""
    points = _finite(result.epsilon_by_honest_share)
    if len(points) < 2:
        return None
    everyone = result.guarantee.num_users == result.num_users
    figure = _epsilon_figure(
        "chart-honest-share",
        "Share of honest users",
        points,
        [percent(share, 0 if (100 * share).is_integer() else 1) for share, _ in points],
        level_at=(result.target_epsilon, f"asked: {brief(result.target_epsilon)}"),
        about=f"at delta = {safe_delta(result.guarantee)} against the share of honest users",
        here=_this_run(1.0, result, "bottom left") if everyone else [],
    )
    figure.spec["layout"]["xaxis"] |= {"tickformat": ".0%", "range": [0, 1.04], "nticks": 6}
    return figure


def figure_by_rounds(facts: NetworkFacts | None) -> Figure | None:
    """Return epsilon against the rounds of a network shuffle, or None as above.

    The level is what a trusted uniform shuffler of all reports would give. Where holders hand in
    all they hold, the walk comes down to it and cannot go below; with one report each it ends near.
    """
    points = [] if facts is None else _finite(facts.epsilon_by_rounds)
    if facts is None or len(points) < 2:
        return None
    most = []
    if facts.most_by_rounds:
        rounds, epsilons = zip(*facts.most_by_rounds, strict=True)
        texts = [f"{text}<br>for 99 % of the users" for text in _hover(rounds, epsilons)]
        most = [line(rounds, epsilons, "var(--accent)", texts=texts, width=1, dash="dash")]
    figure = _epsilon_figure(
        "chart-rounds",
        "Rounds",
        points,
        [f"{rounds:,}" for rounds, _ in points],
        level_at=(facts.uniform_epsilon, "uniform shuffle"),
        about=(
            f"(uniform shuffle: {rounded(facts.uniform_epsilon, up=True)}) against the number of "
            "rounds"
        ),
        texts=_hover(*zip(*points, strict=True)),
        below=most,
    )
    figure.spec["layout"]["xaxis"]["rangemode"] = "tozero"
    if max(epsilon for _, epsilon in points) > 10.0 * facts.uniform_epsilon > 0.0:
        figure.spec["layout"]["yaxis"] |= _LOGARITHMIC
    return figure


_LOGARITHMIC = {"type": "log", "dtick": 1, "rangemode": "normal"}


def _finite(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that can be drawn, from left to right."""
    return sorted(point for point in points if math.isfinite(point[1]))


def _hover(rounds: Sequence[float], epsilons: Sequence[float]) -> list[str]:
    """Return what is shown beside points of a curve over rounds."""
    return [
        f"{number:,} rounds<br><b>\u03b5 \u2264 {rounded(epsilon, up=True)}</b>"
        for number, epsilon in zip(rounds, epsilons, strict=True)
    ]


def _epsilon_figure(
    name: str,
    title: str,
    points: list[tuple[float, float]],
    labels: list[str],
    *,
    level_at: tuple[float, str],
    about: str,
    texts: list[str] | None = None,
    below: Sequence[dict[str, Any]] = (),
    here: Sequence[dict[str, Any]] = (),
) -> Figure:
    """Return the safe epsilon as a curve, with a level to compare it with."""
    xs, epsilons = zip(*points, strict=True)
    shown = [rounded(epsilon, up=True) for epsilon in epsilons]
    if texts is None:
        texts = [
            f"{label}<br><b>\u03b5 \u2264 {epsilon}</b>"
            for label, epsilon in zip(labels, shown, strict=True)
        ]
    layout = base_layout(height=320)
    layout["xaxis"] = axis(title)
    layout["yaxis"] = axis("Safe \u03b5", rangemode="tozero")
    curve = line(xs, epsilons, "var(--accent)", texts=texts)
    return Figure(
        name=name,
        spec={
            "data": [level(xs[0], xs[-1], *level_at), *below, curve, *here],
            "layout": layout,
            "narrow": {},
        },
        description=(
            f"Line chart of the safe epsilon {about}: from {shown[0]} at {labels[0]} to "
            f"{shown[-1]} at {labels[-1]}. The table below holds the numbers."
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


def plain_label(text: str, limit: int) -> str:
    """Return a label that plotly shows as it is: shortened, no tags, its direction kept inside."""
    # Between two dollar signs plotly would look for a formula.
    safe = escape(shorten(text, limit), quote=False).replace("$", "&#36;")
    return f"\u2068{safe}\u2069"
