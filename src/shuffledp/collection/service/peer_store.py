"""What peers keep, in SQLite: each one's whole state, with its private keys and its report."""

from collections.abc import Iterable
from pathlib import Path

from shuffledp.collection.protocol.terms import Terms
from shuffledp.collection.service.database import Database

_APPLICATION_ID = 0x73647070  # "sdpp"
_VERSION = 2
_SCHEMA = ("CREATE TABLE peers (node INTEGER PRIMARY KEY, state BLOB NOT NULL)",)


class PeerStore(Database):
    """States of peers in a file; what is saved is durable before `save` returns.

    Whoever reads the file reads the users' private keys and reports: it is made readable by its
    owner only.

    Parameters
    ----------
    path : Path
        The file, made if absent.
    terms : Terms
        Of the collection; a file of another collection is refused.

    Raises
    ------
    DataError
        If the file belongs to another collection, is in use, damaged, or something else.
    OutputError
        If it cannot be written.
    """

    def __init__(self, path: Path, terms: Terms) -> None:
        super().__init__(
            path,
            kind="file of peers",
            application_id=_APPLICATION_ID,
            version=_VERSION,
            schema=_SCHEMA,
            collection=terms.digest(),
        )

    def states(self) -> dict[int, bytes]:
        """Return the state of each peer, by rising node."""
        rows = self.rows("SELECT node, state FROM peers ORDER BY node")
        return {int(node): bytes(state) for node, state in rows}

    def save(self, states: Iterable[tuple[int, bytes]]) -> None:
        """Keep the state of some peers, all or none."""
        rows = list(states)
        with self.transaction():
            self.change_many("INSERT OR REPLACE INTO peers VALUES (?, ?)", rows)
