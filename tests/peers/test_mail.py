"""Messages: one size, opened by their recipient in their place only, and read strictly."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peers.exercises import (
    CONFIRMATION,
    KEYS,
    REPORT_BYTES,
    Scene,
    batch_with,
    mail_with,
    terms_on,
)
from shuffledp.deploy import wire
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, lock, seal
from shuffledp.peers import mail as messages
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.mail import (
    Letter,
    Mail,
    Refusal,
    decode_batch,
    decode_hand_in,
    decode_mail,
    encode_batch,
    encode_hand_in,
    lock_envelope,
    num_places,
    open_envelope,
    open_hand_in,
    open_report,
    seal_report,
)

SCENE = Scene(missing=(7,))
TERMS, ROSTER = SCENE.terms, SCENE.roster
INNER = seal_report(b"abcd", TERMS)
PLACE = {"round_number": 1, "sender": 0, "recipient": 1, "index": 3}


def locked(inner=INNER, *, locker=0, **change):
    place = {**PLACE, **change}
    return lock_envelope(inner, ROSTER, SCENE.pairs_of(locker), tuple(place.values()))


def opened(letter, *, recipient=1, roster=ROSTER):
    return open_envelope(letter, roster, SCENE.pairs_of(recipient))


def refusal(call):
    with pytest.raises(ProtocolError) as caught:
        call()
    return caught.value.fault, caught.value.reason


def test_a_report_and_a_cover_open_and_have_one_size():
    report, cover = locked(), locked(None)
    assert opened(report) == INNER
    assert opened(cover) is None
    assert len(report.sealed) == len(cover.sealed) == TERMS.envelope_bytes


def test_sizes_are_those_of_the_documented_layout():
    sizes = [len(data) for data in (BATCH, mail_of([locked()]), hand_in_of(FULL))]
    assert TERMS.envelope_bytes == REPORT_BYTES + 65
    assert sizes == [
        116 + 2 * (REPORT_BYTES + 69) + 4 * 16,
        56 + REPORT_BYTES + 73,
        188 + TERMS.slots[0] * (REPORT_BYTES + 49),
    ]
    assert len(ROSTER.to_bytes()) == 40 + 136 * 7


@pytest.mark.parametrize("inner", [INNER, None])
def test_an_envelope_never_looks_the_same_in_two_places(inner):
    places = [{}, {"index": 4}, {"recipient": 2}, {"sender": 2, "locker": 2}]
    assert len({locked(inner, **place).sealed for place in places}) == len(places)


@pytest.mark.parametrize(
    "elsewhere", [{"round_number": 2}, {"sender": 2}, {"index": 4}, {"recipient": 2}]
)
def test_an_envelope_opens_in_its_place_only(elsewhere):
    moved = dataclasses.replace(locked(), **elsewhere)
    assert opened(moved) is Refusal.UNOPENED


def test_an_envelope_opens_for_its_recipient_only():
    assert opened(locked(), recipient=2) is Refusal.UNOPENED


def test_an_envelope_of_another_roster_or_collection_does_not_open():
    assert opened(locked(), roster=Scene(TERMS).roster) is Refusal.UNOPENED


def test_a_sender_cannot_write_in_the_name_of_another():
    assert opened(locked(locker=2)) is Refusal.UNOPENED


@pytest.mark.parametrize("text", [b"\x02" + INNER, b"\x00" + bytes(5), b"\x01" + INNER[1:]])
def test_an_envelope_with_something_else_in_it(text):
    info = messages._info(ROSTER.context, 1, 0, 1, 3)
    odd = lock(text, SCENE.pairs_of(0)[1].to, info)
    assert opened(Letter(1, 0, 3, 1, odd)) is Refusal.MALFORMED


def test_the_report_is_for_the_analyzer_only():
    assert len(INNER) == TERMS.inner_bytes == REPORT_BYTES + 48
    assert open_report(INNER, TERMS, KEYS) == b"abcd"
    assert open_report(INNER, TERMS, PrivateKeys.generate()) is None
    assert open_report(INNER, terms_on(), KEYS) is None
    longer = seal_report(b"abcde", TERMS)
    assert open_report(longer, TERMS, KEYS) is None


# ---------------------------------------------------------------- batches
LETTERS = [locked(index=0), locked(None, index=1, recipient=2)]
CODES = [bytes([number] * 16) for number in range(4)]
BATCH = encode_batch(batch_with(LETTERS, codes=CODES), ROSTER, SCENE.keys_of(0))


def test_a_batch_as_bytes():
    found = decode_batch(BATCH, ROSTER)
    assert found == batch_with(LETTERS, codes=CODES)


@given(st.integers(min_value=0, max_value=len(BATCH) - 1))
def test_a_batch_cut_anywhere(size):
    found = refusal(lambda: decode_batch(BATCH[:size], ROSTER))
    assert found == (Fault.PEER, Reason.MALFORMED)


@given(st.integers(min_value=0, max_value=8 * len(BATCH) - 1))
def test_a_batch_with_any_bit_changed(bit):
    data = bytearray(BATCH)
    data[bit // 8] ^= 1 << bit % 8
    fault, _ = refusal(lambda: decode_batch(bytes(data), ROSTER))
    assert fault is Fault.PEER


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_and_nothing_else_is_raised(data):
    for name in ("batch", "hand_in", "mail"):
        decode = {
            "batch": lambda: decode_batch(data, ROSTER),
            "hand_in": lambda: decode_hand_in(data, ROSTER),
            "mail": lambda: decode_mail(data, ROSTER, round_number=1, recipient=1),
        }[name]
        assert refusal(decode)[1] is Reason.MALFORMED


def batch_of(letters=LETTERS, *, sender=0, signer=0, round_number=1, roster=ROSTER):
    keys = SCENE.keys_of(signer)
    batch = batch_with(letters, round_number=round_number, sender=sender)
    return encode_batch(batch, roster, keys)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (BATCH + b"x", Reason.MALFORMED),
        (batch_of(signer=1), Reason.FORGED),
        (batch_of(sender=7), Reason.UNKNOWN),
        (batch_of(sender=8), Reason.MALFORMED),
        (batch_of(round_number=0), Reason.MALFORMED),
        (batch_of(round_number=3), Reason.MALFORMED),
        (batch_of(roster=Scene(TERMS).roster), Reason.MISMATCH),
        (batch_of([dataclasses.replace(LETTERS[0], recipient=8)]), Reason.MALFORMED),
        (batch_of([dataclasses.replace(LETTERS[0], sealed=b"x")]), Reason.MALFORMED),
    ],
)
def test_batches_that_are_refused(data, reason):
    found = refusal(lambda: decode_batch(data, ROSTER))
    assert found == (Fault.PEER, reason)


# ---------------------------------------------------------------- mail
def mail_of(letters, *, roster=ROSTER, **options):
    return mail_with(letters, roster=roster, **options)


def read_mail(data):
    return decode_mail(data, ROSTER, round_number=1, recipient=1)


def test_mail_as_bytes():
    letters = [locked(index=9), locked(None, sender=2, index=0)]
    codes = {0: CODES[0], 2: CODES[2]}
    found = read_mail(mail_of(letters, absent=[3, 6], codes=codes))
    assert found == Mail(absent=(3, 6), letters=tuple(letters), codes=codes)
    assert read_mail(mail_of([])) == Mail(absent=(), letters=(), codes={})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (mail_of([], round_number=2), Reason.MISMATCH),
        (mail_of([], recipient=2), Reason.MISMATCH),
        (mail_of([], roster=Scene(TERMS).roster), Reason.MISMATCH),
        (mail_of([locked()])[:-1], Reason.MALFORMED),
        (mail_of([locked()]) + b"x", Reason.MALFORMED),
        (mail_of([dataclasses.replace(locked(), sender=8)]), Reason.MALFORMED),
        (mail_of([], absent=[6, 3]), Reason.MALFORMED),
        (mail_of([], absent=[3, 3]), Reason.MALFORMED),
        (mail_of([], absent=[7]), Reason.UNKNOWN),
    ],
)
def test_mail_that_is_refused(data, reason):
    assert refusal(lambda: read_mail(data)) == (Fault.RELAY, reason)


# ---------------------------------------------------------------- hand-ins
def hand_in_of(places, *, holder=0, signer=0):
    return encode_hand_in(places, CONFIRMATION, ROSTER, SCENE.keys_of(signer), holder)


FULL = [INNER] + [None] * (TERMS.slots[0] - 1)


def test_a_hand_in_as_bytes():
    data = hand_in_of(FULL)
    holder, content = decode_hand_in(data, ROSTER)
    assert holder == 0
    found = open_hand_in(content, ROSTER, KEYS, 0)
    assert found == (CONFIRMATION, FULL)
    assert len(data) == len(hand_in_of([None] * TERMS.slots[0]))


def test_a_hand_in_opens_for_the_analyzer_in_its_place_only():
    _, content = decode_hand_in(hand_in_of(FULL), ROSTER)
    other = PrivateKeys.generate()
    assert open_hand_in(content, ROSTER, other, 0) is None
    assert open_hand_in(content, ROSTER, KEYS, 1) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (hand_in_of(FULL[1:]), Reason.MALFORMED),
        (hand_in_of([*FULL, None]), Reason.MALFORMED),
        (hand_in_of(FULL) + b"x", Reason.MALFORMED),
        (hand_in_of(FULL, signer=1), Reason.FORGED),
        (hand_in_of(FULL, holder=7), Reason.UNKNOWN),
    ],
)
def test_hand_ins_that_are_refused(data, reason):
    found = refusal(lambda: decode_hand_in(data, ROSTER))
    assert found == (Fault.PEER, reason)


def test_places_are_public():
    single = terms_on(protocol="single")
    assert [num_places(TERMS, 0), num_places(single, 0)] == [TERMS.slots[0], 1]


def test_a_place_with_something_else_in_it():
    info = wire.digest(b"hand-in seal", ROSTER.context, wire.uint(0))
    text = bytes(36) + b"\x07" + bytes(TERMS.inner_bytes)
    content = seal(text, TERMS.analyzer_mail_key, info)
    _, places = open_hand_in(content, ROSTER, KEYS, 0)
    assert places == [Refusal.MALFORMED]
