"""A relay between requests: what it says of itself, and when it moves on."""

from collections.abc import Callable

import numpy as np

from shuffledp.deploy.peers.protocol.delivery import CODE_BYTES
from shuffledp.deploy.peers.protocol.errors import Fault, ProtocolError, Reason
from shuffledp.deploy.peers.protocol.relay import RelayCore
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.preparing import most_envelopes
from shuffledp.deploy.peers.service.relay_store import SqliteStore
from shuffledp.deploy.peers.service.round_clock import RoundClock
from shuffledp.network.graph import Graph

# Seal, signature, digests and numbers around the messages of a batch or hand-in.
_MOST_HEAD_BYTES = 1024


class RelayService:
    """A `RelayCore` with a clock: it opens and closes rounds as time goes by.

    Parameters
    ----------
    core : RelayCore
        The protocol.
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    store : SqliteStore
        The store of the core.
    clock : RoundClock
        When to move on.
    now : callable
        The time in seconds, by a clock that never goes back.
    """

    def __init__(
        self,
        *,
        core: RelayCore,
        terms: Terms,
        graph: Graph,
        store: SqliteStore,
        clock: RoundClock,
        now: Callable[[], float],
    ) -> None:
        self.core, self.terms = core, terms
        self._graph, self._store, self._clock, self._now = graph, store, clock, now
        self.was_collected = False
        clock.begin(now())

    @property
    def phase(self) -> str:
        """One of ``"registration"``, ``"round"``, ``"hand-in"``, ``"over"``."""
        number = self._store.round_number()
        if number == 0:
            return "registration"
        if number <= self.terms.rounds:
            return "round"
        return "over" if self._store.is_over else "hand-in"

    def status(self) -> dict[str, object]:
        """Return what anybody may know, as JSON values."""
        phase, number = self.phase, self._store.round_number()
        return {
            "phase": phase,
            "round": min(number, self.terms.rounds),
            "rounds": self.terms.rounds,
            "num_users": self.terms.num_users,
            "num_registered": self._store.num_registered(),
            "num_sent": self._store.num_sent(number),
            "num_handed_in": self._store.num_handed_in(),
            "terms_digest": self.terms.digest().hex(),
            "seconds_left": (
                None if phase == "over" else self._clock.seconds_left(phase, now=self._now())
            ),
        }

    def tell(self) -> None:
        """End the present phase at the next `advance`."""
        self._clock.tell()

    def advance(self) -> bool:
        """Move on to the next phase if the present one is over; return whether it was.

        Registration does not end before as many have registered as the terms ask for.
        """
        phase = self.phase
        if phase == "over" or not self._clock.is_over(
            phase, now=self._now(), is_complete=self._is_complete(phase)
        ):
            return False
        if phase == "registration":
            if self._store.num_registered() < self.terms.least_registered:
                return False
            self.core.start()
        elif phase == "round":
            self.core.close_round(self._store.round_number())
            self._store.wipe_log()  # the mail before that round is deleted but for absent users
        else:
            self._store.finish()
        self._clock.begin(self._now())
        return True

    def most_batch_bytes(self, node: int) -> int:
        """Return a size that no batch of a node exceeds."""
        envelopes = int(most_envelopes(self.terms, self._graph)[node])
        codes = int(self._graph.degrees[node]) * CODE_BYTES
        return envelopes * (self.terms.envelope_bytes + 4) + codes + _MOST_HEAD_BYTES

    def most_hand_in_bytes(self, node: int) -> int:
        """Return a size that nothing handed in by a node exceeds."""
        return self.terms.slots[node] * (self.terms.inner_bytes + 1) + _MOST_HEAD_BYTES

    def mail(self, node: int, round_number: int, token: bytes) -> bytes:
        """Return a user's mail of a round, until the collection is over."""
        if self._store.is_over:
            raise ProtocolError(
                "the collection is over, and its mail was deleted",
                fault=Fault.PEER,
                reason=Reason.LATE,
            )
        return self.core.mail(node, round_number, token)

    def accept_hand_in(self, data: bytes, *, node: int) -> None:
        """Take what a user hands in, until handing in has ended."""
        if self._store.is_over:
            raise ProtocolError(
                "handing in has ended: this user's reports are lost, and counted as missing",
                fault=Fault.PEER,
                reason=Reason.LATE,
            )
        self.core.accept_hand_in(data, node=node)

    def hand_ins(self, token: bytes) -> tuple[bytes, ...]:
        """Return all that was handed in, to the analyzer, once it is final."""
        self._require_over()
        return self.core.hand_ins(token)

    def record(self, token: bytes) -> dict[str, object]:
        """Return who was absent in which round, to the analyzer, once it is final.

        Users who never registered are absent in all rounds.
        """
        self.hand_ins(token)  # the same right
        away = self.core.absences()
        return {"absent": [np.flatnonzero(each).tolist() for each in away]}

    def forget_hand_ins(self, token: bytes) -> None:
        """Forget what was handed in: the analyzer has it, and the record, in a file."""
        self._require_over()
        self.core.forget_hand_ins(token)
        self.was_collected = True

    def _require_over(self) -> None:
        """Raise while something may still be handed in."""
        if self.phase != "over":
            raise ProtocolError(
                f"the collection is in its {self.phase} phase: ask again when it is over",
                fault=Fault.ANALYZER,
                reason=Reason.EARLY,
            )

    def _is_complete(self, phase: str) -> bool:
        """Return whether everybody did what the present phase is for."""
        num_registered = self._store.num_registered()
        if phase == "registration":
            return num_registered == self.terms.num_users
        if phase == "round":
            return self._store.num_sent(self._store.round_number()) == num_registered
        return self._store.num_handed_in() == num_registered
