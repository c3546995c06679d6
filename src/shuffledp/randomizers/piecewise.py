"""The piecewise mechanism on a grid: a number becomes another one, more probably one nearby."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.exact_atoms import ExactAtom, mirrored, outward_atoms, rounded_atoms
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers import checks
from shuffledp.randomizers import number_randomizer as numbers
from shuffledp.randomizers.base import Channel
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower, log_ratio_upper

# Outputs a window: a discrete uniform law on W points has a variance smaller than the continuous
# one by a share of 1 / W^2, here 1.5e-5, so that a finer grid would gain nothing.
_LARGEST_WINDOW = 2**8

# Steps of the grid: every report fits 16 bits.
_LARGEST_NUM_STEPS = 2**15

_LARGEST_CHANNEL_INPUTS = 64


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

    def blanket(self) -> list[ExactAtom]:
        """Return the blanket for the ends of the range; see `Piecewise.profile`."""
        each = Fraction(self.threshold, WORD_VALUES)
        return [
            *mirrored(self.window * each, self.ratio, 1),
            ((self.num_steps - self.window) * each, 1, 1),
        ]

    def attack(self) -> list[ExactAtom]:
        """Return the ratios of both ends' reports to those of what all others hold.

        That is the least grid point whose window overlaps those of the ends the least.
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
class Piecewise(numbers.NumberRandomizer):
    """The piecewise mechanism, on a grid where it is exact.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then that of the law drawn, rounded up.
    resolution : int, optional
        Largest window W, a power of two in [1, 256]; the default is 256. Smaller ones are for
        tests, which write out the whole law.

    Attributes
    ----------
    law : PiecewiseLaw
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
    >>> round(randomizer.report_variance(0.0) / continuous, 3)
    1.0
    """

    name: ClassVar[str] = "piecewise"
    report_type: ClassVar[np.dtype[Any]] = np.dtype(np.uint16)

    resolution: int | None = field(default=None, repr=False, compare=False)
    law: PiecewiseLaw = field(init=False, repr=False)

    def _law_for(self, epsilon0: float) -> tuple[PiecewiseLaw, float]:
        """Return the law with the smallest T that is proved to cost at most ``epsilon0``.

        H <= e^epsilon0 T is the same as T >= 2^64 / (m + W e^epsilon0). T is that, rounded up to a
        multiple of W; and it never exceeds 2^64 / N, the T of a uniform report. If m = W, that one
        is a power of two and a multiple of W itself. If m > W, then e^epsilon0 > 1 + 1 / W, and T
        is smaller than 2^64 / N by far more than W.
        """
        window = _LARGEST_WINDOW
        if self.resolution is not None:
            window = checks.require_power_of_two("resolution", self.resolution, 1, window)
        # Halving a float is exact, except below 1e-307, where its exponential is 1 to 100 digits.
        root = exp_lower(epsilon0 / 2)
        while window > 1 and window * root > _LARGEST_NUM_STEPS:
            window //= 2
        num_steps = min(round(window * root), _LARGEST_NUM_STEPS)
        # The lower bound of e^0 is a hair below 1, and no law is more than private.
        e0 = max(Fraction(1), exp_lower(epsilon0))
        least = WORD_VALUES / (num_steps + window * e0)
        law = PiecewiseLaw(num_steps, window, window * math.ceil(least / window))
        return law, log_ratio_upper(law.ratio)

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket T / 2^64 on every output.

        For the ends of the range, whose windows do not overlap: W outputs have the ratios (p, 1), p
        = H / T, another W have (1, p), and the m - W others (1, 1). They are the worst pair; see
        docs/results/worst-pairs.md.
        """
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms(self.law.blanket()),
            attack=rounded_atoms(self.law.attack()),
            channel=self.channel if self.num_steps < _LARGEST_CHANNEL_INPUTS else None,
        )

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each grid point (row).

        m + 1 by m + W, up to 64 grid points; ``resolution`` makes the grid coarser. A value between
        grid points is a mixture of two rows.
        """
        law = self.law
        checks.require_small_channel(law.num_steps + 1, _LARGEST_CHANNEL_INPUTS)
        low, high = (Fraction(t, WORD_VALUES) for t in (law.threshold, law.high_threshold))
        return tuple(
            tuple(high if 0 <= y - i < law.window else low for y in range(law.num_outputs))
            for i in range(law.num_steps + 1)
        )

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one output for each number. See `MeanRandomizer`."""
        law, border = self.law, self.law.num_steps * self.law.threshold
        out = np.empty(np.shape(values)[:1], dtype=self.report_type)
        for where, block in numbers.blocks_of(values, self.span):
            points = numbers.round_to_grid(
                block, self.span, num_steps=law.num_steps, entropy=entropy
            )
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

    @property
    def _shape(self) -> numbers.GridShape:
        law, gain = self.law, self.law.gain
        slope, growth = float(gain * law.num_steps), float(1 / gain) if gain else 0.0
        return numbers.GridShape(law.num_steps, law.num_outputs, slope=slope, growth=growth)

    def variance_at(self, square: float, *, rounding: float) -> float:
        """Return the report variance. See `NumberRandomizer`.

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
