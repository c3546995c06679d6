"""``Enclosure``: a number known only up to a proved interval.

Outward rounding: of exact numbers to floats, and of a few floating-point operations.
"""

import math
from dataclasses import asdict, dataclass
from fractions import Fraction

from shuffledp.core.bound import Bound
from shuffledp.core.errors import PrecisionError


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Two numbers that enclose an exact one: ``lower <= exact <= upper``.

    Internal to the numerics; a privacy claim wraps it in a `Bound` with its assumptions.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # NaN fails too
            raise PrecisionError(
                f"enclosure [{self.lower}, {self.upper}] is empty: round-off dominates the answer"
            )

    @classmethod
    def around(cls, value: float, error: float) -> "Enclosure":
        """Return an enclosure of a number with an error of at most ``error``."""
        return cls(value - error, value + error)

    def clipped(self, least: float = 0.0, most: float = 1.0) -> "Enclosure":
        """Return the ends cut to two others that also hold; ends that cross meet at the upper."""
        upper = min(self.upper, most)
        return Enclosure(min(max(self.lower, least), upper), upper)

    def bound(self, method: str, source: str, assumptions: tuple[str, ...]) -> Bound:
        """Return the claim with these ends."""
        return Bound(**asdict(self), method=method, source=source, assumptions=assumptions)


def float_below(value: Fraction) -> float:
    """Return the largest float that is at most ``value``."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_above(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``."""
    return 0.0 - float_below(-value)  # 0.0 for 0, not -0.0


def round_up(value: float, *, operations: int = 8) -> float:
    """Return a number at least as large as the exact value behind ``value`` >= 0.

    ``operations`` counts correctly rounded steps (or library calls good to an ulp) that led to
    ``value`` without cancellation; each may have lost half an ulp, and one is given back for each.
    """
    return value * (1.0 + operations * math.ulp(1.0))


def round_down(value: float, *, operations: int = 8) -> float:
    """Return a number at most as large as the exact value behind ``value`` >= 0; see `round_up`."""
    return value * (1.0 - operations * math.ulp(1.0))


def exp_minus_one_upper(value: float) -> float:
    """Return an upper bound of exp(value) - 1 for value >= 0."""
    return round_up(math.expm1(value), operations=2)


def exp_difference(high: float, low: float) -> float:
    """Return e^high - e^low for high >= low, to five roundings whatever the size of either.

    A rounding u of d = high - low moves 1 - e^-d by at most u d / (e^d - 1) <= u of itself; it
    would move e^d - 1, times e^low, by as much as u d.
    """
    return math.exp(high) * -math.expm1(low - high)
