"""Bytes between parties who do not trust each other: read strictly, sealed and signed in one way.

Each message has one encoding, with nothing missing and nothing left over. Whole numbers are
unsigned, four bytes, most significant first; the first four bytes identify kind and version. A
refusal states its reason, and the party at fault.

A text is sealed by HPKE (RFC 9180) in base mode with HKDF-SHA256 and AES-128-GCM, under a fresh key
pair; keys are encapsulated by DHKEM(X25519, HKDF-SHA256), or by the hybrid of ML-KEM-768 and X25519
(X-Wing, draft-connolly-cfrg-xwing-kem), which stays closed unless both are broken. Two users who
share a key lock texts by AES-128 in SIV mode (RFC 5297), which needs no nonce, and derive new keys
by HKDF-SHA256 (RFC 5869). Signatures are Ed25519 (RFC 8032). All randomness comes from the
operating system, even where routes come from a seed.
"""

import hashlib
import struct
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError, ShuffledpError

DIGEST_BYTES = 32
KEY_BYTES = 32
SIGNATURE_BYTES = 64
NUMBER_BYTES = 4


class Reason(StrEnum):
    """Reason of a refusal."""

    MALFORMED = "malformed"  # bytes that no honest program writes
    FORGED = "forged"  # a signature, or a token, that does not verify
    MISMATCH = "mismatch"  # made for other terms, another roster or another graph
    UNKNOWN = "unknown"  # a party that is not in the roster
    CONFLICT = "conflict"  # another message has been accepted in its place
    EARLY = "early"  # an earlier step is missing
    LATE = "late"  # the round, or the registration, is closed
    LIMIT = "limit"  # more than the user agrees to


class Fault(StrEnum):
    """Party that made the mistake."""

    PEER = "peer"
    RELAY = "relay"
    ANALYZER = "analyzer"
    OPERATOR = "operator"
    CLIENT = "client"
    SHUFFLER = "shuffler"
    CALLER = "caller"  # the program that calls this library, in the wrong order

    def error(self, message: str, reason: Reason = Reason.MALFORMED) -> "ProtocolError":
        """Return, for raising, an error of this party."""
        return ProtocolError(message, fault=self, reason=reason)


class ProtocolError(ShuffledpError, ValueError):
    """A message, or a call, breaks the protocol; it has changed nothing."""

    def __init__(self, message: str, *, fault: Fault, reason: Reason) -> None:
        super().__init__(message)
        self.fault, self.reason = fault, reason


def require_whole(name: str, value: object, first: int, end: int) -> None:
    """Raise unless a value is a whole number in [first, end), and not a bool."""
    if not isinstance(value, int) or isinstance(value, bool) or not first <= value < end:
        raise ParameterError(f"{name} = {value!r} is not a whole number in [{first}, {end})")


def uint(value: int, size: int = NUMBER_BYTES) -> bytes:
    """Return a whole number as bytes of this length, most significant first."""
    return value.to_bytes(size, "big")


def numbers(*values: int) -> bytes:
    """Return whole numbers in [0, 2^32), four bytes each."""
    return struct.pack(f">{len(values)}I", *values)


def opaque(data: bytes, size: int = NUMBER_BYTES) -> bytes:
    """Return bytes after their length, which takes ``size`` bytes."""
    return uint(len(data), size) + data


def digest(label: bytes, *parts: bytes) -> bytes:
    """Return SHA-256 of parts, each after its length, under a label for its use."""
    sha = hashlib.sha256(opaque(b"shuffledp " + label))
    for part in parts:
        sha.update(opaque(part, 8))
    return sha.digest()


