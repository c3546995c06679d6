"""The shuffler: takes in sealed reports, batches them by time, strips, sorts, releases, forgets.

Time is handed in, so that a test can have its own. What it keeps is in one SQLite file and one file
a batch; keys that open reports are files of their own, one an epoch, which are deleted when the
epoch is over and its batch sealed: from then on nobody opens what was copied from here.

A batch is *closed* when its members are fixed, *sealed* when its file is on disk, *fetched* when
the analyzer says that it has it, and then only its counts are left. Whatever happens in between,
`advance` does the step again.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.core.durable_files import sync_folder
from shuffledp.deploy.admission import Admission, Anybody
from shuffledp.deploy.database import Database, Layout, write_new
from shuffledp.deploy.messages import Answer, Batch, Report, decode_upload, sealed_size
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

#: Seconds after the end of an epoch in which its reports are still taken in.
GRACE_SECONDS: Final = 3600

_STORE = Layout(
    kind="shuffler store",
    application_id=0x73647073,  # "sdps"
    version=1,
    tables=(
        # In the order of ids, which are random: the order of arrival is nowhere on disk.
        "CREATE TABLE reports (epoch INTEGER, id BLOB, key INTEGER NOT NULL, sealed BLOB NOT NULL, "
        "batch INTEGER, PRIMARY KEY (epoch, id)) WITHOUT ROWID",
        # Outlives the report, so that nobody is counted again; goes with the epoch's key.
        "CREATE TABLE seen (epoch INTEGER, id BLOB, digest BLOB NOT NULL, PRIMARY KEY (epoch, id)) "
        "WITHOUT ROWID",
        "CREATE TABLE batches (number INTEGER PRIMARY KEY, state TEXT NOT NULL, "
        "first_epoch INTEGER NOT NULL, last_epoch INTEGER NOT NULL, size INTEGER, root BLOB)",
        "CREATE TABLE counts (epoch INTEGER, name TEXT, number INTEGER NOT NULL, "
        "PRIMARY KEY (epoch, name)) WITHOUT ROWID",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """What is known of a batch: reports released are ``size``, once it is sealed."""

    number: int
    state: str  # closed, short, sealed, fetched or dropped
    first_epoch: int
    last_epoch: int
    size: int | None
    root: bytes | None


class Shuffler:
    """One task's shuffler; a context manager that holds its store."""

    def __init__(
        self,
        task: Task,
        folder: Path,
        *,
        signing_key: Ed25519PrivateKey,
        sealing_keys: Mapping[int, X25519PrivateKey],
        grace_seconds: float = GRACE_SECONDS,
        admission: Admission | None = None,
    ) -> None:
        """``sealing_keys`` are those of epochs that are not over, by the number of the key."""
        task.check()
        self._admission = admission or Anybody()
        self.task, self._folder, self._grace = task, folder, grace_seconds
        self._signing_key, self._sealing_keys = signing_key, dict(sealing_keys)
        self._store = Database(folder / "shuffler.db", _STORE, collection=task.task_id)
        self._task_id = task.task_id
        self._report_bytes = task.asked.codec.num_report_bytes

    def __enter__(self) -> "Shuffler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store; all is on disk already."""
        self._store.close()

    # ------------------------------------------------------------ taking in
    def take(self, body: bytes, now: float) -> list[Answer]:
        """Take in an upload, and say what became of each report; on disk when this returns.

        Raises
        ------
        ProtocolError
            The client's fault, for a body that is no upload of this task.
        """
        return self.take_reports(self.reports_in(body), now)

    def reports_in(self, body: bytes) -> list[Report]:
        """Return the reports of an upload."""
        return decode_upload(body, self._report_bytes)

    def take_reports(self, reports: Sequence[Report], now: float) -> list[Answer]:
        """Take in reports of any number of uploads, in one transaction."""
        with self._store.transaction():
            answers = [self._take_one(report, now) for report in reports]
            self._count(
                # Whatever epochs a stranger makes up, there is one count of those beyond the last.
                (min(report.epoch, self.task.num_epochs), answer.name.lower())
                for report, answer in zip(reports, answers, strict=True)
            )
        return answers

    def _take_one(self, report: Report, now: float) -> Answer:
        """Store a report if it is new, of an epoch that is open, and sealed to a key of ours."""
        digest = hashlib.sha256(report.sealed).digest()[:16]
        found = self._store.value(
            "SELECT digest FROM seen WHERE epoch = ? AND id = ?", (report.epoch, report.report_id)
        )
        if found is not None:
            return Answer.ACCEPTED if found == digest else Answer.REPLAYED
        if report.epoch >= self.task.num_epochs or now < self._begin(report.epoch):
            return Answer.EARLY
        if now >= self._end(report.epoch) or self._is_closed(report.epoch):
            return Answer.LATE
        if report.key not in self._sealing_keys:
            return Answer.UNKNOWN_KEY
        if not self._admission.admits(report.epoch, report.report_id):
            return Answer.NOT_ADMITTED
        self._store.change(
            "INSERT INTO seen VALUES (?, ?, ?)", (report.epoch, report.report_id, digest)
        )
        self._store.change(
            "INSERT INTO reports VALUES (?, ?, ?, ?, NULL)",
            (report.epoch, report.report_id, report.key, report.sealed),
        )
        return Answer.ACCEPTED

    def _begin(self, epoch: int) -> float:
        """Return when an epoch begins, in seconds since 1970."""
        return self.task.start + epoch * self.task.epoch_seconds

    def _end(self, epoch: int) -> float:
        """Return until when reports of an epoch are taken in."""
        return self._begin(epoch + 1) + self._grace

    def _is_closed(self, epoch: int) -> bool:
        """Return whether an epoch's members are fixed, whatever a clock says now."""
        return epoch < (self._store.fact("epochs_closed") or 0)

    def _count(self, names: Iterable[tuple[int, str]]) -> None:
        """Add to the counts."""
        for (epoch, name), number in Counter(names).items():
            self._store.change(
                "INSERT INTO counts VALUES (?, ?, ?) "
                "ON CONFLICT (epoch, name) DO UPDATE SET number = number + excluded.number",
                (epoch, name, number),
            )

    # ------------------------------------------------------------ batches
    def advance(self, now: float) -> list[BatchState]:
        """Do what is due: close epochs that are over, seal what is closed; return what changed.

        Never released below the task's least batch, counting distinct reports that open. A batch
        that is too small waits for the next epoch's reports, or is dropped, as the task says.
        """
        return [
            self.release(number, self.open_members(self.members(number)))
            for number in self.closed(now)
        ]

    def closed(self, now: float) -> list[int]:
        """Close epochs that are over; return the batches that are to be released."""
        over = min(self.task.num_epochs, self._num_over(now))
        first = self._store.fact("epochs_closed") or 0
        if over > first:
            self._close(first, over - 1)
        rows = self._store.rows("SELECT number FROM batches WHERE state = 'closed'")
        return [number for (number,) in rows]

    def _num_over(self, now: float) -> int:
        """Return how many epochs take nothing more in."""
        return max(0, int((now - self._grace - self.task.start) // self.task.epoch_seconds))

    def _close(self, first: int, last: int) -> None:
        """Fix the members of the next batch: all reports up to an epoch, with those that wait."""
        with self._store.transaction():
            self._store.set_fact("epochs_closed", last + 1)
            waiting = self._store.value(
                "SELECT min(epoch) FROM reports WHERE batch IS NULL AND epoch <= ?", (last,)
            )
            if waiting is None:
                return
            number = (self._store.value("SELECT max(number) FROM batches") or 0) + 1
            begin = min(first, waiting)
            self._store.change(
                "INSERT INTO batches VALUES (?, 'closed', ?, ?, NULL, NULL)", (number, begin, last)
            )
            self._store.change(
                "UPDATE reports SET batch = ? WHERE batch IS NULL AND epoch <= ?", (number, last)
            )

    def members(self, number: int) -> list[Any]:
        """Return the reports of a closed batch, for `open_members`."""
        return self._store.rows(
            "SELECT epoch, id, key, sealed FROM reports WHERE batch = ?", (number,)
        )

    def open_members(self, members: Iterable[Any]) -> list[bytes | None]:
        """Return what is for the analyzer; takes nearly all of the time, and no store."""
        return [self._opened(*row) for row in members]

    def release(self, number: int, opened: Sequence[bytes | None]) -> BatchState:
        """Sort what was opened, write the batch, then forget the reports; repeatable."""
        state = self.batch(number)
        records = {record for record in opened if record is not None}
        counted = {
            "unopened": opened.count(None),
            "duplicate": len(opened) - opened.count(None) - len(records),
        }
        if len(records) < self.task.min_batch:
            self._set_aside(number, state.last_epoch)
            return self.batch(number)
        batch = Batch.signed(
            self._signing_key,
            self._task_id,
            records,
            number=number,
            epochs=(state.first_epoch, state.last_epoch),
            record_size=sealed_size(self._report_bytes),
        )
        self._write(number, batch)
        with self._store.transaction():
            self._store.change(
                "UPDATE batches SET state = 'sealed', size = ?, root = ? WHERE number = ?",
                (len(records), batch.root, number),
            )
            self._store.change("DELETE FROM reports WHERE batch = ?", (number,))
            self._count((state.last_epoch, name) for name in Counter(counted).elements())
        self._store.wipe_log()
        return self.batch(number)

    def _opened(self, epoch: int, report_id: bytes, key: int, sealed: bytes) -> bytes | None:
        """Return what is for the analyzer; None if it does not open, or has another size."""
        private_key = self._sealing_keys.get(key)
        if private_key is None:
            return None
        report = Report(report_id=report_id, epoch=epoch, key=key, sealed=sealed)
        return report.open_outer(self._task_id, private_key)

    def _set_aside(self, number: int, last_epoch: int) -> None:
        """Let the reports of a batch that is too small wait, or delete them."""
        is_last = last_epoch == self.task.num_epochs - 1
        with self._store.transaction():
            if self.task.short_batch == "hold" and not is_last:
                self._store.change("UPDATE reports SET batch = NULL WHERE batch = ?", (number,))
                state = "short"
            else:
                self._store.change("DELETE FROM reports WHERE batch = ?", (number,))
                state = "dropped"
            self._store.change("UPDATE batches SET state = ? WHERE number = ?", (state, number))
        self._store.wipe_log()

    def _write(self, number: int, batch: Batch) -> None:
        """Write a batch's file: complete, or not at all; the same bytes if it is done again."""
        target = self._path(number)
        partial = target.with_suffix(".part")
        with suppress(FileNotFoundError):
            partial.unlink()
        write_new(partial, b"".join(batch.encode()), mode=0o600)
        os.replace(partial, target)  # noqa: PTH105  # beside the other calls of the system
        sync_folder(target.parent)

    def _path(self, number: int) -> Path:
        """Return where a batch lies."""
        return self._folder / f"batch-{number:06d}.sdp"

    def batch(self, number: int) -> BatchState:
        """Return what is known of a batch; raise if there is none of that number."""
        rows = self._store.rows(
            "SELECT number, state, first_epoch, last_epoch, size, root FROM batches "
            "WHERE number = ?",
            (number,),
        )
        if not rows:
            raise ProtocolError(
                f"there is no batch {number}: ask which there are",
                fault=Fault.ANALYZER,
                reason=Reason.UNKNOWN,
            )
        names = ("number", "state", "first_epoch", "last_epoch", "size", "root")
        return BatchState(**dict(zip(names, rows[0], strict=True)))

    def sealed_after(self, number: int) -> list[int]:
        """Return the numbers of batches that can be fetched, beyond a number."""
        rows = self._store.rows(
            "SELECT number FROM batches WHERE state = 'sealed' AND number > ? ORDER BY number",
            (number,),
        )
        return [each for (each,) in rows]

    def fetch(self, number: int) -> bytes:
        """Return a sealed batch, as often as it is asked for until it is forgotten."""
        state = self.batch(number).state
        if state != "sealed":
            raise ProtocolError(
                f"batch {number} is {state}: only a sealed batch can be fetched",
                fault=Fault.ANALYZER,
                reason=Reason.EARLY if state == "closed" else Reason.LATE,
            )
        return self._path(number).read_bytes()

    def forget(self, number: int) -> None:
        """Delete a batch that the analyzer has; nothing happens where that is done already."""
        if self.batch(number).state not in ("sealed", "fetched"):
            self.fetch(number)  # says what is wrong
        with self._store.transaction():
            self._store.change("UPDATE batches SET state = 'fetched' WHERE number = ?", (number,))
        self._path(number).unlink(missing_ok=True)
        sync_folder(self._folder)

    def counts(self) -> dict[str, int]:
        """Return how many reports were accepted, late, replayed and so on, over all epochs."""
        return dict(self._store.rows("SELECT name, sum(number) FROM counts GROUP BY name"))
