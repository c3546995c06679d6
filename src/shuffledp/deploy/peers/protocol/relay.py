"""The relay: a bulletin board of keys, a mailbox for each user, and the number of the round.

It opens nothing and decides nothing about reports. Every call may be repeated: what has been
accepted is acknowledged again and kept once, also by a relay that starts again on its store. It
forgets mail when its recipient sends or hands in the next time, for a peer saves what it has taken
before it does so; and what was handed in when the analyzer says that it is stored there.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.deploy import wire
from shuffledp.deploy.peers.protocol.keys import (
    Registration,
    Roster,
    hand_ins_token_text,
    mail_token_text,
)
from shuffledp.deploy.peers.protocol.messages import (
    Batch,
    Letter,
    Mail,
    decode_batch,
    decode_hand_in,
    encode_mail,
)
from shuffledp.deploy.peers.protocol.routes import (
    batch_size,
    is_even,
    registered_neighbours,
)
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.sealing import is_signed
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.network.graph import Graph


class Store(Protocol):
    """What a relay keeps. Each ``put`` and ``set`` is whole and lasting before it returns.

    The relay checks before it writes: a store only keeps. A ``put`` of what is there already is
    never called.
    """

    def registration(self, node: int) -> bytes | None:
        """Return a user's registration."""

    def put_registration(self, node: int, data: bytes) -> None:
        """Keep a user's registration."""

    def registrations(self) -> Sequence[tuple[int, bytes]]:
        """Return all registrations, users ascending."""

    def round_number(self) -> int:
        """Return what was set last; 0 at first."""

    def set_round_number(self, round_number: int) -> None:
        """Keep the number of the present round."""

    def batch(self, round_number: int, sender: int) -> bytes | None:
        """Return the digest of a sender's batch."""

    def put_batch(
        self,
        data: bytes,
        *,
        round_number: int,
        sender: int,
        letters: Sequence[Letter],
        codes: Mapping[int, bytes],
    ) -> None:
        """Keep the digest of a batch, its letters, and codes by recipient: all or nothing.

        And forget the sender's mail of all rounds before, which he has taken.
        """

    def senders(self, round_number: int) -> frozenset[int]:
        """Return who sent a batch in a round."""

    def mail(self, round_number: int, recipient: int) -> Sequence[Letter]:
        """Return the letters of a round to a recipient, ordered by sender and index."""

    def codes(self, round_number: int, recipient: int) -> Mapping[int, bytes]:
        """Return the codes of a round to a recipient by sender, ascending."""

    def hand_in(self, holder: int) -> bytes | None:
        """Return what a holder handed in."""

    def put_hand_in(self, holder: int, data: bytes) -> None:
        """Keep what a holder hands in, and forget all his mail."""

    def hand_ins(self) -> Sequence[tuple[int, bytes]]:
        """Return all that was handed in, holders ascending; nothing of each once forgotten."""

    def forget_hand_ins(self) -> None:
        """Forget what was handed in, but not by whom."""


