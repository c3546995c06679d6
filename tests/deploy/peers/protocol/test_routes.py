"""Onions: the same walk, another ciphertext at every hop, one size a round; late ones are lost."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from deploy.peers.protocol import faults
from deploy.peers.protocol.exercises import (
    GRAPH,
    KEYS,
    REPORT_BYTES,
    Scene,
    mail_with,
    reports_of,
    run_link,
    terms_on,
)
from deploy.peers.protocol.faults import FaultyTransport
from deploy.peers.protocol.link import Faults, no_limits
from shuffledp.core.entropy import Entropy
from shuffledp.deploy import wire
from shuffledp.deploy.peers.protocol.analyzer import Analyzer
from shuffledp.deploy.peers.protocol.keys import hand_ins_token
from shuffledp.deploy.peers.protocol.messages import (
    Refusal,
    decode_batch,
    lock_envelope,
    open_envelope,
    open_report,
    seal_report,
)
from shuffledp.deploy.peers.protocol.routes import Draws, HopRouting, OnionRouting, draw_way, wrap
from shuffledp.deploy.sealing import seal
from shuffledp.deploy.wire import ProtocolError, Reason
from shuffledp.network.graph import Graph
from shuffledp.network.walk import RandomWalk, position_distribution

# One comparison of holders with the walk; its negative control counts too.
FALSE_POSITIVE_RATE = 1e-9

ROUNDS = 3
LAYER = 52  # a seal of 48 bytes, and four for the next holder


def onion_terms(graph=GRAPH, **options):
    return terms_on(graph, **{"rounds": ROUNDS, "routing": "onion", "failure": 1e-6, **options})


SCENE = Scene(onion_terms())
TERMS, ROSTER = SCENE.terms, SCENE.roster
INNER = seal_report(b"abcd", TERMS)
WAY = (1, 3, 5)  # of a report of user 0, all of it along edges


def routing_of(node, scene=SCENE):
    return OnionRouting(
        terms=scene.terms,
        graph=scene.graph,
        roster=scene.roster,
        keys=scene.keys_of(node),
        node=node,
        draws=Draws(scene.entropy),
    )


def parted(kept):
    return int.from_bytes(kept[:4], "big"), kept[4:]


def peeled(node, content, round_number, scene=SCENE):
    return routing_of(node, scene).accepted(content, round_number)


def travelling(way=WAY, scene=SCENE):
    """Return what travels of a report in each round, and the report itself after them."""
    contents = [parted(wrap(INNER, way, terms=scene.terms, roster=scene.roster))[1]]
    for round_number, holder in enumerate(way, 1):
        contents.append(parted(peeled(holder, contents[-1], round_number, scene))[1])
    return contents


def way_of(scene, node):
    """Return the way that a user has drawn before round 1, by everybody's keys."""
    (kept,) = scene.peers[node]._state.held
    way = []
    for round_number in range(1, scene.terms.rounds + 1):
        holder, content = parted(kept)
        way.append(holder)
        kept = peeled(holder, content, round_number, scene)
    assert parted(kept)[0] == way[-1]
    assert open_report(parted(kept)[1], terms=scene.terms, keys=KEYS) == reports_of(8)[node]
    return way


def collected_from(scene, absent=()):
    """Hand in for all, and return what the analyzer has."""
    for node, peer in scene.peers.items():
        if node not in absent:
            scene.relay.accept_hand_in(peer.hand_in())
    hand_ins = scene.relay.hand_ins(hand_ins_token(KEYS, scene.terms))
    return Analyzer(scene.terms, KEYS, scene.roster).open(hand_ins)


# ---------------------------------------------------------------- layers
def test_each_holder_takes_off_one_layer_and_learns_the_next():
    kept = wrap(INNER, WAY, terms=TERMS, roster=ROSTER)
    for round_number, (holder, next_holder) in enumerate(zip(WAY, (*WAY[1:], 5), strict=True), 1):
        named, content = parted(kept)
        assert named == holder
        kept = peeled(holder, content, round_number)
        assert parted(kept)[0] == next_holder
    assert parted(kept)[1] == INNER
    assert routing_of(5).inner(kept) == INNER


def test_a_layer_opens_for_its_holder_after_its_round_and_with_its_roster_only():
    first, second, *_ = travelling()
    assert peeled(1, first, 1)[4:] == second
    other = Scene(TERMS)
    for node, round_number, scene in ((2, 1, SCENE), (1, 2, SCENE), (1, 1, other)):
        assert peeled(node, first, round_number, scene) is Refusal.UNOPENED
    assert peeled(1, second, 2) is Refusal.UNOPENED
    assert peeled(1, faults.flipped(first), 1) is Refusal.UNOPENED


