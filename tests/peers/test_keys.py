"""Keys and the roster: only what is signed for these terms, by its own key, once a user."""

import dataclasses

import pytest

from peers.exercises import KEYS, Scene, terms_on
from shuffledp.deploy import wire
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.peers.keys import PrivateKeys, Registration, Roster

TERMS = terms_on()
ALICE, BOB = PrivateKeys.generate(), PrivateKeys.generate()
FIRST = Registration.make(TERMS, 0, ALICE)
SECOND = Registration.make(TERMS, 5, BOB)


def refusal(call):
    with pytest.raises(ProtocolError) as caught:
        call()
    return caught.value.fault, caught.value.reason


def test_private_keys_as_bytes():
    again = PrivateKeys.from_bytes(KEYS.to_bytes())
    assert (again.identity_key, again.mail_key) == (KEYS.identity_key, KEYS.mail_key)
    assert again.sign(b"x") == KEYS.sign(b"x")


def test_keys_whose_mail_key_is_forgotten():
    keys = PrivateKeys.generate()
    size, signed = len(keys.to_bytes()), keys.sign(b"x")
    keys.forget_mail()
    again = PrivateKeys.from_bytes(keys.to_bytes())
    assert again.sign(b"x") == signed
    assert len(again.to_bytes()) == size - 32
    assert refusal(lambda: again.open(bytes(80), b"")) == (Fault.CALLER, Reason.LATE)


def test_private_keys_are_not_shown():
    secret = KEYS.to_bytes()[4:68]
    assert secret[:32].hex() not in repr(KEYS)
    assert secret[32:].hex() not in repr(KEYS)


@pytest.mark.parametrize("damage", ["first", "middle", "last", "short", "long"])
def test_damaged_private_keys(damage):
    data = bytearray(KEYS.to_bytes())
    if damage in {"first", "middle", "last"}:
        data[{"first": 0, "middle": 40, "last": -1}[damage]] ^= 1
    data = {"short": data[:-1], "long": data + b"x"}.get(damage, data)
    fault = refusal(lambda: PrivateKeys.from_bytes(bytes(data)))
    assert fault == (Fault.CALLER, Reason.MALFORMED)


def test_a_registration_as_bytes():
    assert Registration.from_bytes(FIRST.to_bytes(), TERMS) == FIRST


@pytest.mark.parametrize(
    "change",
    [{"node": 1}, {"mail_key": BOB.mail_key}, {"identity_key": BOB.identity_key}],
)
def test_a_registration_with_something_else_in_it(change):
    forged = dataclasses.replace(FIRST, **change).to_bytes()
    found = refusal(lambda: Registration.from_bytes(forged, TERMS))
    assert found == (Fault.PEER, Reason.FORGED)


def test_a_registration_for_other_terms():
    found = refusal(lambda: Registration.from_bytes(FIRST.to_bytes(), terms_on()))
    assert found == (Fault.PEER, Reason.FORGED)


@pytest.mark.parametrize("size", [0, 3, 20, 135, 137])
def test_a_registration_of_another_size(size):
    data = (FIRST.to_bytes() + b"x")[:size]
    found = refusal(lambda: Registration.from_bytes(data, TERMS))
    assert found == (Fault.PEER, Reason.MALFORMED)


def test_a_registration_of_nobody():
    stranger = Registration.make(TERMS, 8, ALICE).to_bytes()
    found = refusal(lambda: Registration.from_bytes(stranger, TERMS))
    assert found == (Fault.PEER, Reason.MALFORMED)


def test_a_mail_key_to_which_nothing_can_be_sealed():
    weak = bytes(32)
    bad = dataclasses.replace(FIRST, mail_key=weak)
    bad = dataclasses.replace(bad, signature=ALICE.sign(bad._text(TERMS))).to_bytes()
    found = refusal(lambda: Registration.from_bytes(bad, TERMS))
    assert found == (Fault.PEER, Reason.MALFORMED)


def test_a_roster_as_bytes():
    roster = Roster(TERMS, [SECOND, FIRST])
    again = Roster.from_bytes(roster.to_bytes(), TERMS)
    assert again.nodes == (0, 5)
    assert len(again) == 2
    assert (again.digest(), again.context) == (roster.digest(), roster.context)
    assert again[5] == SECOND
    assert [node in again for node in (0, 1, 5)] == [True, False, True]


def test_rosters_and_terms_all_have_different_contexts():
    others = terms_on()
    rosters = [
        Roster(TERMS, [FIRST]),
        Roster(TERMS, [FIRST, SECOND]),
        Roster(TERMS, []),
        Roster(others, []),
    ]
    assert len({roster.context for roster in rosters}) == 4


def test_a_roster_out_of_order():
    head = Roster(TERMS, [FIRST, SECOND]).to_bytes()[: 4 + 32 + 4]
    for items in ([SECOND, FIRST], [FIRST, FIRST]):
        data = head + b"".join(item.to_bytes() for item in items)
        found = refusal(lambda data=data: Roster.from_bytes(data, TERMS))
        assert found == (Fault.RELAY, Reason.MALFORMED)


def test_a_roster_with_a_forged_registration():
    data = bytearray(Roster(TERMS, [FIRST, SECOND]).to_bytes())
    data[-1] ^= 1
    found = refusal(lambda: Roster.from_bytes(bytes(data), TERMS))
    assert found == (Fault.RELAY, Reason.FORGED)


def test_a_roster_of_other_terms():
    data = Roster(TERMS, [FIRST]).to_bytes()
    found = refusal(lambda: Roster.from_bytes(data, terms_on()))
    assert found == (Fault.RELAY, Reason.MISMATCH)


def test_a_roster_that_claims_more_users_than_there_are():
    head = Roster(TERMS, [FIRST]).to_bytes()[:36]
    found = refusal(lambda: Roster.from_bytes(head + wire.uint(9), TERMS))
    assert found == (Fault.RELAY, Reason.MALFORMED)


def test_a_roster_with_too_few_users():
    many = terms_on(least_registered=2)
    alone = Roster(many, [Registration.make(many, 0, ALICE)])
    found = refusal(lambda: Roster.from_bytes(alone.to_bytes(), many))
    assert found == (Fault.RELAY, Reason.MISMATCH)


def test_numbers_have_four_bytes():
    assert wire.uint(1) == b"\0\0\0\1"
    assert wire.numbers(1, 2**32 - 1) == b"\0\0\0\1\xff\xff\xff\xff"
    assert wire.opaque(b"ab") == b"\0\0\0\2ab"
    reader = wire.Reader(wire.opaque(b"ab"), "message", Fault.PEER)
    assert reader.opaque() == b"ab"


def test_digests_tell_parts_and_labels_apart():
    digests = {
        wire.digest(b"a", b"bc"),
        wire.digest(b"ab", b"c"),
        wire.digest(b"a", b"b", b"c"),
        wire.digest(b"a", b"", b"bc"),
    }
    assert len(digests) == 4


def test_a_scene_has_everybody():
    assert Scene(TERMS).roster.nodes == tuple(range(8))