class RelayCore:
    """What a relay does, on a store that is empty or of a relay of the same terms.

    Every method that takes a message raises `ProtocolError`, changing nothing, unless it is in
    order. No two relays work on one store at a time.
    """

    def __init__(self, terms: Terms, graph: Graph, store: Store) -> None:
        terms.require_graph(graph)
        self._terms = terms
        self._graph = graph
        self._store = store
        self._roster: Roster | None = None
        self._absent: dict[int, tuple[int, ...]] = {}  # of rounds that are over
        if store.round_number() > 0:
            self._roster = self._read_roster()

    def _read_roster(self) -> Roster:
        """Return the roster of the registrations that are kept."""
        kept = [data for _, data in self._store.registrations()]
        items = [Registration.from_bytes(data, self._terms) for data in kept]
        return Roster.from_registrations(self._terms, items)

    def register(self, data: bytes, *, node: int | None = None) -> bool:
        """Take a registration; return whether it is new."""
        registration = Registration.from_bytes(data, self._terms)
        _require_named("user", registration.node, node)
        kept = self._store.registration(registration.node)
        if _is_known(kept, data, f"user {registration.node} has registered with other keys"):
            return False
        if self._roster is not None:
            raise _peer_error("registration is closed", Reason.LATE)
        self._store.put_registration(registration.node, data)
        return True

    def start(self) -> None:
        """Close the registration and open round 1; does nothing if that has been done."""
        if self._roster is not None:
            return
        roster = self._read_roster()
        if roster.num_registered < self._terms.least_registered:
            raise ProtocolError(
                f"{roster.num_registered} users have registered, fewer than the "
                f"{self._terms.least_registered} of the terms: wait for more",
                fault=Fault.CALLER,
                reason=Reason.EARLY,
            )
        self._store.set_round_number(1)
        self._roster = roster

    @property
    def roster(self) -> Roster:
        """Who registered; `ProtocolError` while users register."""
        if self._roster is None:
            raise _peer_error("the roster is not closed yet: ask again", Reason.EARLY)
        return self._roster

    def accept_batch(
        self, data: bytes, *, round_number: int | None = None, node: int | None = None
    ) -> bool:
        """Take the envelopes of a user in the open round; return whether they are new.

        The same bytes again are acknowledged also after the round; others are refused with
        `Reason.LATE` then, and their sender has to take them back.
        """
        batch = decode_batch(data, terms=self._terms, roster=self.roster)
        _require_named("user", batch.sender, node)
        _require_named("round", batch.round_number, round_number)
        kept = self._store.batch(batch.round_number, batch.sender)
        digest = wire.digest(b"batch", data)  # what is in it is kept in the mail, and only there
        where = f"of user {batch.sender} in round {batch.round_number}"
        if _is_known(kept, digest, f"another batch {where} was accepted"):
            return False
        now = self._store.round_number()
        if batch.round_number != now:
            raise _peer_error(
                f"the batch {where} came in round {now}",
                Reason.EARLY if batch.round_number > now else Reason.LATE,
            )
        neighbours = registered_neighbours(self._graph, self.roster, batch.sender)
        self._require_allowed(batch, neighbours)
        self._store.put_batch(
            digest,
            round_number=batch.round_number,
            sender=batch.sender,
            letters=batch.letters,
            codes=dict(zip(neighbours, batch.codes, strict=True)),
        )
        return True

    def _require_allowed(self, batch: Batch, neighbours: tuple[int, ...]) -> None:
        """Raise unless there are as many letters as the terms say, all to registered neighbours.

        And a code for each of these; what is in it is between the two.
        """
        sender, letters = batch.sender, batch.letters
        wanted = batch_size(self._terms, sender, neighbours)
        for what, number, expected in (
            ("envelopes", len(letters), wanted),
            ("codes", len(batch.codes), len(neighbours)),
        ):
            if number != expected:
                raise _peer_error(
                    f"user {sender} sent {number} {what}, not {expected}", Reason.MALFORMED
                )
        for stranger in {letter.recipient for letter in letters}.difference(neighbours):
            raise _peer_error(
                f"user {stranger} is no registered neighbour of user {sender}", Reason.UNKNOWN
            )
        if not is_even(self._terms, (letter.recipient for letter in letters)):
            raise _peer_error(
                f"user {sender} did not send each neighbour {self._terms.per_neighbour} envelopes",
                Reason.MALFORMED,
            )

    def close_round(self, round_number: int) -> None:
        """Close a round and open the next, or the handing in after the last."""
        now = self._store.round_number()
        if not 1 <= round_number <= min(now, self._terms.rounds):
            raise ProtocolError(
                f"round {round_number} cannot be closed in round {now} of {self._terms.rounds}",
                fault=Fault.CALLER,
                reason=Reason.EARLY,
            )
        if round_number == now:
            self._store.set_round_number(now + 1)

    def _require_closed(self, round_number: int) -> None:
        """Raise unless a round is over."""
        now = self._store.round_number()
        if not 1 <= round_number < now:
            raise _peer_error(f"round {round_number} is not over: it is round {now}", Reason.EARLY)

    def absent(self, round_number: int) -> tuple[int, ...]:
        """Return the registered users who sent nothing in a round that is over, ascending."""
        self._require_closed(round_number)
        if round_number not in self._absent:
            senders = self._store.senders(round_number)
            away = tuple(node for node in self.roster.nodes if node not in senders)
            self._absent[round_number] = away
        return self._absent[round_number]

    def absences(self) -> NDArray[np.bool_]:
        """Return who sent nothing in which round, one row a round; who never registered, in all."""
        away = np.ones((self._terms.rounds, self._terms.num_users), dtype=bool)
        for row in range(self._terms.rounds):
            self._require_closed(row + 1)
            away[row, sorted(self._store.senders(row + 1))] = False
        return away

    def mail(self, node: int, round_number: int, token: bytes) -> bytes:
        """Return what was sent to a user in a round that is over, and who was absent in it.

        The same each time, until he sends something: then he had taken the mail, and it was
        forgotten.
        """
        roster = self.roster
        if not roster.is_registered(node):
            raise _peer_error(f"user {node} is not in the roster", Reason.UNKNOWN)
        self._require_closed(round_number)
        text = mail_token_text(self._terms, node, round_number)
        if not is_signed(token, roster[node].identity_key, text):
            raise _peer_error(f"the token for the mail of user {node} is not his", Reason.FORGED)
        if self._has_taken(node, round_number):
            raise _peer_error(
                f"user {node} has taken the mail of round {round_number}, for he went on, and it "
                "was deleted: is this a copy of his state, or an old one?",
                Reason.LATE,
            )
        mail = Mail(
            absent=self.absent(round_number),
            letters=tuple(self._store.mail(round_number, node)),
            codes=self._store.codes(round_number, node),
        )
        return encode_mail(mail, roster=roster, round_number=round_number, recipient=node)

    def _has_taken(self, node: int, round_number: int) -> bool:
        """Return whether a user sent anything that is sent after taking the mail of a round."""
        later = range(round_number + 1, self._store.round_number() + 1)
        return self._store.hand_in(node) is not None or any(
            self._store.batch(number, node) is not None for number in later
        )

    def accept_hand_in(self, data: bytes, *, node: int | None = None) -> bool:
        """Take what a holder hands in, after the last round; return whether it is new."""
        holder, _ = decode_hand_in(data, terms=self._terms, roster=self.roster)
        _require_named("user", holder, node)
        kept = self._store.hand_in(holder)
        if _is_known(kept, data, f"user {holder} has handed in something else"):
            return False
        now = self._store.round_number()
        if now <= self._terms.rounds:
            raise _peer_error(f"user {holder} hands in during round {now}", Reason.EARLY)
        self._store.put_hand_in(holder, data)
        return True

    def hand_ins(self, token: bytes) -> tuple[bytes, ...]:
        """Return what was handed in, holders ascending, to the analyzer only."""
        self._require_analyzer(token)
        kept = tuple(data for _, data in self._store.hand_ins())
        if not all(kept):
            raise ProtocolError(
                "what was handed in was deleted here when the analyzer had stored it: use the file "
                "beside the analyzer's key",
                fault=Fault.ANALYZER,
                reason=Reason.LATE,
            )
        return kept

    def forget_hand_ins(self, token: bytes) -> None:
        """Forget what was handed in, which the analyzer has stored; it may be said again."""
        self._require_analyzer(token)
        self._store.forget_hand_ins()

    def _require_analyzer(self, token: bytes) -> None:
        """Raise unless a token is the analyzer's."""
        text = hand_ins_token_text(self._terms)
        if not is_signed(token, self._terms.analyzer_identity_key, text):
            raise ProtocolError(
                "the token for what was handed in is not the analyzer's",
                fault=Fault.ANALYZER,
                reason=Reason.FORGED,
            )


def _peer_error(message: str, reason: Reason) -> ProtocolError:
    """Return an error about what a peer sent."""
    return ProtocolError(message, fault=Fault.PEER, reason=reason)


def _require_named(what: str, named: int, wanted: int | None) -> None:
    """Raise if a message names another user or round than what was said beside it."""
    if wanted is not None and named != wanted:
        raise _peer_error(
            f"the message is of {what} {named}, and was sent as of {what} {wanted}",
            Reason.MALFORMED,
        )


def _is_known(kept: bytes | None, data: bytes, conflict: str) -> bool:
    """Return whether the same is kept; raise if something else is."""
    if kept is not None and kept != data:
        raise _peer_error(f"{conflict}: it stands", Reason.CONFLICT)
    return kept is not None
