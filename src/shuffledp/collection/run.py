"""Running a plan on data: the one place where values, reports, estimates and guarantee meet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

from shuffledp.accounting.release import ShuffledRelease
from shuffledp.collection.arrangements import UNIFORM, Arrangement
from shuffledp.collection.cautions import delta_cautions
from shuffledp.collection.guarantees import guarantee_for, guarantee_of
from shuffledp.collection.local import ReportSink, collect
from shuffledp.collection.questions.frequencies import FrequencyQuestion
from shuffledp.collection.questions.question import EstimateOptions, Question, chosen_candidates
from shuffledp.collection.results import Guarantee, RunResult
from shuffledp.collection.sampled_estimates import for_all_users
from shuffledp.collection.source.column import Column
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_open_unit
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.randomizers.base import LocalRandomizer

if TYPE_CHECKING:
    from shuffledp.collection.source.prior_files import PriorKnowledge

# Where the report shows epsilon: as multiples of the number of users, and shares of honest ones.
_USER_FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_HONEST_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class Setting(Protocol):
    """What a run needs to know beforehand: a `Plan`, or a `FixedSetting`."""

    @property
    def num_users(self) -> int:
        """Number of users that are expected."""
        ...

    @property
    def question(self) -> Question:
        """What is asked."""
        ...

    @property
    def randomizer(self) -> LocalRandomizer:
        """What each user runs."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What holds for ``num_users`` reports."""
        ...

    @property
    def target_epsilon(self) -> float:
        """The epsilon that was asked for."""
        ...

    @property
    def target_delta(self) -> float:
        """The delta that was asked for."""
        ...

    @property
    def rounds(self) -> int:
        """How often the collection is repeated about the same people."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSetting:
    """A `Setting` whose randomizer was named rather than chosen; see `fixed_setting`."""

    num_users: int
    question: Question
    randomizer: LocalRandomizer
    guarantee: Guarantee
    target_epsilon: float
    target_delta: float
    rounds: int = 1


def fixed_setting(
    question: Question,
    *,
    num_users: int,
    randomizer: str,
    epsilon0: float,
    delta: float,
    arrangement: Arrangement = UNIFORM,
) -> FixedSetting:
    """Return the setting of a randomizer that is given, whatever epsilon it leads to.

    Parameters
    ----------
    question : Question
        What is asked.
    num_users : int
        Number of users, at least 2.
    randomizer : str
        Name of one of the question's ``candidates``.
    epsilon0 : float
        Local privacy loss in nats.
    delta : float
        At which the central epsilon is computed, in [0, 1).
    arrangement : Arrangement
        How reports will be shuffled; uniformly by default.

    Returns
    -------
    FixedSetting
        Whose ``target_epsilon`` is the epsilon computed.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    chosen = chosen_candidates(question, randomizer)[randomizer](epsilon0)
    guarantee = arrangement.guarantee(chosen.profile, num_users, delta=delta)
    return FixedSetting(
        num_users=num_users,
        question=question,
        randomizer=chosen,
        guarantee=guarantee,
        target_epsilon=guarantee.epsilon_upper,
        target_delta=delta,
    )


