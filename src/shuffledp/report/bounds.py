"""All bounds side by side: rows of text for the terminal, and a page with curves.

The page has the curves, the table, and what each method states and where.
"""

import math
from dataclasses import dataclass
from html import escape
from typing import Any

from shuffledp.collection.bounds import BoundComparison, BoundCurves, Over, Scenario, Standing
from shuffledp.report.drawing import DASHES
from shuffledp.report.figures import COLOURS, Figure, LegendEntry, axis, base_layout, line
from shuffledp.report.formatting import count_text, given, rounded, typeset
from shuffledp.report.page import page_html, render_page

_DIGITS = 6
_RATIO_DIGITS = 4
_STROKES = ("solid", "dot", "dashdot")  # dashes are kept for the lower end
_LEAST_DELTA = 1e-30  # nobody cares for less
_MANY_DECADES = 12
_TITLES = {Over.NUM_USERS: "Number of users", Over.EPSILON0: "Local \u03b5<sub>0</sub>"}
_OVER_TEXT = {Over.NUM_USERS: "the number of users", Over.EPSILON0: "epsilon0"}
_EPSILON0_TICKS = (1.0, 2.0, 5.0)

LOWER_END = "no analysis can go below"


def headings(comparison: BoundComparison) -> tuple[str, ...]:
    """Return the headings of `bound_rows`."""
    return ("bound", comparison.scenario.asked, "times the best", "exact", "proved")


def scenario_text(scenario: Scenario) -> str:
    """Say what the bounds are about."""
    given_name = "epsilon" if scenario.asked == "delta" else "delta"
    return (
        f"{randomizer_text(scenario)} with epsilon0 = {given(scenario.epsilon0)}, "
        f"{users_text(scenario.num_users)}, {given_name} = {given(scenario.given)}"
    )


def users_text(num_users: int) -> str:
    """Return a number of users in words."""
    return "1 user" if num_users == 1 else f"{num_users:,} users"


def randomizer_text(scenario: Scenario) -> str:
    """Name the randomizer with its parameters."""
    if scenario.randomizer is None:
        return "any randomizer"
    parameters = "".join(
        f", {name} = {value}"
        for name, value in (("k", scenario.domain_size), ("dimension", scenario.dimension))
        if value is not None
    )
    return f"{scenario.randomizer}{parameters},"


def bound_rows(comparison: BoundComparison) -> list[tuple[str, ...]]:
    """Return the useful bounds, smallest first, rounded up; then the lower end, rounded down."""
    rows: list[tuple[str, ...]] = [
        (
            each.method.name,
            number(each.value, up=True),
            ratio_text(comparison, each.value, up=True),
            "yes" if each.method.is_exact else "no",
            "here" if each.method.proved_here else "source",
        )
        for each in comparison.useful
    ]
    lower = comparison.lower
    if lower is not None:
        ratio = ratio_text(comparison, lower, up=False)
        rows.append((LOWER_END, number(lower, up=False), ratio, "", ""))
    return rows


def missing_rows(comparison: BoundComparison) -> list[tuple[str, str]]:
    """Return every other method, and why it says nothing here."""
    rows = []
    for each in comparison.bounds:
        if each.standing is Standing.NO_GAIN:
            value = number(each.value, up=True)
            rows.append((each.method.name, f"{value}: {each.reason}"))
        elif each.standing is not Standing.BOUND:
            rows.append((each.method.name, each.reason))
    return rows


def number(value: float | None, *, up: bool) -> str:
    """Return a bound in six digits; nothing where there is none."""
    return "" if value is None else rounded(value, up=up, digits=_DIGITS)


def ratio_text(comparison: BoundComparison, value: float | None, *, up: bool) -> str:
    """Return how many times the best bound a value is; nothing where that says nothing."""
    ratio = comparison.ratio(value)
    return "" if ratio is None else rounded(ratio, up=up, digits=_RATIO_DIGITS)