@pytest.mark.parametrize(
    ("way", "round_number"),
    [((1, 4, 4), 1), ((1, 9, 9), 1), ((1, 2, 8), 2)],
)
def test_a_layer_that_names_nobody_to_send_to_is_malformed(way, round_number, monkeypatch):
    # User 4 is no neighbour of user 1; users 8 and 9 are nobody. Their keys do not matter.
    monkeypatch.setattr(type(ROSTER), "__getitem__", lambda self, node: self._by_node[node % 8])
    _, content = parted(wrap(INNER, way, terms=TERMS, roster=ROSTER))
    for done in range(1, round_number):
        _, content = parted(peeled(way[done - 1], content, done))
    assert peeled(way[round_number - 1], content, round_number) is Refusal.MALFORMED


def test_nobody_passes_a_report_on_after_the_last_round():
    info = wire.digest(b"layer", ROSTER.context, wire.numbers(ROUNDS, 5))
    content = seal(wire.number(6) + INNER, ROSTER[5].mail_keys[ROUNDS], info)
    assert peeled(5, content, ROUNDS) is Refusal.MALFORMED


def test_an_onion_that_stays_is_opened_where_it_is():
    routing = routing_of(0)
    kept = wrap(INNER, (0, 0, 2), terms=TERMS, roster=ROSTER)
    for round_number in (1, 2):
        step = routing.step([kept], round_number)
        assert (step.moving, step.counts) == ([], Counter())
        (kept,) = step.staying
    step = routing.step([kept], 3)
    assert step.staying == []
    assert [holder for holder, _ in step.moving] == [2]


def test_an_onion_that_stays_and_does_not_open_is_refused():
    step = routing_of(0).step([wire.number(0) + bytes(TERMS.content_bytes(1))], 1)
    assert (step.staying, step.moving) == ([], [])
    assert step.counts == {"UNOPENED": 1}


# ---------------------------------------------------------------- sizes
def test_sizes_are_functions_of_the_terms_and_the_round():
    contents = travelling()
    assert [len(content) for content in contents[:-1]] == [
        TERMS.content_bytes(round_number) for round_number in (1, 2, 3)
    ]
    assert [TERMS.content_bytes(round_number) for round_number in (1, 2, 3)] == [
        REPORT_BYTES + 48 + layers * LAYER for layers in (3, 2, 1)
    ]
    assert TERMS.envelope_bytes == TERMS.envelope_bytes_in(1) == REPORT_BYTES + 65 + 3 * LAYER
    assert terms_on(rounds=3).envelope_bytes_in(2) == REPORT_BYTES + 65


def test_a_report_and_a_cover_have_one_size_in_every_round():
    for round_number, content in enumerate(travelling()[:-1], 1):
        place = {"round_number": round_number, "sender": 0, "recipient": 1, "index": 0}
        common = {"terms": TERMS, "roster": ROSTER}
        report, cover = (
            lock_envelope(each, pairs=SCENE.pairs_of(0), **common, **place)
            for each in (content, None)
        )
        assert len(report.sealed) == len(cover.sealed) == TERMS.envelope_bytes_in(round_number)
        opened = [
            open_envelope(letter, pairs=SCENE.pairs_of(1), **common) for letter in (report, cover)
        ]
        assert opened == [content, None]


@pytest.mark.parametrize("laziness", [0.0, 0.5])
def test_batches_have_one_size_in_a_round_whatever_is_in_them(laziness):
    terms = onion_terms(laziness=laziness)
    sizes = {}

    class Recording(faults.PerfectTransport):
        def to_relay(self, data, *, round_number, sender):
            sizes.setdefault(round_number, set()).add((sender, len(data)))
            return (data,)

    run_link(terms, transport=Recording())
    for round_number in (1, 2, 3):
        each = REPORT_BYTES + 69 + (ROUNDS + 1 - round_number) * LAYER
        head = 112 + 4 + 4 * 16  # with a code for each of four neighbours
        wanted = {(node, head + terms.slots[node] * each) for node in range(8)}
        assert sizes[round_number] == wanted


# ---------------------------------------------------------------- who can match what
def windows(data, size=8):
    return {data[at : at + size] for at in range(len(data) - size + 1)}


