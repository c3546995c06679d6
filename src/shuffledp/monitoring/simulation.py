"""A longitudinal collection, simulated: every client and the server, period by period.

What clients draw is a keyed function of the period, so a simulation that goes on makes the reports
of the periods before anew, the same bit for bit, and its state is little more than the key.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self, SupportsIndex

from shuffledp.collection.output import writing
from shuffledp.collection.results import Guarantee, delta_cautions
from shuffledp.core.checks import require_at_least, require_delta, require_open_unit
from shuffledp.core.durable_files import sync_folder
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy
from shuffledp.core.errors import DataError, FingerprintError, OutputError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.fleet import ClientFleet
from shuffledp.monitoring.histories import Histories
from shuffledp.monitoring.privacy.central import central_guarantee, local_guarantee
from shuffledp.monitoring.results import (
    MonitorResult,
    limit_cautions,
    local_cautions,
    noise_cautions,
)
from shuffledp.monitoring.server import MonitorServer

_FORMAT: Final = "shuffledp monitoring state"
_VERSION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationState:
    """What a simulation needs to go on. Secret: the key undoes what hides the simulated values."""

    settings: dict[str, Any]  # what must be the same when it goes on
    seed: int | None
    key: str  # of all draws, in hexadecimal digits
    through: int  # the last period whose estimates were shown
    digest: str  # of the users and all changes up to then; see `Histories.digest`

    def write(self, target: Path) -> None:
        """Put the state in the place of a file, all or nothing, readable by its owner only."""
        record = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        text = json.dumps({**record, "checksum": _checksum(record)})
        with _writing_state(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            prefix = f".{target.name}."
            handle, partial = tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=".new")
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                Path(partial).replace(target)
            except BaseException:
                Path(partial).unlink(missing_ok=True)
                raise
            sync_folder(target.parent)

    @classmethod
    def read(cls, source: Path) -> Self:
        """Return the state that `write` wrote, or raise `DataError`."""
        try:
            record = json.loads(source.read_bytes())
        except FileNotFoundError:
            raise DataError(
                f"there is no state file {source}: start without resume=True, which writes one"
            ) from None
        except OSError as error:
            raise DataError(f"cannot read {source}: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or record.pop("format", None) != _FORMAT:
            raise DataError(
                f"{source} is no state file of a monitoring simulation of this shuffledp, or cut "
                "short: give its name, or start anew without resume=True"
            )
        checksum, version = record.pop("checksum", None), record.pop("version", None)
        if version != _VERSION:
            raise DataError(
                f"{source} is a state file of version {version}, and this shuffledp reads version "
                f"{_VERSION}: go on with the shuffledp that wrote it, or start anew"
            )
        if checksum != _checksum({"format": _FORMAT, "version": _VERSION, **record}):
            raise DataError(
                f"cannot go on from {source}: it is damaged, for its checksum does not match; "
                "restore a copy, or start anew without resume=True"
            )
        return cls(**record)

    def require_same(
        self, settings: dict[str, Any], seed: SupportsIndex | None, source: Path
    ) -> None:
        """Raise unless the state was made with these settings."""
        for name, value in settings.items():
            if self.settings[name] != value:
                raise FingerprintError(
                    f"{source} was made with {name} = {self.settings[name]!r}, and now it is "
                    f"{value!r}: give the same, or start anew with another state file"
                )
        if seed is not None and self.seed != require_at_least("seed", seed, 0):
            raise FingerprintError(
                f"{source} was made with seed = {self.seed}, and now it is {seed}: leave the seed "
                "out, and it goes on with its own"
            )


def _checksum(record: dict[str, Any]) -> str:
    """Return what finds damage, not malice."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _writing_state(target: Path) -> Iterator[None]:
    """Name the state file where it cannot be written, also while a folder of results is made."""
    try:
        with writing(target):
            yield
    except OutputError as error:
        raise OutputError(str(error)) from None  # with a cause it would be put down to the folder


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
    state_file: str | PathLike[str] | None = None,
    resume: bool = False,
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
        For a reproducible simulation.
    state_file : path, optional
        Where to keep what is needed to go on: the key of all draws, and how far it got. It is
        written at the beginning and at the end, each time as a whole.
    resume : bool
        Go on from the state file. The table must have the same users, and the same changes up to
        the period of the last result; it may have more after that.
    stop_after : int, optional
        The last period to simulate now; by default all.
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
    DataError
        If the state file cannot be used, or the table does not continue it.
    FingerprintError
        If the state file is of another collection.
    OutputError
        If a state file is there already and ``resume`` is not asked for, or it cannot be written.

    Notes
    -----
    A simulation that goes on makes all reports again, the same bit for bit, as they depend on the
    key and the period only: nothing is lost, and no two reports of a client on one period differ.
    So does one that was stopped or killed half-way, of which nothing but the state has left.

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
    target = None if state_file is None else Path(state_file)
    if resume and target is None:
        raise ParameterError("resume=True without a state file: give state_file, too")
    state = _begun_or_resumed(design, histories, target if resume else None, seed)
    through = _last_period(stop_after, state.through, histories.periods)
    if target is not None:
        if target.exists() and not resume:
            raise OutputError(
                f"state file {target} is there already: go on from it with resume=True, or "
                "choose another"
            )
        state.write(target)
    fleet = ClientFleet.drawn(design, histories.num_users, bytes.fromhex(state.key))
    server = _collected(fleet, histories, through, on_progress or no_progress)
    if target is not None:
        replace(state, through=through, digest=histories.digest(through).hex()).write(target)
    running = server.running_counts(
        through, num_users=histories.num_users, smoothed=smoothed, confidence=confidence
    )
    ignored = fleet.ignored_changes
    num_ignored, num_limited = int(ignored.sum()), int((ignored > 0).sum())
    central = central_guarantee(
        design.profile,
        num_users=histories.num_users,
        delta=delta,
        changing_share=design.encoding.changing_share,
    )
    return MonitorResult(
        design=design,
        num_users=histories.num_users,
        running=running,
        truth=histories.true_counts()[:through].reshape(running.counts.shape),
        period_labels=histories.period_labels[:through],
        values=histories.labels,
        local=local_guarantee(design.profile),
        central=Guarantee(epsilon=central, delta=delta, num_users=histories.num_users),
        num_ignored_changes=num_ignored,
        num_limited_users=num_limited,
        is_simulation=state.seed is not None,
        warnings=(
            *limit_cautions(num_ignored, num_limited, design.max_changes),
            *noise_cautions(float(running.standard_errors.max()), histories.num_users),
            *local_cautions(design.epsilon0),
            *delta_cautions(delta, histories.num_users),
        ),
    )


