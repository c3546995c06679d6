"""Compiled loops of the unary encodings: Bernoulli bits 64 at a time, true bits, column sums."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

_ONE = np.uint64(1)
_NONE = np.uint64(0)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

# Bit planes of the vertical counters below; they are emptied before they can overflow.
NUM_PLANES = 12
_CHUNKS_PER_FLUSH = (1 << (NUM_PLANES - 3)) - 1


@njit(cache=True, nogil=True)
def fill_bernoulli(
    words: NDArray[np.uint64], threshold: np.uint64, lanes: NDArray[np.uint64]
) -> int:
    """Fill ``lanes`` with bits that are 1 with probability exactly T / 2^64, and independent.

    Each of the 64 positions of a lane word stands for its own uniform 64-bit number w, of which
    the j-th word drawn holds the j-th most significant digit. Digit by digit from the top, w is
    compared with T: the first digit where they differ decides w < T, so a position is undecided
    after j digits with probability 2^-j only, and about 8 words decide all 64 (E max of 64
    geometric variables = 7.3) where drawing every w in full would take 64. Digits of T from its
    last 1 on cannot make w < T any more, so they end the comparison too. The law is the same as
    with all 64 digits: those left out cannot change the answer, and are independent of it.

    Returns the number of lane words filled. It stops *before* a lane word for which the words could
    run out: giving up half-way would favour lanes that are decided early.
    """
    num_digits = 64
    while (threshold >> np.uint64(64 - num_digits)) & _ONE == _NONE:
        num_digits -= 1
    used = 0
    for lane in range(lanes.size):
        if words.size - used < num_digits:
            return lane
        below = _NONE
        undecided = _ALL
        for digit in range(num_digits):
            word = words[used]
            used += 1
            if (threshold >> np.uint64(63 - digit)) & _ONE:
                below |= undecided & ~word
                undecided &= word
            else:
                undecided &= ~word
            if undecided == _NONE:
                break
        lanes[lane] = below
    return lanes.size


@njit(cache=True, nogil=True)
def flip_true_bits(rows: NDArray[np.uint8], codes: NDArray[np.uint32]) -> None:
    """Flip bit ``codes[i]`` of row i."""
    for i in range(codes.size):
        code = codes[i]
        rows[i, code >> np.uint32(3)] ^= np.uint8(1) << np.uint8(code & np.uint32(7))


@njit(cache=True, nogil=True)
def replace_true_bits(
    rows: NDArray[np.uint8], codes: NDArray[np.uint32], coins: NDArray[np.uint64]
) -> None:
    """Put bit i of ``coins`` at bit ``codes[i]`` of row i."""
    for i in range(codes.size):
        code = codes[i]
        coin = np.uint8((coins[i >> 6] >> np.uint64(i & 63)) & _ONE)
        place = np.uint8(code & np.uint32(7))
        byte = rows[i, code >> np.uint32(3)] & ~(np.uint8(1) << place)
        rows[i, code >> np.uint32(3)] = byte | (coin << place)


@njit(cache=True, nogil=True)
def _full_add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return sum and carry of 64 one-bit additions of three terms."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@njit(cache=True, nogil=True)
def _flush(planes: NDArray[np.uint64], totals: NDArray[np.int64]) -> None:
    """Add the vertical counters to ``totals``, shape (width, 64), and set them to zero."""
    for j in range(planes.shape[1]):
        for plane in range(NUM_PLANES):
            bits = planes[plane, j]
            for position in range(64):
                bit = (bits >> np.uint64(position)) & _ONE
                totals[j, position] += np.int64(bit << np.uint64(plane))
            planes[plane, j] = _NONE


@njit(cache=True, nogil=True)
def add_column_sums(
    rows: NDArray[np.uint64], planes: NDArray[np.uint64], totals: NDArray[np.int64]
) -> None:
    """Add the number of ones in each bit column of ``rows``, shape (8 m, width), to ``totals``.

    ``planes``, shape (NUM_PLANES, width), holds 64 counters a word "vertically": plane p has bit
    p of each. Seven full adders take eight rows to one carry of weight 8 (Harley and Seal's
    carry-save tree), so that a word costs a few operations instead of 64 additions.
    """
    width = rows.shape[1]
    planes[:] = _NONE
    chunks_held = 0
    for start in range(0, rows.shape[0], 8):
        for j in range(width):
            ones, two_a = _full_add(planes[0, j], rows[start, j], rows[start + 1, j])
            ones, two_b = _full_add(ones, rows[start + 2, j], rows[start + 3, j])
            twos, four_a = _full_add(planes[1, j], two_a, two_b)
            ones, two_a = _full_add(ones, rows[start + 4, j], rows[start + 5, j])
            ones, two_b = _full_add(ones, rows[start + 6, j], rows[start + 7, j])
            twos, four_b = _full_add(twos, two_a, two_b)
            fours, carry = _full_add(planes[2, j], four_a, four_b)
            planes[0, j] = ones
            planes[1, j] = twos
            planes[2, j] = fours
            for plane in range(3, NUM_PLANES):
                held = planes[plane, j]
                planes[plane, j] = held ^ carry
                carry &= held
        chunks_held += 1
        # The planes hold up to 8 (2^9 - 1) + 7; one more carry of 8 a chunk still fits until then.
        if chunks_held == _CHUNKS_PER_FLUSH:
            _flush(planes, totals)
            chunks_held = 0
    _flush(planes, totals)
