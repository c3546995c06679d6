"""The shuffler: takes in sealed reports, batches them by time, strips, sorts, releases, forgets.

Time is an argument, so that a test can set its own. The store is one SQLite file and one file a
batch, or PostgreSQL and objects where several processes take in reports. Keys that open reports are
files of their own, one an epoch, which are deleted when the epoch is over and its batch sealed:
from then on nobody can open a copy of the reports.

A batch is *closed* when its members are fixed, *sealed* when its file is on disk, *fetched* when
the analyzer confirms that it has it, and then only its counts are left. A step that is interrupted
can be done again.

A record reveals the number of the analyzer's key, so the analyzer can split a batch by it. Each
such class is released only if it alone is large enough; otherwise it is *held*, stripped of all
but the inner seal, for the next batch, or dropped.

With a shuffler's dummies each class that is released gets its own, however small it is otherwise.
With devices' dummies a *share*, all records that a device sent, takes the place of a record, and a
batch is of one class, so that its head states the number of devices.
"""

import hashlib
import math
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shuffledp.core.checks import require_non_negative
from shuffledp.core.errors import BudgetError
from shuffledp.deploy import messages
from shuffledp.deploy.database import Keeper, Layout
from shuffledp.deploy.messages import NUM_KEYS, Answer, Batch, Codes, Report, split
from shuffledp.deploy.servers import batches as batching
from shuffledp.deploy.servers.batches import BatchState, HandedOut, Held, Page, Store, Written
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, MailKey, Reason

#: Seconds after the end of an epoch in which its reports are still taken in.
GRACE_SECONDS: Final = 3600

# Reports of an epoch are a table of their own, so that it is dropped as a whole: in SQLite in the
# order of ids, which are random, so that the order of arrival is nowhere on disk.
_REPORTS: Final = "CREATE TABLE {table} (id BLOB PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID"
# Records opened for the batch that ended with the epoch, but not released; recreated each time.
_HELD: Final = "CREATE TABLE held (record BLOB PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID"
_TABLES: Final = (
    "CREATE TABLE epochs (epoch INTEGER PRIMARY KEY)",  # epochs with a table of reports
    "CREATE TABLE batches (number INTEGER PRIMARY KEY, state TEXT NOT NULL, "
    "first_epoch INTEGER NOT NULL, last_epoch INTEGER NOT NULL, size INTEGER, root BLOB)",
    # Several rows a count, so that processes that count do not wait for each other.
    "CREATE TABLE counts (epoch INTEGER, name TEXT, part INTEGER, number INTEGER NOT NULL, "
    "PRIMARY KEY (epoch, name, part)) WITHOUT ROWID",
    _HELD,
    batching.DUMMIES,
)
_STORE: Final = Layout(
    kind="shuffler store",
    mark=b"sdps",
    version=5,
    tables=_TABLES,
    steps={4: (batching.DUMMIES,)},
)
_NUM_PARTS: Final = 32