def run_plan(  # noqa: PLR0913  # one keyword an option
    plan: Setting,
    values: Any,
    *,
    seed: SupportsIndex | None = None,
    confidence: float = 0.95,
    interval: str = "wilson",
    simultaneous: bool = False,
    post_processing: Sequence[str] = (),
    sink: ReportSink | None = None,
    scratch: str | PathLike[str] | None = None,
    arrangement: Arrangement = UNIFORM,
    prior: "PriorKnowledge | Mapping[str, float] | Sequence[float] | None" = None,
    on_progress: Progress | None = None,
) -> RunResult:
    """Randomize each value once, shuffle all reports, and estimate, as planned.

    Parameters
    ----------
    plan : Plan or FixedSetting
        What to run. If there are not as many values as users were expected, the guarantee is
        computed anew for those that there are, and the result warns where it falls short.
    values : column or array-like
        An opened column, such as `open_table` returns, or values in memory, one row a user.
    seed : int, optional
        For a reproducible simulation, which protects nobody and says so.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    interval : {"wilson", "wald", "clopper-pearson"}
        Kind of interval, for frequencies.
    simultaneous : bool
        Whether all intervals hold at once with that confidence, rather than each alone.
    post_processing : sequence of str
        Names of steps applied to the estimates, for frequencies; none by default.
    sink : callable, optional
        Is handed the shuffled reports; see `shuffledp.collection.report_files.reports_writer`.
    scratch : path, optional
        Folder for scratch files when reports do not fit in memory.
    arrangement : Arrangement
        How reports are shuffled; uniformly by default.
    prior : sequence or mapping of float, or PriorKnowledge, optional
        Of one more adversary in ``leakage.of_run(result)``: how likely it holds each answer to be.
    on_progress : callable, optional
        Called with the stage, the users done and the users in total.

    Returns
    -------
    RunResult
        Unbiased estimates with the guarantee of exactly this run. Cautions about the data are
        among its warnings and its assumptions.

    Raises
    ------
    DomainError
        If the values were checked for another question than the plan's.
    DataError
        If the values cannot be used, or changed since the column was opened; or the prior does not
        fit the answers.

    Notes
    -----
    Cost: one pass over the data after the one that opened the column, some tens of milliseconds for
    each of the guarantees that the report compares.
    """
    column: Column = values if hasattr(values, "blocks") else plan.question.column(values)
    plan.question.require_column(column)
    options = EstimateOptions(
        confidence=require_open_unit("confidence", confidence),
        interval=interval,
        simultaneous=simultaneous,
        post_processing=tuple(post_processing),
    )
    plan.question.require_post_processing(options.post_processing)
    belief = _belief(plan.question, prior, column.num_users)
    guarantee, shortfall = _actual_guarantee(plan, column.num_users, arrangement)
    entropy = Entropy.choose(seed)
    aggregate = collect(
        plan.randomizer,
        column.blocks(),
        num_users=column.num_users,
        entropy=entropy,
        arrangement=arrangement,
        sink=sink,
        scratch=scratch,
        on_progress=on_progress,
    )
    estimates = for_all_users(
        plan.question.estimate(plan.randomizer, aggregate, options), column.num_users
    )
    # What more users would give is known for a uniform shuffle only: with groups or a network it
    # depends on where they belong.
    is_uniform = arrangement.name == UNIFORM.name
    around = _user_numbers(column.num_users) if is_uniform else ()
    honest = _honest_numbers(column.num_users) if is_uniform else {}
    epsilons = _safe_epsilons(plan, (*around, *honest.values()), on_progress or no_progress)
    cautions = (*column.cautions, *delta_cautions(plan.target_delta, column.num_users))
    return RunResult(
        num_users=column.num_users,
        question=plan.question,
        randomizer=plan.randomizer,
        guarantee=_assuming(guarantee, column.cautions),
        estimates=estimates,
        is_simulation=entropy.is_simulation,
        target_epsilon=plan.target_epsilon,
        target_delta=plan.target_delta,
        shuffler=arrangement.name,
        warnings=(*shortfall, *cautions),
        epsilon_by_num_users=tuple((number, epsilons[number]) for number in around),
        epsilon_by_honest_share=tuple(
            (share, epsilons[number]) for share, number in honest.items()
        ),
        arrangement=arrangement,
        seed=None if seed is None else int(seed),
        prior=belief,
    )


def _belief(
    question: Question,
    prior: "PriorKnowledge | Mapping[str, float] | Sequence[float] | None",
    num_users: int,
) -> "PriorKnowledge | None":
    """Return a chosen prior in the order of the answers; checked before anything is collected."""
    if prior is None:
        return None
    from shuffledp.collection.source.prior_files import PriorKnowledge

    if question.kind != FrequencyQuestion.kind:
        raise ParameterError(
            f"prior is for questions of one of k answers, not for {question.kind}: leave it out"
        )
    return PriorKnowledge.of(prior).for_values(question.labels).for_users(num_users)


