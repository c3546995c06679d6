"""Optimized unary encoding (OUE): the true bit is a fair coin, the others are rarely set."""

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
    optimized_unary_threshold,
    settle,
)

_LARGEST_CHANNEL_K = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnaryEncoding(CategoryRandomizer):
    """One bit a category: the true one set with probability 1/2, each other one with q.

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
        T: each bit but the true one is set with probability exactly q = T / 2^64.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If k or epsilon0 is out of range.

    Notes
    -----
    Source: Wang, Blocki, Li, Jha, USENIX Security 2017. The variance of a rare category is the
    least among unary encodings of the same loss, ln((1 - q) / q). The loss cannot exceed
    64 ln 2 = 44.4: there T = 1.

    Cost: about k random bytes a report, and k / 8 bytes of memory.

    Examples
    --------
    >>> randomizer = OptimizedUnaryEncoding(k=2, epsilon0=1.0986122886681100)  # just above ln 3
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['3/8', '3/8', '1/8', '1/8']
    """

    name: ClassVar[str] = "optimized-unary"

    k: int
    epsilon0: float
    threshold: int = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = require_num_categories(self.k)
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = settle(
            asked,
            threshold_for=optimized_unary_threshold,
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
        """Probability that a bit is set, given it is the true one (1/2), and given it is not.

        Rounded to the nearest floats.
        """
        return 0.5, self.threshold / WORD_VALUES

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss and the largest blanket.

        Notes
        -----
        The law for input x is that of k bits set with q, times 1 / (2 q) if bit x is set and
        1 / (2 (1 - q)) if not. The least over x is the latter wherever some bit is zero, and the
        former on the all-ones output, whose ratios are then (1, 1). By the bits of the pair:
        (1, 0) and (0, 1) have mass q / 2 each, (1, 1) has q^2 (1 - q^(k-2)) / (2 (1 - q)), (0, 0)
        has (1 - q) / 2, all ones has q^(k-1) / 2. Rounded so that no bound falls; see
        `outward_atoms`. All ones are left out above 64 categories, where they have less than a part
        in 2^62.
        """
        q, ratio = Fraction(self.threshold, WORD_VALUES), _probability_ratio(self.threshold)
        all_ones = q ** (self.k - 1) if self.k <= LONGEST_POWER else 0
        others = 1 - q ** (min(self.k, LONGEST_POWER) - 2)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OPTIMIZED_UNARY,
            domain_size=self.k,
            blanket=outward_atoms(
                [
                    (q / 2, ratio, 1),
                    (q / 2, 1, ratio),
                    ((1 - q + all_ones) / 2, 1, 1),
                    (q**2 * others / (2 * (1 - q)), ratio, ratio),
                ]
            ),
            channel=self.channel if self.k <= _LARGEST_CHANNEL_K else None,
        )

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one row of packed bits for each code. See `CategoryRandomizer`."""
        from shuffledp.randomizers.categories.packed_bits_kernels import replace_true_bits

        rows = randomize_rows(
            values,
            k=self.k,
            threshold=self.threshold,
            entropy=entropy,
            write_true_bits=lambda rows, truth: replace_true_bits(
                rows, truth, entropy.words(-(-truth.size // 64))
            ),
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
        other = Fraction(self.threshold, WORD_VALUES)
        return bit_channel(
            self.k, lambda truth: [Fraction(1, 2) if i == truth else other for i in range(self.k)]
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
    """Return the exact e^epsilon0: the odds against an untrue bit."""
    return Fraction(WORD_VALUES - threshold, threshold)
