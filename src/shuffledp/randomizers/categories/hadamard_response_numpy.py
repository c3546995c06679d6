"""Loops of hashing to one bit in NumPy: drawing reports, and the Walsh-Hadamard transform."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ONE = np.uint64(1)

# Reports that are converted at once.
_BLOCK = 2**16


def randomize_binary_block(
    codes: NDArray[np.uint32],
    words: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    threshold: np.uint64,
    shift: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report 2 j + b: row j from the top bits of word i, b the parity of j & x, or flipped.

    The same reports as from the compiled loop. Cost: about 5 ns a report.
    """
    rows = words >> shift
    bits = np.bitwise_count(rows & codes).astype(np.uint64) & _ONE
    bits ^= coins < threshold
    out[:] = (rows << _ONE) | bits


def add_signs(codes: NDArray[Any], differences: NDArray[np.int64]) -> None:
    """Add 1 at row j for each report 2 j, and -1 for each report 2 j + 1."""
    for start in range(0, codes.size, _BLOCK):
        block = codes[start : start + _BLOCK].astype(np.int64)
        np.add.at(differences, block >> 1, 1 - 2 * (block & 1))


def walsh_hadamard(values: NDArray[np.int64]) -> None:
    """Replace ``values`` by sum over j of (-1)^parity(j & v) values[j] at index v, in place.

    The number of values is a power of two. Integers, so exact.
    """
    half = 1
    while half < values.size:
        pairs = values.reshape(-1, 2, half, copy=False)
        total = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = total
        half *= 2
