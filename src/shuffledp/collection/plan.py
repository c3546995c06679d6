"""Planning: the randomizer and the local noise that meet a central (epsilon, delta).

For each randomizer that answers the question the accountant finds the largest epsilon0 that meets
the target, and the estimators state which randomizer then has the least error.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Generic, SupportsIndex

from shuffledp.accounting.calibration import LARGEST_CALIBRATED
from shuffledp.collection import choices
from shuffledp.collection import dummies as added
from shuffledp.collection.cautions import plan_cautions
from shuffledp.collection.choices import Alternative, Target
from shuffledp.collection.liars import Influenced, require_number
from shuffledp.collection.questions import KINDS
from shuffledp.collection.questions.question import (
    Candidates,
    Estimates_co,
    Laws,
    Question,
    chosen_candidates,
)
from shuffledp.collection.result import ModelComparison, central_model
from shuffledp.collection.shuffling import UNIFORM, FinishedShuffling, Releasing, Shuffling
from shuffledp.core.bound import Guarantee, finite
from shuffledp.core.checks import (
    require_at_least,
    require_extended,
    require_open_unit,
    require_positive,
    set_fields,
)
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import logger
from shuffledp.core.shown import Shown, registered_renderer
from shuffledp.randomizers.base import LocalRandomizer

# Multiples of a target's epsilon at which the errors of a plan are compared.
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)

# A local loss at which reports carry hardly any information.
_LEAST_EPSILON0 = 1e-3

# Relative tolerance of epsilon0 if each step of the search asks for the bounds of several batches.
_ARRANGED_TOLERANCE = 1e-3


def require_plan(plan: object) -> None:
    """Raise unless the argument is a plan."""
    if not isinstance(plan, Plan):
        raise ParameterError(f"plan is a {type(plan).__name__}: give what shuffledp.plan returns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Shown, Influenced, Releasing, Generic[Estimates_co]):
    """A collection that meets a central target; made by ``shuffledp.plan``.

    Parameters
    ----------
    num_users : int
        Number of users n whose reports are shuffled together.
    question : Question
        The question: the possible answers, or the limits of a number.
    target_epsilon, target_delta : float
        The central target.
    randomizer : LocalRandomizer
        The local randomizer that each user applies to their own value.
    guarantee : Guarantee
        Guarantee for n honest users: epsilon as a `Bound`, at most the target. With a shuffler's
        dummies it holds whatever the other users do.
    alternatives : tuple of Alternative
        The other randomizers, least error first; the first is the runner-up. One with an error
        up to 2 % smaller but larger reports may be among them.
    rounds : int
        Number of collections about the same people; the guarantee covers all of them.
    shuffling : Shuffling
        The shuffle of the reports, which the guarantee is for.
    binding : {"epsilon", "max_epsilon0", "epsilon0", "no_local_noise"}
        The limit on the local noise: the central target, the local limit, or a fixed epsilon0.
    asked_epsilon0 : float
        The epsilon0 that the randomizer was made for; its own epsilon0 is at most this.
    dummies : tuple of DummyLaw
        Laws of the dummies, reports of no user; empty without dummies.
    frequency : float, optional
        A share in [0, 1] for which standard errors are stated too.
    dishonest : int, optional
        Number of lying users for whom the largest change of an estimate is stated; by default one
        of 100.
    """

    num_users: int
    question: Question[Estimates_co]
    target_epsilon: float
    target_delta: float
    randomizer: LocalRandomizer
    guarantee: Guarantee
    alternatives: tuple[Alternative, ...] = ()
    rounds: int = 1
    shuffling: Shuffling = UNIFORM
    binding: str = "epsilon"
    asked_epsilon0: float
    dummies: Laws = ()
    frequency: float | None = None
    dishonest: int | None = None
    _makers: Candidates = field(repr=False, compare=False)
    # The guarantee, and what it was proved for, which `dataclasses.replace` hands on.
    _proved: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        given = self.guarantee
        if self.question.has_rounds:  # two texts look alike where no prefix of theirs is kept
            set_fields(self, guarantee=given.without_lower())
        is_for = given.num_users == self.num_users or added.protect_alone(self.dummies)
        is_for &= given.delta_upper == self.target_delta
        is_for &= self.randomizer.epsilon0 <= self.asked_epsilon0
        law, numbers = self.randomizer.fingerprint, (self.num_users, self.target_delta, self.rounds)
        proved = law, numbers, self.dummies, self.shuffling
        is_for |= self.shuffling != UNIFORM
        if not is_for or (self._proved[:1] == (self.guarantee,) and self._proved[1] != proved):
            raise ParameterError(
                f"num_users = {self.num_users}, target_delta = {self.target_delta:g}, randomizer = "
                f"{self.randomizer.name} with epsilon0 = {self.randomizer.epsilon0:.6g}, rounds = "
                f"{self.rounds}, dummies or shuffling do not fit the plan's guarantee: plan again "
                "instead of replacing fields"
            )
        set_fields(self, _proved=(self.guarantee, proved))

    @property
    def num_seen(self) -> int:
        """Number of users whose reports are expected to be released: nearly always all."""
        return getattr(self.shuffling, "expected_released", self.num_users)

    def _with_unseen(self, error: float, spread: float) -> float:
        """Return an error among `num_seen` users as one about all, of values of this variance."""
        unseen = spread * (1.0 / self.num_seen - 1.0 / self.num_users)
        return math.hypot(error, math.sqrt(unseen))

    @property
    def expected_standard_error(self) -> float:
        """Standard error of an estimate about these users: randomization alone, values held fixed.

        In the case named by ``question.expected_for``, as ``standard_error`` of a result, with the
        error due to dummies, and to reports of which a shuffle releases only a sample.
        """
        error = self.question.expected_error(self.randomizer, self.num_seen, self.dummies)
        return self._with_unseen(error, self.question.expected_spread)

    @property
    def worst_standard_error(self) -> float | None:
        """Largest expected standard error over all answers; None except for sets of answers."""
        return self.question.worst_error(self.randomizer, self.num_users)

    @property
    def expected_population_standard_error(self) -> float:
        """Standard error with sampling, of an estimate about the population of the users."""
        sampling = self.question.expected_spread / self.num_users
        return math.sqrt(self.expected_standard_error**2 + sampling)

    @property
    def _repeated(self) -> int:
        """Number of times the whole question is asked: once if it has rounds of its own."""
        return 1 if self.question.has_rounds else self.rounds

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings before a run: promises that are too weak to mean much."""
        return plan_cautions(
            self.guarantee.epsilon_upper, self.target_delta, self.num_users, self.without_shuffler
        )

    @property
    def local_model(self) -> ModelComparison:
        """Cost of the same reports if they are sent without a shuffler.

        Over several rounds epsilons add up, and each round gets an even share.
        """
        return ModelComparison(
            epsilon_for_same_error=self._local_epsilon() * self.rounds,
            standard_error_at_same_epsilon=self._alone(self._best_local()),
            mechanism="the best of the same randomizers, reports sent with their senders' names",
        )

    def _alone(self, randomizer: LocalRandomizer) -> float:
        """Return the expected error of a randomizer without dummies."""
        return self.question.expected_error(randomizer, self.num_users)

    def _best_local(self) -> LocalRandomizer:
        """Return the randomizer that errs least at an even share of the target."""
        share = self.target_epsilon / self.rounds
        return min((make(share) for make in self._makers.values()), key=self._alone)

    def _local_epsilon(self) -> float:
        """Return the epsilon0 at which reports without dummies have the same error."""
        make, own = self._makers[self.randomizer.name], self.expected_standard_error
        if own == self._alone(self.randomizer):
            return self.randomizer.epsilon0
        return last_above_first_below(
            lambda epsilon0: self._alone(make(epsilon0)), own, _LEAST_EPSILON0, LARGEST_CALIBRATED
        )[1]

    @property
    def central_model(self) -> ModelComparison:
        """Cost of Laplace noise on the totals of a trusted curator; see `results`.

        For plans with dummies the discrete Laplace noise with the least variance.
        """
        how: Any = {"error": self.expected_standard_error, "num_users": self.num_users}
        how |= {"epsilon": self.target_epsilon, "rounds": self._repeated}
        return central_model(self.question, is_least=self.is_compared, **how)

    @property
    def is_compared(self) -> bool:
        """True if errors of a frequent answer, and of sampling, are stated with the others."""
        are_hidden = (each.dummies for each in self.alternatives)
        return self.frequency is not None or bool(self.dummies) or any(are_hidden)

    @property
    def sampling_error(self) -> float:
        """Standard error of sampling alone: at ``frequency``, else root mean square."""
        share = self.frequency
        spread = self.question.expected_spread if share is None else share * (1.0 - share)
        return math.sqrt(spread / self.num_users)

    def frequent_error(self, choice: Any = None) -> float | None:
        """Return the standard error at ``frequency``, by default the largest over all shares.

        For this plan or an alternative; None for means.
        """
        law, dummies = (choice or self).randomizer, (choice or self).dummies
        found = self.question.frequent_error(law, self.num_seen, self.frequency, dummies)
        share = 0.5 if self.frequency is None else self.frequency
        return None if found is None else self._with_unseen(found, share * (1.0 - share))

    @property
    def local_frequent_error(self) -> float | None:
        """Standard error at ``frequency`` of reports sent without a shuffler, as `local_model`."""
        law = self._best_local()
        return self.question.frequent_error(law, self.num_users, self.frequency)

    @property
    def expected_dummies(self) -> float:
        """Expected number of dummies in all."""
        return added.expected_number(self.dummies, self.randomizer, self.num_users)

    @property
    def without_dummies(self) -> Guarantee | None:
        """Guarantee for n honest users if the reports are shuffled and no dummies are added.

        Its epsilon is infinite without local noise. None if the plan has no dummies.
        """
        return added.without_dummies(self, self.num_users, self.shuffling, rounds=self.rounds)

    @property
    def runner_up(self) -> Alternative | None:
        """Best of the other randomizers whose law differs from the law of the chosen one."""
        mine, same = self.expected_standard_error, choices.SAME_ERROR
        ratios = ((each, each.expected_standard_error / mine) for each in self.alternatives)
        return next((each for each, ratio in ratios if not 1.0 / same <= ratio <= same), None)

    def errors_by_epsilon(self) -> tuple[tuple[float, tuple[float, ...]], ...]:
        """Return expected standard errors at other central targets, all else as planned.

        For each epsilon: the errors of the chosen randomizer and of the runner-up, if there is one;
        infinite if nothing can be estimated. Empty unless the plan is for a uniform shuffle to a
        target. Costs five plans for two randomizers.

        Examples
        --------
        >>> from shuffledp import Categories
        >>> found = plan(Categories(["a", "b"]), num_users=1000, epsilon=1.0, delta=1e-6)
        >>> [epsilon for epsilon, _ in found.errors_by_epsilon()]
        [0.25, 0.5, 1.0, 2.0, 4.0]
        """
        if self.binding == "epsilon0" or self.shuffling != UNIFORM:
            return ()
        both = (self, *(() if self.runner_up is None else (self.runner_up,)))
        limit = self.asked_epsilon0 if self.binding == "max_epsilon0" else LARGEST_CALIBRATED
        found = []
        for epsilon in (factor * self.target_epsilon for factor in _FACTORS):
            target = Target(self.num_users, epsilon, self.target_delta, self._repeated, limit)
            how = self.question, self._makers
            errors = (choices.error_at_target(*how, each, target) for each in both)
            found.append((epsilon, tuple(errors)))
        return tuple(found)

    def to_json_dict(self) -> dict[str, object]:
        """Return the JSON object of ``shuffledp plan --json``; None in the place of infinities."""
        found = {
            "randomizer": self.randomizer.name,
            "epsilon0": self.randomizer.epsilon0,
            "guarantee": self.guarantee.to_json_dict(),
            "expected_standard_error": self.expected_standard_error,
            "alternatives": [each.to_json_dict() for each in self.alternatives],
            "expected_population_standard_error": self.expected_population_standard_error,
            "expected_for": self.question.expected_for,
            "worst_standard_error": self.worst_standard_error,
            "num_users": self.num_users,
            "rounds": self.rounds,
            "question": self.question.to_json_dict(),
            "domain": list(self.domain),
            "local_model": asdict(self.local_model),
            "central_model": asdict(self.central_model),
            "binding": self.binding,
            "without_shuffler": self.without_shuffler.to_json_dict(),
            "warnings": list(self.warnings),
            **self._dishonest_json(),
            **self.question.prospects(self.randomizer, self.num_users, self.dummies),
            **(self._comparison_json() if self.is_compared else {}),
        }
        return dict(finite(found))

    def _comparison_json(self) -> dict[str, object]:
        """Return the entries of `to_json_dict` that only plans with dummies or a frequency have."""
        without, curator = self.without_dummies, self.central_model.standard_error_at_same_epsilon
        return {
            "dummies": [str(law) for law in self.dummies],
            "expected_dummies": self.expected_dummies,
            "without_dummies": None if without is None else without.to_json_dict(),
            "frequency": self.frequency,
            "sampling_standard_error": self.sampling_error,
            "frequent_standard_errors": {
                "plan": self.frequent_error(),
                "alternatives": [self.frequent_error(each) for each in self.alternatives],
                "local_model": self.local_frequent_error,
                "central_model": curator,
            },
        }

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the plan as JSON, for `load`; an existing file is replaced in one step.

        Raises
        ------
        ParameterError
            If the shuffle is not uniform: other shuffles depend on data that a plan does not hold.
        OutputError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile, shuffledp as sdp
        >>> asked = sdp.plan(sdp.Categories(["yes", "no"]), num_users=99, epsilon=1, delta=1e-6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sdp.Plan.load(asked.save(f"{folder}/plan.json")).randomizer == asked.randomizer
        True
        """
        if self.shuffling != UNIFORM:
            raise ParameterError(
                f"shuffling = {self.shuffling.name}: only plans of uniform shuffles are saved"
            )
        from shuffledp.collection.saved_plans import write_plan

        return write_plan(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Plan":
        """Return a plan that `save` wrote, with its guarantee recomputed.

        The alternatives are not saved.

        Raises
        ------
        DataError
            If the file is no plan, or the law of the randomizer differs in this version, or the
            guarantee does not meet the target.
        """
        from shuffledp.collection.saved_plans import read_plan

        return cls(**read_plan(path))

    def __str__(self) -> str:
        return str(registered_renderer().terminal_text(self))


def plan(  # noqa: PLR0913  # one keyword an option
    question: Question[Estimates_co],
    *,
    num_users: SupportsIndex,
    delta: float,
    epsilon: float | None = None,
    epsilon0: float | None = None,
    max_epsilon0: float | None = None,
    randomizer: str | None = None,
    rounds: SupportsIndex = 1,
    shuffling: Shuffling = UNIFORM,
    dummies: str | DummyLaw = "none",
    no_local_noise: bool = False,
    most_dummies: SupportsIndex = choices.MOST_DUMMIES,
    frequency: float | None = None,
    dishonest: SupportsIndex | None = None,
) -> Plan[Estimates_co]:
    """Return one plan; `plans.plan`, which also takes arrays, documents the arguments."""
    _require_kinds(question, shuffling)
    if (epsilon is None) == (epsilon0 is None):
        raise ParameterError(
            f"epsilon = {epsilon} and epsilon0 = {epsilon0}: give exactly one of them, the central "
            "target or the local loss"
        )
    if rounds != 1 and (epsilon is None or shuffling != UNIFORM):
        raise ParameterError(
            f"rounds = {rounds}: leave rounds out but for a target epsilon of uniform shuffles"
        )
    is_over = isinstance(shuffling, FinishedShuffling)  # the reports of one round
    if question.has_rounds and (rounds != 1 or not (is_over or shuffling == UNIFORM)):
        given = f"rounds = {rounds}" if rounds != 1 else f"shuffling = {shuffling.name}"
        raise ParameterError(
            f"{given}: {question.kind} has rounds of its own, of uniform shuffles; leave that out"
        )
    if max_epsilon0 is not None and epsilon is None:
        raise ParameterError(
            f"max_epsilon0 = {max_epsilon0} goes with a central target: give epsilon"
        )
    limit = math.inf if max_epsilon0 is None else require_positive("max_epsilon0", max_epsilon0)
    if isinstance(dummies, DummyLaw):
        added.require_given(dummies, question, shuffling, is_bare=no_local_noise)
    elif dummies != "none" or no_local_noise:
        is_target = epsilon is not None and shuffling == UNIFORM
        is_target &= rounds == 1 or dummies != "users"
        added.require_plannable(dummies, max_epsilon0, is_bare=no_local_noise, is_target=is_target)
    if frequency is not None:
        frequency = choices.require_frequency(question, frequency)
    target = Target(
        require_at_least("num_users", num_users, 1),
        math.inf if epsilon is None else require_positive("epsilon", epsilon),
        delta if epsilon is None else require_open_unit("delta", delta),
        require_at_least("rounds", rounds, 1),
        math.inf if no_local_noise else min(limit, LARGEST_CALIBRATED),
        "none" if isinstance(dummies, DummyLaw) else dummies,
        require_at_least("most_dummies", most_dummies, 1),
    )
    liars = None if dishonest is None else require_number(dishonest, target.num_users)
    laws = (dummies,) if isinstance(dummies, DummyLaw) else ()
    variants = question.variants(with_dummies=target.dummies != "none")
    plans = [
        _planned(each, target, shuffling, randomizer, epsilon0, laws=laws) for each in variants
    ]
    if target.dummies == "best" and question.has_rounds:  # fewer rounds may do without dummies
        alone = replace(target, dummies="none")
        with suppress(InfeasibleTargetError):  # if more users are needed, for all of them
            plans += [
                _planned(each, alone, shuffling, randomizer, epsilon0, laws=laws)
                for each in question.variants(with_dummies=False)
                if each not in variants
            ]
    best = plans[0] if len(plans) == 1 else min(plans, key=choices.found_share)
    found = replace(best, frequency=frequency, dishonest=liars)
    log_collection("plan", found.num_users, found.randomizer, found.guarantee, shuffling.name)
    return found


def _require_kinds(question: Any, shuffling: Any) -> None:
    """Raise unless these are a question and a shuffle."""
    if not hasattr(question, "candidates"):
        kinds = ", ".join(home.rpartition(":")[2] for home in KINDS.values())
        raise ParameterError(f"question is a {type(question).__name__}: give one of {kinds}")
    if not hasattr(shuffling, "guarantee"):
        raise ParameterError(f"shuffling is a {type(shuffling).__name__}: give a Shuffling")


def _planned(
    question: Question[Estimates_co],
    target: Target,
    shuffling: Shuffling,
    randomizer: str | None,
    epsilon0: float | None,
    *,
    laws: Laws,
) -> Plan[Estimates_co]:
    """Return the plan that meets a target, or the one of a fixed epsilon0, with given dummies."""
    others: list[Alternative] = []
    if epsilon0 is None and shuffling == UNIFORM:
        if target.dummies == "none":
            makers = chosen_candidates(question, randomizer)
            best, *others = choices.best_first(question, makers, target)
        else:
            makers = {**question.dummy_candidates(), **question.candidates()}
            best, *others = choices.best_with_dummies(question, randomizer, target)
        law, asked, laws = best.randomizer, best.asked_epsilon0, best.dummies
        target = choices.of_all_rounds(question, target) if laws else target
        guarantee = choices.planned_guarantee(law, target, laws)
    else:
        name = randomizer or next(iter(question.candidates()))  # k-RR for categories
        makers = chosen_candidates(question, name, with_dummies=bool(laws))
        how: Any = {"dummies": laws[0]} if laws else {}
        guarantee_of = partial(shuffling.guarantee, num_users=target.num_users, delta=target.delta)
        if epsilon0 is None:
            bound = partial(guarantee_of, with_lower=False, **how)
            asked = _arranged_epsilon0(question, makers[name], target, shuffling, bound)
        else:
            asked = require_extended("epsilon0", epsilon0, "give the local loss in nats")
        law = makers[name](asked)
        guarantee = guarantee_of(law.profile, **how)
    is_capped = target.max_epsilon0 < LARGEST_CALIBRATED and asked >= target.max_epsilon0
    limit = "max_epsilon0" if is_capped else "epsilon"
    limit = "no_local_noise" if math.isinf(asked) else limit
    return Plan(
        num_users=target.num_users,
        question=question,
        target_epsilon=target.epsilon if epsilon0 is None else guarantee.epsilon_upper,
        target_delta=target.delta,
        randomizer=law,
        dummies=laws,
        alternatives=tuple(others),
        guarantee=guarantee,
        rounds=target.rounds,
        shuffling=shuffling,
        binding=limit if epsilon0 is None else "epsilon0",
        asked_epsilon0=asked,
        _makers=makers,
    )


def _arranged_epsilon0(
    question: Question,
    make: Any,
    target: Target,
    shuffling: Shuffling,
    bound: Callable[[LocalProfile], Guarantee],
) -> float:
    """Return the largest epsilon0 of one randomizer that meets a target with a shuffle."""
    num_users, epsilon, delta = target.num_users, target.epsilon, target.delta

    def epsilon_at(inverse: float) -> float:
        return bound(make(1.0 / inverse).profile).epsilon_upper

    # Without any amplification the target is met at epsilon0 = epsilon.
    certain = min(epsilon, target.max_epsilon0)
    limits = 1.0 / target.max_epsilon0, 1.0 / certain
    _, inverse = last_above_first_below(
        epsilon_at, epsilon, *limits, relative_tolerance=_ARRANGED_TOLERANCE
    )
    found = max(1.0 / inverse, certain)
    if not question.expected_error(make(found), num_users) <= question.useless_error:
        advice = ", ".join(filter(None, ("raise epsilon", shuffling.remedy, "or ask more people")))
        raise InfeasibleTargetError(
            f"num_users = {num_users} is too few for epsilon = {epsilon:g}, delta = {delta:g} with "
            f"the {shuffling.name} shuffler: the noise needed would drown every estimate; {advice}"
        )
    return found


def log_collection(
    what: str, num_users: int, law: LocalRandomizer, guarantee: Guarantee, shuffler: str
) -> None:
    """Log the number of users, the randomizer and the approximate guarantee of a collection."""
    logger.info(
        f"{what}: {num_users} users, {law.name} with epsilon0 = {law.epsilon0:.6g}, "
        f"{shuffler} shuffler: epsilon about {guarantee.epsilon_upper:.4g} at delta "
        f"{guarantee.delta_upper:.4g}"
    )
