"""``TruthPolynomial``: an entry of a channel, as a form in p and 1 - p."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthPolynomial:
    """A homogeneous polynomial in the truth probability p and in 1 - p.

    Parameters
    ----------
    coefficients : tuple of Fraction
        Non-negative, of p^(d - i) (1 - p)^i for i = 0..d, where d is the degree. A constant has
        degree 0.

    Examples
    --------
    >>> entry = TruthPolynomial.of(1, 0, 2, 0)
    >>> print(entry)
    p^3 + 2 p (1-p)^2
    >>> entry.value(Fraction(3, 4))
    Fraction(33, 64)
    """

    coefficients: tuple[Fraction, ...]

    @classmethod
    def of(cls, *coefficients: int | Fraction) -> "TruthPolynomial":
        """Return the polynomial with these coefficients, from p^d to (1 - p)^d."""
        return cls(coefficients=tuple(map(Fraction, coefficients)))

    @classmethod
    def through(cls, truths: Sequence[Fraction], values: Sequence[Fraction]) -> "TruthPolynomial":
        """Return the polynomial through exact values, one degree below their number.

        Parameters
        ----------
        truths : sequence of Fraction
            d + 1 different values of p, in [0, 1).
        values : sequence of Fraction
            One for each.

        Returns
        -------
        TruthPolynomial
            Exact, of degree d. With u = p / (1 - p), f(p) (1 + u)^d is the polynomial in u with
            the same coefficients, read backwards.
        """
        odds = [truth / (1 - truth) for truth in truths]
        degree = len(odds) - 1
        scaled = [each * (1 + u) ** degree for each, u in zip(values, odds, strict=True)]
        return cls(coefficients=tuple(reversed(_newton(odds, scaled))))

    def value(self, truth: Fraction) -> Fraction:
        """Return the value at a truth probability."""
        degree = len(self.coefficients) - 1
        return sum(
            (
                each * truth ** (degree - index) * (1 - truth) ** index
                for index, each in enumerate(self.coefficients)
            ),
            start=Fraction(0),
        )

    def __str__(self) -> str:
        """Return the polynomial as plain text, which Python reads with ``^`` as a power."""
        return self._text("p", "(1-p)", " ", "({})/{}")

    def to_tex(self) -> str:
        r"""Return the polynomial as TeX, with \bar{p} for 1 - p."""
        text = self._text("p", r"\bar{p}", "", r"\left({}\right)/{}")
        return text.replace(" + ", "+")

    def _text(self, first: str, second: str, gap: str, quotient: str) -> str:
        """Return the sum of terms over its common denominator."""
        denominator = lcm(*(each.denominator for each in self.coefficients))
        degree = len(self.coefficients) - 1
        terms = []
        for index, each in enumerate(self.coefficients):
            count = each * denominator
            factors = [_power(first, degree - index), _power(second, index)]
            if count != 0:
                shown = [] if count == 1 and degree else [str(count)]
                terms.append(gap.join(shown + [factor for factor in factors if factor]))
        text = " + ".join(terms) or "0"
        if denominator == 1:
            return text
        if degree == 0:
            return f"{text}/{denominator}"
        return quotient.replace("{}", text, 1).replace("{}", str(denominator), 1)


def _power(base: str, exponent: int) -> str:
    """Return a power as text, nothing for the power 0."""
    return "" if exponent == 0 else base if exponent == 1 else f"{base}^{exponent}"


def _newton(points: Sequence[Fraction], values: Sequence[Fraction]) -> list[Fraction]:
    """Return the coefficients, constant first, of the polynomial through distinct points."""
    divided = list(values)
    for order in range(1, len(points)):
        for index in range(len(points) - 1, order - 1, -1):
            step = points[index] - points[index - order]
            divided[index] = (divided[index] - divided[index - 1]) / step
    result = [divided[-1]]
    for point, top in zip(reversed(points[:-1]), reversed(divided[:-1]), strict=True):
        result = [
            (result[index - 1] if index else Fraction(0))
            - (point * result[index] if index < len(result) else Fraction(0))
            for index in range(len(result) + 1)
        ]
        result[0] += top
    return result
