"""From the result of a simulated monitoring to what its page and its image show."""

from typing import TYPE_CHECKING

from shuffledp._version import __version__
from shuffledp.report.formatting import fixed, given, rounded
from shuffledp.report.monitor_view import Curve, MonitorView

if TYPE_CHECKING:
    from shuffledp.monitoring.simulation.results import MonitorResult

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
    if running.counts.ndim == 1:
        return (
            Curve(
                label="",
                estimates=running.counts,
                standard_errors=running.standard_errors,
                lower=running.lower,
                upper=running.upper,
                truth=result.truth.astype(float),
            ),
        )
    return tuple(
        Curve(
            label=label,
            estimates=running.counts[:, place],
            standard_errors=running.standard_errors[:, place],
            lower=running.lower[:, place],
            upper=running.upper[:, place],
            truth=result.truth[:, place].astype(float),
        )
        for place, label in enumerate(result.values)
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
