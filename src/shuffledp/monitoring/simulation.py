"""A longitudinal collection, simulated: every client and the server, period by period."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Self, SupportsIndex

from shuffledp.collection.results import Guarantee, delta_cautions
from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_non_negative,
    require_open_unit,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, FingerprintError, OutputError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.design import MonitorDesign, encoding_for
from shuffledp.monitoring.fleet import ClientFleet
from shuffledp.monitoring.histories import Histories, period_digest
from shuffledp.monitoring.privacy.central import central_guarantee, local_guarantee
from shuffledp.monitoring.results import (
    MonitorResult,
    late_cautions,
    limit_cautions,
    local_cautions,
    noise_cautions,
)
from shuffledp.monitoring.running_errors import require_method
from shuffledp.monitoring.server import MonitorServer
from shuffledp.monitoring.state_files import (
    MonitorState,
    read_state,
    require_place,
    write_state,
)


@contextlib.contextmanager
def waiting_interrupts(*, enabled: bool = True) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C wait; a second one interrupts at once. Yields whether one waits.

    Only the main thread of a program gets Ctrl-C. An interrupt that still waits at the end is
    raised then.
    """
    is_waiting = False

    def wait(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_waiting
        if is_waiting:
            raise KeyboardInterrupt
        is_waiting = True

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    # Where a program ignores Ctrl-C or handles it in its own way, that remains.
    if not enabled or not is_main or before is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, wait)
    try:
        yield lambda: is_waiting
    finally:
        signal.signal(signal.SIGINT, before)
    if is_waiting:
        raise KeyboardInterrupt


@dataclass(slots=True, kw_only=True, eq=False)
class SimulationRun:
    """Clients and server between two periods."""

    design: MonitorDesign
    histories: Histories
    fleet: ClientFleet
    server: MonitorServer
    seed: int | None
    digest: bytes
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def begun(cls, design: MonitorDesign, histories: Histories, seed: SupportsIndex | None) -> Self:
        """Return a new run."""
        return cls(
            design=design,
            histories=histories,
            fleet=ClientFleet(design, histories.num_users, Entropy.choose(seed)),
            server=MonitorServer(design),
            seed=None if seed is None else require_at_least("seed", seed, 0),
            digest=b"",
            groups=((0, 1),),
        )

    @classmethod
    def resumed(
        cls,
        design: MonitorDesign,
        histories: Histories,
        source: Path,
        seed: SupportsIndex | None,
        *,
        join_new_users: bool,
    ) -> Self:
        """Return the run that a state file holds, with new users if they may join."""
        state = read_state(source)
        _require_same(state.settings, _settings(design, histories), source)
        if seed is not None and state.seed != require_at_least("seed", seed, 0):
            raise FingerprintError(
                f"{source} was made with seed = {state.seed}, and now it is {seed}: leave the seed "
                "out, and it goes on with its own"
            )
        numbered = histories.numbered_like(state.user_ids)
        num_new = numbered.num_users - state.user_ids.len()
        groups = state.groups
        if num_new:
            _require_joining(numbered, state, source, num_new, allowed=join_new_users)
            groups = (*groups, (state.user_ids.len(), state.next_period))
        numbered = numbered.begun(groups)
        if numbered.digest(state.next_period - 1) != state.digest:
            raise DataError(
                f"{histories.origin} has other changes in periods 1 to {state.next_period - 1:,} "
                f"than the table that {source} was made from: give that table, to which only "
                "later rows and new users may be added"
            )
        fleet = ClientFleet.from_state_arrays(design, state.fleet)
        server = MonitorServer.from_arrays(design, state.server)
        if fleet.num_users != state.user_ids.len() or fleet.next_period != state.next_period:
            raise DataError(f"{source} contradicts itself: restore a copy, or start anew")
        if num_new:
            fleet.join(num_new)
        return cls(
            design=design,
            histories=numbered,
            fleet=fleet,
            server=server,
            seed=state.seed,
            digest=state.digest,
            groups=groups,
        )

    def go_on(
        self, through: int, target: Path | None, *, save_every: float, report: Progress
    ) -> None:
        """Simulate up to a period, and keep the state if there is a file for it."""
        saved_at = time.monotonic()
        with waiting_interrupts(enabled=target is not None) as is_interrupted:
            while self.fleet.next_period <= through and not is_interrupted():
                self._advance()
                report("simulating", self.fleet.next_period - 1, through)
                if target is not None and time.monotonic() - saved_at >= save_every:
                    write_state(self._state(), target)
                    saved_at = time.monotonic()
            if target is not None:
                write_state(self._state(), target)

    def result(
        self, through: int, *, delta: float, method: str, smoothed: bool, confidence: float
    ) -> MonitorResult:
        """Return estimates, truth and guarantees."""
        design, histories = self.design, self.histories
        num_users = histories.num_users
        num_first = self.groups[1][0] if len(self.groups) > 1 else num_users
        ignored = self.fleet.ignored_changes
        num_ignored, num_limited = int(ignored.sum()), int((ignored > 0).sum())
        running = self.server.running_counts(
            through=through,
            method=method,
            smoothed=smoothed,
            confidence=confidence,
            simultaneous=True,
            num_users=num_users,
        )
        central = central_guarantee(
            design.profile,
            num_users=num_first,
            delta=delta,
            level_hidden=num_first == num_users,
            changing_share=design.encoding.changing_share,
        )
        return MonitorResult(
            design=design,
            num_users=num_users,
            num_late_users=num_users - num_first,
            running=running,
            truth=histories.true_counts()[:through].reshape(running.counts.shape),
            period_labels=tuple(histories.axis.label(t) for t in range(1, through + 1)),
            values=histories.coding.labels,
            local=local_guarantee(design.profile),
            central=Guarantee(epsilon=central, delta=delta, num_users=num_first),
            num_ignored_changes=num_ignored,
            num_limited_users=num_limited,
            is_simulation=self.seed is not None,
            warnings=(
                *limit_cautions(num_ignored, num_limited, design.max_changes),
                *late_cautions(num_users - num_first, num_first),
                *noise_cautions(float(running.standard_errors.max()), num_users),
                *local_cautions(design.epsilon0),
                *delta_cautions(delta, num_users),
            ),
        )

    def _advance(self) -> None:
        """Simulate one period."""
        period = self.fleet.next_period
        changes = self.histories.changes_at(period)
        sums = self.fleet.update(period, changes.users, changes.values)
        for row, level in enumerate(sums.levels):
            self.server.ingest_sums(level, period, sums.sums[row], sums.counts[row])
        self.digest = period_digest(self.digest, period, changes)

    def _state(self) -> MonitorState:
        """Return what has to be kept."""
        return MonitorState(
            settings=_settings(self.design, self.histories),
            seed=self.seed,
            next_period=self.fleet.next_period,
            digest=self.digest,
            groups=self.groups,
            user_ids=self.histories.user_ids,
            fleet=self.fleet.state_arrays(),
            server=self.server.to_arrays(),
        )