def _collected(
    fleet: ClientFleet, histories: Histories, through: int, report: Progress
) -> MonitorServer:
    """Return a server with the reports of all users up to a period."""
    server = MonitorServer(fleet.design)
    for period in range(1, through + 1):
        fleet.follow(*histories.changes_at(period))
        sums = fleet.period_sums(period)
        server.add_sums(period, sums, num_reports=fleet.ends[len(sums) - 1])
        report("simulating", period, through)
    return server


def _begun_or_resumed(
    design: MonitorDesign, histories: Histories, source: Path | None, seed: SupportsIndex | None
) -> SimulationState:
    """Return a new state, or the one of a file if the histories continue it."""
    settings = {
        "users": histories.num_users,
        "periods": design.periods,
        "max_changes": design.max_changes,
        "epsilon0": design.epsilon0,
        "protocol": design.protocol,
        "values": list(histories.labels),
        "time": list(histories.period_labels[:2]),
        "design": design.fingerprint(),
    }
    if source is None:
        key = Entropy.choose(seed).words(KEY_BYTES // WORD_BYTES).tobytes()
        number = None if seed is None else require_at_least("seed", seed, 0)
        digest = histories.digest(0).hex()
        return SimulationState(
            settings=settings, seed=number, key=key.hex(), through=0, digest=digest
        )
    state = SimulationState.read(source)
    state.require_same(settings, seed, source)
    if histories.digest(state.through).hex() != state.digest:
        raise DataError(
            f"{histories.origin} has other users, or other changes in periods 1 to "
            f"{state.through:,}, than the table that {source} was made from: give that table, to "
            "which only later rows may be added"
        )
    return state


def _last_period(stop_after: int | None, through: int, periods: int) -> int:
    """Return the last period to simulate now."""
    if stop_after is None:
        return periods
    last = require_at_least("stop_after", stop_after, 1)
    if not through <= last <= periods:
        raise ParameterError(
            f"stop_after = {last:,} is not in [{max(through, 1):,}, {periods:,}], the periods that "
            "are not over yet: give one of them"
        )
    return last
