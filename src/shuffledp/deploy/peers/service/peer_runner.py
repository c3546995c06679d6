"""Peers at work: many users in one process, from registration to handing in.

The order of steps is what makes it safe to stop at any moment. A report is drawn once and saved
before anything else; what a peer is about to send is saved before it is sent; what came is saved
before the next round, without the keys that opened it. Whatever was on its way is asked for, or
sent, again.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.deploy.peers.protocol.errors import ProtocolError
from shuffledp.deploy.peers.protocol.keys import Roster
from shuffledp.deploy.peers.protocol.limits import DEFAULT_LIMITS, Limits
from shuffledp.deploy.peers.protocol.peer import Peer
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.errors import RelayRefusalError
from shuffledp.deploy.peers.service.peer_store import PeerStore
from shuffledp.deploy.peers.service.relay_client import RelayClient, RelayStatus
from shuffledp.network.graph import Graph

_LATE = 410
_SHORTEST_WAIT = 0.05
_LONGEST_WAIT = 2.0
_MAIL_ATTEMPTS = 3


def no_roster(_: str) -> None:
    """Take no notice of the roster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersOutcome:
    """How it went for the users of one process.

    Parameters
    ----------
    num_users : int
        How many there are.
    late : tuple of int
        Nodes that came after registration had ended: they took no part.
    lost : tuple of int
        Nodes that came after handing in had ended: the reports they held are missing.
    withheld : tuple of int
        Nodes that were absent too often, by their limits, and handed in nothing.
    roster : str
        Digest of the roster, in hexadecimal; empty before there was one.
    absences : int
        In how many rounds a user was absent, over all users.
    num_dropped : int
        Reports dropped because a user held more than slots.
    num_late_reports : int
        Reports lost because their way, drawn beforehand, met an absence.
    refused : dict
        How many envelopes were refused, by reason.
    short : tuple of int
        Nodes that missed something that was sent to them, or heard of others who did.
    transcripts : tuple of str
        Digests of who was absent when, as the relay showed it to those who handed in: one digest,
        and the same for all users, or it showed them different things.
    """

    num_users: int
    late: tuple[int, ...]
    lost: tuple[int, ...]
    withheld: tuple[int, ...]
    roster: str
    absences: int
    num_dropped: int
    num_late_reports: int
    refused: dict[str, int]
    short: tuple[int, ...]
    transcripts: tuple[str, ...]

    @property
    def num_handed_in(self) -> int:
        """How many handed in."""
        return self.num_users - len(self.late) - len(self.lost) - len(self.withheld)


