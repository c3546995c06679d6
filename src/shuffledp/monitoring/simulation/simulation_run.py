"""One simulated collection between two periods: begin, go on, keep, conclude."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self, SupportsIndex

from shuffledp.collection.cautions import delta_cautions
from shuffledp.collection.results import Guarantee
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, FingerprintError, ParameterError
from shuffledp.core.progress import Progress
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.encodings.choose import encoding_for
from shuffledp.monitoring.encodings.encoding import Encoding
from shuffledp.monitoring.fleet import ClientFleet
from shuffledp.monitoring.histories.histories import Histories, period_digest
from shuffledp.monitoring.planning.cautions import (
    late_cautions,
    limit_cautions,
    local_cautions,
    noise_cautions,
)
from shuffledp.monitoring.privacy.central import central_guarantee
from shuffledp.monitoring.privacy.local import local_guarantee
from shuffledp.monitoring.server import MonitorServer
from shuffledp.monitoring.simulation.interrupts import waiting_interrupts
from shuffledp.monitoring.simulation.results import MonitorResult
from shuffledp.monitoring.simulation.state_files import MonitorState, read_state, write_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A design, and how a state file names all that must not change."""

    design: MonitorDesign
    settings: dict[str, object]

    @classmethod
    def of(
        cls,
        histories: Histories,
        *,
        max_changes: int,
        epsilon0: float,
        protocol: str,
        encoding: str | None,
    ) -> Self:
        """Return the collection with these parameters; they are checked here."""
        coding = histories.coding
        design = MonitorDesign(
            periods=histories.periods,
            max_changes=max_changes,
            epsilon0=epsilon0,
            protocol=protocol,
            encoding=_encoding(histories, encoding),
        )
        settings: dict[str, object] = {
            "periods": design.periods,
            "max_changes": design.max_changes,
            "epsilon0": design.epsilon0,
            "protocol": design.protocol,
            "kind of values": coding.kind,
            "values": list(coding.labels),
            "encoding": design.encoding.name,
            "time": histories.axis.describe(),
            "design": design.fingerprint(),
        }
        return cls(design=design, settings=settings)

    def require_same(self, settings: object, source: Path) -> None:
        """Raise unless a state was made with these settings."""
        written = settings if isinstance(settings, dict) else {}
        for name, now in self.settings.items():
            before = written.get(name)
            if before != now:
                raise FingerprintError(
                    f"{source} was made with {name} = {before!r}, and now it is {now!r}: give the "
                    "same, or start anew with another state file"
                )


@dataclass(slots=True, kw_only=True, eq=False)
class SimulationRun:
    """Clients and server between two periods."""

    collection: Collection
    histories: Histories
    fleet: ClientFleet
    server: MonitorServer
    seed: int | None
    next_period: int
    digest: bytes
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def begun(
        cls, collection: Collection, histories: Histories, seed: SupportsIndex | None
    ) -> Self:
        """Return a new run."""
        design = collection.design
        return cls(
            collection=collection,
            histories=histories,
            fleet=ClientFleet(design, histories.num_users, Entropy.choose(seed)),
            server=MonitorServer(design),
            seed=None if seed is None else require_at_least("seed", seed, 0),
            next_period=1,
            digest=b"",
            groups=((0, 1),),
        )

    @classmethod
    def resumed(
        cls,
        collection: Collection,
        histories: Histories,
        source: Path,
        seed: SupportsIndex | None,
        *,
        join_new_users: bool,
    ) -> Self:
        """Return the run that a state file holds, with new users if they may join."""
        state = read_state(source)
        collection.require_same(state.settings, source)
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
        design = collection.design
        fleet = ClientFleet.from_state_arrays(design, state.fleet)
        server = MonitorServer.from_arrays(design, state.server)
        if fleet.num_users != state.user_ids.len() or fleet.next_period != state.next_period:
            raise DataError(f"{source} contradicts itself: restore a copy, or start anew")
        if num_new:
            fleet.join(num_new)
        return cls(
            collection=collection,
            histories=numbered,
            fleet=fleet,
            server=server,
            seed=state.seed,
            next_period=state.next_period,
            digest=state.digest,
            groups=groups,
        )

    def go_on(
        self, through: int, target: Path | None, *, save_every: float, report: Progress
    ) -> None:
        """Simulate up to a period, and keep the state if there is a file for it."""
        saved_at = time.monotonic()
        with waiting_interrupts(enabled=target is not None) as is_interrupted:
            while self.next_period <= through and not is_interrupted():
                self._advance()
                report("simulating", self.next_period - 1, through)
                if target is not None and time.monotonic() - saved_at >= save_every:
                    write_state(self._state(), target)
                    saved_at = time.monotonic()
            if target is not None:
                write_state(self._state(), target)

    def result(
        self, through: int, *, delta: float, method: str, smoothed: bool, confidence: float
    ) -> MonitorResult:
        """Return estimates, truth and guarantees."""
        design, histories = self.collection.design, self.histories
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
        period = self.next_period
        changes = self.histories.changes_at(period)
        sums = self.fleet.update(period, changes.users, changes.values)
        for row, level in enumerate(sums.levels):
            self.server.ingest_sums(level, period, sums.sums[row], sums.counts[row])
        self.digest = period_digest(self.digest, period, changes)
        self.next_period = period + 1

    def _state(self) -> MonitorState:
        """Return what has to be kept."""
        return MonitorState(
            settings=self.collection.settings,
            seed=self.seed,
            next_period=self.next_period,
            digest=self.digest,
            groups=self.groups,
            user_ids=self.histories.user_ids,
            fleet=self.fleet.state_arrays(),
            server=self.server.to_arrays(),
        )


def _encoding(histories: Histories, name: str | None) -> Encoding:
    """Return how the values of these histories become bits."""
    coding = histories.coding
    if coding.kind == "boolean":
        return encoding_for(None, name=name)
    if coding.kind == "attributes":
        if name not in (None, "attributes"):
            raise ParameterError(f"encoding = {name!r} is not for sets of attributes: leave it out")
        name = "attributes"
    return encoding_for(coding.labels, name=name)


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
