"""The hybrid mechanism: a public coin chooses between the piecewise mechanism and Duchi's."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.exact_atoms import ExactAtom, outward_atoms, rounded_atoms
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports, Sums
from shuffledp.randomizers.base import Channel
from shuffledp.randomizers.checks import fingerprint_of, set_fields
from shuffledp.randomizers.duchi import Duchi, bit_attack, bit_blanket
from shuffledp.randomizers.number_randomizer import NumberRandomizer, Span, blocks_of
from shuffledp.randomizers.piecewise import Piecewise, settle_law
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower

#: Below this epsilon0 the best mixture is Duchi's mechanism alone: ln((-5 + 2 a + 2 b) / 27), with
#: a and b the real cube roots of 6353 -/+ 405 sqrt(241) (Wang et al., Eq. (6)).
DUCHI_ALONE = 0.6093524930273093

_NUM_BITS = 2  # codes 0 and 1 are Duchi's bits, 2 + y is the output y of the piecewise mechanism


class HybridLaw(NamedTuple):
    """The two mechanisms, and how often the second one is used: coin / 2^64."""

    duchi: Duchi
    piecewise: Piecewise
    coin: int

    @property
    def loss(self) -> float:
        """Local privacy loss in nats, rounded up: the larger of those of the mechanisms in use."""
        if self.coin == 0:
            return self.duchi.epsilon0
        return max(self.duchi.epsilon0, self.piecewise.epsilon0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(NumberRandomizer):
    """Piecewise with probability 1 - e^(-epsilon0/2), else Duchi's, and the report says which.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then that of the law drawn, rounded up.
    resolution : int, optional
        As for `Piecewise`.

    Attributes
    ----------
    law : HybridLaw
        Both mechanisms, and the threshold of the coin.

    Notes
    -----
    Source: Wang et al., ICDE 2019, arXiv:1907.00782, Section III-C. At that probability the
    variance does not depend on the value, but for rounding, and its worst case is below those of
    both mechanisms. For epsilon0 below 0.61 Duchi's mechanism alone is better, and this is it.

    The coin does not look at the value, so that the loss is the larger one of the two mechanisms.
    They are drawn as `Duchi` and `Piecewise` are, each with its own exact law for the epsilon0
    asked for.

    Cost: 24 random bytes and 15 to 40 nanoseconds a report; two bytes of memory.

    Examples
    --------
    >>> randomizer = Hybrid(low=-1, high=1, epsilon0=2.0)
    >>> round(randomizer.law.coin / 2**64, 6)  # 1 - 1/e
    0.632121
    >>> [round(randomizer.report_variance(x), 4) for x in (0.0, 0.5, 1.0)]
    [1.0424, 1.0424, 1.0424]
    """

    name: ClassVar[str] = "hybrid"
    report_type: ClassVar[np.dtype[Any]] = np.dtype(np.uint16)

    low: float
    high: float
    epsilon0: float
    resolution: int | None = field(default=None, repr=False, compare=False)
    span: Span = field(init=False, repr=False, compare=False)
    law: HybridLaw = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        span = Span(self.low, self.high)
        law, epsilon0 = settle_law(
            require_non_negative("epsilon0", self.epsilon0),
            law_for=lambda loss: _law_for(span, loss, self.resolution),
            loss_of=lambda law: law.loss,
        )
        fingerprint = fingerprint_of(
            self.name,
            duchi=law.duchi.fingerprint,
            piecewise=law.piecewise.fingerprint,
            coin=law.coin,
        )
        set_fields(self, low=span.low, high=span.high, span=span, epsilon0=epsilon0)
        set_fields(self, law=law, fingerprint=fingerprint)

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blankets of both mechanisms.

        The blanket is that of either mechanism, times the probability of its choice; the ends of
        the range are the worst pair for both; see docs/results/worst-pairs.md. The attack is that
        of the ends, where all others hold the lower end or the point that is best against the
        piecewise mechanism, whichever separates the ends more (chi^2). Where the coin always
        chooses Duchi's mechanism the profile is that of binary randomized response.
        """
        duchi, piecewise, coin = self.law
        if coin == 0:
            return duchi.profile
        share = Fraction(coin, WORD_VALUES)
        bits, outputs = bit_blanket(duchi.threshold), piecewise.law.blanket()
        points = sorted({0, piecewise.law.best_point})
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms([*_chosen(1 - share, bits), *_chosen(share, outputs)]),
            attack=max((self._attack(share, point) for point in points), key=separation),
        )

    def _attack(self, share: Fraction, point: int) -> tuple[BlanketAtom, ...]:
        """Return the ends' ratios to the law of a point of the piecewise mechanism's grid."""
        bits = bit_attack(self.law.duchi.threshold, Fraction(point, self.num_steps))
        outputs = self.law.piecewise.law.attack(point)
        return rounded_atoms([*_chosen(1 - share, bits), *_chosen(share, outputs)])

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each grid point (row).

        For users whose value is a point of the piecewise mechanism's grid: m + 1 by m + W + 2, up
        to 64 grid points; ``resolution`` makes it coarser. A value between is a mixture of two
        rows.
        """
        share = Fraction(self.law.coin, WORD_VALUES)
        at_low, at_high = self.law.duchi.channel()
        rows = []
        for i, outputs in enumerate(self.law.piecewise.channel()):
            up = Fraction(i, self.num_steps)
            bits = [(1 - up) * a + up * b for a, b in zip(at_low, at_high, strict=True)]
            rows.append((*((1 - share) * p for p in bits), *(share * p for p in outputs)))
        return tuple(rows)

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one code for each number. See `MeanRandomizer`."""
        out = np.empty(np.shape(values)[:1], dtype=self.report_type)
        for where, block in blocks_of(values, self.span):
            is_piecewise = entropy.words(block.size) < np.uint64(self.law.coin)
            codes = out[where]
            bits = self.law.duchi.randomize(block[~is_piecewise], entropy)
            codes[~is_piecewise] = bits.data
            outputs = self.law.piecewise.randomize(block[is_piecewise], entropy)
            codes[is_piecewise] = outputs.data + np.uint16(_NUM_BITS)
        return Reports(data=out, fingerprint=self.fingerprint)

    def scores(self, reports: Reports) -> NDArray[np.float64]:
        """Return the number that each report stands for, where the range is [-1, 1]: shape (n, 1).

        Raises as `MeanRandomizer.scores`, and `ParameterError` if epsilon0 is 0.
        """
        scores: NDArray[np.float64] = self._table()[self._codes(reports)][:, None]
        return scores

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of scores and of their squares. See `MeanRandomizer`.

        Of the exact number of reports of each kind, so that their order does not matter.
        """
        from shuffledp.randomizers.category_kernels import count_codes

        codes = self._codes(reports)
        table = self._table()
        counts = np.zeros((1, table.size), dtype=np.int64)
        count_codes(codes, counts)
        return Sums(
            total=np.array([counts[0] @ table]),
            total_of_squares=np.array([counts[0] @ table**2]),
            num_reports=codes.size,
            fingerprint=self.fingerprint,
        )

    def _table(self) -> NDArray[np.float64]:
        """Return the number that each code stands for, where the range is [-1, 1]."""
        codes = np.arange(self._report_range[1] + 1)
        bit_factor = self.law.duchi.score_scale[1] / self.span.half_width
        table = np.where(codes == 1, bit_factor, -bit_factor)
        if self.law.coin:
            output_factor = self.law.piecewise.score_scale[1] / self.span.half_width
            outputs = codes[_NUM_BITS:] - _NUM_BITS
            centre = self.law.piecewise.law.num_outputs - 1
            table[_NUM_BITS:] = output_factor * (2 * outputs - centre)
        return table

    @property
    def num_steps(self) -> int:
        """Steps m of the piecewise mechanism's grid; Duchi's variance does not depend on it."""
        return self.law.piecewise.law.num_steps

    @property
    def _report_range(self) -> tuple[int, int]:
        num_outputs = self.law.piecewise.law.num_outputs if self.law.coin else 0
        return 0, _NUM_BITS + num_outputs - 1

    @property
    def _slope(self) -> float:
        duchi = self.law.duchi
        return 1.0 if 2 * duchi.threshold < WORD_VALUES else 0.0

    @property
    def _growth(self) -> float:
        coin = Fraction(self.law.coin, WORD_VALUES)
        return float(coin / self.law.piecewise.law.gain) if coin else 0.0

    def variance_at(self, square: float, *, rounding: float) -> float:
        """Return the mean of both mechanisms' variances, each of which is unbiased by itself."""
        duchi, piecewise, coin = self.law
        of_bit = duchi.variance_at(square, rounding=rounding)
        if coin == 0:
            return of_bit
        share = coin / WORD_VALUES
        return (1.0 - share) * of_bit + share * piecewise.variance_at(square, rounding=rounding)


def separation(atoms: Iterable[BlanketAtom]) -> float:
    """Return chi^2 = E (r0 - r1)^2, by which a large crowd loses privacy; to double precision."""
    return sum(atom.mass * (atom.ratio0 - atom.ratio1) ** 2 for atom in atoms)


def _chosen(share: Fraction, atoms: Iterable[ExactAtom]) -> list[ExactAtom]:
    """Return the atoms of a mechanism that is used with probability ``share``, publicly."""
    return [(share * mass, ratio0, ratio1) for mass, ratio0, ratio1 in atoms]


def _law_for(span: Span, epsilon0: float, resolution: int | None) -> HybridLaw:
    """Return both mechanisms for ``epsilon0``, and the coin for what they cost."""
    duchi = Duchi(low=span.low, high=span.high, epsilon0=epsilon0)
    piecewise = Piecewise(low=span.low, high=span.high, epsilon0=epsilon0, resolution=resolution)
    if epsilon0 <= DUCHI_ALONE:
        return HybridLaw(duchi, piecewise, coin=0)
    # Any coin is as private; this one is the best to within 2^-64.
    share = 1 - 1 / exp_lower(epsilon0 / 2)
    return HybridLaw(duchi, piecewise, coin=math.floor(WORD_VALUES * share))
