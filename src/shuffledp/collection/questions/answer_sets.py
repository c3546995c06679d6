"""Which share of the users has each of k answers, where a user may have several."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from shuffledp.collection.questions.frequencies import (
    USELESS_STANDARD_ERROR,
    apply_post_processing,
    require_known_steps,
)
from shuffledp.collection.questions.question import (
    Candidates,
    EstimateOptions,
    candidates_of,
    require_list,
)
from shuffledp.collection.source.answer_sets import AnswerSetColumn, answer_sets_from_values
from shuffledp.collection.source.labels import checked_domain, require_two_answers
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Counts
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS, SetRandomizer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSetQuestion:
    """Each user has between none and ``max_answers`` of k answers.

    Parameters
    ----------
    domain : tuple of str
        The possible answers, at least two, all different.
    max_answers : int
        The most answers a user may give, in [1, k]; known without looking at the data.

    Raises
    ------
    DomainError
        If there are fewer than two answers, or one is repeated.
    ParameterError
        If ``max_answers`` is out of range.
    """

    kind: ClassVar[str] = "answer-sets"

    domain: tuple[str, ...]
    max_answers: int

    def __post_init__(self) -> None:
        require_list("domain", self.domain)
        domain = require_two_answers(checked_domain(self.domain), "domain")
        most = require_at_least("max_answers", self.max_answers, 1)
        if most > len(domain):
            raise ParameterError(
                f"max_answers = {most} is above the {len(domain)} answers of the domain: nobody "
                "can give more different ones"
            )
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "max_answers", most)

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
        """Replacing one set changes by one up to twice ``max_answers`` counts, of k that exist."""
        return float(min(2 * self.max_answers, len(self.domain)))

    def candidates(self) -> Candidates:
        """Return both ways of reporting a set, with each registered randomizer of categories."""
        return candidates_of(
            ANSWER_SET_RANDOMIZERS, k=len(self.domain), max_answers=self.max_answers
        )

    @property
    def expected_for(self) -> str:
        """What the expected error is averaged over, or which case it is."""
        return f"for an answer that one user in {len(self.domain)} gives"

    @property
    def expected_spread(self) -> float:
        """That of an answer that one user in k gives."""
        return (len(self.domain) - 1.0) / len(self.domain) ** 2

    def expected_error(self, randomizer: SetRandomizer, num_users: int) -> float:
        """Return the standard error of a share, for an answer that one user in k has."""
        p, q = randomizer.support_probabilities
        if not p > q:
            return math.inf
        return randomizer.expected_standard_error(
            num_users=num_users, frequency=1.0 / len(self.domain)
        )

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step but ``"clip"``."""
        require_known_steps(steps)
        if set(steps) - {"clip"}:
            raise ParameterError(
                f"post-processing {', '.join(steps)} makes shares sum to 1, which those of sets do "
                "not: only clip applies"
            )

    def column(self, values: Iterable[Iterable[str]]) -> AnswerSetColumn:
        """Return sets that are in memory as a checked column."""
        return answer_sets_from_values(values, domain=self.domain, max_answers=self.max_answers)

    def require_column(self, column: object) -> None:
        """Raise `DomainError` unless the column holds sets of these answers, no larger ones."""
        if (
            not isinstance(column, AnswerSetColumn)
            or column.domain != self.domain
            or column.max_answers != self.max_answers
        ):
            raise DomainError(
                f"the column was not opened as sets of at most {self.max_answers} of the plan's "
                f"{len(self.domain)} answers: use open_answer_sets with the same domain"
            )

    def estimate(
        self, randomizer: SetRandomizer, aggregate: Counts, options: EstimateOptions
    ) -> FrequencyEstimates:
        """Return the share of users who have each answer; these do not sum to 1."""
        self.require_post_processing(options.post_processing)
        estimates = randomizer.estimate(
            aggregate,
            confidence=options.confidence,
            interval=options.interval,
            simultaneous=options.simultaneous,
        )
        return apply_post_processing(estimates, options.post_processing)

    def describe(self) -> str:
        """Return the number of answers, and how many a user may give."""
        return f"up to {self.max_answers} of {len(self.domain)} answers"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind and limit; the answers stand apart, as ``domain``."""
        return {"kind": self.kind, "max_answers": self.max_answers}
