"""Keys: identities, addresses, registrations, and keys between neighbours.

Two neighbours u < v make the first secret k_1 from their mail keys by X25519 and HKDF-SHA256, with
the context as salt, and then forget these keys. In round r both expand k_r (HKDF-SHA256, under the
context, r, u and v) to the next secret k_(r+1), a key for envelopes from u to v, one from v to u,
and one for codes. A user who has taken the mail of round r keeps k_(r+1) only: messages to or from
this user until then can no longer be opened with the user's keys, nor with keys of neighbours who
have come as far.

*Proof*, for X25519 as hard as HPKE assumes, HKDF pseudorandom, AES-SIV and HPKE secure. The private
halves that make k_1 are in no snapshot. If k_s is indistinguishable from random, so are the four
outputs of HKDF-Expand under it. By induction the keys of rounds 1 to r look independent of k_(r+1)
and one another; AES-SIV under them, each associated data used at most once, hides all but lengths.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.deploy import wire
from shuffledp.deploy.wire import Fault, Reason
from shuffledp.network.graph import Graph
from shuffledp.peers.terms import Terms

_KEYS_MAGIC: Final = b"SPK\x01"
_REGISTRATION_MAGIC: Final = b"SPR\x02"
_ROSTER_MAGIC: Final = b"SPL\x02"


class PrivateKeys:
    """The private keys of a user or of the analyzer, for one collection; secret.

    An Ed25519 key signs. An X25519 key opens texts sealed to its owner; a user's is for the first
    secrets with neighbours, and forgotten once these are made.
    """

    def __init__(self, identity: Ed25519PrivateKey, mail: X25519PrivateKey | None) -> None:
        self._identity, self._mail = identity, mail

    @classmethod
    def generate(cls) -> Self:
        """Return fresh keys from the operating system's generator."""
        return cls(Ed25519PrivateKey.generate(), X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the keys that `to_bytes` wrote; raise `ProtocolError` for damaged bytes."""
        reader = wire.Reader(data, "private keys", Fault.CALLER)
        reader.expect(_KEYS_MAGIC, "they do not begin as keys do")
        has_mail = len(data) > len(_KEYS_MAGIC) + wire.KEY_BYTES + wire.DIGEST_BYTES
        identity = reader.take(wire.KEY_BYTES)
        mail = reader.take(wire.KEY_BYTES) if has_mail else b""
        reader.expect(wire.digest(b"keys", identity, mail), "the checksum does not fit")
        reader.finish()
        opens = X25519PrivateKey.from_private_bytes(mail) if has_mail else None
        return cls(Ed25519PrivateKey.from_private_bytes(identity), opens)

    def to_bytes(self) -> bytes:
        """Return the private keys, unencrypted: any party with them can act as their owner."""
        identity = self._identity.private_bytes_raw()
        mail = b"" if self._mail is None else self._mail.private_bytes_raw()
        return _KEYS_MAGIC + identity + mail + wire.digest(b"keys", identity, mail)

    @property
    def identity_key(self) -> bytes:
        """The public key that verifies signatures."""
        return self._identity.public_key().public_bytes_raw()

    @property
    def mail_key(self) -> bytes:
        """The public key to which texts are sealed."""
        return self._own_mail().public_key().public_bytes_raw()

    def _own_mail(self) -> X25519PrivateKey:
        """Return the private mail key; raise if it has been forgotten."""
        if self._mail is None:
            raise Fault.CALLER.error("the mail key has been forgotten", Reason.LATE)
        return self._mail

    def forget_mail(self) -> None:
        """Forget the private mail key."""
        self._mail = None

    def sign(self, text: bytes) -> bytes:
        """Return the signature of a text."""
        return self._identity.sign(text)

    def open(self, sealed: bytes, info: bytes) -> bytes | None:
        """Return the text in a seal, or ``None`` if it does not open."""
        return wire.open_seal(sealed, self._own_mail(), info)

    def shared(self, public_key: bytes, context: bytes) -> bytes:
        """Return the key shared by the owner and the owner of a public key."""
        return wire.shared_key(self._own_mail(), public_key, context)

    def are_of(self, terms: Terms) -> bool:
        """Return True if the terms name their public keys."""
        wanted = (terms.analyzer_mail_key, terms.analyzer_identity_key)
        return (self.mail_key, self.identity_key) == wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A user's public keys, signed; made by `make` or, verified, by `from_bytes`."""

    node: int
    identity_key: bytes
    mail_key: bytes
    signature: bytes = b""

    @classmethod
    def make(cls, terms: Terms, node: int, keys: PrivateKeys) -> Self:
        """Return the registration of a user with these keys."""
        made = cls(node=node, identity_key=keys.identity_key, mail_key=keys.mail_key)
        return replace(made, signature=keys.sign(made._text(terms)))

    def _text(self, terms: Terms) -> bytes:
        """Return the bytes that the signature covers."""
        said = (wire.uint(self.node), self.identity_key, self.mail_key)
        return wire.digest(b"registration", terms.digest(), *said)

    def to_bytes(self) -> bytes:
        """Return the registration as bytes."""
        head = _REGISTRATION_MAGIC + wire.uint(self.node)
        return head + self.identity_key + self.mail_key + self.signature

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return a registration after checking its signature and keys.

        The user's identity cannot be verified here: see the threat model.
        """
        reader = wire.Reader(data, "registration", Fault.PEER)
        registration = cls._take(reader, terms)
        reader.finish()
        return registration

    @classmethod
    def _take(cls, reader: wire.Reader, terms: Terms) -> Self:
        """Return the next registration of a message, verified."""
        reader.expect(_REGISTRATION_MAGIC, "it does not begin as a registration does")
        made = cls(
            node=reader.number_below(terms.num_users, "user"),
            identity_key=reader.take(wire.KEY_BYTES),
            mail_key=reader.take(wire.KEY_BYTES),
            signature=reader.take(wire.SIGNATURE_BYTES),
        )
        if not wire.is_signed(made.signature, made.identity_key, made._text(terms)):
            what = f"the signature of user {made.node} does not fit these terms and keys"
            raise reader.error(what, Reason.FORGED)
        if not wire.is_mail_key(made.mail_key):
            raise reader.error(f"nothing can be sealed to the mail key of user {made.node}")
        return made


class Roster(dict[int, Registration]):
    """All registered users, verified and ascending; the same for all who exchange messages.

    Made from verified registrations, one a user, in any order; or by `from_bytes`.
    """

    def __init__(self, terms: Terms, registrations: Iterable[Registration]) -> None:
        ordered = sorted(registrations, key=lambda item: item.node)
        super().__init__((item.node, item) for item in ordered)
        self.terms = terms
        #: Registered users, ascending.
        self.nodes = tuple(self)
        head = _ROSTER_MAGIC + terms.digest() + wire.uint(len(self))
        self._data = head + b"".join(item.to_bytes() for item in self.values())
        self._digest = wire.digest(b"roster", self._data)
        #: Digest of terms and roster: 32 bytes that every message after registration names.
        self.context = wire.digest(b"context", terms.digest(), self._digest)

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return a roster after checking each registration, and their number.

        Cost: 0.2 ms a user. Do it once a process and share the result.
        """
        reader = wire.Reader(data, "roster", Fault.RELAY)
        reader.expect(_ROSTER_MAGIC, "it does not begin as a roster does")
        reader.expect(terms.digest(), "it was made for other terms", Reason.MISMATCH)
        count = reader.number_below(terms.num_users + 1, "number of users")
        items = [Registration._take(reader, terms) for _ in range(count)]
        if any(before.node >= after.node for before, after in pairwise(items)):
            raise reader.error("users do not stand in ascending order")
        reader.finish()
        if count < terms.least_registered:
            what = f"{count} users registered, fewer than the {terms.least_registered} of the terms"
            raise reader.error(what, Reason.MISMATCH)
        return cls(terms, items)

    def to_bytes(self) -> bytes:
        """Return the roster as bytes."""
        return self._data

    def digest(self) -> bytes:
        """Return the digest of the roster: 32 bytes."""
        return self._digest

    def neighbours_in(self, graph: Graph, node: int) -> tuple[int, ...]:
        """Return the neighbours of a user who have registered, ascending."""
        return tuple(other for other in graph.neighbours_of(node).tolist() if other in self)


def mail_token_text(terms: Terms, node: int, round_number: int) -> bytes:
    """Text that a user signs to fetch the mail of one round from the relay."""
    return wire.digest(b"mail token", terms.digest(), wire.uint(node), wire.uint(round_number))


def hand_ins_token_text(terms: Terms) -> bytes:
    """Text that the analyzer signs to fetch the hand-ins from the relay."""
    return wire.digest(b"hand-ins token", terms.digest())


class RoundKeys(NamedTuple):
    """Keys of two neighbours in one round; to and from are from the view of one of them."""

    next_secret: bytes
    to: bytes
    from_: bytes
    code: bytes


class Pairs:
    """The keys of a round with each neighbour; `forget`, which changes ``secrets``, ends it."""

    def __init__(self, secrets: dict[int, bytes], node: int, number: int, context: bytes) -> None:
        self._secrets, self._node, self._context = secrets, node, context
        self._round_number, self._made = number, dict[int, RoundKeys]()

    def __getitem__(self, neighbour: int) -> RoundKeys:
        """Return the keys with a neighbour in this round."""
        if neighbour not in self._made:
            low, high = sorted((self._node, neighbour))
            place = wire.numbers(self._round_number, low, high)
            info = wire.digest(b"pair", self._context, place)
            number, secret = len(RoundKeys._fields), self._secrets[neighbour]
            after, up, down, code = wire.new_keys(secret, number, info)
            to, from_ = (up, down) if self._node == low else (down, up)
            self._made[neighbour] = RoundKeys(after, to, from_, code)
        return self._made[neighbour]

    def forget(self) -> None:
        """Go on to the next round: the keys of this round cannot be made any more."""
        for neighbour in self._secrets:
            self._secrets[neighbour] = self[neighbour].next_secret
        self._made, self._round_number = {}, self._round_number + 1
