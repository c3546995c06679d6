"""Messages of the exchange, all of one size; and codes that show whether everything arrived.

A report is sealed to the analyzer once, by its user (the inner seal). Each round its holder locks
it, with the key shared with the next holder for this round, into an envelope. A cover is an
envelope of the same size without a report. All envelopes of a user in one round are a batch,
which is signed; what the relay passes on to a recipient is the recipient's mail; the reports that a
holder gives the analyzer at the end are the holder's hand-in.

In every round a user sends each registered neighbour a code over the envelopes for them, none
included, under a key of this round that only the two of them have. The recipient learns from the
relay which users were absent; the code of each other neighbour must fit the envelopes that arrived.
The *transcript* is a digest of absences in all rounds so far; codes fit only between users who were
shown the same. A user who finds a shortfall sends codes that fit nothing from then on, so that it
becomes known wherever the missing report could have gone (docs/results/honest-users.md).
"""

import hmac
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.deploy import wire
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, is_signed, lock, seal, unlock
from shuffledp.peers.keys import Pairs, PrivateKeys, Roster
from shuffledp.peers.terms import CODE_BYTES, SEAL_BYTES, Terms

_BATCH_MAGIC: Final = b"SPB\x03"
_MAIL_MAGIC: Final = b"SPM\x03"
_HAND_IN_MAGIC: Final = b"SPH\x02"

_CONFIRMATION_BYTES: Final = wire.DIGEST_BYTES + wire.NUMBER_BYTES

_COVER: Final = b"\x00"
_REAL: Final = b"\x01"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A holder's statement on the delivery to them, for the analyzer only."""

    # Digest of all rounds, as the relay showed them to this holder.
    transcript: bytes
    # Round in which something was first found missing; 0 if nothing was.
    short_since: int


def first_transcript(roster: Roster) -> bytes:
    """Return the transcript before round 1."""
    return wire.digest(b"transcript", roster.context)


def next_transcript(before: bytes, round_number: int, absent: Sequence[int]) -> bytes:
    """Return the transcript after a round in which these registered users were absent."""
    return wire.digest(b"transcript", before, wire.numbers(round_number, *absent))


def final_transcript(roster: Roster, absences: NDArray[np.bool_]) -> bytes:
    """Return the transcript of a whole exchange; users who are not in the roster do not count."""
    nodes = np.array(roster.nodes, dtype=np.int64)
    transcript = first_transcript(roster)
    for row, away in enumerate(absences):
        transcript = next_transcript(transcript, row + 1, nodes[away[nodes]].tolist())
    return transcript


def delivery_code(
    key: bytes,
    place: tuple[int, int, int],
    transcript: bytes,
    envelopes: Iterable[tuple[int, bytes]],
) -> bytes:
    """Return the code over the envelopes of a round, sender and recipient, each with its index.

    An envelope opens under its own index only: without it in the code a relay could renumber
    envelopes, and reports would be lost with no shortfall.
    """
    sealed = (wire.uint(index) + each for index, each in envelopes)
    text = wire.digest(b"code", transcript, wire.numbers(*place), *sealed)
    return hmac.digest(key, text, "sha256")[:CODE_BYTES]


class Refusal(StrEnum):
    """Reason why an envelope, or part of a hand-in, is refused."""

    UNOPENED = "does not open: for another key, round, sender or roster, or changed on the way"
    STRANGER = "from somebody who is no registered neighbour, or was absent"
    MALFORMED = "malformed inside"
    DUPLICATE = "the same again"


@dataclass(frozen=True, slots=True)
class Letter:
    """A sealed envelope with its address."""

    round_number: int
    sender: int
    index: int
    recipient: int
    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """All that a user sends in a round."""

    round_number: int
    sender: int
    letters: tuple[Letter, ...]
    codes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """All that a user is given of a finished round; none of it is verified."""

    absent: tuple[int, ...]
    letters: tuple[Letter, ...]
    codes: Mapping[int, bytes]


