"""What relay, peers and analyzer keep, in a SQLite file each; changes are on disk when made."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shuffledp.core.errors import DataError
from shuffledp.deploy.database import Database, Layout
from shuffledp.deploy.peers.protocol.messages import Letter
from shuffledp.deploy.peers.protocol.terms import Terms

_RELAY = Layout(
    kind="relay store",
    application_id=0x73647072,  # "sdpr"
    version=4,
    tables=(
        "CREATE TABLE registrations (node INTEGER PRIMARY KEY, message BLOB NOT NULL)",
        "CREATE TABLE batches (round INTEGER, sender INTEGER, message BLOB NOT NULL, "
        "PRIMARY KEY (round, sender))",
        # By recipient first, so that what one of them has taken is deleted in one stroke.
        "CREATE TABLE mail (round INTEGER, recipient INTEGER, sender INTEGER, position INTEGER, "
        "sealed BLOB NOT NULL, PRIMARY KEY (recipient, round, sender, position)) WITHOUT ROWID",
        "CREATE TABLE codes (round INTEGER, recipient INTEGER, sender INTEGER, code BLOB NOT NULL, "
        "PRIMARY KEY (recipient, round, sender)) WITHOUT ROWID",
        "CREATE TABLE hand_ins (holder INTEGER PRIMARY KEY, message BLOB NOT NULL)",
    ),
)


class SqliteStore(Database):
    """The ``Store`` of a `RelayCore` in a file; each change is durable before it returns."""

    def __init__(self, path: Path, terms: Terms) -> None:
        super().__init__(path, _RELAY, collection=terms.digest())

    @property
    def is_over(self) -> bool:
        """Whether handing in has ended."""
        return bool(self.fact("over"))

    def finish(self) -> None:
        """End the handing in, for good, and forget what mail is left: nobody fetches any now."""
        with self.transaction():
            self.set_fact("over", 1)
            self.change("DELETE FROM mail")
            self.change("DELETE FROM codes")
        self.wipe_log()

    def registration(self, node: int) -> bytes | None:
        """Return what a node registered with."""
        found: bytes | None = self.value(
            "SELECT message FROM registrations WHERE node = ?", (node,)
        )
        return found

    def put_registration(self, node: int, data: bytes) -> None:
        """Keep a registration."""
        with self.transaction():
            self.change("INSERT INTO registrations VALUES (?, ?)", (node, data))

    def registrations(self) -> list[tuple[int, bytes]]:
        """Return all registrations, by rising node."""
        return self.rows("SELECT node, message FROM registrations ORDER BY node")

    def round_number(self) -> int:
        """Return the open round; 0 before the first, one more than the last at the end."""
        return int(self.fact("round") or 0)

    def set_round_number(self, round_number: int) -> None:
        """Open a round."""
        with self.transaction():
            self.set_fact("round", round_number)

    def batch(self, round_number: int, sender: int) -> bytes | None:
        """Return the digest of what a node sent in a round."""
        query = "SELECT message FROM batches WHERE round = ? AND sender = ?"
        found: bytes | None = self.value(query, (round_number, sender))
        return found

    def put_batch(
        self,
        data: bytes,
        *,
        round_number: int,
        sender: int,
        letters: Sequence[Letter],
        codes: Mapping[int, bytes],
    ) -> None:
        """Keep a batch's digest, letters and codes, and forget its sender's mail; or nothing."""
        mail = [(round_number, each.recipient, sender, each.index, each.sealed) for each in letters]
        lines = [(round_number, recipient, sender, code) for recipient, code in codes.items()]
        with self.transaction():
            self._forget_mail(sender, before=round_number)
            self.change("INSERT INTO batches VALUES (?, ?, ?)", (round_number, sender, data))
            self.change_many("INSERT INTO mail VALUES (?, ?, ?, ?, ?)", mail)
            self.change_many("INSERT INTO codes VALUES (?, ?, ?, ?)", lines)

    def _forget_mail(self, recipient: int, *, before: int) -> None:
        """Forget the mail of a node of all rounds before one."""
        for table in ("mail", "codes"):
            query = f"DELETE FROM {table} WHERE recipient = ? AND round < ?"  # noqa: S608
            self.change(query, (recipient, before))

    def num_registered(self) -> int:
        """Return how many registered."""
        return int(self.value("SELECT count(*) FROM registrations"))

    def num_sent(self, round_number: int) -> int:
        """Return how many sent in a round."""
        return int(self.value("SELECT count(*) FROM batches WHERE round = ?", (round_number,)))

    def num_handed_in(self) -> int:
        """Return how many handed in."""
        return int(self.value("SELECT count(*) FROM hand_ins"))

    def senders(self, round_number: int) -> frozenset[int]:
        """Return who has sent in a round."""
        query = "SELECT sender FROM batches WHERE round = ?"
        return frozenset(sender for (sender,) in self.rows(query, (round_number,)))

    def mail(self, round_number: int, recipient: int) -> list[Letter]:
        """Return what was sent to a node in a round, by rising sender and index."""
        query = (
            "SELECT sender, position, sealed FROM mail WHERE round = ? AND recipient = ? "
            "ORDER BY sender, position"
        )
        rows = self.rows(query, (round_number, recipient))
        return [
            Letter(round_number, sender, place, recipient, sealed) for sender, place, sealed in rows
        ]

    def codes(self, round_number: int, recipient: int) -> dict[int, bytes]:
        """Return the codes of a round to a node by sender, rising."""
        query = "SELECT sender, code FROM codes WHERE round = ? AND recipient = ? ORDER BY sender"
        return dict(self.rows(query, (round_number, recipient)))

    def hand_in(self, holder: int) -> bytes | None:
        """Return what a node handed in."""
        found: bytes | None = self.value("SELECT message FROM hand_ins WHERE holder = ?", (holder,))
        return found

    def put_hand_in(self, holder: int, data: bytes) -> None:
        """Keep what a node hands in, and forget all its mail."""
        with self.transaction():
            self._forget_mail(holder, before=self.round_number())
            self.change("INSERT INTO hand_ins VALUES (?, ?)", (holder, data))

    def hand_ins(self) -> list[tuple[int, bytes]]:
        """Return all that was handed in, by rising holder; nothing of each once forgotten."""
        return self.rows("SELECT holder, message FROM hand_ins ORDER BY holder")

    def forget_hand_ins(self) -> None:
        """Forget what was handed in, but not by whom."""
        with self.transaction():
            self.change("UPDATE hand_ins SET message = x''")
        self.wipe_log()


_PEERS = Layout(
    kind="file of peers",
    application_id=0x73647070,  # "sdpp"
    version=3,
    tables=(
        "CREATE TABLE peers (collection BLOB, node INTEGER, state BLOB NOT NULL, "
        "PRIMARY KEY (collection, node))",
        "CREATE TABLE answers (question BLOB, user TEXT, law BLOB, epsilon0 REAL NOT NULL, "
        "report BLOB NOT NULL, PRIMARY KEY (question, user, law))",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
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

    What it replaces is overwritten; `wipe_log` also takes it out of the log.

    One file serves several collections, and remembers what was answered in each. Whoever reads it
    reads the users' private keys and reports: it is made readable by its owner only.
    """

    def __init__(self, path: Path, terms: Terms) -> None:
        self._collection = terms.digest()
        super().__init__(path, _PEERS)

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


_FETCHED = Layout(
    kind="file of hand-ins",
    application_id=0x73647061,  # "sdpa"
    version=1,
    tables=("CREATE TABLE hand_ins (position INTEGER PRIMARY KEY, message BLOB NOT NULL)",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
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
        rows = list(enumerate(fetched.hand_ins))
        with self.transaction():
            self.change_many("INSERT INTO hand_ins VALUES (?, ?)", rows)
            self.set_fact("absences", json.dumps(fetched.absences).encode())
            self.set_fact("roster", fetched.roster)

    def everything(self) -> Everything | None:
        """Return what was kept; None if nothing was."""
        roster, absences = self.fact("roster"), self.fact("absences")
        if roster is None:
            return None
        rows = self.rows("SELECT message FROM hand_ins ORDER BY position")
        try:
            return Everything(
                roster=bytes(roster),
                hand_ins=tuple(bytes(message) for (message,) in rows),
                absences=json.loads(absences),
            )
        except (TypeError, ValueError):
            raise DataError("the file of hand-ins is damaged: restore it from a backup") from None
