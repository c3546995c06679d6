"""Longitudinal monitoring: a changing statistic, tracked for months under one privacy budget.

>>> from shuffledp import monitoring
>>> design = monitoring.MonitorDesign(periods=365, max_changes=4, epsilon0=1.0)
>>> client = monitoring.MonitorClient(design)
>>> first = client.update(1, False)  # from the first period on: who begins late stands out
>>> reports = client.advance(200, True)  # 199 periods without the feature, then with it
>>> server = monitoring.MonitorServer(design)
>>> server.ingest(reports)

On each device a `MonitorClient` is told a value and hands out reports; a `MonitorServer` takes the
shuffled reports of all devices and keeps running counts with confidence bands. `plan_monitoring`
says beforehand what that costs, `central_guarantee` how private all of it is together, and
`simulate_monitoring` does it to a table of histories. Docs: guides/monitoring.

Names are loaded when they are first used, so that importing this module stays quick.
"""

from shuffledp.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
