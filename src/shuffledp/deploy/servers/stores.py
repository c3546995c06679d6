"""Stores of the servers.

Tables are a SQLite file, or PostgreSQL with the same statements; batches, until the analyzer has
them, are files of a folder, or objects in S3.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from shuffledp.core.errors import DataError, needing, telling
from shuffledp.core.files import replace_file, sync_folder
from shuffledp.deploy.database import Database, Layout

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