def shared(one, other):
    """Return whether two users have seen the same eight bytes anywhere in what they opened."""
    seen = [set().union(*map(windows, contents)) for contents in (one, other)]
    return bool(seen[0] & seen[1])


def test_colluding_holders_with_an_honest_one_between_them_match_no_bytes():
    first, second, third, report = travelling()
    assert report == INNER
    # What each saw: the content of the envelope that came, and what was in it.
    of_1, of_3, of_5 = [first, second], [second, third], [third, report]
    assert not shared(of_1, of_5)
    # Those next to one another know of what they passed on themselves; the analyzer knows the
    # last holder, and nobody before him has seen what he hands in.
    assert shared(of_1, of_3)
    assert shared(of_3, of_5)
    assert not shared(of_3, [report])
    # Hop by hop the same bytes come by everybody.
    hop = HopRouting(TERMS, (1, 2), Draws(SCENE.entropy))
    assert shared([hop.accepted(INNER, 1)], [hop.accepted(INNER, 3)])


def test_the_same_report_on_the_same_way_never_looks_the_same_twice():
    for one, other in zip(travelling()[:-1], travelling()[:-1], strict=True):
        assert not shared([one], [other])


# ---------------------------------------------------------------- the law of the way
UNEVEN = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], num_users=5)


@pytest.mark.parametrize("laziness", [0.0, 0.25])
def test_the_way_is_drawn_as_the_holders_would_draw_it(laziness):
    """Not only in law: from the same words come the same holders."""
    terms = onion_terms(UNEVEN, laziness=laziness, rounds=6)
    scene = Scene(terms, UNEVEN, missing=(1,))
    ways = set()
    for seed in range(50):
        for start in (0, 2, 4):  # user 4 knows nobody
            drawn = draw_way(
                start,
                terms=terms,
                graph=UNEVEN,
                roster=scene.roster,
                draws=Draws(Entropy.from_seed(seed)),
            )
            draws, holder, walked = Draws(Entropy.from_seed(seed)), start, []
            for round_number in range(1, 7):
                neighbours = {0: (2,), 2: (0, 3), 3: (2,), 4: ()}[holder]
                step = HopRouting(terms, neighbours, draws).step([b""], round_number)
                holder = step.moving[0][0] if step.moving else holder
                walked.append(holder)
            assert drawn == tuple(walked)
            ways.add(drawn)
    assert len(ways) > 5


def test_holders_of_whole_collections_follow_the_walk():
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
    terms = onion_terms(graph, rounds=2, laziness=0.25, failure=0.5)
    law = position_distribution(RandomWalk.on(graph, laziness=0.25), 0, 2)
    counts = np.zeros(4)
    for seed in range(60):
        collected = run_link(terms, graph, seed=seed).collected
        for report, holder in zip(collected.reports, collected.holders, strict=True):
            if report == reports_of(4)[0]:
                counts[holder] += 1
    # Hoeffding's inequality for each of the four shares of at most 60 walks.
    margin = math.sqrt(math.log(8 / FALSE_POSITIVE_RATE) / (2 * counts.sum()))
    assert np.abs(counts / counts.sum() - law).max() < margin
    assert np.abs(counts / counts.sum() - [0.0, 0.0, 0.0, 1.0]).max() > margin


def test_reports_go_the_way_that_was_drawn():
    scene = Scene(onion_terms(laziness=0.25))
    ways = [way_of(scene, node) for node in range(8)]
    for round_number in range(1, ROUNDS + 1):
        scene.round(round_number)
        held = Counter(way[round_number - 1] for way in ways)
        assert {node: peer.num_held for node, peer in scene.peers.items()} == {
            node: held[node] for node in range(8)
        }
    collected = collected_from(scene)
    found = dict(zip(collected.reports, collected.holders, strict=True))
    assert found == {report: ways[node][-1] for node, report in enumerate(reports_of(8))}


# ---------------------------------------------------------------- whole collections
@pytest.mark.parametrize("even_traffic", [False, True])
@pytest.mark.parametrize("laziness", [0.0, 0.25])
def test_every_report_arrives_once(laziness, even_traffic):
    terms = onion_terms(laziness=laziness, even_traffic=even_traffic)
    result = run_link(terms)
    assert sorted(result.collected.reports) == reports_of(8)
    assert result.collected.rejected == {}
    assert result.collected.num_covers == sum(terms.slots) - 8
    assert all(tally.refused == {} and not tally.num_late for tally in result.tallies.values())


