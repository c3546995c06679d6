"""The analyzer: opens the shuffler's batches, counts what is valid and new, spends, then says.

It sees reports without names, order, time and ids. What it says of a batch counts, in this order:
what the shuffler released, less what was released before, less what does not open, less what no
randomizer makes, less what is sealed to a key that too few used; of the rest the share that is
honest for certain hides each user, among those who used the same key.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.accounting.ledger import Ledger
from shuffledp.collection.results import Guarantee
from shuffledp.core.reports import Reports
from shuffledp.deploy.database import Layout
from shuffledp.deploy.messages import Batch, inner_info, sealed_size
from shuffledp.deploy.servers.budget import spend_for_batch
from shuffledp.deploy.servers.opening import PAGE, Page, opened, workers
from shuffledp.deploy.servers.stores import open_store, rows_among
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
    #: For the honest share of ``reports`` of the rarest key: central epsilon at the task's delta.
    guarantee: Guarantee
    #: How many records were released, and of these were in an earlier batch, do not open, are not
    #: valid, or are left out because fewer than the least batch are sealed to their key.
    counts: Mapping[str, int]
    #: What has been spent and what is left, this batch included; None without a ledger.
    ledger: Ledger | None = None


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
        database: str | None = None,
    ) -> None:
        """``shuffler_key`` signs batches; with a ledger each batch is spent before it is said.

        ``database`` is a URL of PostgreSQL; by default the store is a file in ``folder``.
        """
        task.check()
        self.task, self._ledger = task, ledger
        self._shuffler_key = shuffler_key
        self._keys = {n: key.private_bytes_raw() for n, key in opening_keys.items()}
        self._task_id = task.task_id
        self._record_size = sealed_size(task.asked.codec.num_report_bytes)
        self._store = open_store(folder, database, _STORE, collection=task.task_id)

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
        with self._store.transaction():
            fresh = self._fresh(batch)
            texts, num_unopened = self._texts(fresh)
            reports, rarest, num_invalid, num_rare_key = self._valid(texts)
            if rarest < self.task.min_batch:
                raise ProtocolError(
                    f"batch {batch.number} has {rarest:,} valid reports of {len(batch.records):,} "
                    f"released, and the task promises at least {self.task.min_batch:,}: nothing is "
                    "said of it",
                    fault=Fault.SHUFFLER,
                    reason=Reason.EARLY,
                )
            ledger = None
            if self._ledger is not None:
                ledger = spend_for_batch(
                    self._ledger,
                    self.task,
                    number=batch.number,
                    root=batch.root,
                    num_reports=rarest,
                )
        return Opened(
            number=batch.number,
            root=batch.root,
            reports=reports,
            guarantee=self.task.guarantee(rarest),
            counts={
                "num_released": len(batch.records),
                "num_repeated": len(batch.records) - len(fresh),
                "num_unopened": num_unopened,
                "num_invalid": num_invalid,
                "num_rare_key": num_rare_key,
            },
            ledger=ledger,
        )

    def _fresh(self, batch: Batch) -> Sequence[bytes]:
        """Return the records that were in no other batch, and note that they are in this one."""
        self._store.insert_new("batches", "number, root", [(batch.number, batch.root)])
        digests = [hashlib.sha256(record).digest()[:16] for record in batch.records]
        rows = [(digest, batch.number) for digest in sorted(digests)]  # the order of the table
        if self._store.insert_new("records", "digest, batch", rows) == len(rows):
            return batch.records
        record_of = dict(zip(digests, batch.records, strict=True))
        query = "SELECT digest, batch FROM records WHERE digest"
        for digest, number in rows_among(self._store, query, list(record_of)):
            if number != batch.number:
                del record_of[digest]
        return list(record_of.values())

    def _texts(self, records: Sequence[bytes]) -> tuple[dict[int, list[bytes]], int]:
        """Return what opens, by the number of its key, and how many records do not."""
        texts: dict[int, list[bytes]] = {}
        info = inner_info(self._task_id)
        with workers(len(records)) as executor:
            for number, key in self._keys.items():
                sealed = [(info, each[1:]) for each in records if each[0] == number]
                pages = (Page(key, sealed[at : at + PAGE]) for at in range(0, len(sealed), PAGE))
                found = [text for page in executor.map(opened, pages) for text in page]
                texts[number] = [text for text in found if text is not None]
        return texts, len(records) - sum(map(len, texts.values()))

    def _valid(self, texts: Mapping[int, list[bytes]]) -> tuple[Reports, int, int, int]:
        """Return the valid reports, and how many of the rarest key, not valid, of too rare keys.

        A record tells its key, so whoever sees a batch can part it by keys, as old and new ones
        stand beside each other for a while: a user is hidden among those of one key only.
        """
        decode = self.task.asked.codec.decode_valid
        found = {key: decode(each) for key, each in texts.items()}
        sizes = {key: reports.num_reports for key, (reports, _) in found.items()}
        kept = [key for key in sizes if sizes[key] >= self.task.min_batch]
        num_invalid = sum(number for _, number in found.values())
        if len(kept) == 1:
            reports = found[kept[0]][0]
        else:
            reports, _ = decode([text for key in kept for text in texts[key]])
        rarest = min((sizes[key] for key in kept), default=max(sizes.values(), default=0))
        num_rare = sum(sizes.values()) - reports.num_reports
        return reports, rarest, num_invalid, num_rare

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

    def taken(self) -> dict[int, bytes]:
        """Return the hash of the records of each batch that was taken, by number."""
        return dict(self._store.rows("SELECT number, root FROM batches ORDER BY number"))