class Reader:
    """Reads a message from its front; its name and its sender go into errors."""

    def __init__(self, data: bytes, name: str, fault: Fault) -> None:
        self._data, self._at = bytes(data), 0
        self._name, self._fault = name, fault

    def error(self, what: str, reason: Reason = Reason.MALFORMED) -> ProtocolError:
        """Return, for raising, an error about this message."""
        return self._fault.error(f"{self._name}: {what}", reason)

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self._at + size
        if end > len(self._data):
            what = f"{len(self._data)} bytes end in the middle of it"
            raise self.error(f"{what}, at least {end} are needed: send it again")
        start, self._at = self._at, end
        return self._data[start:end]

    def number_below(self, end: int, what: str) -> int:
        """Return the next whole number if it is below ``end``."""
        value = self.uint()
        if value >= end:
            raise self.error(f"{what} {value} is not in [0, {end})")
        return value

    def uint(self, size: int = NUMBER_BYTES) -> int:
        """Return the next ``size`` bytes as a whole number."""
        return int.from_bytes(self.take(size), "big")

    def opaque(self, size: int = NUMBER_BYTES) -> bytes:
        """Return the next bytes, whose length precedes them in ``size`` bytes."""
        return self.take(self.uint(size))

    def text(self, size: int) -> str:
        """Return the next bytes, whose length precedes them, as UTF-8."""
        try:
            return self.opaque(size).decode()
        except UnicodeDecodeError:
            raise self.error("a text in it is not UTF-8") from None

    def expect(self, wanted: bytes, what: str, reason: Reason = Reason.MALFORMED) -> None:
        """Take the bytes ``wanted``; raise unless they are next."""
        if self.take(len(wanted)) != wanted:
            raise self.error(what, reason)

    @property
    def is_at_end(self) -> bool:
        """True if all bytes have been taken."""
        return self._at == len(self._data)

    def read_so_far(self) -> bytes:
        """Return all bytes that have been taken."""
        return self._data[: self._at]

    def finish(self) -> None:
        """Raise if any bytes are left."""
        left = len(self._data) - self._at
        if left:
            raise self.error(f"{left} bytes too many: send one message only")


def split_messages(body: bytes) -> list[bytes]:
    """Return the messages in a body of a relay, each after its length."""
    reader, messages = Reader(body, "answer", Fault.RELAY), []
    while not reader.is_at_end:
        messages.append(reader.opaque())
    return messages


# --------------------------------------------------------------------- seals and signatures
#: Key encapsulation of a seal. A recorded seal can be opened later by breaking X25519, a recorded
#: hybrid seal only by breaking both X25519 and ML-KEM-768.
Seal = Literal["x25519", "hybrid"]

#: Size of a key that the owners of two mail keys share.
SHARED_KEY_BYTES: Final = 32


class Sizes(NamedTuple):
    """Sizes in bytes of one way to seal, and its suite in RFC 9180 (KEM, KDF, AEAD)."""

    suite: bytes
    public_key: int
    #: Bytes added to a text: the encapsulated key and a tag.
    added: int
    #: Largest number of keys in a list, which must take less than 64 KiB.
    most_keys: int


SIZES: Final[dict[Seal, Sizes]] = {
    "x25519": Sizes(bytes.fromhex("002000010001"), 32, 48, 256),
    "hybrid": Sizes(bytes.fromhex("647a00010001"), 1216, 1136, 48),
}

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_HYBRID: Final = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_SEED_BYTES: Final = 32
_LATTICE_BYTES: Final = 1184  # ML-KEM-768 part of a public key, before the X25519 part

# Any scalar serves: the exchange only detects public keys of small order.
_PROBE: Final = X25519PrivateKey.from_private_bytes(bytes(range(32)))


class HybridKey:
    """Private key of ML-KEM-768 and X25519, both derived from a seed of 32 bytes as in X-Wing."""

    __slots__ = ("_public", "_seed", "opener")

    def __init__(self, seed: bytes) -> None:
        both = hashlib.shake_256(seed).digest(96)
        lattice = MLKEM768PrivateKey.from_seed_bytes(both[:64])
        curve = X25519PrivateKey.from_private_bytes(both[64:])
        public = (each.public_key().public_bytes_raw() for each in (lattice, curve))
        self._seed, self._public = seed, b"".join(public)
        self.opener = MLKEM768X25519PrivateKey(lattice, curve)

    def private_bytes_raw(self) -> bytes:
        """Return the seed."""
        return self._seed

    def public_key(self) -> "HybridKey":
        """Return itself, for callers that take private keys of both kinds."""
        return self

    def public_bytes_raw(self) -> bytes:
        """Return the public key of ML-KEM-768, followed by the X25519 public key."""
        return self._public


