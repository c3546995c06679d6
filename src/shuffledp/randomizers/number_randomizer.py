"""Randomizers of numbers: a number is rounded to a grid without bias, and reported as an integer.

A range [low, high] is cut into m equal steps, and a value becomes one of the two grid points
0, ..., m around it, at random, such that the point's expectation is the value's position. The
randomizer then sees that point only. Rounding costs no privacy: the law of a report given a value
is a mixture of the laws given grid points, and the divergences between mixtures are at most the
largest between their components (joint convexity).

The score of a report is 2 code - centre, an integer around 0 whose expectation is proportional to
the distance of the user's value from the middle of the range. So the estimated mean is the middle
plus a factor times the mean score, without cancellation.

`Duchi` makes one noisy bit of a number; `Piecewise` another number, more probably one nearby.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_finite, require_non_negative, set_fields
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.profile import (
    ExactAtom,
    LocalProfile,
    RandomizerFamily,
    mirrored,
    outward_atoms,
    rounded_atoms,
)
from shuffledp.core.reports import Reports
from shuffledp.estimation.means import NoiseLaw
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import MeanRandomizer
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    exp_lower,
    log_ratio_upper,
    response_law,
    settle,
)

#: Values that are handled together: 256 KiB of words stay in the second-level cache.
BLOCK = 2**15

# Widths between these leave room for squares of noise in floats, at any epsilon0.
_SMALLEST_WIDTH = 1e-100
_LARGEST_WIDTH = 1e100

# Reports summed at a time, so that their scores stay in the cache.
_SUM_BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers [low, high]: finite, low < high, and between 1e-100 and 1e100 apart."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            # Adding zero makes -0.0 the same end as 0.0, also in fingerprints.
            object.__setattr__(self, name, require_finite(name, getattr(self, name)) + 0.0)
        if not self.low < self.high:
            raise ParameterError(
                f"low = {self.low:g} is not below high = {self.high:g}, so the range is the wrong "
                "way round or empty: give the smallest possible value first, such as 0 and 120"
            )
        if not _SMALLEST_WIDTH <= self.width <= _LARGEST_WIDTH:
            raise ParameterError(
                f"low = {self.low} and high = {self.high} are {self.width} apart, not between "
                f"{_SMALLEST_WIDTH} and {_LARGEST_WIDTH}: give the values in another unit"
            )

    @property
    def width(self) -> float:
        """Distance of the ends."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The value halfway between the ends."""
        return (self.low + self.high) / 2.0

    @property
    def half_width(self) -> float:
        """Distance of each end from the middle."""
        return self.width / 2.0

    @property
    def stated(self) -> str:
        """Exact text of both ends, for fingerprints."""
        return f"{self.low.hex()}..{self.high.hex()}"

    def require_inside(self, block: Floats, *, start: int) -> None:
        """Raise `DomainError` unless values ``start``, ``start`` + 1, ... are in the range."""
        inside = (block >= self.low) & (block <= self.high)
        if not inside.all():
            first = int(np.argmin(inside))
            advice = "clip the values to the range first, or declare a wider one"
            if math.isnan(block[first]):
                advice = "leave out or fill in missing values first"
            raise DomainError(
                f"values[{start + first}] = {float(block[first])} is not in "
                f"[{self.low}, {self.high}]: {advice}"
            )


