"""The relay: takes what is in order, once, and nothing else; a restart forgets nothing."""

import pytest

from peers.exercises import GRAPH, KEYS, Scene, batch_with, ring, terms_on
from peers.link import quick_relay
from shuffledp.core.errors import DataError, OutputError
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.peers.keys import PrivateKeys, Registration, hand_ins_token_text, mail_token_text
from shuffledp.peers.mail import Letter, decode_batch, decode_mail, encode_batch
from shuffledp.peers.relay import Relay


def refusal(call):
    with pytest.raises(ProtocolError) as caught:
        call()
    return caught.value.fault, caught.value.reason


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "relay.db"


def test_a_relay_has_the_graph_of_the_terms(path):
    found = refusal(lambda: Relay(path, terms_on(), ring(9)))
    assert found == (Fault.CALLER, Reason.MISMATCH)


def test_registration(path):
    terms = terms_on()
    relay = quick_relay(terms, GRAPH, path.parent)
    data = Registration.make(terms, 2, PrivateKeys.generate()).to_bytes()
    assert relay.register(data) is True
    assert relay.register(data) is False
    other = Registration.make(terms, 2, PrivateKeys.generate()).to_bytes()
    assert refusal(lambda: relay.register(other)) == (Fault.PEER, Reason.CONFLICT)
    assert relay.status()["num_registered"] == 1
    assert refusal(lambda: relay.roster) == (Fault.PEER, Reason.EARLY)


def test_nobody_registers_after_the_start():
    scene = Scene(missing=(7,))
    late = Registration.make(scene.terms, 7, PrivateKeys.generate()).to_bytes()
    assert refusal(lambda: scene.relay.register(late)) == (Fault.PEER, Reason.LATE)
    assert scene.relay.register(scene.peers[0].state.registration) is False


def test_too_few_registered(path):
    terms = terms_on(least_registered=2)
    relay = quick_relay(terms, GRAPH, path.parent)
    relay.register(Registration.make(terms, 2, PrivateKeys.generate()).to_bytes())
    assert not relay.go_on()
    assert relay.round_number == 0
    relay.register(Registration.make(terms, 3, PrivateKeys.generate()).to_bytes())
    assert relay.go_on()
    assert relay.round_number == 1
    assert relay.roster.nodes == (2, 3)


def test_batches_are_kept_once(scene):
    data = scene.peers[0].outgoing(1)
    assert scene.relay.accept_batch(data) is True
    assert scene.relay.accept_batch(data) is False
    assert scene.relay.senders(1) == {0}
    scene.relay.go_on()
    assert scene.relay.accept_batch(data) is False
    batch = decode_batch(data, scene.roster)
    mail = [
        decode_mail(scene.packet(node, 1), scene.roster,
            round_number=1, recipient=node,
        )
        for node in range(1, 8)
    ]  # fmt: skip
    arrived = [letter for each in mail for letter in each.letters]
    assert tuple(sorted(arrived, key=lambda letter: letter.index)) == batch.letters
    codes = [each.codes for each in mail if each.codes]
    assert codes == [{0: code} for code in batch.codes]


def rewritten(scene, letters, *, sender=0, round_number=1, num_codes=None):
    if num_codes is None:
        num_codes = len(scene.roster.neighbours_in(GRAPH, sender))
    batch = batch_with(
        letters, sender=sender, round_number=round_number, codes=[bytes(16)] * num_codes
    )
    return encode_batch(batch, scene.roster, scene.keys_of(sender))


def test_another_batch_of_the_same_round_is_refused(scene):
    first = scene.peers[0].outgoing(1)
    batch = decode_batch(first, scene.roster)
    scene.relay.accept_batch(first)
    other = rewritten(scene, batch.letters[::-1])
    assert refusal(lambda: scene.relay.accept_batch(other)) == (Fault.PEER, Reason.CONFLICT)


def letters_to(recipients, scene):
    return [
        Letter(1, 0, index, recipient, bytes(scene.terms.envelope_bytes))
        for index, recipient in enumerate(recipients)
    ]


