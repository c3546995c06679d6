"""What is shown of monitoring: curves over periods, their privacy loss, how it ran; and plans.

The page takes a `MonitorView` and nothing else, so that it knows neither files nor clients.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp._version import __version__
from shuffledp.core.bound import Bound
from shuffledp.report.charts import ChartPage, ChartSection, Line, lines_figure
from shuffledp.report.figures import COLOURS
from shuffledp.report.formatting import decimals_for, fixed, given, percent, rounded

if TYPE_CHECKING:
    from shuffledp.monitoring.comparison import RepeatedCollection
    from shuffledp.monitoring.plan import MonitorPlan
    from shuffledp.monitoring.results import MonitorResult

FloatArray: TypeAlias = NDArray[np.float64]

MOST_CURVES = 6  # more cannot be told apart; the table and estimates.csv are complete
_MOST_ROWS = 1_000
_MOST_SPREAD = 12  # periods in the table of many values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A running count over the periods, in users."""

    label: str  # of the value that is counted; empty where there is only one
    estimates: FloatArray
    standard_errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    truth: FloatArray | None = None  # known in simulations only

    @property
    def errors(self) -> FloatArray | None:
        """Estimate less truth, where this is known."""
        return None if self.truth is None else self.estimates - self.truth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorView:
    """A monitored statistic, ready to be shown."""

    num_users: int
    num_periods: int  # that were planned
    periods: tuple[str, ...]  # names of those that are over, at least one
    curves: tuple[Curve, ...]  # at least one, each over ``periods``
    what: str  # the column that is counted
    band: str  # such as "95% band for all periods at once"
    max_changes: int
    num_ignored_changes: int
    num_users_with_ignored: int
    local: Bound  # of all reports of a user together, whoever sees them
    central: Bound  # where the reports of each period and level are shuffled
    delta: float
    is_level_hidden: bool  # whether the central guarantee counts on nobody knowing a user's level
    is_seeded: bool  # whether the randomness can be replayed
    facts: tuple[tuple[str, str], ...]
    code: str  # Python that does it again
    warnings: tuple[str, ...] = ()

    @property
    def is_truth_known(self) -> bool:
        """Whether the curves hold what is estimated."""
        return self.curves[0].truth is not None

    @property
    def drawn(self) -> tuple[Curve, ...]:
        """The curves of the charts: all, or those with the largest estimates, in their order."""
        if len(self.curves) <= MOST_CURVES:
            return self.curves
        sizes = [float(curve.estimates.max()) for curve in self.curves]
        kept = sorted(range(len(sizes)), key=lambda index: -sizes[index])[:MOST_CURVES]
        return tuple(self.curves[index] for index in sorted(kept))

    @property
    def worst_half_width(self) -> float:
        """Largest half of the width of a band, over all periods and values."""
        return max(float((curve.upper - curve.lower).max()) / 2.0 for curve in self.curves)

    @property
    def mean_half_width(self) -> float:
        """Half of the width of the bands, averaged over periods and values."""
        return float(np.mean([curve.upper - curve.lower for curve in self.curves])) / 2.0

    @property
    def num_outside(self) -> int:
        """How many true values lie outside their band; 0 where they are not known."""
        return sum(
            int(np.count_nonzero((curve.truth < curve.lower) | (curve.truth > curve.upper)))
            for curve in self.curves
            if curve.truth is not None
        )


def table_headings(view: MonitorView) -> tuple[str, ...]:
    """Return the headings of `table_rows`."""
    known = ("True count", "Error") if view.is_truth_known else ()
    which = ("Estimate", "Share") if len(view.curves) == 1 else ("Value", "Estimate")
    return ("Period", *which, "Standard error", "Band", *known)


def table_rows(view: MonitorView) -> list[tuple[str, ...]]:
    """Return a row for each period and value; of many, periods spread evenly over the time."""
    decimals = decimals_for([float(curve.standard_errors.min()) for curve in view.curves], most=1)
    return [
        (view.periods[index], *_numbers(view, curve, index, decimals))
        for index in shown_periods(view)
        for curve in view.curves
    ]