#: A private key that opens seals; both kinds are stored as 32 bytes.
MailKey = X25519PrivateKey | HybridKey


def new_mail_key(kind: Seal) -> MailKey:
    """Return a new private key."""
    if kind == "x25519":
        return X25519PrivateKey.generate()
    return HybridKey(Entropy.from_operating_system().words(_SEED_BYTES // 8).tobytes())


def mail_key(kind: Seal, private: bytes) -> MailKey:
    """Return the private key that 32 bytes encode."""
    return X25519PrivateKey.from_private_bytes(private) if kind == "x25519" else HybridKey(private)


def seal(text: bytes, public_key: bytes, info: bytes) -> bytes:
    """Return a text encrypted to a public key; it opens only with the same ``info``."""
    suite, key = _suite_of(public_key)
    return suite.encrypt(text, key, info=info)


def _suite_of(public_key: bytes) -> tuple[Suite, X25519PublicKey | MLKEM768X25519PublicKey]:
    """Return the suite of a public key, and the key; raise `ValueError` for invalid bytes."""
    if len(public_key) != SIZES["hybrid"].public_key:
        return _SUITE, X25519PublicKey.from_public_bytes(public_key)
    lattice = MLKEM768PublicKey.from_public_bytes(public_key[:_LATTICE_BYTES])
    curve = X25519PublicKey.from_public_bytes(public_key[_LATTICE_BYTES:])
    return _HYBRID, MLKEM768X25519PublicKey(lattice, curve)


def open_seal(sealed: bytes, private_key: MailKey, info: bytes) -> bytes | None:
    """Return the text, or ``None`` if it was made for another key or ``info``, or changed."""
    try:
        if isinstance(private_key, HybridKey):
            return _HYBRID.decrypt(sealed, private_key.opener, info=info)
        return _SUITE.decrypt(sealed, private_key, info=info)
    except (InvalidTag, ValueError):
        return None


def shared_key(private_key: X25519PrivateKey, public_key: bytes, context: bytes) -> bytes:
    """Return a key that two owners of mail keys can both compute, and nobody else."""
    secret = private_key.exchange(X25519PublicKey.from_public_bytes(public_key))
    return HKDF(SHA256(), SHARED_KEY_BYTES, salt=context, info=b"shuffledp pair").derive(secret)


def new_keys(key: bytes, number: int, info: bytes) -> list[bytes]:
    """Return keys derived from another one, which they do not reveal."""
    data = HKDFExpand(SHA256(), number * SHARED_KEY_BYTES, info).derive(key)
    return [data[at : at + SHARED_KEY_BYTES] for at in range(0, len(data), SHARED_KEY_BYTES)]


def lock(text: bytes, key: bytes, info: bytes) -> bytes:
    """Return a text encrypted and authenticated with a shared key, 16 bytes longer."""
    return AESSIV(key).encrypt(text, [info])


def unlock(locked: bytes, key: bytes, info: bytes) -> bytes | None:
    """Return the text, or ``None`` if it was made with another key or ``info``, or changed."""
    try:
        return AESSIV(key).decrypt(locked, [info])
    except InvalidTag:
        return None


def is_signed(signature: bytes, public_key: bytes, text: bytes) -> bool:
    """Return True if a signature of a text verifies with a key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_mail_key(public_key: bytes) -> bool:
    """Return True if texts can be sealed to a key; False for keys of small order."""
    try:
        _suite_of(public_key)
        curve = public_key[-SIZES["x25519"].public_key :]  # the last part of both kinds
        _PROBE.exchange(X25519PublicKey.from_public_bytes(curve))
    except ValueError:
        return False
    return True
