"""Messages of the exchange: envelopes, batches, mail and hand-ins; each of one size.

A report is sealed to the analyzer once, by its user (the inner seal), and with onion routing
wrapped in layers. Each round its holder locks it, with the key that he has with the next holder for
this round, into an envelope. A cover is an envelope of the same size without a report. All
envelopes of a user in one round are his batch, which he signs; what the relay passes on to a
recipient is his mail; what a holder gives the analyzer at the end is his hand-in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.protocol.delivery import CODE_BYTES, Confirmation
from shuffledp.deploy.peers.protocol.errors import Fault, Reason
from shuffledp.deploy.peers.protocol.keys import AnalyzerKeys, PeerKeys, Roster
from shuffledp.deploy.peers.protocol.pairs import Pairs
from shuffledp.deploy.peers.protocol.sealing import is_signed, lock, open_seal, seal, unlock
from shuffledp.deploy.peers.protocol.terms import SEAL_BYTES, Terms

_BATCH_MAGIC: Final = b"SPB\x03"
_MAIL_MAGIC: Final = b"SPM\x03"
_HAND_IN_MAGIC: Final = b"SPH\x02"

_CONFIRMATION_BYTES: Final = wire.DIGEST_BYTES + wire.NUMBER_BYTES

_COVER: Final = b"\x00"
_REAL: Final = b"\x01"


class Refusal(StrEnum):
    """Why an envelope, or what was handed in, is not taken."""

    UNOPENED = "does not open: for another key, round, sender or roster, or changed on the way"
    STRANGER = "from somebody who is no registered neighbour, or was absent"
    MALFORMED = "malformed inside"
    DUPLICATE = "the same again"


@dataclass(frozen=True, slots=True)
class Letter:
    """A sealed envelope with what stands on it.

    Parameters
    ----------
    round_number : int
        In which it was sent, from 1.
    sender, recipient : int
        Users.
    index : int
        Its place in the sender's batch, from 0.
    sealed : bytes
        Of the size ``terms.envelope_bytes_in(round_number)``.
    """

    round_number: int
    sender: int
    index: int
    recipient: int
    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """All that a user sends in a round.

    Parameters
    ----------
    round_number, sender : int
        The round, from 1, and the user.
    letters : tuple of Letter
        In their order. Recipients are users, perhaps not registered.
    codes : tuple of bytes
        One for each registered neighbour of the sender, ascending; see `Codes`.
    """

    round_number: int
    sender: int
    letters: tuple[Letter, ...]
    codes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """All that a user is given of a round that is over; nothing in it is sure to be right.

    Parameters
    ----------
    absent : tuple of int
        Registered users who sent nothing in the round, ascending.
    letters : tuple of Letter
        In any order. Senders are users, perhaps not registered.
    codes : mapping of int to bytes
        By sender.
    """

    absent: tuple[int, ...]
    letters: tuple[Letter, ...]
    codes: Mapping[int, bytes]


def _info(context: bytes, round_number: int, sender: int, recipient: int, index: int) -> bytes:
    """Return what an envelope is bound to."""
    place = wire.numbers(round_number, sender, recipient, index)
    return wire.digest(b"envelope", context, place)


def lock_envelope(
    content: bytes | None,
    *,
    terms: Terms,
    roster: Roster,
    pairs: Pairs,
    round_number: int,
    sender: int,
    recipient: int,
    index: int,
) -> Letter:
    """Return an envelope with a report, or without.

    Parameters
    ----------
    content : bytes or None
        The report, sealed to the analyzer or as an onion, of the size
        ``terms.content_bytes(round_number)``; ``None`` makes a cover.
    terms, roster
        Of the collection.
    pairs : Pairs
        Of the sender, for this round.
    round_number, sender, recipient, index
        See `Letter`. The recipient is a registered neighbour.

    Returns
    -------
    Letter
        Only sender and recipient can open it, and nobody else can have made it.

    Notes
    -----
    Cost: 0.01 ms.
    """
    info = _info(roster.context, round_number, sender, recipient, index)
    cover = _COVER + bytes(terms.content_bytes(round_number))
    text = cover if content is None else _REAL + content
    return Letter(round_number, sender, index, recipient, lock(text, pairs[recipient].to, info))


def open_envelope(
    letter: Letter, *, terms: Terms, roster: Roster, pairs: Pairs
) -> bytes | Refusal | None:
    """Return what is in an envelope: a report, nothing, or why it is refused.

    Parameters
    ----------
    letter : Letter
        Of a registered neighbour to the user of the pairs.
    terms, roster
        Of the collection.
    pairs : Pairs
        Of the recipient, for the round of the letter.

    Returns
    -------
    bytes, None or Refusal
        A report as it travels; ``None`` for a cover; otherwise why not.

    Notes
    -----
    Cost: 0.01 ms.
    """
    info = _info(roster.context, letter.round_number, letter.sender, letter.recipient, letter.index)
    text = unlock(letter.sealed, pairs[letter.sender].from_, info)
    if text is None:
        return Refusal.UNOPENED
    flag, content = text[:1], text[1:]
    if len(content) != terms.content_bytes(letter.round_number) or flag not in {_COVER, _REAL}:
        return Refusal.MALFORMED
    return content if flag == _REAL else None


def encode_batch(batch: Batch, *, roster: Roster, keys: PeerKeys) -> bytes:
    """Return a batch as bytes, signed."""
    body = b"".join(
        (
            _BATCH_MAGIC,
            roster.context,
            wire.numbers(batch.round_number, batch.sender, len(batch.letters)),
            *(wire.number(letter.recipient) + letter.sealed for letter in batch.letters),
            wire.number(len(batch.codes)),
            *batch.codes,
        )
    )
    return body + keys.sign(wire.digest(b"batch", body))


def decode_batch(data: bytes, *, terms: Terms, roster: Roster) -> Batch:
    """Return a batch after checking its signature.

    Parameters
    ----------
    data : bytes
        From `encode_batch`.
    terms, roster
        Of the collection.

    Returns
    -------
    Batch
        The round is in [1, rounds].

    Raises
    ------
    ProtocolError
        If the bytes are malformed, made for other terms or another roster, from somebody who is
        not registered, or not signed by him.
    """
    reader = wire.Reader(data, "batch", Fault.PEER)
    reader.expect(_BATCH_MAGIC, "it does not begin as a batch does")
    reader.expect(roster.context, "it was made for other terms or another roster", Reason.MISMATCH)
    round_number = reader.number_below(terms.rounds + 1, "round")
    if round_number == 0:
        raise reader.error("round 0 has no batches: rounds are numbered from 1")
    sender = _take_registered(reader, terms, roster)
    letters = []
    for index in range(reader.number()):
        recipient = reader.number_below(terms.num_users, "recipient")
        sealed = reader.take(terms.envelope_bytes_in(round_number))
        letters.append(Letter(round_number, sender, index, recipient, sealed))
    codes = tuple(reader.take(CODE_BYTES) for _ in range(reader.number()))
    _take_signature(reader, b"batch", roster[sender].identity_key, f"user {sender}")
    return Batch(round_number=round_number, sender=sender, letters=tuple(letters), codes=codes)


def encode_mail(mail: Mail, *, roster: Roster, round_number: int, recipient: int) -> bytes:
    """Return the mail of one round to one recipient as bytes.

    It is not signed as a whole: each envelope is locked for its place, and the codes say what
    should be there.
    """
    return b"".join(
        (
            _MAIL_MAGIC,
            roster.context,
            wire.numbers(round_number, recipient, len(mail.absent), *mail.absent),
            wire.number(len(mail.letters)),
            *(wire.numbers(letter.sender, letter.index) + letter.sealed for letter in mail.letters),
            wire.number(len(mail.codes)),
            *(wire.number(sender) + code for sender, code in mail.codes.items()),
        )
    )


def decode_mail(
    data: bytes, *, terms: Terms, roster: Roster, round_number: int, recipient: int
) -> Mail:
    """Return what is in a packet of mail; all of it may still be false.

    Parameters
    ----------
    data : bytes
        From `encode_mail`.
    terms, roster
        Of the collection.
    round_number, recipient : int
        Whose mail of which round was asked for.

    Returns
    -------
    Mail

    Raises
    ------
    ProtocolError
        If the bytes are malformed, or the mail is of another collection, round or recipient.
    """
    reader = wire.Reader(data, "mail", Fault.RELAY)
    reader.expect(_MAIL_MAGIC, "it does not begin as mail does")
    reader.expect(roster.context, "it was made for other terms or another roster", Reason.MISMATCH)
    reader.expect(wire.number(round_number), f"it is not of round {round_number}", Reason.MISMATCH)
    reader.expect(wire.number(recipient), f"it is not for user {recipient}", Reason.MISMATCH)
    absent = tuple(_take_registered(reader, terms, roster) for _ in range(reader.number()))
    if any(before >= after for before, after in pairwise(absent)):
        raise reader.error("absent users do not stand in ascending order")
    letters = []
    for _ in range(reader.number()):
        sender = reader.number_below(terms.num_users, "sender")
        index = reader.number()
        sealed = reader.take(terms.envelope_bytes_in(round_number))
        letters.append(Letter(round_number, sender, index, recipient, sealed))
    count = reader.number()
    codes = {reader.number(): reader.take(CODE_BYTES) for _ in range(count)}
    reader.finish()
    return Mail(absent=absent, letters=tuple(letters), codes=codes)


def seal_report(report: bytes, terms: Terms) -> bytes:
    """Return a report sealed to the analyzer: what is handed in at the end."""
    return seal(report, terms.analyzer_mail_key, wire.digest(b"report", terms.digest()))


def open_report(inner: bytes, *, terms: Terms, keys: AnalyzerKeys) -> bytes | None:
    """Return the report in an inner seal, or ``None`` if it does not open."""
    text = open_seal(inner, keys.mail, wire.digest(b"report", terms.digest()))
    return text if text is None or len(text) == terms.report_bytes else None


def encode_hand_in(
    places: Sequence[bytes | None],
    confirmation: Confirmation,
    *,
    terms: Terms,
    roster: Roster,
    keys: PeerKeys,
    holder: int,
) -> bytes:
    """Return what a holder hands in, sealed to the analyzer as a whole and signed.

    Parameters
    ----------
    places : sequence of (bytes or None)
        Reports in their inner seals; ``None`` fills an empty place. Their number is public.
    confirmation : Confirmation
        What the holder says of the delivery to him.
    terms, roster
        Of the collection.
    keys : PeerKeys
        Of the holder.
    holder : int
        The user.

    Returns
    -------
    bytes
        Only the analyzer can tell how many places are empty.
    """
    text = confirmation.transcript + wire.number(confirmation.short_since)
    text += b"".join(
        _COVER + bytes(terms.inner_bytes) if inner is None else _REAL + inner for inner in places
    )
    sealed = seal(text, terms.analyzer_mail_key, _hand_in_info(roster.context, holder))
    body = _HAND_IN_MAGIC + roster.context + wire.number(holder) + sealed
    return body + keys.sign(wire.digest(b"hand-in", body))


def num_places(terms: Terms, holder: int) -> int:
    """Return how many places a hand-in has."""
    return terms.slots[holder] if terms.protocol == "all" else 1


def _hand_in_info(context: bytes, holder: int) -> bytes:
    """Return what the seal of a hand-in is bound to."""
    return wire.digest(b"hand-in seal", context, wire.number(holder))


def decode_hand_in(data: bytes, *, terms: Terms, roster: Roster) -> tuple[int, bytes]:
    """Return the holder and the sealed content of a hand-in, after checking its signature.

    Parameters
    ----------
    data : bytes
        From `encode_hand_in`.
    terms, roster
        Of the collection.

    Returns
    -------
    holder : int
    sealed : bytes
        For `open_hand_in`.

    Raises
    ------
    ProtocolError
        If the bytes are malformed, made for other terms or another roster, from somebody who is
        not registered, or not signed by him.
    """
    reader = wire.Reader(data, "hand-in", Fault.PEER)
    reader.expect(_HAND_IN_MAGIC, "it does not begin as a hand-in does")
    reader.expect(roster.context, "it was made for other terms or another roster", Reason.MISMATCH)
    holder = _take_registered(reader, terms, roster)
    size = _CONFIRMATION_BYTES + num_places(terms, holder) * (1 + terms.inner_bytes)
    sealed = reader.take(size + SEAL_BYTES)
    _take_signature(reader, b"hand-in", roster[holder].identity_key, f"user {holder}")
    return holder, sealed


def open_hand_in(
    sealed: bytes, *, terms: Terms, roster: Roster, keys: AnalyzerKeys, holder: int
) -> tuple[Confirmation, list[bytes | Refusal | None]] | None:
    """Return what a hand-in says of the delivery, and its places; ``None`` if it does not open."""
    text = open_seal(sealed, keys.mail, _hand_in_info(roster.context, holder))
    if text is None:
        return None
    confirmation = Confirmation(
        transcript=text[: wire.DIGEST_BYTES],
        short_since=int.from_bytes(text[wire.DIGEST_BYTES : _CONFIRMATION_BYTES], "big"),
    )
    size = 1 + terms.inner_bytes
    places: list[bytes | Refusal | None] = []
    for start in range(_CONFIRMATION_BYTES, len(text), size):
        flag, inner = text[start : start + 1], text[start + 1 : start + size]
        if flag == _COVER:
            places.append(None)
        else:
            places.append(inner if flag == _REAL else Refusal.MALFORMED)
    return confirmation, places


def _take_registered(reader: wire.Reader, terms: Terms, roster: Roster) -> int:
    """Return the next number of a message, which is a registered user."""
    node = reader.number_below(terms.num_users, "user")
    if not roster.is_registered(node):
        raise reader.error(f"user {node} is not in the roster", Reason.UNKNOWN)
    return node


def _take_signature(reader: wire.Reader, label: bytes, identity_key: bytes, who: str) -> None:
    """Take the signature that ends a message; raise unless it is over all before it."""
    body = reader.read_so_far()
    signature = reader.take(wire.SIGNATURE_BYTES)
    reader.finish()
    if not is_signed(signature, identity_key, wire.digest(label, body)):
        raise reader.error(f"it is not signed by {who}", Reason.FORGED)