def shown_periods(view: MonitorView) -> Sequence[int]:
    """Return the periods of the table, counted from 0; the last is among them."""
    num = len(view.periods)
    if num * len(view.curves) <= _MOST_ROWS:
        return range(num)
    most = min(num, max(_MOST_SPREAD, _MOST_ROWS // len(view.curves)))
    return sorted({round(place) for place in np.linspace(0, num - 1, most).tolist()})


def _numbers(view: MonitorView, curve: Curve, index: int, decimals: int) -> tuple[str, ...]:
    """Return one period of one curve."""
    estimate = float(curve.estimates[index])
    shown = fixed(estimate, decimals)
    which = (shown, share_text(estimate, view.num_users))
    if len(view.curves) > 1:
        which = (curve.label, shown)
    band = (
        f"{fixed(float(curve.lower[index]), decimals)} to "
        f"{fixed(float(curve.upper[index]), decimals)}"
    )
    known: tuple[str, ...] = ()
    if curve.truth is not None:
        truth = float(curve.truth[index])
        known = (fixed(truth, 0), fixed(estimate - truth, decimals))
    return (*which, fixed(float(curve.standard_errors[index]), decimals), band, *known)


def share_text(count: float, num_users: int) -> str:
    """Return a count as a share of all users, with the decimals that a thousandth of it needs."""
    share = count / num_users
    return percent(share, decimals_for([abs(share) * 1e2], most=6) if abs(share) < 0.01 else 2)


def users_and_share(count: float, num_users: int) -> str:
    """Return a number of users, and what share of all this is."""
    return f"{fixed(count, 0)} users ({share_text(count, num_users)})"


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}" + "s" * (number != 1)


_METHODS = {
    "least-squares": "weighted least squares over all sums of reports",
    "cover": "the sums of reports that cover the time since the start",
}


def result_view(
    result: "MonitorResult", *, what: str, arguments: tuple[str, ...] = ()
) -> MonitorView:
    """Return a result ready to be shown."""
    running, central = result.running, result.central
    return MonitorView(
        num_users=result.num_users,
        num_periods=result.design.periods,
        periods=result.period_labels,
        curves=_curves(result),
        what=what,
        band=band_text(running.confidence, is_simultaneous=running.is_simultaneous),
        max_changes=result.design.max_changes,
        num_ignored_changes=result.num_ignored_changes,
        num_users_with_ignored=result.num_limited_users,
        local=result.local,
        central=central.bound,
        delta=central.delta_upper,
        is_level_hidden=not result.num_late_users,
        is_seeded=result.is_simulation,
        facts=tuple(result_facts(result)),
        code=_code(result, arguments),
        warnings=result.warnings,
    )


def band_text(confidence: float, *, is_simultaneous: bool) -> str:
    """Return what a band is."""
    percentage = given(round(100.0 * confidence, 6))
    each = "all periods at once" if is_simultaneous else "each period by itself"
    return f"{percentage}% band for {each}"


def result_facts(result: "MonitorResult") -> list[tuple[str, str]]:
    """Return names and values that say how a simulation ran."""
    design, running = result.design, result.running
    late = ""
    if result.num_late_users:
        late = f", of whom {result.num_late_users:,} joined after the first period"
    smoothed = ", smoothed over all periods afterwards" if running.is_smoothed else ""
    values = "on or off"
    if result.values:
        values = f"{len(result.values):,} values, {design.encoding.name} encoding"
    return [
        ("Users", f"{result.num_users:,}{late}"),
        ("Values", values),
        ("Protocol", f"{design.protocol}, epsilon0 = {rounded(design.epsilon0, up=True)}"),
        ("Most changes", f"{design.max_changes:,} a user, counting the first"),
        (
            "Levels",
            f"{design.tree.num_levels}: each user draws one and reports every 1, 2, 4, ... periods",
        ),
        ("Scale", f"{fixed(design.scale, 2)} users a report"),
        ("Estimator", f"{_METHODS.get(running.method, running.method)}{smoothed}; unbiased"),
        (
            "Error found",
            f"{fixed(result.root_mean_square_error, 0)} users, root mean square over all counts; "
            f"expected at most {fixed(float(running.standard_errors.max()), 0)}",
        ),
        (
            "Randomness",
            "reproducible, from a seed"
            if result.is_simulation
            else "cryptographic, keyed by the operating system",
        ),
    ]


def _curves(result: "MonitorResult") -> tuple[Curve, ...]:
    """Return a curve for each value."""
    running = result.running
    arrays = (running.counts, running.standard_errors, running.lower, running.upper, result.truth)
    columns = [np.asarray(each, dtype=float).reshape(len(running), -1).T for each in arrays]
    return tuple(
        Curve(
            label=label,
            estimates=counts,
            standard_errors=errors,
            lower=low,
            upper=high,
            truth=truth,
        )
        for label, counts, errors, low, high, truth in zip(
            result.values or ("",), *columns, strict=True
        )
    )


def _code(result: "MonitorResult", arguments: tuple[str, ...]) -> str:
    """Return Python that runs the same simulation, but for the randomness."""
    design, running = result.design, result.running
    seed = ", seed=..." if result.is_simulation else ""
    return (
        f"import shuffledp.monitoring as monitoring  # version {__version__}\n\n"
        f"histories = monitoring.open_histories({', '.join(arguments) or '...'})\n"
        "result = monitoring.simulate_monitoring(\n"
        f"    histories, periods={design.periods}, max_changes={design.max_changes},\n"
        f"    epsilon0={design.epsilon0!r}, delta={result.central.delta_upper!r},\n"
        f"    protocol={design.protocol!r}, method={running.method!r},\n"
        f"    smoothed={running.is_smoothed}, confidence={running.confidence!r}{seed},\n"
        ")\n"
    )


# --------------------------------------------------------------------- plans
HEADINGS = ("way to collect", "standard error", "of users", "epsilon0", "epsilon")
"""Of `comparison_rows`; epsilon0 is of all that a user ever sends, epsilon of all published."""


def error_facts(planned: "MonitorPlan") -> list[tuple[str, str]]:
    """Return how far counts will be from the truth, the answer that is asked for first."""
    errors, num_users = planned.errors["least-squares"], planned.num_users
    widths = errors.simultaneous_half_widths
    worst, mean = float(widths.max()), float(widths.mean())
    proven = float(planned.errors["cover"].proven.max())
    single = float(errors.pointwise_half_widths.mean())
    percentage = given(round(100.0 * planned.confidence, 6))
    return [
        ("error", f"\u00b1{users_and_share(worst, num_users)} in the worst period"),
        ("", f"\u00b1{users_and_share(mean, num_users)} on average"),
        ("", band_text(planned.confidence, is_simultaneous=True)),
        (
            "one period",
            f"\u00b1{users_and_share(single, num_users)} on average, {percentage}% for each alone",
        ),
        ("proven", f"\u00b1{users_and_share(proven, num_users)}, without a normal approximation"),
    ]


def design_facts(planned: "MonitorPlan") -> list[tuple[str, str]]:
    """Return what is collected and what clients do."""
    design = planned.design
    values = "on or off"
    if design.encoding.domain_size > 1:
        values = f"{design.encoding.domain_size:,}, {design.encoding.name} encoding"
    return [
        ("users", f"{planned.num_users:,}"),
        ("periods", f"{design.periods:,} ({counted(design.num_levels, 'level')})"),
        ("changes", f"{design.max_changes:,} a user at most, counting the first value"),
        ("values", values),
        ("protocol", planned.reason),
        (
            "a user sends",
            f"{fixed(planned.reports_per_user, 1)} reports in all, on average, of "
            f"{counted(planned.bits_per_report, 'bit')} each",
        ),
    ]


def comparison_rows(planned: "MonitorPlan") -> list[tuple[str, ...]]:
    """Return monitoring, then what could be done instead; errors are root mean squares."""
    own = (
        "this plan: monitoring",
        *_error(planned.comparison.standard_error, planned.num_users),
        rounded(planned.local.upper, up=True, digits=4),
        rounded(planned.central.upper, up=True, digits=4),
    )
    return [own, *(_row(each, planned.num_users) for each in planned.comparison.collections)]


def monitor_plan_page(planned: "MonitorPlan") -> ChartPage:
    """Return standard errors over the periods as a page, in percent of the users."""
    own = COLOURS[0]
    ways = [
        ("monitoring, least squares", planned.errors["least-squares"].standard_errors, own, 2.5),
        ("monitoring, cover", planned.errors["cover"].standard_errors, COLOURS[1], 1.2),
        ("monitoring, smoothed afterwards", planned.smoothed_standard_errors, COLOURS[2], 1.2),
    ]
    periods = tuple(float(period) for period in range(1, planned.design.periods + 1))
    lines = [
        Line(
            name=name,
            x=periods,
            y=tuple((100.0 / planned.num_users * errors).tolist()),
            colour=colour,
            width=width,
        )
        for name, errors, colour, width in ways
    ]
    lines += [
        Line(
            name=each.name,
            y=(100.0 * each.standard_error / planned.num_users,),
            colour=colour,
            width=1.2,
            dash="dash",
        )
        for each, colour in zip(planned.comparison.collections, COLOURS[3:], strict=False)
        if math.isfinite(each.standard_error)
    ]
    figure = lines_figure(
        "chart-errors", lines, x_title="period", y_title="standard error, % of users",
        y_scale="log", unit="%",
    )  # fmt: skip
    section = ChartSection(
        name="errors",
        heading="Expected errors",
        figure=figure,
        caption="Expected standard error of a count in each period; dashed: without monitoring.",
    )
    return ChartPage(
        title="Plan for monitoring",
        lead=(
            f"{planned.num_users:,} users, {planned.design.periods:,} periods, at most "
            f"{counted(planned.design.max_changes, 'change')}."
        ),
        command="monitor plan",
        sections=(section,),
    )


def _row(collection: "RepeatedCollection", num_users: int) -> tuple[str, ...]:
    """Return one way to do without monitoring."""
    return (
        collection.name,
        *_error(collection.standard_error, num_users),
        rounded(collection.local_epsilon, up=True, digits=4),
        rounded(collection.central.upper, up=True, digits=4),
    )


def _error(error: float, num_users: int) -> tuple[str, str]:
    """Return an error in users, and what share of all this is."""
    if math.isinf(error):
        return "infinite", "-"
    return fixed(error, 0), share_text(error, num_users)
