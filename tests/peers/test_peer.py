"""A peer: steps in order, nothing drawn twice, nothing lost, and no message makes it stop."""

import dataclasses
from collections import Counter

import pytest

from peers import exercises
from peers.exercises import GRAPH, KEYS, Scene, reports_of, ring, terms_on
from peers.link import no_limits
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.peers.keys import Registration, Roster
from shuffledp.peers.mail import Refusal, decode_batch, lock_envelope, open_report, seal_report
from shuffledp.peers.peer import Peer, permuted

ANY = no_limits(terms_on())
ENTROPY = Entropy.from_seed(4)


def refusal(call):
    with pytest.raises(ProtocolError) as caught:
        call()
    return caught.value.fault, caught.value.reason


@pytest.fixture
def scene():
    return Scene()


def all_held(scene):
    """Who holds which report, by the analyzer's key."""
    return sorted(
        open_report(inner, scene.terms, KEYS)
        for peer in scene.peers.values()
        for inner in peer.state.held
    )


# ---------------------------------------------------------------- making one
@pytest.mark.parametrize(
    ("node", "report", "message"),
    [
        (8, b"abcd", r"node = 8 is not in \[0, 8\)"),
        (-1, b"abcd", "node = -1"),
        (0, b"abc", "the report has 3 bytes, not the 4 of the terms"),
    ],
)
def test_a_peer_fits_its_terms(node, report, message):
    with pytest.raises(ParameterError, match=message):
        Peer.create(terms_on(), GRAPH, node, report, ENTROPY, limits=ANY)


def test_a_peer_registers_with_the_same_bytes():
    terms = terms_on()
    peer = Peer.create(terms, GRAPH, 3, b"abcd", ENTROPY, limits=ANY)
    assert peer.state.registration == peer.state.registration
    assert Registration.from_bytes(peer.state.registration, terms).node == 3
    assert (peer.node, len(peer.state.held), peer.state.received_through, peer.state.sent_in) == (
        3,
        1,
        0,
        0,
    )
    assert not peer.state.handed_in


# ---------------------------------------------------------------- the roster
def test_nothing_happens_before_the_roster():
    peer = Peer.create(terms_on(), GRAPH, 3, b"abcd", ENTROPY, limits=ANY)
    for call in (lambda: peer.outgoing(1), lambda: peer.receive(1, b""), peer.hand_in):
        assert refusal(call) == (Fault.CALLER, Reason.EARLY)


def test_a_roster_of_other_terms(scene):
    assert refusal(lambda: scene.peers[0].begin(Scene().roster)) == (Fault.RELAY, Reason.MISMATCH)


def test_a_roster_without_the_user_or_with_other_keys(scene):
    terms = scene.terms
    peer = Peer.create(terms, GRAPH, 0, b"abcd", ENTROPY, limits=ANY)
    found = [scene.roster, Roster(terms, [])]
    for roster in found:
        assert refusal(lambda roster=roster: peer.begin(roster)) == (Fault.RELAY, Reason.CONFLICT)


def test_another_roster_than_before(scene):
    less = Roster(scene.terms, [scene.roster[node] for node in (0, 1, 2)])
    assert refusal(lambda: scene.peers[0].begin(less)) == (Fault.RELAY, Reason.CONFLICT)
    restored = Peer.from_bytes(scene.peers[0].state.to_bytes(), scene.terms, GRAPH, ENTROPY)
    assert refusal(lambda: restored.begin(less)) == (Fault.RELAY, Reason.CONFLICT)


def test_peers_with_different_rosters_cannot_exchange():
    # The relay shows user 0 a roster without user 7: then nothing of user 0 opens elsewhere.
    scene = Scene()
    short = Roster(scene.terms, [scene.roster[node] for node in range(7)])
    split = Peer.from_bytes(scene.registered[0], scene.terms, GRAPH, ENTROPY, limits=ANY)
    split.begin(short)
    found = refusal(lambda: scene.relay.accept_batch(split.outgoing(1)))
    assert found == (Fault.PEER, Reason.MISMATCH)


# ---------------------------------------------------------------- sending
def test_a_batch_is_drawn_once(scene):
    peer = scene.peers[0]
    first = peer.outgoing(1)
    assert peer.outgoing(1) == first
    assert peer.state.sent_in == 1
    scene.round(1)
    second = peer.outgoing(2)
    assert second == peer.outgoing(2) != first
    assert refusal(lambda: peer.outgoing(1)) == (Fault.CALLER, Reason.LATE)


