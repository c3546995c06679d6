"""Public-key encryption and signatures, each used in one way only.

HPKE (RFC 9180) in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, a fresh
key pair for each text; Ed25519 (RFC 8032) for signatures. Both take their randomness from the
operating system, also where routes come from a seed.
"""

from typing import Final

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)

# Any scalar: it is only asked whether a public key has a small order.
_PROBE: Final = X25519PrivateKey.from_private_bytes(bytes(range(32)))


def seal(text: bytes, public_key: bytes, info: bytes) -> bytes:
    """Return a text encrypted to a public key; it opens only with the same ``info``."""
    return _SUITE.encrypt(text, _mail_key(public_key), info=info)


def open_seal(sealed: bytes, private_key: X25519PrivateKey, info: bytes) -> bytes | None:
    """Return the text, or ``None`` if it was made for another key or ``info``, or changed."""
    try:
        return _SUITE.decrypt(sealed, private_key, info=info)
    except (InvalidTag, ValueError):
        return None


def shared_secret(private_key: X25519PrivateKey, public_key: bytes) -> bytes:
    """Return what two owners of mail keys can both compute, and nobody else; not uniform."""
    return private_key.exchange(_mail_key(public_key))


def is_signed(signature: bytes, public_key: bytes, text: bytes) -> bool:
    """Return whether a signature of a text is by the holder of a key."""
    try:
        _identity_key(public_key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_mail_key(public_key: bytes) -> bool:
    """Return whether texts can be sealed to a key; not to one of small order."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(public_key))
    except ValueError:
        return False
    return True


def _mail_key(public_key: bytes) -> X25519PublicKey:
    """Return an X25519 key for use."""
    return X25519PublicKey.from_public_bytes(public_key)


def _identity_key(public_key: bytes) -> Ed25519PublicKey:
    """Return an Ed25519 key for use."""
    return Ed25519PublicKey.from_public_bytes(public_key)


__all__ = [
    "Ed25519PrivateKey",
    "X25519PrivateKey",
    "is_mail_key",
    "is_signed",
    "open_seal",
    "seal",
    "shared_secret",
]
