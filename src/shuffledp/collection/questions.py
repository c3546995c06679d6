"""What can be asked: shares of answers, words and sets of answers; means of numbers and vectors.

Each knows the randomizers that answer it, the columns that hold it, and its estimates.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.question import Candidates, EstimateOptions, Question, candidates_of
from shuffledp.collection.source import columns, single, tables
from shuffledp.collection.source.columns import Ball, Column, Range
from shuffledp.collection.source.tables import Source
from shuffledp.core import labels
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.core.reports import Counts, Sums
from shuffledp.estimation.frequencies import FrequencyEstimates, expected_standard_error
from shuffledp.estimation.means import MeanEstimates
from shuffledp.estimation.post_processing import POST_PROCESSING
from shuffledp.randomizers import answer_sets, registry
from shuffledp.randomizers import number_randomizer as accuracy
from shuffledp.randomizers.base import CategoryRandomizer, MeanRandomizer
from shuffledp.randomizers.keyed_hash import new_key, require_key
from shuffledp.randomizers.sketches import CountMeanSketch


class _Shares:
    """What questions about shares of users have in common."""

    __slots__ = ()

    #: With a larger standard error a 95 % interval is wider than [0, 1]: it says nothing.
    useless_error: ClassVar[float] = 0.25

    @property
    def expected_spread(self: Question) -> float:
        """That of an answer that one user in k gives, the root mean square over all answers."""
        return (len(self.labels) - 1.0) / len(self.labels) ** 2

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
            aggregate,
            confidence=options.confidence,
            interval=options.interval,
            simultaneous=options.simultaneous,
            **self._asked(),
        )
        for step in options.post_processing:
            estimates = POST_PROCESSING[step](estimates)
        return estimates

    def _asked(self) -> dict[str, Any]:
        """Return what else the randomizer has to know."""
        return {}


class _Means:
    """What questions about means have in common."""

    __slots__ = ()
    reads: ClassVar[tuple[str, ...]] = ("missing", "clip")

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step."""
        if steps:
            raise ParameterError(f"post-processing {', '.join(steps)}: means are left as estimated")

    def expected_error(self, randomizer: MeanRandomizer, num_users: int) -> float:
        """Return the standard error of a mean; of vectors the root mean square over coordinates."""
        if randomizer.epsilon0 == 0.0:
            return math.inf
        return accuracy.expected_standard_error(randomizer, num_users=num_users)

    def estimate(
        self, randomizer: MeanRandomizer, aggregate: Sums, options: EstimateOptions
    ) -> MeanEstimates:
        """Return the mean, of vectors that of each coordinate."""
        self.require_post_processing(options.post_processing)
        return randomizer.estimate(
            aggregate, confidence=options.confidence, simultaneous=options.simultaneous
        )


