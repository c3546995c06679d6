"""Pages with nothing but charts and their numbers, such as those of plans and attacks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shuffledp.report.drawing import DASHES
from shuffledp.report.figures import (
    COLOURS,
    Figure,
    LegendEntry,
    axis,
    base_layout,
    line,
    plain_label,
)
from shuffledp.report.formatting import fixed, given, rounded
from shuffledp.report.page import page_html, render_page

if TYPE_CHECKING:
    from shuffledp.groups.attacks.survey import Measured
    from shuffledp.network.account import NetworkCurve


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSection:
    """A chart with its caption and its numbers in a table; or a table alone."""

    name: str
    heading: str
    figure: Figure | None = None
    caption: str = ""
    is_table_open: bool = False
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPage:
    """A page of charts, as `page_html` takes it."""

    title: str
    lead: str
    command: str
    sections: tuple[ChartSection, ...]
    key_figures: tuple[tuple[str, ...], ...] = ()


@page_html.register
def _(subject: ChartPage) -> str:
    return render_page("charts.html", page=subject, title=subject.title, lead=subject.lead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart; a level across where there is one value and no x."""

    name: str
    y: tuple[float | None, ...]
    colour: str
    x: tuple[float, ...] = ()
    dash: str = "solid"
    width: float = 2.0
    note: str = ""
    up: bool = True  # whether numbers are rounded up


def lines_figure(
    name: str,
    lines: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    x_scale: str = "linear",
    y_scale: str = "linear",
    y_axis: dict[str, Any] | None = None,
    here: float | None = None,
    unit: str = "",
) -> Figure:
    """Return lines over a common axis, with a legend, and the numbers as a table.

    A dotted line from top to bottom is at ``here``.
    """
    places = sorted({x for each in lines for x in each.x})
    traces = []
    for each in lines:
        xs = each.x or (places[0], places[-1])
        ys = each.y if each.x else each.y * 2
        texts = [
            f"{plain_label(each.name, 60)}<br>{x:,.6g} {x_title}<br>{_number(y, each)}{unit}"
            for x, y in zip(xs, ys, strict=True)
        ]
        marks = "lines+markers" if len(each.x) in range(1, 41) else "lines"
        traces.append(
            line(xs, ys, each.colour, texts=texts, mode=marks, width=each.width, dash=each.dash)
        )
    layout = base_layout(height=400)
    layout["xaxis"] = axis(x_title, type=x_scale)
    layout["yaxis"] = axis(y_title, type=y_scale, **(y_axis or {}))
    if here is not None:
        layout["here"] = here
    values = [dict(zip(each.x, each.y, strict=True)) if each.x else each.y[0] for each in lines]
    rows = [
        (
            f"{x:,.6g}",
            *(
                _number(each.get(x) if isinstance(each, dict) else each, of)
                for each, of in zip(values, lines, strict=True)
            ),
        )
        for x in places
    ]
    return Figure(
        name=name,
        spec={"data": traces, "layout": layout, "narrow": {}},
        description=(
            f"Line chart of {len(lines)} lines: {y_title} against {x_title}. The table below holds "
            "the numbers."
        ),
        headings=(x_title, *(each.name for each in lines)),
        rows=tuple(rows),
        legend=tuple(
            LegendEntry(
                each.colour,
                label=each.name,
                text=f": {each.note}" if each.note else "",
                dashes=DASHES[each.dash],
            )
            for each in lines
        ),
    )