def gap_text(lower: float | None, upper: float) -> str:
    """Return the relative distance of two ends, rounded up to two digits."""
    if lower is None:
        return "not known"
    gap = (upper - lower) / upper if upper > 0.0 else 0.0
    # Less is the accuracy of a computation, which need not be the same everywhere.
    return "below 1e-6" if 0.0 < gap < 1e-6 else rounded(gap, up=True, digits=2)


@page_html.register
def _(subject: BoundCurves) -> str:
    here, over = subject.here, subject.over
    figure = bounds_figure(subject)
    return render_page(
        "bounds.html",
        title=f"Bounds on {here.scenario.asked}",
        lead=f"Every method of the accountant, for {scenario_text(here.scenario)}.",
        key_figures=_key_figures(here),
        over=f"Over {_OVER_TEXT[over]}",
        figure=figure,
        caption=_caption(subject),
        scenario=scenario_text(here.scenario),
        headings=headings(here),
        rows=[(name, *map(typeset, numbers)) for name, *numbers in bound_rows(here)],
        missing=missing_rows(here),
        bounds=[(each.method, each.reason or number(each.value, up=True)) for each in here.bounds],
    )


def _key_figures(here: BoundComparison) -> list[tuple[str, ...]]:
    """Return the strip on top: the best bound, what is unavoidable, the gap, and the users."""
    asked = here.scenario.asked
    lower = "not known" if here.lower is None else f"{asked} >= {_short(here.lower, up=False)}"
    return [
        ("Best bound", f"{asked} <= {_short(here.best, up=True)}", here.bounds[0].method.name, ""),
        ("Unavoidable", lower, LOWER_END, ""),
        ("Gap", gap_text(here.lower, here.best), "of the best bound", ""),
        (
            "Users",
            f"{here.scenario.num_users:,}",
            f"epsilon0 = {given(here.scenario.epsilon0)}",
            "",
        ),
    ]


def _short(value: float, *, up: bool) -> str:
    """Return a number that fits a narrow cell."""
    return rounded(value, up=up, digits=4 if value >= 1e-4 else 3)


def _caption(curves: BoundCurves) -> str:
    """Say what is drawn, and why a curve may be missing."""
    fixed = _fixed_text(curves.here.scenario, curves.over)
    return (
        f"Safe {curves.here.scenario.asked} with {fixed}. A curve ends where its method does not "
        "apply, or says no more than the local guarantee. Below the dashed line no analysis can "
        "go; the dotted line is the collection that was asked about."
    )


def _fixed_text(scenario: Scenario, over: Over) -> str:
    """Name what does not change along the curves."""
    given_name = "epsilon" if scenario.asked == "delta" else "delta"
    fixed = (
        f"epsilon0 = {given(scenario.epsilon0)}"
        if over is Over.NUM_USERS
        else users_text(scenario.num_users)
    )
    return f"{fixed} and {given_name} = {given(scenario.given)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve, and its value at the scenario that was asked about."""

    name: str
    values: tuple[float | None, ...]  # None leaves a gap
    here: float | None
    colour: str
    dash: str
    up: bool = True  # whether numbers are rounded up: false for the lower end

    @property
    def legend(self) -> LegendEntry:
        """How it is drawn, and its value here."""
        text = f"{self.name}: says nothing here"
        if not self.up:
            text = f"lower end: {LOWER_END}; here {number(self.here, up=False)}"
        elif self.here is not None:
            text = f"{self.name}: here {number(self.here, up=True)}"
        return LegendEntry(self.colour, text, dashes=DASHES[self.dash])


