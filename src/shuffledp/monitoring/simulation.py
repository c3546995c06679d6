"""A longitudinal collection, simulated period by period, with its result and cautions.

Draws of clients are a keyed function of the period, so the same seed makes the same reports, bit
for bit, also from a table that has grown since.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp._version import __version__
from shuffledp.collection.cautions import delta_cautions
from shuffledp.collection.output import json_text, write_rows, writing
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.checks import require_delta, require_open_unit
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy
from shuffledp.core.progress import Progress, no_progress
from shuffledp.core.shown import Shown, rows_of
from shuffledp.monitoring.client import ClientFleet
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.histories import Histories
from shuffledp.monitoring.privacy.central import central_guarantee, local_guarantee
from shuffledp.monitoring.running_counts import RunningCounts
from shuffledp.monitoring.server import MonitorServer

# With a larger standard error, relative to the users, a 95 % interval is wider than [0, 1].
_USELESS_SHARE = 0.25

# Beyond this local loss a report hides next to nothing.
_BARE = 10.0


def noise_cautions(worst_standard_error: float, num_users: int) -> tuple[str, ...]:
    """Return cautions if the noise drowns the counts."""
    if worst_standard_error <= _USELESS_SHARE * num_users:
        return ()
    return (
        f"The standard error reaches {worst_standard_error:,.0f} of {num_users:,} users, so that "
        "the noise drowns every count: ask for a larger epsilon0, fewer periods or changes, or "
        "more users.",
    )


def local_cautions(epsilon0: float) -> tuple[str, ...]:
    """Return cautions if a user's own reports are hardly private."""
    if epsilon0 <= _BARE:
        return ()
    return (
        f"epsilon0 = {epsilon0:.4g} hides next to nothing from whoever sees the reports before the "
        "shuffler: only the shuffler makes this private.",
    )


def limit_cautions(num_ignored: int, num_limited: int, max_changes: int) -> tuple[str, ...]:
    """Return cautions if changes were ignored."""
    if not num_ignored:
        return ()
    return (
        f"Changes were ignored, {num_ignored:,} in all, of {num_limited:,} of the users, who had "
        f"used up their max_changes = {max_changes:,}: their last value that was followed is "
        "counted instead, so the estimates are biased by at most that many users. Their privacy "
        "is not affected.",
    )


