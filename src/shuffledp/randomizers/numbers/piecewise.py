"""The piecewise mechanism on a grid: a number becomes another one, more probably one nearby."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.exact_atoms import outward_atoms, rounded_atoms
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports, Sums
from shuffledp.estimation.means import NoiseLaw
from shuffledp.randomizers.checks import fingerprint_of, require_small_channel
from shuffledp.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.randomizers.numbers.decoding import (
    noise_law_of,
    require_integer_reports,
    scale_of,
    scores_of,
    sums_of,
)
from shuffledp.randomizers.numbers.range_atoms import (
    best_point,
    window_attack,
    window_blanket,
)
from shuffledp.randomizers.numbers.rounding import Span, blocks_of, round_to_grid
from shuffledp.randomizers.protocol import Channel
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower, log_ratio_upper

# Outputs a window: a discrete uniform law on W points has a variance smaller than the continuous
# one by a share of 1 / W^2, here 1.5e-5, so that a finer grid would gain nothing.
_LARGEST_WINDOW = 2**8

# Steps of the grid: every report fits 16 bits, with room for the two codes of Hybrid.
_LARGEST_NUM_STEPS = 2**15

_LARGEST_CHANNEL_INPUTS = 64
_REPORT_TYPE = np.dtype(np.uint16)

_Law = TypeVar("_Law")


class PiecewiseLaw(NamedTuple):
    """Whole numbers that make up a law: steps m, window W, and T of the density outside it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(MeanRandomizer):
    """The piecewise mechanism, on a grid where it is exact.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.
    resolution : int, optional
        Largest window W, a power of two in [1, 256]; the default is 256. Smaller ones are for
        tests, which write out the whole law.

    Attributes
    ----------
    law : PiecewiseLaw
        The whole numbers m, W and T below.
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
    Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, "Collecting and analyzing multidimensional
    data with local differential privacy", ICDE 2019, arXiv:1907.00782, Algorithm 2. There a value
    in [-1, 1] is reported as a number in [-C, C], C = (e^(epsilon0/2) + 1) / (e^(epsilon0/2) - 1):
    with a high density in a window of length C - 1, which slides by C + 1 as the value goes from
    -1 to 1, and with a density smaller by e^epsilon0 outside it.

    Here the value is first rounded, without bias, to a point i of a grid 0, ..., m; see
    `shuffledp.randomizers.numbers.rounding`. The report is y in 0, ..., m + W - 1: each
    of the W outputs i, ..., i + W - 1 has probability H / 2^64, each of the m others T / 2^64,
    m T + W H = 2^64. The window slides by m steps, so that W / m = (C - 1) / (C + 1) =
    e^(-epsilon0/2) makes it the mechanism above in the limit: m is the whole number nearest to
    W e^(epsilon0/2). The expectation of 2 y - (m + W - 1) is exactly g (2 i - m),
    g = W (H - T) / 2^64, whence the estimate. The loss is ln(H / T).

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
    >>> round(randomizer.report_variance(0.0) / continuous, 3)
    1.0
    """

    name: ClassVar[str] = "piecewise"

    low: float
    high: float
    epsilon0: float
    resolution: int | None = field(default=None, repr=False, compare=False)
    span: Span = field(init=False, repr=False, compare=False)
    law: PiecewiseLaw = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        span = Span(self.low, self.high)
        largest = _require_resolution(self.resolution)
        law, epsilon0 = settle_law(
            require_non_negative("epsilon0", self.epsilon0),
            law_for=lambda loss: _law_for(loss, largest),
            loss_of=lambda law: log_ratio_upper(law.ratio),
        )
        object.__setattr__(self, "low", span.low)
        object.__setattr__(self, "high", span.high)
        object.__setattr__(self, "epsilon0", epsilon0)
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
        """What the accountant needs: the exact loss, and the blanket T / 2^64 on every output.

        Notes
        -----
        A value's report is a mixture of those of grid points, so that grid points are the worst
        case (joint convexity; see `Duchi.profile`). Every output lies outside some window, since
        W <= m; so the blanket is T / 2^64 on each of the N = m + W outputs. For two windows that
        do not overlap, such as those of both ends of the range, W outputs have the ratios (p, 1),
        p = H / T, another W have (1, p), and the m - W others (1, 1).

        These are the worst pairs. Where windows overlap by v outputs, v of each kind of the first
        2 W become v of (p, p) and v of (1, 1). In the terms r0 - e r1 of the blanket's bound, v at
        p - e and v at 1 - p e become v at p (1 - e) and v at 1 - e: the same sum, and both lie
        between the two. That is smaller in convex order, and so is the bound.

        The attack is that of the ends, where all others hold the grid point whose window overlaps
        those of the ends the least.
        """
        law = self.law
        point = best_point(law.num_steps, law.window)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms(window_blanket(*law, law.ratio)),
            attack=rounded_atoms(window_attack(*law, law.ratio, point=point)),
            channel=self.channel if law.num_steps < _LARGEST_CHANNEL_INPUTS else None,
        )

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each grid point (row).

        Returns
        -------
        tuple of tuples of Fraction, m + 1 by m + W
            Each row sums to exactly 1. A value between grid points is a mixture of two rows.

        Raises
        ------
        ParameterError
            If the grid has more than 64 points; ``resolution`` makes it coarser.
        """
        law = self.law
        require_small_channel(law.num_steps + 1, _LARGEST_CHANNEL_INPUTS)
        low, high = (Fraction(t, WORD_VALUES) for t in (law.threshold, law.high_threshold))
        return tuple(
            tuple(high if 0 <= y - i < law.window else low for y in range(law.num_outputs))
            for i in range(law.num_steps + 1)
        )

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one output for each number. See `MeanRandomizer`."""
        from shuffledp.randomizers.numbers.piecewise_kernels import randomize_block

        law = self.law
        out = np.empty(np.shape(values)[:1], dtype=_REPORT_TYPE)
        for where, block in blocks_of(values, self.span):
            randomize_block(
                round_to_grid(block, self.span, num_steps=law.num_steps, entropy=entropy),
                entropy.words(block.size),
                np.uint64(law.threshold),
                np.uint64(law.high_threshold),
                np.uint64(law.num_steps),
                np.uint64(law.window),
                out[where],
            )
        return Reports(data=out, fingerprint=self.fingerprint)

    def scores(self, reports: Reports) -> NDArray[np.float64]:
        """Return 2 y - (m + W - 1) for each report y, shape (n, 1). See `MeanRandomizer`."""
        return scores_of(self._codes(reports), centre=self.law.num_outputs - 1)

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of scores and of their squares. See `MeanRandomizer`."""
        return sums_of(
            self._codes(reports), centre=self.law.num_outputs - 1, fingerprint=self.fingerprint
        )

    def _codes(self, reports: Reports) -> NDArray[Any]:
        """Return the outputs that are the reports, once checked."""
        return require_integer_reports(
            reports,
            fingerprint=self.fingerprint,
            dtype=_REPORT_TYPE,
            smallest=0,
            largest=self.law.num_outputs - 1,
        )

    @property
    def score_scale(self) -> tuple[float, float]:
        """Offset and factor that take a score to the user's units. See `MeanRandomizer`.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return scale_of(self.span, slope=float(self.law.gain * self.law.num_steps))

    def noise_law(self) -> NoiseLaw:
        """Return the law of the noise: squared scores grow by 1 / g. See `MeanRandomizer`."""
        _, factor = self.score_scale
        return noise_law_of(self.variance_at, growth=float(1 / self.law.gain), factor=factor)

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
        return self.variance_at(x * x, rounding=4.0 * left_over * (1.0 - left_over))

    def mean_report_variance(self) -> float:
        """Return the report variance, averaged over a value uniform in the range.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return self.variance_at(1.0 / 3.0, rounding=2.0 / 3.0)

    def worst_report_variance(self) -> float:
        """Return an upper bound of the report variance of all values; tight but for rounding.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.
        """
        return self.variance_at(1.0, rounding=1.0)

    def variance_at(self, square: float, *, rounding: float) -> float:
        """Return the report variance where x^2 is ``square``, x from -1 to 1; linear in it.

        Parameters
        ----------
        square : float
            In [0, 1].
        rounding : float
            4 f (1 - f), where the value lies a share f of a step above a grid point.

        Returns
        -------
        float
            In squared units.

        Raises
        ------
        ParameterError
            If epsilon0 is 0, so that the reports say nothing.

        Notes
        -----
        The scores s = 2 y - (N - 1) of all N outputs have squares that sum to N (N^2 - 1) / 3,
        those of the window of i, with c = 2 i - m, to W c^2 + W (W^2 - 1) / 3. So E[s^2] =
        T / 2^64 N (N^2 - 1) / 3 + g (W^2 - 1) / 3 + g c^2, and E[s] = g c. Rounding makes c random,
        with mean m x and variance 4 f (1 - f).
        """
        law = self.law
        _, factor = self.score_scale
        outside = Fraction(law.threshold * law.num_outputs * (law.num_outputs**2 - 1), WORD_VALUES)
        constant = float((outside + law.gain * (law.window**2 - 1)) / 3)
        growth = float(law.gain * (1 - law.gain)) * law.num_steps**2
        return factor**2 * (constant + growth * square + float(law.gain) * rounding)


def settle_law(
    epsilon0: float, *, law_for: Callable[[float], _Law], loss_of: Callable[[_Law], float]
) -> tuple[_Law, float]:
    """Return the law for ``epsilon0`` and its loss, such that asking for that loss gives it again.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss asked for, in nats, at least 0.
    law_for : callable
        A law that costs at most the loss it is given.
    loss_of : callable
        Exact loss of a law, rounded up.

    Returns
    -------
    law
        A fixed point: ``law_for(loss_of(law)) == law``.
    loss : float
        At most ``epsilon0``.

    Notes
    -----
    Each round lowers the loss or ends, and there are finitely many laws. Two rounds are usual,
    three where the first crosses to a grid with a step less.
    """
    law = law_for(epsilon0)
    while (again := law_for(loss_of(law))) != law:
        law = again
    return law, loss_of(law)


def _law_for(epsilon0: float, largest_window: int) -> PiecewiseLaw:
    """Return the law with the smallest T that is proved to cost at most ``epsilon0``.

    H <= e^epsilon0 T is the same as T >= 2^64 / (m + W e^epsilon0). T is that, rounded up to a
    multiple of W; and it never exceeds 2^64 / N, the T of a uniform report. If m = W, that one is
    a power of two and a multiple of W itself. If m > W, then e^epsilon0 > 1 + 1 / W, and T is
    smaller than 2^64 / N by far more than W.
    """
    # Halving a float is exact, except below 1e-307, where its exponential is 1 to 100 digits.
    root = exp_lower(epsilon0 / 2)
    window = largest_window
    while window > 1 and window * root > _LARGEST_NUM_STEPS:
        window //= 2
    num_steps = min(round(window * root), _LARGEST_NUM_STEPS)
    # The lower bound of e^0 is a hair below 1, and no law is more than private.
    e0 = max(Fraction(1), exp_lower(epsilon0))
    least = WORD_VALUES / (num_steps + window * e0)
    return PiecewiseLaw(num_steps, window, window * math.ceil(least / window))


def _require_resolution(resolution: int | None) -> int:
    """Return the largest window W, else raise `ParameterError`."""
    if resolution is None:
        return _LARGEST_WINDOW
    window = require_at_least("resolution", resolution, 1)
    if window > _LARGEST_WINDOW or window & (window - 1):
        raise ParameterError(
            f"resolution = {window} is not a power of two in [1, {_LARGEST_WINDOW}]: leave it out"
        )
    return window
