"""``Enclosure``: a number known only up to a proved interval."""

from dataclasses import dataclass

from shuffledp.core.errors import PrecisionError


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Two numbers that enclose an exact one: ``lower <= exact <= upper``.

    Internal to the numerics; what claims privacy wraps it in a `Bound` with its assumptions.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # NaN fails too
            raise PrecisionError(
                f"enclosure [{self.lower}, {self.upper}] is empty: round-off dominates the answer"
            )
