"""Planning: which randomizer, and how much local noise, meets a central (epsilon, delta).

Privacy and mechanisms meet here: for each randomizer that answers the question the accountant finds
the largest epsilon0 that meets the target, and the estimators say which of them then errs least.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from shuffledp.collection.choosing import (
    Alternative,
    ModelComparison,
    Target,
    central_model,
    guarantee_within,
    infeasible,
    local_model,
    ranked_choices,
)
from shuffledp.collection.questions.frequencies import FrequencyQuestion
from shuffledp.collection.questions.mean import MeanQuestion
from shuffledp.collection.questions.question import (
    Question,
    chosen_candidates,
    require_list,
)
from shuffledp.collection.questions.vector_mean import VectorMeanQuestion
from shuffledp.collection.results import Guarantee, RunResult, registered_renderer
from shuffledp.collection.run import run_plan
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.randomizers.base import CategoryRandomizer, LocalRandomizer

# Among randomizers whose errors are this close, the one with the smallest reports is chosen.
_CLOSE_ENOUGH = 1.02

# Errors that differ by less differ by the accountant's tolerance only: one law in two guises.
_SAME = 1.0 + 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A collection that meets a central target with the least expected error.

    Parameters
    ----------
    num_users : int
        Number of users n whose reports are shuffled together.
    question : Question
        What is asked: the possible answers, or the limits of a number.
    target_epsilon, target_delta : float
        What was asked for.
    randomizer : LocalRandomizer
        What each user runs on their own value.
    guarantee : Guarantee
        What holds for n honest users: epsilon as a `Bound`, at most the target.
    expected_standard_error : float
        Of an estimate about these users, their values held fixed, in the case that
        ``question.expected_for`` names: the randomization alone, as ``standard_error`` of a result.
    alternatives : tuple of Alternative
        The other randomizers, least error first; the first is the runner-up. One with an error
        up to 2 % smaller but larger reports may be among them.
    local_model, central_model : ModelComparison
        The same without a shuffler, and with a trusted curator.
    rounds : int
        How often the collection is repeated about the same people; the guarantee covers all of it.
    """

    num_users: int
    question: Question
    target_epsilon: float
    target_delta: float
    randomizer: LocalRandomizer
    guarantee: Guarantee
    expected_standard_error: float
    alternatives: tuple[Alternative, ...]
    local_model: ModelComparison
    central_model: ModelComparison
    rounds: int = 1

    @property
    def domain(self) -> tuple[str, ...]:
        """What is estimated: the possible answers, or the names of the columns."""
        return self.question.labels

    @property
    def expected_population_standard_error(self) -> float:
        """The same with sampling: of an estimate about the population that the users come from."""
        sampling = self.question.expected_spread / self.num_users
        return math.sqrt(self.expected_standard_error**2 + sampling)

    def run(self, answers: Any, **options: Any) -> RunResult:
        """Run the plan on data; see `shuffledp.collection.run.run_plan` for the options.

        Parameters
        ----------
        answers : column or array-like
            One row a user: an opened column, or values in memory.
        **options
            For example ``seed`` for a simulation, or ``confidence``.

        Returns
        -------
        RunResult
            Estimates and the guarantee of exactly this run.
        """
        return run_plan(self, answers, **options)

    def to_json_dict(self) -> dict[str, object]:
        """Return what ``shuffledp plan --json`` prints."""
        return {
            "randomizer": self.randomizer.name,
            "epsilon0": self.randomizer.epsilon0,
            "guarantee": self.guarantee.to_json_dict(),
            "expected_standard_error": self.expected_standard_error,
            "alternatives": [each.to_json_dict() for each in self.alternatives],
            "expected_population_standard_error": self.expected_population_standard_error,
            "expected_for": self.question.expected_for,
            "num_users": self.num_users,
            "rounds": self.rounds,
            "question": self.question.to_json_dict(),
            "domain": list(self.domain),
            "local_model": self.local_model.to_json_dict(),
            "central_model": self.central_model.to_json_dict(),
        }

    def _repr_html_(self) -> str:
        return registered_renderer().plan_html(self)

    def __str__(self) -> str:
        return registered_renderer().plan_text(self)


def make_plan(
    num_users: SupportsIndex,
    domain: Iterable[object],
    epsilon: float,
    delta: float,
    *,
    randomizer: str | Callable[..., CategoryRandomizer] | None = None,
    rounds: SupportsIndex = 1,
) -> Plan:
    """Choose the randomizer and its epsilon0 for a central (epsilon, delta) target.

    Parameters
    ----------
    num_users : int
        Number of honest users n whose reports are shuffled together, at least 1.
    domain : iterable
        The possible answers, at least two, all different; each becomes a label, 1 as ``"1"``.
    epsilon : float
        Central target in nats, > 0.
    delta : float
        Central failure probability, in (0, 1); well below 1/n.
    randomizer : str or class, optional
        Name of the randomizer to use, or a `CategoryRandomizer` class of your own; by default the
        one with the least expected error, or with the smallest reports among those within 2 % of
        it.
    rounds : int
        How often the collection is repeated about the same people, at least 1: the target is for
        all rounds together.

    Returns
    -------
    Plan
        Whose ``guarantee`` meets the target.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    DomainError
        If the domain has fewer than two answers or repeats one.
    InfeasibleTargetError
        If so few users allow so much noise only that every interval would cover [0, 1]; the
        message says how many users, or which epsilon, would do.

    Notes
    -----
    Cost: about ten calls of the accountant for each randomizer; seconds in all.

    Examples
    --------
    >>> plan = make_plan(100_000, ["yes", "no", "refused"], epsilon=0.5, delta=1e-8)
    >>> plan.guarantee.epsilon_upper <= 0.5
    True
    """
    name, own = (randomizer, ()) if not callable(randomizer) else (None, (randomizer,))
    question = FrequencyQuestion(domain=domain, own=own)  # type: ignore[arg-type]  # checked there
    return plan_question(question, num_users, epsilon, delta, randomizer=name, rounds=rounds)