def test_rounds_come_in_turn(scene):
    peer = scene.peers[0]
    assert refusal(lambda: peer.outgoing(2)) == (Fault.CALLER, Reason.EARLY)
    for wrong in (0, 3):
        assert refusal(lambda wrong=wrong: peer.outgoing(wrong)) == (
            Fault.CALLER,
            Reason.MALFORMED,
        )
    assert refusal(lambda: peer.receive(2, b"")) == (Fault.CALLER, Reason.EARLY)
    assert refusal(lambda: peer.receive(0, b"")) == (Fault.CALLER, Reason.EARLY)
    assert refusal(peer.hand_in) == (Fault.CALLER, Reason.EARLY)


def test_recipients_are_neighbours_and_covers_spread_over_all():
    scene = Scene(terms_on(failure=1e-9, rounds=1))
    batch = decode_batch(scene.peers[0].outgoing(1), scene.roster)
    assert batch.sender == 0
    assert len(batch.letters) == scene.terms.slots[0]
    assert {letter.recipient for letter in batch.letters} <= {1, 2, 6, 7}


def test_even_traffic_serves_each_neighbour_the_same():
    terms = terms_on(even_traffic=True, laziness=0.25)
    scene = Scene(terms)
    for peer in scene.peers.values():
        batch = decode_batch(peer.outgoing(1), scene.roster)
        counts = Counter(letter.recipient for letter in batch.letters)
        row = GRAPH.neighbours[GRAPH.starts[peer.node] : GRAPH.starts[peer.node + 1]].tolist()
        assert counts == dict.fromkeys(row, terms.per_neighbour)


def test_the_place_of_the_report_in_a_batch_is_anywhere():
    places = set()
    for seed in range(60):
        peer = Scene(terms_on(rounds=1, failure=0.3), seed=seed).peers[0]
        reports = [(1, inner) for inner in peer.state.held]
        contents = permuted(peer._entropy, peer._with_covers(reports))
        places.add([inner is None for _, inner in contents].index(False))
    # 60 seeds, drawn once for all: each of at most 7 places is missed by (6/7)^60 < 1e-4.
    assert places == set(range(peer._terms.slots[0]))


# ---------------------------------------------------------------- batches that came too late
def test_a_late_batch_is_taken_back(scene):
    scene.send(1, nodes=range(1, 8))
    late = scene.peers[0].outgoing(1)
    scene.relay.go_on()
    assert refusal(lambda: scene.relay.accept_batch(late)) == (Fault.PEER, Reason.LATE)
    scene.peers[0].take_back(1)
    # Not drawn anew in the same round: the relay has seen where the first one went.
    assert refusal(lambda: scene.peers[0].outgoing(1)) == (Fault.CALLER, Reason.LATE)
    scene.receive(1)
    assert all_held(scene) == reports_of(8)
    assert scene.relay.absent(1) == (0,)
    scene.round(2)
    assert all_held(scene) == reports_of(8)


def test_there_is_nothing_to_take_back(scene):
    peer = scene.peers[0]
    assert refusal(lambda: peer.take_back(1)) == (Fault.CALLER, Reason.LATE)
    scene.round(1)
    assert refusal(lambda: peer.take_back(1)) == (Fault.CALLER, Reason.LATE)


def test_a_batch_is_taken_back_once(scene):
    peer = scene.peers[0]
    peer.outgoing(1)
    peer.take_back(1)
    assert len(peer.state.held) == 1
    assert refusal(lambda: peer.take_back(1)) == (Fault.CALLER, Reason.LATE)
    assert len(peer.state.held) == 1


# ---------------------------------------------------------------- receiving
def mail_with(scene, letters, recipient=1):
    return exercises.mail_with(letters, roster=scene.roster, recipient=recipient)


def written(scene, *, sender=0, index=0, locker=None, inner=None, recipient=1):
    return lock_envelope(
        inner or seal_report(b"evil", scene.terms),
        scene.roster,
        scene.pairs_of(sender if locker is None else locker),
        (1, sender, recipient, index),
    )


def test_mail_is_taken_once(scene):
    scene.send(1)
    scene.relay.go_on()
    peer = scene.peers[1]
    packet = scene.packet(1, 1)
    peer.receive(1, packet)
    held, tally = len(peer.state.held), peer.state.counts
    peer.receive(1, packet)
    peer.receive(1, b"anything")
    assert (len(peer.state.held), peer.state.counts) == (held, tally)


