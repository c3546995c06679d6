"""A plan for monitoring as rows of a table and lines of a chart."""

import math
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.report.formatting import fixed, given, rounded
from shuffledp.report.monitor_drawing import ErrorLine
from shuffledp.report.monitor_view import band_text, counted, share_text, users_and_share

if TYPE_CHECKING:
    from shuffledp.monitoring.comparison import RepeatedCollection
    from shuffledp.monitoring.plan import MonitorPlan

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
    if design.encoding.num_values > 1:
        values = f"{design.encoding.num_values:,}, {design.encoding.name} encoding"
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


def error_lines(planned: "MonitorPlan") -> list[ErrorLine]:
    """Return standard errors over the periods, as shares of the users."""
    num_users, periods = planned.num_users, planned.design.periods
    lines = [
        ErrorLine(
            name="monitoring, least squares",
            values=planned.errors["least-squares"].standard_errors / num_users,
            is_main=True,
        ),
        ErrorLine(
            name="monitoring, cover", values=planned.errors["cover"].standard_errors / num_users
        ),
        ErrorLine(
            name="monitoring, smoothed afterwards",
            values=planned.smoothed_standard_errors / num_users,
        ),
    ]
    lines += [
        ErrorLine(
            name=each.name,
            values=np.full(periods, each.standard_error / num_users),
            is_elsewhere=True,
        )
        for each in planned.comparison.collections
        if math.isfinite(each.standard_error)
    ]
    return lines


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
