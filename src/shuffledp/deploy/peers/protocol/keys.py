"""Keys: who somebody is, where to write to him, who has registered, and keys between neighbours.

Two neighbours u < v make the first secret k_1 from their mail keys by X25519 and HKDF-SHA256, with
the context as salt, and then forget these keys. In round r both expand k_r (HKDF-SHA256, under the
context, r, u and v) to the next secret k_(r+1), a key for envelopes from u to v, one from v to u,
and one for codes. Whoever has taken the mail of round r keeps k_(r+1) only: what was sent to him or
by him until then cannot be opened any more by what he has, nor by what his neighbours have who have
come as far.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.deploy import wire
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.sealing import is_mail_key, is_signed, new_keys, shared_key
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

_KEYS_MAGIC: Final = b"SPK\x01"
_REGISTRATION_MAGIC: Final = b"SPR\x02"
_ROSTER_MAGIC: Final = b"SPL\x02"


class _Signer:
    """An Ed25519 key that signs; secret."""

    __slots__ = ("_identity",)

    def __init__(self, identity: Ed25519PrivateKey) -> None:
        self._identity = identity

    @property
    def identity_key(self) -> bytes:
        """The public key that checks signatures."""
        return self._identity.public_key().public_bytes_raw()

    def sign(self, text: bytes) -> bytes:
        """Return the signature of a text."""
        return self._identity.sign(text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(identity_key={self.identity_key.hex()})"


class PeerKeys(_Signer):
    """The private keys of a user, for one collection; those that have been used are forgotten.

    ``mail`` has an X25519 key by round. That of round 0 is for keys with each neighbour, and lasts
    until these are made; that of round r opens the layers of onions that come in this round.
    """

    __slots__ = ("mail",)

    def __init__(self, identity: Ed25519PrivateKey, mail: dict[int, X25519PrivateKey]) -> None:
        super().__init__(identity)
        self.mail = mail

    @classmethod
    def generate(cls, num_mail: int = 1) -> Self:
        """Return fresh keys from the operating system's generator."""
        mail = {number: X25519PrivateKey.generate() for number in range(num_mail)}
        return cls(Ed25519PrivateKey.generate(), mail)

    @classmethod
    def take(cls, reader: wire.Reader) -> Self:
        """Return the keys of a snapshot that `to_bytes` wrote."""
        identity = Ed25519PrivateKey.from_private_bytes(reader.take(wire.KEY_BYTES))
        mail = {
            reader.number(): X25519PrivateKey.from_private_bytes(reader.take(wire.KEY_BYTES))
            for _ in range(reader.number())
        }
        return cls(identity, mail)

    def to_bytes(self) -> bytes:
        """Return the private keys, unencrypted: whoever reads them is their owner."""
        mail = (wire.number(at) + key.private_bytes_raw() for at, key in self.mail.items())
        head = self._identity.private_bytes_raw() + wire.number(len(self.mail))
        return head + b"".join(mail)

    @property
    def mail_keys(self) -> tuple[bytes, ...]:
        """The public keys to the mail keys, by rising round; all, before any is forgotten."""
        return tuple(key.public_key().public_bytes_raw() for key in self.mail.values())

    def forget(self, round_number: int) -> None:
        """Forget the mail key of a round; nothing happens if there is none."""
        self.mail.pop(round_number, None)


