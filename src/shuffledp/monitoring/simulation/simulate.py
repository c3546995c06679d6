"""A longitudinal collection, simulated: every client and the server, period by period."""

from os import PathLike
from pathlib import Path
from typing import SupportsIndex

from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_non_negative,
    require_open_unit,
)
from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.histories.histories import Histories
from shuffledp.monitoring.running_counts.variances import require_method
from shuffledp.monitoring.simulation.results import MonitorResult
from shuffledp.monitoring.simulation.simulation_run import Collection, SimulationRun
from shuffledp.monitoring.simulation.state_files import require_place


def simulate_monitoring(  # noqa: PLR0913  # one keyword an option
    histories: Histories,
    *,
    max_changes: int,
    epsilon0: float,
    delta: float,
    periods: int | None = None,
    protocol: str = "predrawn-signs",
    encoding: str | None = None,
    method: str = "least-squares",
    smoothed: bool = False,
    confidence: float = 0.95,
    seed: SupportsIndex | None = None,
    state_file: str | PathLike[str] | None = None,
    resume: bool = False,
    join_new_users: bool = False,
    stop_after: int | None = None,
    save_every: float = 30.0,
    on_progress: Progress | None = None,
) -> MonitorResult:
    """Run the client of every user and the server over all periods, and estimate.

    Parameters
    ----------
    histories : Histories
        What users really do; see ``open_histories``.
    max_changes : int
        k, in [1, periods]: how many changes of a user are followed. Clients ignore further ones,
        which biases the estimates and costs no privacy.
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports.
    delta : float
        At which the central guarantee is computed, in [0, 1).
    periods : int, optional
        d, which is fixed when a collection begins; by default as many as the table has.
    protocol : str
        Law of the signs, one of ``SIGN_LAWS``.
    encoding : {"one-hot", "hadamard"}, optional
        How categories become bits; by default whichever has the smaller error.
    method : {"least-squares", "cover"}
        Estimator.
    smoothed : bool
        Use later reports for earlier periods, too; by default estimates are those of the day.
    confidence : float
        That all bands hold at once with, in (0, 1).
    seed : int, optional
        For a reproducible simulation.
    state_file : path, optional
        Where to keep what is needed to go on. It is written every ``save_every`` seconds, at
        Ctrl-C and at the end, each time as a whole.
    resume : bool
        Go on from the state file. The table must have the same changes up to there; it may have
        more after that.
    join_new_users : bool
        Let users join who are in the table now and were not before: they begin in the next period.
        Which level such users report at can then be seen, so the central guarantee is weaker.
    stop_after : int, optional
        The last period to simulate now; by default ``periods``.
    save_every : float
        Seconds between two states, at least 0 (after each period).
    on_progress : callable, optional
        Called with the stage, the periods done and those in total.

    Returns
    -------
    MonitorResult
        Estimates for all periods so far, those before an interruption included.

    Raises
    ------
    ParameterError, DomainError
        If an argument is out of range.
    DataError
        If the state file cannot be used, or the table does not continue it.
    FingerprintError
        If the state file is of another collection.
    OutputError
        If a state file is there already and ``resume`` is not asked for, or it cannot be written.
    KeyboardInterrupt
        At Ctrl-C, after the period under way has been finished and the state written.

    Notes
    -----
    Nothing is lost or reported twice: the state file always holds clients and server as they were
    between the same two periods, and nothing else leaves the simulation before it ends. After a
    crash the periods since the last state are simulated again. With a seed the result is the same
    as without interruption.

    Cost: about 2 ns a user and period for booleans, and 30 bytes of memory a user.

    Examples
    --------
    >>> import polars as pl
    >>> from shuffledp.monitoring.histories.histories import open_histories
    >>> rows = pl.DataFrame({"id": range(500), "day": [1] * 500, "on": [True, False] * 250})
    >>> histories = open_histories(rows, user="id", time="day", value="on", periods=4)
    >>> result = simulate_monitoring(histories, max_changes=2, epsilon0=1.0, delta=1e-6, seed=1)
    >>> result.truth.tolist(), result.num_ignored_changes
    ([250, 250, 250, 250], 0)
    """
    require_delta(delta)
    require_open_unit("confidence", confidence)
    require_method(method, smoothed=smoothed)
    require_non_negative("save_every", save_every)
    if periods is not None:
        histories = histories.with_periods(periods)
    collection = Collection.of(
        histories, max_changes=max_changes, epsilon0=epsilon0, protocol=protocol, encoding=encoding
    )
    target = None if state_file is None else Path(state_file)
    if resume:
        run = SimulationRun.resumed(
            collection, histories, _existing(target), seed, join_new_users=join_new_users
        )
    else:
        _require_free(target)
        run = SimulationRun.begun(collection, histories, seed)
    through = _last_period(stop_after, run.next_period, histories.periods)
    if target is not None:
        require_place(target)
    run.go_on(through, target, save_every=save_every, report=on_progress or no_progress)
    return run.result(through, delta=delta, method=method, smoothed=smoothed, confidence=confidence)


def _existing(target: Path | None) -> Path:
    """Return the state file to go on from."""
    if target is None:
        raise ParameterError("resume = True without a state file: give state_file, too")
    return target


def _require_free(target: Path | None) -> None:
    """Raise if a state file would be lost."""
    if target is not None and target.exists():
        raise OutputError(
            f"state file {target} is there already: go on from it with resume (--resume), or "
            "choose another"
        )


def _last_period(stop_after: int | None, next_period: int, periods: int) -> int:
    """Return the last period to simulate now."""
    if stop_after is None:
        return periods
    last = require_at_least("stop_after", stop_after, 1)
    if not next_period - 1 <= last <= periods:
        raise ParameterError(
            f"stop_after = {last:,} is not in [{max(next_period - 1, 1):,}, {periods:,}], the "
            "periods that are not over yet: give one of them"
        )
    return last
