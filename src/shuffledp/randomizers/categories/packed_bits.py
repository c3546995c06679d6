"""Reports as rows of packed bits: what both unary encodings draw, count and check alike.

A row has ceil(k / 8) bytes; bit i of it, little-endian within a byte, stands for category i, and
the bits beyond k in the last byte are zero.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.reports import Counts, Reports, read_only
from shuffledp.randomizers.checks import require_codes, require_reports
from shuffledp.randomizers.protocol import Channel

# 256 KiB of words at a time stay in the second-level cache between generator and loop.
_WORD_BUFFER = 2**15
# Words drawn for each 64 bits still to fill: a little above the mean of 7.3, so that most fills
# need one draw; and no fill ever needs more than 64 words.
_WORDS_PER_LANE = 8
_MOST_WORDS_PER_LANE = 64

# True bits are written to this many rows at a time, to bound the memory of converted codes.
_BLOCK = 2**16

# Rows are widened to at least this many words when they are counted, so that short rows do not
# drown in the overhead of a loop over one word.
_LEAST_WORDS_COUNTED = 64


def bytes_per_row(k: int) -> int:
    """Return the number of bytes of a row."""
    return -(-k // 8)


def randomize_rows(
    codes: NDArray[np.integer[Any]],
    *,
    k: int,
    threshold: int,
    entropy: Entropy,
    write_true_bits: Callable[[NDArray[np.uint8], NDArray[np.uint32]], None],
) -> NDArray[np.uint8]:
    """Return one row for each code: k bits set with probability T / 2^64, then the true one.

    Parameters
    ----------
    codes : ndarray of integers, shape (n,)
        True categories, in [0, k).
    k : int
        Number of categories.
    threshold : int
        T, in [1, 2^63].
    entropy : Entropy
        Source of randomness; about 8 words are taken for each 64 bits.
    write_true_bits : callable
        Changes the true bit of each row of a block, given the block's codes.

    Returns
    -------
    ndarray of uint8, shape (n, ceil(k / 8))
        The bits beyond k are zero.

    Raises
    ------
    DomainError
        If a code lies outside [0, k); the message names the first.
    ParameterError
        If ``codes`` is not a one-dimensional array of integers.
    """
    truth = require_codes(codes, k)
    rows = _bernoulli_rows(
        truth.size, row_bytes=bytes_per_row(k), threshold=threshold, entropy=entropy
    )
    if k % 8:
        rows[:, -1] &= np.uint8((1 << k % 8) - 1)
    for start in range(0, truth.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        write_true_bits(rows[block], truth[block].astype(np.uint32))
    return rows


def _bernoulli_rows(
    num_rows: int, *, row_bytes: int, threshold: int, entropy: Entropy
) -> NDArray[np.uint8]:
    """Return bytes of bits that are independently 1 with probability T / 2^64."""
    from shuffledp.randomizers.categories.packed_bits_kernels import fill_bernoulli

    lanes = np.empty(-(-num_rows * row_bytes // 8), dtype=np.dtype("<u8"))
    words = np.empty(_WORD_BUFFER, dtype=np.uint64)
    filled = 0
    while filled < lanes.size:
        wanted = _WORDS_PER_LANE * (lanes.size - filled) + _MOST_WORDS_PER_LANE
        drawn = words[: min(wanted, _WORD_BUFFER)]
        entropy.fill(drawn)
        # Words that are left over are dropped: a word is never used twice.
        filled += fill_bernoulli(drawn, np.uint64(threshold), lanes[filled:])
    return lanes.view(np.uint8)[: num_rows * row_bytes].reshape(num_rows, row_bytes)


def count_rows(reports: Reports, *, k: int, fingerprint: str) -> Counts:
    """Return how many rows have each bit set.

    Parameters
    ----------
    reports : Reports
        Packed rows.
    k : int
        Number of categories.
    fingerprint : str
        Law that must have made them.

    Returns
    -------
    Counts
        Exact column sums.

    Raises
    ------
    FingerprintError
        If the reports were made by another law.
    DomainError
        If a bit beyond k is set.
    ParameterError
        If the reports have another type or shape.
    """
    rows = require_rows(reports, k=k, fingerprint=fingerprint)
    return Counts(support=column_sums(rows)[:k], num_reports=rows.shape[0], fingerprint=fingerprint)


def set_bits(reports: Reports, *, k: int, fingerprint: str) -> NDArray[np.bool_]:
    """Return which bits are set in each row: booleans, shape (n, k). Raises as `count_rows`."""
    rows = require_rows(reports, k=k, fingerprint=fingerprint)
    return np.unpackbits(rows, axis=1, count=k, bitorder="little").view(np.bool_)


def require_rows(reports: Reports, *, k: int, fingerprint: str) -> NDArray[np.uint8]:
    """Return the rows of ``reports`` if this law could have made them. Raises as `count_rows`."""
    rows: NDArray[np.uint8] = require_reports(
        reports,
        fingerprint=fingerprint,
        dtype=np.dtype(np.uint8),
        row_shape=(bytes_per_row(k),),
    )
    if k % 8:
        is_beyond = rows[:, -1] >> np.uint8(k % 8) != 0
        if is_beyond.any():
            raise DomainError(
                f"report {int(np.argmax(is_beyond))} has a bit set beyond category {k - 1}: no "
                f"randomizer with k = {k} makes such a report, so it is corrupt or forged; drop it "
                "and count again"
            )
    return rows


def bit_channel(k: int, row_of_bit_probabilities: Callable[[int], list[Fraction]]) -> Channel:
    """Return the exact channel of k independent bits; output y has bit i set for category i.

    Parameters
    ----------
    k : int
        Number of categories and of bits.
    row_of_bit_probabilities : callable
        Returns, for a true category, the probability that each bit is set.

    Returns
    -------
    tuple of tuples of Fraction, k by 2^k
        Each row sums to exactly 1.
    """
    return tuple(
        tuple(
            math.prod(
                (p if y >> i & 1 else 1 - p for i, p in enumerate(row_of_bit_probabilities(x))),
                start=Fraction(1),
            )
            for y in range(2**k)
        )
        for x in range(k)
    )


def column_sums(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of ones in each of the 8 * row_bytes bit columns of packed rows."""
    from shuffledp.randomizers.categories import packed_bits_kernels as kernels

    row_bytes = rows.shape[1]
    # Glue rows together to whole words, and these to a width that suits the loop; column j of
    # glued rows is column j mod (8 row_bytes) of single ones.
    glued_bytes = math.lcm(row_bytes, 8)
    glued_bytes *= -(-8 * _LEAST_WORDS_COUNTED // glued_bytes)
    batch = 8 * glued_bytes
    totals = np.zeros((glued_bytes // 8, 64), dtype=np.int64)
    planes = np.empty((kernels.NUM_PLANES, glued_bytes // 8), dtype=np.uint64)
    flat = rows.reshape(-1)
    whole = flat.size // batch * batch
    kernels.add_column_sums(_as_words(flat[:whole], glued_bytes), planes, totals)
    if whole < flat.size:
        rest = np.zeros(batch, dtype=np.uint8)  # rows of zeros add nothing
        rest[: flat.size - whole] = flat[whole:]
        kernels.add_column_sums(_as_words(rest, glued_bytes), planes, totals)
    sums: NDArray[np.int64] = totals.reshape(-1, 8 * row_bytes).sum(axis=0)
    return sums


def _as_words(flat: NDArray[np.uint8], glued_bytes: int) -> NDArray[Any]:
    """Return bytes as rows of little-endian words: bit b of a word is bit b of its bytes."""
    if flat.ctypes.data % 8:
        flat = flat.copy()  # a slice may start anywhere, and words must be aligned
    return read_only(flat.view(np.dtype("<u8")).reshape(-1, glued_bytes // 8))
