"""Laws of signs that depend on the number of minus signs only, by sums over all patterns."""

from dataclasses import dataclass
from fractions import Fraction
from math import comb


@dataclass(frozen=True)
class ExchangeableSigns:
    """A law of k signs: weights of *each* pattern with i = 0 ... k minus signs."""

    weights: tuple[int, ...]

    @property
    def num_signs(self):
        return len(self.weights) - 1

    @property
    def total(self):
        """Sum of the weights of all 2^k patterns."""
        return sum(comb(self.num_signs, i) * weight for i, weight in enumerate(self.weights))

    @property
    def loss_ratio(self):
        """e^epsilon0 of everything that a client ever reports."""
        return Fraction(max(self.weights), min(self.weights))

    @property
    def least_density(self):
        """The least density of a client's reports relative to uniform reports."""
        return Fraction(min(self.weights) << self.num_signs, self.total)

    @property
    def correlations(self):
        return tuple(self.correlation(order) for order in range(self.num_signs + 1))

    def correlation(self, order):
        """The mean of the product of so many different signs."""
        row = [1]  # coefficients of (1 - z)^order (1 + z)^(k - order)
        for sign in [-1] * order + [1] * (self.num_signs - order):
            row = [a + sign * b for a, b in zip([*row, 0], [0, *row], strict=True)]
        signed = sum(weight * count for weight, count in zip(self.weights, row, strict=True))
        return Fraction(signed, self.total)


def predrawn_signs(k, radius, coin_threshold):
    """The law of k pre-drawn signs with these numbers."""
    ball = sum(comb(k, i) for i in range(radius + 1))
    other = (2**64 - coin_threshold) * ball
    likely = other + (coin_threshold << k)
    return ExchangeableSigns(tuple(likely if i <= radius else other for i in range(k + 1)))


def signs_of(law):
    """The law of the signs of the package's ``PredrawnSigns``."""
    return predrawn_signs(law.max_changes, law.radius, law.coin_threshold)
