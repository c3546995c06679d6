"""``Question``: what planning and running need to know of what is asked."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from shuffledp.collection.source.columns import Column
from shuffledp.collection.source.tables import Source
from shuffledp.core.checks import require_open_unit
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.randomizers.base import LocalRandomizer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from shuffledp.estimation.frequencies import FrequencyEstimates
    from shuffledp.estimation.means import MeanEstimates

    Estimates_co = TypeVar(
        "Estimates_co",
        bound=FrequencyEstimates | MeanEstimates,
        covariant=True,
        default=FrequencyEstimates | MeanEstimates,
    )
else:
    from typing import TypeVar

    Estimates_co = TypeVar("Estimates_co", covariant=True)

Candidates: TypeAlias = Mapping[str, Callable[[float], LocalRandomizer]]
"""Name of each randomizer that answers a question, and what makes it for an epsilon0."""


#: Whose frequencies or means an interval holds.
INTERVALS_ABOUT = ("respondents", "population")


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """How to estimate; the fields are options of ``shuffledp.run``."""

    confidence: float = 0.95
    interval: str = "wilson"
    simultaneous: bool = False
    post_processing: tuple[str, ...] = ()
    interval_about: str = "respondents"

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", require_open_unit("confidence", self.confidence))
        if self.interval_about not in INTERVALS_ABOUT:
            known = ", ".join(INTERVALS_ABOUT)
            raise ParameterError(f"interval_about = {self.interval_about!r} is not one of {known}")
        steps: Any = self.post_processing
        if isinstance(steps, str):
            raise ParameterError(f"post_processing = {steps!r}: give a list of such names")
        object.__setattr__(self, "post_processing", tuple(steps))


class Question(Protocol[Estimates_co]):
    """One kind of question with its particulars, such as the possible answers."""

    @property
    def kind(self) -> str:
        """Name of the kind, for example ``"frequencies"``."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What is estimated, one name an estimate: the possible answers, or columns."""

    @property
    def useless_error(self) -> float:
        """A standard error with which an estimate says nothing."""

    @property
    def central_sensitivity(self) -> float:
        """L1 distance by which one user's value can move all n-fold estimates together.

        The scale at epsilon = 1 of the Laplace noise that a trusted curator would add.
        """

    def candidates(self) -> Candidates:
        """Return all randomizers that can be chosen."""

    @property
    def expected_for(self) -> str:
        """What `expected_error` is averaged over, or for which case it is, in a few words."""

    @property
    def expected_spread(self) -> float:
        """Variance of one user's value in that case, in squared units of an estimate.

        Sampling of a population adds an n-th of it to the squared standard error.
        """

    def expected_error(self, randomizer: Any, num_users: int) -> float:
        """Return the standard error to expect of an estimate; infinite if reports say nothing.

        Of these users, their values held fixed: the randomization alone.
        """

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` unless the steps exist and make sense for the estimates."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Which options of `open_column` make sense for it."""

    def read(self, source: Source, report: Progress = no_progress, **reading: Any) -> Column:
        """Return columns of a table, checked, read as these options say."""

    def column(self, values: Any, *, missing: str = "error") -> Column:
        """Return values that are in memory as a checked column; ``missing`` as for `run`."""

    def value_of_one(self, answer: Any) -> Any:
        """Return the answer of one user, on a device, as a checked value of a block of one row."""

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What a column of values has to be checked for."""

    def estimate(self, randomizer: Any, aggregate: Any, options: EstimateOptions) -> Estimates_co:
        """Return the estimates of one collection."""

    def describe(self) -> str:
        """Return a few words for a heading, for example ``"3 answers"``."""

    def to_json_dict(self) -> dict[str, object]:
        """Return the particulars, JSON values only; ``kind`` is one of them."""


def require_column(question: Question, column: object) -> None:
    """Raise `DomainError` unless the column was checked for this very question."""
    if getattr(column, "checked_for", None) != question.checked_for:
        raise DomainError(
            f"the values were not checked for {question.describe()}: open them with that question"
        )


def candidates_of(makers: Mapping[str, Callable[..., Any]], **parameters: object) -> Candidates:
    """Return registered randomizers as candidates, once all but their epsilon0 is settled."""

    def with_parameters(make: Callable[..., Any]) -> Callable[[float], Any]:
        return lambda epsilon0: make(**parameters, epsilon0=epsilon0)

    return {name: with_parameters(make) for name, make in makers.items()}


def chosen_candidates(question: Question, randomizer: str | None) -> Candidates:
    """Return the randomizers that answer a question, or the one of that name."""
    makers = question.candidates()
    if randomizer is None:
        return makers
    if randomizer not in makers:
        nearest = difflib.get_close_matches(randomizer.lower(), makers, n=1, cutoff=0.0)[0]
        raise ParameterError(
            f"randomizer {randomizer!r} is not one of {', '.join(makers)}, which are those for "
            f"{question.kind}: did you mean {nearest!r}?"
        )
    return {randomizer: makers[randomizer]}