@dataclass(slots=True, kw_only=True)
class PeerRunner:
    """Plays the peers of a store against a relay.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    store : PeerStore
        With the peers.
    nodes : sequence of int
        Which of them to play; all are in the store.
    client : RelayClient
        The relay.
    entropy : Entropy
        Source of randomness.
    limits : Limits
        What each of them agrees to.
    on_progress : callable
        Called with the stage, and how many steps are done.
    on_roster : callable
        Called with the digest of the roster, in hexadecimal, before anything is sent by it.
    """

    terms: Terms
    graph: Graph
    store: PeerStore
    nodes: Sequence[int]
    client: RelayClient
    entropy: Entropy
    limits: Limits = DEFAULT_LIMITS
    on_progress: Progress = no_progress
    on_roster: Callable[[str], None] = no_roster
    _peers: dict[int, Peer] = field(default_factory=dict, init=False)
    _registered: set[int] = field(default_factory=set, init=False)
    _sent: set[tuple[int, int]] = field(default_factory=set, init=False)
    _handed_in: set[int] = field(default_factory=set, init=False)
    _late: set[int] = field(default_factory=set, init=False)
    _withheld: set[int] = field(default_factory=set, init=False)
    _lost: set[int] = field(default_factory=set, init=False)
    _roster: str = field(default="", init=False)

    def __post_init__(self) -> None:
        states = self.store.states()
        ended = {
            "handed in": self._handed_in,
            "late": self._late,
            "lost": self._lost,
            "withheld": self._withheld,
        }
        for node in self.nodes:
            ended.get(states[node].decode(errors="replace"), set()).add(node)
        self._peers = {
            node: Peer.from_bytes(
                states[node], self.terms, self.graph, self.entropy, limits=self.limits
            )
            for node in self.nodes
            if node not in self._done()
        }

    def run(self) -> PeersOutcome:
        """Take part until all have handed in, or the collection is over; then forget it.

        Returns
        -------
        PeersOutcome
            How it went.

        Raises
        ------
        DataError
            If the relay serves another collection.
        RelayError
            If the relay gives no answer for too long.
        RelayRefusalError
            If it refuses what an honest peer sends, for example since somebody else plays the
            same user.
        ProtocolError
            If it breaks the protocol.
        """
        wait = _SHORTEST_WAIT
        while not self._is_done():
            status = self.client.status()
            if status.terms_digest != self.terms.digest().hex():
                raise DataError(
                    "the relay serves a collection with other terms: check the URL and the file"
                )
            if status.phase == "over":
                break
            has_moved = self.step(status)
            wait = _SHORTEST_WAIT if has_moved else min(1.5 * wait, _LONGEST_WAIT)
            if not self._is_done():
                time.sleep(wait)
        self._lost |= set(self.nodes) - self._done()
        outcome = self._outcome()
        self.store.bury(
            (node, end)
            for end, nodes in (
                ("handed in", self._handed_in),
                ("late", self._late),
                ("lost", self._lost),
                ("withheld", self._withheld),
            )
            for node in nodes
        )
        return outcome

    def _is_done(self) -> bool:
        """Return whether nobody has anything left to do."""
        return self._done() == set(self.nodes)

    def _done(self) -> set[int]:
        """Return who has nothing left to do."""
        return self._handed_in | self._late | self._lost | self._withheld

    def step(self, status: RelayStatus) -> bool:
        """Do what the present phase asks for; `run` does this until all is done.

        Parameters
        ----------
        status : RelayStatus
            Of the relay, just now.

        Returns
        -------
        bool
            Whether there was anything to do.
        """
        self.on_progress("rounds", status.round, status.rounds)
        if status.phase == "registration":
            return self._register()
        self._begin()
        if status.phase == "round":
            has_received = self._receive_through(status.round - 1)
            return self._send(status.round) or has_received
        has_received = self._receive_through(status.rounds)
        return self._hand_in() or has_received

    def _register(self) -> bool:
        """Register those who have not since this process began."""
        new = [node for node in self._peers if node not in self._registered]
        for node in new:
            try:
                self.client.register(node, self._peers[node].registration())
            except RelayRefusalError as error:
                if error.status != _LATE:  # it ended just now: the roster will tell
                    raise
            self._registered.add(node)
        return bool(new)

    def _begin(self) -> None:
        """Take the roster, once a process: checking it costs a signature a user."""
        if self._roster:
            return
        roster = Roster.from_bytes(self.client.roster(), self.terms)
        self._late |= {node for node in self._peers if not roster.is_registered(node)}
        for peer in self._active().values():
            peer.begin(roster)
        self._roster = roster.digest().hex()
        self.on_roster(self._roster)

    def _active(self) -> dict[int, Peer]:
        """Return the peers that take part."""
        return {node: peer for node, peer in self._peers.items() if node not in self._late}

    def _receive_through(self, last: int) -> bool:
        """Take the mail of all rounds up to ``last``, one round after the other."""
        active = self._active()
        first = min((peer.received_through for peer in active.values()), default=last) + 1
        for number in range(first, last + 1):
            behind = {node: p for node, p in active.items() if p.received_through < number}
            for node, peer in behind.items():
                self._settle(number, node, peer)
                self._receive(number, node, peer)
            self._save(behind)
            self.store.wipe_log()  # it still has the keys of that round
        return first <= last

    def _settle(self, number: int, node: int, peer: Peer) -> None:
        """Find out whether what was drawn for a closed round had reached the relay."""
        if (number, node) in self._sent:
            return
        if peer.sent_in == number:
            try:
                self.client.send(number, node, peer.outgoing(number))
            except RelayRefusalError as error:
                if error.status != _LATE:
                    raise
                peer.take_back(number)

    def _receive(self, number: int, node: int, peer: Peer) -> None:
        """Take the mail of a closed round; what was damaged on the way is asked for again."""
        for attempt in range(_MAIL_ATTEMPTS):
            packet = self.client.mail(number, node, peer.mail_token(number))
            try:
                peer.receive(number, packet)
            except ProtocolError:
                if attempt + 1 == _MAIL_ATTEMPTS:
                    raise
            else:
                return

    def _send(self, number: int) -> bool:
        """Send in the open round, saved first."""
        new = {
            node: peer for node, peer in self._active().items() if (number, node) not in self._sent
        }
        batches = {node: peer.outgoing(number) for node, peer in new.items()}
        self._save(new)
        for node, batch in batches.items():
            try:
                self.client.send(number, node, batch)
            except RelayRefusalError as error:
                if error.status != _LATE:  # the round ended just now: `_settle` takes it back
                    raise
                return True
            self._sent.add((number, node))
        return bool(new)

    def _hand_in(self) -> bool:
        """Hand in, saved first."""
        self._withheld |= {node for node, peer in self._active().items() if peer.withholds}
        new = {node: peer for node, peer in self._active().items() if node not in self._done()}
        handed = {node: peer.hand_in() for node, peer in new.items()}
        self._save(new)
        for node, data in handed.items():
            try:
                self.client.hand_in(node, data)
            except RelayRefusalError as error:
                if error.status != _LATE:  # it is over: the outcome counts them as lost
                    raise
                return True
            self._handed_in.add(node)
        return bool(new)

    def _save(self, peers: dict[int, Peer]) -> None:
        """Save some peers together."""
        if peers:
            self.store.save([(node, peer.to_bytes()) for node, peer in peers.items()])

    def _outcome(self) -> PeersOutcome:
        """Return how it went."""
        active = self._active()
        tallies = [peer.tally for peer in active.values()]
        confirmations = {node: peer.confirmation for node, peer in active.items()}
        return PeersOutcome(
            num_users=len(self.nodes),
            late=tuple(sorted(self._late)),
            lost=tuple(sorted(self._lost)),
            withheld=tuple(sorted(self._withheld)),
            roster=self._roster,
            absences=sum(tally.num_absent for tally in tallies),
            num_dropped=sum(tally.num_dropped for tally in tallies),
            num_late_reports=sum(tally.num_late for tally in tallies),
            refused=dict(sum((Counter(tally.refused) for tally in tallies), Counter())),
            short=tuple(node for node, said in confirmations.items() if said.short_since),
            transcripts=tuple(
                sorted(
                    {
                        confirmations[node].transcript.hex()
                        for node in self._handed_in & active.keys()
                    }
                )
            ),
        )
