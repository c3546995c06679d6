"""Running a plan on data, the only module that handles values, reports and guarantees together.

One machine simulates all users, the shuffler and the analyzer, as a stream. The three are kept
apart as in a deployment: values are randomized block by block, each once; the reports are shuffled
as a whole, as chosen; the analyzer sees shuffled reports only.
"""

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeAlias, TypeVar

from numpy.typing import NDArray

from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.collection import dummies as added
from shuffledp.collection.cautions import plan_cautions, without_shuffler
from shuffledp.collection.counting import Engine, Tally, count_all
from shuffledp.collection.liars import DishonestUsers, attack_of, require_dishonest, require_number
from shuffledp.collection.plan import Plan, log_collection, require_plan
from shuffledp.collection.questions.question import EstimateOptions, Question, require_column
from shuffledp.collection.result import Result
from shuffledp.collection.shuffling import UNIFORM, Shuffling, Stage
from shuffledp.collection.source.columns import Column
from shuffledp.collection.source.tables import require_users
from shuffledp.collection.source.weights import Weights, drawn
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Guarantee
from shuffledp.core.checks import require_at_least
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import BlockEntropy, Entropy
from shuffledp.core.errors import DataError, ParameterError, PlanWarning
from shuffledp.core.progress import Progress, no_progress
from shuffledp.core.reports import Aggregate, Counts, Reports, Sums
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.means import MeanEstimates
from shuffledp.randomizers.base import LocalRandomizer

if TYPE_CHECKING:
    from shuffledp.collection.report_files import ReportFile

EstimatesT = TypeVar("EstimatesT", bound=FrequencyEstimates | MeanEstimates)

ReportSink: TypeAlias = Callable[[Iterator[Reports]], None]
"""Consumes a stream of shuffled reports, for example to store them."""

_OF_TABLE = (
    "Whoever holds the true answers keeps them secret: each was {} by the one program that read "
    "them all."
)


