"""The mean of a number that each user has."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from shuffledp.collection.questions.question import (
    Candidates,
    EstimateOptions,
    candidates_of,
)
from shuffledp.collection.source.limits import Range
from shuffledp.collection.source.numbers import NumberTable, numbers_from_values
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Sums
from shuffledp.estimation.means import MeanEstimates
from shuffledp.randomizers.base import MeanRandomizer
from shuffledp.randomizers.number_randomizer import expected_standard_error
from shuffledp.randomizers.registry import NUMBER_RANDOMIZERS


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanQuestion:
    """Each user has one number between two limits.

    Parameters
    ----------
    low, high : float
        The limits, low < high; known without looking at the data.
    name : str
        What is measured, for example the name of the column.

    Raises
    ------
    ParameterError
        If the range is empty, infinite or the wrong way round.
    """

    kind: ClassVar[str] = "mean"

    low: float
    high: float
    name: str = "mean"

    def __post_init__(self) -> None:
        limits = Range(low=self.low, high=self.high)
        object.__setattr__(self, "low", limits.low)
        object.__setattr__(self, "high", limits.high)

    @property
    def labels(self) -> tuple[str, ...]:
        """The one thing that is estimated."""
        return (self.name,)

    @property
    def useless_error(self) -> float:
        """A quarter of the range: then a 95 % interval is wider than the range."""
        return 0.25 * (self.high - self.low)

    @property
    def central_sensitivity(self) -> float:
        """Replacing one value moves the sum by up to the range."""
        return self.high - self.low

    def candidates(self) -> Candidates:
        """Return all registered randomizers of numbers."""
        return candidates_of(NUMBER_RANDOMIZERS, low=self.low, high=self.high)

    @property
    def expected_for(self) -> str:
        """What the expected error is averaged over, or which case it is."""
        return "for values spread evenly over the range"

    @property
    def expected_spread(self) -> float:
        """That of values spread evenly over the range."""
        return (self.high - self.low) ** 2 / 12.0

    def expected_error(self, randomizer: MeanRandomizer, num_users: int) -> float:
        """Return the standard error of the mean of numbers spread evenly over the range."""
        if randomizer.epsilon0 == 0.0:
            return math.inf
        return expected_standard_error(randomizer, num_users=num_users)

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step."""
        require_no_post_processing(steps)

    def column(self, values: Any) -> NumberTable:
        """Return numbers that are in memory as a checked column."""
        return numbers_from_values(
            values, names=(self.name,), limits=Range(low=self.low, high=self.high)
        )

    def require_column(self, column: object) -> None:
        """Raise `DomainError` unless the column was checked for numbers in this range."""
        if (
            not isinstance(column, NumberTable)
            or column.is_vector
            or column.limits != Range(low=self.low, high=self.high)
        ):
            raise DomainError(
                f"the column was not checked for numbers in [{self.low:g}, {self.high:g}]: open "
                "the table with the limits of the plan"
            )

    def estimate(
        self, randomizer: MeanRandomizer, aggregate: Sums, options: EstimateOptions
    ) -> MeanEstimates:
        """Return the mean."""
        self.require_post_processing(options.post_processing)
        return randomizer.estimate(
            aggregate, confidence=options.confidence, simultaneous=options.simultaneous
        )

    def describe(self) -> str:
        """Return the range."""
        return f"numbers in [{self.low:g}, {self.high:g}]"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, name and limits."""
        return {"kind": self.kind, "name": self.name, "low": self.low, "high": self.high}


def require_no_post_processing(steps: tuple[str, ...]) -> None:
    """Raise `ParameterError` if steps are asked for, which exist for frequencies only."""
    if steps:
        raise ParameterError(
            f"post-processing {', '.join(steps)} is for frequencies: means are left as estimated"
        )
