"""What peers and analyzer keep, in a SQLite file each; changes are on disk when made."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from shuffledp.core.errors import DataError
from shuffledp.deploy.database import Database, Layout
from shuffledp.peers.terms import Terms

_TABLES = (
    "CREATE TABLE peers (collection BLOB, node INTEGER, state BLOB NOT NULL, "
    "PRIMARY KEY (collection, node))",
    "CREATE TABLE answers (question BLOB, user TEXT, law BLOB, epsilon0 REAL NOT NULL, "
    "report BLOB NOT NULL, PRIMARY KEY (question, user, law))",
)
_PEERS = Layout(kind="file of peers", mark=b"sdpp", version=3, tables=_TABLES)


class Answer(NamedTuple):
    """A report that was drawn from a user's value."""

    # Who answered; the same in all collections of a file.
    user: str
    # Digest of how it was drawn, and of what it says.
    law: bytes
    # What it cost, in nats.
    epsilon0: float
    # What was drawn.
    report: bytes


class PeerStore(Database):
    """States of peers in a file; what is saved is durable before `save` returns.

    `rewrite` leaves nothing of what was replaced.

    One file serves several collections, and remembers what was answered in each. Whoever reads it
    reads the users' private keys and reports: it is made readable by its owner only.
    """

    def __init__(self, path: Path, terms: Terms) -> None:
        self._collection = terms.digest()
        super().__init__(path, _PEERS)
        self.rows("PRAGMA temp_store = MEMORY")  # `rewrite` must not write keys elsewhere

    def states(self) -> dict[int, bytes]:
        """Return the state of each peer of the collection, by rising node."""
        query = "SELECT node, state FROM peers WHERE collection = ? ORDER BY node"
        return dict(self.rows(query, (self._collection,)))

    def save(
        self,
        states: Iterable[tuple[int, bytes]],
        *,
        question: bytes = b"",
        answers: Iterable[Answer] = (),
    ) -> None:
        """Keep the state of some peers, and what they answered to a question: all or nothing."""
        rows = [(self._collection, node, state) for node, state in states]
        kept = [(question, *each) for each in answers]
        with self.transaction():
            self.change_many("INSERT OR REPLACE INTO peers VALUES (?, ?, ?)", rows)
            self.change_many("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", kept)

    def bury(self, ends: Iterable[tuple[int, str]]) -> None:
        """Forget the keys and the reports of peers whose part is over, but how it ended.

        What they answered stays, for the next time that somebody asks the same.
        """
        self.save((node, end.encode()) for node, end in ends)
        self.rewrite()

    def answers(self, question: bytes) -> list[Answer]:
        """Return all that was answered to a question, in any collection."""
        query = "SELECT user, law, epsilon0, report FROM answers WHERE question = ?"
        return [Answer(*row) for row in self.rows(query, (question,))]

    def spent(self, user: str) -> float:
        """Return the sum of epsilon0 over all reports of a user, whatever the question."""
        query = "SELECT total(epsilon0) FROM answers WHERE user = ?"
        return float(self.value(query, (user,)))


_HAND_INS = ("CREATE TABLE hand_ins (position INTEGER PRIMARY KEY, message BLOB NOT NULL)",)
_FETCHED = Layout(kind="file of hand-ins", mark=b"sdpa", version=1, tables=_HAND_INS)


class Everything(NamedTuple):
    """All that a relay gives to the analyzer; none of it is checked."""

    roster: bytes
    hand_ins: tuple[bytes, ...]
    absences: object


class FetchedStore(Database):
    """What was fetched, sealed to the analyzer as it came; durable before `save` returns."""

    def __init__(self, path: Path, terms: Terms) -> None:
        super().__init__(path, _FETCHED, collection=terms.digest())

    @property
    def is_forgotten(self) -> bool:
        """Whether the relay has said that it deleted what was handed in."""
        return bool(self.fact("forgotten"))

    def note_forgotten(self) -> None:
        """Note that the relay deleted what was handed in."""
        with self.transaction():
            self.set_fact("forgotten", 1)

    def save(self, fetched: Everything) -> None:
        """Keep what was fetched: all or nothing."""
        with self.transaction():
            rows = list(enumerate(fetched.hand_ins))
            self.change_many("INSERT INTO hand_ins VALUES (?, ?)", rows)
            self.set_fact("absences", json.dumps(fetched.absences).encode())
            self.set_fact("roster", fetched.roster)

    def everything(self) -> Everything | None:
        """Everything kept; None if nothing was."""
        roster = self.fact("roster")
        if roster is None:
            return None
        rows = self.rows("SELECT message FROM hand_ins ORDER BY position")
        try:
            absences = json.loads(self.fact("absences"))
        except (TypeError, ValueError):
            raise DataError("the file of hand-ins is damaged: restore it from a backup") from None
        return Everything(roster, tuple(message for (message,) in rows), absences)
