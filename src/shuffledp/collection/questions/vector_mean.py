"""The mean of a vector that each user has, such as a row of several measurements."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from shuffledp.collection.questions.mean import require_no_post_processing
from shuffledp.collection.questions.question import (
    Candidates,
    EstimateOptions,
    candidates_of,
    require_list,
)
from shuffledp.collection.source.limits import Ball
from shuffledp.collection.source.numbers import NumberTable, numbers_from_values
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Sums
from shuffledp.estimation.means import MeanEstimates
from shuffledp.randomizers.base import MeanRandomizer
from shuffledp.randomizers.number_randomizer import expected_standard_error
from shuffledp.randomizers.registry import VECTOR_RANDOMIZERS


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorMeanQuestion:
    """Each user has one vector of a Euclidean norm up to a bound.

    Parameters
    ----------
    names : tuple of str
        Names of the d coordinates, at least two, all different.
    norm_bound : float
        The largest norm, > 0; known without looking at the data.

    Raises
    ------
    ParameterError
        If the bound is not positive, or there are fewer than two names.
    """

    kind: ClassVar[str] = "vector-mean"

    names: tuple[str, ...]
    norm_bound: float = 1.0

    def __post_init__(self) -> None:
        require_list("names", self.names)
        names = tuple(self.names)
        if len(names) < 2 or len(set(names)) < len(names):
            raise ParameterError(
                f"columns {', '.join(map(str, names))}: a vector needs at least two different "
                "ones; for a single column ask for a mean"
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "norm_bound", Ball(norm_bound=self.norm_bound).norm_bound)

    @property
    def labels(self) -> tuple[str, ...]:
        """The coordinates."""
        return self.names

    @property
    def useless_error(self) -> float:
        """Half of the bound: then a 95 % interval is as wide as the ball."""
        return 0.5 * self.norm_bound

    @property
    def central_sensitivity(self) -> float:
        """Replacing one vector moves the sum by up to twice the norm, sqrt(d) of it in L1."""
        return 2.0 * self.norm_bound * math.sqrt(len(self.names))

    def candidates(self) -> Candidates:
        """Return all registered randomizers of vectors."""
        return candidates_of(
            VECTOR_RANDOMIZERS, dimension=len(self.names), norm_bound=self.norm_bound
        )

    @property
    def expected_for(self) -> str:
        """What the expected error is averaged over, or which case it is."""
        return "for vectors of zeros, the worst case"

    @property
    def expected_spread(self) -> float:
        """None: all vectors are zero; nor do others of that mean make the sum larger."""
        return 0.0

    def expected_error(self, randomizer: MeanRandomizer, num_users: int) -> float:
        """Return the standard error of a coordinate, root mean square over coordinates."""
        if randomizer.epsilon0 == 0.0:
            return math.inf
        return expected_standard_error(randomizer, num_users=num_users)

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step."""
        require_no_post_processing(steps)

    def column(self, values: Any) -> NumberTable:
        """Return vectors that are in memory as checked columns."""
        return numbers_from_values(
            values, names=self.names, limits=Ball(norm_bound=self.norm_bound), is_vector=True
        )

    def require_column(self, column: object) -> None:
        """Raise `DomainError` unless the columns were checked for vectors of this norm."""
        if (
            not isinstance(column, NumberTable)
            or column.limits != Ball(norm_bound=self.norm_bound)
            or column.names != self.names  # in this order, by which estimates are named
        ):
            raise DomainError(
                f"the columns were not checked for vectors of {', '.join(self.names)} of norm up "
                f"to {self.norm_bound:g}: open the table with names and limits of the plan"
            )

    def estimate(
        self, randomizer: MeanRandomizer, aggregate: Sums, options: EstimateOptions
    ) -> MeanEstimates:
        """Return the mean of each coordinate."""
        self.require_post_processing(options.post_processing)
        return randomizer.estimate(
            aggregate, confidence=options.confidence, simultaneous=options.simultaneous
        )

    def describe(self) -> str:
        """Return dimension and norm bound."""
        return f"vectors of {len(self.names)} numbers, norm at most {self.norm_bound:g}"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, names and bound."""
        return {"kind": self.kind, "names": list(self.names), "norm_bound": self.norm_bound}