class Shuffler(Keeper):
    """One task's shuffler; a context manager that holds its store."""

    def __init__(  # noqa: PLR0913  # one keyword a thing it holds or shares
        self,
        task: Task,
        folder: Path,
        *,
        signing_key: Ed25519PrivateKey,
        sealing_keys: Mapping[int, MailKey],
        handed_out: Path,
        grace_seconds: float = GRACE_SECONDS,
        admission: Codes | None = None,
        ledger: Path | None = None,
        database: str | None = None,
        batches: str | None = None,
    ) -> None:
        """``sealing_keys`` are by epoch, for epochs with reports that are not opened.

        With a ledger each batch is spent before it is written, and waits if the budget is too
        small. It is the shuffler's own: it counts all records, of which the analyzer may use fewer.
        ``database`` and ``batches`` are URLs of PostgreSQL and of a place for objects, which
        several processes may share; by default both are in ``folder``, for one process.
        ``handed_out`` has the numbers of batches handed out, and is in no backup of those.
        """
        task.check()
        self._handed_out = HandedOut(handed_out)  # raises if it is lost
        require_non_negative("grace_seconds", grace_seconds)
        self.task, self._grace = task, grace_seconds
        self._admission, self._ledger = admission, ledger
        self._signing_key, self._sealing_keys = signing_key, dict(sealing_keys)
        self._batches = batching.open_batches(folder, batches, task_id=task.task_id)
        self._store: Store = batching.open_store(folder, database, _STORE, collection=task.task_id)
        self._epochs: set[int] = set()  # epochs known to have a table of reports
        self.max_epoch_reports = math.inf  # see `is_full`
        self._num_in = Counter[int]()
        self._refused = Counter[tuple[int, str]]()  # by epoch and answer, and not yet on disk
        self._known_closed = self._num_closed
        #: The analyzer's keys by number; a record sealed to another key is no report.
        self.inner_keys: Mapping[int, bytes] = dict.fromkeys(range(NUM_KEYS), b"")

    # ------------------------------------------------------------ taking in
    def take(self, reports: Sequence[Report], now: float) -> list[Answer]:
        """Take in reports of any number of uploads, in one transaction; O(log n) a report.

        Return the answer to each. Accepted reports are on disk when this returns; refused reports
        cost the store nothing, and are counted later.
        """
        refusals = [self._refusal(report, now) for report in reports]
        new: defaultdict[int, list[Report]] = defaultdict(list)
        for report, refusal in zip(reports, refusals, strict=True):
            if refusal is None:
                new[report.epoch].append(report)
            else:  # one count for all epochs after the last, whatever epochs a stranger makes up
                epoch = min(report.epoch, self.task.num_epochs)
                self._refused[epoch, refusal.name.lower()] += 1
        stored: dict[int, Iterator[Answer]] = {}
        if new:
            with self._store.transaction(is_shared=self._epochs.issuperset(new)):
                self._known_closed = self._num_closed
                stored = {epoch: iter(self._stored(epoch, new[epoch])) for epoch in sorted(new)}
            self._epochs.update(new)
        both = zip(reports, refusals, strict=True)
        return [next(stored[each.epoch]) if no is None else no for each, no in both]

    def is_full(self, epoch: int) -> bool:
        """Return True if an epoch has its maximum of reports, as far as this process knows.

        Reports taken in by other processes are known when `num_unreleased` has counted.
        """
        return self._num_in[epoch] >= self.max_epoch_reports

    def prepare(self, now: float) -> None:
        """Compute the admitted ids of the open epochs and the next one; uses no database."""
        if self._admission is not None:
            self._admission.prepare(self.epochs_around(now))

    def epochs_around(self, now: float) -> range:
        """Return the epochs that take reports in, and the next one."""
        first, last = (self.task.nth_epoch(each) for each in (now - self._grace, now))
        return range(max(self._known_closed, first), min(self.task.num_epochs, last + 2))

    def replace_keys(self, sealing_keys: Mapping[int, MailKey], admission: Codes | None) -> None:
        """Open with other keys, and admit by other codes, from now on."""
        self._sealing_keys, self._admission = dict(sealing_keys), admission

    @property
    def _num_closed(self) -> int:
        """Number of epochs that have been closed."""
        return int(self._store.fact("epochs_closed") or 0)

    def _refusal(self, report: Report, now: float) -> Answer | None:
        """Return the reason to refuse a report, None if there is none; reads no store."""
        if report.epoch >= self.task.num_epochs or now < self._begin(report.epoch):
            return Answer.EARLY
        if now >= self.end_of(report.epoch) or report.epoch < self._known_closed:
            return Answer.LATE
        if report.epoch not in self._sealing_keys or report.key != report.epoch % NUM_KEYS:
            return Answer.UNKNOWN_KEY
        if self._admission is None:
            return None
        admits = self._admission.admits(report.epoch, report.report_id)
        return {None: Answer.EARLY, False: Answer.NOT_ADMITTED, True: None}[admits]

    def _stored(self, epoch: int, reports: Sequence[Report]) -> list[Answer]:
        """Store an epoch's reports with new ids, and count all; return the answer to each."""
        if epoch < self._known_closed:  # its members are fixed, whatever the clock says now
            self._count({(epoch, "late"): len(reports)})
            return [Answer.LATE] * len(reports)
        table = f"reports_{epoch:d}"
        if epoch not in self._epochs and epoch not in self.unreleased():
            self._store.change(_REPORTS.format(table=table))
            self._store.change("INSERT INTO epochs VALUES (?)", (epoch,))
        kept = {report.report_id: report.sealed for report in reversed(reports)}
        num_new = self._store.insert_new(table, "id, sealed", list(kept.items()))
        self._num_in[epoch] += num_new
        if num_new < len(kept):
            query = f"SELECT id, sealed FROM {table} WHERE id"  # noqa: S608  # a name of ours
            kept = dict(batching.rows_among(self._store, query, list(kept)))
        answers = [
            Answer.ACCEPTED if kept[report.report_id] == report.sealed else Answer.REPLAYED
            for report in reports
        ]
        num_accepted = answers.count(Answer.ACCEPTED)
        counts = {
            "accepted": num_new,
            "repeated": num_accepted - num_new,  # sent again: accepted again, and counted once
            "replayed": len(answers) - num_accepted,
        }
        self._count({(epoch, name): number for name, number in counts.items()})
        return answers

    def _begin(self, epoch: int) -> float:
        """Return the start of an epoch, in seconds since 1970."""
        return self.task.start + epoch * self.task.epoch_seconds

    def end_of(self, epoch: int) -> float:
        """Return the time until which an epoch's reports are taken in, in seconds since 1970."""
        return self._begin(epoch + 1) + self._grace

    def _count(self, numbers: Mapping[tuple[int, str], int]) -> None:
        """Add to the counts of reports by epoch and answer."""
        part = os.getpid() % _NUM_PARTS
        for (epoch, name), number in sorted(each for each in numbers.items() if each[1]):
            self._store.change(
                "INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT (epoch, name, part) "
                "DO UPDATE SET number = counts.number + excluded.number",
                (epoch, name, part, number),
            )

    # ------------------------------------------------------------ for operators
    @property
    def epochs_with_keys(self) -> list[int]:
        """Epochs whose reports can be opened, in order."""
        return sorted(self._sealing_keys)

    def finished(self) -> list[int]:
        """Return the epochs with a key, closed, and without unreleased reports."""
        # In this order: an epoch that is closed gets no more reports.
        closed, unreleased = self._num_closed, self.unreleased()
        return [each for each in self.epochs_with_keys if each < closed and each not in unreleased]

    def unreleased(self) -> list[int]:
        """Return the epochs with stored reports that are not opened."""
        return self._store.column("SELECT epoch FROM epochs ORDER BY epoch")

    def num_unreleased(self) -> int:
        """Return the number of stored reports; reads them all."""
        self._num_in = Counter({epoch: self._num_stored(epoch) for epoch in self.unreleased()})
        return self._num_in.total() + int(self._store.value("SELECT count(*) FROM held"))

    def _num_stored(self, epoch: int) -> int:
        """Return the number of stored reports of an epoch."""
        return int(self._store.value(f"SELECT count(*) FROM reports_{epoch:d}"))  # noqa: S608

    def forget_key(self, epoch: int) -> None:
        """Forget the key of an epoch; the caller destroys its file."""
        self._sealing_keys.pop(epoch, None)

    def try_store(self) -> None:
        """Write something of no meaning; raise `OutputError` if that fails."""
        with self._store.transaction():
            self._store.set_fact("tried", 1)

    def leads(self) -> bool:
        """Return True if this process, of all that share the store, closes epochs."""
        return self._store.leads()

    def states(self) -> dict[str, int]:
        """Return the number of batches in each state."""
        return dict(self._store.rows("SELECT state, count(*) FROM batches GROUP BY state"))

    def oldest_sealed(self) -> int | None:
        """Return the last epoch of the oldest batch that can be fetched."""
        query = "SELECT min(last_epoch) FROM batches WHERE state = 'sealed'"
        found: int | None = self._store.value(query)
        return found

    def num_short_epochs(self) -> int:
        """Return the number of closed epochs since the first with reports that wait for more."""
        closed = self._num_closed
        return max(0, closed - self._waiting_since(closed))

    def _waiting_since(self, default: int) -> int:
        """Return the first epoch with stored or held reports; the default if there is none."""
        held = self._store.value("SELECT min(epoch) FROM held")
        return min([*self.unreleased(), default if held is None else held], default=default)

    # ------------------------------------------------------------ batches
    def closed(self, now: float) -> list[BatchState]:
        """Close epochs that are over; return the batches that this process must release now."""
        # This process may lead after a restore.
        self._handed_out.learn(self._store)
        if not self._store.leads():
            return []
        self.note_time(now)
        self._drop_handed_out()
        self._store.wipe_late()
        # One batch at a time, so that all stored reports of its epochs are its members.
        if not self._batches_in("closed"):
            num_over = self.task.nth_epoch(now - self._grace)
            self._close(min(self.task.num_epochs, num_over))
        return [self.batch(number) for number in self._batches_in("closed")]

    def _batches_in(self, state: str, after: int = 0) -> list[int]:
        """Return the numbers of batches in a state, beyond a number."""
        query = "SELECT number FROM batches WHERE state = ? AND number > ? ORDER BY number"
        return self._store.column(query, (state, after))

    def _close(self, num_over: int) -> None:
        """Fix the members of the next batch: all reports up to an epoch, with those that wait."""
        if num_over <= self._num_closed:
            return
        with self._store.transaction():
            first, waiting = self._num_closed, self._waiting_since(num_over)
            self._store.set_fact("epochs_closed", num_over)
            if waiting < num_over:
                # Numbered by time, so that a store restored from a backup uses no number twice.
                self._store.change(
                    "INSERT INTO batches VALUES (?, 'closed', ?, ?, NULL, NULL)",
                    (num_over, min(first, waiting), num_over - 1),
                )

    def lost_batch(self) -> int | None:
        """Return the number of the newest batch that was handed out, if the store lacks it.

        Then the store is older than the batch: its reports of the batch's epochs and earlier ones,
        and all that wait, may have been handed out already, with other dummies or other reports.
        """
        return self._handed_out.lost(self._store)

    def _drop_handed_out(self) -> None:
        """Drop reports of batches already handed out that a store restored from a backup has."""
        if (number := self.lost_batch()) is None:
            return
        with self._store.transaction():
            epochs = [epoch for epoch in self.unreleased() if epoch < number]
            lost = sum(map(self._num_stored, epochs))
            lost += self._store.value("SELECT count(*) FROM held")
            self._count({(number - 1, "dropped"): lost})
            self._drop_reports(epochs)
            self._hold(Held(), number - 1)
            self._store.set_fact("epochs_closed", max(number, self._num_closed))
            batching.forget_dummies(self._store)
            change = "UPDATE batches SET state = 'dropped' WHERE state = 'closed' AND number < ?"
            self._store.change(change, (number,))
            self._store.change(
                "INSERT INTO batches VALUES (?, 'dropped', ?, ?, NULL, NULL) "
                "ON CONFLICT (number) DO UPDATE SET state = 'dropped'",
                (number, min(epochs, default=number - 1), number - 1),
            )
        self._store.wipe_soon()

    def _drop_reports(self, epochs: Iterable[int]) -> None:
        """Delete the reports of epochs, with their ids."""
        for epoch in epochs:
            self._store.change(f"DROP TABLE reports_{epoch:d}")
            self._store.change("DELETE FROM epochs WHERE epoch = ?", (epoch,))
            self._epochs.discard(epoch)

    def _epochs_of(self, state: BatchState) -> list[int]:
        """Return the epochs of a batch that have a table of reports."""
        first, last = state.first_epoch, state.last_epoch
        return [epoch for epoch in self.unreleased() if first <= epoch <= last]

    def to_open(self, state: BatchState) -> tuple[Held, int, Iterator[Page]]:
        """Return the records held for a closed batch, the number of reports to open, and pages."""
        with self._store.transaction():
            if self.batch(state.number).state != "closed":  # another process was faster
                return Held(), 0, iter(())
            epochs = self._epochs_of(state)
            records = frozenset(self._store.column("SELECT record FROM held"))
            held = Held(records, int(self._store.fact("held_dishonest") or 0))
            number = sum(self._num_stored(epoch) for epoch in epochs)
        return held, number, (page for epoch in epochs for page in self._pages(epoch))

    def _pages(self, epoch: int) -> Iterator[Page]:
        """Yield the reports of an epoch, some at a time."""
        found = self._sealing_keys.get(epoch)
        key = None if found is None else found.private_bytes_raw()
        query = f"SELECT id, sealed FROM reports_{epoch:d} WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
        last = b""
        while rows := self._store.rows(query, (last, batching.PAGE)):
            texts = [
                (messages.outer_info(self.task.task_id, epoch, each), text) for each, text in rows
            ]
            yield self.task.seal, key, texts
            last = rows[-1][0]

    def seal_dummies(
        self, held: Held, opened: Iterable[Sequence[bytes | None]]
    ) -> Collection[bytes]:
        """Return new dummies for each class of records, none without a law; uses no database."""
        if not self.task.adds_dummies:
            return ()
        found = chain.from_iterable(map(self._shares_in, opened))
        numbers = {record[0] for record in chain(held.records, found)} & self.inner_keys.keys()
        return batching.sealed_dummies(self.task, numbers, self.inner_keys)

    def keep_dummies(self, state: BatchState, sealed: Collection[bytes]) -> Collection[bytes]:
        """Return the dummies of a closed batch: those kept for a class before, otherwise these.

        They are on disk before they are used: however often a batch is made, it is the same.
        """
        if not self.task.adds_dummies:
            return ()
        with self._store.transaction():
            if self.batch(state.number).state != "closed":  # another process was faster
                return ()
            return batching.kept_dummies(self._store, state.number, sealed)

    def write(
        self,
        state: BatchState,
        held: Held,
        opened: Iterable[Sequence[bytes | None]],
        dummies: Collection[bytes] = (),
    ) -> Written:
        """Sort the released records, and write the batch; uses no database.

        A class of records, under one key of the analyzer, is released if it has at least the least
        batch and, with all possible dishonest ones in it, the honest reports of the least batch.
        With the shuffler's dummies, which hide a report, it needs the least batch only. With
        devices' dummies only the largest such class is released.
        """
        adds_dummies, has_shares = self.task.adds_dummies, self.task.num_slots > 1
        size = self.task.record_bytes
        new: set[bytes] = set()
        num_reports = num_opened = 0
        for page in opened:
            found = self._shares_in(page)
            new.update(found)
            num_opened, num_reports = num_opened + len(found), num_reports + len(page)
        records = messages.apart(held.records, new, size)
        num_new = len(records) - len(held.records)
        counted = {"unopened": num_reports - num_opened, "duplicate": num_opened - num_new}
        # All dishonest reports opened for earlier batches may be among the held ones.
        num_dishonest = held.num_dishonest + self.task.most_dishonest(num_new)
        sizes = Counter(record[0] for record in records)
        hiding = 0 if adds_dummies else self.task.num_honest + num_dishonest
        least = max(self.task.min_batch, hiding)
        keys = messages.classes(sizes, least, is_one=has_shares)
        if adds_dummies:  # a class without its dummies is never released
            keys &= {record[0] for record in dummies if len(record) == 1}
        nothing = Written(0, None, Held(records, num_dishonest), counted)
        if not keys:
            return nothing
        released = {record for record in records if record[0] in keys}
        added = (each for each in dummies if each[0] in keys and len(each) == size)
        batch = Batch(
            self.task,
            number=state.number,
            first_epoch=state.first_epoch,
            last_epoch=state.last_epoch,
            num_opened=len(records),
            num_dishonest=num_dishonest,
            records=(*split(b"".join(released), size), *added),
            num_true=len(released) if adds_dummies or has_shares else None,
        ).signed(self._signing_key)
        if self._ledger is not None:
            num_honest = min(sizes[key] for key in keys) - num_dishonest
            try:
                batching.spend_for_batch(self._ledger, self.task, batch, num_honest=num_honest)
            except BudgetError as error:
                return nothing._replace(refusal=str(error))
        self._batches.write(state.number, b"".join(batch.encode()))
        left = records - released
        waiting = Held(left, min(len(left), num_dishonest))
        return Written(len(batch.records), batch.root, waiting, counted)

    def _shares_in(self, page: Iterable[bytes | None]) -> list[bytes]:
        """Return the sound shares of a page of devices."""
        return messages.shares_in(page, self.inner_keys, self.task)

    def settle(self, state: BatchState, written: Written) -> BatchState:
        """Store the outcome of a batch, and forget its reports except those that wait for more.

        Too few records wait for the next epoch's reports, or are dropped, as the task states;
        records that the budget does not cover wait in either case, while there is a next epoch.
        """
        is_last = state.last_epoch == self.task.num_epochs - 1
        holds = bool(written.refusal or self.task.short_batch == "hold") and not is_last
        short = "short" if holds else "dropped"
        found, size = ("sealed", written.size) if written.root else (short, None)
        held = written.held if holds else Held()
        counted = {**written.counted, "dropped": len(written.held.records) - len(held.records)}
        with self._store.transaction():
            is_first = self._store.change(
                "UPDATE batches SET state = ?, size = ?, root = ? "
                "WHERE number = ? AND state = 'closed'",
                (found, size, written.root, state.number),
            )
            if is_first:
                self._hold(held, state.last_epoch)
                if self.task.adds_dummies:
                    batching.forget_dummies(self._store)
                epochs = self._epochs_of(state)  # a missing key of an epoch may be put back
                gone = (each for each in epochs if found != "short" or each in self._sealing_keys)
                self._drop_reports(gone)
                self._count({(state.last_epoch, name): each for name, each in counted.items()})
            elif written.root:  # another process was faster: perhaps the batch is forgotten
                change = "UPDATE batches SET root = ? WHERE number = ? AND state = 'fetched'"
                self._store.change(change, (written.root, state.number))
        self._store.wipe_soon()
        return self.batch(state.number)

    def _hold(self, held: Held, epoch: int) -> None:
        """Keep these records, and no others, for the next batch."""
        known = dict(self._store.rows("SELECT record, epoch FROM held"))
        self._store.change("DROP TABLE held")
        self._store.change(_HELD)
        rows = [(record, known.get(record, epoch)) for record in sorted(held.records)]
        self._store.insert_new("held", "record, epoch", rows)
        self._store.set_fact("held_dishonest", held.num_dishonest)

    def batch(self, number: int) -> BatchState:
        """Return the state of a batch; raise if there is none of that number."""
        columns = ", ".join(BatchState._fields)
        query = f"SELECT {columns} FROM batches WHERE number = ?"  # noqa: S608  # names of ours
        if not (rows := self._store.rows(query, (number,))):
            raise Fault.ANALYZER.error(f"there is no batch {number}: see /batches", Reason.UNKNOWN)
        return BatchState(*rows[0])

    def sealed_after(self, number: int) -> list[int]:
        """Return the numbers of batches that can be fetched, beyond a number."""
        return self._batches_in("sealed", number)

    def fetch(self, number: int) -> bytes:
        """Return a sealed batch; it can be repeated until the batch is forgotten."""
        return self.read(self.require_sealed(number))

    def require_sealed(self, number: int) -> BatchState:
        """Return the state of a batch that is about to be handed out; raise if it cannot be."""
        found = self.batch(number)
        if found.state != "sealed":
            reason = Reason.EARLY if found.state == "closed" else Reason.LATE
            what = f"batch {number} is {found.state}: only a sealed batch can be fetched"
            raise Fault.ANALYZER.error(what, reason)
        self._handed_out.tell(self._store, number)
        return found

    def read(self, state: BatchState) -> bytes:
        """Return the stored bytes of a sealed batch, which are always the same. No database."""
        data = self._batches.read(state.number)
        size = self.task.record_bytes * (state.size or 0)
        if len(data) <= size or hashlib.sha256(data[len(data) - size :]).digest() != state.root:
            what = f"batch {state.number}: its file has other records than the store says, and is "
            raise Fault.SHUFFLER.error(f"{what}not handed out: put both back from one backup")
        return data

    def forget(self, number: int) -> None:
        """Note that the analyzer has a batch, whose file is then `to_delete`; repeatable."""
        if self.batch(number).state not in ("sealed", "fetched"):
            self.require_sealed(number)  # raises
        with self._store.transaction():
            self._store.change("UPDATE batches SET state = 'fetched' WHERE number = ?", (number,))

    def to_delete(self) -> list[int]:
        """Return the fetched batches that have a file: they keep their root as long."""
        query = "SELECT number FROM batches WHERE state = 'fetched' AND root IS NOT NULL"
        return self._store.column(query)

    def delete(self, number: int) -> None:
        """Delete the file of a batch, if any; uses no database."""
        self._batches.delete(number)

    def deleted(self, number: int) -> None:
        """Note that the file of a fetched batch is gone."""
        with self._store.transaction():
            self._store.change("UPDATE batches SET root = NULL WHERE number = ?", (number,))

    def counts(self) -> dict[str, int]:
        """Return the number of reports by answer (accepted, late, replayed, ...) in all epochs."""
        if self._refused:
            with self._store.transaction(is_shared=True):
                self._count(self._refused)
            self._refused.clear()
        query = "SELECT name, CAST(sum(number) AS INTEGER) FROM counts GROUP BY name"
        return dict(self._store.rows(query))