def _settings(design: MonitorDesign, histories: Histories) -> dict[str, object]:
    """Return how a state file names all that must not change."""
    return {
        "periods": design.periods,
        "max_changes": design.max_changes,
        "epsilon0": design.epsilon0,
        "protocol": design.protocol,
        "kind of values": histories.coding.kind,
        "values": list(histories.coding.labels),
        "encoding": design.encoding.name,
        "time": histories.axis.describe(),
        "design": design.fingerprint(),
    }


def _require_same(written: Mapping[str, object], now: Mapping[str, object], source: Path) -> None:
    """Raise unless a state was made with these settings."""
    for name, value in now.items():
        if written.get(name) != value:
            raise FingerprintError(
                f"{source} was made with {name} = {written.get(name)!r}, and now it is {value!r}: "
                "give the same, or start anew with another state file"
            )


def _require_joining(
    histories: Histories, state: MonitorState, source: Path, num_new: int, *, allowed: bool
) -> None:
    """Raise unless new users may and can join."""
    ids = histories.user_ids
    named = f"{num_new:,} users of {histories.origin}, such as {ids[state.user_ids.len()]!r},"
    if not allowed:
        raise DataError(
            f"{named} are not in {source}: leave them out, or let them join from period "
            f"{state.next_period:,} on with join_new_users (--join-new-users)"
        )
    if state.next_period > histories.periods:
        raise DataError(f"{named} are not in {source}, and its last period is over: leave them out")


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
    >>> from shuffledp.monitoring.histories import open_histories
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
    design = MonitorDesign(
        periods=histories.periods,
        max_changes=max_changes,
        epsilon0=epsilon0,
        protocol=protocol,
        encoding=encoding_for(histories.coding.labels or None, name=encoding),
    )
    target = None if state_file is None else Path(state_file)
    if resume:
        if target is None:
            raise ParameterError("resume = True without a state file: give state_file, too")
        run = SimulationRun.resumed(design, histories, target, seed, join_new_users=join_new_users)
    else:
        if target is not None and target.exists():
            raise OutputError(
                f"state file {target} is there already: go on from it with resume (--resume), or "
                "choose another"
            )
        run = SimulationRun.begun(design, histories, seed)
    through = _last_period(stop_after, run.fleet.next_period, histories.periods)
    if target is not None:
        require_place(target)
    run.go_on(through, target, save_every=save_every, report=on_progress or no_progress)
    return run.result(through, delta=delta, method=method, smoothed=smoothed, confidence=confidence)


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
