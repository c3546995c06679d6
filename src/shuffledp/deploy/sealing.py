"""Encryption and signatures, each used in one way only.

HPKE (RFC 9180) in base mode with HKDF-SHA256 and AES-128-GCM, a fresh key pair for each text; keys
are encapsulated by DHKEM(X25519, HKDF-SHA256), or by the hybrid of ML-KEM-768 and X25519 (X-Wing,
draft-connolly-cfrg-xwing-kem), which stays closed unless both are broken. Ed25519 (RFC 8032) for
signatures. All randomness comes from the operating system, even where routes come from a seed.
Between two users who share a key: AES-128 in SIV mode (RFC 5297), which needs no nonce, and
HKDF-SHA256 (RFC 5869) for new keys.
"""

import hashlib
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
