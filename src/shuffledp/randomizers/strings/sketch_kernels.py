"""Compiled loops of the sketches: counting bits by hash function, drawing signs, reading cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit
from shuffledp.randomizers.strings.keyed_hash_kernels import hash_pair

_ONE = np.uint64(1)
_BYTE_MASK = np.uint64(0xFF)


@njit(cache=True, nogil=True)
def _flush(packed: NDArray[np.uint64], cells: NDArray[np.int64]) -> None:
    """Add the eight one-byte counters of each word to ``cells``, and set them to zero."""
    for at in range(packed.size):
        for position in range(8):
            count = (packed[at] >> np.uint64(8 * position)) & _BYTE_MASK
            cells[at, position] += np.int64(count)
        packed[at] = np.uint64(0)


@njit(cache=True, nogil=True)
def add_bits_by_hash(
    hashes: NDArray[np.int64],
    rows: NDArray[np.uint8],
    first: int,
    spread: NDArray[np.uint64],
    packed: NDArray[np.uint64],
    cells: NDArray[np.int64],
    num_reports: NDArray[np.int64],
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


@njit(cache=True, nogil=True)
def parity(word: np.uint64) -> np.uint64:
    """Return the number of ones of ``word``, modulo 2."""
    for shift in (32, 16, 8, 4, 2, 1):
        word ^= word >> np.uint64(shift)
    return word & _ONE


@njit(cache=True, nogil=True)
def draw_signs(
    digests: NDArray[np.uint64],
    places: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    threshold: np.uint64,
    num_buckets: np.uint64,
    key0: np.uint64,
    key1: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report i = 2 (j w + l) + b, where ``places[i]`` = j w + l was drawn uniformly.

    b is the parity of l & h_j(x_i), flipped if ``coins[i]`` < T.
    """
    mask = num_buckets - _ONE
    for i in range(digests.size):
        place = places[i]
        row = place // num_buckets
        bucket = hash_pair(key0, key1, digests[i], row) & mask
        bit = parity(place & bucket) ^ np.uint64(coins[i] < threshold)
        out[i] = (place << _ONE) | bit


@njit(cache=True, nogil=True)
def sum_cells(
    table: NDArray[np.int64],
    digests: NDArray[np.uint64],
    key0: np.uint64,
    key1: np.uint64,
    out: NDArray[np.int64],
) -> None:
    """Add ``table[j, h_j(x)]`` over all hash functions j to the entry of each string x."""
    mask = np.uint64(table.shape[1] - 1)
    # By hash function first: one row of the table stays in the first-level cache.
    for j in range(table.shape[0]):
        for i in range(digests.size):
            out[i] += table[j, hash_pair(key0, key1, digests[i], np.uint64(j)) & mask]
