"""Where servers keep what they have: a SQLite file, or PostgreSQL with the same statements."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from shuffledp.core.errors import MissingPackageError
from shuffledp.deploy.database import Database, Layout

if TYPE_CHECKING:
    from shuffledp.deploy.servers.postgres import PostgresDatabase

#: Both have the same methods.
Store: TypeAlias = "Database | PostgresDatabase"

#: Most keys that one query names.
MOST_KEYS: Final = 1000


def open_store(folder: Path, url: str | None, layout: Layout, *, collection: bytes) -> Store:
    """Open what is kept in a folder, or in the PostgreSQL database that a URL names."""
    if url is None:
        return Database(folder / f"{layout.kind.split()[0]}.db", layout, collection=collection)
    try:
        from shuffledp.deploy.servers.postgres import PostgresDatabase
    except ModuleNotFoundError as error:
        what = "a PostgreSQL database needs psycopg: run pip install 'shuffledp[postgresql]'"
        raise MissingPackageError(what, name=error.name) from None
    return PostgresDatabase(url, layout, collection=collection)


def rows_among(store: Store, query: str, keys: Sequence[Any]) -> list[Any]:
    """Return the rows of a query that ends in the name of a column, where that is in ``keys``."""
    found = []
    for at in range(0, len(keys), MOST_KEYS):
        some = keys[at : at + MOST_KEYS]
        found += store.rows(f"{query} IN ({', '.join('?' * len(some))})", some)
    return found
