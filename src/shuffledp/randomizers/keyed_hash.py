"""Keyed hashing of strings: a public random key for each task, and SipHash-2-4 under it.

A sketch is only as good as its hash functions are unpredictable. Under a fixed public hash anybody
can look for strings that share the buckets of a popular one, long before a collection starts, and
inflate its count by holding them. A key that is drawn when the collection starts undoes that work.
The key is no secret: every client needs it. Privacy does not depend on it in any way.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Bytes, Integers, Words
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import read_only

if TYPE_CHECKING:
    import polars as pl
#: What strings may come in.
Texts: TypeAlias = "Sequence[str] | NDArray[Any] | pl.Series"
#: A longer text is refused: it is a document, which nobody else has too, and not an answer.
LONGEST_TEXT_BYTES = 2**16
# Texts are encoded this many at a time, to bound the memory of Python's objects.
_BLOCK = 2**16


def text_blocks(texts: Texts, *, argument: str) -> Iterator[tuple[Bytes, Integers]]:
    """Yield the UTF-8 bytes of texts, and where each ends, in blocks of at most 65,536 texts.

    The empty string is a text like any other; None is not. (Arrays of the type ``<U`` cannot tell a
    text that ends in NUL from one that does not: that is NumPy's doing.) ``argument`` is the name
    of the argument, for messages; these name positions, but never quote a text, which may be
    private.
    """
    source = _checked(texts, argument)
    for start in range(0, len(source), _BLOCK):
        encoded, block = [], source[start : start + _BLOCK]
        block = block.tolist() if isinstance(block, np.ndarray) else block
        for position, text in enumerate(block, start):
            try:
                encoded.append(str.encode(text))
            except UnicodeEncodeError:
                raise DomainError(
                    f"{argument}[{position}] has a lone surrogate, which no valid Unicode text "
                    "has: decode the file that it comes from with errors='replace'"
                ) from None
            except TypeError:
                raise DomainError(
                    f"{argument}[{position}] is of type {type(text).__name__}, not text: turn it "
                    "into a str, or leave such users out"
                ) from None
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        if int(lengths.max()) > LONGEST_TEXT_BYTES:
            position = int(np.argmax(lengths > LONGEST_TEXT_BYTES))
            raise DomainError(
                f"{argument}[{start + position}] has {lengths[position]} bytes of UTF-8, more than "
                f"{LONGEST_TEXT_BYTES}: cut long texts before they are handed in"
            )
        # One byte more than there is, for NumPy takes no empty buffer.
        yield np.frombuffer(b"".join(encoded) + b"\0", dtype=np.uint8), np.cumsum(lengths)


def _checked(texts: Any, argument: str) -> Sequence[Any] | NDArray[Any]:
    """Return a sequence or an array that can be cut into blocks, else raise."""
    if isinstance(texts, np.ndarray):
        if texts.ndim != 1 or (texts.size and texts.dtype.kind not in "UOT"):
            raise ParameterError(
                f"{argument} is an array of shape {texts.shape} and dtype {texts.dtype}: give one "
                "text a user, shape (n,), of a string type or object"
            )
        return texts
    if hasattr(texts, "to_list"):  # a series of polars or pandas
        texts = texts.to_list()
    if isinstance(texts, (str, bytes, bytearray)) or not isinstance(texts, Sequence):
        raise ParameterError(
            f"{argument} is one {type(texts).__name__}: give a list, an array or a series with one "
            "text a user"
        )
    return texts


#: Length of a key.
KEY_BYTES = 16


def new_key(entropy: Entropy) -> bytes:
    """Return a key for one collection task: 16 uniform bytes, to be published when it starts."""
    return entropy.words(KEY_BYTES // 8).astype("<u8").tobytes()


def require_key(key: object) -> bytes:
    """Return ``key`` if it is 16 bytes, else raise `ParameterError`."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        given = f"{len(key)} bytes" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise ParameterError(
            f"key is {given}, not {KEY_BYTES} bytes: draw one when the task starts, with new_key"
        )
    return key


# A SipHash key makes digests of texts, another one takes digests to buckets.
TEXTS, BUCKETS = 0, 1


def derived_words(key: bytes, purpose: int) -> tuple[np.uint64, np.uint64]:
    """Return the two words of the key for `TEXTS` or for `BUCKETS`, derived from the task's.

    Apart, so that no text can be made that hashes like a pair of digest and hash function.
    """
    derived = hashlib.sha256(b"shuffledp keyed hash" + require_key(key)).digest()
    first, second = np.frombuffer(derived, dtype="<u8").reshape(2, 2)[purpose]
    return np.uint64(first), np.uint64(second)


def digests_of(texts: Texts, key: bytes, *, argument: str = "values") -> Words:
    """Return the 64-bit keyed digest of each text: SipHash-2-4 of its UTF-8 bytes.

    Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012. If SipHash is a
    pseudo-random function, digests are as good as independent uniform words: two texts share one
    with probability 2^-64. No normalisation: texts that look alike but have other bytes differ.

    Cost: about 100 ns a string, nearly all of it to encode.
    """
    from shuffledp.randomizers.randomizer_kernels import hash_texts

    parts = [np.empty(0, dtype=np.uint64)]
    for buffer, ends in text_blocks(texts, argument=argument):
        parts.append(np.empty(ends.size, dtype=np.uint64))
        hash_texts(*derived_words(key, TEXTS), buffer, ends, parts[-1])
    return np.concatenate(parts)


def buckets_of(digests: Words, hashes: Words, *, key: bytes, num_buckets: int) -> Words:
    """Return the bucket of each digest under the hash function of that number.

    h_j(x) in [0, num_buckets), a power of two: the low bits of SipHash-2-4 of the 16 bytes of
    digest and j.
    """
    from shuffledp.randomizers.randomizer_kernels import hash_texts

    pairs = np.stack([digests, hashes], axis=1).astype("<u8", copy=False)
    out = np.empty(digests.size, dtype=np.uint64)
    ends = np.arange(16, pairs.nbytes + 1, 16)
    hash_texts(*derived_words(key, BUCKETS), read_only(pairs.view(np.uint8).reshape(-1)), ends, out)
    return out & np.uint64(num_buckets - 1)
