"""What a relay keeps, in SQLite: registrations, batches, mail, hand-ins and the round."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shuffledp.deploy.peers.protocol.envelopes import Letter
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.database import Database

_APPLICATION_ID = 0x73647072  # "sdpr"
_VERSION = 4
_SCHEMA = (
    "CREATE TABLE registrations (node INTEGER PRIMARY KEY, message BLOB NOT NULL)",
    "CREATE TABLE batches (round INTEGER, sender INTEGER, message BLOB NOT NULL, "
    "PRIMARY KEY (round, sender))",
    # By recipient first, so that what one of them has taken is deleted in one stroke.
    "CREATE TABLE mail (round INTEGER, recipient INTEGER, sender INTEGER, position INTEGER, "
    "sealed BLOB NOT NULL, PRIMARY KEY (recipient, round, sender, position)) WITHOUT ROWID",
    "CREATE TABLE codes (round INTEGER, recipient INTEGER, sender INTEGER, code BLOB NOT NULL, "
    "PRIMARY KEY (recipient, round, sender)) WITHOUT ROWID",
    "CREATE TABLE hand_ins (holder INTEGER PRIMARY KEY, message BLOB NOT NULL)",
)


class SqliteStore(Database):
    """The ``Store`` of a `RelayCore` in a file; each change is durable before it returns.

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
            kind="relay store",
            application_id=_APPLICATION_ID,
            version=_VERSION,
            schema=_SCHEMA,
            collection=terms.digest(),
        )

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
        found = self.value("SELECT message FROM registrations WHERE node = ?", (node,))
        return None if found is None else bytes(found)

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
        found = self.value(
            "SELECT message FROM batches WHERE round = ? AND sender = ?", (round_number, sender)
        )
        return None if found is None else bytes(found)

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
        return frozenset(int(row[0]) for row in self.rows(query, (round_number,)))

    def mail(self, round_number: int, recipient: int) -> list[Letter]:
        """Return what was sent to a node in a round, by rising sender and index."""
        query = (
            "SELECT sender, position, sealed FROM mail WHERE round = ? AND recipient = ? "
            "ORDER BY sender, position"
        )
        return [
            Letter(
                round_number=round_number,
                sender=int(sender),
                index=int(position),
                recipient=recipient,
                sealed=bytes(sealed),
            )
            for sender, position, sealed in self.rows(query, (round_number, recipient))
        ]

    def codes(self, round_number: int, recipient: int) -> dict[int, bytes]:
        """Return the codes of a round to a node by sender, rising."""
        query = "SELECT sender, code FROM codes WHERE round = ? AND recipient = ? ORDER BY sender"
        rows = self.rows(query, (round_number, recipient))
        return {int(sender): bytes(code) for sender, code in rows}

    def hand_in(self, holder: int) -> bytes | None:
        """Return what a node handed in."""
        found = self.value("SELECT message FROM hand_ins WHERE holder = ?", (holder,))
        return None if found is None else bytes(found)

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
