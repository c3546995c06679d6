"""Compiled loops of hashing to one bit: drawing reports, and the Walsh-Hadamard transform."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

_ONE = np.uint64(1)
# Bit i is the parity of the four bits of i.
_PARITIES = np.uint64(0x6996)


@njit(cache=True, nogil=True)
def randomize_binary_block(
    codes: NDArray[np.uint32],
    words: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    threshold: np.uint64,
    shift: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report 2 j + b: row j from the top bits of word i, b the parity of j & x, or flipped.

    It is flipped if coin i is below T, as in k-RR with two categories.
    """
    for i in range(codes.size):
        row = words[i] >> shift
        bits = row & np.uint64(codes[i])
        bits ^= bits >> np.uint64(16)
        bits ^= bits >> np.uint64(8)
        bits ^= bits >> np.uint64(4)
        parity = (_PARITIES >> (bits & np.uint64(15))) & _ONE
        out[i] = (row << _ONE) | (parity ^ np.uint64(coins[i] < threshold))


@njit(cache=True, nogil=True)
def add_signs(codes: NDArray[Any], differences: NDArray[np.int64]) -> None:
    """Add 1 at row j for each report 2 j, and -1 for each report 2 j + 1."""
    for i in range(codes.size):
        code = np.int64(codes[i])
        differences[code >> 1] += 1 - 2 * (code & 1)


@njit(cache=True, nogil=True)
def walsh_hadamard(values: NDArray[np.int64]) -> None:
    """Replace ``values`` by sum over j of (-1)^parity(j & v) values[j] at index v, in place.

    The number of values is a power of two. Integers, so exact.
    """
    half = 1
    while half < values.size:
        for start in range(0, values.size, 2 * half):
            for i in range(start, start + half):
                first = values[i]
                second = values[i + half]
                values[i] = first + second
                values[i + half] = first - second
        half *= 2
