"""Batches at the servers: where they are stored, opened in processes, spent; and their dummies.

Tables are a SQLite file, or PostgreSQL with the same statements; batches, until the analyzer has
them, are files of a folder, or objects in S3. Opening the seals of a batch is nearly all of a
server's work, and is done in processes of their own if there are many.

A batch that is handed out twice, with different dummies, would reveal which records are dummies;
reports that are in two batches are hidden by those in both alone. So a shuffler draws dummies once
and keeps them until the batch is on disk; and a file that lies beside the keys, hence in no backup
of the store, has the numbers of the batches that were handed out, so that a store restored from a
backup does not release them again.
"""

import asyncio
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import spend
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, needing, telling
from shuffledp.core.files import replace_file, sync_folder
from shuffledp.deploy.database import Database, Layout, bytes_of
from shuffledp.deploy.messages import Batch, inner_info
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Seal, mail_key, open_seal, seal, uint
from shuffledp.engines.processes import start_processes, usable_cores

if TYPE_CHECKING:
    from shuffledp.deploy.servers.postgres import PostgresDatabase

#: Both have the same methods.
Store: TypeAlias = "Database | PostgresDatabase"

#: Largest number of keys in one query.
MOST_KEYS: Final = 1000


def open_store(folder: Path, url: str | None, layout: Layout, *, collection: bytes) -> Store:
    """Open the store in a folder, or in the PostgreSQL database of a URL.

    The folder is one task's in either case: its batches and results have numbers for names.
    """
    own = folder / f"{collection.hex()}.task"
    if any(each != own for each in folder.glob("*.task")):
        raise DataError(f"{folder} is the store of another task: name another folder")
    with telling(f"write {own}"):
        own.touch(mode=0o600)
    if url is None:
        return Database(folder / f"{layout.kind.split()[0]}.db", layout, collection=collection)
    with needing("psycopg", "a PostgreSQL database", "shuffledp[postgresql]"):
        from shuffledp.deploy.servers.postgres import PostgresDatabase
    return PostgresDatabase(url, layout, collection=collection)


def rows_among(store: Store, query: str, keys: Sequence[Any]) -> list[Any]:
    """Return the rows of a query that ends in a column's name, for values of it in ``keys``."""
    found = []
    for at in range(0, len(keys), MOST_KEYS):
        some = keys[at : at + MOST_KEYS]
        found += store.rows(f"{query} IN ({', '.join('?' * len(some))})", some)
    return found


def open_batches(folder: Path, url: str | None, *, task_id: bytes) -> "BatchFolder | BatchObjects":
    """Return the folder's files, or a task's objects below a URL such as s3://bucket/prefix.

    Both keep batches under their numbers, complete or not at all.
    """
    if url is None:
        return BatchFolder(folder)
    return BatchObjects(f"{url.rstrip('/')}/{task_id.hex()}")


# --------------------------------------------------------------------- files
def _name(number: int) -> str:
    """Return the name of a batch."""
    return f"batch-{number:06d}.sdp"


class BatchFolder:
    """A file a batch, readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, number: int, data: bytes) -> None:
        """Store a batch: its file gets its name once all of it is on disk."""
        target = self._folder / _name(number)
        with telling(f"write {target}"):
            replace_file(target, data, mode=0o600)

    def read(self, number: int) -> bytes:
        """Return a batch."""
        path = self._folder / _name(number)
        with telling(f"read {path}"):
            return path.read_bytes()

    def delete(self, number: int) -> None:
        """Delete a batch; do nothing if there is none."""
        path = self._folder / _name(number)
        with telling(f"delete {path}"):
            path.unlink(missing_ok=True)
            sync_folder(self._folder)


class BatchObjects:
    """An object a batch; credentials come from the environment, as for S3's own tools."""

    def __init__(self, url: str) -> None:
        with needing("obstore", "storing batches as objects", "shuffledp[s3]"):
            import obstore
        self._api = obstore
        # It raises both its own errors and Python's.
        self._errors = (obstore.exceptions.BaseError, OSError, ValueError)
        with telling("open a batch", self._errors):
            self._store = obstore.store.from_url(url)

    def write(self, number: int, data: bytes) -> None:
        """Store a batch; two processes that write it write the same bytes."""
        with telling("write a batch", self._errors):
            self._api.put(self._store, _name(number), data)

    def read(self, number: int) -> bytes:
        """Return a batch."""
        with telling("read a batch", self._errors):
            return bytes(self._api.get(self._store, _name(number)).bytes())

    def delete(self, number: int) -> None:
        """Delete a batch; do nothing if there is none."""
        with telling("delete a batch", self._errors), suppress(FileNotFoundError):
            self._api.delete(self._store, _name(number))


# --------------------------------------------------------------------- opening and spending
#: Number of sealed texts that are read, and opened, at once.
PAGE: Final = 5_000

# Below this number a process would take longer to start than to open the texts.
_FEW: Final = 20_000

# Pages under way for each process: one that is being opened, and one that waits.
_PAGES_EACH: Final = 2


class BatchState(NamedTuple):
    """State of a batch; ``size`` is the number of released records, once it is sealed."""

    number: int
    state: str  # closed, short, sealed, fetched or dropped
    first_epoch: int
    last_epoch: int
    size: int | None
    root: bytes | None


class Held(NamedTuple):
    """Records opened before that wait, and upper bound on the number of dishonest ones."""

    records: frozenset[bytes] = frozenset()
    num_dishonest: int = 0


class Written(NamedTuple):
    """Outcome of a batch's opened records: released or held, and counts of those left out.

    No root if nothing is released, and then the reason, if the budget refuses it.
    """

    size: int
    root: bytes | None
    held: Held
    counted: Mapping[str, int]
    refusal: str = ""