def series_of(curves: BoundCurves) -> list[Series]:
    """Return a curve for each method that has a bound anywhere, then the lower end.

    In the order of the comparison, smallest first at the scenario that was asked about.
    """
    useful = {each.method.name: each.value for each in curves.here.useful}
    names = [each.method.name for each in curves.here.bounds]
    drawn = [name for name in names if any(value is not None for value in curves.curve(name))]
    found = [
        Series(
            name=name,
            values=curves.curve(name),
            here=useful.get(name),
            colour=COLOURS[index % len(COLOURS)],
            dash=_STROKES[index // len(COLOURS) % len(_STROKES)],
        )
        for index, name in enumerate(drawn)
    ]
    if any(value is not None for value in curves.lower_curve):
        lower = Series(
            name="lower end",
            values=curves.lower_curve,
            here=curves.here.lower,
            colour="var(--ink)",
            dash="dash",
            up=False,
        )
        found.append(lower)
    return found


def bounds_figure(curves: BoundCurves) -> Figure:
    """Return the chart: logarithmic axes, a dotted line at the scenario that was asked about."""
    series = series_of(curves)
    scenario, over = curves.here.scenario, curves.over
    here, ticks = getattr(scenario, over.field), _ticks(curves)
    tick_texts = [position_text(tick, over, short=True) for tick in ticks]
    layout = base_layout(height=460)
    layout["xaxis"] = axis(
        _TITLES[over], type="log", tickmode="array", tickvals=ticks, ticktext=tick_texts
    )
    layout["yaxis"] = axis(
        "Safe \u03b5" if scenario.asked == "epsilon" else "Safe \u03b4",
        type="log",
        exponentformat="power",
        **_range(series),
    )
    layout["shapes"] = [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": here,
            "x1": here,
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"color": "var(--ink-soft)", "width": 1, "dash": "dot"},
        }
    ]
    return Figure(
        name="chart-bounds",
        spec={
            "data": [_trace(each, curves) for each in series],
            "layout": layout,
            # On a phone every second label, so that they stay level.
            "narrow": {"xaxis.tickvals": ticks[::2], "xaxis.ticktext": tick_texts[::2]},
        },
        description=(
            f"Line chart of {len(series)} curves on logarithmic axes: bounds on {scenario.asked} "
            f"against {_OVER_TEXT[over]}. The table below holds the numbers."
        ),
        headings=(_OVER_TEXT[over], *(each.name for each in series)),
        rows=tuple(
            (
                position_text(position, over),
                *(
                    "" if value is None else rounded(value, up=each.up)
                    for each in series
                    for value in (each.values[index],)
                ),
            )
            for index, position in enumerate(curves.positions)
        ),
        legend=tuple(each.legend for each in series),
    )


def position_text(position: float, over: Over, *, short: bool = False) -> str:
    """Return a place on the axis in words."""
    if over is Over.EPSILON0:
        return given(position) if short else f"epsilon0 = {given(position)}"
    return count_text(position) if short else users_text(int(position))


def _ticks(curves: BoundCurves) -> list[float]:
    """Return the places of the labels: every decade of users, 1, 2, 5 of epsilon0."""
    first, last = curves.positions[0], curves.positions[-1]
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    digits = (1.0,) if curves.over is Over.NUM_USERS else _EPSILON0_TICKS
    places = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [place for place in places if first <= place <= last]


def _range(series: list[Series]) -> dict[str, Any]:
    """Return labels and limits of the vertical axis: deltas fall without end."""
    drawn = [value for each in series for value in each.values if value is not None]
    lowest, highest = min(drawn, default=1.0), max(drawn, default=1.0)
    lowest = max(lowest, _LEAST_DELTA)
    decades = math.log10(max(highest, lowest)) - math.log10(lowest)
    labels = {"dtick": 1 if decades < _MANY_DECADES else 5} if decades > 2.0 else {"nticks": 8}
    if min(drawn, default=1.0) >= _LEAST_DELTA:
        return labels
    return {**labels, "range": [math.log10(_LEAST_DELTA), math.ceil(math.log10(highest))]}


def _trace(series: Series, curves: BoundCurves) -> dict[str, Any]:
    """Return one curve; where a value is missing, so is the line."""
    asked = {"epsilon": "\u03b5", "delta": "\u03b4"}[curves.here.scenario.asked]
    relation = "\u2264" if series.up else "\u2265"
    texts = [
        f"{escape(series.name)}<br>{position_text(position, curves.over)}<br>"
        f"<b>{asked} {relation} {number(value, up=series.up)}</b>"
        for position, value in zip(curves.positions, series.values, strict=True)
    ]
    trace = line(
        curves.positions, series.values, series.colour, texts=texts, dash=series.dash, marker=4
    )
    return {**trace, "name": escape(series.name), "connectgaps": False}
