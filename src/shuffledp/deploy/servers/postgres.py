"""Store of a role in a PostgreSQL database that several of its processes share.

The statements are SQLite's; a role's tables of one task are a schema of their own. All processes
take in reports, and one of them, which holds a lock as long as its connection lives, releases
batches.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import psycopg

from shuffledp.core.errors import DataError, OutputError, ParameterError
from shuffledp.deploy.database import Columns, Layout

_TYPE_OF: Final = {bytes: "bytea", int: "bigint", str: "text"}
# Unless a URL says otherwise: that a server's machine is gone is noticed in 20 seconds, not hours.
_PATIENCE: Final = {
    "connect_timeout": "10",
    "tcp_user_timeout": "20000",  # milliseconds
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
# The server notices in the same time that a process's machine is gone, and another one may lead.
_NOTICED: Final = (
    "SET tcp_user_timeout = 20000; SET tcp_keepalives_idle = 5; "
    "SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)


class PostgresDatabase(Columns):
    """A `Store` in PostgreSQL; reconnects after the server was away."""

    def __init__(self, url: str, layout: Layout, *, collection: bytes) -> None:
        self._url, self._kind = url, layout.kind
        self._schema = f"sdp_{layout.mark.hex()}_{collection.hex()[:32]}"
        digest = hashlib.sha256(self._schema.encode()).digest()
        # Numbers of the locks: for changes that exclude all others, and for releasing batches.
        self._locks = [int.from_bytes(digest[at : at + 8], signed=True) for at in (0, 8)]
        self._connection: psycopg.Connection[Any] | None = None
        self._is_leader = False
        try:
            self._prepare(layout, collection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; all is on the server's disk already."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._is_leader = None, False

    @property
    def _live(self) -> psycopg.Connection[Any]:
        """The connection, made anew if there is none."""
        if self._connection is None:
            with self._told():
                known: Any = _PATIENCE | psycopg.conninfo.conninfo_to_dict(self._url)
                self._connection = psycopg.connect(
                    **known | {"client_encoding": "utf8"}, autocommit=True, prepare_threshold=None
                )
                # Whoever has waited for a lock reads what was changed under it.
                self._connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                self._connection.execute(f"SET search_path TO {self._schema}; {_NOTICED}")
        return self._connection

    @contextmanager
    def transaction(self, *, is_shared: bool = False) -> Iterator[None]:
        """Make all changes inside one: on disk together, or not at all."""
        lock = "pg_advisory_xact_lock" + ("_shared" if is_shared else "")
        with self._told(), self._live.transaction():
            self.rows(f"SELECT {lock}(?)", self._locks[:1])
            yield

    def leads(self) -> bool:
        """Return True if this process holds, or just took, the lock for releases."""
        if not self._is_leader:
            self._is_leader = self.value("SELECT pg_try_advisory_lock(?)", self._locks[1:])
        return self._is_leader

    def wipe_soon(self) -> None:
        """Do nothing: the log is the server's, and has dummies and held records; see the docs."""

    wipe_late = wipe_soon

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of rows that it changed."""
        with self._told():
            return self._live.execute(_translated(statement), values).rowcount

    def insert_new(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows with new keys, skip the others; return the number of inserted rows."""
        if not rows:
            return 0
        # In a fixed order, so that two processes with the same rows do not wait for each other.
        by_column = list(zip(*sorted(rows, key=tuple), strict=True))
        arrays = ", ".join(f"%b::{_TYPE_OF[type(each)]}[]" for each in rows[0])
        statement = (
            f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) "  # noqa: S608  # names of ours
            "ON CONFLICT DO NOTHING"
        )
        with self._told():
            return self._live.execute(statement, [list(each) for each in by_column]).rowcount

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._told():
            return self._live.execute(_translated(query), values, binary=True).fetchall()

    def fact(self, name: str) -> Any:
        """Return the value stored under a name; None if there is none."""
        rows = self.rows("SELECT number, data FROM facts WHERE name = ?", (name,))
        return next((each for row in rows for each in row if each is not None), None)

    def set_fact(self, name: str, value: int | bytes) -> None:
        """Store a value under a name."""
        number, data = (value, None) if isinstance(value, int) else (None, value)
        self.change(
            "INSERT INTO facts VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
            "SET number = excluded.number, data = excluded.data",
            (name, number, data),
        )

    def _prepare(self, layout: Layout, collection: bytes) -> None:
        """Make the tables, or check that they are ours, and of this version."""
        with self.transaction():
            self.change(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            if self.value("SELECT to_regclass('facts')") is None:
                self.change("CREATE TABLE facts (name TEXT PRIMARY KEY, number INTEGER, data BLOB)")
                for statement in layout.tables:
                    self.change(statement)
                self.set_fact("collection", collection)
                self.set_fact("version", layout.version)
            for statement in layout.steps_from(self.fact("version"), "the database"):
                self.change(statement)
            self.set_fact("version", layout.version)
            if self.fact("collection") != collection:
                raise DataError(f"the database has a {self._kind} of another task: name another")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an error of the server into one line, without the URL, which is secret."""
        try:
            yield
        except psycopg.Error as error:
            if isinstance(error, psycopg.ProgrammingError) and self._connection is None:
                raise ParameterError(
                    "database is no URL of PostgreSQL: write it like postgresql://user@host/name"
                ) from None
            what = f"cannot change the {self._kind}"
            if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
                self.close()
                what = "the database does not answer"
            said = " ".join(str(error).split()) or type(error).__name__
            raise OutputError(f"{what}: {said}") from None


@lru_cache(256)
def _translated(statement: str) -> str:
    """Return a statement of SQLite in PostgreSQL's dialect."""
    for theirs, ours in (
        ("?", "%s"),
        ("BLOB", "bytea"),
        ("INTEGER", "bigint"),
        (" WITHOUT ROWID", ""),
    ):
        statement = statement.replace(theirs, ours)
    return statement
