"""From rows of histories to changes, and from identifiers to numbers, compiled."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: What the first row that cannot be used is.
SOUND, OUT_OF_ORDER, CONTRADICTION = 0, 1, 2


@njit(cache=True, nogil=True)
def changing_rows(
    users: NDArray[np.int32],
    times: NDArray[np.int64],
    values: NDArray[np.int64],
    last_times: NDArray[np.int64],
    last_values: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Find the rows at which a user's value changes; update what each user had last."""
    count = 0
    for row in range(users.size):
        user = users[row]
        if times[row] < last_times[user]:
            return count, OUT_OF_ORDER, row
        if values[row] != last_values[user]:
            if times[row] == last_times[user]:
                return count, CONTRADICTION, row
            rows[count] = row
            count += 1
            last_values[user] = values[row]
        last_times[user] = times[row]
    return count, SOUND, -1


@njit(cache=True, nogil=True)
def number_hashes(
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    known: NDArray[np.uint64],
    count: int,
    numbers: NDArray[np.int32],
    first_rows: NDArray[np.int64],
) -> int:
    """Give each hash its number, and new ones the next; return how many there are then."""
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