def test_single_hands_in_one_place_each():
    collected = run_link(onion_terms(protocol="single")).collected
    assert len(set(collected.holders)) == len(collected.holders) > 0
    assert set(collected.reports) <= set(reports_of(8))


def test_users_who_never_registered_are_on_no_way():
    result = run_link(onion_terms(), faults=Faults(unregistered=frozenset({0, 4})))
    assert sorted(result.collected.reports) == [reports_of(8)[node] for node in (1, 2, 3, 5, 6, 7)]
    assert all(tally.refused == {} for tally in result.tallies.values())


@pytest.mark.parametrize("which", ["relay_restarts", "peer_restarts"])
def test_restarts_lose_nothing(which):
    result = run_link(onion_terms(), faults=Faults(**{which: frozenset({1, 2, 3})}))
    assert sorted(result.collected.reports) == reports_of(8)
    assert result.num_refused == 0


@pytest.mark.parametrize(
    ("tampering", "refusals"),
    [
        (faults.reversed_order, set()),
        (faults.repeated, {Refusal.DUPLICATE}),
        (faults.renumbered, {Refusal.UNOPENED}),
        (faults.Replayed(), {Refusal.UNOPENED, Refusal.STRANGER, Refusal.DUPLICATE}),
    ],
)
def test_a_relay_that_tampers_gains_nothing(tampering, refusals):
    # An envelope of another round has another size, and spoils the packet as a whole: only those
    # of the same round can be replayed.
    terms = onion_terms()
    rounds = frozenset({2}) if isinstance(tampering, faults.Replayed) else None
    transport = FaultyTransport(terms=terms, letters=tampering, rounds=rounds)
    result = run_link(terms, transport=transport)
    assert sorted(result.collected.reports) == reports_of(8)
    found = {name for tally in result.tallies.values() for name in tally.refused}
    assert found <= set(refusals)
    assert bool(found) == bool(refusals)


def test_changed_letters_are_lost_and_counted():
    terms = onion_terms()
    transport = FaultyTransport(terms=terms, letters=faults.flipped_letters, rounds=frozenset({2}))
    result = run_link(terms, transport=transport)
    assert result.collected.reports == ()
    refused = sum(tally.refused[Refusal.UNOPENED] for tally in result.tallies.values())
    assert refused == sum(terms.slots)


# ---------------------------------------------------------------- envelopes with copies in them
def sent_on(content, *, sender, recipient, round_number, index=0):
    return lock_envelope(
        content,
        terms=TERMS,
        roster=ROSTER,
        pairs=SCENE.pairs_of(sender),
        round_number=round_number,
        sender=sender,
        recipient=recipient,
        index=index,
    )


@pytest.mark.parametrize(
    ("recipient", "copies", "refused", "taken"),
    [
        (1, 2, {Refusal.DUPLICATE: 1}, 1),  # the same onion in two envelopes
        (2, 1, {Refusal.UNOPENED: 1}, 0),  # an onion for somebody else
    ],
)
def test_a_holder_who_copies_gains_nothing(recipient, copies, refused, taken):
    peer = SCENE.restore(recipient, SCENE.peers[recipient].to_bytes())
    letters = [
        sent_on(travelling()[0], sender=0, recipient=recipient, round_number=1, index=0),
    ]
    content = open_envelope(letters[0], terms=TERMS, roster=ROSTER, pairs=SCENE.pairs_of(recipient))
    letters += [
        sent_on(content, sender=0, recipient=recipient, round_number=1, index=index)
        for index in range(1, copies)
    ]
    before = peer.tally.num_reports
    packet = mail_with(letters, roster=ROSTER, recipient=recipient)
    peer.receive(1, packet)
    assert peer.tally.refused == refused
    assert peer.tally.num_reports - before == taken


# ---------------------------------------------------------------- who is away
AWAY = {(1, 2), (1, 5), (2, 2), (3, 6)}  # round, user


