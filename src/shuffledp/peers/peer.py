"""A peer: one user's side of the exchange, as a state machine that survives being killed.

Each round r has three steps, in this order: ``outgoing(r)`` gives the batch to send, the relay
closes the round, ``receive(r, packet)`` takes the mail. A user who is away in round r leaves out
the first step; the reports stay. Nothing is drawn twice: a batch drawn for a round is kept, and
returned again when asked again.
"""

import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import compress
from typing import Any, Final, Self, TypeVar

from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import ParameterError
from shuffledp.deploy import wire
from shuffledp.deploy.wire import Fault, Reason
from shuffledp.network.graph import Graph
from shuffledp.peers import mail as messages
from shuffledp.peers.keys import Pairs, PrivateKeys, Registration, Roster, mail_token_text
from shuffledp.peers.mail import Confirmation, Letter, Mail, Refusal
from shuffledp.peers.terms import COIN_SIDES, LIMITS, Limits, Terms

_Item = TypeVar("_Item")

_MAGIC: Final = b"SPS\x05"


@dataclass(slots=True, kw_only=True)
class PeerState:
    """The state of a peer; secret."""

    # Digest of the collection's terms.
    terms_digest: bytes
    # The user.
    node: int
    # Private keys that are still needed.
    keys: PrivateKeys
    # The registration as it was sent.
    registration: bytes
    # Reports that the user holds, in their inner seals.
    held: list[bytes]
    # By registered neighbour, for the round after ``received_through``; see `Pairs`. Empty before
    # the roster is taken.
    secrets: dict[int, bytes] = field(default_factory=dict)
    # Empty before the roster is taken.
    roster_digest: bytes = b""
    # The last round whose mail has been taken, and for which a batch was drawn; 0 at first.
    received_through: int = 0
    sent_in: int = 0
    # The batch of round ``sent_in``, until the mail of this round is taken; empty if there is
    # none.
    batch: bytes = b""
    # Reports in that batch, while it may still be taken back.
    moving: list[bytes] = field(default_factory=list)
    # Empty before handing in.
    handed_in: bytes = b""
    # Envelopes taken with a "report" and as "cover", reports "dropped" for lack of room, rounds
    # "absent" among those whose mail was taken, and envelopes refused, by the name of the
    # `Refusal`; only the user may see it.
    counts: Counter[str] = field(default_factory=Counter)
    # Absences in the rounds whose mail was taken; empty before the roster is taken.
    transcript: bytes = b""
    # Round in which something was first found missing; 0 if nothing was.
    short_since: int = 0

    def to_bytes(self) -> bytes:
        """Return private keys and reports, unencrypted, with a checksum; keep it secret."""
        plain: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        plain |= {"keys": self.keys.to_bytes(), "secrets": [*self.secrets.items()]}
        body = _MAGIC + self.terms_digest + json.dumps(plain, default=bytes.hex).encode()
        return body + wire.digest(b"snapshot", body)

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return the state that `to_bytes` wrote; raise if it is damaged or of other terms."""
        reader = wire.Reader(data, "snapshot", Fault.CALLER)
        body = data[: -wire.DIGEST_BYTES]
        if data[len(body) :] != wire.digest(b"snapshot", body):
            raise reader.error("its checksum does not fit: it is damaged")
        reader.expect(_MAGIC, "it is of another version")
        reader.expect(terms.digest(), "it is of other terms", Reason.MISMATCH)
        plain = json.loads(body[len(reader.read_so_far()) :])
        texts = {name: bytes.fromhex(each) for name, each in plain.items() if isinstance(each, str)}
        plain |= texts | {"keys": PrivateKeys.from_bytes(texts["keys"])}
        plain |= {name: [*map(bytes.fromhex, plain[name])] for name in ("held", "moving")}
        plain["secrets"] = {node: bytes.fromhex(secret) for node, secret in plain["secrets"]}
        plain["counts"] = Counter(plain["counts"])
        return cls(**plain)


def permuted(entropy: Entropy, items: Sequence[_Item]) -> list[_Item]:
    """Return the items in an order drawn uniformly from all orders (Fisher and Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = int(draw_below(entropy, 1, last + 1)[0])
        order[last], order[other] = order[other], order[last]
    return order


def _choice(entropy: Entropy, items: Sequence[_Item]) -> _Item:
    """Return one of the items, at least one, each with equal probability."""
    return items[int(draw_below(entropy, 1, len(items))[0])]


def draw_step(
    held: Sequence[bytes], neighbours: tuple[int, ...], terms: Terms, entropy: Entropy
) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """Draw the reports that stay, each by an independent coin, and destinations of the others."""
    if not neighbours:
        return [*held], []
    lazy = draw_below(entropy, len(held), COIN_SIDES) < terms.coin
    leaving = [*compress(held, ~lazy)]
    return [*compress(held, lazy)], [(_choice(entropy, neighbours), inner) for inner in leaving]


class Peer:
    """One user's side; made by `create` or, from a snapshot, by `from_bytes`.

    Save the bytes of its ``state`` after each step and *before* sending its result: a peer that
    starts again from there sends the same bytes. Keys are forgotten as soon as they are not needed;
    older snapshots still have them, and must be overwritten.
    """

    def __init__(
        self, terms: Terms, graph: Graph, state: PeerState, entropy: Entropy, limits: Limits
    ) -> None:
        self._terms, self._graph, self._limits = terms, graph, limits
        self._entropy, self.state = entropy, state
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
        limits: Limits = LIMITS,
        dummies: Sequence[bytes] = (),
    ) -> Self:
        """Return a user's peer with fresh keys, the user's own report and dummies, sealed once.

        The entropy is for the routes, and may serve all peers of a process; keys and seals always
        come from the operating system. `Terms.require_graph` checks the graph, once for all peers.
        """
        limits.require_terms(terms, graph, node)
        reports = report, *dummies
        if {len(each) for each in reports} != {terms.report_bytes}:
            raise ParameterError(
                f"the report has {len(report)} bytes, not the {terms.report_bytes} of the terms"
            )
        keys = PrivateKeys.generate()
        state = PeerState(
            terms_digest=terms.digest(),
            node=node,
            keys=keys,
            registration=Registration.make(terms, node, keys).to_bytes(),
            held=sorted(messages.seal_report(each, terms) for each in reports),
        )
        return cls(terms, graph, state, entropy, limits)

    @classmethod
    def from_bytes(
        cls, data: bytes, terms: Terms, graph: Graph, entropy: Entropy, *, limits: Limits = LIMITS
    ) -> Self:
        """Return the peer of a snapshot; call `begin` with the roster again, if that was done."""
        return cls(terms, graph, PeerState.from_bytes(data, terms), entropy, limits)

    @property
    def node(self) -> int:
        """The user."""
        return self.state.node

    @property
    def withholds(self) -> bool:
        """True if the user was absent too often, by their limits, to hand in anything."""
        absences = self.state.counts["absent"]
        return not self.state.handed_in and absences > self._limits.allowed_absences(self._terms)

    @property
    def confirmation(self) -> Confirmation:
        """Statement on the delivery so far; its transcript may be compared with other users'.

        Something counts as missing from the round on in which a neighbour's code did not fit the
        received envelopes, or the relay reported the user's own absence wrongly.
        """
        state = self.state
        return Confirmation(transcript=state.transcript, short_since=state.short_since)

    def mail_token(self, round_number: int) -> bytes:
        """Return the token that entitles the user to the mail of one round."""
        return self.state.keys.sign(mail_token_text(self._terms, self.node, round_number))

    def begin(self, roster: Roster) -> None:
        """Take the roster, verified by `Roster.from_bytes`, with the keys of all participants.

        The first call makes the secrets with neighbours, and forgets the key from which they are
        made.
        """
        state = self.state
        if roster.terms.digest() != state.terms_digest:
            raise Fault.RELAY.error("the roster is of other terms", Reason.MISMATCH)
        if state.roster_digest not in {b"", roster.digest()}:
            raise Fault.RELAY.error("the relay shows another roster than before", Reason.CONFLICT)
        own = roster[self.node].to_bytes() if self.node in roster else None
        if own != state.registration:
            what = "is missing" if own is None else "has been replaced"
            raise Fault.RELAY.error(f"the registration of user {self.node} {what}", Reason.CONFLICT)
        self._limits.require_roster(len(roster), roster.digest())
        self._roster, self._neighbours = roster, roster.neighbours_in(self._graph, self.node)
        state.transcript = state.transcript or messages.first_transcript(roster)
        if not state.roster_digest:
            state.secrets = {
                neighbour: state.keys.shared(roster[neighbour].mail_key, roster.context)
                for neighbour in self._neighbours
            }
            state.keys.forget_mail()
        state.roster_digest = roster.digest()
        number = state.received_through + 1
        self._pairs = Pairs(state.secrets, self.node, number, roster.context)

    def _begun(self) -> tuple[Roster, Pairs]:
        """Return the roster and the keys of the round; raise before `begin`."""
        if self._roster is None or self._pairs is None:
            raise Fault.CALLER.error("there is no roster yet: call begin first", Reason.EARLY)
        return self._roster, self._pairs

    def outgoing(self, round_number: int) -> bytes:
        """Return the batch to send in a round; the same when asked again. Save before sending it.

        Each report stays with probability ``laziness``, by a coin of its own, or moves to a
        registered neighbour, exactly uniform. Covers go to uniform neighbours, or fill up each
        neighbour's share; the order of all is uniform. If there are more reports than slots, the
        surplus is dropped, chosen uniformly.
        """
        roster, pairs = self._begun()
        state, node = self.state, self.node
        if round_number == state.sent_in and state.batch:
            return state.batch
        if not 1 <= round_number <= self._terms.rounds:
            raise Fault.CALLER.error(f"round {round_number} is not in [1, {self._terms.rounds}]")
        if round_number != state.received_through + 1 or round_number == state.sent_in:
            through, last = state.received_through, state.sent_in
            what = f"no batch can be drawn for round {round_number}: mail was taken through round "
            what += f"{through}, and the last batch was of round {last}"
            is_early = round_number > through + 1
            raise Fault.CALLER.error(what, Reason.EARLY if is_early else Reason.LATE)
        self._drop_surplus()
        staying, moving = draw_step(state.held, self._neighbours, self._terms, self._entropy)
        contents = permuted(self._entropy, self._with_covers(moving))
        letters: list[Letter] = []
        by_recipient: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for index, (recipient, content) in enumerate(contents):
            place = (round_number, node, recipient, index)
            letters.append(messages.lock_envelope(content, roster, pairs, place))
            by_recipient[recipient].append((index, letters[-1].sealed))
        codes = [self._code((round_number, node, to), by_recipient[to]) for to in self._neighbours]
        batch = messages.Batch(
            round_number=round_number, sender=node, letters=tuple(letters), codes=tuple(codes)
        )
        state.batch = messages.encode_batch(batch, roster, state.keys)
        state.held, state.sent_in = staying, round_number
        state.moving = [content for _, content in contents if content is not None]
        return state.batch

    def _drop_surplus(self) -> None:
        """Keep a uniform choice of reports, at most one for each slot."""
        room = self._terms.slots[self.node]
        held = permuted(self._entropy, self.state.held)
        self.state.counts["dropped"] += max(len(held) - room, 0)
        self.state.held = held[:room]

    def _with_covers(self, moving: list[tuple[int, bytes]]) -> list[tuple[int, bytes | None]]:
        """Return recipient and content of each envelope of a round: reports, and covers.

        If each neighbour gets the same number, a surplus is dropped. The reports stand in uniform
        order already, so that the last ones are a uniform choice.
        """
        room, neighbours = self._terms.per_neighbour, self._neighbours
        if not room:
            covers = self._terms.batch_size(self.node, len(neighbours)) - len(moving)
            to = [_choice(self._entropy, neighbours) for _ in range(covers)]
            return [*moving, *((neighbour, None) for neighbour in to)]
        even: list[tuple[int, bytes | None]] = []
        for neighbour in neighbours:
            own = [item for item in moving if item[0] == neighbour]
            self.state.counts["dropped"] += max(len(own) - room, 0)
            even += [*own[:room], *[(neighbour, None)] * (room - len(own))]
        return even

    def _code(self, place: tuple[int, int, int], envelopes: list[tuple[int, bytes]]) -> bytes:
        """Return the code over the envelopes to a neighbour, or expected from one."""
        _, pairs = self._begun()
        _, sender, recipient = place
        # Once something was missing, a code that fits no neighbour's.
        transcript = b"" if self.state.short_since else self.state.transcript
        key = pairs[recipient if sender == self.node else sender].code
        return messages.delivery_code(key, place, transcript, envelopes)

    def take_back(self, round_number: int) -> None:
        """Take back the reports of a batch that came too late: the user was absent.

        Call this only if the relay refused the batch with `Reason.LATE`: it acknowledges an
        accepted batch at any time.
        """
        state = self.state
        is_open = state.batch and state.sent_in > state.received_through
        if round_number != state.sent_in or not is_open:
            raise Fault.CALLER.error(f"no batch of round {round_number} to take back", Reason.LATE)
        state.held = [*state.held, *state.moving]
        state.batch, state.moving = b"", []

    def receive(self, round_number: int, packet: bytes) -> None:
        """Take the mail of a finished round, in turn; do nothing if it was taken already.

        A packet that as a whole cannot be read, or is of another round or user, raises: fetch it
        again. Single envelopes that are forged, replayed, repeated or changed are counted in
        `counts` and left out. Missing envelopes show in `confirmation`. The keys of the round are
        forgotten then.
        """
        roster, pairs = self._begun()
        state = self.state
        if not 1 <= round_number <= min(state.received_through + 1, self._terms.rounds):
            last = f"round {state.received_through}, the last whose mail was taken"
            what = f"mail of round {round_number} does not follow {last}"
            raise Fault.CALLER.error(what, Reason.EARLY)
        if round_number <= state.received_through:
            return
        mail = messages.decode_mail(packet, roster, round_number=round_number, recipient=self.node)
        # True if a batch went out in the round, and was not taken back.
        was_there = state.sent_in == round_number and bool(state.batch)
        is_told = was_there != (self.node in mail.absent)
        if not state.short_since and not (is_told and self._is_whole(mail, round_number)):
            state.short_since = round_number
        state.transcript = messages.next_transcript(state.transcript, round_number, mail.absent)
        state.counts["absent"] += not was_there
        state.held = [*state.held, *self._opened(mail)]
        state.batch, state.moving, state.received_through = b"", [], round_number
        pairs.forget()

    def _is_whole(self, mail: Mail, round_number: int) -> bool:
        """Return True if all envelopes came from neighbours not reported as absent."""
        by_sender: dict[int, dict[int, bytes]] = defaultdict(dict)
        for letter in mail.letters:
            by_sender[letter.sender].setdefault(letter.index, letter.sealed)
        for neighbour in set(self._neighbours).difference(mail.absent):
            came = sorted(by_sender[neighbour].items())
            wanted = self._code((round_number, neighbour, self.node), came)
            if not hmac.compare_digest(mail.codes.get(neighbour, b""), wanted):
                return False
        return True

    def _opened(self, mail: Mail) -> list[bytes]:
        """Return the reports in the envelopes, and count the envelopes by kind."""
        roster, pairs = self._begun()
        senders = set(self._neighbours).difference(mail.absent)
        places: set[tuple[int, int]] = set()
        known, taken = set(self.state.held), []
        for letter in mail.letters:
            place = (letter.sender, letter.index)
            content: bytes | Refusal | None = Refusal.DUPLICATE
            if letter.sender not in senders:
                content = Refusal.STRANGER
            elif place not in places:
                content = messages.open_envelope(letter, roster, pairs)
            if not isinstance(content, Refusal):
                places.add(place)
            if content in known:
                content = Refusal.DUPLICATE
            if isinstance(content, bytes):
                known.add(content)
                taken.append(content)
            kind = getattr(content, "name", "report" if content else "cover")
            self.state.counts[kind] += 1
        return taken

    def hand_in(self) -> bytes:
        """Return the hand-in; the same when asked again. Save before sending it.

        Its places are the slots (one, under the protocol "single"), filled up with empty ones, in
        uniform order.
        """
        roster, _ = self._begun()
        state = self.state
        if state.handed_in:
            return state.handed_in
        if state.received_through < self._terms.rounds:
            what = f"mail was taken through round {state.received_through} of {self._terms.rounds}"
            raise Fault.CALLER.error(f"{what}: take the rest first", Reason.EARLY)
        if self.withholds:
            missed = f"{state.counts['absent']} of {self._terms.rounds} rounds"
            what = f"user {self.node} was absent in {missed}, more than they allow, and hands in "
            raise Fault.RELAY.error(f"{what}nothing", Reason.LIMIT)
        self._drop_surplus()
        room = messages.num_places(self._terms, self.node)
        chosen: list[bytes | None] = [*permuted(self._entropy, state.held)[:room]]
        chosen = permuted(self._entropy, chosen + [None] * (room - len(chosen)))
        said = self.confirmation
        state.handed_in = messages.encode_hand_in(chosen, said, roster, state.keys, self.node)
        state.held = []
        return state.handed_in
