"""Stores of all roles: durable SQLite files, each of one program at a time; or see `postgres`."""

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from shuffledp.core.errors import DataError, OutputError, telling

_FACTS = "CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID"
_PRAGMAS = (
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; "
    "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON"
)
_BUSY = ("database is locked", "database table is locked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Layout of one kind of SQLite file."""

    # Name in messages, such as "relay store", and four bytes that mark files of this kind.
    kind: str
    mark: bytes
    # Version of the tables; newer files are refused. The statements that make all tables but facts.
    version: int
    tables: tuple[str, ...]
    # By version: the statements that convert to the next version.
    steps: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def steps_from(self, version: int, place: object) -> list[str]:
        """Return the statements that convert from a version to this one; raise if unknown."""
        versions = range(version, self.version)
        if version > self.version or not all(each in self.steps for each in versions):
            raise DataError(
                f"{place} has a {self.kind} of version {version}, and this program knows version "
                f"{self.version}: use the version of shuffledp that made it"
            )
        return [statement for each in versions for statement in self.steps[each]]


_NOTING_SECONDS: Final = 15.0


class Keeper:
    """Holder of an open resource, by default a store, until the end of a ``with`` block."""

    _store: Any
    _noted = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; all is on disk already."""
        self._store.close()

    def last_time(self) -> float | None:
        """Return the time that was stored last; None if there is none."""
        found: float | None = self._store.fact("last_time")
        return found

    def note_time(self, now: float | None) -> None:
        """Store the time, at most every 15 seconds; do nothing for None."""
        if now is not None and now - self._noted >= _NOTING_SECONDS:
            with self._store.transaction():
                self._store.set_fact("last_time", int(now))
            self._noted = now


def bytes_of(path: Path) -> bytes:
    """Return the content of a file."""
    with telling(f"read {path}", kind=DataError):
        return path.read_bytes()


class Columns:
    """First columns of what a database's ``rows`` returns."""

    def column(self: Any, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the first column of the rows of a query."""
        return [row[0] for row in self.rows(query, values)]

    def value(self: Any, query: str, values: Sequence[Any] = ()) -> Any:
        """Return the first column of the first row of a query; None if there is no row."""
        return next(iter(self.column(query, values)), None)


class Database(Columns, Keeper):
    """One SQLite file, held by one program; a context manager.

    Every change is on disk when `transaction` ends: a write-ahead log with ``synchronous=FULL``
    survives a killed program and a power cut alike. The file is locked as long as it is open, so
    that two programs cannot continue from the same state; the operating system releases the lock if
    the program is killed. It is made readable by its owner only. A file that is a link, of another
    user, kind, version or collection, damaged or in use is refused.
    """

    def __init__(self, path: Path, layout: Layout, *, collection: bytes = b"") -> None:
        self._path, self._kind = path, layout.kind
        self._is_wiped = False  # a process that was killed may have left a log
        with self._told():
            self._make_private(path, os.O_CREAT)
            for end in ("-wal", "-shm", "-journal"):  # new ones inherit the file's permissions
                with suppress(FileNotFoundError):
                    self._make_private(path.with_name(path.name + end), 0)
            # One thread at a time may use it.
            self._connection: sqlite3.Connection = sqlite3.connect(
                path, isolation_level=None, timeout=1.0, check_same_thread=False
            )
        try:
            self._prepare(layout, collection)
        except BaseException:
            self._connection.close()
            raise

    def _make_private(self, path: Path, flags: int) -> None:
        """Make a file, or check that it is no link; let nobody else read it."""
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DataError(f"{path} is a link: name the file itself") from None
            raise
        try:
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
                raise DataError(f"{path} is no file of one name only: name another {self._kind}")
            if facts.st_uid != os.geteuid():
                raise DataError(f"{path} belongs to another user: name another {self._kind}")
            if stat.S_IMODE(facts.st_mode) & 0o077:
                os.fchmod(file, 0o600)
        finally:
            os.close(file)

    def close(self) -> None:
        """Close the file; all is on disk already."""
        self._connection.close()

    @contextmanager
    def transaction(self, *, is_shared: bool = False) -> Iterator[None]:  # noqa: ARG002  # nobody is beside
        """Make all changes inside one: on disk together, or not at all."""
        with self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk may have ended it already
                    self._connection.execute("ROLLBACK")
                raise

    def leads(self) -> bool:
        """Return True: the file is held by one program."""
        return True

    def wipe_log(self) -> None:
        """Empty the log, which still has deleted rows that the tables have overwritten."""
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def wipe_soon(self) -> None:
        """Empty the log, and leave it to `wipe_late` where a full disk forbids that."""
        self._is_wiped = False
        with suppress(OutputError):
            self.wipe_late()

    def wipe_late(self) -> None:
        """Empty the log if `wipe_soon` failed, or was not called since the file was opened."""
        if not self._is_wiped:
            self.wipe_log()
            self._is_wiped = True

    def rewrite(self) -> None:
        """Leave no trace of deleted rows in file and log, at the cost of writing the whole file.

        SQLite overwrites deleted rows, but not the copies that stay where it moved rows to another
        page. A dropped table takes its pages with it, and needs `wipe_log` only.
        """
        self.rows("VACUUM")
        self.wipe_log()

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of rows that it changed."""
        with self._told():
            return self._connection.execute(statement, values).rowcount

    def insert_new(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows with new keys, skip the others; return the number of inserted rows."""
        places = ", ".join("?" * (columns.count(",") + 1))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608  # names of ours
        with self._told():
            return self._connection.executemany(statement, rows).rowcount

    def change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once a row."""
        with self._told():
            self._connection.executemany(statement, rows)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._told():
            return self._connection.execute(query, values).fetchall()

    def fact(self, name: str) -> Any:
        """Return the value stored under a name; None if there is none."""
        return self.value("SELECT value FROM facts WHERE name = ?", (name,))

    def set_fact(self, name: str, value: int | bytes) -> None:
        """Store a value under a name."""
        self.change("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _prepare(self, layout: Layout, collection: bytes) -> None:
        """Lock the file and make its tables, or check that they are ours."""
        with self._told():
            self._connection.executescript(_PRAGMAS)
            self._connection.execute("BEGIN EXCLUSIVE")
            found, mark = self.value("PRAGMA application_id"), int.from_bytes(layout.mark)
            if not self.value("SELECT count(*) FROM sqlite_master"):
                for statement in (_FACTS, *layout.tables):
                    self._connection.execute(statement)
                self.set_fact("collection", collection)
                self._connection.execute(f"PRAGMA application_id = {mark:d}")
            elif found != mark:
                raise DataError(f"{self._path} is no {self._kind}: name another file")
            else:
                for statement in layout.steps_from(self.value("PRAGMA user_version"), self._path):
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {layout.version:d}")
            if collection and self.fact("collection") != collection:
                wrong = f"{self._path} is of a collection with other terms"
                raise DataError(f"{wrong}: name another file")
            self._connection.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an error of the file into one line."""
        try:
            with telling(f"write {self._path}"):
                yield
        except sqlite3.Error as error:
            if str(error) in _BUSY:
                raise DataError(
                    f"{self._path} is in use by another program: end that first, or name another"
                ) from None
            if isinstance(error, sqlite3.OperationalError):
                raise OutputError(f"cannot write {self._path}: {error}") from None
            raise DataError(f"{self._path} is no {self._kind}, or damaged: {error}") from None