@dataclass(frozen=True, slots=True, init=False)
class Categories(_Shares):
    """Each user has exactly one of k answers; the share of each is asked for.

    Parameters
    ----------
    domain : iterable
        The possible answers, at least two, all different; each becomes a label, 1 as ``"1"``.
    own : tuple of callables
        Randomizer classes that are not registered, to choose among instead; each is called with
        ``k`` and ``epsilon0``.

    Raises
    ------
    DomainError
        If there are fewer than two answers, or one is repeated.
    """

    kind: ClassVar[str] = "frequencies"
    reads: ClassVar[tuple[str, ...]] = ("missing", "other")
    central_sensitivity: ClassVar[float] = 2.0  # replacing one answer changes two counts by one
    expected_for: ClassVar[str] = "root mean square over the answers"

    domain: tuple[str, ...]
    own: tuple[Callable[..., CategoryRandomizer], ...] = field(repr=False)

    def __init__(
        self, domain: Iterable[object], *, own: Iterable[Callable[..., CategoryRandomizer]] = ()
    ) -> None:
        object.__setattr__(self, "domain", _answers(domain))
        object.__setattr__(self, "own", tuple(own))

    @property
    def labels(self) -> tuple[str, ...]:
        """The possible answers."""
        return self.domain

    def candidates(self) -> Candidates:
        """Return all registered randomizers of categories, or the user's own ones."""
        own = {_name_of(make): make for make in self.own}
        return candidates_of(own or registry.RANDOMIZERS, domain_size=len(self.domain))

    def expected_error(self, randomizer: CategoryRandomizer, num_users: int) -> float:
        """Return the standard error of a frequency, root mean square over the answers.

        The variance is linear in the frequency and frequencies sum to one, so this mean is the
        variance at 1/k, whatever the data.
        """
        return _error_at(randomizer.support_probabilities, num_users, 1.0 / randomizer.domain_size)

    def column(self, values: Iterable[object], *, missing: str = "error") -> Column:
        """Return answers that are in memory as a checked column."""
        if missing == "category" and columns.MISSING_LABEL not in self.domain:
            raise DomainError(
                "missing='category' counts rows without an answer as 'missing', which is not in "
                "the domain: list it there, and plan again"
            )
        return self.read(tables.source_of_values("answer", values), missing=missing)

    def read(self, source: Source, report: Progress = no_progress, **reading: Any) -> Column:
        """Return a column of answers, checked."""
        return columns.answers(source, self.domain, report, **reading)

    def value_of_one(self, answer: object) -> NDArray[np.int32]:
        """Return the code of one user's answer, shape (1,)."""
        return single.code_of(answer, self.domain)

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What a column of answers has to be checked for."""
        return ("answers", self.domain)

    def describe(self) -> str:
        """Return the number of answers."""
        return f"{len(self.domain)} answers"

    def to_json_dict(self) -> dict[str, object]:
        """Return the kind; the answers stand apart, as ``domain``."""
        return {"kind": self.kind}


@dataclass(frozen=True, slots=True)
class Mean(_Means):
    """Each user has one number between two limits; the mean is asked for.

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
    expected_for: ClassVar[str] = "for values spread evenly over the range"

    low: float
    high: float
    _: KW_ONLY
    name: str = "mean"

    def __post_init__(self) -> None:
        limits = self.limits
        object.__setattr__(self, "low", limits.low)
        object.__setattr__(self, "high", limits.high)

    @property
    def limits(self) -> Range:
        """Where the number may lie."""
        return Range(self.low, self.high)

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
        return candidates_of(registry.NUMBER_RANDOMIZERS, low=self.low, high=self.high)

    @property
    def expected_spread(self) -> float:
        """That of values spread evenly over the range."""
        return (self.high - self.low) ** 2 / 12.0

    def column(self, values: Any, *, missing: str = "error") -> Column:
        """Return numbers that are in memory as a checked column."""
        return self.read(tables.source_of_values(self.name, values), missing=missing)

    def read(self, source: Source, report: Progress = no_progress, **reading: Any) -> Column:
        """Return a column of numbers, checked."""
        return columns.numbers(source, self.limits, report, **reading)

    def value_of_one(self, answer: Any) -> NDArray[np.float64]:
        """Return one user's number, shape (1,)."""
        return single.number_of(answer, self.limits)

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What a column of numbers has to be checked for."""
        return ("numbers", self.limits)

    def describe(self) -> str:
        """Return the range."""
        return f"numbers in [{self.low:g}, {self.high:g}]"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, name and limits."""
        return {"kind": self.kind, "name": self.name, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, init=False)
class VectorMean(_Means):
    """Each user has one vector of a Euclidean norm up to a bound; the mean is asked for.

    Parameters
    ----------
    names : iterable of str
        Names of the d coordinates, at least two, all different.
    norm_bound : float
        The largest norm, > 0; known without looking at the data.

    Raises
    ------
    ParameterError
        If the bound is not positive, or there are fewer than two names.
    """

    kind: ClassVar[str] = "vector-mean"
    expected_for: ClassVar[str] = "for vectors of zeros, the worst case"
    expected_spread: ClassVar[float] = 0.0  # nor do others of mean zero make the sum larger

    names: tuple[str, ...]
    norm_bound: float

    def __init__(self, names: Iterable[str], *, norm_bound: float = 1.0) -> None:
        labels.require_list("names", names)
        names = tuple(names)
        if len(names) < 2 or len(set(names)) < len(names):
            raise ParameterError(
                f"names = {names}: give two different ones; for a single column ask for a mean"
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "norm_bound", Ball(norm_bound).norm_bound)

    @property
    def limits(self) -> Ball:
        """Where the vector may lie."""
        return Ball(self.norm_bound)

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
            registry.VECTOR_RANDOMIZERS, dimension=len(self.names), norm_bound=self.norm_bound
        )

    def column(self, values: Any, *, missing: str = "error") -> Column:
        """Return vectors that are in memory as checked columns."""
        return self.read(tables.source_of_vectors(values, self.names), missing=missing)

    def read(self, source: Source, report: Progress = no_progress, **reading: Any) -> Column:
        """Return columns of vectors, checked."""
        return columns.numbers(source, self.limits, report, is_vector=True, **reading)

    def value_of_one(self, answer: Any) -> NDArray[np.float64]:
        """Return one user's vector, shape (1, d)."""
        return single.vector_of(answer, self.names, self.limits)

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What columns have to be checked for; in this order, by which estimates are named."""
        return ("vectors", self.names, self.limits)

    def describe(self) -> str:
        """Return dimension and norm bound."""
        return f"vectors of {len(self.names)} numbers, norm at most {self.norm_bound:g}"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, names and bound."""
        return {"kind": self.kind, "names": list(self.names), "norm_bound": self.norm_bound}


