"""A number between two limits: its mean."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core.checks import set_fields
from shuffledp.core.labels import require_text
from shuffledp.randomizers import registry


@dataclass(frozen=True, slots=True)
class Mean(question.Means):
    """Each user has one number between two limits; the mean is asked for.

    Parameters
    ----------
    low, high : float
        The limits, low < high; known without looking at the data.
    name : str
        Name of the measured number, for example the name of the column.

    Raises
    ------
    ParameterError
        If the range is empty, infinite or the wrong way round.
    """

    kind: ClassVar[str] = "mean"
    stated: ClassVar[tuple[str, ...]] = ("name", "low", "high")
    checked_by: ClassVar[tuple[str, ...]] = ("low", "high")
    no_values: ClassVar[NDArray[np.float64]] = np.empty(0)
    expected_for: ClassVar[str] = "for values spread evenly over the range"

    low: float
    high: float
    _: KW_ONLY
    name: str = "mean"

    def __post_init__(self) -> None:
        require_text("name", self.name)
        set_fields(self, low=self.limits.low, high=self.limits.high)

    @property
    def limits(self) -> columns.Range:
        """Limits of the number."""
        return columns.Range(self.low, self.high)

    @property
    def labels(self) -> tuple[str, ...]:
        """The only estimate."""
        return (self.name,)

    @property
    def useless_error(self) -> float:
        """A quarter of the range: a 95 % interval is then wider than the range."""
        return 0.25 * (self.high - self.low)

    @property
    def central_sensitivity(self) -> float:
        """L1 sensitivity: replacing one value moves the sum by at most the range."""
        return self.high - self.low

    def candidates(self) -> question.Candidates:
        """Return all registered randomizers of numbers."""
        return question.candidates_of(registry.NUMBER_RANDOMIZERS, low=self.low, high=self.high)

    def dummy_candidates(self) -> question.Candidates:
        """Return bitwise sums, one for each number of bits: dummies are ordinary messages."""
        from shuffledp.randomizers.bit_sums import LARGEST_NUM_BITS, BitSums

        makers = {
            f"bit-sums-{number}": partial(BitSums, num_bits=number)
            for number in range(1, LARGEST_NUM_BITS + 1)
        }
        return question.candidates_of(makers, low=self.low, high=self.high)

    def expected_error(self, randomizer: Any, num_users: int, dummies: question.Laws = ()) -> float:
        """Return the standard error of the mean, for values spread evenly over the range."""
        error = question.Means.expected_error(self, randomizer, num_users)
        if not dummies:
            return error
        added = math.sqrt(randomizer.dummy_variance(dummies)) / num_users
        return math.hypot(error, (self.high - self.low) * added)

    @property
    def expected_spread(self) -> float:
        """Variance of values spread evenly over the range."""
        return (self.high - self.low) ** 2 / 12.0

    def read(self, source: tables.Source) -> columns.Column:
        """Return a column of numbers, checked."""
        return columns.numbers(source, self)

    def value_of_one(self, answer: Any) -> NDArray[np.float64]:
        """Return one user's number, shape (1,)."""
        return single.number_of(answer, self.limits)

    def describe(self) -> str:
        """Return the range."""
        return f"numbers in [{self.low:g}, {self.high:g}]"
