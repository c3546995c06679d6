"""The analyzer: opens the shuffler's batches, counts what is valid and new, spends, then says.

It sees reports without names, order, time and ids. What it says of a batch counts, in this order:
what the shuffler released, less what was released before, less what does not open, less what no
randomizer makes; of the rest the share that is honest for certain hides each user.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.accounting.ledger_files import spend
from shuffledp.accounting.release import ShuffledRelease, honest_users
from shuffledp.collection.results import Guarantee
from shuffledp.core.reports import Reports
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.messages import Batch, open_record, sealed_size
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

_STORE: Final = Layout(
    kind="analyzer store",
    application_id=0x73647061,  # "sdpa"
    version=1,
    tables=(
        "CREATE TABLE batches (number INTEGER PRIMARY KEY, root BLOB NOT NULL UNIQUE)",
        # Of each record, so that none is counted in two batches; for the life of the task.
        "CREATE TABLE records (digest BLOB PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What is in a batch: ``reports`` are valid, distinct and new; the rest are numbers of them."""

    number: int
    root: bytes
    reports: Reports
    #: For the honest share of ``reports``: central epsilon at the task's delta.
    guarantee: Guarantee
    num_released: int
    num_repeated: int
    num_unopened: int
    num_invalid: int


class Analyzer:
    """One task's analyzer; a context manager that holds its store."""

    def __init__(
        self,
        task: Task,
        folder: Path,
        *,
        shuffler_key: bytes,
        opening_keys: Mapping[int, X25519PrivateKey],
        ledger: Path | None = None,
    ) -> None:
        """``shuffler_key`` signs batches; with a ledger each batch is spent before it is said."""
        task.check()
        self.task, self._ledger = task, ledger
        self._shuffler_key, self._opening_keys = shuffler_key, dict(opening_keys)
        self._task_id = task.task_id
        self._record_size = sealed_size(task.asked.codec.num_report_bytes)
        self._store = Database(folder / "analyzer.db", _STORE, collection=task.task_id)

    def __enter__(self) -> "Analyzer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store; all is on disk already."""
        self._store.close()

    def take(self, data: bytes) -> Opened:
        """Open a batch; the same one again gives the same, and spends nothing more.

        Raises
        ------
        ProtocolError
            The shuffler's fault, for what is no batch of this task, another batch under a number
            that was taken, or fewer valid reports than the task's least batch: nothing is said of
            them, nothing is spent, and none of them counts as seen.
        BudgetError
            If the ledger does not cover it.
        """
        batch = Batch.decode(data, self._task_id, self._record_size, self._shuffler_key)
        self._require_new_or_same(batch)
        digests = [hashlib.sha256(record).digest()[:16] for record in batch.records]
        fresh = {
            digest: record
            for digest, record in zip(digests, batch.records, strict=True)
            if not self._was_seen(digest, batch.number)
        }
        texts = [open_record(self._task_id, each, self._opening_keys) for each in fresh.values()]
        opened = [text for text in texts if text is not None]
        reports, num_invalid = self.task.asked.codec.decode_valid(opened)
        num_valid = reports.num_reports
        if num_valid < self.task.min_batch:
            raise ProtocolError(
                f"batch {batch.number} has {num_valid:,} valid reports of {len(batch.records):,} "
                f"released, and the task promises at least {self.task.min_batch:,}: nothing is "
                "said of it",
                fault=Fault.SHUFFLER,
                reason=Reason.EARLY,
            )
        guarantee = self.task.guarantee(num_valid)
        self._spend(batch, num_valid)
        with self._store.transaction():
            self._store.change(
                "INSERT OR IGNORE INTO batches VALUES (?, ?)", (batch.number, batch.root)
            )
            self._store.change_many(
                "INSERT OR IGNORE INTO records VALUES (?, ?)",
                [(digest, batch.number) for digest in fresh],
            )
        return Opened(
            number=batch.number,
            root=batch.root,
            reports=reports,
            guarantee=guarantee,
            num_released=len(batch.records),
            num_repeated=len(batch.records) - len(fresh),
            num_unopened=len(texts) - len(opened),
            num_invalid=num_invalid,
        )

    def _require_new_or_same(self, batch: Batch) -> None:
        """Raise if another batch was taken under this number, or this one under another."""
        rows = self._store.rows(
            "SELECT number, root FROM batches WHERE number = ? OR root = ?",
            (batch.number, batch.root),
        )
        if any((number, root) != (batch.number, batch.root) for number, root in rows):
            raise ProtocolError(
                f"batch {batch.number}: its number or its records were taken before, with others: "
                "the shuffler has released two",
                fault=Fault.SHUFFLER,
                reason=Reason.CONFLICT,
            )

    def _was_seen(self, digest: bytes, number: int) -> bool:
        """Return whether a record was in another batch."""
        found = self._store.value("SELECT batch FROM records WHERE digest = ?", (digest,))
        return found is not None and found != number

    def _spend(self, batch: Batch, num_valid: int) -> None:
        """Take a batch off the budget, once: under the hash of its records."""
        if self._ledger is None:
            return
        profile = self.task.asked.randomizer.profile
        honest = honest_users(num_valid, self.task.honest_ppm / 1_000_000)
        release = ShuffledRelease(profile=profile, num_users=honest)
        spend(self._ledger, release, self.note(batch.number), key=batch.root.hex())

    def note(self, number: int) -> str:
        """Return what the ledger says of a batch."""
        return f"task {self._task_id.hex()[:16]}, batch {number}"

    def taken(self) -> dict[int, bytes]:
        """Return the hash of the records of each batch that was taken, by number."""
        return dict(self._store.rows("SELECT number, root FROM batches ORDER BY number"))
