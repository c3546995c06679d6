"""What a page about monitoring shows: curves over periods, what they cost in privacy, how it ran.

Charts and sections take these and nothing else, so that they know neither files nor clients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp._version import __version__
from shuffledp.core.bound import Bound
from shuffledp.report.formatting import decimals_for, fixed, given, percent, rounded

if TYPE_CHECKING:
    from shuffledp.monitoring.results import MonitorResult

FloatArray: TypeAlias = NDArray[np.float64]

MOST_CURVES = 6  # more cannot be told apart; the table and estimates.csv are complete
_MOST_ROWS = 1_000
_MOST_SPREAD = 12  # periods in the table of many values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A running count over the periods.

    Parameters
    ----------
    label : str
        Of the value that is counted; empty where there is only one.
    estimates, standard_errors, lower, upper : NDArray of float
        One for each period, in users.
    truth : NDArray of float, optional
        What is estimated; known in simulations only.
    """

    label: str
    estimates: FloatArray
    standard_errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    truth: FloatArray | None = None

    @property
    def errors(self) -> FloatArray | None:
        """Estimate less truth, where this is known."""
        return None if self.truth is None else self.estimates - self.truth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorView:
    """A monitored statistic, ready to be shown.

    Parameters
    ----------
    num_users : int
        Users whose reports were counted.
    num_periods : int
        Periods that were planned.
    periods : tuple of str
        Names of those that are over, at least one.
    curves : tuple of Curve
        At least one, each over ``periods``.
    what : str
        The column that is counted.
    band : str
        What the bands are, such as "95% band for all periods at once".
    max_changes : int
        Most changes of a user that are counted.
    num_ignored_changes, num_users_with_ignored : int
        Changes beyond that, and how many users had any.
    local : Bound
        Privacy loss of all reports of a user together, whoever sees them.
    central : Bound
        The same where the reports of each period and level are shuffled.
    delta : float
        Failure probability of the central guarantee.
    is_level_hidden : bool
        Whether the central guarantee counts on nobody knowing a user's level.
    is_seeded : bool
        Whether the randomness can be replayed.
    facts : tuple of (str, str)
        How it ran: names and values.
    code : str
        Python that does it again.
    warnings : tuple of str
        What nobody may overlook, one sentence each.
    """

    num_users: int
    num_periods: int
    periods: tuple[str, ...]
    curves: tuple[Curve, ...]
    what: str
    band: str
    max_changes: int
    num_ignored_changes: int
    num_users_with_ignored: int
    local: Bound
    central: Bound
    delta: float
    is_level_hidden: bool
    is_seeded: bool
    facts: tuple[tuple[str, str], ...]
    code: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row of the table, or its headings."""

    name: str
    numbers: tuple[str, ...]


def table_headings(view: MonitorView) -> TableRow:
    """Return the headings of `table_rows`."""
    known = ("True count", "Error") if view.is_truth_known else ()
    which = ("Estimate", "Share") if len(view.curves) == 1 else ("Value", "Estimate")
    return TableRow(name="Period", numbers=(*which, "Standard error", "Band", *known))


def table_rows(view: MonitorView) -> list[TableRow]:
    """Return a row for each period and value; of many, periods spread evenly over the time."""
    decimals = decimals_for([float(curve.standard_errors.min()) for curve in view.curves], most=1)
    return [
        TableRow(name=view.periods[index], numbers=_numbers(view, curve, index, decimals))
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
    """Return a count as a share of all users, with the decimals that a thousandth of it needs.

    Examples
    --------
    >>> share_text(1234.0, 10_000), share_text(3.2, 1_000_000)
    ('12.34%', '0.00032%')
    """
    share = count / num_users
    return percent(share, decimals_for([abs(share) * 1e2], most=6) if abs(share) < 0.01 else 2)


def users_and_share(count: float, num_users: int) -> str:
    """Return a number of users, and what share of all this is.

    Examples
    --------
    >>> users_and_share(1234.0, 10_000)
    '1,234 users (12.34%)'
    """
    return f"{fixed(count, 0)} users ({share_text(count, num_users)})"


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "change"), counted(1200, "change")
    ('1 change', '1,200 changes')
    """
    return f"{number:,} {noun}" + "s" * (number != 1)


_METHODS = {
    "least-squares": "weighted least squares over all sums of reports",
    "cover": "the sums of reports that cover the time since the start",
}


def result_view(
    result: "MonitorResult", *, what: str, arguments: tuple[str, ...] = ()
) -> MonitorView:
    """Return a result ready to be shown.

    Parameters
    ----------
    result : MonitorResult
        Of a simulation; the truth is in it.
    what : str
        Name of the column that was counted.
    arguments : tuple of str
        How `open_histories` was called, as Python; for code that does it again.
    """
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
    """Return what a band is.

    Examples
    --------
    >>> band_text(0.95, is_simultaneous=True)
    '95% band for all periods at once'
    """
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
