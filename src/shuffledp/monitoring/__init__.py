"""Longitudinal monitoring: a changing statistic, tracked for months under one privacy budget.

>>> from shuffledp import monitoring
>>> client = monitoring.MonitorClient(365, max_changes=4, epsilon0=1.0)
>>> first = client.update(1, False)  # from the first period on: who begins late stands out
>>> reports = client.advance(200, True)  # 199 periods without the feature, then with it
>>> server = monitoring.MonitorServer(365, max_changes=4, epsilon0=1.0)
>>> server.ingest(reports)

On each device a `MonitorClient` is told a value and hands out reports; a `MonitorServer` takes the
shuffled reports of all devices and keeps running counts with confidence bands. `plan_monitoring`
says beforehand what that costs, `central_guarantee` how private all of it is together, and
`simulate_monitoring` does it to a table of histories. Docs: guides/monitoring.

Names are loaded when they are first used, so that importing this module stays quick.
"""

from typing import TYPE_CHECKING, Any

from shuffledp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from shuffledp.core.monitoring_profile import MonitoringProfile
    from shuffledp.monitoring.client import MonitorClient, MonitorReport, MonitorReports
    from shuffledp.monitoring.design import MonitorDesign, encoding_for
    from shuffledp.monitoring.fleet import ClientFleet
    from shuffledp.monitoring.histories import Histories, open_histories
    from shuffledp.monitoring.plan import MonitorPlan, plan_monitoring
    from shuffledp.monitoring.privacy.central import (
        calibrate_monitoring,
        central_delta_upper,
        central_guarantee,
        local_guarantee,
    )
    from shuffledp.monitoring.results import MonitorResult
    from shuffledp.monitoring.running_counts import RunningCounts, RunningEstimate
    from shuffledp.monitoring.server import MonitorServer
    from shuffledp.monitoring.simulation import simulate_monitoring

_HOMES = {
    "core.monitoring_profile": ("MonitoringProfile",),
    "monitoring.client": ("MonitorClient", "MonitorReport", "MonitorReports"),
    "monitoring.design": ("MonitorDesign", "encoding_for"),
    "monitoring.fleet": ("ClientFleet",),
    "monitoring.histories": ("Histories", "open_histories"),
    "monitoring.plan": ("MonitorPlan", "plan_monitoring"),
    "monitoring.privacy.central": (
        "calibrate_monitoring",
        "central_delta_upper",
        "central_guarantee",
        "local_guarantee",
    ),
    "monitoring.results": ("MonitorResult",),
    "monitoring.running_counts": ("RunningCounts", "RunningEstimate"),
    "monitoring.server": ("MonitorServer",),
    "monitoring.simulation": ("simulate_monitoring",),
}

__all__ = [
    "ClientFleet",
    "Histories",
    "MonitorClient",
    "MonitorDesign",
    "MonitorPlan",
    "MonitorReport",
    "MonitorReports",
    "MonitorResult",
    "MonitorServer",
    "MonitoringProfile",
    "RunningCounts",
    "RunningEstimate",
    "calibrate_monitoring",
    "central_delta_upper",
    "central_guarantee",
    "encoding_for",
    "local_guarantee",
    "open_histories",
    "plan_monitoring",
    "simulate_monitoring",
]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    return _find(name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
