"""What a user agrees to, whatever the terms, the relay and the analyzer say."""

from dataclasses import dataclass
from typing import Final, Self

from shuffledp.collection.protocol.errors import Fault, ProtocolError, Reason
from shuffledp.collection.protocol.keys import Roster
from shuffledp.collection.protocol.terms import Terms
from shuffledp.core.checks import require_at_least

# Hand in nothing after more absences than this share of the rounds.
_SHARE_OF_ABSENCES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a user agrees to; a `Peer` keeps to it.

    Parameters
    ----------
    most_absences : int, optional
        Hand in nothing after more rounds than this in which the relay took no batch of the user;
        by default a quarter of the rounds, rounded down. The relay decides who is absent: one that
        refuses all batches of a user would otherwise be handed his own report, which never moved.
    roster_digest : bytes, optional
        Take no other roster than the one with this digest.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    most_absences: int | None = None
    roster_digest: bytes | None = None

    def __post_init__(self) -> None:
        if self.most_absences is not None:
            require_at_least("most_absences", self.most_absences, 0)

    @classmethod
    def none(cls, terms: Terms) -> Self:
        """Return the limits of who agrees to everything; for simulations."""
        return cls(most_absences=terms.rounds)

    def allowed_absences(self, terms: Terms) -> int:
        """Return after how many absences the user still hands in."""
        if self.most_absences is None:
            return terms.rounds // _SHARE_OF_ABSENCES
        return self.most_absences

    def require_roster(self, roster: Roster) -> None:
        """Raise `ProtocolError` unless the user agrees to a roster."""
        if self.roster_digest not in (None, roster.digest()):
            raise ProtocolError(
                f"the relay shows a roster with the digest {roster.digest().hex()}, not the one "
                "that is required: do not trust the relay",
                fault=Fault.RELAY,
                reason=Reason.MISMATCH,
            )


#: Those of a user who says nothing else.
DEFAULT_LIMITS: Final = Limits()