def _number(value: float | None, of: Line) -> str:
    """Return a value; nothing where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    return rounded(value, up=of.up, digits=5)


# --------------------------------------------------------------------- shuffling through networks
OURS, PUBLISHED = "ours", "published theorem, corrected"
UNIFORM, LOCAL = "trusted uniform shuffler", "local reports alone"
_DASH_OF = {OURS: "solid", PUBLISHED: "dash", UNIFORM: "dashdot", LOCAL: "dot"}
_TOP = 4.0  # times epsilon0; a published bound may be far above it, where it says nothing


def network_lines(curves: Sequence["NetworkCurve"]) -> list[tuple[str, str, Line]]:
    """Return whose numbers, which graph's, and the line; one level for graphs of one size."""
    levels = {each.uniform_epsilon for each in curves}
    found: list[tuple[str, str, Line]] = []

    def add(
        claim: str, variant: str, y: Sequence[float | None], curve: Any, note: str = ""
    ) -> None:
        known = list(dict.fromkeys(name for _, name, _ in found if name))
        place = known.index(variant) if variant in known else len(known)
        found.append(
            (
                claim,
                variant,
                Line(
                    name=f"{claim}, {variant}" if variant else claim,
                    x=() if curve is None else tuple(map(float, curve.rounds)),
                    y=tuple(y),
                    colour=COLOURS[place % len(COLOURS)] if variant else "var(--ink-soft)",
                    dash=_DASH_OF[claim],
                    width=2.0 if claim == OURS else 1.3,
                    note=note,
                ),
            )
        )

    for each in curves:
        add(OURS, each.name, each.epsilon, each, f"{each.method} bounds")
        if each.epsilon_of_most:
            add(OURS, f"{each.name}, 99 % of users", each.epsilon_of_most, each)
        if any(value is not None for value in each.published):
            add(PUBLISHED, each.name, each.published, each)
        if len(levels) > 1:
            add(UNIFORM, each.name, (each.uniform_epsilon,), None)
    if len(levels) == 1:
        add(UNIFORM, "", tuple(levels), None)
    add(LOCAL, "", (curves[0].epsilon0,), None)
    return found


def network_page(curves: Sequence["NetworkCurve"]) -> ChartPage:
    """Return epsilon against rounds, for graphs of the same epsilon0, delta and protocol."""
    one = curves[0]
    first, last = min(each.rounds[0] for each in curves), max(each.rounds[-1] for each in curves)
    lines = [each for _, _, each in network_lines(curves)]
    lowest = min(y for each in lines for y in each.y if y)
    figure = lines_figure(
        "chart-network",
        lines,
        x_title="rounds",
        y_title="central \u03b5",
        x_scale="log" if first > 0 and last >= 50 * first else "linear",
        y_scale="log",
        y_axis={"range": [math.log10(lowest) - 0.1, math.log10(_TOP * one.epsilon0)]}
        if one.epsilon0 > 0.0
        else None,
    )
    graphs = "; ".join(
        f"{each.name}: {each.num_users:,} users, {each.num_edges:,} edges, {each.method} bounds"
        for each in curves
    )
    caption = (
        f"{graphs}. Ours: proved, for every user. Published: Liew et al., "
        '"Network Shuffling", arXiv:2204.03919, in the form that is proved after any number of '
        "rounds on any graph; where it exceeds epsilon0 it says nothing."
    )
    return ChartPage(
        title="Epsilon against rounds of a network shuffle",
        lead=(
            f'Protocol "{one.protocol}", epsilon0 = {given(one.epsilon0)}, '
            f"delta = {given(one.delta)}."
        ),
        command="network curve",
        sections=(
            ChartSection(name="curves", heading="Over rounds", figure=figure, caption=caption),
        ),
    )


# --------------------------------------------------------------------- attacks and models
def measured_page(results: Sequence["Measured"], command: str) -> ChartPage:
    """Return a table a measure: means, and from where to where they lie."""
    panels: dict[str, list[tuple[str, ...]]] = {}
    for each in results:
        found = each.of_better()
        deviation = found.standard_deviation or 0.0
        is_other = found.task != each.task
        row = (
            f"{found.arrangement} ({found.task})" if is_other else found.arrangement,
            fixed(found.mean, 4),
            fixed(max(found.mean - deviation, 0.0), 4),
            fixed(found.mean + deviation, 4),
        )
        heading = f"{each.task.replace('-', ' ').capitalize()}: {each.measure}"
        panels.setdefault(heading, []).append(row)
    return ChartPage(
        title="What an adversary infers" if command == "attack" else "What a model learns",
        lead="A simulation on true answers: nothing is released, and the figures are not private. "
        "From and to are one standard deviation below and above the mean, over the trials.",
        command=command,
        sections=tuple(
            ChartSection(
                name=f"measure-{index}",
                heading=heading,
                headings=("reports", "mean", "from", "to"),
                rows=tuple(rows),
            )
            for index, (heading, rows) in enumerate(panels.items())
        ),
    )
