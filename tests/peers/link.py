"""A whole collection in memory: peers, relay and analyzer, with faults to inject.

For simulations and tests. All messages pass as bytes, with the real encryption.
"""

import atexit
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, SupportsFloat, SupportsIndex
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from peers.faults import PerfectTransport, Transport
from shuffledp import Categories
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.wire import ProtocolError
from shuffledp.network.graph import Graph
from shuffledp.peers.exchange_account import ExchangeRecord, messages_for
from shuffledp.peers.keys import PrivateKeys, Roster, hand_ins_token_text
from shuffledp.peers.mail import Collected, open_all
from shuffledp.peers.peer import Peer
from shuffledp.peers.relay import Relay
from shuffledp.peers.terms import Limits, Terms, graph_digest, new_collection_id

_NEVER = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong in a collection.

    Parameters
    ----------
    unregistered : frozenset of int
        Users who never register.
    absent : mapping of int to set of int
        Rounds in which a user sends nothing; he fetches his mail when he returns.
    gone_from : mapping of int to int
        Round from which on a user never returns.
    relay_restarts : frozenset of int
        Rounds in the middle of which the relay stops and starts again on its store.
    peer_restarts : frozenset of int
        Rounds in which every peer stops after sending, starts again from the snapshot before,
        and sends again.
    """

    unregistered: frozenset[int] = frozenset()
    absent: Mapping[int, frozenset[int]] = field(default_factory=dict)
    gone_from: Mapping[int, int] = field(default_factory=dict)
    relay_restarts: frozenset[int] = frozenset()
    peer_restarts: frozenset[int] = frozenset()

    def is_gone(self, node: int, round_number: int) -> bool:
        """Return whether a user has gone for good."""
        return round_number >= self.gone_from.get(node, _NEVER)

    def is_absent(self, node: int, round_number: int) -> bool:
        """Return whether a user does nothing in a round."""
        return self.is_gone(node, round_number) or round_number in self.absent.get(node, ())


NO_FAULTS = Faults()


def no_limits(terms: Terms) -> Limits:
    """Return the limits of who agrees to everything."""
    return Limits(
        most_epsilon0=math.inf,
        least_users=1,
        most_megabytes=math.inf,
        most_unmoved=1.0,
        most_absences=terms.rounds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkResult:
    """What came of a collection in memory.

    Parameters
    ----------
    collected : Collected
        What the analyzer has.
    absences : ndarray of bool, shape (rounds, num_users)
        The relay's record.
    tallies : mapping of int to Counter
        What each peer counted.
    num_refused : int
        Batches that the relay refused.
    """

    collected: Collected
    absences: NDArray[np.bool_]
    tallies: Mapping[int, Counter[str]]
    num_refused: int


@cache
def asked_of(report_bytes: int, epsilon0: float = 2.0) -> AskedTerms:
    """Return a question whose reports have so many bytes, any of which a user may send."""
    answers = Categories([str(each) for each in range(8 * report_bytes)])
    return AskedTerms.of(answers, "symmetric-unary", epsilon0)


def simple_terms(  # one keyword an option
    graph: Graph,
    keys: PrivateKeys,
    *,
    rounds: SupportsIndex,
    report_bytes: int = 4,
    epsilon0: float = 2.0,
    laziness: SupportsFloat = 0.0,
    protocol: Literal["all", "single"] = "all",
    failure: SupportsFloat = 1e-9,
    even_traffic: bool = False,
    least_registered: int = 1,
    entropy: Entropy | None = None,
) -> Terms:
    """Return the terms of a new collection on a graph, with the slots that it needs.

    Parameters
    ----------
    graph : Graph
        Who can send to whom.
    keys : PrivateKeys
        Of which the terms name the public halves.
    rounds, laziness, failure
        See `messages_for`.
    report_bytes, epsilon0
        Of the randomizer: a bit a possible answer.
    protocol, least_registered
        See `Terms`.
    even_traffic : bool
        Whether each neighbour is sent the same number of messages; see `messages_for`.
    entropy : Entropy, optional
        For the name of the collection; from the operating system if left out.

    Returns
    -------
    Terms
    """
    how = {"laziness": laziness, "failure": failure, "even_traffic": even_traffic}
    slots, each = messages_for(graph, rounds=rounds, **how)
    return Terms(
        collection_id=new_collection_id(entropy or Entropy.from_operating_system()),
        graph_digest=graph_digest(graph),
        num_users=graph.num_users,
        rounds=int(rounds),
        laziness=float(laziness),
        slots=tuple(slots.tolist()),
        asked=asked_of(report_bytes, epsilon0),
        analyzer_mail_key=keys.mail_key,
        analyzer_identity_key=keys.identity_key,
        protocol=protocol,
        per_neighbour=each,
        least_registered=least_registered,
    )


#: For clients of a relay whose answers may have any size.
ANY_SIZE = dict.fromkeys(("roster", "mail", "hand-ins", "record"), 1 << 26)

_FOLDERS = ExitStack()
atexit.register(_FOLDERS.close)


def new_folder() -> str:
    """Return a folder that is there until the tests are over."""
    return _FOLDERS.enter_context(TemporaryDirectory())


def quick_relay(terms: Terms, graph: Graph, folder: str) -> Relay:
    """Return a relay on a file in a folder, which no power cut reaches."""
    relay = Relay(Path(folder) / "relay.db", terms, graph)
    finalize(relay, relay._connection.close)  # no test does; Python 3.13 warns of open ones
    relay.rows("PRAGMA synchronous = OFF")
    return relay


class Link:
    """A collection in memory, from registration to the opened reports.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    keys : PrivateKeys
        Of the terms.
    reports : sequence of bytes, length num_users
        The users' randomized reports.
    entropy : Entropy
        For the routes.
    transport : Transport, optional
        What happens on the way.
    faults : Faults, optional
        What else goes wrong.
    on_progress : callable, optional
        Called with the number of each round that is over.

    Raises
    ------
    ParameterError
        If there is not one report a user.
    ProtocolError
        If the graph is not the one of the terms.

    Notes
    -----
    Cost: with 14 slots and 20 neighbours 1.2 ms a user and round, and 1.2 ms a user to begin.
    More threads do not help, for the encryption holds Python's lock.
    """

    def __init__(
        self,
        terms: Terms,
        graph: Graph,
        keys: PrivateKeys,
        reports: Sequence[bytes],
        *,
        entropy: Entropy,
        transport: Transport | None = None,
        faults: Faults = NO_FAULTS,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        if len(reports) != terms.num_users:
            raise ParameterError(
                f"there are {len(reports)} reports for {terms.num_users} users: give one a user"
            )
        self._terms, self._graph, self._keys = terms, graph, keys
        self._entropy = entropy
        self._transport = transport or PerfectTransport()
        self._faults = faults
        self._on_progress = on_progress
        self._folder = new_folder()
        self._relay = quick_relay(terms, graph, self._folder)
        self._num_refused = 0
        self._peers = {
            node: Peer.create(terms, graph, node, report, entropy, limits=no_limits(terms))
            for node, report in enumerate(reports)
            if node not in faults.unregistered
        }

    def run(self) -> LinkResult:
        """Run the collection to its end and return what came of it."""
        roster = self._register()
        for round_number in range(1, self._terms.rounds + 1):
            self._send_all(round_number)
            self._relay.go_on()
            self._receive_all(round_number, roster)
            if self._on_progress is not None:
                self._on_progress(round_number)
        after = self._terms.rounds + 1
        for node, peer in self._peers.items():
            if not self._faults.is_gone(node, after):
                self._catch_up(peer, self._terms.rounds, roster)
                self._relay.accept_hand_in(peer.hand_in())
        self._relay.go_on()
        token = self._keys.sign(hand_ins_token_text(self._terms))
        record = ExchangeRecord.of(self._terms, roster, self._relay.record(token))
        found = LinkResult(
            collected=open_all(self._relay.hand_ins(token), roster, self._keys),
            absences=record.absences,
            tallies={node: peer.state.counts for node, peer in self._peers.items()},
            num_refused=self._num_refused,
        )
        self._relay.close()
        return found

    def _register(self) -> Roster:
        """Register all peers, and give them the roster."""
        for peer in self._peers.values():
            self._relay.register(peer.state.registration)
        self._relay.go_on()
        roster = Roster.from_bytes(self._relay.roster.to_bytes(), self._terms)
        for peer in self._peers.values():
            peer.begin(roster)
        return roster

    def _send_all(self, round_number: int) -> None:
        """Send the batches of a round."""
        half = len(self._peers) // 2
        for position, (node, peer) in enumerate(self._peers.items()):
            if position == half and round_number in self._faults.relay_restarts:
                self._relay.close()
                self._relay = quick_relay(self._terms, self._graph, self._folder)
            if not self._faults.is_absent(node, round_number):
                self._send(node, peer, round_number)

    def _send(self, node: int, peer: Peer, round_number: int) -> None:
        """Send one batch, perhaps again after a restart."""
        data = peer.outgoing(round_number)
        if round_number in self._faults.peer_restarts:
            snapshot = peer.state.to_bytes()
            self._deliver(data, round_number, node)
            roster = self._relay.roster
            limits = no_limits(self._terms)
            peer = Peer.from_bytes(snapshot, self._terms, self._graph, self._entropy, limits=limits)
            peer.begin(roster)
            self._peers[node] = peer
            data = peer.outgoing(round_number)
        self._deliver(data, round_number, node)

    def _deliver(self, data: bytes, round_number: int, node: int) -> None:
        """Hand the relay what arrives of a batch."""
        for message in self._transport.to_relay(data, round_number=round_number, sender=node):
            try:
                self._relay.accept_batch(message)
            except ProtocolError:
                self._num_refused += 1

    def _receive_all(self, round_number: int, roster: Roster) -> None:
        """Let all who will be there in the next round take their mail."""
        for node in self._relay.absent(round_number):
            self._settle(self._peers[node], round_number)
        for node, peer in self._peers.items():
            if not self._faults.is_absent(node, round_number + 1):
                self._catch_up(peer, round_number, roster)

    def _settle(self, peer: Peer, round_number: int) -> None:
        """Send a batch again after its round; take it back if it was not accepted in time."""
        if peer.state.sent_in == round_number:
            try:
                self._relay.accept_batch(peer.outgoing(round_number))
            except ProtocolError:
                self._num_refused += 1
                peer.take_back(round_number)

    def _catch_up(self, peer: Peer, through: int, roster: Roster) -> None:
        """Let a peer take the mail of all rounds that are over, trying until it can be read."""
        for round_number in range(peer.state.received_through + 1, through + 1):
            token = peer.mail_token(round_number)
            packet = self._relay.mail(peer.node, round_number, token)
            arriving = self._transport.to_peer(
                packet, round_number=round_number, recipient=peer.node, roster=roster
            )
            any(_can_read(peer, round_number, attempt) for attempt in (*arriving, packet))


def _can_read(peer: Peer, round_number: int, packet: bytes) -> bool:
    """Give a peer its mail, and return whether the packet could be read."""
    try:
        peer.receive(round_number, packet)
    except ProtocolError:
        return False
    return True
