"""Symmetric unary encoding (basic RAPPOR): one-hot bits, each flipped with one probability."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.exact_atoms import LONGEST_POWER, outward_atoms
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.categories.packed_bits import (
    bit_channel,
    bytes_per_row,
    count_rows,
    randomize_rows,
    set_bits,
)
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.checks import (
    fingerprint_of,
    require_num_categories,
    require_small_channel,
)
from shuffledp.randomizers.protocol import Channel
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    log_ratio_upper,
    settle,
    symmetric_unary_threshold,
)

_LARGEST_CHANNEL_K = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnaryEncoding(CategoryRandomizer):
    """One bit a category, one-hot, each bit flipped with the same probability.

    Parameters
    ----------
    k : int
        Number of categories, in [2, 2^32 - 1]. A report takes ceil(k / 8) bytes.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.

    Attributes
    ----------
    threshold : int
        T: each bit is flipped with probability exactly T / 2^64.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If k or epsilon0 is out of range.

    Notes
    -----
    Source: basic one-time RAPPOR (Erlingsson, Pihur, Korolova, CCS 2014). Two inputs differ in two
    bits, so the loss is 2 ln((2^64 - T) / T). It cannot exceed 128 ln 2 = 88.8: there T = 1.

    Cost: about k random bytes a report, and k / 8 bytes of memory.

    Examples
    --------
    >>> randomizer = SymmetricUnaryEncoding(k=2, epsilon0=2.1972245773362196)  # just above 2 ln 3
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['3/16', '9/16', '1/16', '3/16']
    """

    name: ClassVar[str] = "symmetric-unary"

    k: int
    epsilon0: float
    threshold: int = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = require_num_categories(self.k)
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = settle(
            asked,
            threshold_for=symmetric_unary_threshold,
            loss_of=lambda threshold: log_ratio_upper(_probability_ratio(threshold)),
        )
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "epsilon0", epsilon0)
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "fingerprint", fingerprint_of(self.name, k=k, threshold=threshold))

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report: ceil(k / 8)."""
        return bytes_per_row(self.k)

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Probability that a bit is set, given it is the true one, and given it is not.

        Rounded to the nearest floats.
        """
        return (WORD_VALUES - self.threshold) / WORD_VALUES, self.threshold / WORD_VALUES

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss and the largest blanket.

        Notes
        -----
        With t = T / 2^64 and s = 1 - t, the law for input x is that of k flips times s/t if bit x
        is set and t/s if not. The least over x is t/s times the flips wherever some bit is zero,
        and s/t times the flips on the all-ones output, whose ratios are then (1, 1). By the bits
        of the pair: (1, 0) and (0, 1) have mass t^2 each, (1, 1) has t^3 (1 - t^(k-2)) / s, (0, 0)
        has t s, all ones has t^(k-1) s. Rounded so that no bound falls; see `outward_atoms`. All
        ones are left out above 64 categories, where they have less than a part in 2^62.
        """
        flip, ratio = Fraction(self.threshold, WORD_VALUES), _probability_ratio(self.threshold)
        all_ones = flip ** (self.k - 1) if self.k <= LONGEST_POWER else 0
        others = 1 - flip ** (min(self.k, LONGEST_POWER) - 2)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.SYMMETRIC_UNARY,
            domain_size=self.k,
            blanket=outward_atoms(
                [
                    (flip**2, ratio, 1),
                    (flip**2, 1, ratio),
                    ((1 - flip) * (flip + all_ones), 1, 1),
                    (flip**3 * others / (1 - flip), ratio, ratio),
                ]
            ),
            channel=self.channel if self.k <= _LARGEST_CHANNEL_K else None,
        )

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one row of packed bits for each code. See `CategoryRandomizer`."""
        from shuffledp.randomizers.categories.packed_bits_kernels import flip_true_bits

        rows = randomize_rows(
            values,
            k=self.k,
            threshold=self.threshold,
            entropy=entropy,
            write_true_bits=flip_true_bits,
        )
        return Reports(data=rows, fingerprint=self.fingerprint)

    def supports(self, reports: Reports) -> NDArray[np.bool_]:
        """Return which bits each report has set. See `CategoryRandomizer`."""
        return set_bits(reports, k=self.k, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return how many reports have the bit of each category set. See `CategoryRandomizer`."""
        return count_rows(reports, k=self.k, fingerprint=self.fingerprint)

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        Returns
        -------
        tuple of tuples of Fraction, k by 2^k
            Column y stands for the report whose bit i is (y >> i) & 1. Rows sum to exactly 1.

        Raises
        ------
        ParameterError
            If k is above 8.
        """
        require_small_channel(self.k, _LARGEST_CHANNEL_K)
        flip = Fraction(self.threshold, WORD_VALUES)
        return bit_channel(
            self.k, lambda truth: [1 - flip if i == truth else flip for i in range(self.k)]
        )

    def report_columns(self) -> Reports:
        """Return the 2^k reports that the columns of `channel` stand for: bit i of y, for y = 0 ...

        Raises
        ------
        ParameterError
            If k is above 8.
        """
        require_small_channel(self.k, _LARGEST_CHANNEL_K)
        rows = np.arange(2**self.k, dtype=np.uint8)[:, None]  # up to 8 bits are one byte
        return Reports(data=rows, fingerprint=self.fingerprint)


def _probability_ratio(threshold: int) -> Fraction:
    """Return the exact e^epsilon0: odds of keeping a bit, squared for the two bits that differ."""
    return Fraction(WORD_VALUES - threshold, threshold) ** 2