def run(  # noqa: PLR0913  # one keyword an option
    plan: Plan[EstimatesT],
    values: Any,
    *,
    weights: Any = None,
    missing: str = "error",
    strict: bool = False,
    shuffling: Shuffling | None = None,
    seed: SupportsIndex | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
    interval_about: str = "respondents",
    post_processing: Sequence[str] = (),
    dishonest: SupportsIndex | None = None,
    sink: ReportSink | None = None,
    scratch: str | PathLike[str] | None = None,
    on_progress: Progress | None = None,
    engine: Engine = map,
) -> Result[EstimatesT]:
    """Randomize each value once, shuffle all reports, and estimate, as planned.

    Parameters
    ----------
    plan : Plan
        The plan. If the number of values differs from the expected number of users, the guarantee
        is recomputed for the actual number, and a warning states a shortfall.
    values : column or array-like
        An opened column, such as ``shuffledp.collection.open_column`` returns, or values in memory,
        one row a user: a list, or an array or series of NumPy, pandas, polars or Arrow.
    weights : Weights or array-like, optional
        For values in memory: the public weight of each user, by which users are drawn, as in
        ``shuffledp.Weights``; plan for the number drawn. All users have a value then.
    missing : {"error", "drop", "category"}
        Treatment of missing values in memory (None, NaN, empty text): refuse them, leave them out,
        or count them as the answer ``"missing"``, which the plan's domain has to list.
    strict : bool
        Refuse, before anything is randomized, if the guarantee falls short of the plan's.
    shuffling : Shuffling, optional
        The shuffle, if not the planned one: the guarantee is then the guarantee of this shuffle,
        and the result warns of a shortfall.
    seed : int, optional
        For a reproducible simulation, which protects nobody and states so.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    simultaneous : bool
        True if all intervals must hold at once with that confidence, rather than each alone.
    interval_about : {"respondents", "population"}
        Target of the intervals: these users, or a population that they are a random sample of. The
        estimates hold both intervals. With weights always the population's intervals, which hold
        for the weight of all users, too.
    post_processing : sequence of str
        Names of steps applied to the estimates, for frequencies; none by default.
    dishonest : int, optional
        Number of users, drawn at random, who send the reports that raise the estimate of the first
        label most: for simulations, whose result states the change. In a search for texts they
        have a false text found, "!". Takes two passes.
    sink : callable, optional
        Called with the shuffled reports, all of which it must consume.
    scratch : path, optional
        Folder for scratch files when reports do not fit in memory.
    on_progress : callable, optional
        Called with the stage, the users done and the users in total.
    engine : callable, optional
        Executor of the blocks: ``map`` of a `~shuffledp.engines.processes.Processes`. With a seed
        the result does not depend on it, to the last digit.

    Returns
    -------
    Result
        Unbiased estimates with the guarantee of exactly this run. Cautions about the data are
        among its warnings and its assumptions.

    Raises
    ------
    DomainError
        If the values were checked for a question other than the plan's.
    DataError
        If the values cannot be used, or changed since the column was opened; or with ``strict`` if
        the guarantee falls short.

    Warns
    -----
    PlanWarning
        If the guarantee falls short of the plan's.

    Notes
    -----
    Cost: one pass over the data after the one that opened the column.

    Examples
    --------
    >>> from shuffledp.collection.plan import plan
    >>> from shuffledp import Categories
    >>> asked = plan(Categories(["yes", "no"]), num_users=1000, epsilon=1.0, delta=1e-6)
    >>> run(asked, ["yes"] * 300 + ["no"] * 700, seed=1).num_users
    1000
    """
    require_plan(plan)
    column = _column(plan.question, values, weights, missing=missing, seed=seed)
    require_column(plan.question, column)
    if column.weights is not None:  # their error includes the error of the draw
        interval_about = "population"
    options = _options(plan, confidence, simultaneous, post_processing, interval_about)
    shuffling = plan.shuffling if shuffling is None else shuffling
    guarantee, shortfall = _actual_guarantee(plan, column.num_users, shuffling, strict=strict)
    liars = require_dishonest(dishonest, column.num_users, seed)
    if plan.question.has_rounds and (sink is not None or shuffling != UNIFORM):
        raise ParameterError(
            f"{'sink for saved reports' if sink else f'shuffling = {shuffling.name}'}: "
            f"{plan.question.kind} has a uniform shuffle in each of several rounds, and keeps no "
            "reports; leave that out"
        )
    how: Any = {"shuffling": shuffling, "dummies": plan.dummies}
    how |= {"scratch": scratch, "on_progress": on_progress}
    how["engine"] = map if liars else engine  # liars are drawn among all users in order
    law, entropy = plan.randomizer, Entropy.choose(seed)
    if liars:
        honest = _gathered(plan, column, options, law, entropy=Entropy.choose(seed), **how)
        law = DishonestUsers(plan.question, law, liars, num_users=column.num_users, seed=seed)
    done = _gathered(plan, column, options, law, entropy=entropy, sink=sink, **how)
    attack = attack_of(done, honest) if liars else None
    plan, estimates, aggregate = done
    is_bare = math.isinf(plan.randomizer.epsilon0)
    told = _OF_TABLE.format("shuffled among dummies" if is_bare else "randomized and shuffled")
    held = (*((told,) * (not entropy.is_simulation)), *getattr(law, "assumptions", ()))
    return _result(
        plan,
        estimates.for_all_users(column.num_users),
        shuffling,
        guarantee.assuming(*held, *column.cautions),
        (*shortfall, *column.cautions, *getattr(estimates, "cautions", ())),
        what="run",
        aggregate=aggregate,
        num_seen=estimates.num_users,
        report=on_progress or no_progress,
        interval_about=options.interval_about,
        collected_by="simulation" if entropy.is_simulation else "table",
        seed=None if seed is None else int(seed),
        dishonest=liars or None,
        attack=attack,
        weights=column.weights,
    )


def _gathered(
    plan: Plan[EstimatesT],
    column: Column,
    options: EstimateOptions,
    law: Any,
    *,
    entropy: Entropy,
    sink: ReportSink | None = None,
    **how: Any,
) -> tuple[Plan[EstimatesT], Any, Any]:
    """Return the plan, with the answers that were found, the estimates and the aggregate."""
    gather: Callable[..., Any] = partial(collect, law, entropy=entropy, **how)
    if plan.question.has_rounds:
        from shuffledp.collection.discovery import discover

        liars = law if isinstance(law, DishonestUsers) else None
        return discover(plan, column, entropy, gather, options, liars=liars)
    aggregate = gather(column.blocks(), num_users=column.num_users, sink=sink)
    return plan, plan.question.estimate(plan.randomizer, aggregate, options), aggregate


