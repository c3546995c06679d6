"""Words about monitoring: plans and simulations in the terminal, and a simulation's page.

About its privacy statement see `shuffledp.report.statement`: "at most a factor as probable, plus
delta" is exactly the meaning of (epsilon, delta).
"""

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.report import formatting
from shuffledp.report.drawing import COLOURS, Axis, Figure, Line, lines_figure
from shuffledp.report.formatting import counted, decimals_for, fixed, given, rounded
from shuffledp.report.page import Paragraph, paragraphs, render, rendered_tables
from shuffledp.report.statement import SEEDED
from shuffledp.report.wording import gap_text, guarantee_facts

if TYPE_CHECKING:
    from shuffledp.monitoring.plan import MonitorPlan
    from shuffledp.monitoring.simulation import MonitorResult


def share_text(count: float, num_users: int) -> str:
    """Return a count as a share of all users, with decimals for a thousandth of it."""
    share = count / num_users
    return formatting.percent(
        share, decimals_for([abs(share) * 1e2], most=6) if abs(share) < 0.01 else 2
    )


def users_and_share(count: float, num_users: int) -> str:
    """Return a number of users, with their share of all users."""
    return f"{fixed(count, 0)} users ({share_text(count, num_users)})"


def band_text(confidence: float) -> str:
    """Return the definition of a band."""
    return f"{given(round(100.0 * confidence, 6))}% band for all periods at once"


def result_rows(result: "MonitorResult") -> dict[str, list[Paragraph]]:
    """Return names and texts about a simulation: printed, done and guaranteed."""
    running, num_users = result.running, result.num_users
    half_widths = (running.upper - running.lower) / 2.0
    numbers = {
        "widest": half_widths.max(),
        "mean": half_widths.mean(),
        "error": result.root_mean_square_error,
    }
    words = {name: users_and_share(float(each), num_users) for name, each in numbers.items()}
    words["band"] = band_text(running.confidence)
    central = guarantee_facts(result.central)
    return dict(rendered_tables("monitor-result.txt", result=result, central=central, **words))


# --------------------------------------------------------------------- plans
HEADINGS = ("way to collect", "error", "of users", "not below", "epsilon0", "epsilon")
"""Headings of `comparison_rows`: standard errors, their lower bound; epsilon0 of a user."""


def plan_rows(planned: "MonitorPlan") -> dict[str, list[Paragraph]]:
    """Return names and texts about a plan: itself, its advice, and the source of its bound."""
    widths = planned.half_widths(simultaneous=True)
    numbers = {
        "widest": widths.max(),
        "mean": widths.mean(),
        "alone": planned.half_widths(simultaneous=False).mean(),
        "proven": planned.proven_errors.max(),
    }
    words = {n: users_and_share(float(each), planned.num_users) for n, each in numbers.items()}
    words |= {"band": band_text(planned.confidence), "gap": gap_text(planned.central, "epsilon")}
    return dict(rendered_tables("monitor-plan.txt", planned=planned, **words))


def comparison_rows(planned: "MonitorPlan") -> list[tuple[str, ...]]:
    """Return monitoring and its alternatives; errors are root mean squares."""
    compared, num_users = planned.comparison, planned.num_users
    own = None, planned.local.upper, planned.central.upper

    def row(
        name: str, error: float, least: float | None, local: float, central: float
    ) -> tuple[str, ...]:
        not_below = "-" if least is None else _error(least, num_users)[0]
        losses = (rounded(each, up=True, digits=4) for each in (local, central))
        return name, *_error(error, num_users), not_below, *losses

    return [
        row("this plan: monitoring", compared.standard_error, *own),
        row("this plan, once all reports are there", compared.smoothed_standard_error, *own),
        *(
            row(
                each.name.replace("few answers", counted(each.answers_per_user, "answer")),
                each.standard_error,
                each.least_standard_error,
                each.local_epsilon,
                each.central.upper,
            )
            for each in compared.collections
        ),
    ]


def _error(error: float, num_users: int) -> tuple[str, str]:
    """Return an error in users, and as a share of all users."""
    if math.isinf(error):
        return "infinite", "-"
    return fixed(error, 0), share_text(error, num_users)


# --------------------------------------------------------------------- the page of a simulation
MOST_CURVES = 6  # more are indistinguishable; the table and estimates.csv are complete
_MOST_ROWS = 1_000
_MANY_ROWS = 30
_LONGEST_LABEL = 40
_MOST_LABELS = 8  # along the axis


