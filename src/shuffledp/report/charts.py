"""Pages of charts and tables: of plans and networks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from shuffledp.report.drawing import COLOURS, Axis, Figure, Line, lines_figure
from shuffledp.report.formatting import given
from shuffledp.report.page import page_html, render_page

if TYPE_CHECKING:
    from shuffledp.network.account import NetworkCurve


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
    """A page of charts and tables, as `page_html` takes it."""

    title: str
    lead: str
    command: str
    sections: tuple[Section, ...]
    key_figures: tuple[tuple[str, ...], ...] = ()


@page_html.register
def _(subject: ChartPage) -> str:
    return render_page("charts.html", page=subject, title=subject.title, lead=subject.lead)


# --------------------------------------------------------------------- shuffling through networks
_TOP = 4.0  # times epsilon0; a published bound may be far above it, where it says nothing


def network_lines(curves: Sequence["NetworkCurve"]) -> list[Line]:
    """Return a colour a graph, a stroke a claim; one level for graphs of one size."""
    levels = {each.uniform_epsilon for each in curves}
    across = partial(Line, colour="var(--ink-soft)", width=1.3)
    lines = []
    for place, each in enumerate(curves):
        colour, name = COLOURS[place % len(COLOURS)], each.name
        over = partial(Line, x=tuple(map(float, each.rounds)), colour=colour)
        note = f"{each.method} bounds"
        lines.append(over(name=f"ours, {name}", y=tuple(each.epsilon), note=note))
        if each.epsilon_of_most:
            most = tuple(each.epsilon_of_most)
            lines.append(over(name=f"ours, {name}, 99 % of users", y=most, dash="dot"))
        if any(value is not None for value in each.published):
            published = f"published theorem, corrected, {name}"
            lines.append(over(name=published, y=tuple(each.published), dash="dash", width=1.3))
        if len(levels) > 1:
            level = f"trusted uniform shuffler, {name}"
            lines.append(across(name=level, y=(each.uniform_epsilon,), dash="dashdot"))
    if len(levels) == 1:
        lines.append(across(name="trusted uniform shuffler", y=tuple(levels), dash="dashdot"))
    lines.append(across(name="local reports alone", y=(curves[0].epsilon0,), dash="dot"))
    return lines


def network_page(curves: Sequence["NetworkCurve"]) -> ChartPage:
    """Return epsilon against rounds, for graphs of the same epsilon0, delta and protocol."""
    one, lines = curves[0], network_lines(curves)
    first, last = min(each.rounds[0] for each in curves), max(each.rounds[-1] for each in curves)
    lowest = min((y for each in lines for y in each.y if y), default=1.0)
    figure = lines_figure(
        "chart-network",
        lines,
        x=Axis(title="rounds", is_log=first > 0 and last >= 50 * first),
        y=Axis(
            title="central \u03b5",
            is_log=True,
            limits=(0.8 * lowest, _TOP * one.epsilon0) if one.epsilon0 > 0.0 else None,
        ),
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
        sections=(Section("chart", "Over rounds", figure.headings, figure.rows, figure, caption),),
    )
