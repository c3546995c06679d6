"""Loops of the unary encodings in NumPy: Bernoulli bits, true bits, column sums."""

import numpy as np
from numpy.typing import NDArray

# The compiled loop counts in planes of bits; this one needs none.
NUM_PLANES = 0

_BITS_PER_LANE = 64

# A sum of so many bits fits a byte, and NumPy adds bytes many at a time.
_ROWS_PER_SUM = 248


def fill_bernoulli(
    words: NDArray[np.uint64], threshold: np.uint64, lanes: NDArray[np.uint64]
) -> int:
    """Fill ``lanes`` with bits that are 1 with probability exactly T / 2^64, and independent.

    Each bit has a word of its own, which is below T or not. That takes 64 words a lane, eight
    times as many as the compiled loop, which stops at the first digit that decides; the law is
    the same, the bits drawn from the same words are not.

    Returns the number of lane words filled: as many as there are 64 words for. The number does
    not depend on the words, so stopping there favours nothing.
    """
    num_lanes = min(lanes.size, words.size // _BITS_PER_LANE)
    below = words[: num_lanes * _BITS_PER_LANE].reshape(num_lanes, _BITS_PER_LANE) < threshold
    packed = np.packbits(below, axis=1, bitorder="little")
    lanes[:num_lanes] = packed.view(np.dtype("<u8"))[:, 0]
    return num_lanes


def flip_true_bits(rows: NDArray[np.uint8], codes: NDArray[np.uint32]) -> None:
    """Flip bit ``codes[i]`` of row i."""
    places = np.arange(codes.size), codes >> np.uint32(3)
    rows[places] ^= _bit_of_byte(codes)


def replace_true_bits(
    rows: NDArray[np.uint8], codes: NDArray[np.uint32], coins: NDArray[np.uint64]
) -> None:
    """Put bit i of ``coins`` at bit ``codes[i]`` of row i."""
    order = np.arange(codes.size)
    heads = coins[order >> 6] >> (order & 63).astype(np.uint64) & np.uint64(1) != 0
    bit = _bit_of_byte(codes)
    places = order, codes >> np.uint32(3)
    rows[places] = np.where(heads, rows[places] | bit, rows[places] & ~bit)


def add_column_sums(
    rows: NDArray[np.uint64],
    planes: NDArray[np.uint64],  # noqa: ARG001 (the compiled twin's signature)
    totals: NDArray[np.int64],
) -> None:
    """Add the number of ones in each bit column of ``rows``, shape (n, width), to ``totals``."""
    octets = rows.view(np.uint8)
    for start in range(0, rows.shape[0], _ROWS_PER_SUM):
        bits = np.unpackbits(octets[start : start + _ROWS_PER_SUM], axis=1, bitorder="little")
        totals += bits.sum(axis=0, dtype=np.uint8).reshape(totals.shape)


def _bit_of_byte(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return a byte with the bit of each code set."""
    bit: NDArray[np.uint8] = np.uint8(1) << (codes & np.uint32(7)).astype(np.uint8)
    return bit
