"""``Question``: interface of all kinds of questions, and their common parts."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.collection.source.columns import Column
from shuffledp.core import labels as spelt
from shuffledp.core.checks import require_open_unit, set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Counts, Sums
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.means import MeanEstimates
from shuffledp.estimation.post_processing import POST_PROCESSING
from shuffledp.randomizers.base import LocalRandomizer, MeanRandomizer, error_at
from shuffledp.randomizers.registry import require_name

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Estimates_co = TypeVar(
        "Estimates_co",
        bound=FrequencyEstimates | MeanEstimates,
        covariant=True,
        default=FrequencyEstimates | MeanEstimates,
    )
else:
    from typing import TypeVar

    Estimates_co = TypeVar("Estimates_co", covariant=True)

Laws: TypeAlias = tuple[DummyLaw, ...]
"""Laws of the dummies of a collection; empty without dummies."""

Candidates: TypeAlias = Mapping[str, Callable[[float], LocalRandomizer]]
"""Maker of each randomizer that answers a question, from an epsilon0, by name."""


#: Targets of an interval: frequencies or means of the users, or of their population.
INTERVALS_ABOUT = ("respondents", "population")


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """Options of estimates, which are options of ``shuffledp.run``."""

    confidence: float = 0.95
    simultaneous: bool = False
    post_processing: tuple[str, ...] = ()
    interval_about: str = "respondents"

    def __post_init__(self) -> None:
        confidence = require_open_unit("confidence", self.confidence)
        if self.interval_about not in INTERVALS_ABOUT:
            known = ", ".join(INTERVALS_ABOUT)
            raise ParameterError(f"interval_about = {self.interval_about!r} is not one of {known}")
        steps: Any = self.post_processing
        if isinstance(steps, str) or not np.iterable(steps):
            raise ParameterError(f"post_processing = {steps!r}: give a list of such names")
        set_fields(self, confidence=confidence, post_processing=tuple(steps))


class Question(Protocol[Estimates_co]):
    """One kind of question with its particulars, such as the possible answers.

    Members with the same definition in most kinds are here; a kind overrides the others.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Name of the kind, for example ``"frequencies"``."""

    reads: ClassVar[tuple[str, ...]]
    """Options of `open_column` that apply to it."""

    has_one_label: ClassVar[bool] = False
    """True if each user's value is exactly one of the labels, and nothing else is guessed."""

    has_rounds: ClassVar[bool] = False
    """True if it has rounds of its own, each of which depends on results of earlier rounds."""

    stated: ClassVar[tuple[str, ...]] = ()
    """Parameters that `to_json_dict` states."""

    listed: ClassVar[str] = ""
    """Name of the parameter that holds the labels, if there is one."""

    checked_by: ClassVar[tuple[str, ...]] = ()
    """Parameters on which the check of values depends."""

    central_noise: ClassVar[str] = "{} on each total of a trusted curator"
    """What a trusted curator would do with noise of the scale `central_sensitivity`."""

    @property
    def num_rounds(self) -> int:
        """Number of rounds of its own; 1 if it has none."""
        return 1

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the estimates: the possible answers, or columns."""
        labels: tuple[str, ...] = getattr(self, self.listed)
        return labels

    @property
    def table_columns(self) -> tuple[str, ...]:
        """Columns of a table that hold a value together; empty if any one column does."""
        return ()

    @property
    def useless_error(self) -> float:
        """Standard error above which an estimate says nothing."""

    @property
    def central_sensitivity(self) -> float:
        """L1 sensitivity of all estimates, multiplied by n, to one user's value.

        The scale at epsilon = 1 of the Laplace noise that a trusted curator would add.
        """

    def candidates(self) -> Candidates:
        """Return all randomizers that can be chosen."""

    @property
    def expected_for(self) -> str:
        """Case, in a few words, in which `expected_error` holds, or the average that it is."""

    @property
    def expected_spread(self) -> float:
        """Variance of one user's value in that case, in squared units of an estimate.

        Sampling of a population adds an n-th of it to the squared standard error.
        """

    def expected_error(self, randomizer: Any, num_users: int, dummies: Laws = ()) -> float:
        """Return the expected standard error of an estimate; infinite if reports carry nothing.

        About these users, with fixed values: the error of randomization and dummies.
        """

    def dummy_candidates(self) -> Candidates:
        """Return the randomizers whose reports can be dummies; empty if there are none."""
        return {}

    def worst_error(self, randomizer: Any, num_users: int) -> float | None:  # noqa: ARG002
        """Return the largest standard error over all values; None if it is not stated."""
        return None

    def frequent_error(
        self, randomizer: Any, num_users: int, frequency: float | None = None, dummies: Laws = ()
    ) -> float | None:
        """Return the standard error of a share of the given size, the largest over all if None.

        None for means.
        """

    def shift_by_one(self, randomizer: Any, num_users: int, counts: Any = None) -> Any:
        """Return the largest change of each estimate if one of n users sends another report.

        One number, or one for each label; infinite if it is unknown. A function of the number of
        such users, if the change is not proportional to it. ``counts`` are the counts that the
        estimates were made of, if any. The randomizer's influence, if each label is a category.
        """
        del counts
        return getattr(randomizer, "influence", math.inf) / num_users

    def worst_report(self, randomizer: Any, place: int) -> NDArray[Any]:
        """Return the rows that one user can send that raise the estimate at a place most."""
        report: NDArray[Any] = randomizer.report_for(place)
        return report

    def dishonest_prospects(
        self, num_dishonest: int, *of: Any, estimates: Any = None
    ) -> dict[str, Any]:
        """Return further effects of dishonest users, JSON values by key.

        ``of``: arguments of `prospects`; ``estimates``: estimates of a result, None for a plan.
        """
        del num_dishonest, of, estimates
        return {}

    def variants(self, *, with_dummies: bool) -> tuple[Self, ...]:
        """Return the questions that a plan chooses among; all of several have prospects."""
        del with_dummies
        return (self,)

    def prospects(self, *of: Any) -> dict[str, Any]:
        """Return further expected values of a plan, JSON values by key.

        ``of`` are the randomizer, the number of users, and the laws of the dummies.
        """
        del of
        return {}

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` unless the steps exist and fit the estimates."""

    @property
    def no_values(self) -> Any:
        """Values of no users, in the form for randomizers."""

    def read(self, source: tables.Source) -> Column:
        """Return columns of a table, checked."""

    def source_of(self, values: Any) -> tables.Source:
        """Return values in memory as columns."""
        if names := self.table_columns:
            return tables.source_of_columns(values, names)
        return tables.source_of_values(getattr(self, "name", "values"), values)

    def column(self, values: Any, *, missing: str = "error") -> Column:
        """Return values in memory as a checked column; ``missing`` as for `run`."""
        reading = tables.Reading(missing=missing)
        return self.read(replace(self.source_of(values), reading=reading))

    def value_of_one(self, answer: Any) -> Any:
        """Return one user's answer, on a device, as a checked block of one row."""

    @property
    def checked_for(self) -> tuple[object, ...]:
        """Key of the check that a column of values needs."""
        return (self.kind, *(getattr(self, name) for name in self.checked_by))

    def estimate(self, randomizer: Any, aggregate: Any, options: EstimateOptions) -> Estimates_co:
        """Return the estimates of one collection."""

    def describe(self) -> str:
        """Return a few words for a heading, for example ``"3 answers"``."""

    def to_json_dict(self) -> dict[str, object]:
        """Return kind and particulars as JSON values; labels are stored apart, as ``domain``."""
        given = {name: getattr(self, name) for name in ("kind", *self.stated)}
        return {name: list(each) if type(each) is tuple else each for name, each in given.items()}

    @classmethod
    def from_json(cls, particulars: Any, labels: Iterable[str]) -> Self:
        """Return the question of these particulars and `labels`."""
        given = {name: particulars[name] for name in cls.stated}
        if cls.listed:
            given[cls.listed] = labels
        return cls(**given)


