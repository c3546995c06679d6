"""Prefixes of texts in UTF-8, in half bytes: their extensions, and the bins of texts.

The end of a text is a byte 0, so that every text has the same number of half bytes, and an ended
text has itself as only extension.
"""

import codecs
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Length of a character, by the first half byte of its first byte; of others it is 1.
_CHARACTER_BYTES = {0xC: 2, 0xD: 2, 0xE: 3, 0xF: 4}


def extensions(prefixes: Iterable[bytes], depth: int, step: int) -> NDArray[np.bytes_]:
    """Return prefixes of ``depth`` half bytes extended by ``step`` more, sorted.

    Prefixes with which no text in UTF-8 begins are left out; a missing half byte is 0.
    """
    whole = (each.ljust((depth + 1) // 2, b"\0") for each in prefixes)  # arrays strip zeros
    found = sorted(end for each in whole for end in _grown(each, depth % 2 == 1, step))
    return np.array(found, dtype=f"S{(depth + step + 1) // 2}")


def codes(
    texts: NDArray[np.bytes_], prefixes: NDArray[np.bytes_], depth: int, num_bins: int
) -> NDArray[np.int32]:
    """Return the bin of each text: the place of its prefix, or the last bin for all others."""
    seen = texts.astype(prefixes.dtype)  # truncated; a copy
    if depth % 2:
        seen.view(np.uint8).reshape(len(seen), prefixes.dtype.itemsize)[:, -1] &= 0xF0
    places = np.searchsorted(prefixes, seen)
    places[places == len(prefixes)] = 0
    return np.where(prefixes[places] == seen, places, num_bins - 1).astype(np.int32)


def num_bytes(prefix: bytes) -> int:
    """Return the length of the shortest text with a prefix that extensions() returned."""
    text = prefix.rstrip(b"\0") or b"\1"
    place = len(text) - 1
    while text[place] & 0xC0 == 0x80:  # inside a character
        place -= 1
    return max(len(text), place + _CHARACTER_BYTES.get(text[place] >> 4, 1))


def whole_text(prefix: bytes) -> str | None:
    """Return the text of a prefix of full length, or None if it ends inside a character."""
    text = prefix.rstrip(b"\0")
    return text.decode() if _is_possible(text, is_whole=True) else None


def shown(prefix: bytes, depth: int) -> str:
    """Return a prefix of ``depth`` half bytes as text, with dots where more may follow."""
    text = prefix.rstrip(b"\0").decode(errors="backslashreplace")
    is_open = 0 not in prefix[: depth // 2]
    if depth % 2 and is_open:  # the last half byte
        text = prefix[:-1].decode(errors="backslashreplace") + f"\\x{prefix[-1] >> 4:x}?"
    return text + "\u2026" * is_open


def _grown(prefix: bytes, is_half: bool, step: int) -> Iterable[bytes]:
    """Return all extensions of a possible prefix by ``step`` half bytes.

    They depend only on whether the prefix holds a whole character, and on the begun character at
    its end. A terminator is no such character: only more of it follows.
    """
    whole = prefix[: len(prefix) - is_half]
    decoder = codecs.getincrementaldecoder("utf-8")()
    decoder.decode(whole)
    place = len(whole) - (1 if b"\0" in whole else len(decoder.getstate()[0]))
    head, start = prefix[:place], b"a" * (place > 0)
    return (head + end[len(start) :] for end in endings(start + prefix[place:], is_half, step))


@lru_cache(maxsize=2**15)
def endings(stem: bytes, is_half: bool, step: int) -> tuple[bytes, ...]:
    """Return the extensions of the relevant part of a prefix, each once."""
    if not step:
        return (stem,)
    if is_half:
        grown = [stem[:-1] + bytes([stem[-1] | low]) for low in range(16)]
        kept = [each for each in grown if _is_possible(each)]
    else:
        grown = [stem + bytes([high << 4]) for high in range(16)]
        kept = [each for each in grown if endings(each, True, 1)]
    return tuple(end for each in kept for end in _grown(each, not is_half, step - 1))


def _is_possible(prefix: bytes, *, is_whole: bool = False) -> bool:
    """Return True if a text in UTF-8 with its padding can begin like this."""
    text, ended, rest = prefix.partition(b"\0")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text, final=bool(ended) or is_whole)
    except UnicodeDecodeError:
        return False
    return not rest.strip(b"\0") and not (ended and not text)


@lru_cache(maxsize=8)
def widest(step: int) -> int:
    """Return the largest number of extensions of one prefix by ``step`` half bytes."""
    stems = [(b"a", False), *((b"a" + bytes([high << 4]), True) for high in range(16))]
    return max(len(endings(*stem, step)) for stem in stems)