def estimate(  # noqa: PLR0913  # one keyword an option
    reports: "str | PathLike[str] | ReportFile | Reports | Aggregate | Collected | Iterable[Any]",
    plan: Plan[EstimatesT],
    *,
    num_users: SupportsIndex | None = None,
    missing: str = "error",
    strict: bool = False,
    shuffling: Shuffling | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
    interval_about: str = "respondents",
    post_processing: Sequence[str] = (),
    dishonest: SupportsIndex | None = None,
    on_progress: Progress | None = None,
    engine: Engine = map,
    **ways: Any,
) -> Result[EstimatesT]:
    """Estimate from reports that have been randomized and shuffled already.

    Parameters
    ----------
    reports : path, ReportFile, Reports, Counts, Sums, or iterable of Reports
        One report a user, made by the plan's randomizer, at least two: a Parquet or text file with
        a column ``report``, or a folder of Parquet files, as ``shuffledp.collection.open_reports``
        reads it, or in memory; or their counts, which know their dummies, or their sums.
    plan : Plan
        The plan. If the number of reports differs from the expected number of users, the guarantee
        is recomputed for the actual number, and a warning states a shortfall.
    num_users : int, optional
        Number of users' reports if the plan has dummies, as reported by the shuffler; by default as
        stated in the file of `run`.
    missing : {"error", "drop"}
        Treatment of rows of a file without a report; with dummies none may be left out.
    strict : bool
        Refuse if the guarantee falls short of the plan's.
    shuffling, confidence, simultaneous, interval_about, post_processing
        As for `run`.
    dishonest : int, optional
        Number of users for whom the result states the largest change of an estimate that they can
        cause; by default one of 100.
    on_progress, engine
        As for `run`; pieces of Parquet files are read by the worker that counts them.
    csv_separator, header, missing_texts
        Ways of reading text, as for ``shuffledp.collection.open_column``.

    Returns
    -------
    Result
        Unbiased estimates with the guarantee of a shuffle of these reports. It assumes that each
        was drawn by its user once, with fresh randomness, and that nobody saw them unshuffled.
        Whether they come from a simulation is unknown, unless the file of `run` states it.

    Raises
    ------
    ParameterError
        If another law made the reports; if ``num_users`` is missing, or given without dummies.
    DataError
        If there are fewer than two reports, or a file cannot be used; if the remaining number of
        dummies is next to impossible; or with ``strict`` if the guarantee falls short.

    Warns
    -----
    PlanWarning
        If the guarantee falls short of the plan's.

    Examples
    --------
    >>> import numpy as np
    >>> from shuffledp.collection.plan import plan
    >>> from shuffledp import Categories
    >>> asked = plan(Categories(["yes", "no"]), num_users=1000, epsilon=1.0, delta=1e-6)
    >>> codes = np.array([0] * 300 + [1] * 700)
    >>> drawn = asked.randomizer.randomize(codes, Entropy.from_seed(1))
    >>> estimate(drawn, asked).num_users
    1000
    """
    require_plan(plan)
    options = _options(plan, confidence, simultaneous, post_processing, interval_about)
    if isinstance(reports, str | PathLike):
        from shuffledp.collection.report_files import open_reports

        reports = open_reports(reports, plan=plan, missing=missing, **ways)
    given = reports
    if not isinstance(given, Collected):
        by = getattr(given, "collected_by", "devices")
        given = Collected(given, by, (drawn_by_users(plan.randomizer),), what="estimate")
    reports = given.aggregate
    is_counted = isinstance(reports, Counts | Sums)
    known = getattr(reports, "num_reports" if is_counted else "num_users", None)
    told = added.told_users(plan.dummies, known, num_users)
    if plan.dummies and missing == "drop":
        raise ParameterError("missing = 'drop' would leave out dummies: give every report")
    aggregate: Any = reports
    if not is_counted:
        how: Any = {"report": on_progress or no_progress, "num_users": plan.num_users}
        aggregate = count_all(plan.randomizer, reports, engine, **how)
        if aggregate is None:
            require_users(0, "there are 0 reports")
        aggregate = added.less_dummies(aggregate, plan.dummies, num_users=told)
    num_reports = aggregate.num_reports if told is None else told
    if not (num_reports and added.protect_alone(plan.dummies)):
        require_users(num_reports, f"there are {num_reports} reports")
    shuffling = plan.shuffling if shuffling is None else shuffling
    guarantee, shortfall = _actual_guarantee(plan, num_reports, shuffling, strict=strict)
    estimates = plan.question.estimate(plan.randomizer, aggregate, options)
    if plan.question.has_rounds:  # the texts found are the labels
        asked: Any = plan.question
        plan = replace(plan, question=replace(asked, found=getattr(estimates, "texts", ())))
    number = estimates.num_users
    liars = None if dishonest is None else require_number(dishonest, number)
    how = {"what": given.what, "collected_by": given.collected_by, "seed": given.seed}
    how |= {"interval_about": options.interval_about, "dishonest": liars, "num_seen": number}
    guarantee = guarantee.assuming(*given.assumptions, *getattr(plan.randomizer, "assumptions", ()))
    notes = (*shortfall, *given.cautions)
    return _result(plan, estimates, shuffling, guarantee, notes, aggregate=aggregate, **how)


