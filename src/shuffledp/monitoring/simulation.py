"""A longitudinal collection, simulated: every client and the server, period by period.

What clients draw is a keyed function of the period, so the same seed makes the same reports, bit
for bit, also from a table that has grown since.
"""

from typing import SupportsIndex

from shuffledp.collection.results import Guarantee, delta_cautions
from shuffledp.core.checks import require_at_least, require_delta, require_open_unit
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring import results
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.fleet import ClientFleet
from shuffledp.monitoring.histories import Histories
from shuffledp.monitoring.privacy.central import central_guarantee, local_guarantee
from shuffledp.monitoring.results import MonitorResult
from shuffledp.monitoring.server import MonitorServer


def simulate_monitoring(  # noqa: PLR0913  # one keyword an option
    histories: Histories,
    *,
    max_changes: int,
    epsilon0: float,
    delta: float,
    protocol: str = "predrawn-signs",
    smoothed: bool = False,
    confidence: float = 0.95,
    seed: SupportsIndex | None = None,
    stop_after: int | None = None,
    on_progress: Progress | None = None,
) -> MonitorResult:
    """Run the client of every user and the server over all periods, and estimate.

    Parameters
    ----------
    histories : Histories
        What users really do; see ``open_histories``. Its periods are those of the collection, and
        its categories the domain.
    max_changes : int
        k, in [1, periods]: how many changes of a user are followed. Clients ignore further ones,
        which biases the estimates and costs no privacy.
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports.
    delta : float
        At which the central guarantee is computed, in [0, 1).
    protocol : str
        Law of the signs; see `MonitorDesign`.
    smoothed : bool
        Use later reports for earlier periods, too; by default estimates are those of the day.
    confidence : float
        That all bands hold at once with, in (0, 1).
    seed : int, optional
        For a reproducible simulation. With the same seed, users and number of periods, a table that
        has grown gives the same estimates for the periods before.
    stop_after : int, optional
        The last period to simulate; by default all.
    on_progress : callable, optional
        Called with the stage, the periods done and those in total.

    Returns
    -------
    MonitorResult
        Estimates for all periods so far.

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
        periods=histories.periods, max_changes=max_changes, epsilon0=epsilon0, protocol=protocol,
        domain=histories.labels or None,
    )  # fmt: skip
    most = histories.periods
    through = most if stop_after is None else require_at_least("stop_after", stop_after, 1)
    if through > most:
        raise ParameterError(
            f"stop_after = {through:,} is not in [1, {most:,}]: give one of the periods"
        )
    key = Entropy.choose(seed).words(KEY_BYTES // WORD_BYTES).tobytes()
    users = histories.num_users
    fleet = ClientFleet.drawn(design, users, key)
    server, report = MonitorServer(design), on_progress or no_progress
    for period in range(1, through + 1):
        fleet.follow(*histories.changes_at(period))
        sums = fleet.period_sums(period)
        server.add_sums(period, sums, num_reports=fleet.ends[len(sums) - 1])
        report("simulating", period, through)
    running = server.running_counts(
        through, num_users=users, smoothed=smoothed, confidence=confidence
    )
    ignored = fleet.ignored_changes
    num_ignored, num_limited = int(ignored.sum()), int((ignored > 0).sum())
    share = design.encoding.changing_share
    central = central_guarantee(design.profile, num_users=users, delta=delta, changing_share=share)
    return MonitorResult(
        design=design, num_users=users, running=running,
        truth=histories.true_counts()[:through].reshape(running.counts.shape),
        period_labels=histories.period_labels[:through], values=histories.labels,
        local=local_guarantee(design.profile),
        central=Guarantee(epsilon=central, delta=delta, num_users=users),
        num_ignored_changes=num_ignored, num_limited_users=num_limited,
        is_simulation=seed is not None,
        warnings=(
            *results.limit_cautions(num_ignored, num_limited, design.max_changes),
            *results.noise_cautions(float(running.standard_errors.max()), users),
            *results.local_cautions(design.epsilon0),
            *delta_cautions(delta, users),
        ),
    )  # fmt: skip
