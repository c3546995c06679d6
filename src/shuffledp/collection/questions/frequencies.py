"""Which share of the users has each of k answers: the main question."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shuffledp.collection.questions.question import (
    Candidates,
    EstimateOptions,
    candidates_of,
    require_list,
)
from shuffledp.collection.source.answers import AnswerColumn
from shuffledp.collection.source.labels import checked_domain, require_two_answers
from shuffledp.collection.source.tables import answers_from_values
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Counts
from shuffledp.estimation.frequencies import FrequencyEstimates, expected_standard_error
from shuffledp.estimation.post_processing import POST_PROCESSING
from shuffledp.randomizers.base import CategoryRandomizer
from shuffledp.randomizers.registry import RANDOMIZERS

# With a larger standard error a 95 % interval is wider than [0, 1]: the estimate says nothing.
USELESS_STANDARD_ERROR = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyQuestion:
    """Each user has exactly one of k answers.

    Parameters
    ----------
    domain : tuple of str
        The possible answers, at least two, all different.
    own : tuple of callables
        Randomizer classes that are not registered, to choose among instead; each is called with
        ``k`` and ``epsilon0``.

    Raises
    ------
    DomainError
        If there are fewer than two answers, or one is repeated.
    """

    kind: ClassVar[str] = "frequencies"

    domain: tuple[str, ...]
    own: tuple[Callable[..., CategoryRandomizer], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        require_list("domain", self.domain)
        domain = require_two_answers(checked_domain(self.domain), "domain")
        object.__setattr__(self, "domain", domain)

    @property
    def labels(self) -> tuple[str, ...]:
        """The possible answers."""
        return self.domain

    @property
    def useless_error(self) -> float:
        """A quarter: then a 95 % interval is wider than [0, 1]."""
        return USELESS_STANDARD_ERROR

    @property
    def central_sensitivity(self) -> float:
        """Replacing one answer changes two counts by one."""
        return 2.0

    def candidates(self) -> Candidates:
        """Return all registered randomizers of categories, or the user's own ones."""
        k = len(self.domain)
        if self.own:
            return candidates_of({_name_of(make): make for make in self.own}, k=k)
        return candidates_of(RANDOMIZERS, k=k)

    @property
    def expected_for(self) -> str:
        """What the expected error is averaged over, or which case it is."""
        return "root mean square over the answers"

    @property
    def expected_spread(self) -> float:
        """That of all answers equally frequent, the largest root mean square over them."""
        return (len(self.domain) - 1.0) / len(self.domain) ** 2

    def expected_error(self, randomizer: CategoryRandomizer, num_users: int) -> float:
        """Return the standard error of a frequency, root mean square over the answers.

        The variance is linear in the frequency and frequencies sum to one, so this mean is the
        variance at 1/k, whatever the data.
        """
        p, q = randomizer.support_probabilities
        if not p > q:
            return math.inf
        return expected_standard_error(
            support_probabilities=(p, q), num_users=num_users, frequency=1.0 / randomizer.k
        )

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` unless all steps are known."""
        require_known_steps(steps)

    def column(self, values: Iterable[object]) -> AnswerColumn:
        """Return answers that are in memory as a checked column."""
        return answers_from_values(values, domain=self.domain)

    def require_column(self, column: object) -> None:
        """Raise `DomainError` unless the column has this domain."""
        if getattr(column, "domain", None) != self.domain:
            raise DomainError(
                f"the answers have the domain {getattr(column, 'domain', None)} and the plan "
                f"{self.domain}: open the table with the domain of the plan, or plan for the "
                "domain of the table"
            )

    def estimate(
        self, randomizer: CategoryRandomizer, aggregate: Counts, options: EstimateOptions
    ) -> FrequencyEstimates:
        """Return the frequency of each answer."""
        estimates = randomizer.estimate(
            aggregate,
            confidence=options.confidence,
            interval=options.interval,
            simultaneous=options.simultaneous,
        )
        return apply_post_processing(estimates, options.post_processing)

    def describe(self) -> str:
        """Return the number of answers."""
        return f"{len(self.domain)} answers"

    def to_json_dict(self) -> dict[str, object]:
        """Return the kind; the answers stand apart, as ``domain``."""
        return {"kind": self.kind}


def apply_post_processing(
    estimates: FrequencyEstimates, steps: tuple[str, ...]
) -> FrequencyEstimates:
    """Return the estimates after the steps of these names, in order."""
    require_known_steps(steps)
    for step in steps:
        estimates = POST_PROCESSING[step](estimates)
    return estimates


def require_known_steps(steps: tuple[str, ...]) -> None:
    """Raise `ParameterError` unless each is the name of a step of post-processing."""
    for step in steps:
        if step not in POST_PROCESSING:
            raise ParameterError(
                f"post-processing {step!r} is not one of {', '.join(POST_PROCESSING)}"
            )


def _name_of(make: Callable[..., Any]) -> str:
    """Return the name of a randomizer class, or of whatever else makes randomizers."""
    name = getattr(make, "name", None)
    return name if isinstance(name, str) else getattr(make, "__name__", repr(make))
