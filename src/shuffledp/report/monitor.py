"""What is said of monitoring, on pages and in the terminal: plans, and how a simulation ran."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shuffledp.report.formatting import decimals_for, fixed, given, percent, rounded

if TYPE_CHECKING:
    from shuffledp.monitoring.plan import MonitorPlan
    from shuffledp.monitoring.simulation import MonitorResult


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorView:
    """A monitored statistic: what its page is about."""

    result: "MonitorResult"
    what: str  # the column that is counted


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


def band_text(confidence: float) -> str:
    """Return what a band is."""
    return f"{given(round(100.0 * confidence, 6))}% band for all periods at once"


def result_facts(result: "MonitorResult") -> list[tuple[str, str]]:
    """Return names and values that say how a simulation ran."""
    design, running = result.design, result.running
    values = "on or off"
    if result.values:
        values = f"{len(result.values):,} values, {design.encoding.name} encoding"
    smoothed = ", smoothed over all periods afterwards" if running.is_smoothed else ""
    return [
        ("Values", values),
        ("Protocol", f"{design.protocol}, epsilon0 = {rounded(design.epsilon0, up=True)}"),
        ("Estimator", f"weighted least squares over all sums of reports{smoothed}; unbiased"),
        (
            "Error found",
            f"{fixed(result.root_mean_square_error, 0)} users, root mean square over all counts; "
            f"expected at most {fixed(float(running.standard_errors.max()), 0)}",
        ),
    ]


# --------------------------------------------------------------------- plans
HEADINGS = ("way to collect", "error", "of users", "not below", "epsilon0", "epsilon")
"""Of `comparison_rows`: standard errors, and what no analysis can allow; epsilon0 of a user."""


def error_facts(planned: "MonitorPlan") -> list[tuple[str, str]]:
    """Return how far counts will be from the truth, the answer that is asked for first."""
    num_users = planned.num_users
    widths = planned.half_widths(simultaneous=True)
    single = float(planned.half_widths(simultaneous=False).mean())
    proven = float(planned.proven_errors.max())
    percentage = given(round(100.0 * planned.confidence, 6))
    return [
        ("error", f"\u00b1{users_and_share(float(widths.max()), num_users)} in the worst period"),
        ("", f"\u00b1{users_and_share(float(widths.mean()), num_users)} on average"),
        ("", band_text(planned.confidence)),
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
        ("protocol", design.protocol),
        (
            "a user sends",
            f"{fixed(planned.reports_per_user, 1)} reports in all, on average, of "
            f"{counted(planned.bits_per_report, 'bit')} each",
        ),
    ]


def comparison_rows(planned: "MonitorPlan") -> list[tuple[str, ...]]:
    """Return monitoring, then what could be done instead; errors are root mean squares."""
    compared = planned.comparison
    own = None, planned.local.upper, planned.central.upper
    rows = [
        ("this plan: monitoring", compared.standard_error, *own),
        ("this plan, once all reports are there", compared.smoothed_standard_error, *own),
        *(
            (
                each.name.replace("few answers", counted(each.answers_per_user, "answer")),
                each.standard_error,
                each.least_standard_error,
                each.local_epsilon,
                each.central.upper,
            )
            for each in compared.collections
        ),
    ]
    return [
        (
            name,
            *_error(error, planned.num_users),
            "-" if least is None else _error(least, planned.num_users)[0],
            rounded(local, up=True, digits=4),
            rounded(central, up=True, digits=4),
        )
        for name, error, least, local, central in rows
    ]


def _error(error: float, num_users: int) -> tuple[str, str]:
    """Return an error in users, and what share of all this is."""
    if math.isinf(error):
        return "infinite", "-"
    return fixed(error, 0), share_text(error, num_users)
