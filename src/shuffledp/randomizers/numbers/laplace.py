"""The Laplace mechanism on a grid: a number with discrete Laplace noise."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports, Sums
from shuffledp.estimation.means import NoiseLaw
from shuffledp.randomizers.checks import fingerprint_of
from shuffledp.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.randomizers.numbers.decoding import (
    noise_law_of,
    require_integer_reports,
    scale_of,
    scores_of,
    sums_of,
)
from shuffledp.randomizers.numbers.laplace_atoms import laplace_attack, laplace_blanket
from shuffledp.randomizers.numbers.rounding import Span, blocks_of, round_to_grid

# Steps of the grid: rounding adds less than 1e-3 to the variance at any epsilon0, 1e-7 at 1.
_LARGEST_NUM_STEPS = 2**10

# The loss is a multiple of m / 2^52: near 1 it is what was asked for to 2e-13.
_UNIT_BITS = 52
_UNIT = 2**_UNIT_BITS

# No law costs more: one that hides nothing needs no accounting, and e^64 is no trouble in floats.
_LARGEST_LOSS = 64

# Scales below 2^24 steps keep all reports inside 32 bits, 64 scales around the grid included.
_LARGEST_SCALE = 2**24

# Noise is exact up to 64 scales beyond the far end of the grid, which is 64 more at most.
_CLAMPED_SCALES = 64
_LARGEST_NUM_UNITS = _CLAMPED_SCALES + _LARGEST_LOSS

# One report needs 7.8 words on average. With 2^15 at a time they stay in the second-level cache.
_WORDS_PER_REPORT = 8
_WORD_BUFFER = 2**15

_REPORT_TYPE = np.dtype(np.int32)


class LaplaceLaw(NamedTuple):
    """Whole numbers that make up a law: steps m, and s of the scale 2^52 / s in steps."""

    num_steps: int
    rate: int

    @property
    def loss(self) -> float:
        """Local privacy loss in nats, m s / 2^52; exact."""
        return math.ldexp(self.num_steps * self.rate, -_UNIT_BITS)

    @property
    def margin(self) -> int:
        """A: how far beyond the grid reports may lie, 64 scales."""
        return _CLAMPED_SCALES * _UNIT // self.rate if self.rate else 0

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in squared steps: 1 / (2 sinh(s / 2^53)^2)."""
        return 0.5 / math.sinh(self.rate / (2 * _UNIT)) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(MeanRandomizer):
    """The Laplace mechanism, on a grid where it is exact.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, exactly, which is at most that.
    resolution : int, optional
        Largest number m of steps of the grid, a power of two in [1, 1024]; the default is 1024.
        Smaller ones are for tests.

    Attributes
    ----------
    law : LaplaceLaw
        The whole numbers m and s below.
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
    Source: Dwork, McSherry, Nissim, Smith 2006; the noise by Canonne, Kamath, Steinke, "The
    discrete Gaussian for differential privacy", NeurIPS 2020, arXiv:2004.00010, Algorithm 2.

    The value is rounded, without bias, to a point i of a grid 0, ..., m; see
    `shuffledp.randomizers.numbers.rounding`. The report is i + z, where z has
    probability proportional to exp(-abs(z) s / 2^52), clamped to [-A, m + A]. No float is used
    after the rounding. The ratio of two inputs' probabilities is exp(m s / 2^52) at most, clamped
    or not, and it is attained: epsilon0 is exactly m s / 2^52, which is a float.

    m is 1024, and smaller below epsilon0 = 6e-5, so that reports fit 32 bits; s is the largest that
    costs no more than asked. A is 64 scales 2^52 / s: clamping biases a report by less than e^-64
    scales, and changes its variance by a share below 1e-23. The loss cannot exceed 64. Below
    2^-24 = 6e-8 all reports are 0, and epsilon0 is exactly 0.

    Cost: about 70 random bytes and 120 nanoseconds a report; four bytes of memory.

    Examples
    --------
    >>> randomizer = DiscreteLaplace(low=0, high=1, epsilon0=0.5)
    >>> randomizer.epsilon0
    0.5
    >>> round(randomizer.report_variance(0.0), 4)  # 2 / epsilon0^2
    8.0
    """

    name: ClassVar[str] = "laplace"

    low: float
    high: float
    epsilon0: float
    resolution: int | None = field(default=None, repr=False, compare=False)
    span: Span = field(init=False, repr=False, compare=False)
    law: LaplaceLaw = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        span = Span(self.low, self.high)
        asked = require_non_negative("epsilon0", self.epsilon0)
        law = _law_for(asked, _require_resolution(self.resolution))
        object.__setattr__(self, "low", span.low)
        object.__setattr__(self, "high", span.high)
        object.__setattr__(self, "epsilon0", law.loss)
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "law", law)
        fingerprint = fingerprint_of(self.name, span=span.stated, **law._asdict())
        object.__setattr__(self, "fingerprint", fingerprint)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a value: 1."""
        return 1

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket of the ends of the range.

        They are the worst pair; `shuffledp.randomizers.numbers.laplace_atoms` proves it.
        The attack is that of the ends, where all others hold the lower end.
        """
        num_steps, step = self.law.num_steps, math.ldexp(self.law.rate, -_UNIT_BITS)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=laplace_blanket(num_steps, step),
            attack=laplace_attack(num_steps, step),
        )

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return a noisy grid point for each number. See `MeanRandomizer`."""
        out = np.zeros(np.shape(values)[:1], dtype=_REPORT_TYPE)
        for where, block in blocks_of(values, self.span):
            points = round_to_grid(block, self.span, num_steps=self.law.num_steps, entropy=entropy)
            if self.law.rate:  # else all reports are 0
                self._randomize_block(points, entropy, out[where])
        return Reports(data=out, fingerprint=self.fingerprint)

    def _randomize_block(
        self, points: NDArray[np.int32], entropy: Entropy, out: NDArray[np.int32]
    ) -> None:
        """Write the reports of a block."""
        from shuffledp.randomizers.numbers.laplace_kernels import add_noise

        smallest, largest = self._ends
        words = np.empty(0, dtype=np.uint64)
        done = 0
        while done < points.size:
            wanted = min(_WORDS_PER_REPORT * (points.size - done) + _WORDS_PER_REPORT, _WORD_BUFFER)
            # What the report that was not finished has read comes first: it is drawn again from
            # the same words, not from others.
            words = np.concatenate([words, entropy.words(wanted)])
            written, used = add_noise(
                points[done:],
                words,
                np.uint64(self.law.rate),
                np.int64(smallest),
                np.int64(largest),
                out[done:],
            )
            done += written
            words = words[used:]

    @property
    def _ends(self) -> tuple[int, int]:
        """Smallest and largest report."""
        if self.law.rate == 0:
            return 0, 0
        return -self.law.margin, self.law.num_steps + self.law.margin

    def scores(self, reports: Reports) -> NDArray[np.float64]:
        """Return 2 y - m for each report y, shape (n, 1). See `MeanRandomizer`."""
        return scores_of(self._codes(reports), centre=self.law.num_steps)

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of scores and of their squares. See `MeanRandomizer`."""
        return sums_of(
            self._codes(reports), centre=self.law.num_steps, fingerprint=self.fingerprint
        )

    def _codes(self, reports: Reports) -> NDArray[Any]:
        """Return the noisy grid points that are the reports, once checked."""
        smallest, largest = self._ends
        return require_integer_reports(
            reports,
            fingerprint=self.fingerprint,
            dtype=_REPORT_TYPE,
            smallest=smallest,
            largest=largest,
        )

    @property
    def score_scale(self) -> tuple[float, float]:
        """Offset and factor that take a score to the user's units. See `MeanRandomizer`.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return scale_of(self.span, slope=float(self.law.num_steps) if self.law.rate else 0.0)

    def noise_law(self) -> NoiseLaw:
        """Return the law of the noise: the same whatever the values. See `MeanRandomizer`."""
        return noise_law_of(self.variance_at, growth=1.0, factor=self.score_scale[1])

    def report_variance(self, value: float) -> float:
        """Return the variance of one report's decoded value, given the user's.

        Parameters
        ----------
        value : float
            In the range.

        Returns
        -------
        float
            With the variance of the rounding to the grid; to double precision.

        Raises
        ------
        DomainError
            If the value is NaN or outside the range.
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        x = self.span.position(value)
        left_over = math.modf((x + 1.0) / 2.0 * self.law.num_steps)[0]
        return self.variance_at(0.0, rounding=4.0 * left_over * (1.0 - left_over))

    def mean_report_variance(self) -> float:
        """Return the report variance, averaged over a value uniform in the range.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return self.variance_at(0.0, rounding=2.0 / 3.0)

    def worst_report_variance(self) -> float:
        """Return the largest report variance of any value: of one halfway between grid points.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return self.variance_at(0.0, rounding=1.0)

    def variance_at(self, square: float, *, rounding: float) -> float:  # noqa: ARG002 - one signature for all
        """Return the report variance, which no position changes; see `Piecewise.variance_at`."""
        _, factor = self.score_scale
        return factor**2 * (4.0 * self.law.noise_variance + rounding)


def _law_for(epsilon0: float, largest_num_steps: int) -> LaplaceLaw:
    """Return the law of the largest loss m s / 2^52 that is at most ``epsilon0``.

    m is chosen by powers of two of epsilon0, which are themselves losses of every grid; so the
    loss that comes out is asked for on the same grid, and gives the same law again.
    """
    asked = Fraction(min(epsilon0, float(_LARGEST_LOSS)))
    num_steps = largest_num_steps
    while num_steps > 1 and num_steps > asked * _LARGEST_SCALE:
        num_steps //= 2
    if num_steps > asked * _LARGEST_SCALE:
        return LaplaceLaw(num_steps, 0)
    return LaplaceLaw(num_steps, math.floor(asked * _UNIT / num_steps))


def _require_resolution(resolution: int | None) -> int:
    """Return the largest number of steps, else raise `ParameterError`."""
    if resolution is None:
        return _LARGEST_NUM_STEPS
    num_steps = require_at_least("resolution", resolution, 1)
    if num_steps > _LARGEST_NUM_STEPS or num_steps & (num_steps - 1):
        raise ParameterError(
            f"resolution = {num_steps} is not a power of two in [1, {_LARGEST_NUM_STEPS}]: leave "
            "it out"
        )
    return num_steps
