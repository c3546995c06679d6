"""Subset selection: report a few categories at once, the true one often among them."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Bytes, Integers
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import (
    BlanketAtom,
    ExactAtom,
    LocalProfile,
    mirrored,
    outward_atoms,
    rounded_atoms,
)
from shuffledp.core.reports import Reports
from shuffledp.randomizers.base import Channel, SettledRandomizer
from shuffledp.randomizers.checks import require_codes, require_possible
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower, log_ratio_upper
from shuffledp.randomizers.unary_encoding import bytes_per_row, column_sums, require_rows, set_bits

# Reports drawn at a time, which bounds the memory of converted codes and of coins.
_BLOCK = 2**15
# 256 KiB of words at a time stay in the second-level cache between generator and loop.
_WORD_BUFFER = 2**15
# Bytes of reports whose bits are counted at a time, so that the counts stay in the cache as well.
_BYTES_AT_A_TIME = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(SettledRandomizer):
    """A random subset of the categories, of fixed size, which favours those with the true one.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1]. A report takes ceil(k / 8) bytes: one bit a
        category.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    subset_size : int
        w: each report names exactly w categories, in [1, floor(k / 2)].
    threshold : int
        T: the true category is one of them with probability exactly T / 2^64.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Notes
    -----
    Source: Ye, Barg, arXiv:1702.00610; Wang, Huang, Wang, Nie, Xiong, Zhong, Yang,
    arXiv:1607.08025. With pi = T / 2^64 the report is the truth and w - 1 uniform others, else w
    uniform others. The loss is ln(pi (k - w) / ((1 - pi) w)). It cannot exceed
    ln((2^64 - 1) (k - 1)), 44.4 for k = 2 and 66.5 for the largest k: there w = 1, and only one
    word in 2^64 leaves the truth out.

    Size: the variances of the k estimates sum to

        ((k - 1)^2 g / (e0 - 1)^2 - (k - 1)) / (k n),  g = e0^2 r + 2 e0 + 1 / r,  r = w / (k - w),

    for n users with any values at all, where e0 = e^epsilon0 and pi = e0 w / (e0 w + k - w). In
    w this falls until r = 1 / e0 and rises from there, so the best whole number is the first
    whose successor is no better: the smallest w with e0^2 w (w + 1) >= (k - w) (k - w - 1). The
    published max(1, round(k / (e0 + 1))) is the same, but for at most 0.06 in epsilon0 above each
    of its steps, where it is one too small.

    Where T / 2^64 would fall to the chance w / k of a blind choice, or next to it, no different
    probabilities of denominator 2^64 are close enough together. Then the report is a uniform
    subset, whatever the truth, and epsilon0 is exactly 0. This happens below 3e-19 at most.

    Cost: 8 + 4 w random bytes a report, and k / 8 bytes of memory.

    Examples
    --------
    >>> randomizer = SubsetSelection(domain_size=4, epsilon0=1.0986122886681100)  # just above ln 3
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['1/2', '1/6', '1/6', '1/6']
    >>> [SubsetSelection(domain_size=16, epsilon0=loss).subset_size for loss in (0.0, 1.0, 4.0)]
    [8, 4, 1]
    """

    name: ClassVar[str] = "subset-selection"

    subset_size: int = field(init=False, repr=False)

    def _law_for(self, epsilon0: float) -> tuple[dict[str, int], float]:
        """Return w and T, and the loss."""
        k, e0 = self.domain_size, max(Fraction(1), exp_lower(epsilon0))
        size = _best_subset_size(k, e0)
        threshold = math.floor(WORD_VALUES * e0 * size / (e0 * size + k - size))
        loss = log_ratio_upper(_probability_ratio(k, size, threshold))
        return {"subset_size": size, "threshold": threshold}, loss

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that the report names a category if that is the truth, and if not, as floats."""
        p = _inclusion(self.domain_size, self.subset_size, self.threshold)
        return float(p), float((self.subset_size - p) / (self.domain_size - 1))

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss and the largest blanket.

        Every subset leaves some category out, as w <= k / 2, and has its least probability
        mu = (1 - pi) / C(k-1, w) when that is the truth; times e^epsilon0 for a truth within. So
        the blanket is uniform, and its atoms count subsets by which of the pair they have:
        C(k-2, w-1) only the one, C(k-2, w-1) only the other, C(k-2, w-2) both and C(k-2, w)
        neither, each times mu.

        The attack is on any pair where all others hold one third category, or the second of
        the pair where k = 2. By chi^2 a third one is never worse, as w <= k / 2.
        """
        k, size = self.domain_size, self.subset_size
        outside = 1 - _inclusion(k, size, self.threshold)
        ratio = _probability_ratio(k, size, self.threshold)
        one_of_them = outside * size / (k - 1)
        both = outside * size * (size - 1) / ((k - 1) * (k - size))
        atoms: list[ExactAtom] = [
            *mirrored(one_of_them, ratio, 1),
            (both, ratio, ratio),
            (outside * (k - 1 - size) / (k - 1), 1, 1),
        ]
        return self._profile(*outward_atoms(atoms), attack=_attack(k, size, self.threshold))

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one row of packed bits for each code. See `CategoryRandomizer`."""
        from shuffledp.randomizers.randomizer_kernels import place_members

        k, size, threshold = self.domain_size, self.subset_size, self.threshold
        truth = require_codes(values, k)
        rows = np.zeros((truth.size, bytes_per_row(k)), dtype=np.uint8)
        is_blind = _ignores_input(k, size, threshold)
        # No category has the code k: all k of them are others, and no coin is below 0.
        threshold, num_others = (0, k) if is_blind else (threshold, k - 1)
        law = np.uint64(threshold), num_others, size
        for start in range(0, truth.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            codes = truth[block].astype(np.uint32)
            codes = np.full_like(codes, k) if is_blind else codes
            coins, goal, placed = entropy.words(codes.size), codes.size * size, 0
            while placed < goal:
                halves = entropy.words(min(-(-(goal - placed) // 2), _WORD_BUFFER)).view(np.uint32)
                placed = place_members(rows[block], codes, coins, halves, *law, placed)
        return Reports(data=rows, fingerprint=self.fingerprint)

    def supports(self, reports: Reports) -> Booleans:
        """Categories that each report names. See `CategoryRandomizer`."""
        return set_bits(self._rows(reports), self.domain_size)

    def _support(self, reports: Reports) -> Integers:
        """Return the number of reports that name each category."""
        return column_sums(self._rows(reports))[: self.domain_size]

    def _rows(self, reports: Reports) -> Bytes:
        """Return the rows of the reports, once checked: each has exactly w bits set."""
        rows = require_rows(reports, k=self.domain_size, fingerprint=self.fingerprint)
        step = max(1, _BYTES_AT_A_TIME // rows.shape[1])
        widest = next(width for width in (8, 4, 2, 1) if rows.shape[1] % width == 0)
        for start in range(0, rows.shape[0], step):
            # Over so few terms `einsum` has less overhead than `sum`.
            counts = np.bitwise_count(rows[start : start + step].view(f"u{widest}"))
            sizes = np.einsum("ij->i", counts, dtype=np.int64)
            require_possible(
                sizes == self.subset_size,
                f"has {{}} bits set, not {self.subset_size}",
                sizes,
                first=start,
            )
        return rows

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row)."""
        k, size = self.domain_size, self.subset_size
        inclusion = _inclusion(k, size, self.threshold)
        within = inclusion / math.comb(k - 1, size - 1)
        return self._two_valued(within, (1 - inclusion) / math.comb(k - 1, size))

    def _columns(self) -> NDArray[Any]:
        """Return all subsets of size w, as one byte each."""
        rows = np.arange(2**self.domain_size, dtype=np.uint8)
        return np.compress(np.bitwise_count(rows) == self.subset_size, rows)[:, None]


def _best_subset_size(k: int, e0: Fraction) -> int:
    """Return the smallest w with e0^2 w (w + 1) >= (k - w) (k - w - 1).

    The left side rises with w and the right side falls; with e0 >= 1 it holds at floor(k / 2).
    """
    numerator, denominator = (e0**2).as_integer_ratio()
    sizes = range(1, k // 2)

    def is_successor_no_better(w: int) -> bool:
        return numerator * w * (w + 1) >= denominator * (k - w) * (k - w - 1)

    return 1 + bisect_left(sizes, True, key=is_successor_no_better)


def _ignores_input(k: int, size: int, threshold: int) -> bool:
    """Return True if T is small enough to draw the report without looking at the truth."""
    return threshold == WORD_VALUES * size // k


def _inclusion(k: int, size: int, threshold: int) -> Fraction:
    """Return the exact probability that a report names the truth."""
    if _ignores_input(k, size, threshold):
        return Fraction(size, k)
    return Fraction(threshold, WORD_VALUES)


def _probability_ratio(k: int, size: int, threshold: int) -> Fraction:
    """Return the exact e^epsilon0: chance of a subset given a truth within, over one without."""
    inclusion = _inclusion(k, size, threshold)
    return inclusion * (k - size) / ((1 - inclusion) * size)


def _attack(k: int, size: int, threshold: int) -> tuple[BlanketAtom, ...]:
    """Return the likelihood ratios of a pair to a third category, under the latter's law."""
    inclusion, ratio = _inclusion(k, size, threshold), _probability_ratio(k, size, threshold)
    if k == 2:
        return rounded_atoms([(1 - inclusion, ratio, 1), (inclusion, 1 / ratio, 1)])
    both, one, neither = _chances_of_pair(k - 1, size)  # without the third category
    atoms: list[ExactAtom] = [
        *mirrored((1 - inclusion) * one, ratio, 1),
        ((1 - inclusion) * both, ratio, ratio),
        ((1 - inclusion) * neither, 1, 1),
    ]
    both, one, neither = _chances_of_pair(k - 1, size - 1)  # besides it
    atoms += [
        *mirrored(inclusion * one, 1, 1 / ratio),
        (inclusion * both, 1, 1),
        (inclusion * neither, 1 / ratio, 1 / ratio),
    ]
    return rounded_atoms(atoms)


def _chances_of_pair(domain_size: int, size: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return the chances that a uniform subset has both of a pair, only the first, or neither."""
    rest = domain_size - size
    pairs = domain_size * (domain_size - 1)
    counts = (size * (size - 1), size * rest, rest * (rest - 1))
    both, one, neither = (Fraction(count, pairs) for count in counts)
    return both, one, neither