class GridLaw(NamedTuple):
    """A law in whole numbers: steps m, window W, and T of the density outside it.

    A user at grid point i reports one of 0, ..., m + W - 1: each of i, ..., i + W - 1 with
    probability H / 2^64, each of the m others with T / 2^64; m T + W H = 2^64.
    """

    num_steps: int
    window: int
    threshold: int

    @property
    def num_outputs(self) -> int:
        """N = m + W."""
        return self.num_steps + self.window

    @property
    def high_threshold(self) -> int:
        """H: each output in the window has probability H / 2^64."""
        return (WORD_VALUES - self.num_steps * self.threshold) // self.window

    @property
    def ratio(self) -> Fraction:
        """The exact e^epsilon0 = H / T."""
        return Fraction(self.high_threshold, self.threshold)

    @property
    def gain(self) -> Fraction:
        """Steps that the expected output moves when the input moves one: g = W (H - T) / 2^64."""
        return Fraction(self.window * (self.high_threshold - self.threshold), WORD_VALUES)

    def blanket(self) -> list[ExactAtom]:
        """Return the blanket for the ends of the range; see `Piecewise.profile`."""
        each = Fraction(self.threshold, WORD_VALUES)
        return [
            *mirrored(self.window * each, self.ratio, 1),
            ((self.num_steps - self.window) * each, 1, 1),
        ]

    def attack(self) -> list[ExactAtom]:
        """Return the likelihood ratios of both ends' reports to the reports of all others' value.

        That is the least grid point whose window overlaps the windows of the ends the least.
        """
        point = min(self.window, self.num_steps - self.window)
        with_lower = max(0, self.window - point)
        with_upper = max(0, point + self.window - self.num_steps)
        alone = self.window - with_lower - with_upper
        light, ratio = Fraction(self.threshold, WORD_VALUES), self.ratio
        heavy, low = light * ratio, 1 / ratio
        return [
            ((self.window - with_lower) * light, ratio, 1),
            ((self.window - with_upper) * light, 1, ratio),
            ((self.num_steps - 2 * self.window + with_lower + with_upper) * light, 1, 1),
            (with_lower * heavy, 1, low),
            (with_upper * heavy, low, 1),
            (alone * heavy, low, low),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRandomizer(MeanRandomizer):
    """A `MeanRandomizer` of numbers in [low, high], which are rounded to a grid of m steps.

    A class defines ``report_type``, the abstract methods below, and `profile`.
    """

    dimension: ClassVar[int] = 1
    report_type: ClassVar[np.dtype[Any]]
    stated: ClassVar[tuple[str, ...]] = GridLaw._fields  # fields of the law in the fingerprint

    low: float
    high: float
    epsilon0: float
    span: Span = field(init=False, repr=False, compare=False)
    law: GridLaw = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        span = Span(self.low, self.high)
        law, epsilon0 = settle(require_non_negative("epsilon0", self.epsilon0), self._law_for)
        stated = {name: getattr(law, name) for name in self.stated}
        fingerprint = checks.fingerprint_of(self.name, span=span.stated, **stated)
        set_fields(self, low=span.low, high=span.high, span=span)
        set_fields(self, law=law, epsilon0=epsilon0, fingerprint=fingerprint)

    @abstractmethod
    def _law_for(self, epsilon0: float) -> tuple[GridLaw, float]:
        """Return a law that costs at most ``epsilon0``, and its loss."""

    @property
    def num_steps(self) -> int:
        """Steps m of the grid that values are rounded to."""
        return self.law.num_steps

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one output for each number. See `MeanRandomizer`."""
        law, border = self.law, self.law.num_steps * self.law.threshold
        out = np.empty(np.shape(values)[:1], dtype=self.report_type)
        for where, block in blocks_of(values, self.span):
            points = round_to_grid(block, self.span, num_steps=law.num_steps, entropy=entropy)
            words = entropy.words(block.size)
            # A word below m T makes the output number floor(w / T) of the m outside the window; any
            # other makes output number floor((w - m T) / H) of the window's W.
            outside = np.minimum(words // np.uint64(law.threshold), law.num_steps - 1)
            inside = (words - np.uint64(border)) // np.uint64(law.high_threshold)
            outside = outside.astype(np.int32)
            shifted = outside + np.where(outside < points, 0, law.window)
            inside = points + np.minimum(inside, law.window - 1).astype(np.int32)
            out[where] = np.where(words < np.uint64(border), shifted, inside)
        return Reports(data=out, fingerprint=self.fingerprint)

    def variance_at(self, square: float, *, rounding: float) -> float:
        """Return the report variance, in squared units, for a value at the position x in [-1, 1].

        ``square`` is x^2, and ``rounding`` 4 f (1 - f) where the value lies a share f of a step
        above a grid point; linear in both. `ParameterError` if epsilon0 is 0.

        The scores s = 2 y - (N - 1) of all N outputs have squares that sum to N (N^2 - 1) / 3,
        the points of the window of i, with c = 2 i - m, to W c^2 + W (W^2 - 1) / 3. So E[s^2] =
        T / 2^64 N (N^2 - 1) / 3 + g (W^2 - 1) / 3 + g c^2, and E[s] = g c. Rounding makes c random,
        with mean m x and variance 4 f (1 - f).
        """
        law = self.law
        _, factor = self.score_scale
        outside = Fraction(law.threshold * law.num_outputs * (law.num_outputs**2 - 1), WORD_VALUES)
        constant = float((outside + law.gain * (law.window**2 - 1)) / 3)
        growth = float(law.gain * (1 - law.gain)) * law.num_steps**2
        return factor**2 * (constant + growth * square + float(law.gain) * rounding)

    @property
    def score_scale(self) -> tuple[float, float]:
        """Offset and factor that take a score to the user's units. See `MeanRandomizer`."""
        slope = float(self.law.gain * self.law.num_steps)  # expected score at the upper end
        if not slope > 0.0:
            raise ParameterError(
                "epsilon0 of this law is 0, so that its reports say nothing about the values: use "
                "a randomizer with a larger epsilon0"
            )
        return self.span.middle, self.span.half_width / slope

    @property
    def score_limits(self) -> tuple[float, float]:
        """Scores of the least and the largest report."""
        return 1.0 - self.law.num_outputs, self.law.num_outputs - 1.0

    def report_for(self, coordinate: int) -> NDArray[Any]:  # noqa: ARG002  # there is one
        """Return the largest report."""
        return np.array([self.law.num_outputs - 1], dtype=self.report_type)

    def scores(self, reports: Reports) -> Floats:
        """Return 2 y - centre for each report y, shape (n, 1); exact. See `MeanRandomizer`."""
        return np.concatenate([np.empty((0, 1)), *self._score_blocks(reports)])

    def _score_blocks(self, reports: Reports) -> Iterator[Floats]:
        """Yield the scores of the reports, once checked: sums are exact up to 2^53."""
        num_outputs = self.law.num_outputs
        law = self.fingerprint, self.report_type, num_outputs
        codes = checks.require_whole_reports(reports, *law)
        for start in range(0, codes.size, _SUM_BLOCK):
            block = codes[start : start + _SUM_BLOCK, None].astype(np.float64)
            yield 2.0 * block - (num_outputs - 1)

    def noise_law(self) -> NoiseLaw:
        """Noise variance of the reports as a function of their squares. See `MeanRandomizer`.

        Rounding is counted as if each value lay halfway between two points of the grid, which is
        the worst. Proved in docs/results/standard-errors.md.
        """
        unit = self.score_scale[1] ** 2
        middle, end = (self.variance_at(square, rounding=0.0) / unit for square in (0.0, 1.0))
        if self.num_steps == 1:  # the square of a bit's score is 1, whatever the value
            return NoiseLaw(least=end)
        # Excess of the mean squared distance from the middle, for decoded reports of an end.
        growth = float(1 / self.law.gain)
        constant = self.variance_at(0.0, rounding=1.0) / unit / growth
        return NoiseLaw(share=1.0 - 1.0 / growth, constant=constant, least=min(middle, end))

    def mean_report_variance(self) -> float:
        """Return the report variance, averaged over a value uniform in the range."""
        return self.variance_at(1.0 / 3.0, rounding=2.0 / 3.0)


def blocks_of(values: NDArray[Any], span: Span) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of users, with their checked values as contiguous doubles.

    Raises `DomainError` for a value that is NaN or outside the range, and `ParameterError` unless
    ``values`` is a one-dimensional array of numbers.
    """
    array = checks.plain_array(values)
    if array.ndim != 1:
        raise ParameterError(f"values has shape {array.shape}: give one number a user, shape (n,)")
    if array.size and array.dtype.kind not in "iuf":
        raise ParameterError(f"values has dtype {array.dtype}: give integers or floats")
    for start in range(0, array.size, BLOCK):
        where = slice(start, min(start + BLOCK, array.size))
        # A copy, so that the loops always see the same type of array: a writable one.
        block = array[where].astype(np.float64)
        span.require_inside(block, start=start)
        yield where, block


def round_to_grid(
    block: Floats, span: Span, *, num_steps: int, entropy: Entropy
) -> NDArray[np.int32]:
    """Return a grid point for each value of a block, whose expectation is the value's position.

    With position p = (value - low) / (high - low) m, m = ``num_steps`` <= 2^20, the point is
    floor(p) + 1 with probability p - floor(p), to a multiple of 2^-63, and floor(p) otherwise.
    Three operations on floats lead to p, so that it is off by at most 3 * 2^-53 m, and the point's
    expectation by less than 2^-51 m: a bias of at most 2^-51 (high - low) of the estimated mean,
    far below any standard error. Its variance is at most 1/4. One word a value.
    """
    distances = block - span.low
    # Distances below 2^-90 widths lead to the point 0 anyway; taken for 0, they do not lead to
    # subnormal numbers, which take some processors longer than others.
    distances = np.where(distances < span.width * 2.0**-90, 0.0, distances)
    # Each operation on floats is monotone: positions lie in [0, m], and at m nothing is left over.
    positions = distances / span.width * num_steps
    below = positions.astype(np.int32)
    # At most 1 - 2^-53, so that the product is below 2^63, and converted without a branch.
    left_over = ((positions - below) * 2.0**63).astype(np.int64).view(np.uint64)
    return below + (entropy.words(block.size) >> np.uint64(1) < left_over)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(NumberRandomizer):
    """Rounding to one of the two ends of the range, then binary randomized response.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Notes
    -----
    Source: Duchi, Jordan, Wainwright, "Minimax optimal procedures for locally private estimation",
    JASA 2018, arXiv:1302.3203 (dimension one). Below epsilon0 = 0.61 its largest variance is the
    smaller of the two randomizers of numbers.

    With x the value on a scale from -1 to 1 and C = (e^epsilon0 + 1) / (e^epsilon0 - 1), a report
    stands for C or -C, has the expectation x and the variance C^2 - x^2. The loss is
    ln((2^64 - T) / T), at most 64 ln 2 = 44.4, where T = 1: the end rounded to is reported wrongly
    with probability exactly T / 2^64, T = ``law.threshold``.

    Cost: 16 random bytes and about 20 nanoseconds a report; one byte of memory.

    Examples
    --------
    >>> randomizer = Duchi(low=0, high=10, epsilon0=1.0986122886681098)  # ln 3: C = 2
    >>> round(randomizer.variance_at(0.0, rounding=1.0), 6)  # of the value 5: (2 * 5)^2
    100.0
    >>> round(randomizer.variance_at(1.0, rounding=0.0), 6)  # of the value 10: 100 - 5^2
    75.0
    """

    name: ClassVar[str] = "duchi"
    report_type: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)

    stated: ClassVar[tuple[str, ...]] = ("threshold",)

    def _law_for(self, epsilon0: float) -> tuple[GridLaw, float]:
        """Return the law of one step and a window of one output: a bit."""
        threshold, loss = response_law(epsilon0)
        return GridLaw(1, 1, threshold), loss

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: binary randomized response.

        A report comes from a random one of the two ends, which are the worst case; see
        docs/results/worst-pairs.md.
        """
        return KRandomizedResponse(domain_size=2, epsilon0=self.epsilon0).profile


# Outputs a window: a discrete uniform law on W points has a variance smaller than the continuous
# one by a share of 1 / W^2, here 1.5e-5, so that a finer grid would gain nothing.
_LARGEST_WINDOW = 2**8

# Steps of the grid: every report fits 16 bits.
_LARGEST_NUM_STEPS = 2**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(NumberRandomizer):
    """The piecewise mechanism, on a grid where it is exact.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    law : GridLaw
        The whole numbers m, W and T below.

    Notes
    -----
    Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, "Collecting and analyzing multidimensional
    data with local differential privacy", ICDE 2019, arXiv:1907.00782, Algorithm 2. There a value
    in [-1, 1] is reported as a number in [-C, C], C = (e^(epsilon0/2) + 1) / (e^(epsilon0/2) - 1):
    with a high density in a window of length C - 1, which slides by C + 1 as the value goes from
    -1 to 1, and with a density smaller by e^epsilon0 outside it.

    Here the value is first rounded, without bias, to a point i of a grid 0, ..., m. The report is y
    in 0, ..., m + W - 1: each of the W outputs i, ..., i + W - 1 has probability H / 2^64, each of
    the m others T / 2^64, m T + W H = 2^64. The window slides by m steps, so that
    W / m = (C - 1) / (C + 1) = e^(-epsilon0/2) makes it the mechanism above in the limit: m is the
    whole number nearest to W e^(epsilon0/2). The expectation of 2 y - (m + W - 1) is exactly
    g (2 i - m), g = W (H - T) / 2^64, whence the estimate. The loss is ln(H / T).

    W is a power of two, 256 unless m would exceed 2^15 (from epsilon0 = 9.7 on), and T a multiple
    of W, so that one 64-bit word decides everything: w < m T makes the output number floor(w / T)
    outside the window, any other makes number floor((w - m T) / H) of the window. At epsilon0 = 0,
    m = W and H = T: the report is uniform and says nothing. The loss cannot exceed 44.4, where
    W = T = 1.

    Cost: 16 random bytes and about 13 nanoseconds a report; two bytes of memory.

    Examples
    --------
    >>> randomizer = Piecewise(low=-1, high=1, epsilon0=2.0)
    >>> randomizer.law.num_steps, randomizer.law.window  # 256 e = 695.9
    (696, 256)
    >>> e = math.e
    >>> continuous = (e + 3) / (3 * (e - 1) ** 2)  # at 0: Wang et al., Lemma 1
    >>> round(randomizer.variance_at(0.0, rounding=0.0) / continuous, 3)
    1.0
    """

    name: ClassVar[str] = "piecewise"
    report_type: ClassVar[np.dtype[Any]] = np.dtype(np.uint16)

    largest_window: ClassVar[int] = _LARGEST_WINDOW

    def _law_for(self, epsilon0: float) -> tuple[GridLaw, float]:
        """Return the law with the smallest T that is proved to cost at most ``epsilon0``.

        H <= e^epsilon0 T is the same as T >= 2^64 / (m + W e^epsilon0). T is that, rounded up to a
        multiple of W; and it never exceeds 2^64 / N, the T of a uniform report. If m = W, that one
        is a power of two and a multiple of W itself. If m > W, then e^epsilon0 > 1 + 1 / W, and T
        is smaller than 2^64 / N by far more than W.
        """
        window = self.largest_window
        # Halving a float is exact, except below 1e-307, where its exponential is 1 to 100 digits.
        root = exp_lower(epsilon0 / 2)
        while window > 1 and window * root > _LARGEST_NUM_STEPS:
            window //= 2
        num_steps = min(round(window * root), _LARGEST_NUM_STEPS)
        # The lower bound of e^0 is a hair below 1, and no law is more than private.
        e0 = max(Fraction(1), exp_lower(epsilon0))
        least = WORD_VALUES / (num_steps + window * e0)
        law = GridLaw(num_steps, window, window * math.ceil(least / window))
        return law, log_ratio_upper(law.ratio)

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, and the blanket T / 2^64 per output.

        For the ends of the range, whose windows do not overlap: W outputs have the ratios (p, 1), p
        = H / T, another W have (1, p), and the m - W others (1, 1). They are the worst pair; see
        docs/results/worst-pairs.md.
        """
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms(self.law.blanket()),
            attack=rounded_atoms(self.law.attack()),
        )
