"""Compiled loops of the randomizers: subsets drawn, bits counted, and SipHash-2-4."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Bytes, Integers, Words
from shuffledp.core.compiled import njit
from shuffledp.core.numerics.uniform_kernels import bounded_integer

_State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_FINAL = np.uint64(0xFF)
_LENGTH_SHIFT = np.uint64(56)
_PAIR_LENGTH = np.uint64(16 << 56)


@njit
def _rotate(word: np.uint64, places: int) -> np.uint64:
    """Return ``word`` rotated left, by 1 to 63 places."""
    return (word << np.uint64(places)) | (word >> np.uint64(64 - places))


@njit
def _sip_round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> _State:
    """Return the state after one SipRound."""
    v0 += v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 += v3
    v3 = _rotate(v3, 16) ^ v2
    v0 += v3
    v3 = _rotate(v3, 21) ^ v0
    v2 += v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@njit
def _absorb(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, block: np.uint64) -> _State:
    """Return the state after one message block: two rounds."""
    v3 ^= block
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return v0 ^ block, v1, v2, v3


@njit
def _start(key0: np.uint64, key1: np.uint64) -> _State:
    """Return the state of an empty message: the key, and "somepseudorandomlygeneratedbytes"."""
    return (
        key0 ^ np.uint64(0x736F6D6570736575),
        key1 ^ np.uint64(0x646F72616E646F6D),
        key0 ^ np.uint64(0x6C7967656E657261),
        key1 ^ np.uint64(0x7465646279746573),
    )


@njit
def _finish(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> np.uint64:
    """Return the hash: four rounds more."""
    v2 ^= _FINAL
    for _ in range(4):
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@njit
def hash_texts(key0: np.uint64, key1: np.uint64, buffer: Bytes, ends: Integers, out: Words) -> None:
    """Write the hash of text i, which ends before ``ends[i]`` and starts where the last ended."""
    start = 0
    for i in range(ends.size):
        v0, v1, v2, v3 = _start(key0, key1)
        whole = start + ((ends[i] - start) & ~7)
        for at in range(start, whole, 8):
            block = np.uint64(0)
            for j in range(8):
                block |= np.uint64(buffer[at + j]) << np.uint64(8 * j)
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, block)
        # Modulo 256, as the shift drops the rest.
        block = np.uint64(ends[i] - start) << _LENGTH_SHIFT
        for at in range(whole, ends[i]):
            block |= np.uint64(buffer[at]) << np.uint64(8 * (at - whole))
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, block)
        out[i] = _finish(v0, v1, v2, v3)
        start = ends[i]


_BYTE_MASK = np.uint64(0xFF)


@njit
def _flush(packed: Words, cells: Integers) -> None:
    """Add the eight one-byte counters of each word to ``cells``, and set them to zero."""
    for at in range(packed.size):
        for position in range(8):
            count = (packed[at] >> np.uint64(8 * position)) & _BYTE_MASK
            cells[at, position] += np.int64(count)
        packed[at] = np.uint64(0)


@njit
def add_bits_by_hash(
    hashes: Integers,
    rows: Bytes,
    first: int,
    spread: Words,
    packed: Words,
    cells: Integers,
    num_reports: Integers,
) -> None:
    """Add the packed bits of row i, from byte ``first`` on, to ``cells[hashes[i]]``.

    ``spread[b]`` has bit p of the byte b in its byte p, so that one addition counts eight bits, in
    the zeros of ``packed``, shape (num_hashes, bytes a row). These hold 255 reports of a hash
    function before they are emptied into ``cells``, shape (num_hashes, bytes a row, 8).
    ``num_reports`` counts the reports of each hash function. The caller has checked the hashes.
    """
    num_reports[:] = 0
    for i in range(hashes.size):
        row = hashes[i]
        counters = packed[row]
        for at in range(counters.size):
            counters[at] += spread[rows[i, first + at]]
        num_reports[row] += 1
        if num_reports[row] % 255 == 0:
            _flush(counters, cells[row])
    for row in range(packed.shape[0]):
        _flush(packed[row], cells[row])


@njit
def sum_cells(
    table: Integers, digests: Words, key0: np.uint64, key1: np.uint64, out: Integers
) -> None:
    """Add ``table[j, h_j(x)]`` over all hash functions j to the entry of each string x."""
    mask = np.uint64(table.shape[1] - 1)
    # By hash function first: one row of the table stays in the first-level cache.
    for j in range(table.shape[0]):
        for i in range(digests.size):
            # The hash of the 16 bytes of two words, each little-endian.
            v0, v1, v2, v3 = _start(key0, key1)
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, digests[i])
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, np.uint64(j))
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, _PAIR_LENGTH)
            out[i] += table[j, _finish(v0, v1, v2, v3) & mask]


_ONE_BYTE = np.uint8(1)


@njit
def place_members(
    rows: Bytes,
    codes: NDArray[np.uint32],
    coins: Words,
    half_words: NDArray[np.uint32],
    threshold: np.uint64,
    num_others: int,
    subset_size: int,
    placed: int,
) -> int:
    """Draw the members of each row's subset one after another, as far as the half words go.

    ``rows`` start empty. Member s of row i is number ``placed`` = i * subset_size + s, so that
    one integer says how far the work has come: it is given, and the new one is returned.

    The others of a row, that is all categories but its code, are numbered from 0 to
    num_others - 1; the code's own place is taken by category num_others. Member 0 is a uniform
    one of the first num_others - subset_size + 1 others, or the code itself if ``coins[i]`` is
    below the threshold. The members after it follow Floyd's algorithm (Bentley, Floyd, 1987): for
    j from num_others - subset_size + 1 on, take a uniform one of the others 0 ... j, or j itself
    if that one is in already. With member 0 among them the others taken are a uniform subset of
    subset_size; the steps after it alone make a uniform subset of subset_size - 1.

    A refused half word leaves no trace, so going on with fresh ones is exact.
    """
    row = placed // subset_size
    step = placed % subset_size
    smallest_bound = num_others - subset_size + 1
    used = 0
    while row < codes.size:
        code = np.int64(codes[row])
        while step < subset_size:
            if used == half_words.size:
                return row * subset_size + step
            chosen = bounded_integer(half_words[used], np.uint64(smallest_bound + step))
            used += 1
            if chosen < 0:
                continue
            member = num_others if chosen == code else chosen
            if step == 0:
                if coins[row] < threshold:
                    member = code
            elif (rows[row, member >> 3] >> np.uint8(member & 7)) & _ONE_BYTE:
                latest = smallest_bound + step - 1
                member = num_others if latest == code else latest
            rows[row, member >> 3] |= _ONE_BYTE << np.uint8(member & 7)
            step += 1
        row += 1
        step = 0
    return row * subset_size
