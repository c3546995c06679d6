"""Loop of subset selection in NumPy: uniform subsets of fixed size, drawn into packed bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOWER_HALF = np.uint64(0xFFFFFFFF)
_TWO_TO_32 = np.uint64(1 << 32)
_HALF = np.uint64(32)


def place_members(
    rows: NDArray[np.uint8],
    codes: NDArray[np.uint32],
    coins: NDArray[np.uint64],
    half_words: NDArray[np.uint32],
    threshold: np.uint64,
    num_others: int,
    subset_size: int,
    placed: int,
) -> int:
    """Draw the members of each row's subset one after another, as far as the half words go.

    See the compiled loop, which writes the same rows from the same words. Here step s of Floyd's
    algorithm is done for all rows at once, before step s + 1: a row's steps need only those
    before them.

    Cost: about 20 NumPy calls for each step, which the rows of a block share.
    """
    smallest_bound = num_others - subset_size + 1
    numbers = np.arange(placed, min(placed + half_words.size, codes.size * subset_size))
    chosen = _uniform_integers(half_words, smallest_bound + numbers % subset_size)
    for step in range(subset_size):
        offset = (step - placed) % subset_size
        if offset >= chosen.size:
            continue
        picks = chosen[offset::subset_size]
        first_row = (placed + offset) // subset_size
        block = slice(first_row, first_row + picks.size)
        truth = codes[block].astype(np.int64)
        members = np.where(picks == truth, num_others, picks)
        order = np.arange(picks.size)
        if step == 0:
            members = np.where(coins[block] < threshold, truth, members)
        else:
            latest = smallest_bound + step - 1
            is_in = rows[block][order, members >> 3] & _bit_of_byte(members) != 0
            members = np.where(is_in, np.where(latest == truth, num_others, latest), members)
        rows[block][order, members >> 3] |= _bit_of_byte(members)
    return placed + chosen.size


def _uniform_integers(
    half_words: NDArray[np.uint32], bounds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return an exactly uniform integer below each bound, as far as the half words go.

    Lemire's rule, as `bounded_integer` of the uniform shuffler has it. A refused half word moves
    all those after it one bound up, so they are looked at again; of bounds below 2^20 less than
    one half word in four thousand is refused.
    """
    unsigned = bounds.astype(np.uint64)
    least = (_TWO_TO_32 - unsigned) % unsigned
    words = half_words.astype(np.uint64)
    done = 0
    while True:
        size = min(words.size, unsigned.size)
        products = words[done:size] * unsigned[done:size]
        is_refused = (products & _LOWER_HALF) < least[done:size]
        if not is_refused.any():
            break
        done += int(np.argmax(is_refused))
        words = np.delete(words, done)
    return (words[:size] * unsigned[:size] >> _HALF).astype(np.int64)


def _bit_of_byte(members: NDArray[np.int64]) -> NDArray[Any]:
    """Return a byte with the bit of each member set."""
    return np.uint8(1) << (members & 7).astype(np.uint8)
