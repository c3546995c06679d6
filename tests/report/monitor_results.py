"""Results of monitored statistics of every shape, without running one."""

from dataclasses import replace

import numpy as np

from shuffledp.core.bound import Bound, Guarantee
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.running_counts import RunningCounts
from shuffledp.monitoring.simulation import MonitorResult

CENTRAL = Bound(
    lower=None,
    upper=0.04321,
    method="hidden levels",
    source="derived in the documentation",
    assumptions=("Reports of a period and level are shuffled.", "Nobody links reports."),
)
LOCAL = Bound(
    lower=1.0,
    upper=1.0,
    method="exact",
    source="enumerated in the documentation",
    assumptions=("Each client keeps its signs.", "Nobody links reports."),
)


def build_result(
    num_periods=8,
    *,
    num_curves=1,
    labels=None,
    max_changes=4,
    central=CENTRAL,
    delta=1e-8,
    **changes,
):
    """Return a result whose numbers look like a real one's; ``changes`` replace its fields.

    Rising curves, with errors that alternate between +10 and -10.
    """
    values = ()
    if num_curves > 1:
        values = tuple(labels or (f"value {index}" for index in range(num_curves)))
    truth = np.linspace(0.0, 700.0, num_periods)[:, None] + 10.0 * np.arange(num_curves)
    counts = truth + np.where(np.arange(num_periods) % 2, 10.0, -10.0)[:, None]
    if not values:
        truth, counts = truth[:, 0], counts[:, 0]
    design = MonitorDesign(
        periods=num_periods, max_changes=min(max_changes, num_periods), epsilon0=1.0,
        domain=values or None,
    )  # fmt: skip
    if num_periods <= 31:
        named = tuple(f"2026-01-{day:02d}" for day in range(1, num_periods + 1))
    else:
        named = tuple(str(number) for number in range(1, num_periods + 1))
    result = MonitorResult(
        design=design,
        num_users=1_000,
        running=RunningCounts(
            periods=np.arange(1, num_periods + 1),
            counts=counts,
            standard_errors=np.full(counts.shape, 10.0),
            lower=counts - 30.0,
            upper=counts + 30.0,
            is_smoothed=False,
            confidence=0.95,
            is_simultaneous=True,
        ),
        truth=truth,
        period_labels=named,
        values=values,
        column="flag",
        local=LOCAL,
        central=Guarantee(epsilon=central, delta=delta, num_users=1_000),
        num_ignored_changes=0,
        num_limited_users=0,
        is_simulation=False,
    )
    return replace(result, **changes)