@dataclass(frozen=True, slots=True, init=False)
class Words(_Shares):
    """Each user has one text, any text; the shares of a dictionary's words are asked for.

    Parameters
    ----------
    dictionary : iterable of str
        The words to estimate, at least one, all different. Reports do not depend on it.
    key : bytes
        Public key of the hash functions, 16 bytes; by default a new one from the operating
        system, so that nobody could prepare words that collide before the task was announced.

    Raises
    ------
    DomainError
        If the dictionary is empty or repeats a word.
    """

    kind: ClassVar[str] = "words"
    reads: ClassVar[tuple[str, ...]] = ("missing",)
    central_sensitivity: ClassVar[float] = 2.0  # replacing one word changes two counts by one
    expected_for: ClassVar[str] = "for a word that nobody has, where few have the same one"
    expected_spread: ClassVar[float] = 0.0

    dictionary: tuple[str, ...]
    key: bytes

    def __init__(self, dictionary: Iterable[object], *, key: bytes | None = None) -> None:
        labels.require_list("dictionary", dictionary)
        words = labels.checked_domain(dictionary, "dictionary")
        if not words:
            raise DomainError("dictionary is empty: list at least one word to ask for")
        object.__setattr__(self, "dictionary", words)
        if key is None:
            key = new_key(Entropy.from_operating_system())
        object.__setattr__(self, "key", require_key(key))

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of the dictionary."""
        return self.dictionary

    def candidates(self) -> Candidates:
        """Return all registered randomizers of texts, under this key."""
        return candidates_of(registry.STRING_RANDOMIZERS, key=self.key)

    def expected_error(self, randomizer: CountMeanSketch, num_users: int) -> float:
        """Return the standard error of the frequency of a rare word, collisions apart."""
        return _error_at(randomizer.support_probabilities, num_users, 0.0)

    def column(self, values: Iterable[object], *, missing: str = "error") -> Column:
        """Return texts that are in memory as a checked column."""
        return self.read(tables.source_of_values("word", values), missing=missing)

    def read(self, source: Source, report: Progress = no_progress, **reading: Any) -> Column:
        """Return a column of texts, checked."""
        return columns.words(source, self.dictionary, report, **reading)

    def value_of_one(self, answer: object) -> NDArray[np.object_]:
        """Return one user's text, shape (1,)."""
        return single.text_of(answer, self.dictionary)

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What a column of texts has to be checked for."""
        return columns.texts_checked_for(self.dictionary)

    def _asked(self) -> dict[str, Any]:
        """Return the words to estimate."""
        return {"dictionary": self.dictionary}

    def describe(self) -> str:
        """Return the number of words."""
        return f"any text, {len(self.dictionary)} words asked for"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind and public key; the words stand apart, as ``domain``."""
        return {"kind": self.kind, "key": self.key.hex()}


