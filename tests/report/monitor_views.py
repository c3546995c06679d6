"""Views of monitored statistics of every shape, without running one."""

import math

import numpy as np

from shuffledp.core.bound import Bound
from shuffledp.report.monitor import Curve, MonitorView

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


def curve(num_periods=8, *, label="", shift=0.0, width=30.0, truth=True):
    """Return a rising curve, with errors that alternate between +10 and -10."""
    true = np.linspace(0.0, 700.0, num_periods) + shift
    estimates = true + np.where(np.arange(num_periods) % 2, 10.0, -10.0)
    errors = np.full(num_periods, width / 3.0)
    return Curve(
        label=label,
        estimates=estimates,
        standard_errors=errors,
        lower=estimates - width,
        upper=estimates + width,
        truth=true if truth else None,
    )


def build_view(num_periods=8, *, num_curves=1, truth=True, labels=None, **changes):
    """Return a view whose numbers look like a real one's; ``changes`` replace its fields."""
    names = labels or [f"value {index}" for index in range(num_curves)]
    curves = [curve(num_periods, truth=truth)]
    if num_curves > 1:
        curves = [
            curve(num_periods, label=name, shift=10.0 * place, truth=truth)
            for place, name in enumerate(names)
        ]
    fields = {
        "num_users": 1_000,
        "num_periods": num_periods,
        "periods": tuple(f"2026-01-{day:02d}" for day in range(1, num_periods + 1))
        if num_periods <= 31
        else tuple(str(number) for number in range(1, num_periods + 1)),
        "curves": tuple(curves),
        "what": "flag",
        "band": "95% band for all periods at once",
        "max_changes": 4,
        "num_ignored_changes": 0,
        "num_users_with_ignored": 0,
        "local": LOCAL,
        "central": CENTRAL,
        "delta": 1e-8,
        "is_level_hidden": True,
        "is_seeded": False,
        "facts": (("Protocol", "predrawn-signs"), ("Levels", "4")),
        "code": "import shuffledp as sdp\n",
    }
    return MonitorView(**(fields | changes))


def infinite(bound):
    """Return the bound with nothing proved."""
    return Bound(
        lower=bound.lower, upper=math.inf, method=bound.method, source=bound.source, assumptions=()
    )
