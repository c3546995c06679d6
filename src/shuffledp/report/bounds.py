"""All bounds side by side: rows of text for the terminal, and a page with curves.

The page has the curves, the table, and what each method states and where.
"""

import math
from functools import partial

from shuffledp.accounting.compare import BoundComparison, BoundCurves, Over, Scenario, Standing
from shuffledp.report.drawing import COLOURS, Axis, Figure, Line, lines_figure
from shuffledp.report.formatting import counted, given, rounded, typeset
from shuffledp.report.page import page_html, render_page
from shuffledp.report.wording import gap_percent

_DIGITS = 6
_RATIO_DIGITS = 4
_STROKES = ("solid", "dot", "dashdot")  # dashes are kept for the lower end
_LEAST_DELTA = 1e-30  # nobody cares for less
_TITLES = {Over.NUM_USERS: "number of users", Over.EPSILON0: "local \u03b5\u2080"}

LOWER_END = "no analysis can go below"


def headings(comparison: BoundComparison) -> tuple[str, ...]:
    """Return the headings of `bound_rows`."""
    return ("bound", comparison.scenario.asked, "times the best", "exact", "proved")


def scenario_text(scenario: Scenario) -> str:
    """Say what the bounds are about."""
    law = "any randomizer"
    if scenario.randomizer is not None:
        sizes = {"k": scenario.domain_size, "dimension": scenario.dimension}
        shown = (f" {name} = {size}," for name, size in sizes.items() if size is not None)
        law = f"{scenario.randomizer},{''.join(shown)}"
    return (
        f"{law} with epsilon0 = {given(scenario.epsilon0)}, {counted(scenario.num_users, 'user')}, "
        f"{_given_text(scenario)}"
    )


def _given_text(scenario: Scenario) -> str:
    """Say which of epsilon and delta is given."""
    return f"{'epsilon' if scenario.asked == 'delta' else 'delta'} = {given(scenario.given)}"


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
    return [
        (
            each.method.name,
            f"{number(each.value, up=True)}: {each.reason}"
            if each.standing is Standing.NO_GAIN
            else each.reason,
        )
        for each in comparison.bounds
        if each.standing is not Standing.BOUND
    ]


def number(value: float | None, *, up: bool) -> str:
    """Return a bound in six digits; nothing where there is none."""
    return "" if value is None else rounded(value, up=up, digits=_DIGITS)


def ratio_text(comparison: BoundComparison, value: float | None, *, up: bool) -> str:
    """Return how many times the best bound a value is; nothing where that says nothing."""
    ratio = comparison.ratio(value)
    return "" if ratio is None else rounded(ratio, up=up, digits=_RATIO_DIGITS)


@page_html.register
def _(subject: BoundCurves) -> str:
    here = subject.here
    return render_page(
        "bounds.html",
        title=f"Bounds on {here.scenario.asked}",
        lead=f"Every method of the accountant, for {scenario_text(here.scenario)}.",
        key_figures=_key_figures(here),
        over=f"Over the {_TITLES[subject.over]}",
        figure=bounds_figure(subject),
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
    lower = gap = "not known"
    if here.lower is not None:
        lower = f"{asked} >= {_short(here.lower, up=False)}"
        gap = gap_percent(1.0 - here.lower / here.best if here.best else 0.0)
    users, epsilon0 = f"{here.scenario.num_users:,}", f"epsilon0 = {given(here.scenario.epsilon0)}"
    return [
        ("Best bound", f"{asked} <= {_short(here.best, up=True)}", here.bounds[0].method.name),
        ("Unavoidable", lower, LOWER_END),
        ("Gap", gap, "of the best bound"),
        ("Users", users, epsilon0),
    ]


def _short(value: float, *, up: bool) -> str:
    """Return a number that fits a narrow cell."""
    return rounded(value, up=up, digits=4 if value >= 1e-4 else 3)


def _caption(curves: BoundCurves) -> str:
    """Say what is drawn, and why a curve may be missing."""
    scenario, fixed = curves.here.scenario, f"epsilon0 = {given(curves.here.scenario.epsilon0)}"
    if curves.over is not Over.NUM_USERS:
        fixed = counted(scenario.num_users, "user")
    return (
        f"Proved upper bounds on {scenario.asked} with {fixed} and {_given_text(scenario)}. A "
        "curve ends where its method does not apply, or says no more than the local guarantee. "
        "Below the dashed line no analysis can go; the dotted line is the collection that was "
        "asked about."
    )


def bound_lines(curves: BoundCurves) -> list[Line]:
    """Return a line for each method that has a bound anywhere, then the lower end.

    In the order of the comparison, smallest first at the scenario that was asked about.
    """
    useful = {each.method.name: each.value for each in curves.here.useful}
    names = [each.method.name for each in curves.here.bounds]
    drawn = [name for name in names if any(value is not None for value in curves.curve(name))]
    over = partial(Line, x=tuple(map(float, curves.positions)))
    lines = [
        over(
            name=name,
            y=curves.curve(name),
            colour=COLOURS[index % len(COLOURS)],
            dash=_STROKES[index // len(COLOURS) % len(_STROKES)],
            note=f"here {number(useful[name], up=True)}" if name in useful else "says nothing here",
        )
        for index, name in enumerate(drawn)
    ]
    if any(value is not None for value in curves.lower_curve):
        note = f"{LOWER_END}; here {number(curves.here.lower, up=False)}"
        below = partial(over, colour="var(--ink)", dash="dash", up=False)
        lines.append(below(name="lower end", y=curves.lower_curve, note=note))
    return lines


def bounds_figure(curves: BoundCurves) -> Figure:
    """Return the chart: logarithmic axes, a dotted line at the scenario that was asked about."""
    lines, scenario = bound_lines(curves), curves.here.scenario
    drawn = [value for each in lines for value in each.y if value]
    limits = None
    if min(drawn, default=1.0) < _LEAST_DELTA:
        limits = (_LEAST_DELTA, 10.0 ** math.ceil(math.log10(max(drawn))))
    title = {"epsilon": "\u03b5", "delta": "\u03b4"}[scenario.asked]
    return lines_figure(
        "chart-bounds",
        lines,
        x=Axis(title=_TITLES[curves.over], is_log=True),
        y=Axis(title=title, is_log=True, limits=limits),
        here=getattr(scenario, curves.over.field),
    )
