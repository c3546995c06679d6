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
    from shuffledp.collection.datasets.generated_histories import generate_histories
    from shuffledp.collection.monitoring.histories import Histories, open_histories
    from shuffledp.collection.monitoring.plan import MonitorPlan, plan_monitoring
    from shuffledp.collection.monitoring.results import MonitorResult
    from shuffledp.collection.monitoring.simulate import simulate_monitoring
    from shuffledp.core.monitoring_profile import MonitoringProfile
    from shuffledp.mechanisms.estimators.running_counts.results import (
        RunningCounts,
        RunningEstimate,
    )
    from shuffledp.mechanisms.monitoring.client import MonitorClient
    from shuffledp.mechanisms.monitoring.design import MonitorDesign
    from shuffledp.mechanisms.monitoring.encodings.choose import encoding_for
    from shuffledp.mechanisms.monitoring.fleet import ClientFleet
    from shuffledp.mechanisms.monitoring.reports import MonitorReport, MonitorReports
    from shuffledp.mechanisms.monitoring.server import MonitorServer
    from shuffledp.privacy.monitoring.calibration import calibrate_monitoring
    from shuffledp.privacy.monitoring.central import central_delta_upper, central_guarantee
    from shuffledp.privacy.monitoring.local import local_guarantee

_HOMES = {
    "collection.datasets.generated_histories": ("generate_histories",),
    "collection.monitoring.histories": ("Histories", "open_histories"),
    "collection.monitoring.plan": ("MonitorPlan", "plan_monitoring"),
    "collection.monitoring.results": ("MonitorResult",),
    "collection.monitoring.simulate": ("simulate_monitoring",),
    "core.monitoring_profile": ("MonitoringProfile",),
    "mechanisms.estimators.running_counts.results": ("RunningCounts", "RunningEstimate"),
    "mechanisms.monitoring.client": ("MonitorClient",),
    "mechanisms.monitoring.design": ("MonitorDesign",),
    "mechanisms.monitoring.encodings.choose": ("encoding_for",),
    "mechanisms.monitoring.fleet": ("ClientFleet",),
    "mechanisms.monitoring.reports": ("MonitorReport", "MonitorReports"),
    "mechanisms.monitoring.server": ("MonitorServer",),
    "privacy.monitoring.calibration": ("calibrate_monitoring",),
    "privacy.monitoring.central": ("central_delta_upper", "central_guarantee"),
    "privacy.monitoring.local": ("local_guarantee",),
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
    "generate_histories",
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