def _info(context: bytes, *place: int) -> bytes:
    """Context to which an envelope is bound: round, sender, recipient and index."""
    return wire.digest(b"envelope", context, wire.numbers(*place))


def lock_envelope(
    content: bytes | None, roster: Roster, pairs: Pairs, place: tuple[int, int, int, int]
) -> Letter:
    """Return an envelope with a report, or a cover; only sender and recipient can open or make it.

    Its place is round, sender, recipient and index.
    """
    number, sender, recipient, index = place
    text, info = _in_place(content, roster.terms), _info(roster.context, *place)
    return Letter(number, sender, index, recipient, lock(text, pairs[recipient].to, info))


def _in_place(content: bytes | None, terms: Terms) -> bytes:
    """Return the report in an envelope, or a cover of the same size."""
    return _COVER + bytes(terms.inner_bytes) if content is None else _REAL + content


def open_envelope(letter: Letter, roster: Roster, pairs: Pairs) -> bytes | Refusal | None:
    """Report in an envelope, None for a cover, or the reason for refusing it."""
    info = _info(roster.context, letter.round_number, letter.sender, letter.recipient, letter.index)
    text = unlock(letter.sealed, pairs[letter.sender].from_, info)
    if text is None:
        return Refusal.UNOPENED
    return _out_of_place(text) if len(text) == 1 + roster.terms.inner_bytes else Refusal.MALFORMED


def _out_of_place(text: bytes) -> bytes | Refusal | None:
    """Report in an envelope, None for a cover."""
    if text[:1] == _COVER:
        return None
    return text[1:] if text[:1] == _REAL else Refusal.MALFORMED


def encode_batch(batch: Batch, roster: Roster, keys: PrivateKeys) -> bytes:
    """Return a batch as bytes, signed."""
    body = _BATCH_MAGIC + roster.context
    body += wire.numbers(batch.round_number, batch.sender, len(batch.letters))
    body += b"".join(wire.uint(letter.recipient) + letter.sealed for letter in batch.letters)
    body += wire.uint(len(batch.codes)) + b"".join(batch.codes)
    return body + keys.sign(wire.digest(b"batch", body))


def decode_batch(data: bytes, roster: Roster) -> Batch:
    """Return a batch by a registered user, of a round in [1, rounds]; raise otherwise."""
    terms, reader = roster.terms, _reader(data, "batch", Fault.PEER, _BATCH_MAGIC, roster)
    round_number = reader.number_below(terms.rounds + 1, "round")
    if round_number == 0:
        raise reader.error("round 0 has no batches: rounds are numbered from 1")
    sender = _take_registered(reader, roster)
    letters = []
    for index in range(reader.uint()):
        recipient = reader.number_below(terms.num_users, "recipient")
        sealed = reader.take(terms.envelope_bytes)
        letters.append(Letter(round_number, sender, index, recipient, sealed))
    codes = tuple(reader.take(CODE_BYTES) for _ in range(reader.uint()))
    _take_signature(reader, b"batch", roster, sender)
    return Batch(round_number=round_number, sender=sender, letters=tuple(letters), codes=codes)


def encode_mail(mail: Mail, roster: Roster, *, round_number: int, recipient: int) -> bytes:
    """Return the mail of one round to one recipient as bytes.

    It is not signed as a whole: each envelope is locked for its place, and the codes show what
    should be there.
    """
    head = wire.numbers(round_number, recipient, len(mail.absent), *mail.absent)
    letters = (wire.numbers(each.sender, each.index) + each.sealed for each in mail.letters)
    codes = (wire.uint(sender) + code for sender, code in mail.codes.items())
    body = _MAIL_MAGIC + roster.context + head + wire.uint(len(mail.letters)) + b"".join(letters)
    return body + wire.uint(len(mail.codes)) + b"".join(codes)