@dataclass(frozen=True, slots=True, init=False)
class AnswerSets(_Shares):
    """Each user has up to ``max_answers`` of k answers; the share of each is asked for.

    Parameters
    ----------
    domain : iterable
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
    reads: ClassVar[tuple[str, ...]] = ("missing", "separator", "truncate")

    domain: tuple[str, ...]
    max_answers: int

    def __init__(self, domain: Iterable[object], *, max_answers: SupportsIndex) -> None:
        labels = _answers(domain)
        _, most = answer_sets.require_set_size(len(labels), max_answers)
        object.__setattr__(self, "domain", labels)
        object.__setattr__(self, "max_answers", most)

    @property
    def labels(self) -> tuple[str, ...]:
        """The possible answers."""
        return self.domain

    @property
    def central_sensitivity(self) -> float:
        """Replacing one set changes by one up to twice ``max_answers`` counts, of k that exist."""
        return float(min(2 * self.max_answers, len(self.domain)))

    def candidates(self) -> Candidates:
        """Return both ways of reporting a set, with each registered randomizer of categories."""
        return candidates_of(
            answer_sets.ANSWER_SET_RANDOMIZERS,
            domain_size=len(self.domain),
            max_answers=self.max_answers,
        )

    @property
    def expected_for(self) -> str:
        """For which case the expected error is."""
        return f"for an answer that one user in {len(self.domain)} gives"

    def expected_error(self, randomizer: answer_sets.SetRandomizer, num_users: int) -> float:
        """Return the standard error of a share, for an answer that one user in k has."""
        return self._error_at(randomizer, num_users, 1.0 / len(self.domain))

    def worst_error(self, randomizer: Any, num_users: int) -> float:
        """Return the largest standard error that a share has: the variance is linear in it."""
        return max(self._error_at(randomizer, num_users, share) for share in (0.0, 1.0))

    @staticmethod
    def _error_at(randomizer: answer_sets.SetRandomizer, num_users: int, frequency: float) -> float:
        p, q = randomizer.support_probabilities
        if not p > q:
            return math.inf
        return randomizer.expected_standard_error(num_users=num_users, frequency=frequency)

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step but ``"clip"``."""
        _Shares.require_post_processing(self, steps)
        if set(steps) - {"clip"}:
            raise ParameterError(
                f"post-processing {', '.join(steps)} is not for sets: only clip applies"
            )

    def column(self, values: Iterable[Iterable[str]], *, missing: str = "error") -> Column:
        """Return sets that are in memory as a checked column."""
        return self.read(tables.source_of_sets(values), missing=missing)

    def read(self, source: Source, report: Progress = no_progress, **reading: Any) -> Column:
        """Return a column of sets, checked."""
        return columns.answer_sets(source, self.domain, self.max_answers, report, **reading)

    def value_of_one(self, answer: Iterable[str | None]) -> NDArray[np.int32]:
        """Return the codes of one user's answers, shape (1, max_answers), padded with -1."""
        return single.codes_of(answer, self.domain, self.max_answers)

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What a column of sets has to be checked for."""
        return ("sets", self.domain, self.max_answers)

    def describe(self) -> str:
        """Return the number of answers, and how many a user may give."""
        return f"up to {self.max_answers} of {len(self.domain)} answers"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind and limit; the answers stand apart, as ``domain``."""
        return {"kind": self.kind, "max_answers": self.max_answers}


def question_from_json(particulars: Any, labels: Iterable[str]) -> Question:
    """Return the question of ``to_json_dict`` and ``labels``; `KeyError` for an unknown kind."""
    make: dict[str, Callable[[], Question]] = {
        Categories.kind: lambda: Categories(labels),
        Words.kind: lambda: Words(labels, key=bytes.fromhex(particulars["key"])),
        Mean.kind: lambda: Mean(particulars["low"], particulars["high"], name=particulars["name"]),
        VectorMean.kind: lambda: VectorMean(labels, norm_bound=particulars["norm_bound"]),
        AnswerSets.kind: lambda: AnswerSets(labels, max_answers=particulars["max_answers"]),
    }
    return make[particulars["kind"]]()


def _answers(domain: Iterable[object]) -> tuple[str, ...]:
    """Return the labels of at least two possible answers."""
    labels.require_list("domain", domain)
    return labels.require_two_answers(labels.checked_domain(domain), "domain")


def _error_at(chances: tuple[float, float], num_users: int, frequency: float) -> float:
    """Return the standard error of a frequency; infinite where both probabilities are the same."""
    if not chances[0] > chances[1]:
        return math.inf
    return expected_standard_error(
        support_probabilities=chances, num_users=num_users, frequency=frequency
    )


def _name_of(make: Callable[..., Any]) -> str:
    """Return the name of a randomizer class, or of whatever else makes randomizers."""
    name = getattr(make, "name", None)
    return name if isinstance(name, str) else getattr(make, "__name__", repr(make))
