"""Loops of linear hashing in NumPy: drawing seeds and hashes, and counting supported categories."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)

# Reports whose digits are held at once.
_REPORTS_AT_A_TIME = 2**14

# Cells that are added to, or moved, at once.
_CELLS_AT_A_TIME = 2**18


def hash_block(
    codes: NDArray[np.uint32],
    words: NDArray[np.uint64],
    g: np.uint64,
    num_digits: int,
    buckets: NDArray[np.uint32],
) -> None:
    """Replace word w by the seed floor(w g^m / 2^64), and write the bucket of each code.

    The same seeds and buckets as from the compiled loop. Cost: about 10 ns a digit.
    """
    rest = codes.astype(np.int64)
    seeds = np.zeros_like(words)
    totals = np.zeros_like(rest)
    for place in range(num_digits - 1, -1, -1):
        # Upper half of the 128-bit product; g < 2^21, so that no partial product overflows.
        carried = ((words & _LOW_HALF) * g) >> _HALF
        digits = ((words >> _HALF) * g + carried) >> _HALF
        words *= g
        seeds = seeds * g + digits
        code_digits, rest = np.divmod(rest, int(g) ** place)
        totals += digits.astype(np.int64) * code_digits
    words[:] = seeds
    buckets[:] = totals % int(g)


def write_inverses(inverses: NDArray[np.int64]) -> None:
    """Write 1/i mod g at index i, for a prime g, the size of the array; 0 at index 0.

    By Fermat's little theorem 1/i = i^(g - 2) mod g; squares stay below 2^42.
    """
    g = inverses.size
    powers = np.arange(g, dtype=np.int64)
    inverses[:] = 1
    exponent = g - 2
    while exponent > 0:
        if exponent & 1:
            inverses *= powers
            inverses %= g
        powers *= powers
        powers %= g
        exponent >>= 1
    inverses[0] = 0


def add_reports(
    codes: NDArray[Any],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add one to the cells of each report; the same cells as the compiled loop.

    Cost: about 30 ns an addition.
    """
    weights = np.ones(min(codes.size, _REPORTS_AT_A_TIME), dtype=np.int64)
    for start in range(0, codes.size, _REPORTS_AT_A_TIME):
        part = codes[start : start + _REPORTS_AT_A_TIME].astype(np.uint64)
        _add(part, weights[: part.size], inverses, offsets, block_sizes, num_blocks, table)


def add_histogram(
    histogram: NDArray[np.int64],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add ``histogram[r]`` to the cells of report r, for each r."""
    for start in range(0, histogram.size, _REPORTS_AT_A_TIME):
        part = histogram[start : start + _REPORTS_AT_A_TIME]
        codes = np.arange(start, start + part.size, dtype=np.uint64)
        _add(codes, part, inverses, offsets, block_sizes, num_blocks, table)


def _add(
    codes: NDArray[np.uint64],
    weights: NDArray[np.int64],
    inverses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
    num_blocks: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Add each report's weight to its cell in each block of its level.

    See `linear_hashing_counts` for levels and blocks. A level's reports are handled together: with
    the digits of the seed, scaled, as rows, and those of the blocks' numbers as columns, one
    product of matrices has all hashes of the searched digits.
    """
    g = inverses.size
    codes, remainders = np.divmod(codes, np.uint64(g))
    buckets = remainders.astype(np.int64)
    seeds = _digits(codes.astype(np.int64), g, block_sizes.size)
    is_digit = seeds != 0
    levels = np.where(is_digit.any(axis=1), is_digit.argmax(axis=1), block_sizes.size)
    for level in range(block_sizes.size):
        chosen = np.flatnonzero(levels == level)
        inverse = inverses[seeds[chosen, level]][:, None]
        scaled = seeds[chosen, level + 1 :] * inverse % g
        _add_level(
            scaled,
            buckets[chosen, None] * inverse % g,
            weights[chosen, None],
            g,
            int(num_blocks[level]),
            table[offsets[level] : offsets[level + 1]],
        )
    is_zero = levels == block_sizes.size
    np.add.at(table, offsets[-1] + (buckets[is_zero] != 0), weights[is_zero])


def _add_level(
    scaled: NDArray[np.int64],
    buckets: NDArray[np.int64],
    weights: NDArray[np.int64],
    g: int,
    num_blocks: int,
    cells: NDArray[np.int64],
) -> None:
    """Add the weights of one level's reports; ``buckets`` and ``weights`` are columns."""
    block_size = cells.size // num_blocks
    num_lower = 0
    while g ** (num_lower + 1) < block_size:
        num_lower += 1
    strides = g ** np.arange(1, num_lower + 1, dtype=np.int64)
    first_cells = (scaled[:, :num_lower] @ strides)[:, None]
    searched = scaled[:, num_lower:]
    blocks = np.arange(num_blocks)
    block_digits = _digits(blocks, g, searched.shape[1]).T
    step = max(1, _CELLS_AT_A_TIME // num_blocks)
    for start in range(0, scaled.shape[0], step):
        part = slice(start, start + step)
        places = (buckets[part] - searched[part] @ block_digits) % g
        places += first_cells[part]
        places += blocks * block_size
        np.add.at(cells, places, np.broadcast_to(weights[part], places.shape))


def _digits(numbers: NDArray[np.int64], g: int, num_digits: int) -> NDArray[np.int64]:
    """Return the digits in base g, the least significant first: shape (n, m)."""
    digits = np.empty((numbers.size, num_digits), dtype=np.int64)
    for place in range(num_digits):
        numbers, digits[:, place] = np.divmod(numbers, g)
    return digits


def transform_digit(
    level: NDArray[np.int64],
    g: int,
    stride: int,
    num_blocks: int,
    rows: NDArray[np.int64],  # noqa: ARG001 (the compiled twin's signature)
) -> None:
    """Turn one digit of the seed into the same digit of the category, in place.

    See the compiled loop, which writes the same numbers. This one needs room for a copy of
    ``level``. Cost: a few nanoseconds for each of the g additions a cell.
    """
    cells = level[: num_blocks * g * stride].reshape(num_blocks, g, stride // g, g)
    squares = cells.transpose(0, 2, 1, 3).reshape(-1, g * g)
    first = g * np.arange(g)[:, None]  # of each row a in a square
    step = max(1, _CELLS_AT_A_TIME // (g * g))
    for start in range(0, squares.shape[0], step):
        part = squares[start : start + step]
        sums = np.empty_like(part)
        for v in range(g):
            rotated = first + (np.arange(g) + v * np.arange(g)[:, None]) % g
            sums[:, v * g : (v + 1) * g] = part[:, rotated].sum(axis=1)
        part[:] = sums
    cells[:] = squares.reshape(num_blocks, stride // g, g, g).transpose(0, 2, 1, 3)