def decode_mail(data: bytes, roster: Roster, *, round_number: int, recipient: int) -> Mail:
    """Contents of a packet of mail, unverified."""
    terms, reader = roster.terms, _reader(data, "mail", Fault.RELAY, _MAIL_MAGIC, roster)
    reader.expect(wire.uint(round_number), f"it is not of round {round_number}", Reason.MISMATCH)
    reader.expect(wire.uint(recipient), f"it is not for user {recipient}", Reason.MISMATCH)
    absent = tuple(_take_registered(reader, roster) for _ in range(reader.uint()))
    if any(before >= after for before, after in pairwise(absent)):
        raise reader.error("absent users do not stand in ascending order")
    letters = []
    for _ in range(reader.uint()):
        sender, index = reader.number_below(terms.num_users, "sender"), reader.uint()
        sealed = reader.take(terms.envelope_bytes)
        letters.append(Letter(round_number, sender, index, recipient, sealed))
    codes = {reader.uint(): reader.take(CODE_BYTES) for _ in range(reader.uint())}
    reader.finish()
    return Mail(absent=absent, letters=tuple(letters), codes=codes)


def seal_report(report: bytes, terms: Terms) -> bytes:
    """Return a report sealed to the analyzer, as it is handed in at the end."""
    return seal(report, terms.analyzer_mail_key, wire.digest(b"report", terms.digest()))


def open_report(inner: bytes, terms: Terms, keys: PrivateKeys) -> bytes | None:
    """Return the report in an inner seal, or ``None`` if it does not open."""
    text = keys.open(inner, wire.digest(b"report", terms.digest()))
    return text if text is None or len(text) == terms.report_bytes else None


def encode_hand_in(
    places: Sequence[bytes | None],
    confirmation: Confirmation,
    roster: Roster,
    keys: PrivateKeys,
    holder: int,
) -> bytes:
    """Encode a hand-in, sealed to the analyzer as a whole and signed.

    The number of places is public; the number of empty ones is known only to the analyzer.
    """
    text = confirmation.transcript + wire.uint(confirmation.short_since)
    text += b"".join(_in_place(inner, roster.terms) for inner in places)
    sealed = seal(text, roster.terms.analyzer_mail_key, _hand_in_info(roster.context, holder))
    body = _HAND_IN_MAGIC + roster.context + wire.uint(holder) + sealed
    return body + keys.sign(wire.digest(b"hand-in", body))


def num_places(terms: Terms, holder: int) -> int:
    """Return the number of places of a hand-in."""
    return terms.slots[holder] if terms.protocol == "all" else 1


def _hand_in_info(context: bytes, holder: int) -> bytes:
    """Context to which the seal of a hand-in is bound."""
    return wire.digest(b"hand-in seal", context, wire.uint(holder))


def decode_hand_in(data: bytes, roster: Roster) -> tuple[int, bytes]:
    """Return the holder and the sealed content of a hand-in, after checking its signature."""
    reader = _reader(data, "hand-in", Fault.PEER, _HAND_IN_MAGIC, roster)
    holder = _take_registered(reader, roster)
    size = num_places(roster.terms, holder) * (1 + roster.terms.inner_bytes)
    sealed = reader.take(_CONFIRMATION_BYTES + size + SEAL_BYTES)
    _take_signature(reader, b"hand-in", roster, holder)
    return holder, sealed


