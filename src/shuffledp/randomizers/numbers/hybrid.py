"""The hybrid mechanism: a public coin chooses between the piecewise mechanism and Duchi's."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.exact_atoms import outward_atoms, rounded_atoms
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports, Sums
from shuffledp.estimation.means import NoiseLaw
from shuffledp.randomizers.checks import fingerprint_of
from shuffledp.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.randomizers.numbers.decoding import (
    noise_law_of,
    require_integer_reports,
)
from shuffledp.randomizers.numbers.duchi import Duchi
from shuffledp.randomizers.numbers.piecewise import Piecewise, settle_law
from shuffledp.randomizers.numbers.range_atoms import (
    best_point,
    bit_attack,
    bit_blanket,
    chosen,
    separation,
    window_attack,
    window_blanket,
)
from shuffledp.randomizers.numbers.rounding import Span, blocks_of
from shuffledp.randomizers.protocol import Channel
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower

#: Below this epsilon0 the best mixture is Duchi's mechanism alone: ln((-5 + 2 a + 2 b) / 27), with
#: a and b the real cube roots of 6353 -/+ 405 sqrt(241) (Wang et al., Eq. (6)).
DUCHI_ALONE = 0.6093524930273093

_REPORT_TYPE = np.dtype(np.uint16)
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
class Hybrid(MeanRandomizer):
    """Piecewise with probability 1 - e^(-epsilon0/2), else Duchi's, and the report says which.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.
    resolution : int, optional
        As for `Piecewise`.

    Attributes
    ----------
    law : HybridLaw
        Both mechanisms, and the threshold of the coin.
    span : Span
        The range.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If the range, epsilon0 or resolution is not as above.

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
        object.__setattr__(self, "low", span.low)
        object.__setattr__(self, "high", span.high)
        object.__setattr__(self, "epsilon0", epsilon0)
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "law", law)
        fingerprint = fingerprint_of(
            self.name,
            duchi=law.duchi.fingerprint,
            piecewise=law.piecewise.fingerprint,
            coin=law.coin,
        )
        object.__setattr__(self, "fingerprint", fingerprint)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a value: 1."""
        return 1

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blankets of both mechanisms.

        Notes
        -----
        The report says which mechanism made it, and the coin does not look at the value. So the
        blanket is that of either mechanism, times the probability of its choice.

        The ends of the range are the worst pair for both in convex order, and hence for the
        mixture: for the piecewise mechanism see its profile. For Duchi's, two values have ratios
        (r, s) at one bit and (p + 1 - r, p + 1 - s) at the other, with equal masses and r, s in
        [1, p]; so r - e s has the mean that it has for the ends and lies between 1 - p e and
        p - e, which are its two values for the ends.

        The attack is that of the ends, where all others hold the lower end or the point that is
        best against the piecewise mechanism, whichever separates the ends more (chi^2). Where the
        coin always chooses Duchi's mechanism the profile is that of binary randomized response.
        """
        duchi, piecewise, coin = self.law
        if coin == 0:
            return duchi.profile
        share = Fraction(coin, WORD_VALUES)
        points = {0, best_point(piecewise.law.num_steps, piecewise.law.window)}
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms(
                [
                    *chosen(1 - share, bit_blanket(duchi.threshold)),
                    *chosen(share, window_blanket(*piecewise.law, piecewise.law.ratio)),
                ]
            ),
            attack=max((self._attack(share, point) for point in sorted(points)), key=separation),
        )

    def _attack(self, share: Fraction, point: int) -> tuple[BlanketAtom, ...]:
        """Return the ends' ratios to the law of a point of the piecewise mechanism's grid."""
        law = self.law.piecewise.law
        position = Fraction(point, law.num_steps)
        return rounded_atoms(
            [
                *chosen(1 - share, bit_attack(self.law.duchi.threshold, position)),
                *chosen(share, window_attack(*law, law.ratio, point=point)),
            ]
        )

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each grid point (row).

        Returns
        -------
        tuple of tuples of Fraction, m + 1 by m + W + 2
            For users whose value is a point of the piecewise mechanism's grid. Each row sums to
            exactly 1. A value between grid points is a mixture of two rows.

        Raises
        ------
        ParameterError
            If the grid has more than 64 points; ``resolution`` makes it coarser.
        """
        share = Fraction(self.law.coin, WORD_VALUES)
        at_low, at_high = self.law.duchi.channel()
        num_steps = self.law.piecewise.law.num_steps
        rows = []
        for i, outputs in enumerate(self.law.piecewise.channel()):
            up = Fraction(i, num_steps)
            bits = [(1 - up) * a + up * b for a, b in zip(at_low, at_high, strict=True)]
            rows.append((*((1 - share) * p for p in bits), *(share * p for p in outputs)))
        return tuple(rows)

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one code for each number. See `MeanRandomizer`."""
        out = np.empty(np.shape(values)[:1], dtype=_REPORT_TYPE)
        for where, block in blocks_of(values, self.span):
            is_piecewise = entropy.words(block.size) < np.uint64(self.law.coin)
            codes = out[where]
            bits = self.law.duchi.randomize(block[~is_piecewise], entropy)
            codes[~is_piecewise] = bits.data
            outputs = self.law.piecewise.randomize(block[is_piecewise], entropy)
            codes[is_piecewise] = outputs.data + np.uint16(_NUM_BITS)
        return Reports(data=out, fingerprint=self.fingerprint)

    def scores(self, reports: Reports) -> NDArray[np.float64]:
        """Return the number that each report stands for, shape (n, 1). See `MeanRandomizer`.

        On a scale where the range is [-1, 1]; `score_scale` takes it to the user's units.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        scores: NDArray[np.float64] = self._table()[self._codes(reports)][:, None]
        return scores

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of scores and of their squares. See `MeanRandomizer`.

        Of the exact number of reports of each kind, so that their order does not matter.
        """
        from shuffledp.randomizers.categories.k_randomized_response_kernels import count_codes

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

    def _codes(self, reports: Reports) -> NDArray[Any]:
        """Return the codes of the reports, once checked."""
        return require_integer_reports(
            reports,
            fingerprint=self.fingerprint,
            dtype=_REPORT_TYPE,
            smallest=0,
            largest=self._num_codes - 1,
        )

    @property
    def _num_codes(self) -> int:
        """Number of different reports."""
        if self.law.coin == 0:
            return _NUM_BITS
        return _NUM_BITS + self.law.piecewise.law.num_outputs

    def _table(self) -> NDArray[np.float64]:
        """Return the number that each code stands for, where the range is [-1, 1]."""
        codes = np.arange(self._num_codes)
        bit_factor = self.law.duchi.score_scale[1] / self.span.half_width
        table = np.where(codes == 1, bit_factor, -bit_factor)
        if self.law.coin:
            output_factor = self.law.piecewise.score_scale[1] / self.span.half_width
            outputs = codes[_NUM_BITS:] - _NUM_BITS
            centre = self.law.piecewise.law.num_outputs - 1
            table[_NUM_BITS:] = output_factor * (2 * outputs - centre)
        return table

    @property
    def score_scale(self) -> tuple[float, float]:
        """Offset and factor that take a score to the user's units. See `MeanRandomizer`.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        offset, _ = self.law.duchi.score_scale  # which refuses if there is nothing to tell
        return offset, self.span.half_width

    def noise_law(self) -> NoiseLaw:
        """Return the law of the noise: told by one mechanism. See `MeanRandomizer`."""
        _, factor = self.score_scale
        coin = Fraction(self.law.coin, WORD_VALUES)
        growth = float(coin / self.law.piecewise.law.gain) if coin else 0.0
        return noise_law_of(self.variance_at, growth=growth, factor=factor)

    def report_variance(self, value: float) -> float:
        """Return the variance of one report's decoded value, given the user's.

        Parameters
        ----------
        value : float
            In the range.

        Returns
        -------
        float
            The mean of those of both mechanisms: each is unbiased by itself.

        Raises
        ------
        DomainError
            If the value is NaN or outside the range.
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return self._mixed(lambda mechanism: mechanism.report_variance(value))

    def mean_report_variance(self) -> float:
        """Return the report variance, averaged over a value uniform in the range.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return self._mixed(lambda mechanism: mechanism.mean_report_variance())

    def worst_report_variance(self) -> float:
        """Return an upper bound of the report variance of all values; tight but for rounding.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        # Both variances are linear in the squared distance from the middle: one of the ends of
        # that is the worst.
        return max(self.variance_at(square, rounding=1.0) for square in (0.0, 1.0))

    def variance_at(self, square: float, *, rounding: float) -> float:
        """Return the mean of both mechanisms' variances; see `Piecewise.variance_at`."""
        return self._mixed(lambda mechanism: mechanism.variance_at(square, rounding=rounding))

    def _mixed(self, variance_of: Callable[[Duchi | Piecewise], float]) -> float:
        """Return the mean of a variance over the coin."""
        duchi, piecewise, coin = self.law
        if coin == 0:
            return variance_of(duchi)
        share = coin / WORD_VALUES
        return (1.0 - share) * variance_of(duchi) + share * variance_of(piecewise)


def _law_for(span: Span, epsilon0: float, resolution: int | None) -> HybridLaw:
    """Return both mechanisms for ``epsilon0``, and the coin for what they cost."""
    duchi = Duchi(low=span.low, high=span.high, epsilon0=epsilon0)
    piecewise = Piecewise(low=span.low, high=span.high, epsilon0=epsilon0, resolution=resolution)
    if epsilon0 <= DUCHI_ALONE:
        return HybridLaw(duchi, piecewise, coin=0)
    # Any coin is as private; this one is the best to within 2^-64.
    share = 1 - 1 / exp_lower(epsilon0 / 2)
    return HybridLaw(duchi, piecewise, coin=math.floor(WORD_VALUES * share))