def _column(
    question: Question, values: Any, weights: Any, *, missing: str, seed: SupportsIndex | None
) -> Column:
    """Return the column of values, opened already or in memory, of the users drawn by weight."""
    is_open = hasattr(values, "blocks")
    if is_open and weights is not None:
        raise ParameterError(
            "weights go with values in memory: open a table with weight=..., its column of them"
        )
    column: Column = values if is_open else question.column(values, missing=missing)
    if weights is not None:
        given = weights if isinstance(weights, Weights) else Weights(weights)
        column = drawn(column, given, seed)
    return column


class Collected(NamedTuple):
    """Reports, or their counts if an engine drew them from a table, with assumptions about them."""

    aggregate: Any
    collected_by: str
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    seed: int | None = None
    what: str = "run"


def drawn_by_users(law: LocalRandomizer) -> str:
    """Return the assumption about reports that others made."""
    if math.isinf(law.epsilon0):
        return "Each report is one user's answer itself, sent once, and nobody saw which is whose."
    return (
        f"Each report was drawn once by its user's {law.name} with epsilon0 = {law.epsilon0:.6g} "
        "and randomness of its own, and nobody saw which is whose."
    )


def _options(plan: Plan, *chosen: Any) -> EstimateOptions:
    """Return checked options, before anything is randomized."""
    options = EstimateOptions(*chosen)
    plan.question.require_post_processing(options.post_processing)
    return options


def _result(
    plan: Plan[EstimatesT],
    estimates: EstimatesT,
    shuffling: Shuffling,
    guarantee: Guarantee,
    notes: tuple[str, ...],
    *,
    what: str,
    aggregate: Any,
    num_seen: int,
    report: Progress = no_progress,
    **facts: Any,
) -> Result[EstimatesT]:
    """Return the result, and log it."""
    local = without_shuffler(plan.question, plan.randomizer, rounds=guarantee.rounds)
    num_users, delta = estimates.num_users, plan.target_delta
    cautions = plan_cautions(guarantee.epsilon_upper, delta, num_users, local)
    # A stream that neither the randomizer nor the shuffler of the run draws from.
    entropy = Entropy.choose(facts.get("seed")).spawn().spawn().spawn()
    profile = plan.randomizer.profile
    shown = shuffling.facts(
        profile, guarantee, num_released=aggregate.num_reports, entropy=entropy, on_progress=report
    )
    result = Result(
        num_users=num_users,
        question=plan.question,
        randomizer=plan.randomizer,
        guarantee=guarantee,
        estimates=estimates,
        target_epsilon=plan.target_epsilon,
        target_delta=delta,
        warnings=(*notes, *cautions, *shuffling.cautions(profile, guarantee, shown)),
        facts=shown,
        shuffling=shuffling,
        dummies=plan.dummies,
        shift_by_one=plan.question.shift_by_one(plan.randomizer, num_seen, aggregate),
        num_dummies=getattr(aggregate, "num_dummies", 0),  # sums have none
        without_dummies=added.without_dummies(
            plan, num_users, shuffling, rounds=plan.question.num_rounds
        ),
        **facts,
    )
    what = "simulation" if result.is_simulation else what
    log_collection(what, num_users, plan.randomizer, guarantee, shuffling.name)
    return result


