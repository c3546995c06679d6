"""The page about a simulated monitoring: running counts with bands, and the statement.

For its privacy statement read `shuffledp.report.statement` on why "the odds change by at most a
factor, but for an exception of probability delta" says exactly what (epsilon, delta) means.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.report.drawing import COLOURS, Axis, Figure, Line, lines_figure
from shuffledp.report.formatting import brief, decimals_for, fixed, odds_factor, rounded, shorten
from shuffledp.report.monitor import (
    MonitorView,
    band_text,
    counted,
    result_facts,
    share_text,
)
from shuffledp.report.page import page_html, render_page
from shuffledp.report.statement import (
    Paragraph,
    exception_paragraph,
    limit_text,
)
from shuffledp.report.wording import guarantee_facts

if TYPE_CHECKING:
    from shuffledp.monitoring.simulation import MonitorResult

SEEDED = (
    "This run was given a seed, so whoever knows the seed can undo its randomization. It protects "
    "nobody: do not publish it as private."
)

MOST_CURVES = 6  # more cannot be told apart; the table and estimates.csv are complete
_MOST_ROWS = 1_000
_MANY_ROWS = 30
_LONGEST_LABEL = 40
_MOST_LABELS = 8  # along the axis


class Curve(NamedTuple):
    """The running count of a value over the periods, in users."""

    label: str  # empty where there is only one
    estimates: NDArray[np.float64]
    errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    truth: NDArray[np.float64]


@page_html.register
def _(subject: MonitorView) -> str:
    result = subject.result
    num, curves = result.through, curves_of(result)
    rows = table_rows(result)
    shown = len(rows) // len(curves)
    return render_page(
        "monitor.html",
        title=f"Simulated monitoring of {result.num_users:,} users over {counted(num, 'period')}",
        result=result,
        what=subject.what,
        seeded=SEEDED if result.is_simulation else "",
        key_figures=_key_figures(result),
        running=running_figure(result),
        band=band_text(result.running.confidence),
        num_curves=len(curves),
        num_drawn=len(drawn(curves)),
        headings=(
            "Period", *(("Value",) if result.values else ()), "Estimate", "Standard error", "Band",
            "True count",
        ),
        rows=rows,
        is_long=len(rows) > _MANY_ROWS,
        which_periods=f"All {num:,} periods" if shown == num else f"{shown:,} of the periods",
        paragraphs=statement_paragraphs(result),
        statement_facts=statement_facts(result),
        facts=result_facts(result),
    )  # fmt: skip


def curves_of(result: "MonitorResult") -> list[Curve]:
    """Return a curve for each value."""
    running = result.running
    arrays = (running.counts, running.standard_errors, running.lower, running.upper, result.truth)
    columns = [np.asarray(each, dtype=float).reshape(result.through, -1).T for each in arrays]
    return [Curve(*each) for each in zip(result.values or ("",), *columns, strict=True)]


def drawn(curves: list[Curve]) -> list[Curve]:
    """Return the curves of the chart: all, or those with the largest estimates, in their order."""
    by_size = sorted(range(len(curves)), key=lambda place: -curves[place].estimates.max())
    return [curves[place] for place in sorted(by_size[:MOST_CURVES])]


def table_rows(result: "MonitorResult") -> list[tuple[str, ...]]:
    """Return a row for each period and value; of many, periods spread evenly over the time."""
    num, curves = result.through, curves_of(result)
    decimals = decimals_for([float(curve.errors.min()) for curve in curves], most=1)
    most = max(_MOST_ROWS // len(curves), 2)
    places = sorted({round(each) for each in np.linspace(0, num - 1, min(num, most)).tolist()})

    def number(values: NDArray[np.float64], place: int) -> str:
        return fixed(float(values[place]), decimals).replace("-", "\u2212")

    return [
        (
            result.period_labels[place],
            *((shorten(curve.label, 60),) if result.values else ()),
            number(curve.estimates, place),
            number(curve.errors, place),
            f"{number(curve.lower, place)} to {number(curve.upper, place)}",
            fixed(float(curve.truth[place]), 0),
        )
        for place in places
        for curve in curves
    ]


def _key_figures(result: "MonitorResult") -> list[tuple[str, ...]]:
    """Return the strip on top: what can be said of a period, and what it costs."""
    running, central = result.running, result.central
    worst = float((running.upper - running.lower).max()) / 2.0
    planned = result.design.periods
    return [
        (
            "Error of a count",
            f"\u00b1{share_text(worst, result.num_users)}",
            f"of users, in the worst period: {band_text(running.confidence)}",
        ),
        (
            "Central privacy loss",
            f"epsilon <= {rounded(central.epsilon_upper, up=True, digits=3)}",
            f"all {counted(planned, 'period')} together, delta = {brief(central.delta_upper)}",
        ),
        (
            "Local privacy loss",
            f"epsilon0 <= {rounded(result.local.upper, up=True)}",
            "all that a user sends, without the shuffler",
        ),
    ]


# --------------------------------------------------------------------- statement
def statement_paragraphs(result: "MonitorResult") -> list[Paragraph]:
    """Return titles and texts; every number is rounded to the safe side."""
    delta, local, periods = result.central.delta_upper, result.local.upper, result.design.periods
    seeded = [("This was a simulation.", SEEDED)] if result.is_simulation else []
    return [
        *seeded,
        _what_reports_reveal(result),
        exception_paragraph(
            # No exception where all that is claimed is the local guarantee.
            delta if result.central.epsilon_upper < local else 0.0,
            brief(delta),
            result.num_users,
            without="what is claimed is the local guarantee, which holds without exception.",
        ),
        (
            "If the shuffler fails.",
            "Every user randomized on the own device. Whoever sees all that one user ever sends, "
            "from the first period to the last, with the name on it, changes the odds by a factor "
            f"of at most {odds_factor(local)} (epsilon0 = {rounded(local, up=True)}).",
        ),
        (
            "What counts as one person's data.",
            f"The whole history, over all {periods:,} periods. Both limits are for everything a "
            "person sends in that time; they are not to be multiplied by the number of periods.",
        ),
        (
            "What is not private here.",
            "The true counts on this page, and the number of ignored changes. A simulation has "
            "everybody's history at hand; a real server has not. Nothing above covers them: do not "
            "publish them.",
        ),
        _more_changes(result),
        (
            "What it does not promise.",
            "It does not hide what is true of a group: the estimates can tell something about a "
            "person through the people who resemble them. It does not hide that somebody takes "
            "part. And it covers these periods only: whoever is monitored again, or asked "
            "something else, spends more, and the losses add up.",
        ),
    ]


def statement_facts(result: "MonitorResult") -> list[tuple[str, str]]:
    """Return the central guarantee, how far it is from what is unavoidable, then the local one."""
    local = result.local
    return [
        *((name.capitalize(), text) for name, text in guarantee_facts(result.central)),
        ("Local", f"epsilon0 <= {rounded(local.upper, up=True)}, {local.method}"),
        ("Source", local.source),
    ]


def _what_reports_reveal(result: "MonitorResult") -> Paragraph:
    """Say what the central epsilon means for a whole history."""
    title, epsilon = "What the reports reveal.", result.central.epsilon_upper
    adversary = (
        f"An adversary who sees the shuffled reports of all {result.design.periods:,} periods and "
        "knows everybody else's history"
    )
    return title, limit_text(
        f"{adversary} faces a limit on what it can learn about any one person. Whatever two "
        f"histories of at most {counted(result.design.max_changes, 'change')} it weighs against "
        "each other, all reports together change",
        "both",
        epsilon=epsilon,
        delta=result.central.delta_upper,
        shown=rounded(epsilon, up=True),
    )


def _more_changes(result: "MonitorResult") -> Paragraph:
    """Say what becomes of changes beyond the limit."""
    most = result.design.max_changes
    times = "once" if most == 1 else f"{most:,} times"
    found = "In this run there were none."
    if result.num_ignored_changes:
        found = (
            f"In this run that were {counted(result.num_ignored_changes, 'change')} of "
            f"{counted(result.num_limited_users, 'user')}: the estimates are of the histories "
            "without them."
        )
    return f"Users who change more than {times}.", (
        "Their later changes are ignored on their own device, so their privacy is that of "
        f"everybody else. The estimates miss these changes. {found}"
    )


# --------------------------------------------------------------------- chart
def running_figure(result: "MonitorResult") -> Figure:
    """Return the estimates as lines in their bands, and the true counts dashed."""
    curves = drawn(curves_of(result))
    colours = ["var(--accent)"] if len(curves) == 1 else COLOURS
    periods = tuple(map(float, range(1, result.through + 1)))
    estimates = [
        Line(
            name=shorten(curve.label, _LONGEST_LABEL) if curve.label else "estimate",
            x=periods,
            y=tuple(curve.estimates.tolist()),
            band=(tuple(curve.lower.tolist()), tuple(curve.upper.tolist())),
            colour=colour,
        )
        for curve, colour in zip(curves, colours, strict=False)
    ]
    truths = [
        Line(
            name="true count, known only because this is a simulation",
            x=periods,
            y=tuple(curve.truth.tolist()),
            colour="var(--ink)",
            dash="dash",
            width=1.3,
        )
        for curve in curves
    ]
    step = max(1, -(-(result.through - 1) // (_MOST_LABELS - 1)))
    return lines_figure(
        "chart-running",
        [*estimates, *truths],
        x=Axis(
            title="Period",
            limits=(0.5, result.through + 0.5),
            labels=tuple(
                (float(place + 1), result.period_labels[place])
                for place in range(0, result.through, step)
            ),
        ),
        y=Axis(title="Users"),
        band=band_text(result.running.confidence),
    )
