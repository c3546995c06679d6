"""The analyzer: each report once, and everything else counted."""

import pytest

from peers.exercises import CONFIRMATION, KEYS, Scene, reports_of
from shuffledp.core.errors import ParameterError
from shuffledp.deploy import wire
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.mail import Refusal, encode_hand_in, open_all, seal_report

SCENE = Scene()
TERMS, ROSTER = SCENE.terms, SCENE.roster
ROOM = TERMS.slots[0]


def handed_in(holder, *inners, signer=None):
    places = [*inners, *[None] * (ROOM - len(inners))]
    keys = SCENE.keys_of(holder if signer is None else signer)
    return encode_hand_in(places, CONFIRMATION, ROSTER, keys, holder)


def opened(hand_ins, keys=KEYS):
    return open_all(hand_ins, ROSTER, keys)


def sealed(report):
    return seal_report(report, TERMS)


def test_reports_and_their_holders():
    one, two, three = (sealed(report) for report in reports_of(3))
    collected = opened([handed_in(4, three), handed_in(1, one, two), handed_in(2)])
    assert collected.reports == tuple(reports_of(3))
    assert collected.holders == (1, 1, 4)
    assert collected.confirmations == {1: CONFIRMATION, 2: CONFIRMATION, 4: CONFIRMATION}
    assert collected.num_hand_ins == 3
    assert collected.rejected == {}


def test_nothing_at_all():
    collected = opened([])
    assert (collected.reports, collected.num_hand_ins) == ((), 0)


def test_a_report_twice():
    inner = sealed(b"abcd")
    collected = opened([handed_in(2, inner, inner), handed_in(1, inner)])
    assert collected.holders == (1,)
    assert collected.rejected == {str(Refusal.DUPLICATE): 2}


def test_equal_reports_of_two_users_are_two():
    collected = opened([handed_in(2, sealed(b"abcd"), sealed(b"abcd"))])
    assert collected.reports == (b"abcd", b"abcd")


def test_what_is_handed_in_twice():
    first = handed_in(1, sealed(b"abcd"))
    collected = opened([first, first, handed_in(1, sealed(b"efgh"))])
    assert collected.reports == (b"abcd",)
    assert collected.rejected == {"second hand-in of one holder": 1}


def test_a_place_that_does_not_open():
    collected = opened([handed_in(1, bytes(TERMS.inner_bytes), sealed(b"abcd"))])
    assert collected.reports == (b"abcd",)
    assert collected.rejected == {str(Refusal.UNOPENED): 1}


def test_hand_ins_that_cannot_be_read():
    other = Scene(TERMS)
    elsewhere = encode_hand_in([None] * ROOM, CONFIRMATION, other.roster, other.keys_of(1), 1)
    collected = opened([b"", handed_in(1, signer=2), elsewhere])
    assert collected.num_hand_ins == 0
    assert collected.rejected == {
        "hand-in malformed": 1,
        "hand-in forged": 1,
        "hand-in mismatch": 1,
    }


def test_a_hand_in_whose_content_does_not_open():
    good = handed_in(1, sealed(b"abcd"))
    body = bytearray(good[: -wire.SIGNATURE_BYTES])
    body[-1] ^= 1
    data = bytes(body) + SCENE.keys_of(1).sign(wire.digest(b"hand-in", bytes(body)))
    collected = opened([data])
    assert (collected.reports, collected.confirmations) == ((), {})
    assert collected.rejected == {str(Refusal.UNOPENED): 1}


def test_keys_are_those_of_the_terms():
    with pytest.raises(ParameterError, match="private keys do not belong to the terms"):
        opened([], keys=PrivateKeys.generate())
