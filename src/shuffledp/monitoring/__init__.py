"""Longitudinal monitoring: a changing statistic, tracked for months under one privacy budget.

>>> from shuffledp import monitoring
>>> design = monitoring.MonitorDesign(periods=365, max_changes=4, epsilon0=1.0)
>>> client = monitoring.MonitorClient(design)
>>> first = client.update(1, False)  # from the first period on: who begins late stands out
>>> reports = client.advance(200, True)  # 199 periods without the feature, then with it
>>> server = monitoring.MonitorServer(design)
>>> server.ingest(reports)

On each device a `MonitorClient` is given a value and returns reports; a `MonitorServer` takes the
shuffled reports of all devices and keeps running counts with confidence bands. `plan_monitoring`
predicts its errors, `central_guarantee` bounds the privacy loss of all of it together, and
`simulate_monitoring` applies it to a table of histories. Docs: guides/monitoring.

Names are loaded at first use, so that importing this module stays quick.
"""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