class Curve(NamedTuple):
    """Running count of a value over the periods, in users."""

    label: str  # empty if there is only one
    estimates: NDArray[np.float64]
    errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    truth: NDArray[np.float64]


def page(result: "MonitorResult") -> str:
    """Return the whole page about a monitored statistic."""
    num, curves, running = result.design.periods, curves_of(result), result.running
    rows, value = table_rows(result), ("Value",) if result.values else ()
    stated = result_rows(result)
    shown = len(rows) // len(curves)
    return render(
        "monitor.html",
        title=f"Simulated monitoring of {result.num_users:,} users over {counted(num, 'period')}",
        result=result,
        seeded=SEEDED if result.is_simulation else "",
        worst=share_text(float((running.upper - running.lower).max()) / 2.0, result.num_users),
        running=running_figure(result),
        band=band_text(running.confidence),
        num_curves=len(curves),
        num_drawn=len(drawn(curves)),
        headings=("Period", *value, "Estimate", "Standard error", "Band", "True count"),
        rows=rows,
        is_long=len(rows) > _MANY_ROWS,
        which_periods=f"All {num:,} periods" if shown == num else f"{shown:,} of the periods",
        paragraphs=statement_paragraphs(result),
        statement_facts=stated["guaranteed"],
        facts=stated["done"],
    )


def curves_of(result: "MonitorResult") -> list[Curve]:
    """Return a curve for each value."""
    running = result.running
    arrays = (running.counts, running.standard_errors, running.lower, running.upper, result.truth)
    columns = [
        np.asarray(each, dtype=float).reshape(result.design.periods, -1).T for each in arrays
    ]
    return [Curve(*each) for each in zip(result.values or ("",), *columns, strict=True)]


def drawn(curves: list[Curve]) -> list[Curve]:
    """Return the curves of the chart, in order: all, or the ones with the largest estimates."""
    by_size = sorted(range(len(curves)), key=lambda place: -curves[place].estimates.max())
    return [curves[place] for place in sorted(by_size[:MOST_CURVES])]


def table_rows(result: "MonitorResult") -> list[tuple[str, ...]]:
    """Return a row for each period and value; of many periods, evenly spread ones."""
    num, curves = result.design.periods, curves_of(result)
    decimals = decimals_for([float(curve.errors.min()) for curve in curves], most=1)
    most = max(_MOST_ROWS // len(curves), 2)
    places = sorted({round(each) for each in np.linspace(0, num - 1, min(num, most)).tolist()})

    def number(values: NDArray[np.float64], place: int) -> str:
        return fixed(float(values[place]), decimals).replace("-", "\u2212")

    return [
        (
            result.period_labels[place],
            *((formatting.shorten(curve.label, 60),) if result.values else ()),
            number(curve.estimates, place),
            number(curve.errors, place),
            f"{number(curve.lower, place)} to {number(curve.upper, place)}",
            fixed(float(curve.truth[place]), 0),
        )
        for place in places
        for curve in curves
    ]


# --------------------------------------------------------------------- statement
def statement_paragraphs(result: "MonitorResult") -> tuple[Paragraph, ...]:
    """Return titles and texts; every number is rounded to the safe side."""
    return paragraphs("monitor.txt", result=result, central=result.central, seeded=SEEDED)


# --------------------------------------------------------------------- chart
def running_figure(result: "MonitorResult") -> Figure:
    """Return the estimates as lines in their bands, and the true counts dashed."""
    curves = drawn(curves_of(result))
    colours = ["var(--accent)"] if len(curves) == 1 else COLOURS
    through = result.design.periods
    over = partial(Line, x=tuple(map(float, range(1, through + 1))))
    estimates = [
        over(
            name=formatting.shorten(curve.label, _LONGEST_LABEL) if curve.label else "estimate",
            y=tuple(curve.estimates.tolist()),
            band=(tuple(curve.lower.tolist()), tuple(curve.upper.tolist())),
            colour=colour,
        )
        for curve, colour in zip(curves, colours, strict=False)
    ]
    name = "true count, known only because this is a simulation"
    dashed = partial(over, name=name, colour="var(--ink)", dash="dash", width=1.3)
    truths = [dashed(y=tuple(curve.truth.tolist())) for curve in curves]
    step = max(1, -(-(through - 1) // (_MOST_LABELS - 1)))
    labels = [(float(at + 1), result.period_labels[at]) for at in range(0, through, step)]
    return lines_figure(
        "chart-running",
        [*estimates, *truths],
        x=Axis(title="Period", limits=(0.5, through + 0.5), labels=tuple(labels)),
        y=Axis(title="Users"),
        band=band_text(result.running.confidence),
    )
