"""Limits of a mean from independent samples of a bounded law, at any sample size.

For N independent samples of one law on [a, b], with their mean and sample variance v (divisor
N - 1), each of the two inequalities

    mu <= mean + h,   mu >= mean - h,   h = sqrt(2 v ln(2/d) / N) + 7 (b - a) ln(2/d) / (3 (N - 1))

fails with probability at most d. With d = failure / 2 both hold, but for the failure stated.

Source: Maurer, Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization", COLT 2009,
arXiv:0907.3740v1, Theorem 4, for the samples and for their negatives.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.numerics.enclosure import Enclosure

#: Probability that limits fail, where nothing else is asked for.
DEFAULT_FAILURE = 1e-9

#: The same as a part of a sentence.
BUT_FOR_FAILURE = "but for a probability of 1e-9"

# Mean and deviations of the samples are right to this, relative to the largest of them.
_ROUND_OFF = 64.0 * math.ulp(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMoments:
    """Mean and spread of samples that were seen in blocks.

    Parameters
    ----------
    count : int
        Number of samples, >= 0.
    mean : float
        Their mean; 0 where there are none.
    squares : float
        Sum of their squared deviations from it.

    Examples
    --------
    >>> first = SampleMoments.of(np.array([1.0, 2.0]))
    >>> first.joined(SampleMoments.of(np.array([3.0, 6.0])))
    SampleMoments(count=4, mean=3.0, squares=14.0)
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, samples: NDArray[np.float64]) -> Self:
        """Return those of one block, which is not empty."""
        mean = float(samples.mean())
        return cls(count=samples.size, mean=mean, squares=float(np.square(samples - mean).sum()))

    def joined(self, other: Self) -> Self:
        """Return those of both blocks together."""
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        share = other.count / count
        return type(self)(
            count=count,
            mean=self.mean + step * share,
            squares=self.squares + other.squares + step * step * self.count * share,
        )

    def limits(self, low: float, high: float, failure: float) -> Enclosure:
        """Return limits of the mean of the law, which lies on [low, high].

        Parameters
        ----------
        low, high : float
            Ends of a range that holds every sample; not checked here.
        failure : float
            Probability in (0, 1) that either limit is wrong.

        Returns
        -------
        Enclosure
            Within [low, high]; all of it below two samples.
        """
        if self.count < 2 or low == high:
            return Enclosure(low, high)
        doubt = math.log(4.0 / failure)
        slack = _ROUND_OFF * max(abs(low), abs(high))
        variance = self.squares / (self.count - 1) * (1.0 + _ROUND_OFF) + slack * slack
        half = math.sqrt(2.0 * variance * doubt / self.count)
        half += 7.0 * (high - low) * doubt / (3.0 * (self.count - 1))
        half = half * (1.0 + _ROUND_OFF) + slack
        return Enclosure(
            min(max(self.mean - half, low), high), max(min(self.mean + half, high), low)
        )
