"""Whether everything arrived: what is missing becomes known wherever it could have gone."""

import dataclasses
import itertools

import pytest

from peers.exercises import (
    GRAPH,
    KEYS,
    Scene,
    mail_with,
    reports_of,
    run_link,
    terms_on,
)
from peers.faults import FaultyTransport
from peers.link import Faults, Link
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.peers.mail import CODE_BYTES, Refusal, decode_mail, delivery_code, final_transcript

# A path with a triangle at one end, so that news takes up to three rounds.
PATH = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
ROUNDS = 3
AWAY = [{}, {3: frozenset({2})}, {2: frozenset({1, 3}), 4: frozenset({2})}]
DIRECTED = [(a, b) for a in range(5) for b in PATH.neighbours_of(a).tolist()]


def who_must_know(first_round, recipient, away):
    """Return in which round a loss is known to whom, by following edges; no protocol code."""
    known = {recipient: first_round}
    for number in range(first_round + 1, ROUNDS + 1):
        for sender, neighbour in DIRECTED:
            is_there = number not in away.get(sender, ())
            if is_there and known.get(sender, number) < number and neighbour not in known:
                known[neighbour] = number
    return known


@pytest.mark.slow
@pytest.mark.parametrize("away", AWAY)
def test_any_loss_becomes_known_wherever_the_report_could_have_gone(away):
    # Every set of letters from one user to another in one round is lost, one after the other.
    terms = terms_on(PATH, rounds=ROUNDS)
    num_lost = 0
    for number, (sender, recipient) in itertools.product(range(1, ROUNDS + 1), DIRECTED):
        lost = []

        def without(letters, lost=lost, sender=sender, recipient=recipient):
            gone = [
                each for each in letters if (each.sender, each.recipient) == (sender, recipient)
            ]
            lost.extend(gone)
            return [each for each in letters if each not in gone]

        transport = FaultyTransport(terms=terms, letters=without, rounds=frozenset({number}))
        result = run_link(terms, PATH, transport=transport, faults=Faults(absent=away))
        said = result.collected.confirmations
        known = {node: each.short_since for node, each in said.items() if each.short_since}
        assert known == (who_must_know(number, recipient, away) if lost else {})
        num_lost += bool(lost)
    assert num_lost > 15


def link_on(graph=GRAPH, rounds=3, **faults):
    terms = terms_on(graph, rounds=rounds)
    reports = reports_of(graph.num_users)
    link = Link(terms, graph, KEYS, reports, entropy=Entropy.from_seed(1), faults=Faults(**faults))
    return link, link.run()


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"absent": {3: frozenset({1, 2}), 5: frozenset({3})}, "unregistered": frozenset({7})},
        {"relay_restarts": frozenset({2}), "peer_restarts": frozenset({1, 3})},
        {"gone_from": {2: 2}},
    ],
)
def test_everybody_confirms_what_went_well(faults):
    link, result = link_on(**faults)
    said = result.collected.confirmations
    absent = {2} if "gone_from" in faults else set(faults.get("unregistered", ()))
    assert set(said) == set(range(8)) - absent
    wanted = final_transcript(link._relay.roster, result.absences)
    assert {(each.transcript, each.short_since) for each in said.values()} == {(wanted, 0)}


# ---------------------------------------------------------------- a relay that lies
@pytest.fixture
def scene():
    return Scene(terms_on(rounds=2))


def shown(scene, node, round_number, **changes):
    """Give a user mail in which the relay changed something."""
    packet = scene.packet(node, round_number)
    mail = decode_mail(packet, scene.roster, round_number=round_number, recipient=node)
    parts = {name: getattr(mail, name) for name in ("letters", "absent", "codes")}
    parts = {name: changes[name](part) if name in changes else part for name, part in parts.items()}
    changed = mail_with(roster=scene.roster, round_number=round_number, recipient=node, **parts)
    scene.peers[node].receive(round_number, changed)


def short(scene):
    return {node for node, peer in scene.peers.items() if peer.confirmation.short_since}