def plan_mean(
    num_users: SupportsIndex,
    low: float,
    high: float,
    epsilon: float,
    delta: float,
    *,
    name: str = "mean",
    randomizer: str | None = None,
    rounds: SupportsIndex = 1,
) -> Plan:
    """Choose the randomizer of a number in [low, high] for a central target.

    Parameters
    ----------
    num_users : int
        Number of honest users n whose reports are shuffled together, at least 1.
    low, high : float
        Limits of the number; known without looking at the data.
    epsilon, delta : float
        Central target, as for `make_plan`.
    name : str
        What is measured.
    randomizer : str, optional
        Name of the randomizer to use.
    rounds : int
        How often the collection is repeated, as for `make_plan`.

    Returns
    -------
    Plan
        Whose ``guarantee`` meets the target.

    Raises
    ------
    ParameterError, InfeasibleTargetError
        As for `make_plan`.

    Examples
    --------
    >>> plan = plan_mean(10_000, 0, 120, epsilon=1.0, delta=1e-6)
    >>> plan.guarantee.epsilon_upper <= 1.0
    True
    """
    question = MeanQuestion(low=low, high=high, name=name)
    return plan_question(question, num_users, epsilon, delta, randomizer=randomizer, rounds=rounds)


def plan_vector_mean(
    num_users: SupportsIndex,
    names: Iterable[str],
    epsilon: float,
    delta: float,
    *,
    norm_bound: float = 1.0,
    randomizer: str | None = None,
    rounds: SupportsIndex = 1,
) -> Plan:
    """Choose the randomizer of a vector for a central target.

    Parameters
    ----------
    num_users : int
        Number of honest users n whose reports are shuffled together, at least 1.
    names : iterable of str
        Names of the coordinates, at least two.
    epsilon, delta : float
        Central target, as for `make_plan`.
    norm_bound : float
        Largest Euclidean norm of a vector; known without looking at the data.
    randomizer : str, optional
        Name of the randomizer to use.
    rounds : int
        How often the collection is repeated, as for `make_plan`.

    Returns
    -------
    Plan
        Whose ``guarantee`` meets the target.

    Raises
    ------
    ParameterError, InfeasibleTargetError
        As for `make_plan`.
    """
    require_list("names", names)
    question = VectorMeanQuestion(names=tuple(names), norm_bound=norm_bound)
    return plan_question(question, num_users, epsilon, delta, randomizer=randomizer, rounds=rounds)


def plan_question(
    question: Question,
    num_users: SupportsIndex,
    epsilon: float,
    delta: float,
    *,
    randomizer: str | None = None,
    rounds: SupportsIndex = 1,
) -> Plan:
    """Choose the randomizer and its epsilon0 for any kind of question.

    Parameters
    ----------
    question : Question
        One of `shuffledp.collection.questions`.
    num_users, epsilon, delta, randomizer, rounds
        As for `make_plan`.

    Returns
    -------
    Plan
        Whose ``guarantee`` meets the target.

    Raises
    ------
    ParameterError, InfeasibleTargetError
        As for `make_plan`.
    """
    target = Target(
        num_users=require_at_least("num_users", num_users, 1),
        epsilon=require_positive("epsilon", epsilon),
        delta=require_open_unit("delta", delta),
        rounds=require_at_least("rounds", rounds, 1),
    )
    makers = chosen_candidates(question, randomizer)
    choices = ranked_choices(question, makers, target)
    least = choices[0].expected_standard_error
    if not least <= question.useless_error:
        raise infeasible(question, makers, target)
    best = _best(choices, list(makers))
    return Plan(
        num_users=target.num_users,
        question=question,
        target_epsilon=target.epsilon,
        target_delta=target.delta,
        randomizer=best.randomizer,
        guarantee=guarantee_within(
            best.randomizer, target.num_users, target.epsilon, target.delta, rounds=target.rounds
        ),
        expected_standard_error=best.expected_standard_error,
        alternatives=tuple(each for each in choices if each is not best),
        local_model=local_model(question, makers, best, target),
        central_model=central_model(question, best.expected_standard_error, target),
        rounds=target.rounds,
    )


def _best(choices: Sequence[Alternative], names: Sequence[str]) -> Alternative:
    """Return the least error among the smallest reports that are close enough to the least of all.

    Of those with the same error the first in the list of candidates: it has the closest analysis.
    """
    least = choices[0].expected_standard_error
    close = [each for each in choices if each.expected_standard_error <= _CLOSE_ENOUGH * least]
    fewest = min(each.randomizer.num_report_bytes for each in close)
    small = [each for each in close if each.randomizer.num_report_bytes == fewest]
    least = small[0].expected_standard_error
    same = [each for each in small if each.expected_standard_error <= _SAME * least]
    places = {name: place for place, name in enumerate(names)}
    return min(same, key=lambda each: places.get(each.randomizer.name, len(names)))