def expected_end(way, start, away):
    """Return where a report ends: nowhere, if its holder was away when it was to move."""
    holder = start
    for round_number, next_holder in enumerate(way, 1):
        if next_holder != holder and (round_number, holder) in away:
            return None
        holder = next_holder
    return holder


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("laziness", [0.0, 0.5])
def test_a_report_that_was_to_move_while_its_holder_was_away_is_lost(laziness, seed):
    scene = Scene(onion_terms(laziness=laziness), seed=seed)
    ways = [way_of(scene, node) for node in range(8)]
    for round_number in range(1, ROUNDS + 1):
        there = [node for node in range(8) if (round_number, node) not in AWAY]
        for node in there:  # who returns fetches what he missed
            for missed in range(scene.peers[node].received_through + 1, round_number):
                scene.receive(missed, [node])
        scene.send(round_number, there)
        scene.relay.close_round(round_number)
    for node in range(8):
        for missed in range(scene.peers[node].received_through + 1, ROUNDS + 1):
            scene.receive(missed, [node])
    collected = collected_from(scene)
    ends = [expected_end(way, node, AWAY) for node, way in enumerate(ways)]
    assert dict(zip(collected.reports, collected.holders, strict=True)) == {
        report: end for report, end in zip(reports_of(8), ends, strict=True) if end is not None
    }
    late = sum(peer.tally.num_late for peer in scene.peers.values())
    assert late == collected.num_missing == ends.count(None)
    assert all(peer.tally.refused == {} for peer in scene.peers.values())


def test_reports_lost_are_those_that_the_cases_above_speak_of():
    # Users 2 and 5 hold at least their own in round 1, and without laziness it was to move.
    result = run_link(onion_terms(), faults=Faults(absent={2: frozenset({1}), 5: frozenset({1})}))
    assert result.collected.num_missing == 2
    assert set(reports_of(8)) - set(result.collected.reports) == {
        reports_of(8)[2],
        reports_of(8)[5],
    }
    assert [result.tallies[node].num_late for node in (1, 2, 5)] == [0, 1, 1]


def test_who_knows_nobody_loses_nothing_by_being_away():
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 0)], num_users=4)
    result = run_link(onion_terms(graph), graph, faults=Faults(absent={3: frozenset({1, 2, 3})}))
    assert sorted(result.collected.reports) == reports_of(4)
    place = result.collected.reports.index(reports_of(4)[3])
    assert result.collected.holders[place] == 3


def test_what_was_in_a_late_batch_is_lost_and_counted():
    scene = Scene(onion_terms())
    scene.send(1, nodes=range(1, 8))
    late = scene.peers[0].outgoing(1)
    scene.relay.close_round(1)
    with pytest.raises(ProtocolError) as caught:
        scene.relay.accept_batch(late)
    assert caught.value.reason is Reason.LATE
    peer = scene.peers[0]
    peer.take_back(1)
    assert (peer.num_held, peer.tally.num_late) == (0, 1)
    scene.receive(1)
    for round_number in (2, 3):
        scene.round(round_number)
    assert sorted(collected_from(scene).reports) == reports_of(8)[1:]
    assert peer.tally.num_late == 1


# ---------------------------------------------------------------- snapshots
def test_the_way_is_drawn_once():
    scene = Scene(onion_terms())
    peer = scene.peers[0]
    held = list(peer._state.held)
    peer.begin(scene.roster)
    assert peer._state.held == held
    restored = scene.restore(0, peer.to_bytes())
    assert restored._state.held == held


def test_a_restored_peer_does_what_the_first_would_have_done():
    scene = Scene(onion_terms(laziness=0.5))
    for round_number in range(1, ROUNDS + 1):
        scene.send(round_number)
        for node, peer in scene.peers.items():
            batch = peer.outgoing(round_number)
            again = scene.restore(node, peer.to_bytes())
            assert again.outgoing(round_number) == batch
            assert again.to_bytes() == peer.to_bytes()
            scene.peers[node] = again
        scene.relay.close_round(round_number)
        scene.receive(round_number)
        for node, peer in scene.peers.items():
            scene.peers[node] = scene.restore(node, peer.to_bytes())
    assert sorted(collected_from(scene).reports) == reports_of(8)


def test_a_snapshot_of_before_the_roster_still_has_the_report():
    scene = Scene(onion_terms())
    limits = no_limits(scene.terms)
    peer = type(scene.peers[0]).create(
        scene.terms, GRAPH, 3, b"abcd", Entropy.from_seed(1), limits=limits
    )
    again = type(peer).from_bytes(
        peer.to_bytes(), scene.terms, GRAPH, Entropy.from_seed(1), limits=limits
    )
    (inner,) = again._state.held
    assert open_report(inner, terms=scene.terms, keys=KEYS) == b"abcd"


def test_batches_of_other_terms_do_not_fit():
    hop = Scene(replace(TERMS, routing="hop"))
    with pytest.raises(ProtocolError) as caught:
        decode_batch(hop.peers[0].outgoing(1), terms=TERMS, roster=ROSTER)
    assert caught.value.reason is Reason.MISMATCH