def _actual_guarantee(
    plan: Setting, num_users: int, arrangement: Arrangement
) -> tuple[Guarantee, tuple[str, ...]]:
    """Return the guarantee for the users that there are, and a warning if it falls short."""
    if plan.rounds > 1:
        if arrangement.name != UNIFORM.name:
            raise ParameterError(
                f"rounds = {plan.rounds}: a collection that is repeated is accounted for uniform "
                f"shuffles only; plan one collection with the {arrangement.name} shuffler"
            )
        return _one_of_several(plan, num_users)
    if num_users == plan.num_users:
        return plan.guarantee, ()
    guarantee = arrangement.guarantee(plan.randomizer.profile, num_users, delta=plan.target_delta)
    if guarantee.epsilon_upper <= plan.target_epsilon:
        return guarantee, ()
    return guarantee, (
        f"{plan.num_users:,} users were planned and {num_users:,} answered, so epsilon is "
        f"{_rounded_up(guarantee.epsilon_upper)} rather than {plan.target_epsilon:.6g}.",
    )


def _one_of_several(plan: Setting, num_users: int) -> tuple[Guarantee, tuple[str, ...]]:
    """Return the guarantee of one of the planned rounds, and what all of them make together."""
    law, delta = plan.randomizer.profile, plan.target_delta
    together = plan.guarantee
    if num_users != plan.num_users:
        release = ShuffledRelease(profile=law, num_users=num_users)
        together = guarantee_of(release * plan.rounds, delta=delta)
    sentence = (
        f"This is one of {plan.rounds:,} planned rounds. If all are like this one, together they "
        f"give epsilon <= {_rounded_up(together.epsilon_upper)} at delta <= {delta:g}."
    )
    if together.epsilon_upper > plan.target_epsilon:
        sentence += (
            f" That is above the {plan.target_epsilon:.6g} planned, since {plan.num_users:,} users "
            f"were planned and {num_users:,} answered."
        )
    return guarantee_for(law, num_users, delta=delta), (sentence,)


def _rounded_up(epsilon: float) -> str:
    """Return six digits of what is safe to publish; rounding to them takes off 5e-6 at most."""
    return f"{epsilon * (1.0 + 6e-6):.6g}"


def _assuming(guarantee: Guarantee, assumptions: tuple[str, ...]) -> Guarantee:
    """Return the guarantee with more assumptions."""
    epsilon, delta = (
        replace(value, assumptions=(*value.assumptions, *assumptions))
        if isinstance(value, Bound)
        else value
        for value in (guarantee.epsilon, guarantee.delta)
    )
    return replace(guarantee, epsilon=epsilon, delta=delta)


def _user_numbers(num_users: int) -> tuple[int, ...]:
    """Return numbers of users around the actual one, in rising order."""
    return tuple(sorted({max(2, round(factor * num_users)) for factor in _USER_FACTORS}))


def _honest_numbers(num_users: int) -> dict[float, int]:
    """Return how many users each share of honest ones makes, rounded down."""
    numbers = {share: int(share * num_users) for share in _HONEST_SHARES}
    return {share: number for share, number in numbers.items() if number >= 2}


def _safe_epsilons(plan: Setting, numbers: Iterable[int], report: Progress) -> dict[int, float]:
    """Return the epsilon that is safe to publish for each number of honest users."""
    wanted = sorted(set(numbers))
    epsilons: dict[int, float] = {}
    for number in wanted:
        guarantee = guarantee_for(
            plan.randomizer.profile, number, delta=plan.target_delta, with_lower=False
        )
        epsilons[number] = guarantee.epsilon_upper
        report("accounting", len(epsilons), len(wanted))
    return epsilons