def open_hand_in(
    sealed: bytes, roster: Roster, keys: PrivateKeys, holder: int
) -> tuple[Confirmation, list[bytes | Refusal | None]] | None:
    """Return the confirmation and places of a hand-in; ``None`` if it does not open."""
    text = keys.open(sealed, _hand_in_info(roster.context, holder))
    if text is None:
        return None
    since = int.from_bytes(text[wire.DIGEST_BYTES : _CONFIRMATION_BYTES], "big")
    size = 1 + roster.terms.inner_bytes
    starts = range(_CONFIRMATION_BYTES, len(text), size)
    places = [_out_of_place(text[start : start + size]) for start in starts]
    return Confirmation(transcript=text[: wire.DIGEST_BYTES], short_since=since), places


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """All that came to the analyzer."""

    # Randomized reports, each once.
    reports: tuple[bytes, ...]
    # The holder who handed in each.
    holders: tuple[int, ...]
    # Users who handed in.
    num_hand_ins: int
    # Numbers of rejected hand-ins and single places, by reason.
    rejected: Mapping[str, int]
    # Confirmations of holders whose hand-ins opened.
    confirmations: Mapping[int, Confirmation]


def open_all(hand_ins: Iterable[bytes], roster: Roster, keys: PrivateKeys) -> Collected:
    """Open all hand-ins: reports, each once, with their holders ascending.

    Faulty hand-ins are counted and left out. A report that is handed in twice is a replay: the
    second is left out. A report is not signed by its user, as that would name the user: each
    participant can hand in reports of their own making, up to their slots.
    """
    if not keys.are_of(roster.terms):
        raise ParameterError(
            "the private keys do not belong to the terms: use the file beside them"
        )
    rejected: Counter[str] = Counter()
    by_holder = _by_holder(hand_ins, roster, rejected)
    opened: dict[object, tuple[int, bytes]] = {}  # by seal: holder and report
    confirmations = {}
    for holder, sealed in sorted(by_holder.items()):
        found = open_hand_in(sealed, roster, keys, holder)
        if found is None:
            rejected[str(Refusal.UNOPENED)] += 1
            continue
        confirmations[holder], places = found
        for place in places:
            content = Refusal.DUPLICATE if place in opened else place
            if isinstance(content, bytes):
                content = open_report(content, roster.terms, keys) or Refusal.UNOPENED
            if isinstance(content, Refusal):
                rejected[str(content)] += 1
            elif content is not None:
                opened[place] = holder, content
    return Collected(
        reports=tuple(report for _, report in opened.values()),
        holders=tuple(holder for holder, _ in opened.values()),
        num_hand_ins=len(by_holder),
        rejected=dict(rejected),
        confirmations=confirmations,
    )


def _by_holder(given: Iterable[bytes], roster: Roster, rejected: Counter[str]) -> dict[int, bytes]:
    """Return the sealed content of the first hand-in of each holder."""
    kept: dict[int, bytes] = {}
    for data in given:
        try:
            holder, sealed = decode_hand_in(data, roster)
        except ProtocolError as error:
            rejected[f"hand-in {error.reason}"] += 1
            continue
        if kept.setdefault(holder, sealed) != sealed:
            rejected["second hand-in of one holder"] += 1
    return kept


def _reader(data: bytes, name: str, fault: Fault, magic: bytes, roster: Roster) -> wire.Reader:
    """Return a reader of a message after its magic number and roster, both checked."""
    reader = wire.Reader(data, name, fault)
    reader.expect(magic, f"it begins as no {name} does")
    reader.expect(roster.context, "it was made for other terms or another roster", Reason.MISMATCH)
    return reader


def _take_registered(reader: wire.Reader, roster: Roster) -> int:
    """Return the next number of a message, which must be a registered user."""
    node = reader.number_below(roster.terms.num_users, "user")
    if node not in roster:
        raise reader.error(f"user {node} is not in the roster", Reason.UNKNOWN)
    return node


def _take_signature(reader: wire.Reader, label: bytes, roster: Roster, node: int) -> None:
    """Take the user's signature that ends a message; raise unless it covers all before it."""
    body = reader.read_so_far()
    signature = reader.take(wire.SIGNATURE_BYTES)
    reader.finish()
    if not is_signed(signature, roster[node].identity_key, wire.digest(label, body)):
        raise reader.error(f"it is not signed by user {node}", Reason.FORGED)
