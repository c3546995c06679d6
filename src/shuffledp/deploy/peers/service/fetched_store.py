"""What the analyzer fetched of a collection, in SQLite: after that the relay may forget it."""

import json
from dataclasses import dataclass
from pathlib import Path

from shuffledp.core.errors import DataError
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.database import Database

_APPLICATION_ID = 0x73647061  # "sdpa"
_VERSION = 1
_SCHEMA = ("CREATE TABLE hand_ins (position INTEGER PRIMARY KEY, message BLOB NOT NULL)",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All that a relay gives to the analyzer; none of it is checked.

    Parameters
    ----------
    roster : bytes
        All registrations.
    hand_ins : tuple of bytes
        All that was handed in.
    absences : object
        Who was absent in each round, as JSON values.
    """

    roster: bytes
    hand_ins: tuple[bytes, ...]
    absences: object


class FetchedStore(Database):
    """What was fetched, sealed to the analyzer as it came; durable before `save` returns.

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
            kind="file of hand-ins",
            application_id=_APPLICATION_ID,
            version=_VERSION,
            schema=_SCHEMA,
            collection=terms.digest(),
        )

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
