"""Compiled loops of the randomizers: subsets drawn, bits counted, and SipHash-2-4."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Bytes, Integers, Words
from shuffledp.core.compiled import njit
from shuffledp.core.numerics.uniform_kernels import bounded_integer

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
def add_bits(rows: Bytes, spread: Words, packed: Words, cells: Integers) -> None:
    """Add the packed bits of rows to ``cells``, shape (bytes a row, 8).

    ``spread[b]`` has bit p of the byte b in its byte p, so that one addition counts eight bits, in
    the zeros of ``packed``, shape (bytes a row,). These hold 255 rows before they are emptied.
    """
    for i in range(rows.shape[0]):
        for at in range(packed.size):
            packed[at] += spread[rows[i, at]]
        if (i + 1) % 255 == 0:
            _flush(packed, cells)
    _flush(packed, cells)


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
    one integer states the progress: it is given, and the new one is returned.

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
