"""A peer: one user's side of the exchange, as a state machine that survives being killed.

Each round r has three steps, in this order: ``outgoing(r)`` gives the batch to send, the relay
closes the round, ``receive(r, packet)`` takes what came. A user who is away in round r leaves out
the first step; his reports stay. Nothing is drawn twice: what has been drawn for a round is kept,
and given again when asked again.
"""

import hmac
from collections import defaultdict
from typing import Self

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.peers.protocol.keys import (
    Pairs,
    PrivateKeys,
    Registration,
    Roster,
    first_secrets,
    mail_token,
)
from shuffledp.deploy.peers.protocol.messages import (
    Batch,
    Confirmation,
    Letter,
    Mail,
    Refusal,
    decode_mail,
    delivery_code,
    encode_batch,
    encode_hand_in,
    first_transcript,
    lock_envelope,
    next_transcript,
    num_places,
    open_envelope,
    seal_report,
)
from shuffledp.deploy.peers.protocol.peer_state import PeerState
from shuffledp.deploy.peers.protocol.routes import (
    batch_size,
    choice,
    draw_step,
    permuted,
    registered_neighbours,
)
from shuffledp.deploy.peers.protocol.terms import DEFAULT_LIMITS, Limits, Terms
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.network.graph import Graph


class Peer:
    """One user's side; made by `create` or, from a snapshot, by `from_bytes`.

    Save the bytes of its ``state`` after each step and *before* sending what it gave: a peer that
    starts again from there sends the same bytes. Keys are forgotten as soon as they have served;
    older snapshots still have them, and have to be overwritten.
    """

    __slots__ = (
        "_entropy", "_graph", "_limits", "_neighbours", "_pairs", "_roster", "_terms", "state",
    )  # fmt: skip

    def __init__(
        self, terms: Terms, graph: Graph, state: PeerState, entropy: Entropy, limits: Limits
    ) -> None:
        self._terms = terms
        self._limits = limits
        self._graph = graph
        self.state = state
        self._entropy = entropy
        self._roster: Roster | None = None
        self._pairs: Pairs | None = None
        self._neighbours: tuple[int, ...] = ()

    @classmethod
    def create(
        cls,
        terms: Terms,
        graph: Graph,
        node: int,
        report: bytes,
        entropy: Entropy,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Self:
        """Return the peer of a user, with fresh keys, who holds his own report, sealed here, once.

        The entropy is for the routes, and may serve all peers of a process; keys and seals always
        come from the operating system. `Terms.require_graph` checks the graph, once for all peers.
        """
        limits.require_terms(terms, graph, node)
        if len(report) != terms.report_bytes:
            raise ParameterError(
                f"the report has {len(report)} bytes, not the {terms.report_bytes} of the terms"
            )
        keys = PrivateKeys.generate()
        state = PeerState(
            terms_digest=terms.digest(),
            node=node,
            keys=keys,
            registration=Registration.make(terms, node, keys).to_bytes(),
            held=[seal_report(report, terms)],
        )
        return cls(terms, graph, state, entropy, limits)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        terms: Terms,
        graph: Graph,
        entropy: Entropy,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Self:
        """Return the peer of a snapshot; call `begin` with the roster again, if that was done."""
        return cls(terms, graph, PeerState.from_bytes(data, terms), entropy, limits)

    @property
    def node(self) -> int:
        """The user."""
        return self.state.node

    @property
    def withholds(self) -> bool:
        """Whether the user was absent too often, by his limits, to hand in anything."""
        absences = self.state.counts["absent"]
        return not self.state.handed_in and absences > self._limits.allowed_absences(self._terms)

    @property
    def confirmation(self) -> Confirmation:
        """What the user says of the delivery so far; its transcript may be compared with others.

        Something counts as missing from the round on in which a neighbour's code did not fit what
        came, or the relay showed the user as absent who was not, or the other way round.
        """
        state = self.state
        return Confirmation(transcript=state.transcript, short_since=state.short_since)

    def mail_token(self, round_number: int) -> bytes:
        """Return what to show the relay for the mail of one round."""
        return mail_token(self.state.keys, self._terms, self.node, round_number)

    def begin(self, roster: Roster) -> None:
        """Take the roster, verified by `Roster.from_bytes`, with the keys of all who take part.

        The first time the secrets with neighbours are made here, and the key that makes them is
        forgotten.
        """
        state = self.state
        if roster.terms_digest != state.terms_digest:
            raise _relay_error("the roster is of other terms", Reason.MISMATCH)
        if state.roster_digest not in {b"", roster.digest()}:
            raise _relay_error("the relay shows another roster than before", Reason.CONFLICT)
        own = roster[self.node].to_bytes() if roster.is_registered(self.node) else None
        if own != state.registration:
            what = "is missing" if own is None else "has been replaced"
            raise _relay_error(f"the registration of user {self.node} {what}", Reason.CONFLICT)
        self._limits.require_roster(roster.num_registered, roster.digest())
        self._roster = roster
        self._neighbours = registered_neighbours(self._graph, roster, self.node)
        state.transcript = state.transcript or first_transcript(roster)
        if not state.roster_digest:
            state.secrets = first_secrets(state.keys, self._neighbours, roster)
        state.roster_digest = roster.digest()
        self._pairs = Pairs(
            state.secrets,
            node=self.node,
            round_number=state.received_through + 1,
            context=roster.context,
        )

    def _begun(self) -> tuple[Roster, Pairs]:
        """Return the roster and what was made with it, else raise."""
        if self._roster is None or self._pairs is None:
            raise _caller_error("there is no roster yet: call begin first", Reason.EARLY)
        return self._roster, self._pairs

    def outgoing(self, round_number: int) -> bytes:
        """Return the batch to send in a round; the same when asked again. Save before sending it.

        Each report stays with probability ``laziness``, by a coin of its own, or moves to a
        registered neighbour, exactly uniform.
        Covers go to uniform neighbours, or fill up what goes to each; the order of all is uniform.
        Of more reports than there is room for, the surplus is dropped, chosen uniformly.
        """
        roster, _ = self._begun()
        state = self.state
        if round_number == state.sent_in and state.batch:
            return state.batch
        if not 1 <= round_number <= self._terms.rounds:
            raise _caller_error(
                f"round {round_number} is not in [1, {self._terms.rounds}]", Reason.MALFORMED
            )
        if round_number != state.received_through + 1 or round_number == state.sent_in:
            raise _caller_error(
                f"no batch can be drawn for round {round_number}: mail was taken through round "
                f"{state.received_through}, and the last batch was of round {state.sent_in}",
                Reason.EARLY if round_number > state.received_through + 1 else Reason.LATE,
            )
        self._drop_surplus()
        staying, moving = draw_step(state.held, self._neighbours, self._terms, self._entropy)
        contents = self._contents(moving)
        letters = self._letters(contents, round_number)
        batch = Batch(
            round_number=round_number,
            sender=self.node,
            letters=tuple(letters),
            codes=self._codes_for(letters, round_number),
        )
        state.batch = encode_batch(batch, roster=roster, keys=state.keys)
        state.held, state.sent_in = staying, round_number
        state.moving = [content for _, content in contents if content is not None]
        return state.batch

    def _drop_surplus(self) -> None:
        """Keep as many reports as slots, chosen uniformly."""
        room = self._terms.slots[self.node]
        held = permuted(self._entropy, self.state.held)
        self.state.counts["dropped"] += max(len(held) - room, 0)
        self.state.held = held[:room]

    def _contents(self, moving: list[tuple[int, bytes]]) -> list[tuple[int, bytes | None]]:
        """Return recipient and content of each envelope of a round, in uniform order."""
        if not self._neighbours:
            return []
        if self._terms.per_neighbour:
            return permuted(self._entropy, self._filled_up(moving))
        covers = batch_size(self._terms, self.node, self._neighbours) - len(moving)
        to = [choice(self._entropy, self._neighbours) for _ in range(covers)]
        return permuted(self._entropy, [*moving, *((neighbour, None) for neighbour in to)])

    def _filled_up(self, routed: list[tuple[int, bytes]]) -> list[tuple[int, bytes | None]]:
        """Return the same number of envelopes to each neighbour; a surplus is dropped.

        The reports stand in uniform order already, so that the last ones are a uniform choice.
        """
        room = self._terms.per_neighbour
        even: list[tuple[int, bytes | None]] = []
        for neighbour in self._neighbours:
            own = [item for item in routed if item[0] == neighbour]
            self.state.counts["dropped"] += max(len(own) - room, 0)
            even += [*own[:room], *[(neighbour, None)] * (room - len(own))]
        return even

    def _letters(self, contents: list[tuple[int, bytes | None]], round_number: int) -> list[Letter]:
        """Return the envelopes of a round, locked."""
        roster, pairs = self._begun()
        return [
            lock_envelope(
                content,
                terms=self._terms,
                roster=roster,
                pairs=pairs,
                round_number=round_number,
                sender=self.node,
                recipient=recipient,
                index=index,
            )
            for index, (recipient, content) in enumerate(contents)
        ]

    def _codes_for(self, letters: list[Letter], round_number: int) -> tuple[bytes, ...]:
        """Return a code over what goes to each neighbour."""
        by_recipient: dict[int, list[bytes]] = defaultdict(list)
        for letter in letters:
            by_recipient[letter.recipient].append(letter.sealed)
        return tuple(
            self._code(neighbour, (self.node, neighbour), round_number, by_recipient[neighbour])
            for neighbour in self._neighbours
        )

    def _code(
        self, neighbour: int, way: tuple[int, int], round_number: int, sealed: list[bytes]
    ) -> bytes:
        """Return the code over what goes to a neighbour, or should have come from there."""
        _, pairs = self._begun()
        sender, recipient = way
        return delivery_code(
            pairs[neighbour].code,
            round_number=round_number,
            sender=sender,
            recipient=recipient,
            transcript=self.state.shown_transcript,
            sealed=sealed,
        )

    def take_back(self, round_number: int) -> None:
        """Take back the reports of a batch that came too late: the user was absent.

        Call this only if the relay refused the batch with `Reason.LATE`: it acknowledges one that
        it has accepted at any time.
        """
        state = self.state
        if round_number != state.sent_in or not state.moving_is_open:
            raise _caller_error(
                f"there is no batch of round {round_number} to take back", Reason.LATE
            )
        state.held = [*state.held, *state.moving]
        state.batch, state.moving = b"", []

    def receive(self, round_number: int, packet: bytes) -> None:
        """Take the mail of a round that is over, in turn; nothing happens if that was done.

        A packet that as a whole cannot be read, or is of another round or user, raises: fetch it
        again. Single envelopes that are forged, replayed, repeated or changed are counted in
        `counts` and left out. What is missing shows in `confirmation`. The keys of the round are
        forgotten then.
        """
        roster, pairs = self._begun()
        state = self.state
        if not 1 <= round_number <= min(state.received_through + 1, self._terms.rounds):
            raise _caller_error(
                f"mail of round {round_number} does not follow round {state.received_through}, "
                "the last whose mail was taken",
                Reason.EARLY,
            )
        if round_number <= state.received_through:
            return
        mail = decode_mail(
            packet,
            terms=self._terms,
            roster=roster,
            round_number=round_number,
            recipient=self.node,
        )
        if not state.short_since and not self._is_whole(mail, round_number):
            state.short_since = round_number
        state.transcript = next_transcript(state.transcript, round_number, mail.absent)
        state.counts["absent"] += not self._was_there(round_number)
        state.held = [*state.held, *self._opened(mail)]
        state.batch, state.moving, state.received_through = b"", [], round_number
        pairs.forget()

    def _was_there(self, round_number: int) -> bool:
        """Return whether a batch went out in a round, and was not taken back."""
        return self.state.sent_in == round_number and bool(self.state.batch)

    def _is_whole(self, mail: Mail, round_number: int) -> bool:
        """Return whether all came that those neighbours sent who are not said to be absent."""
        if self._was_there(round_number) == (self.node in mail.absent):
            return False
        by_sender: dict[int, dict[int, bytes]] = defaultdict(dict)
        for letter in mail.letters:
            by_sender[letter.sender].setdefault(letter.index, letter.sealed)
        for neighbour in self._senders(mail):
            came = [sealed for _, sealed in sorted(by_sender[neighbour].items())]
            wanted = self._code(neighbour, (neighbour, self.node), round_number, came)
            if not hmac.compare_digest(mail.codes.get(neighbour, b""), wanted):
                return False
        return True

    def _senders(self, mail: Mail) -> frozenset[int]:
        """Return the neighbours who are not said to be absent."""
        return frozenset(self._neighbours).difference(mail.absent)

    def _opened(self, mail: Mail) -> list[bytes]:
        """Return the reports in the envelopes, and count these by kind."""
        roster, pairs = self._begun()
        senders = self._senders(mail)
        places: set[tuple[int, int]] = set()
        known = set(self.state.held)
        taken: list[bytes] = []
        for letter in mail.letters:
            place = (letter.sender, letter.index)
            if letter.sender not in senders:
                content: bytes | Refusal | None = Refusal.STRANGER
            elif place in places:
                content = Refusal.DUPLICATE
            else:
                content = open_envelope(letter, terms=self._terms, roster=roster, pairs=pairs)
            if not isinstance(content, Refusal):
                places.add(place)
            if content is None:
                kind = "cover"
            elif isinstance(content, Refusal) or content in known:
                kind = (content if isinstance(content, Refusal) else Refusal.DUPLICATE).name
            else:
                kind = "report"
                known.add(content)
                taken.append(content)
            self.state.counts[kind] += 1
        return taken

    def hand_in(self) -> bytes:
        """Return what to hand in at the end; the same when asked again. Save before sending it.

        It has as many places as slots (one, under the protocol "single"), filled up with empty
        ones, in uniform order.
        """
        roster, _ = self._begun()
        state = self.state
        if state.handed_in:
            return state.handed_in
        if state.received_through < self._terms.rounds:
            raise _caller_error(
                f"round {state.received_through} of {self._terms.rounds} is the last whose mail "
                "was taken: take the rest first",
                Reason.EARLY,
            )
        if self.withholds:
            raise _relay_error(
                f"user {self.node} was absent in {state.counts['absent']} of {self._terms.rounds} "
                "rounds, more than he allows, and hands in nothing",
                Reason.LIMIT,
            )
        self._drop_surplus()
        room = num_places(self._terms, self.node)
        chosen: list[bytes | None] = [*permuted(self._entropy, state.held)[:room]]
        chosen += [None] * (room - len(chosen))
        state.handed_in = encode_hand_in(
            permuted(self._entropy, chosen),
            self.confirmation,
            terms=self._terms,
            roster=roster,
            keys=state.keys,
            holder=self.node,
        )
        state.held = []
        return state.handed_in


def _caller_error(message: str, reason: Reason) -> ProtocolError:
    """Return an error about the order of calls."""
    return ProtocolError(message, fault=Fault.CALLER, reason=reason)


def _relay_error(message: str, reason: Reason) -> ProtocolError:
    """Return an error about what the relay shows."""
    return ProtocolError(message, fault=Fault.RELAY, reason=reason)
