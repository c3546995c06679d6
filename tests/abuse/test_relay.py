"""A malicious relay against the real peers."""

import math
from dataclasses import replace

import pytest

from shuffledp.collection.protocol.errors import Fault, ProtocolError, Reason
from shuffledp.collection.protocol.keys import AnalyzerKeys, Roster
from shuffledp.collection.protocol.limits import Limits
from shuffledp.collection.protocol.link import simple_terms
from shuffledp.collection.protocol.peer import Peer
from shuffledp.collection.protocol.relay import RelayCore
from shuffledp.collection.protocol.store import MemoryStore
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.mechanisms.networks.families import complete_graph

NUM_USERS, ROUNDS, VICTIM = 6, 4, 3
GRAPH = complete_graph(NUM_USERS)
ANY = Limits(most_epsilon0=math.inf, least_users=1)


class Collection:
    """Peers with their roster, and a relay that refuses every batch of one of them."""

    def __init__(self, **limits) -> None:
        keys = AnalyzerKeys.generate()
        self.terms = simple_terms(GRAPH, keys, rounds=ROUNDS, report_bytes=4)
        self.entropy = Entropy.from_seed(5)
        self.relay = RelayCore(self.terms, GRAPH, MemoryStore())
        self.peers = [
            Peer.create(
                self.terms, GRAPH, node, bytes(4), self.entropy, limits=replace(ANY, **limits)
            )
            for node in range(NUM_USERS)
        ]
        for peer in self.peers:
            self.relay.register(peer.registration())
        self.relay.start()
        self.roster = Roster.from_bytes(self.relay.roster.to_bytes(), self.terms)

    def run(self, refused_rounds):
        for peer in self.peers:
            peer.begin(self.roster)
        for number in range(1, ROUNDS + 1):
            for peer in self.peers:
                batch = peer.outgoing(number)
                if peer.node == VICTIM and number in refused_rounds:
                    peer.take_back(number)  # the answer was 410
                else:
                    self.relay.accept_batch(batch)
            self.relay.close_round(number)
            for peer in self.peers:
                token = peer.mail_token(number)
                peer.receive(number, self.relay.mail(peer.node, number, token))


def test_a_report_that_never_moved_is_not_handed_in():
    collection = Collection()
    collection.run(range(1, ROUNDS + 1))
    victim = collection.peers[VICTIM]
    assert victim.tally.num_absent == ROUNDS
    assert victim.withholds
    with pytest.raises(ProtocolError, match="absent in 4 of 4 rounds") as found:
        victim.hand_in()
    assert (found.value.fault, found.value.reason) == (Fault.RELAY, Reason.LIMIT)
    assert all(not peer.withholds for peer in collection.peers if peer is not victim)


@pytest.mark.parametrize(("most", "missed", "hands_in"), [(None, 1, True), (None, 2, False),
                                                          (2, 2, True), (0, 1, False)])  # fmt: skip
def test_absences_are_counted_across_restarts(most, missed, hands_in):
    collection = Collection(most_absences=most)
    collection.run(range(1, missed + 1))
    peer = Peer.from_bytes(
        collection.peers[VICTIM].to_bytes(), collection.terms, GRAPH, collection.entropy,
        limits=replace(ANY, most_absences=most),
    )  # fmt: skip
    peer.begin(collection.roster)
    assert peer.withholds is not hands_in
    if hands_in:
        assert collection.relay.accept_hand_in(peer.hand_in())


def test_fewer_than_no_absences_are_refused():
    with pytest.raises(ParameterError, match="most_absences"):
        Limits(most_absences=-1)


def test_another_roster_than_the_one_required_is_refused():
    collection = Collection(roster_digest=bytes(32))
    with pytest.raises(ProtocolError, match="roster with the digest") as found:
        collection.peers[0].begin(collection.roster)
    assert (found.value.fault, found.value.reason) == (Fault.RELAY, Reason.MISMATCH)
    digest = collection.roster.digest()
    peer = Peer.from_bytes(
        collection.peers[0].to_bytes(), collection.terms, GRAPH, collection.entropy,
        limits=replace(ANY, roster_digest=digest),
    )  # fmt: skip
    peer.begin(collection.roster)
