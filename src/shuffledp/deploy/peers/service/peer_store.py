"""What peers keep, in SQLite: states with private keys and reports, and what was answered."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.database import Database

_APPLICATION_ID = 0x73647070  # "sdpp"
_VERSION = 3
_SCHEMA = (
    "CREATE TABLE peers (collection BLOB, node INTEGER, state BLOB NOT NULL, "
    "PRIMARY KEY (collection, node))",
    "CREATE TABLE answers (question BLOB, user TEXT, law BLOB, epsilon0 REAL NOT NULL, "
    "report BLOB NOT NULL, PRIMARY KEY (question, user, law))",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A report that was drawn from a user's value.

    Parameters
    ----------
    user : str
        Who answered; the same in all collections of a file.
    law : bytes
        Digest of how it was drawn, and of what it says.
    epsilon0 : float
        What it cost, in nats.
    report : bytes
        What was drawn.
    """

    user: str
    law: bytes
    epsilon0: float
    report: bytes


class PeerStore(Database):
    """States of peers in a file; what is saved is durable before `save` returns.

    What it replaces is overwritten; `wipe_log` also takes it out of the log.

    One file serves several collections, and remembers what was answered in each. Whoever reads it
    reads the users' private keys and reports: it is made readable by its owner only.

    Parameters
    ----------
    path : Path
        The file, made if absent.
    terms : Terms
        Of the collection whose peers are read and saved.

    Raises
    ------
    DataError
        If the file is in use, damaged, or something else.
    OutputError
        If it cannot be written.
    """

    def __init__(self, path: Path, terms: Terms) -> None:
        self._collection = terms.digest()
        super().__init__(
            path,
            kind="file of peers",
            application_id=_APPLICATION_ID,
            version=_VERSION,
            schema=_SCHEMA,
            collection=b"",
        )

    def states(self) -> dict[int, bytes]:
        """Return the state of each peer of the collection, by rising node."""
        query = "SELECT node, state FROM peers WHERE collection = ? ORDER BY node"
        return {int(node): bytes(state) for node, state in self.rows(query, (self._collection,))}

    def save(
        self,
        states: Iterable[tuple[int, bytes]],
        *,
        question: bytes = b"",
        answers: Iterable[Answer] = (),
    ) -> None:
        """Keep the state of some peers, and what they answered to a question: all or nothing."""
        rows = [(self._collection, node, state) for node, state in states]
        kept = [(question, each.user, each.law, each.epsilon0, each.report) for each in answers]
        with self.transaction():
            self.change_many("INSERT OR REPLACE INTO peers VALUES (?, ?, ?)", rows)
            self.change_many("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", kept)

    def bury(self, ends: Iterable[tuple[int, str]]) -> None:
        """Forget the keys and the reports of peers whose part is over, but how it ended.

        What they answered stays, for the next time that somebody asks the same.
        """
        rows = [(self._collection, node, end.encode()) for node, end in ends]
        with self.transaction():
            self.change_many("INSERT OR REPLACE INTO peers VALUES (?, ?, ?)", rows)
        self.wipe_log()

    def answers(self, question: bytes) -> list[Answer]:
        """Return all that was answered to a question, in any collection."""
        query = "SELECT user, law, epsilon0, report FROM answers WHERE question = ?"
        return [
            Answer(user=user, law=bytes(law), epsilon0=float(epsilon0), report=bytes(report))
            for user, law, epsilon0, report in self.rows(query, (question,))
        ]

    def spent(self, user: str) -> float:
        """Return the sum of epsilon0 over all reports of a user, whatever the question."""
        query = "SELECT total(epsilon0) FROM answers WHERE user = ?"
        return float(self.value(query, (user,)))
