"""A client: randomizes an answer once, keeps the report, and sends that same one until it arrives.

It needs neither compiled loops nor tables: `numpy` and `cryptography` are enough.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.messages import REPORT_ID_BYTES, Report, SealKey, SignedKeys
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

_STORE: Final = Layout(
    kind="client store",
    application_id=0x73647063,  # "sdpc"
    version=1,
    tables=(
        "CREATE TABLE reports (round INTEGER PRIMARY KEY, id BLOB NOT NULL, "
        "epoch INTEGER NOT NULL, report BLOB NOT NULL, is_done INTEGER NOT NULL)",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a user agrees to; the most permissive by default."""

    max_epsilon0: float = float("inf")
    least_batch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A randomized report as the client keeps it; the answer itself is kept nowhere."""

    report_id: bytes
    epoch: int
    report: bytes


class Client:
    """One user's part in one task; a context manager that holds the store."""

    def __init__(self, task: Task, store: Path, *, limits: Limits | None = None) -> None:
        """Refuse a task whose guarantee is untrue, or that is beyond the user's limits."""
        task.check()
        limits = limits or Limits()
        loss = task.asked.randomizer.epsilon0
        if not (loss <= limits.max_epsilon0 and task.min_batch >= limits.least_batch):
            raise ProtocolError(
                f"the task asks for epsilon0 = {loss:.6g} and batches of at least "
                f"{task.min_batch:,} reports; the limits are {limits.max_epsilon0:g} and "
                f"{limits.least_batch:,}: leave it out, or agree to more",
                fault=Fault.OPERATOR,
                reason=Reason.LIMIT,
            )
        self.task = task
        self._store = Database(store, _STORE, collection=task.task_id)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store; all is on disk already."""
        self._store.close()

    def report(self, value: Any, now: float, *, entropy: Entropy | None = None) -> Kept:
        """Randomize an answer, once; later calls return the same report, whatever the answer.

        The report is on disk before this returns. Its epoch is the one of ``now``.

        Raises
        ------
        DataError
            If the value is none of the answers.
        ProtocolError
            If the task takes no reports at this time.
        """
        kept = self.kept()
        if kept is not None:
            return kept
        epoch = self.task.epoch_at(now)
        if epoch is None:
            raise ProtocolError(
                "the task takes no reports at this time: answer while it runs",
                fault=Fault.CALLER,
                reason=Reason.EARLY if now < self.task.start else Reason.LATE,
            )
        asked = self.task.asked
        values = asked.question.value_of_one(value)
        reports = asked.randomizer.randomize(values, entropy or Entropy.from_operating_system())
        found = Kept(
            report_id=Entropy.from_operating_system().words(REPORT_ID_BYTES // 8).tobytes(),
            epoch=epoch,
            report=asked.codec.encode(reports)[0],
        )
        with self._store.transaction():
            self._store.change(
                "INSERT INTO reports VALUES (1, ?, ?, ?, 0)",
                (found.report_id, found.epoch, found.report),
            )
        return found

    def kept(self) -> Kept | None:
        """Return the report that was made, also once it is done."""
        rows = self._store.rows("SELECT id, epoch, report FROM reports WHERE round = 1")
        return None if not rows else Kept(report_id=rows[0][0], epoch=rows[0][1], report=rows[0][2])

    def choose_keys(
        self, *, shuffler: SignedKeys, analyzer: SignedKeys, now: float
    ) -> tuple[SealKey, SealKey]:
        """Return the keys to seal the kept report to: the shuffler's and the analyzer's.

        Raises
        ------
        ProtocolError
            For a list that is over, or has a smaller serial than one that was seen before.
        """
        lists = {"shuffler_serial": shuffler, "analyzer_serial": analyzer}
        for name, each in lists.items():
            each.require_current(now, self._store.fact(name) or 0)
        kept = self.kept()
        if kept is None:
            raise DataError("there is no report to send: answer first")
        with self._store.transaction():
            for name, each in lists.items():
                self._store.set_fact(name, each.serial)
        return shuffler.key_of_epoch(kept.epoch), analyzer.keys[0]

    def sealed(self, *, shuffler: SealKey, analyzer: SealKey) -> bytes:
        """Return the kept report sealed anew for these keys, under the same id."""
        kept = self.kept()
        if kept is None:
            raise DataError("there is no report to send: answer first")
        return Report.sealed_for(
            self.task.task_id,
            kept.report,
            report_id=kept.report_id,
            epoch=kept.epoch,
            shuffler=shuffler,
            analyzer=analyzer,
        ).encode()

    @property
    def is_done(self) -> bool:
        """Whether the shuffler has the report."""
        return bool(self._store.value("SELECT is_done FROM reports WHERE round = 1"))

    def done(self) -> None:
        """Note that the shuffler has the report."""
        with self._store.transaction():
            self._store.change("UPDATE reports SET is_done = 1 WHERE round = 1")