@pytest.mark.parametrize(
    ("recipients", "reason"),
    [
        (lambda slots: [1] * (slots - 1), Reason.MALFORMED),
        (lambda slots: [1] * (slots + 1), Reason.MALFORMED),
        (lambda slots: [], Reason.MALFORMED),
        (lambda slots: [1] * (slots - 1) + [4], Reason.UNKNOWN),
        (lambda slots: [1] * (slots - 1) + [0], Reason.UNKNOWN),
        (lambda slots: [1] * (slots - 1) + [7], Reason.UNKNOWN),
    ],
)
def test_batches_that_the_terms_do_not_allow(recipients, reason):
    scene = Scene(missing=(7,))  # a neighbour of user 0 in the graph
    data = rewritten(scene, letters_to(recipients(scene.terms.slots[0]), scene))
    assert refusal(lambda: scene.relay.accept_batch(data)) == (Fault.PEER, reason)
    assert not scene.relay.senders(1)


@pytest.mark.parametrize("num_codes", [3, 5])
def test_a_code_for_each_neighbour(scene, num_codes):
    data = rewritten(scene, letters_to([1] * scene.terms.slots[0], scene), num_codes=num_codes)
    assert refusal(lambda: scene.relay.accept_batch(data)) == (Fault.PEER, Reason.MALFORMED)


def test_messages_are_of_whom_and_when_it_was_said(scene):
    wrong = (Fault.PEER, Reason.MALFORMED)
    peer, accept = scene.peers[0], scene.relay.accept_batch
    assert refusal(lambda: scene.relay.register(peer.state.registration, node=1)) == wrong
    assert refusal(lambda: accept(peer.outgoing(1), round_number=1, node=1)) == wrong
    assert refusal(lambda: accept(peer.outgoing(1), round_number=2, node=0)) == wrong
    assert accept(peer.outgoing(1), round_number=1, node=0)
    scene.round(1)
    scene.round(2)
    assert refusal(lambda: scene.relay.accept_hand_in(peer.hand_in(), node=1)) == wrong
    assert scene.relay.accept_hand_in(peer.hand_in(), node=0)


def test_uneven_traffic_is_refused_where_it_is_to_be_even():
    scene = Scene(terms_on(even_traffic=True))
    each = scene.terms.per_neighbour
    good = [1, 2, 6, 7] * each
    uneven = rewritten(scene, letters_to([*good[:-1], 1], scene))
    assert refusal(lambda: scene.relay.accept_batch(uneven)) == (Fault.PEER, Reason.MALFORMED)
    assert scene.relay.accept_batch(rewritten(scene, letters_to(good, scene)))


def test_rounds_that_are_not_open(scene):
    letters = letters_to([1] * scene.terms.slots[0], scene)
    early = rewritten(scene, letters, round_number=2)
    assert refusal(lambda: scene.relay.accept_batch(early)) == (Fault.PEER, Reason.EARLY)
    scene.relay.go_on()
    late = rewritten(scene, letters)
    assert refusal(lambda: scene.relay.accept_batch(late)) == (Fault.PEER, Reason.LATE)


def test_phases_follow_each_other(scene):
    found = []
    for _ in range(5):
        found.append((scene.relay.phase, scene.relay.round_number))
        scene.relay.go_on()
    assert found == [("round", 1), ("round", 2), ("hand-in", 3), ("over", 3), ("over", 3)]


def test_who_was_absent(scene):
    assert refusal(lambda: scene.relay.absent(1)) == (Fault.PEER, Reason.EARLY)
    scene.send(1, nodes=[0, 3])
    scene.relay.go_on()
    assert scene.relay.absent(1) == (1, 2, 4, 5, 6, 7)
    scene.receive(1)
    scene.send(2)
    scene.relay.go_on()
    assert [scene.relay.absent(number) for number in (1, 2)] == [(1, 2, 4, 5, 6, 7), ()]