def has_parts(question: Question) -> bool:
    """Return True if a user's value is a list, with parts separated by commas in text."""
    return np.ndim(question.no_values) > 1


def require_column(question: Question, column: object) -> None:
    """Raise `DomainError` unless the column was checked for this very question."""
    held = getattr(column, "question", None)
    if held is None or held.checked_for != question.checked_for:
        raise DomainError(
            f"the values were not checked for {question.describe()}: open them with that question"
        )


def candidates_of(makers: Mapping[str, Callable[..., Any]], **parameters: object) -> Candidates:
    """Return registered randomizers as candidates, with all parameters but epsilon0 fixed."""
    return {name: partial(_made, makers, name, parameters) for name in makers}


def _made(makers: Any, name: str, parameters: dict[str, object], epsilon0: float) -> Any:
    """Return a randomizer, whose class is loaded only now; named so that plans can be pickled."""
    return makers[name](**parameters, epsilon0=epsilon0)


def chosen_candidates(
    question: Question, randomizer: str | None, *, with_dummies: bool = False
) -> Candidates:
    """Return the randomizers that answer a question, or only the named one."""
    makers = question.dummy_candidates() if with_dummies else question.candidates()
    if not makers:
        raise ParameterError(f"dummies: there are none for {question.kind}; leave them out")
    if randomizer is None:
        return makers
    what = f"{question.kind} with dummies" if with_dummies else question.kind
    require_name(randomizer, makers, f", which are those for {what}")
    return {randomizer: makers[randomizer]}


