"""Counting hashed reports: how many support each category, without looking at all pairs.

A report (a, y) supports category v if sum a_i v_i = y mod g. Scaling a and y by the same number
leaves that as it is, so a report is scaled until the lowest digit of a that is not zero, digit j
say, is one: it then supports the v whose digit v_j is y - sum_{i > j} a_i v_i. That depends on
the prefix floor(v / g^j) alone, so that reports are gathered by their *level* j.

The digits of the prefix above v_j fall in two parts. The upper ones, of which each value is a
*block*, are searched: the report goes into every block, with its y less the upper part of the
sum. The lower ones are transformed: a block is a table over the lower digits of a and, in the
place of v_j, the y so far. Summing over one digit of a at a time turns it into the table over the
digits of v. The more digits are searched, the less memory and transform, and the more work a
report.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.randomizers.categories.linear_hashing import HashedResponse

# Cells of the largest table, unless k itself is larger: half a gigabyte.
_LARGEST_TABLE = 2**26

# An addition somewhere in a large table takes as long as so many in a row.
_SCATTERED_COST = 10

# A histogram of all possible reports is worth having up to this size.
_LARGEST_HISTOGRAM = 2**24

# Up to this number of counts four interleaved tables of them fit the second-level cache.
_LARGEST_INTERLEAVED = 2**13


def count_supports(law: HashedResponse, data: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return how many reports support each category.

    Parameters
    ----------
    law : HashedResponse
        Law of the reports.
    data : ndarray of unsigned integers, shape (n,)
        Reports of that law, already checked; contiguous.

    Returns
    -------
    ndarray of int64, shape (k,)
        Exact.

    Notes
    -----
    Of the m = ceil(log_g k) digits, j are searched, D = ceil(k / g^(m-j)) blocks, and the others
    transformed: n D scattered additions, and (m - j - 1) g in a row for each of the g^(m-j) D
    cells. That is g^m < g k cells for j = 0, and below 2 k for the others; j = m - 1 is a search
    without any transform. The cheapest j that fits memory is taken. For g = 2 it is the fast
    Walsh-Hadamard transform instead, n + 2^m m additions in 2^m cells.
    """
    if law.num_buckets == 2:
        return _count_binary(law, data)
    num_additions = min(data.size, law.num_possible_reports)
    costs = {
        num_searched: _cost(law, num_searched, num_additions)
        for num_searched in range(law.num_digits)
        if num_searched > 0 or law.num_digits == 1 or law.num_seeds <= _LARGEST_TABLE
    }
    return count_by_digits(law, data, min(costs, key=lambda each: costs[each]))


def count_by_digits(
    law: HashedResponse, data: NDArray[np.unsignedinteger], num_searched: int
) -> NDArray[np.int64]:
    """Return how many reports support each category, for g > 2, with j digits searched.

    See `count_supports`; ``num_searched`` is j, in [0, m). All give the same counts.
    """
    from shuffledp.randomizers.categories import linear_hashing_kernels as kernels

    g = law.num_buckets
    inverses = np.empty(g, dtype=np.int64)
    kernels.write_inverses(inverses)
    levels = _levels(law, num_searched)
    offsets = np.cumsum([0] + [level.num_cells for level in levels], dtype=np.int64)
    block_sizes = np.array([level.block_size for level in levels], dtype=np.int64)
    num_blocks = np.array([level.num_blocks for level in levels], dtype=np.int64)
    # The last two cells count reports of seed 0: those that support everything, and nothing.
    table = np.zeros(int(offsets[-1]) + 2, dtype=np.int64)
    if law.num_possible_reports <= min(data.size, _LARGEST_HISTOGRAM):
        histogram = _histogram(data, law.num_possible_reports)
        kernels.add_histogram(histogram, inverses, offsets, block_sizes, num_blocks, table)
    else:
        kernels.add_reports(data, inverses, offsets, block_sizes, num_blocks, table)
    rows = np.empty(2 * g * g if int(block_sizes[0]) > g else 0, dtype=np.int64)
    support = table[-2:-1]
    for level, start in zip(reversed(levels), offsets[-2::-1].tolist(), strict=True):
        part = table[start : start + level.num_cells]
        stride = level.block_size // g
        while stride > 1:
            # From the top down, so that later steps can leave out prefixes beyond the last.
            num_steps = -(-level.num_prefixes // (g * stride))
            kernels.transform_digit(part, g, stride, num_steps, rows)
            stride //= g
        support = np.repeat(support, g)[: level.num_prefixes]
        support += part[: level.num_prefixes]
    return support


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """Table of the reports whose lowest digit that is not zero is one and the same.

    Parameters
    ----------
    num_prefixes : int
        Prefixes floor(v / g^j) of the categories v.
    block_size : int
        Cells of a block, a power of g, at least g.
    """

    num_prefixes: int
    block_size: int

    @property
    def num_blocks(self) -> int:
        """Values of the searched digits; the last block may reach beyond the prefixes."""
        return -(-self.num_prefixes // self.block_size)

    @property
    def num_cells(self) -> int:
        """Cells of all blocks."""
        return self.num_blocks * self.block_size


def _levels(law: HashedResponse, num_searched: int) -> list[_Level]:
    """Return the tables of levels 0 to m - 1."""
    g, digits = law.num_buckets, law.num_digits
    return [
        _Level(
            num_prefixes=-(-law.k // g**level),
            block_size=g ** max(1, digits - level - num_searched),
        )
        for level in range(digits)
    ]


def _cost(law: HashedResponse, num_searched: int, num_additions: int) -> int:
    """Return how many additions in a row counting takes as long as."""
    num_transformed = law.num_digits - num_searched - 1
    level = _levels(law, num_searched)[0]  # the others are smaller by powers of g
    search = _SCATTERED_COST * num_additions * level.num_blocks
    return search + (num_transformed * law.num_buckets + 1) * level.num_cells


def _count_binary(law: HashedResponse, data: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return how many reports support each category, for g = 2.

    With d_a the reports (a, 0) less the reports (a, 1), those that support v are
    (n + sum_a (-1)^parity(a & v) d_a) / 2.
    """
    from shuffledp.randomizers.categories import hadamard_response_kernels as kernels

    if law.num_possible_reports <= min(data.size, _LARGEST_INTERLEAVED):
        histogram = _histogram(data, law.num_possible_reports)
        signed = histogram[::2] - histogram[1::2]
    else:
        signed = np.zeros(law.num_seeds, dtype=np.int64)
        kernels.add_signs(data, signed)
    kernels.walsh_hadamard(signed)
    support = signed[: law.k]
    support += data.size
    support >>= 1
    return support


def _histogram(data: NDArray[np.unsignedinteger], size: int) -> NDArray[np.int64]:
    """Return how often each whole number below ``size`` occurs."""
    from shuffledp.randomizers.categories.k_randomized_response_kernels import count_codes

    tables = np.zeros((4 if size <= _LARGEST_INTERLEAVED else 1, size), dtype=np.int64)
    count_codes(data, tables)
    histogram: NDArray[np.int64] = tables.sum(axis=0) if tables.shape[0] > 1 else tables[0]
    return histogram