@pytest.mark.parametrize(
    "codes",
    [
        lambda codes: {},
        lambda codes: {**codes, 0: bytes(CODE_BYTES)},
        lambda codes: {**codes, 0: codes[2]},
    ],
)
def test_a_code_that_is_gone_forged_or_of_somebody_else(scene, codes):
    scene.send(1)
    scene.relay.go_on()
    shown(scene, 1, 1, codes=codes)
    assert short(scene) == {1}


def test_a_letter_that_is_changed_or_added_on_the_way(scene):
    scene.send(1)
    scene.relay.go_on()
    shown(scene, 1, 1, letters=lambda all_: [
        dataclasses.replace(all_[0], sealed=bytes(len(all_[0].sealed))), *all_[1:]
    ])  # fmt: skip
    shown(scene, 2, 1, letters=lambda all_: [
        *all_, dataclasses.replace(all_[0], index=1000)
    ])  # fmt: skip
    # In the same order under other numbers they would not open.
    shown(scene, 4, 1, letters=lambda all_: [
        dataclasses.replace(each, index=each.index + 1000) for each in all_
    ])  # fmt: skip
    # The same again, or in another order, is no loss.
    shown(scene, 3, 1, letters=lambda all_: [*all_[::-1], *all_])
    assert short(scene) == {1, 2, 4}


def test_another_record_of_absences_becomes_known(scene):
    # User 0 is absent; his neighbours are 1, 2, 6, 7. User 4 knows none of that by himself.
    scene.send(1, nodes=range(1, 8))
    scene.relay.go_on()
    shown(scene, 4, 1, absent=lambda _: ())
    scene.receive(1, nodes=[0, 1, 2, 3, 5, 6, 7])
    assert short(scene) == set()
    assert len({peer.confirmation.transcript for peer in scene.peers.values()}) == 2
    scene.round(2)
    assert short(scene) == {2, 3, 4, 5, 6}


@pytest.mark.parametrize("says_absent", [False, True])
def test_nobody_is_taken_for_absent_who_was_there_or_the_other_way_round(scene, says_absent):
    scene.send(1, nodes=range(0 if says_absent else 1, 8))
    scene.relay.go_on()
    shown(scene, 0, 1, absent=lambda _: (0,) if says_absent else ())
    assert 0 in short(scene)


def test_a_batch_that_was_taken_back_brings_nothing(scene):
    # The relay calls it late, and passes it on all the same: reports would move and stay.
    scene.send(1, nodes=range(1, 8))
    late = scene.peers[0].outgoing(1)
    scene.peers[0].take_back(1)
    scene.relay.accept_batch(late)
    scene.relay.go_on()
    to_others = (1, 2, 6, 7)
    for node in to_others:
        shown(scene, node, 1, absent=lambda _: (0,))
    taken = sum(scene.peers[node].state.counts["report"] for node in to_others)
    refused = sum(scene.peers[node].state.counts[Refusal.STRANGER.name] for node in to_others)
    assert refused == scene.terms.slots[0]
    held = [inner for node in to_others for inner in scene.peers[node].state.held]
    assert scene.peers[0].state.held[0] not in held
    assert taken <= 7
    assert short(scene) == set()
    # Said to be there he knows better.
    shown(scene, 0, 1)
    assert short(scene) == {0}


# ---------------------------------------------------------------- codes
def test_codes_are_for_one_place():
    scene = Scene()
    key = scene.pairs_of(0)[1].code
    assert key == scene.pairs_of(1)[0].code
    both = [(3, b"a"), (4, b"b")]
    code = delivery_code(key, (1, 0, 1), b"t", both)
    assert len(code) == CODE_BYTES
    others = [((2, 0, 1), b"t", both), ((1, 0, 1), b"", both)]
    others += [((1, 0, 1), b"t", each) for each in ([(3, b"ab")], [], [(3, b"a"), (5, b"b")])]
    others += [(place, b"t", both) for place in ((1, 1, 1), (1, 0, 0))]
    codes = {delivery_code(key, *other) for other in others}
    codes |= {delivery_code(scene.pairs_of(2)[0].code, (1, 0, 1), b"t", both)}
    assert len(codes) == len(others) + 1
    assert code not in codes
