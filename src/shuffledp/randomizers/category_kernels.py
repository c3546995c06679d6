"""Compiled loops of the randomizers of categories: drawing reports and counting them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit
from shuffledp.core.numerics.uniform_kernels import bounded_integer

_ONE_BYTE = np.uint8(1)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def write_inverses(inverses: NDArray[np.int64]) -> None:
    """Write 1/i mod g at index i, for a prime g, the size of the array; 0 at index 0.

    g = (g div i) i + (g mod i), so that 1/i = -(g div i) / (g mod i) mod g.
    """
    g = inverses.size
    inverses[0] = 0
    inverses[1] = 1
    for i in range(2, g):
        inverses[i] = g - (g // i) * inverses[g % i] % g


@njit(cache=True, nogil=True)
def _digit_product(first: np.int64, second: np.int64, g: np.int64) -> np.int64:
    """Return the sum of the products of the digits in base g, mod g."""
    total = np.int64(0)
    while first > 0 and second > 0:
        total += (first % g) * (second % g)
        first //= g
        second //= g
    return total % g


@njit(cache=True, nogil=True)
def add_reports(
    codes: NDArray[Any],
    weights: NDArray[np.int64],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add the weight of each report to its cell in each block of its level.

    See `linear_hashing` for levels and blocks. From one block to the next the lowest digit
    of the block's number grows by one, and the cell moves on by a constant, save for a carry.
    """
    g = np.int64(inverses.size)
    for i in range(codes.size):
        seed = np.int64(codes[i] // np.uint64(g))
        bucket = np.int64(codes[i] % np.uint64(g))
        if seed == 0:
            table[offsets[offsets.size - 1] + np.int64(bucket != 0)] += weights[i]
            continue
        level = 0
        while seed % g == 0:
            seed //= g
            level += 1
        inverse = inverses[seed % g]
        bucket = bucket * inverse % g
        seed //= g
        cell = offsets[level]
        block_size = block_sizes[level]
        stride = g
        while stride < block_size:
            cell += (seed % g) * inverse % g * stride
            seed //= g
            stride *= g
        step = (seed % g) * inverse % g
        for first in range(0, num_blocks[level], g):
            place = bucket - _digit_product(seed // g, first // g, g) * inverse % g
            for block in range(first, min(first + g, num_blocks[level])):
                if place < 0:
                    place += g
                table[cell + block * block_size + place] += weights[i]
                place -= step


@njit(cache=True, nogil=True)
def _load_doubled(
    level: NDArray[np.int64], base: int, stride: int, g: int, rows: NDArray[np.int64]
) -> None:
    """Copy g rows of g cells, each twice over, so that a rotation of a row is a slice of it."""
    for a in range(g):
        for z in range(g):
            count = level[base + a * stride + z]
            rows[2 * g * a + z] = count
            rows[2 * g * a + g + z] = count


@njit(cache=True, nogil=True)
def transform_digit(
    level: NDArray[np.int64], g: int, stride: int, num_blocks: int, rows: NDArray[np.int64]
) -> None:
    """Turn one digit of the seed into the same digit of the category, in place.

    ``level[.., a, .., z]`` has stride ``stride`` for the digit a and 1 for the bucket z. It becomes
    ``level[.., v, .., z] = sum over a of level[.., a, .., (z + a v) mod g]``. ``rows`` has room for
    2 g^2 cells.
    """
    sums = np.empty(g, dtype=np.int64)
    for block in range(num_blocks):
        for base in range(block * g * stride, block * g * stride + stride, g):
            _load_doubled(level, base, stride, g, rows)
            for v in range(g):
                sums[:] = 0
                shift = 0
                for a in range(g):
                    first = 2 * g * a + shift
                    for z in range(g):
                        sums[z] += rows[first + z]
                    shift += v
                    if shift >= g:
                        shift -= g
                for z in range(g):
                    level[base + v * stride + z] = sums[z]
