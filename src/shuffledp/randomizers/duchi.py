"""The randomizer of Duchi, Jordan and Wainwright: a number becomes one noisy bit."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.exact_atoms import outward_atoms
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers import number_randomizer as numbers
from shuffledp.randomizers.thresholds import response_law


@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(numbers.NumberRandomizer):
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
    ln((2^64 - T) / T), at most 64 ln 2 = 44.4, where T = 1.

    Cost: 16 random bytes and about 10 nanoseconds a report; one byte of memory.

    Examples
    --------
    >>> randomizer = Duchi(low=0, high=10, epsilon0=1.0986122886681098)  # ln 3: C = 2
    >>> round(randomizer.report_variance(5.0), 6)  # (2 * 5)^2
    100.0
    >>> round(randomizer.report_variance(10.0), 6)  # 100 - 5^2
    75.0
    """

    name: ClassVar[str] = "duchi"
    report_type: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)

    stated: ClassVar[tuple[str, ...]] = ("threshold",)

    def _law_for(self, epsilon0: float) -> tuple[numbers.GridLaw, float]:
        """Return the law of one step and a window of one output: a bit."""
        threshold, loss = response_law(epsilon0)
        return numbers.GridLaw(1, 1, threshold), loss

    @property
    def threshold(self) -> int:
        """T: the end rounded to is reported wrongly with probability exactly T / 2^64."""
        return self.law.threshold

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: binary randomized response, with its blanket.

        A report comes from a random one of the two ends, which are the worst case; see
        docs/results/worst-pairs.md.
        """
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.K_RANDOMIZED_RESPONSE,
            domain_size=2,
            blanket=outward_atoms(self.law.blanket()),
            channel=self.channel,
        )

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one bit for each number, as `NumberRandomizer` does, but sooner."""
        out = np.empty(np.shape(values)[:1], dtype=self.report_type)
        for where, block in numbers.blocks_of(values, self.span):
            bits = numbers.round_to_grid(block, self.span, num_steps=1, entropy=entropy)
            out[where] = bits ^ (entropy.words(bits.size) < np.uint64(self.threshold))
        return Reports(data=out, fingerprint=self.fingerprint)