# Attributes that result.json has unchanged.
_OF_DESIGN = ("periods", "max_changes", "epsilon0", "protocol")
_OF_RESULT = (
    *("num_users", "root_mean_square_error", "num_outside_bands"),
    *("num_ignored_changes", "num_limited_users", "is_simulation"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorResult(Shown):
    """Running counts of a simulation, with the true counts and the guarantees.

    Parameters
    ----------
    design : MonitorDesign
        The design that clients and server share.
    num_users : int
        Number of users.
    running : RunningCounts
        Unbiased estimates and bands for all periods.
    truth : ndarray of int64, shape (d,) or (d, domain_size)
        True number of users with each value. It is known because this is a simulation; a real
        collection never learns it.
    period_labels : tuple of str
        Start of each of the d periods.
    values : tuple of str
        The counted values; empty for booleans.
    column : str
        Name of their column.
    local : Bound
        Local loss, in nats, of all reports of a user.
    central : Guarantee
        Guarantee for a user's whole history if the reports of each period and level are shuffled.
    num_ignored_changes : int
        Changes that were not followed, since their users had used up ``max_changes``.
    num_limited_users : int
        Number of users with such changes.
    is_simulation : bool
        True if a seed was given: any party that knows it can undo the randomization.
    warnings : tuple of str
        Warnings before relying on the numbers, one sentence each.

    Examples
    --------
    >>> import polars as pl
    >>> from shuffledp.monitoring import open_histories, simulate_monitoring
    >>> rows = pl.DataFrame({"id": range(500), "day": [1] * 500, "on": [True, False] * 250})
    >>> histories = open_histories(rows, user="id", time="day", value="on", periods=4)
    >>> result = simulate_monitoring(histories, max_changes=2, epsilon0=1.0, delta=1e-6, seed=1)
    >>> len(result.running.counts), result.is_simulation
    (4, True)
    """

    design: MonitorDesign
    num_users: int
    running: RunningCounts
    truth: NDArray[np.int64] = field(repr=False)
    period_labels: tuple[str, ...] = field(repr=False)
    values: tuple[str, ...]
    column: str
    local: Bound
    central: Guarantee
    num_ignored_changes: int
    num_limited_users: int
    is_simulation: bool
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.truth.setflags(write=False)

    @property
    def num_outside_bands(self) -> int:
        """Number of true counts outside their bands; nearly always none."""
        running = self.running
        outside = (self.truth < running.lower) | (self.truth > running.upper)
        return int(np.count_nonzero(outside))

    @property
    def root_mean_square_error(self) -> float:
        """Root of the mean squared difference of estimates and truth, in users."""
        return float(np.sqrt(np.mean((self.running.counts - self.truth) ** 2)))

    def to_json_dict(self) -> dict[str, object]:
        """Return all but the rows; plain Python values only."""
        design, running = self.design, self.running
        return {
            **{name: getattr(design, name) for name in _OF_DESIGN},
            **{name: getattr(self, name) for name in _OF_RESULT},
            "encoding": design.encoding.name,
            "values": list(self.values),
            "local": {"lower": self.local.lower, "upper": self.local.upper},
            "guarantee": self.central.to_json_dict(),
            "method": "least-squares",
            "smoothed": running.is_smoothed,
            "confidence": running.confidence,
            "simultaneous": running.is_simultaneous,
            "largest_standard_error": float(running.standard_errors.max()),
            "warnings": list(self.warnings),
        }


def write_monitor_result(
    result: MonitorResult, folder: Path, *, parameters: dict[str, object]
) -> None:
    """Write a result into a folder that exists, the one that `results_folder` yields.

    ``parameters``, the arguments of the run, are stored in ``result.json``; JSON values only.
    """
    with writing(folder):
        estimates = _rows(result, "count", "standard_error", "lower", "upper")
        write_rows(estimates, folder / "estimates.csv")
        write_rows(_rows(result, "true_count"), folder / "true-counts-not-private.csv")
        record = {
            **result.to_json_dict(),
            "parameters": parameters,
            "shuffledp_version": __version__,
        }
        text = json_text(record, indent=2)
        (folder / "result.json").write_text(text + "\n", encoding="utf-8")


def _rows(result: MonitorResult, *names: str) -> Iterator[dict[str, Any]]:
    """Yield a row a period and value: ``period``, ``time``, any ``value``, and some columns."""
    times = np.repeat(np.array(result.period_labels, dtype=object), max(len(result.values), 1))
    columns = result.running.columns() | {"time": times, "true_count": result.truth.reshape(-1)}
    shown = ("period", "time", *(("value",) if result.values else ()), *names)
    yield from rows_of({name: columns[name].tolist() for name in shown})


def simulate_monitoring(
    histories: Histories,
    *,
    max_changes: int,
    epsilon0: float,
    delta: float,
    protocol: str = "predrawn-signs",
    smoothed: bool = False,
    confidence: float = 0.95,
    seed: SupportsIndex | None = None,
    on_progress: Progress | None = None,
) -> MonitorResult:
    """Run the client of every user and the server over all periods, and estimate.

    Parameters
    ----------
    histories : Histories
        True histories of the users; see ``open_histories``. Its periods are the collection's, and
        its categories the domain.
    max_changes : int
        k, in [1, periods]: number of changes of a user that are followed. Clients ignore further
        ones, which biases the estimates and costs no privacy.
    epsilon0 : float
        Local privacy loss, in nats, of all reports of a user.
    delta : float
        Central delta, in [0, 1).
    protocol : str
        Law of the signs; see `MonitorDesign`.
    smoothed : bool
        Use later reports for earlier periods, too; by default estimates use no later reports.
    confidence : float
        Probability with which all bands hold at once, in (0, 1).
    seed : int, optional
        For a reproducible simulation. With the same seed, users and number of periods, a table that
        has grown gives the same estimates for the periods before.
    on_progress : callable, optional
        Called with the stage, the periods done and the periods in total.

    Returns
    -------
    MonitorResult
        Estimates for all periods.

    Raises
    ------
    ParameterError, DomainError
        If an argument is out of range.

    Notes
    -----
    Cost: about 2 ns a user and period for booleans, and 30 bytes of memory a user.

    Examples
    --------
    >>> import polars as pl
    >>> from shuffledp.monitoring.histories import open_histories
    >>> rows = pl.DataFrame({"id": range(500), "day": [1] * 500, "on": [True, False] * 250})
    >>> histories = open_histories(rows, user="id", time="day", value="on", periods=4)
    >>> result = simulate_monitoring(histories, max_changes=2, epsilon0=1.0, delta=1e-6, seed=1)
    >>> result.truth.tolist(), result.num_ignored_changes
    ([250, 250, 250, 250], 0)
    """
    require_delta(delta)
    require_open_unit("confidence", confidence)
    design = MonitorDesign(
        periods=histories.periods,
        max_changes=max_changes,
        epsilon0=epsilon0,
        protocol=protocol,
        domain=histories.labels or None,
    )
    key = Entropy.choose(seed).words(KEY_BYTES // WORD_BYTES).tobytes()
    users = histories.num_users
    fleet = ClientFleet.drawn(design, users, key)
    server, report = MonitorServer(design), on_progress or no_progress
    for period in range(1, design.periods + 1):
        fleet.follow(*histories.changes_at(period))
        sums = fleet.period_sums(period)
        server.add_sums(period, sums, num_reports=fleet.ends[len(sums) - 1])
        report("simulating", period, design.periods)
    running = server.running_counts(
        design.periods, num_users=users, smoothed=smoothed, confidence=confidence
    )
    num_ignored = int(fleet.num_ignored.sum())
    num_limited = int(np.count_nonzero(fleet.num_ignored))
    central = central_guarantee(design.profile, num_users=users, delta=delta)
    return MonitorResult(
        design=design,
        num_users=users,
        running=running,
        truth=histories.true_counts().reshape(running.counts.shape),
        period_labels=histories.period_labels,
        values=histories.labels,
        column=histories.column,
        local=local_guarantee(design.profile),
        central=Guarantee(epsilon=central, delta=delta, num_users=users),
        num_ignored_changes=num_ignored,
        num_limited_users=num_limited,
        is_simulation=seed is not None,
        warnings=(
            *limit_cautions(num_ignored, num_limited, design.max_changes),
            *noise_cautions(float(running.standard_errors.max()), users),
            *local_cautions(design.epsilon0),
            *delta_cautions(delta, users),
        ),
    )