class Shares(Question[FrequencyEstimates]):
    """Common parts of questions about shares of users."""

    __slots__ = ()

    reads: ClassVar[tuple[str, ...]] = ("missing", "other")

    #: Above this a 95 % interval is wider than [0, 1], and says nothing.
    useless_error: ClassVar[float] = 0.25

    @property
    def expected_spread(self) -> float:
        """Variance of one user's indicator of an answer, if one user in k gives that answer."""
        return (len(self.labels) - 1.0) / len(self.labels) ** 2

    def expected_error(self, randomizer: Any, num_users: int, dummies: Laws = ()) -> float:
        """Return the standard error of a share of 1/k, for k labels.

        If each user has one of them, that is the root mean square over all, whatever the data: the
        variance is linear in the share, and shares sum to one.
        """
        return error_at(randomizer, num_users, 1.0 / len(self.labels), dummies)

    def frequent_error(
        self, randomizer: Any, num_users: int, frequency: float | None = None, dummies: Laws = ()
    ) -> float | None:
        """Return the standard error of a share of the given size, the largest over all if None.

        The variance is linear in the share.
        """
        shares = (0.0, 1.0) if frequency is None else (frequency,)
        return max(error_at(randomizer, num_users, share, dummies) for share in shares)

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` unless all steps are known."""
        if unknown := [step for step in steps if step not in POST_PROCESSING]:
            known = ", ".join(POST_PROCESSING)
            raise ParameterError(f"post-processing {unknown[0]!r} is not one of {known}")

    def estimate(
        self, randomizer: Any, aggregate: Counts, options: EstimateOptions
    ) -> FrequencyEstimates:
        """Return the share of users with each answer, after the steps of post-processing."""
        self.require_post_processing(options.post_processing)
        estimates: FrequencyEstimates = randomizer.estimate(
            aggregate, confidence=options.confidence, simultaneous=options.simultaneous
        )
        for step in options.post_processing:
            estimates = POST_PROCESSING[step](estimates)
        return estimates


class Means(Question[MeanEstimates]):
    """Common parts of questions about means."""

    __slots__ = ()
    reads: ClassVar[tuple[str, ...]] = ("missing", "clip")

    def frequent_error(self, *_: Any) -> None:
        """Return None: a mean is no share."""
        return

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step."""
        if steps:
            raise ParameterError(f"post-processing {', '.join(steps)}: means are left as estimated")

    def expected_error(self, randomizer: Any, num_users: int, dummies: Laws = ()) -> float:
        """Return the standard error of a mean; of vectors the root mean square over coordinates.

        Variances of users add: for values other than in `expected_for` the error lies between the
        errors for the best and for the worst single value.
        """
        del dummies  # there are none for them
        if randomizer.epsilon0 == 0.0:
            return math.inf
        return math.sqrt(randomizer.mean_report_variance() / num_users)

    def estimate(
        self, randomizer: MeanRandomizer, aggregate: Sums, options: EstimateOptions
    ) -> MeanEstimates:
        """Return the mean; for vectors the mean of each coordinate."""
        self.require_post_processing(options.post_processing)
        return randomizer.estimate(
            aggregate, confidence=options.confidence, simultaneous=options.simultaneous
        )


def checked_answers(
    domain: Iterable[object], what: str = "domain", remedy: str = "domain=[...]"
) -> tuple[str, ...]:
    """Return the labels of at least two possible answers; ``remedy`` is where to list more."""
    spelt.require_list(what, domain)
    return spelt.require_two_answers(spelt.checked_domain(domain, what), what, remedy)
