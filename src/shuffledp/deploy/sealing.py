"""Encryption and signatures, each used in one way only.

HPKE (RFC 9180) in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, a fresh
key pair for each text; Ed25519 (RFC 8032) for signatures. Both take their randomness from the
operating system, also where routes come from a seed. Between two users who share a key: AES-128 in
SIV mode (RFC 5297), which needs no nonce, and HKDF-SHA256 (RFC 5869) for new keys.
"""

from typing import Final

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

#: Of a key that two owners of mail keys share.
SHARED_KEY_BYTES: Final = 32

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)

# Any scalar: it is only asked whether a public key has a small order.
_PROBE: Final = X25519PrivateKey.from_private_bytes(bytes(range(32)))


def seal(text: bytes, public_key: bytes, info: bytes) -> bytes:
    """Return a text encrypted to a public key; it opens only with the same ``info``."""
    return _SUITE.encrypt(text, X25519PublicKey.from_public_bytes(public_key), info=info)


def open_seal(sealed: bytes, private_key: X25519PrivateKey, info: bytes) -> bytes | None:
    """Return the text, or ``None`` if it was made for another key or ``info``, or changed."""
    try:
        return _SUITE.decrypt(sealed, private_key, info=info)
    except (InvalidTag, ValueError):
        return None


def shared_key(private_key: X25519PrivateKey, public_key: bytes, context: bytes) -> bytes:
    """Return a key that two owners of mail keys can both compute, and nobody else."""
    secret = private_key.exchange(X25519PublicKey.from_public_bytes(public_key))
    return HKDF(SHA256(), SHARED_KEY_BYTES, salt=context, info=b"shuffledp pair").derive(secret)


def new_keys(key: bytes, number: int, info: bytes) -> list[bytes]:
    """Return keys that follow from another, and from which it does not follow."""
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
        _PROBE.exchange(X25519PublicKey.from_public_bytes(public_key))
    except ValueError:
        return False
    return True
