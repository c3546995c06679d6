"""Loops of the sketches in NumPy: counting bits by hash function, drawing signs, reading cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.randomizers.strings.keyed_hash_numpy import hash_pair

_ONE = np.uint64(1)

# Bits that are unpacked at once, a byte each.
_BITS_AT_A_TIME = 2**21

# Pairs that are hashed at once.
_PAIRS_AT_A_TIME = 2**14


def add_bits_by_hash(
    hashes: NDArray[np.int64],
    rows: NDArray[np.uint8],
    first: int,
    spread: NDArray[np.uint64],  # noqa: ARG001 (the compiled twin's signature)
    packed: NDArray[np.uint64],  # noqa: ARG001 (the compiled twin's signature)
    cells: NDArray[np.int64],
    num_reports: NDArray[np.int64],
) -> None:
    """Add the packed bits of row i, from byte ``first`` on, to ``cells[hashes[i]]``.

    ``cells`` has the shape (num_hashes, bytes a row, 8). ``num_reports`` counts the reports of
    each hash function. The caller has checked the hashes. Rows of one hash function are summed
    together. Cost: about 3 ns a bit.
    """
    num_reports[:] = np.bincount(hashes, minlength=num_reports.size)
    row_bytes = cells.shape[1]
    flat = cells.reshape(cells.shape[0], -1, copy=False)
    order = np.argsort(hashes, kind="stable")
    step = max(1, _BITS_AT_A_TIME // (8 * row_bytes))
    for start in range(0, order.size, step):
        part = order[start : start + step]
        bits = np.unpackbits(rows[part, first : first + row_bytes], axis=1, bitorder="little")
        present, starts = np.unique(hashes[part], return_index=True)
        flat[present] += np.add.reduceat(bits, starts, axis=0, dtype=np.int64)


def parity(word: Any) -> Any:
    """Return the number of ones of a word, or of each word of an array, modulo 2."""
    return np.bitwise_count(word).astype(np.uint64) & _ONE


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

    b is the parity of l & h_j(x_i), flipped if ``coins[i]`` < T. The same reports as from the
    compiled loop. Cost: about 100 ns a report.
    """
    buckets = hash_pair(key0, key1, digests, places // num_buckets) & (num_buckets - _ONE)
    out[:] = (places << _ONE) | (parity(places & buckets) ^ (coins < threshold))


def sum_cells(
    table: NDArray[np.int64],
    digests: NDArray[np.uint64],
    key0: np.uint64,
    key1: np.uint64,
    out: NDArray[np.int64],
) -> None:
    """Add ``table[j, h_j(x)]`` over all hash functions j to the entry of each string x.

    Cost: about 120 ns times num_hashes a string.
    """
    num_hashes, num_buckets = table.shape
    step = max(1, _PAIRS_AT_A_TIME // max(1, digests.size))
    for start in range(0, num_hashes, step):
        numbers = np.arange(start, min(start + step, num_hashes))[:, None]
        hashes = hash_pair(key0, key1, digests, numbers.astype(np.uint64))
        buckets = (hashes & np.uint64(num_buckets - 1)).astype(np.int64)
        out += table[numbers, buckets].sum(axis=0)