class AnalyzerKeys(_Signer):
    """The private keys of the analyzer, for one collection: ``mail`` opens what is handed in."""

    __slots__ = ("mail",)

    def __init__(self, identity: Ed25519PrivateKey, mail: X25519PrivateKey) -> None:
        super().__init__(identity)
        self.mail = mail

    @classmethod
    def generate(cls) -> Self:
        """Return fresh keys from the operating system's generator."""
        return cls(Ed25519PrivateKey.generate(), X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the keys that `to_bytes` wrote; `ProtocolError` if the bytes are damaged."""
        reader = wire.Reader(data, "private keys", Fault.CALLER)
        reader.expect(_KEYS_MAGIC, "they do not begin as keys do")
        identity, mail = reader.take(wire.KEY_BYTES), reader.take(wire.KEY_BYTES)
        reader.expect(wire.digest(b"keys", identity, mail), "the checksum does not fit")
        reader.finish()
        return cls(
            Ed25519PrivateKey.from_private_bytes(identity),
            X25519PrivateKey.from_private_bytes(mail),
        )

    def to_bytes(self) -> bytes:
        """Return the private keys, unencrypted: whoever reads them is their owner."""
        identity, mail = self._identity.private_bytes_raw(), self.mail.private_bytes_raw()
        return _KEYS_MAGIC + identity + mail + wire.digest(b"keys", identity, mail)

    @property
    def mail_key(self) -> bytes:
        """The public key to which texts are sealed."""
        return self.mail.public_key().public_bytes_raw()

    def are_of(self, terms: Terms) -> bool:
        """Return whether the terms name their public keys."""
        wanted = (terms.analyzer_mail_key, terms.analyzer_identity_key)
        return (self.mail_key, self.identity_key) == wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A user's public keys, signed; made by `make` or, verified, by `from_bytes`."""

    node: int
    identity_key: bytes
    mail_keys: tuple[bytes, ...]
    signature: bytes

    @classmethod
    def make(cls, terms: Terms, node: int, keys: PeerKeys) -> Self:
        """Return the registration of a user with these keys, of which none is forgotten yet."""
        identity, mail = keys.identity_key, keys.mail_keys
        return cls(
            node=node,
            identity_key=identity,
            mail_keys=mail,
            signature=keys.sign(_registered_text(terms, node, identity, mail)),
        )

    def to_bytes(self) -> bytes:
        """Return the registration as bytes."""
        return b"".join(
            (
                _REGISTRATION_MAGIC,
                wire.number(self.node),
                self.identity_key,
                *self.mail_keys,
                self.signature,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return a registration after checking its signature and keys.

        That the user is who he says cannot be seen from here: see the threat model.
        """
        reader = wire.Reader(data, "registration", Fault.PEER)
        registration = cls._take(reader, terms)
        reader.finish()
        return registration

    @classmethod
    def _take(cls, reader: wire.Reader, terms: Terms) -> Self:
        """Return the next registration of a message, verified."""
        reader.expect(_REGISTRATION_MAGIC, "it does not begin as a registration does")
        node = reader.number_below(terms.num_users, "user")
        identity = reader.take(wire.KEY_BYTES)
        mail = tuple(reader.take(wire.KEY_BYTES) for _ in range(terms.num_mail_keys))
        signature = reader.take(wire.SIGNATURE_BYTES)
        if not is_signed(signature, identity, _registered_text(terms, node, identity, mail)):
            raise reader.error(
                f"the signature of user {node} does not fit these terms and keys", Reason.FORGED
            )
        if not all(is_mail_key(key) for key in mail):
            raise reader.error(f"nothing can be sealed to the mail key of user {node}")
        return cls(node=node, identity_key=identity, mail_keys=mail, signature=signature)


def _registered_text(
    terms: Terms, node: int, identity: bytes, mail_keys: tuple[bytes, ...]
) -> bytes:
    """Return what a registration signs."""
    return wire.digest(b"registration", terms.digest(), wire.number(node), identity, *mail_keys)


class Roster:
    """Everybody who registered, verified; the same for all, or their messages do not open.

    Made by `from_registrations` or `from_bytes`.
    """

    __slots__ = ("_by_node", "_context", "_data", "_digest", "_terms_digest")

    def __init__(self, registrations: Iterable[Registration], terms_digest: bytes) -> None:
        self._by_node = {item.node: item for item in registrations}
        self._terms_digest = terms_digest
        self._data = b"".join(
            (
                _ROSTER_MAGIC,
                terms_digest,
                wire.number(len(self._by_node)),
                *(item.to_bytes() for item in self._by_node.values()),
            )
        )
        self._digest = wire.digest(b"roster", self._data)
        self._context = wire.digest(b"context", terms_digest, self._digest)

    @classmethod
    def from_registrations(cls, terms: Terms, registrations: Iterable[Registration]) -> Self:
        """Return the roster of verified registrations in any order, each user once; else raise."""
        items = sorted(registrations, key=lambda item: item.node)
        for before, after in pairwise(items):
            if before.node == after.node:
                raise ProtocolError(
                    f"user {after.node} is in the roster twice",
                    fault=Fault.RELAY,
                    reason=Reason.CONFLICT,
                )
        return cls(items, terms.digest())

    @classmethod
    def from_bytes(cls, data: bytes, terms: Terms) -> Self:
        """Return a roster after checking each registration, and that there are enough.

        Cost: 0.2 ms a user, with onions also 0.05 ms a round. Do it once a process and share the
        result.
        """
        reader = wire.Reader(data, "roster", Fault.RELAY)
        reader.expect(_ROSTER_MAGIC, "it does not begin as a roster does")
        reader.expect(terms.digest(), "it was made for other terms", Reason.MISMATCH)
        count = reader.number_below(terms.num_users + 1, "number of users")
        items: list[Registration] = []
        for _ in range(count):
            items.append(Registration._take(reader, terms))
            if len(items) > 1 and items[-2].node >= items[-1].node:
                raise reader.error("users do not stand in ascending order")
        reader.finish()
        if count < terms.least_registered:
            raise reader.error(
                f"{count} users registered, fewer than the {terms.least_registered} of the terms",
                Reason.MISMATCH,
            )
        return cls(items, terms.digest())

    def to_bytes(self) -> bytes:
        """Return the roster as bytes."""
        return self._data

    def digest(self) -> bytes:
        """Return the digest of the roster: 32 bytes."""
        return self._digest

    @property
    def context(self) -> bytes:
        """Digest of terms and roster: 32 bytes that every message after registration names."""
        return self._context

    @property
    def terms_digest(self) -> bytes:
        """Digest of the terms that the registrations were made for."""
        return self._terms_digest

    @property
    def nodes(self) -> tuple[int, ...]:
        """Who registered, ascending."""
        return tuple(self._by_node)

    @property
    def num_registered(self) -> int:
        """How many registered."""
        return len(self._by_node)

    def is_registered(self, node: int) -> bool:
        """Return whether a user registered."""
        return node in self._by_node

    def __getitem__(self, node: int) -> Registration:
        """Return a user's registration; `KeyError` if there is none."""
        return self._by_node[node]


def mail_token(keys: PeerKeys, terms: Terms, node: int, round_number: int) -> bytes:
    """Return what a user shows the relay to be given his mail of one round: a signature."""
    return keys.sign(mail_token_text(terms, node, round_number))


def mail_token_text(terms: Terms, node: int, round_number: int) -> bytes:
    """Return what `mail_token` signs."""
    return wire.digest(b"mail token", terms.digest(), wire.number(node), wire.number(round_number))


def hand_ins_token(keys: AnalyzerKeys, terms: Terms) -> bytes:
    """Return what the analyzer shows the relay to be given what was handed in: a signature."""
    return keys.sign(hand_ins_token_text(terms))


def hand_ins_token_text(terms: Terms) -> bytes:
    """Return what `hand_ins_token` signs."""
    return wire.digest(b"hand-ins token", terms.digest())


class RoundKeys(NamedTuple):
    """What two neighbours have in one round; to and from are as one of them sees it."""

    next_secret: bytes
    to: bytes
    from_: bytes
    code: bytes


_NUM_KEYS: Final = len(RoundKeys._fields)


def first_secrets(keys: PeerKeys, neighbours: tuple[int, ...], roster: Roster) -> dict[int, bytes]:
    """Return a user's secret with each neighbour before round 1, and forget what made them."""
    mail = keys.mail[0]
    found = {
        neighbour: shared_key(mail, roster[neighbour].mail_keys[0], roster.context)
        for neighbour in neighbours
    }
    keys.forget(0)
    return found


class Pairs:
    """The keys of a round with each neighbour; `forget`, which changes ``secrets``, ends it."""

    __slots__ = ("_context", "_made", "_node", "_round_number", "_secrets")

    def __init__(
        self, secrets: dict[int, bytes], *, node: int, round_number: int, context: bytes
    ) -> None:
        self._secrets, self._node, self._context = secrets, node, context
        self._round_number = round_number
        self._made: dict[int, RoundKeys] = {}

    def __getitem__(self, neighbour: int) -> RoundKeys:
        """Return the keys with a neighbour in this round."""
        if neighbour not in self._made:
            low, high = sorted((self._node, neighbour))
            place = wire.numbers(self._round_number, low, high)
            info = wire.digest(b"pair", self._context, place)
            after, up, down, code = new_keys(self._secrets[neighbour], _NUM_KEYS, info)
            to, from_ = (up, down) if self._node == low else (down, up)
            self._made[neighbour] = RoundKeys(after, to, from_, code)
        return self._made[neighbour]

    def forget(self) -> None:
        """Go on to the next round: the keys of this one cannot be made any more."""
        for neighbour in self._secrets:
            self._secrets[neighbour] = self[neighbour].next_secret
        self._made = {}
        self._round_number += 1