def collect(  # noqa: PLR0913  # as `run`
    randomizer: LocalRandomizer,
    blocks: Iterable[Any],
    *,
    num_users: int,
    entropy: Entropy,
    shuffling: Shuffling = UNIFORM,
    sink: ReportSink | None = None,
    scratch: str | PathLike[str] | None = None,
    on_progress: Progress | None = None,
    dummies: tuple[DummyLaw, ...] = (),
    engine: Engine = map,
) -> Aggregate:
    """Randomize every value once, shuffle all reports with the dummies, and aggregate them.

    The sink receives reports and dummies. One pass over the values and one over the reports; memory
    is bounded by the shuffler's and a few blocks. Each block has its own random words, so that
    reports do not depend on the engine. Scratch files hold reports only, and vanish at exit.
    """
    require_at_least("num_users", num_users, 1)
    report = on_progress or no_progress
    with ExitStack() as stack:
        shuffle: Stage | None = None
        num_randomized = 0
        places = map(entropy.for_block, count())
        for data in engine(partial(_randomized, randomizer), zip(blocks, places, strict=False)):
            if shuffle is None:
                shuffle = shuffling.stage(
                    dtype=data.dtype,
                    row_shape=data.shape[1:],
                    entropy=entropy.spawn(),
                    directory=scratch,
                )
                stack.enter_context(shuffle)
            shuffle.add(data)
            num_randomized += len(data) // max(len(dummies), 1)  # one report a user for each law
            report("randomizing", num_randomized, num_users)
        if shuffle is None or num_randomized != num_users:
            raise DataError(f"blocks held {num_randomized:,} values, not num_users = {num_users:,}")
        if dummies:
            own = entropy.spawn()
            shuffle.add(added.draw_dummies(randomizer, dummies, own, num_users=num_users))
        fingerprint = randomizer.fingerprint
        stream = (Reports(data=data, fingerprint=fingerprint) for data in shuffle)
        if sink is None:
            aggregate = count_all(randomizer, stream, engine, report=report, num_users=num_users)
        else:
            tally = Tally(randomizer, report, num_users)
            passing = tally.of(stream)
            sink(passing)
            deque(passing, maxlen=0)  # reports that the sink left
            aggregate = tally.found
        released: Aggregate = added.less_dummies(aggregate, dummies, num_users=num_users)
        return released


def _randomized(randomizer: LocalRandomizer, block: tuple[Any, BlockEntropy]) -> NDArray[Any]:
    """Return the reports of a block of values, drawn from the block's own stream."""
    values, entropy = block
    return randomizer.randomize(values, entropy.open()).data


def _actual_guarantee(
    plan: Plan, num_users: int, shuffling: Shuffling, *, strict: bool
) -> tuple[Guarantee, tuple[str, ...]]:
    """Return the guarantee for the actual users and shuffle, and sentences about it.

    The plan's own guarantee is only for the plan's own shuffle and number of users. A guarantee
    that falls short of it raises a warning, or with ``strict`` an error.
    """
    law, delta, target = plan.randomizer.profile, plan.target_delta, plan.target_epsilon
    is_repeated = plan.rounds > 1 and not plan.question.has_rounds
    added.require_possible(plan.dummies, shuffling)
    is_same = shuffling is plan.shuffling or shuffling == plan.shuffling == UNIFORM
    if is_repeated and shuffling != UNIFORM:
        raise ParameterError(
            f"rounds = {plan.rounds}: a collection that is repeated is accounted for uniform "
            f"shuffles only; plan one collection with the {shuffling.name} shuffler"
        )
    is_alone = added.protect_alone(plan.dummies)
    if is_same and (is_alone or num_users == plan.num_users) and not is_repeated:
        return plan.guarantee, ()
    users, how = added.accounted(plan.dummies, num_users)
    guarantee = together = shuffling.guarantee(law, users, delta=delta, **how)
    if is_repeated:
        release = ShuffledRelease(profile=law, num_users=users, **how)
        together = guarantee_of(release * plan.rounds, delta=delta)
    falls_short = together.epsilon_upper > target
    # Six digits round off at most a relative 5e-6.
    found = f"{together.epsilon_upper * (1.0 + 6e-6):.6g}"
    reason = f"{plan.num_users:,} users were planned and {num_users:,} answered"
    if is_repeated:
        sentence = (
            f"This is one of {plan.rounds:,} planned rounds. If all are like this one, together "
            f"they give epsilon <= {found} at delta <= {delta:g}."
        )
        if falls_short:
            sentence += f" That is above the {target:.6g} planned, since {reason}."
    else:
        if not falls_short:
            return guarantee, ()
        if not is_same:
            reason = (
                f"The plan was for the {plan.shuffling.name} shuffler and {plan.num_users:,} "
                f"users, and this was the {shuffling.name} shuffler with {num_users:,}"
            )
        sentence = f"{reason}, so epsilon is {found} rather than {target:.6g}."
    if falls_short and strict:
        raise DataError(f"{sentence} strict=True refuses that: plan for the users that there are")
    if falls_short:
        warnings.warn(sentence, PlanWarning, stacklevel=3)
    return guarantee, (sentence,)
