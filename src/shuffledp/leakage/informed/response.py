"""k-ary randomized response in exact fractions, and how often it is guessed right unshuffled."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.leakage.channels.responses import Truth, checked_truth


class Response(NamedTuple):
    """k-ary randomized response: ``num_values`` k, ``truth`` p in [1/k, 1]."""

    num_values: int
    truth: Fraction

    @classmethod
    def of(cls, truth: Truth, num_values: int) -> "Response":
        """Return it for checked numbers; a double is taken as exact, but the nearest to 1/k.

        Examples
        --------
        >>> Response.of(0.5, 3).answer, Response.of(1 / 3, 3).kept
        (Fraction(1, 4), Fraction(0, 1))
        """
        number = Fraction(checked_truth(truth, num_values))
        return cls(num_values, max(number, Fraction(1, num_values)))

    @property
    def answer(self) -> Fraction:
        """Probability r = (1 - p) / (k - 1) of any one wrong report."""
        return (1 - self.truth) / (self.num_values - 1)

    @property
    def kept(self) -> Fraction:
        """Probability p - r of a report in earnest, all others being uniform."""
        return self.truth - self.answer

    @property
    def noise(self) -> Fraction:
        """Probability k r of a uniform report."""
        return 1 - self.kept

    def matrix(self) -> NDArray[np.float64]:
        """Return the channel matrix, shape (k, k)."""
        matrix = np.full((self.num_values, self.num_values), float(self.answer))
        np.fill_diagonal(matrix, float(self.truth))
        return matrix

    def report_law(self, prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the law of the report of a value with law ``prior``."""
        law: NDArray[np.float64] = float(self.answer) + float(self.kept) * prior
        return law

    def unshuffled(self, prior: NDArray[np.float64]) -> float:
        """Return how often the value is guessed right from its own report, in O(k)."""
        best = int(prior.argmax())
        others = np.full(prior.size, prior[best])
        others[best] = np.delete(prior, best).max()
        chances = np.maximum(float(self.truth) * prior, float(self.answer) * others)
        return min(float(chances.sum()), 1.0)
