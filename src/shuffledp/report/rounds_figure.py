"""Chart of epsilon against the rounds of a shuffle through a network.

The dotted line is what a trusted uniform shuffler of all reports would give. Where holders hand in
all they hold, the walk comes down to it and cannot go below; where they hand in one report each, it
ends near it.
"""

import math
from typing import Any

from shuffledp.collection.results import NetworkFacts, Result
from shuffledp.report.figures import AXIS, Figure, base_layout
from shuffledp.report.formatting import rounded


def rounds_figure(result: Result) -> Figure | None:
    """Return epsilon against rounds, or None with fewer than two finite points."""
    facts = result.network
    points = [] if facts is None else [p for p in facts.epsilon_by_rounds if math.isfinite(p[1])]
    if facts is None or len(points) < 2:
        return None
    rounds, epsilons = zip(*points, strict=True)
    shown = [rounded(epsilon, up=True) for epsilon in epsilons]
    layout = base_layout(height=320)
    label = {"font": {"color": "var(--ink-soft)", "size": 13}, "standoff": 12}
    layout["xaxis"] = {**AXIS, "title": {"text": "Rounds", **label}, "rangemode": "tozero"}
    layout["yaxis"] = {**AXIS, "title": {"text": "Safe \u03b5", **label}, "rangemode": "tozero"}
    if max(epsilons) > 10.0 * facts.uniform_epsilon > 0.0:
        layout["yaxis"] |= {"type": "log", "dtick": 1, "rangemode": "normal"}
    return Figure(
        name="chart-rounds",
        spec={
            "data": [
                _uniform_line(rounds[0], rounds[-1], facts),
                *_most_lines(facts),
                _curve(rounds, epsilons, shown),
            ],
            "layout": layout,
            "narrow": {},
        },
        description=(
            f"Line chart of the safe epsilon against the number of rounds: from {shown[0]} after "
            f"{rounds[0]} to {shown[-1]} after {rounds[-1]}. A uniform shuffle gives "
            f"{rounded(facts.uniform_epsilon, up=True)}. The table below holds the numbers."
        ),
        headings=("Rounds", "Safe epsilon"),
        rows=tuple((f"{number:,}", epsilon) for number, epsilon in zip(rounds, shown, strict=True)),
    )


def _most_lines(facts: NetworkFacts) -> list[dict[str, Any]]:
    """Return the curve for 99 % of the users, where there is one."""
    if not facts.most_by_rounds:
        return []
    rounds, epsilons = zip(*facts.most_by_rounds, strict=True)
    shown = [rounded(epsilon, up=True) for epsilon in epsilons]
    line = _curve(rounds, epsilons, shown)
    line["line"] = {"color": "var(--accent)", "width": 1, "dash": "dash"}
    line["customdata"] = [f"{each}<br>for 99 % of the users" for each in line["customdata"]]
    return [line]


def _curve(
    rounds: tuple[int, ...], epsilons: tuple[float, ...], shown: list[str]
) -> dict[str, Any]:
    """Return the curve with its numbers on hovering."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(rounds),
        "y": list(epsilons),
        "line": {"color": "var(--accent)", "width": 2},
        "marker": {"size": 5},
        "customdata": [
            f"{number:,} rounds<br><b>\u03b5 \u2264 {epsilon}</b>"
            for number, epsilon in zip(rounds, shown, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _uniform_line(first: int, last: int, facts: NetworkFacts) -> dict[str, Any]:
    """Return the level of a trusted uniform shuffler."""
    return {
        "type": "scatter",
        "mode": "lines+markers+text",
        "marker": {"size": 10, "opacity": 0},  # keeps the text off the line
        "x": [first, last],
        "y": [facts.uniform_epsilon] * 2,
        "line": {"color": "var(--ink-soft)", "width": 1, "dash": "dot"},
        "text": ["uniform shuffle", ""],
        "textposition": "bottom right",
        "textfont": {"color": "var(--ink-soft)", "size": 12},
        "hoverinfo": "skip",
    }
