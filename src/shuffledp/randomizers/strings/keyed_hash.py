"""Keyed hashing of strings: a public random key for each task, and SipHash-2-4 under it.

A sketch is only as good as its hash functions are unpredictable. Under a fixed public hash anybody
can look for strings that share the buckets of a popular one, long before a collection starts, and
inflate its count by holding them. A key that is drawn when the collection starts undoes that work.
The key is no secret: every client needs it. Privacy does not depend on it in any way.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.randomizers.strings.texts import Texts, text_blocks

#: Length of a key.
KEY_BYTES = 16


def new_key(entropy: Entropy) -> bytes:
    """Return a key for one collection task.

    Parameters
    ----------
    entropy : Entropy
        Source of randomness; the operating system's, if anybody may want to cheat.

    Returns
    -------
    bytes
        16 uniform bytes, to be published to all clients of the task when it starts.

    Examples
    --------
    >>> len(new_key(Entropy.from_operating_system()))
    16
    """
    return entropy.words(KEY_BYTES // 8).astype("<u8").tobytes()


def require_key(key: object) -> bytes:
    """Return ``key`` if it is 16 bytes, else raise `ParameterError`."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        given = f"{len(key)} bytes" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise ParameterError(
            f"key is {given}, not {KEY_BYTES} bytes: draw one when the task starts, with new_key"
        )
    return key


def text_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """Return the two words of the SipHash key that makes digests of texts."""
    return _words(key, 0)


def bucket_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """Return the two words of the SipHash key that takes digests to buckets."""
    return _words(key, 1)


def _words(key: bytes, purpose: int) -> tuple[np.uint64, np.uint64]:
    """Return one of the two keys that are derived from the task's, one a purpose.

    Apart, so that no text can be made that hashes like a pair of digest and hash function.
    """
    derived = hashlib.sha256(b"shuffledp keyed hash" + require_key(key)).digest()
    first, second = np.frombuffer(derived, dtype="<u8").reshape(2, 2)[purpose]
    return np.uint64(first), np.uint64(second)


def digests_of(texts: Texts, key: bytes, *, argument: str = "values") -> NDArray[np.uint64]:
    """Return the 64-bit keyed digest of each text.

    Parameters
    ----------
    texts : sequence of str, array, or polars.Series
        See `text_blocks`.
    key : bytes
        The task's key, 16 bytes.
    argument : str
        Name of the argument, for messages.

    Returns
    -------
    ndarray of uint64, shape (n,)
        SipHash-2-4 of the UTF-8 bytes.

    Raises
    ------
    DomainError
        If an element is not text, or is too long; the message names its position.
    ParameterError
        If ``texts`` is no sequence of texts, or the key is not 16 bytes.

    Notes
    -----
    Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012. If SipHash is a
    pseudo-random function, digests are as good as independent uniform words: two texts share one
    with probability 2^-64. No normalisation: texts that look alike but have other bytes differ.

    Cost: about 100 ns a Python string, nearly all of it to encode; 20 ns in a polars.Series.
    """
    from shuffledp.randomizers.strings.keyed_hash_kernels import hash_texts

    words = text_words(key)
    parts = [np.empty(0, dtype=np.uint64)]
    for block in text_blocks(texts, argument=argument):
        digests = np.empty(block.ends.size, dtype=np.uint64)
        hash_texts(*words, block.buffer, block.ends, digests)
        parts.append(digests)
    return np.concatenate(parts)


def buckets_of(
    digests: NDArray[np.uint64], hashes: NDArray[np.uint64], *, key: bytes, num_buckets: int
) -> NDArray[np.uint64]:
    """Return the bucket of each digest under the hash function of that number.

    Parameters
    ----------
    digests, hashes : ndarray of uint64, shape (n,)
        Digests of texts, and numbers of hash functions.
    key : bytes
        The task's key, 16 bytes.
    num_buckets : int
        Number of buckets, a power of two.

    Returns
    -------
    ndarray of uint64, shape (n,)
        h_j(x) in [0, num_buckets): the low bits of SipHash-2-4 of the 16 bytes of digest and j.
    """
    from shuffledp.randomizers.strings.keyed_hash_kernels import hash_pairs

    out = np.empty(digests.size, dtype=np.uint64)
    hash_pairs(*bucket_words(key), digests, hashes, out)
    out &= np.uint64(num_buckets - 1)
    return out