#: Texts sealed to one key, with the associated data of each: plain bytes, since it goes to other
#: processes. The key is None if it is gone: then nothing opens.
Page: TypeAlias = tuple[Seal, bytes | None, Sequence[tuple[bytes, bytes]]]


def open_texts(
    kind: Seal, private: bytes | None, sealed: Sequence[tuple[bytes, bytes]]
) -> list[bytes | None]:
    """Return the texts of a `Page`, None for each that does not open."""
    if private is None:
        return [None] * len(sealed)
    key = mail_key(kind, private)
    return [open_seal(text, key, info) for info, text in sealed]


def workers(number: int) -> Executor:
    """Return an executor for opening texts: a process for each core, or a thread for few texts."""
    if number < _FEW:
        return ThreadPoolExecutor(1)
    return start_processes(usable_cores())


async def opened_in(executor: Executor, pages: Iterable[Page]) -> list[list[bytes | None]]:
    """Return the content of each page, with few pages in flight at a time."""
    loop = asyncio.get_running_loop()
    found = []
    under_way: deque[asyncio.Future[list[bytes | None]]] = deque()
    most = _PAGES_EACH * getattr(executor, "_max_workers", 1)
    for page in pages:
        under_way.append(loop.run_in_executor(executor, open_texts, *page))
        if len(under_way) > most:
            found.append(await under_way.popleft())
    return found + [await each for each in under_way]


def note_of(task: Task, number: int) -> str:
    """Return the ledger's note of a batch."""
    return f"task {task.task_id.hex()[:16]}, batch {number}"


def spend_for_batch(ledger: Path, task: Task, batch: Batch, num_honest: int) -> Ledger:
    """Spend a batch from the budget of the users who answer; return the ledger.

    Once: under the hash of its records. ``num_honest`` are the honest reports of its smallest part,
    which do not matter with dummies.

    Raises
    ------
    BudgetError
        If the budget does not cover it; nothing is spent.
    """
    return spend(
        ledger, task.release(num_honest), note_of(task, batch.number), key=batch.root.hex()
    )


# --------------------------------------------------------------------- dummies, and what went out
# Name of the fact in a store with the number of the newest batch that was handed out.
_HANDED_OUT: Final = "handed_out"

#: Dummies of batches not yet on disk; recreated with each batch, so that no trace of them is left.
DUMMIES: Final = (
    "CREATE TABLE dummies (record BLOB PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID"
)


def sealed_dummies(task: Task, numbers: Iterable[int], keys: Mapping[int, bytes]) -> list[bytes]:
    """Return new dummies for each class of records, sealed as reports are, to one of these keys.

    The dummies of a class follow its number alone, which marks a class that has none. Their number
    by answer is kept nowhere. Costs 0.1 ms a dummy.
    """
    if task.dummies is None or not task.adds_dummies:
        return []
    info, entropy, found = inner_info(task.task_id), Entropy.from_operating_system(), []
    for number in sorted(numbers):
        found.append(uint(number, 1))
        drawn = task.asked.dummies(task.dummies, entropy)
        found += (uint(number, 1) + seal(text, keys[number], info) for text in drawn)
    return found


def kept_dummies(store: Store, number: int, sealed: Iterable[bytes]) -> list[bytes]:
    """Return the dummies that a store keeps for a batch: for each class, the ones stored first."""
    first: list[bytes] = store.column("SELECT record FROM dummies WHERE batch = ?", (number,))
    known = {record[0] for record in first}
    new = sorted(record for record in sealed if record[0] not in known)
    store.insert_new("dummies", "record, batch", [(record, number) for record in new])
    return first + new


def forget_dummies(store: Store) -> None:
    """Forget which records are dummies."""
    store.change("DROP TABLE dummies")
    store.change(DUMMIES)


class HandedOut:
    """Numbers of the batches that were handed out: in a file, and in a store for its processes."""

    def __init__(self, path: Path) -> None:
        """Raise if the file is lost."""
        self._path = path
        self.newest()

    def newest(self) -> int:
        """Return the number of the newest batch, 0 for none."""
        try:
            return max(map(int, bytes_of(self._path).split()), default=0)
        except (DataError, ValueError):
            raise DataError(
                f"cannot read {self._path}, which has the numbers of the batches that were handed "
                "out: put it back; if it is lost, or never was (version 0.2.0), write the largest "
                "number into it that the analyzer has, or 0 if it has none. Reports of that batch "
                "and those before are not released again"
            ) from None

    def lost(self, store: Store) -> int | None:
        """Return the number of the newest batch if a store lacks it."""
        query = "SELECT count(*) FROM batches WHERE number = ? AND state NOT IN ('closed', 'short')"
        number = self.newest()
        return number if number and not store.value(query, (number,)) else None

    def note(self, number: int) -> None:
        """Note on disk that a batch may have been handed out."""
        if number <= self.newest():
            return
        with telling(f"write {self._path}"), self._path.open("ab") as file:
            file.write(b"\n%d\n" % number)  # a power cut may have left part of another number
            file.flush()
            os.fsync(file.fileno())

    def tell(self, store: Store, number: int) -> None:
        """Note that a batch is about to be handed out, on disk first."""
        self.note(number)
        with store.transaction():
            store.set_fact(_HANDED_OUT, max(number, store.fact(_HANDED_OUT) or 0))

    def learn(self, store: Store) -> None:
        """Note on disk what another process, perhaps on another machine, handed out."""
        self.note(store.fact(_HANDED_OUT) or 0)
