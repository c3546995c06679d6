"""Unary encodings: one bit a category, in packed rows that are drawn, checked and counted here.

A row has ceil(k / 8) bytes; bit i of it, little-endian within a byte, stands for category i, and
the bits beyond k in the last byte are zero.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Bytes, Integers, Words
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import (
    LONGEST_POWER,
    BlanketAtom,
    LocalProfile,
    RandomizerFamily,
    mirrored,
    outward_atoms,
)
from shuffledp.core.reports import Reports
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import Channel, SettledRandomizer
from shuffledp.randomizers.thresholds import WORD_VALUES, response_law

# Words of bits that are drawn together: they stay in the first-level cache.
_LANES = 2**12

# True bits are written to this many rows at a time, to bound the memory of converted codes.
_BLOCK = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding(SettledRandomizer):
    """k independent bits: the true one set with probability p, each other one with q = T / 2^64.

    The loss is ln(p (1 - q) / (q (1 - p))).
    """

    family: ClassVar[RandomizerFamily]
    is_fair: ClassVar[bool]  # whether p = 1/2, else p = 1 - q

    def _law_for(self, epsilon0: float) -> tuple[dict[str, int], float]:
        """Return T, and the loss: of two flips of probability q, of one if p = 1/2."""
        threshold, loss = response_law(epsilon0, num_flips=1 if self.is_fair else 2)
        return {"threshold": threshold}, loss

    @property
    def bit_probabilities(self) -> tuple[Fraction, Fraction]:
        """The exact p and q."""
        q = Fraction(self.threshold, WORD_VALUES)
        return Fraction(1, 2) if self.is_fair else 1 - q, q

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a bit is set, given it is the true one, and given it is not, as floats."""
        p, q = self.bit_probabilities
        return float(p), float(q)

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, and the blanket of `unary_blanket`."""
        blanket = unary_blanket(self.domain_size, *self.bit_probabilities)
        return self._profile(*blanket, family=self.family)

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one row of packed bits for each code. See `CategoryRandomizer`."""
        # All bits as if false, some 20 words for each 64 of them; then the true one of each row is
        # flipped, or becomes a fair coin.
        truth, k = checks.require_codes(values, self.domain_size), self.domain_size
        shape = truth.size, bytes_per_row(k)
        lanes = np.empty(-(-math.prod(shape) // 8), dtype=np.dtype("<u8"))
        for start in range(0, lanes.size, _LANES):
            part = lanes[start : start + _LANES]
            part[:] = bernoulli_lanes(part.size, self.threshold, entropy)
        rows = lanes.view(np.uint8)[: math.prod(shape)].reshape(shape)
        if k % 8:
            rows[:, -1] &= np.uint8((1 << k % 8) - 1)
        for start in range(0, truth.size, _BLOCK):
            block = truth[start : start + _BLOCK].astype(np.uint32)
            at = np.arange(start, start + block.size), block >> 3
            bits = np.uint8(1) << (block & 7).astype(np.uint8)
            if self.is_fair:
                coins = entropy.words(-(-block.size // 64)).astype("<u8", copy=False).view(np.uint8)
                is_set = np.unpackbits(coins, count=block.size, bitorder="little")
                rows[at] = rows[at] & ~bits | bits * is_set
            else:
                rows[at] ^= bits
        return Reports(data=rows, fingerprint=self.fingerprint)

    def supports(self, reports: Reports) -> Booleans:
        """Bits set in each report. See `CategoryRandomizer`."""
        rows = require_rows(reports, k=self.domain_size, fingerprint=self.fingerprint)
        return set_bits(rows, self.domain_size)

    def _support(self, reports: Reports) -> Integers:
        """Return the number of reports with the bit of each category set."""
        rows = require_rows(reports, k=self.domain_size, fingerprint=self.fingerprint)
        return column_sums(rows)[: self.domain_size]

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        k by 2^k, for k up to 8: column y stands for the report whose bit i is (y >> i) & 1.
        """
        supported = self.supports(self.report_columns()).tolist()
        (p, q), truths = self.bit_probabilities, range(self.domain_size)
        chances = [[p if i == truth else q for i in truths] for truth in truths]
        return tuple(
            tuple(
                Fraction(math.prod(c if y else 1 - c for y, c in zip(bits, of_truth, strict=True)))
                for bits in supported
            )
            for of_truth in chances
        )

    def _columns(self) -> NDArray[Any]:
        """Return all rows of bits; up to 8 bits are one byte."""
        return np.arange(2**self.domain_size, dtype=np.uint8)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """One bit a category, one-hot, each bit flipped with the same probability.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1]. A report takes ceil(k / 8) bytes.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    threshold : int
        T: each bit is flipped with probability exactly T / 2^64.

    Notes
    -----
    Source: basic one-time RAPPOR (Erlingsson, Pihur, Korolova, CCS 2014). Two inputs differ in two
    bits, so the loss is 2 ln((2^64 - T) / T). It cannot exceed 128 ln 2 = 88.8: there T = 1.

    Cost: about 2.5 k random bytes a report, and k / 8 bytes of memory.

    Examples
    --------
    >>> randomizer = SymmetricUnaryEncoding(domain_size=2, epsilon0=2.1972245773362196)
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['3/16', '9/16', '1/16', '3/16']
    """

    name: ClassVar[str] = "symmetric-unary"
    family: ClassVar[RandomizerFamily] = RandomizerFamily.SYMMETRIC_UNARY
    is_fair: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """One bit a category: the true one set with probability 1/2, each other one with q.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1]. A report takes ceil(k / 8) bytes.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    threshold : int
        T: each bit but the true one is set with probability exactly q = T / 2^64.

    Notes
    -----
    Source: OUE, Wang, Blocki, Li, Jha, USENIX Security 2017. The variance of a rare category is the
    least among unary encodings of the same loss, ln((1 - q) / q). The loss cannot exceed
    64 ln 2 = 44.4: there T = 1.

    Cost: about 2.5 k random bytes a report, and k / 8 bytes of memory.

    Examples
    --------
    >>> randomizer = OptimizedUnaryEncoding(domain_size=2, epsilon0=1.0986122886681100)
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['3/8', '3/8', '1/8', '1/8']
    """

    name: ClassVar[str] = "optimized-unary"
    family: ClassVar[RandomizerFamily] = RandomizerFamily.OPTIMIZED_UNARY
    is_fair: ClassVar[bool] = True


def unary_blanket(k: int, p: Fraction, q: Fraction) -> tuple[BlanketAtom, ...]:
    """Return the largest blanket of k independent bits, rounded so that no bound falls.

    With R = p (1 - q) / (q (1 - p)), the law for input x is k bits set with q, times p / q
    if bit x is set and (1 - p) / (1 - q) if not. The least over x is the latter wherever some bit
    is zero, and the former on the all-ones output, whose ratios are then (1, 1). By the bits of the
    pair: (1, 0) and (0, 1) have mass q (1 - p) each, (0, 0) has (1 - q) (1 - p), (1, 1) has
    q^2 (1 - q^(k-2)) (1 - p) / (1 - q), all ones has p q^(k-1). All ones are left out above 64
    categories, where they have less than a part in 2^62.
    """
    ratio = p * (1 - q) / (q * (1 - p))
    all_ones = q ** (k - 1) if k <= LONGEST_POWER else 0
    others = 1 - q ** (min(k, LONGEST_POWER) - 2)
    neither = (1 - q) * (1 - p) + p * all_ones
    both = q**2 * others * (1 - p) / (1 - q)
    return outward_atoms([*mirrored(q * (1 - p), ratio, 1), (neither, 1, 1), (both, ratio, ratio)])


def bytes_per_row(k: int) -> int:
    """Return the number of bytes of a row."""
    return -(-k // 8)


def bernoulli_lanes(count: int, threshold: int, entropy: Entropy) -> Words:
    """Return words of bits that are 1 with probability exactly T / 2^64, and independent.

    Each of the 64 positions of each word stands for its own uniform 64-bit number w, of which the
    j-th words drawn hold the j-th most significant digit. Digit by digit from the top, w is
    compared with T: the first digit where they differ decides w < T, so a position is undecided
    after j digits with probability 2^-j only, and some 20 draws decide all positions of some
    thousand words. Digits of T from its last 1 on cannot make w < T any more. Digits left out
    cannot change the answer, and are independent of it.
    """
    below = np.zeros(count, dtype=np.uint64)
    undecided = np.full(count, np.iinfo(np.uint64).max)
    for digit in range(63, -1, -1):
        words = entropy.words(count)
        if threshold >> digit & 1:
            below |= undecided & ~words
            undecided &= words
        else:
            undecided &= ~words
        if not undecided.any() or threshold % (1 << digit) == 0:
            break
    return below


def set_bits(rows: Bytes, k: int) -> Booleans:
    """Return the bits set in each row: booleans, shape (n, k)."""
    return np.unpackbits(rows, axis=1, count=k, bitorder="little").view(np.bool_)


def require_rows(reports: Reports, *, k: int, fingerprint: str) -> Bytes:
    """Return the rows of ``reports`` if this law could have made them, else raise."""
    of_law = fingerprint, np.dtype(np.uint8), (bytes_per_row(k),)
    rows: Bytes = checks.require_reports(reports, *of_law)
    if k % 8:
        is_possible = rows[:, -1] >> np.uint8(k % 8) == 0
        checks.require_possible(is_possible, f"has a bit set beyond category {k - 1}")
    return rows


def column_sums(rows: Bytes) -> Integers:
    """Return the number of ones in each of the 8 * row_bytes bit columns of packed rows."""
    from shuffledp.randomizers.randomizer_kernels import add_bits

    cells = np.zeros((rows.shape[1], 8), dtype=np.int64)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    spread = bits.view(np.dtype("<u8"))[:, 0].astype(np.uint64)
    add_bits(rows, spread, np.zeros(rows.shape[1], dtype=np.uint64), cells)
    return cells.reshape(-1)