def test_mail_is_for_its_owner_when_the_round_is_over(scene):
    scene.send(1)
    token = scene.peers[1].mail_token(1)
    assert refusal(lambda: scene.relay.mail(1, 1, token)) == (Fault.PEER, Reason.EARLY)
    scene.relay.go_on()
    assert scene.relay.mail(1, 1, token) == scene.relay.mail(1, 1, token)
    for wrong in (
        scene.peers[2].mail_token(1),
        scene.peers[1].mail_token(2),
        scene.keys_of(1).sign(mail_token_text(terms_on(), 1, 1)),
        b"",
    ):
        found = refusal(lambda wrong=wrong: scene.relay.mail(1, 1, wrong))
        assert found == (Fault.PEER, Reason.FORGED)
    assert refusal(lambda: scene.relay.mail(9, 1, token)) == (Fault.PEER, Reason.UNKNOWN)
    assert refusal(lambda: scene.relay.mail(1, 0, token)) == (Fault.PEER, Reason.EARLY)


def test_handing_in(scene):
    scene.round(1)
    scene.send(2)
    scene.relay.go_on()
    scene.receive(2)
    data = scene.peers[0].hand_in()
    assert scene.relay.accept_hand_in(data) is True
    assert scene.relay.accept_hand_in(data) is False
    peer = scene.peers[0]
    peer.state.handed_in = b""
    assert refusal(lambda: scene.relay.accept_hand_in(peer.hand_in())) == (
        Fault.PEER,
        Reason.CONFLICT,
    )
    token = KEYS.sign(hand_ins_token_text(scene.terms))
    assert refusal(lambda: scene.relay.hand_ins(token)) == (Fault.ANALYZER, Reason.EARLY)
    scene.relay.go_on()
    assert scene.relay.hand_ins(token) == (data,)
    for keys, terms in ((PrivateKeys.generate(), scene.terms), (KEYS, terms_on())):
        token = keys.sign(hand_ins_token_text(terms))
        found = refusal(lambda token=token: scene.relay.hand_ins(token))
        assert found == (Fault.ANALYZER, Reason.FORGED)


def test_nobody_hands_in_during_the_rounds(scene):
    scene.round(1)
    scene.round(2)
    data = scene.peers[0].hand_in()
    with scene.relay.transaction():
        scene.relay.set_fact("round", 2)
    assert refusal(lambda: scene.relay.accept_hand_in(data)) == (Fault.PEER, Reason.EARLY)


def test_a_restart_forgets_nothing(scene):
    scene.send(1, nodes=[0, 1])
    scene.relay.close()
    again = quick_relay(scene.terms, GRAPH, scene.folder)
    assert again.roster.digest() == scene.roster.digest()
    assert again.accept_batch(scene.peers[0].outgoing(1)) is False
    assert again.accept_batch(scene.peers[2].outgoing(1)) is True


def test_a_restart_while_users_register(path):
    terms = terms_on()
    with Relay(path, terms, GRAPH) as first:
        first.register(Registration.make(terms, 2, PrivateKeys.generate()).to_bytes())
    with Relay(path, terms, GRAPH) as again:
        assert refusal(lambda: again.roster) == (Fault.PEER, Reason.EARLY)
        assert again.status()["num_registered"] == 1


def test_a_file_of_other_terms(path):
    Relay(path, terms_on(), GRAPH).close()
    with pytest.raises(DataError, match="other terms"):
        Relay(path, terms_on(), GRAPH)


def test_a_batch_and_its_mail_are_kept_together_or_not_at_all(scene, monkeypatch):
    with monkeypatch.context() as failing:
        failing.setattr(scene.relay, "change_many", lambda *_: scene.relay.rows("SELECT"))
        with pytest.raises(OutputError):
            scene.relay.accept_batch(scene.peers[0].outgoing(1))
    assert scene.relay.senders(1) == frozenset()
    assert scene.relay.accept_batch(scene.peers[0].outgoing(1)) is True


def test_mail_is_deleted_when_its_recipient_goes_on(scene):
    def kept():
        return set(scene.relay.rows("SELECT DISTINCT round, recipient FROM mail"))

    scene.round(1)
    assert kept() == {(1, node) for node in range(8)}
    scene.send(2, nodes=[0])
    assert (1, 0) not in kept()
    assert {(1, node) for node in range(1, 8)} < kept()
    scene.send(2, nodes=range(1, 8))
    scene.relay.go_on()
    assert {number for number, _ in kept()} == {2}
    scene.receive(2)
    scene.relay.accept_hand_in(scene.peers[3].hand_in())
    assert kept() == {(2, node) for node in range(8)} - {(2, 3)}
    scene.relay.go_on()
    assert kept() == set()