def test_a_packet_that_cannot_be_read_changes_nothing(scene):
    scene.send(1)
    scene.relay.go_on()
    peer = scene.peers[1]
    before = peer.state.to_bytes()
    packet = scene.packet(1, 1)
    for bad in (b"", packet[:-1], packet + b"x", scene.packet(2, 1)):
        with pytest.raises(ProtocolError):
            peer.receive(1, bad)
        assert peer.state.to_bytes() == before
    peer.receive(1, packet)
    assert peer.state.received_through == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda scene: [written(scene, locker=2)], Refusal.UNOPENED),
        (lambda scene: [written(scene, sender=4, locker=0)], Refusal.STRANGER),
        (lambda scene: [written(scene)] * 2, Refusal.DUPLICATE),
        (lambda scene: [dataclasses.replace(written(scene), index=5)], Refusal.UNOPENED),
        (
            lambda scene: [
                written(scene, inner=scene.peers[1].state.held[0]),
            ],
            Refusal.DUPLICATE,
        ),
        (
            lambda scene: [
                written(scene, inner=scene.peers[5].state.held[0], index=index) for index in (0, 1)
            ],
            Refusal.DUPLICATE,
        ),
    ],
)
def test_single_letters_that_are_refused(scene, make, reason):
    peer = scene.peers[1]
    letters = make(scene)
    peer.receive(1, mail_with(scene, letters))
    assert peer.state.counts[reason.name] == 1
    assert len(peer.state.held) == len(letters)  # its own, and those that are in order
    assert peer.state.counts["report"] == len(letters) - 1


def test_a_forged_letter_does_not_keep_the_true_one_out(scene):
    true = written(scene)
    forged = dataclasses.replace(true, sealed=bytes(len(true.sealed)))
    peer = scene.peers[1]
    peer.receive(1, mail_with(scene, [forged, true]))
    assert peer.state.counts["report"] == 1


def test_what_is_counted(scene):
    scene.round(1)
    tallies = [peer.state.counts for peer in scene.peers.values()]
    assert sum(tally["report"] for tally in tallies) == 8
    assert sum(tally["cover"] for tally in tallies) == sum(scene.terms.slots) - 8
    assert all(
        set(tally) <= {"report", "cover", "dropped", "absent"} and tally["dropped"] == 0
        for tally in tallies
    )


# ---------------------------------------------------------------- handing in
def test_what_is_handed_in_is_drawn_once(scene):
    scene.round(1)
    scene.round(2)
    peer = scene.peers[0]
    assert peer.hand_in() == peer.hand_in()
    assert peer.state.handed_in
    assert scene.restore(0, peer.state.to_bytes()).hand_in() == peer.hand_in()


# ---------------------------------------------------------------- snapshots
def test_a_restored_peer_does_what_the_first_would_have_done(scene):
    peer = scene.peers[0]
    batch = peer.outgoing(1)
    again = scene.restore(0, peer.state.to_bytes())
    assert again.outgoing(1) == batch
    assert again.state.to_bytes() == peer.state.to_bytes()
    again.take_back(1)
    assert len(again.state.held) == 1
    scene.round(1)
    after = scene.restore(0, peer.state.to_bytes())
    assert (
        after.state.received_through,
        after.state.sent_in,
        len(after.state.held),
        after.state.counts,
    ) == (
        1,
        1,
        len(peer.state.held),
        peer.state.counts,
    )


def test_a_snapshot_of_before_the_roster():
    terms = terms_on()
    peer = Peer.create(terms, GRAPH, 3, b"abcd", ENTROPY, limits=ANY)
    again = Peer.from_bytes(peer.state.to_bytes(), terms, GRAPH, ENTROPY)
    assert again.state.registration == peer.state.registration


@pytest.mark.parametrize("place", [0, 4, 60, 300, -1])
def test_a_damaged_snapshot(scene, place):
    data = bytearray(scene.peers[0].state.to_bytes())
    data[place] ^= 1
    found = refusal(lambda: scene.restore(0, bytes(data)))
    assert found == (Fault.CALLER, Reason.MALFORMED)


@pytest.mark.parametrize("size", [0, 10, 40, -1])
def test_a_snapshot_cut_short(scene, size):
    data = scene.peers[0].state.to_bytes()[:size]
    assert refusal(lambda: scene.restore(0, data)) == (Fault.CALLER, Reason.MALFORMED)


def test_a_snapshot_of_other_terms(scene):
    data = scene.peers[0].state.to_bytes()
    found = refusal(lambda: Peer.from_bytes(data, terms_on(), GRAPH, ENTROPY))
    assert found == (Fault.CALLER, Reason.MISMATCH)


def test_rings_differ():
    assert ring(8).num_edges == 16
