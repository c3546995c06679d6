"""Exchangeable laws of k signs: what they cost, and what they tell, exactly.

A law is exchangeable if the probability of a pattern of signs depends only on its number of minus
signs. Two lines say all that matters about it: the local privacy loss of everything a client ever
reports is ln(max w / min w), and the gap is the mean of a sign.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import comb

from shuffledp.core.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeableSigns:
    """A law of k signs by the weight of a pattern with i minus signs.

    Parameters
    ----------
    weights : tuple of int
        For i = 0 ... k, proportional to the probability w(i) of *each* pattern with i minus
        signs; all at least 1, for a pattern that never occurs would cost an infinite loss.

    Raises
    ------
    ParameterError
        If there are fewer than two weights, or one is below 1.

    Examples
    --------
    >>> law = ExchangeableSigns(weights=(3, 1))  # one sign, kept with probability 3/4
    >>> law.loss_ratio, law.correlations
    (Fraction(3, 1), (Fraction(1, 1), Fraction(1, 2)))
    """

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.weights) < 2:
            raise ParameterError("weights has fewer than two entries: give k + 1 for k signs")
        if min(self.weights) < 1:
            raise ParameterError(
                f"weights has the entry {min(self.weights)}: give whole numbers >= 1, since a "
                "pattern of signs that never occurs would give its user away"
            )

    @property
    def num_signs(self) -> int:
        """Number of signs, k."""
        return len(self.weights) - 1

    @property
    def total(self) -> int:
        """Sum of the weights of all 2^k patterns."""
        k = self.num_signs
        return sum(comb(k, i) * weight for i, weight in enumerate(self.weights))

    @property
    def loss_ratio(self) -> Fraction:
        """e^epsilon0 of everything that a client ever reports: max w / min w.

        Notes
        -----
        Relative to uniform reports, the reports of a client with m nonzero increments have the
        density 2^k w averaged over the k - m signs that were not used. So densities lie between
        2^k min w and 2^k max w, and reach them for m = k.
        """
        return Fraction(max(self.weights), min(self.weights))

    @property
    def least_density(self) -> Fraction:
        """2^k min w: the least density of a client's reports relative to uniform reports."""
        return Fraction(min(self.weights) << self.num_signs, self.total)

    @property
    def correlations(self) -> tuple[Fraction, ...]:
        """r_0 ... r_k, exactly; see `correlation`."""
        return tuple(self.correlation(order) for order in range(self.num_signs + 1))

    def correlation(self, order: int) -> Fraction:
        """Return r_i, the mean of the product of i different signs, exactly.

        Parameters
        ----------
        order : int
            i, in [0, k].

        Notes
        -----
        There are as many patterns with m minus signs, counted with the product of their first i
        signs, as z^m has in (1 - z)^i (1 + z)^(k - i). So r_i is the sum over m of w(m) times that
        coefficient (a Krawtchouk polynomial). Cost: k^2 additions.
        """
        row = _coefficients(order, self.num_signs - order)
        signed = sum(weight * count for weight, count in zip(self.weights, row, strict=True))
        return Fraction(signed, self.total)


def _coefficients(minus: int, plus: int) -> list[int]:
    """Return the coefficients of (1 - z)^minus (1 + z)^plus, the constant first."""
    row = [1]
    for sign in [-1] * minus + [1] * plus:
        row = [a + sign * b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return row
