"""The piecewise mechanism on a grid: a number becomes another one, more probably one nearby."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from shuffledp.core.exact_atoms import outward_atoms, rounded_atoms
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.randomizers import checks
from shuffledp.randomizers import number_randomizer as numbers
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower, log_ratio_upper

# Outputs a window: a discrete uniform law on W points has a variance smaller than the continuous
# one by a share of 1 / W^2, here 1.5e-5, so that a finer grid would gain nothing.
_LARGEST_WINDOW = 2**8

# Steps of the grid: every report fits 16 bits.
_LARGEST_NUM_STEPS = 2**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(numbers.NumberRandomizer):
    """The piecewise mechanism, on a grid where it is exact.

    Parameters
    ----------
    low, high : float
        Range of the values: finite, low < high.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.
    resolution : int, optional
        Largest window W, a power of two in [1, 256]; the default is 256. Smaller ones are for
        tests, which write out the whole law.

    Attributes
    ----------
    law : numbers.GridLaw
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

    def _law_for(self, epsilon0: float) -> tuple[numbers.GridLaw, float]:
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
        law = numbers.GridLaw(num_steps, window, window * math.ceil(least / window))
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
            channel=self.channel if self.num_steps < numbers.LARGEST_CHANNEL_INPUTS else None,
        )
