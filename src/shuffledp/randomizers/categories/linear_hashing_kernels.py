"""Compiled loops of linear hashing: drawing seeds and hashes, and counting supported categories."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def hash_block(
    codes: NDArray[np.uint32],
    words: NDArray[np.uint64],
    g: np.uint64,
    num_digits: int,
    buckets: NDArray[np.uint32],
) -> None:
    """Replace word w by the seed floor(w g^m / 2^64), and write the bucket of each code.

    Multiplying a word by g pushes the next digit of the seed out at the top, the most significant
    first. Digits of codes come in the same order; (x + 1/2) / g^j is at least 1 / (2 g^j) from a
    whole number, and a product with the reciprocal is exact to 2^-51 of itself, so that its whole
    part is right for all x below 2^49: the codes are below 2^32, the sums below m g^2 <= 2^43.
    """
    # Signed where floats are made of them: processors have no instruction for unsigned ones.
    powers = np.empty(num_digits, dtype=np.int64)
    reciprocals = np.empty(num_digits, dtype=np.float64)
    power = np.int64(1)
    for place in range(num_digits - 1, -1, -1):
        powers[place] = power
        reciprocals[place] = 1.0 / np.float64(power)
        power *= np.int64(g)
    reciprocal = 1.0 / np.float64(g)
    for i in range(codes.size):
        word = words[i]
        rest = np.int64(codes[i])
        seed = np.uint64(0)
        total = np.int64(0)
        for place in range(num_digits):
            # Upper half of the 128-bit product; g < 2^21, so that no partial product overflows.
            carried = ((word & _LOW_HALF) * g) >> _HALF
            digit = ((word >> _HALF) * g + carried) >> _HALF
            word *= g
            seed = seed * g + digit
            code_digit = np.int64((np.float64(rest) + 0.5) * reciprocals[place])
            rest -= code_digit * powers[place]
            total += np.int64(digit) * code_digit
        words[i] = seed
        buckets[i] = total - np.int64(g) * np.int64((np.float64(total) + 0.5) * reciprocal)


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
def _add(
    code: np.uint64,
    weight: int,
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add a weight to the cell of a report in each block of its level.

    See `linear_hashing_counts` for levels and blocks. From one block to the next the lowest digit
    of the block's number grows by one, and the cell moves on by a constant, save for a carry.
    """
    g = np.int64(inverses.size)
    seed = np.int64(code // np.uint64(g))
    bucket = np.int64(code % np.uint64(g))
    if seed == 0:
        table[offsets[offsets.size - 1] + np.int64(bucket != 0)] += weight
        return
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
            table[cell + block * block_size + place] += weight
            place -= step


@njit(cache=True, nogil=True)
def add_reports(
    codes: NDArray[Any],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add one to the cells of each report."""
    for i in range(codes.size):
        _add(np.uint64(codes[i]), 1, inverses, offsets, block_sizes, num_blocks, table)


@njit(cache=True, nogil=True)
def add_histogram(
    histogram: NDArray[np.int64],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add ``histogram[r]`` to the cells of report r, for each r."""
    for code in range(histogram.size):
        weight = histogram[code]
        _add(np.uint64(code), weight, inverses, offsets, block_sizes, num_blocks, table)


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
