"""Numbering identifiers by their hashes, compiled."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def number_hashes(
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    known: NDArray[np.uint64],
    count: int,
    numbers: NDArray[np.int32],
    first_rows: NDArray[np.int64],
) -> int:
    """Give each hash its number, and new ones the next; return how many there are then.

    ``table`` is a hash table with open addressing, a power of two of numbers or -1, which stays
    half empty; ``known`` has the hash of each number. The rows of new hashes go to ``first_rows``.
    """
    mask = np.uint64(table.size - 1)
    num_before = count
    for row in range(hashes.size):
        place = np.int64(hashes[row] & mask)
        while table[place] >= 0 and known[table[place]] != hashes[row]:
            place = (place + 1) & np.int64(mask)
        if table[place] < 0:
            table[place] = count
            known[count] = hashes[row]
            first_rows[count - num_before] = row
            count += 1
        numbers[row] = table[place]
    return count


@njit(cache=True, nogil=True)
def fill_table(known: NDArray[np.uint64], count: int, table: NDArray[np.int32]) -> None:
    """Put the first hashes into an empty table."""
    mask = np.uint64(table.size - 1)
    for number in range(count):
        place = np.int64(known[number] & mask)
        while table[place] >= 0:
            place = (place + 1) & np.int64(mask)
        table[place] = number
