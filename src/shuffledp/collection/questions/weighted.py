"""Public weights: the shares of the users' weight with each answer, or a weighted mean."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.questions.categories import Categories
from shuffledp.collection.questions.mean import Mean
from shuffledp.collection.source import columns, tables
from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_positive
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.randomizers.weighted import Weighted

_PUBLIC = (
    "The weights are public: nothing here hides a user's weight, and it must tell nothing that is "
    "to be hidden."
)


# What is known of the weights, as fields and in JSON.
_KNOWN = ("most_weight", "mean_weight", "design_effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What is known of the users' weights; made by `weighted`.

    Parameters
    ----------
    question : Categories or Mean
        What is asked.
    most_weight : float
        Weights above this count as this.
    mean_weight : float
        The mean of the weights.
    design_effect : float
        Kish's n sum w^2 / (sum w)^2, by which weights raise the variance of sampling, >= 1.
    table_columns : (str, str)
        Of a table: names of the columns with values and with weights.
    """

    kind: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]

    question: Any
    most_weight: float
    mean_weight: float
    design_effect: float
    table_columns: tuple[str, ...]

    @classmethod
    def from_json(cls, particulars: Any, labels: Iterable[str]) -> Self:
        """Return the question that `to_json_dict` wrote."""
        from shuffledp.collection.questions import question_from_json

        return cls(
            question=question_from_json(particulars["question"], labels),
            table_columns=tuple(particulars["table_columns"]),
            **{name: float(particulars[name]) for name in _KNOWN},
        )

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, particulars of the question and of the weights."""
        return {
            "kind": self.kind,
            "question": self.question.to_json_dict(),
            **{name: getattr(self, name) for name in _KNOWN},
            "table_columns": list(self.table_columns),
        }

    @property
    def scale(self) -> float:
        """Largest weight over the mean: the factor of the noise, and of dishonest users' shifts."""
        return self.most_weight / self.mean_weight

    @property
    def labels(self) -> tuple[str, ...]:
        """The question's."""
        labels: tuple[str, ...] = self.question.labels
        return labels

    @property
    def expected_for(self) -> str:
        """The question's."""
        return str(self.question.expected_for)

    @property
    def central_sensitivity(self) -> float:
        """The question's for the user of the largest weight, in units of the mean weight."""
        return float(self.question.central_sensitivity) * self.scale

    @property
    def no_values(self) -> NDArray[np.float64]:
        """Return values and weights of nobody."""
        return np.empty((0, 2))

    def _wrapped(self, makers: Mapping[str, Callable[[float], Any]], low: Any = None) -> Any:
        """Return candidates of which each user's weight draws or scales the value."""

        def maker(name: str) -> Callable[[float], Weighted]:
            return lambda epsilon0: Weighted(
                base=makers[name](epsilon0), most_weight=self.most_weight, low=low
            )

        return {f"weighted:{name}": maker(name) for name in makers}

    def shift_by_one(self, randomizer: Any, num_users: int, counts: Any = None) -> Any:
        """Return the base's, times the largest weight over the mean."""
        return self.scale * self.question.shift_by_one(randomizer.base, num_users, counts)

    def _asked(self) -> dict[str, Any]:
        """Return the scale of the estimates, for the randomizer."""
        return {"scale": self.scale}

    def fitted(self, column: columns.Column) -> Self:
        """Return the question with the mean weight of the users of a column."""
        asked = self.question
        if column.domain and column.domain != self.labels:  # which reading may have added to
            asked = Categories(column.domain)
        mean, effect = _summary(weights_of(column), self.most_weight)
        return replace(self, question=asked, mean_weight=mean, design_effect=effect)

    def column(self, values: Any, *, missing: str = "error", weights: Any = None) -> columns.Column:
        """Return values that are in memory, and their weights, as a checked column."""
        if weights is None:
            raise ParameterError("weights is missing: give weights=[...], one for each value")
        source, beside = tables.source_of_values("value", values), checked_weights(weights)
        held = source.frame.collect()
        if held.height != beside.size:
            raise DataError(
                f"there are {beside.size} weights for {held.height} values: give one each"
            )
        both = held.with_columns(weight=beside).lazy()
        return self.read(replace(source, frame=both, names=("value", "weight")), missing=missing)

    def read(self, source: tables.Source, **reading: Any) -> columns.Column:
        """Return columns of values and weights, checked; rows of both, float64."""
        name, weight = source.names
        alone = replace(source, names=(name,), weight=weight)
        found: columns.Column = self.question.read(alone, **reading)
        checked = ("weighted", *found.checked_for)
        return replace(found, checked_for=checked, cautions=(_PUBLIC, *found.cautions))

    def value_of_one(self, answer: Any) -> NDArray[np.float64]:
        """Return one user's value and weight, shape (1, 2), of a list of both."""
        if np.size(answer) != 2 or isinstance(answer, str):
            raise DataError("the answer is no value and a weight: give a list of both")
        value, weight = answer
        own = self.question.value_of_one(value)
        return np.column_stack([own, checked_weights([weight])])

    @property
    def checked_for(self) -> tuple[object, ...]:
        """What columns have to be checked for."""
        return ("weighted", *self.question.checked_for)

    def describe(self) -> str:
        """Return the question, the price of the weights in noise, and the design effect."""
        return (
            f"{self.question.describe()}, public weights up to {self.scale:.3g} times their mean, "
            f"design effect {self.design_effect:.3g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedShares(Weights, question.Shares):
    """Each user has one of k answers; the share of the users' weight with each is asked for."""

    kind: ClassVar[str] = "weighted-frequencies"
    reads: ClassVar[tuple[str, ...]] = ("missing", "other")
    expected_spread: ClassVar[float] = 0.0  # the expected error counts sampling already

    def candidates(self) -> question.Candidates:
        """Return the randomizers of k + 1 answers, the last of which is "not drawn"."""
        number = len(self.labels) + 1
        found: question.Candidates = self._wrapped(
            Categories(range(number), own=self.question.own).candidates()
        )
        return found

    def expected_error(
        self, randomizer: Weighted, num_users: int, dummies: question.Laws = ()
    ) -> float:
        """Return the standard error of a share, root mean square over the answers, or above it."""
        return self._error_at(randomizer, num_users, 1.0 / len(self.labels), dummies)

    def frequent_error(
        self,
        randomizer: Weighted,
        num_users: int,
        frequency: float | None = None,
        dummies: question.Laws = (),
    ) -> float | None:
        """Return the standard error of a share of this size, the largest of all if None."""
        shares = (0.0, min(1.0, 0.5 * self.scale), 1.0) if frequency is None else (frequency,)
        return max(self._error_at(randomizer, num_users, share, dummies) for share in shares)

    def _error_at(
        self, randomizer: Weighted, num_users: int, share: float, dummies: question.Laws
    ) -> float:
        """Return the standard error of a share, with the coins and sampling."""
        drawn = share / self.scale
        noise = question.error_at(randomizer.base, num_users, drawn, dummies)
        return self.scale * math.hypot(noise, math.sqrt(drawn * (1.0 - drawn) / num_users))


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean(Weights, question.Means):
    """Each user has a number between two limits; its weighted mean is asked for."""

    kind: ClassVar[str] = "weighted-mean"
    reads: ClassVar[tuple[str, ...]] = ("missing", "clip")

    @property
    def _scaled(self) -> Mean:
        """The question about the distance from the lower limit, times a weight's ratio."""
        return Mean(0.0, self.question.high - self.question.low)

    @property
    def useless_error(self) -> float:
        """The question's."""
        return float(self.question.useless_error)

    @property
    def expected_spread(self) -> float:
        """The question's, times the design effect."""
        return float(self.question.expected_spread) * self.design_effect

    def candidates(self) -> question.Candidates:
        """Return the randomizers of a number, weighted."""
        found: question.Candidates = self._wrapped(self._scaled.candidates(), self.question.low)
        return found

    def dummy_candidates(self) -> question.Candidates:
        """Return sums bit by bit, weighted."""
        makers = self._scaled.dummy_candidates()
        found: question.Candidates = self._wrapped(makers, self.question.low)
        return found

    def expected_error(self, randomizer: Any, num_users: int, dummies: question.Laws = ()) -> float:
        """Return the standard error of the mean."""
        return self.scale * self._scaled.expected_error(randomizer.base, num_users, dummies)


def weighted(
    question: Categories | Mean,
    weights: Any,
    *,
    most_weight: float | None = None,
    columns: tuple[str, str] = ("value", "weight"),
) -> WeightedShares | WeightedMean:
    """Return a question whose users count by public weights.

    Parameters
    ----------
    question : Categories or Mean
        What is asked.
    weights : array-like
        The weight of each user, positive and finite; they are not protected. For strata, each
        user's is the share of the stratum in the population over that among the users.
    most_weight : float, optional
        Weights above this count as this, > 0: a little bias for much less noise, which grows with
        the largest weight over the mean. By default the largest.
    columns : (str, str)
        Of a table: names of the columns with values and with weights.

    Returns
    -------
    WeightedShares or WeightedMean
        For ``shuffledp.plan``; its ``scale`` is the largest weight over the mean.

    Raises
    ------
    DomainError
        If a weight is missing, zero, negative or infinite.
    ParameterError
        If the question is of another kind.

    Notes
    -----
    ``shuffledp.run`` takes the mean weight of those who answer; ``estimate``, which sees reports
    alone, the plan's: then plan with the weights of those who sent one.

    Examples
    --------
    >>> asked = weighted(Categories(["yes", "no"]), [1.0, 1.0, 4.0])
    >>> asked.mean_weight, asked.design_effect, asked.scale
    (2.0, 1.5, 2.0)
    """
    make: Any = {Categories: WeightedShares, Mean: WeightedMean}.get(type(question))
    if make is None:
        raise ParameterError(
            f"question is a {type(question).__name__}: weights are for Categories and Mean"
        )
    given = checked_weights(weights)
    most = require_positive("most_weight", given.max() if most_weight is None else most_weight)
    mean, effect = _summary(given, most)
    found: WeightedShares | WeightedMean = make(
        question=question,
        most_weight=most,
        mean_weight=mean,
        design_effect=effect,
        table_columns=columns,
    )
    return found


def checked_weights(weights: Any) -> Floats:
    """Return the weights, at least one; `DomainError` unless all are positive and finite."""
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"weights are not all numbers ({error}): convert them first") from None
    if given.ndim != 1 or not given.size:
        raise DataError(f"weights has shape {given.shape}: give one number a user")
    is_fit = np.isfinite(given) & (given > 0.0)
    if not is_fit.all():
        first = int(np.argmin(is_fit))
        raise DomainError(
            f"weights[{first}] = {given[first]} is not positive and finite: leave out users "
            "without a weight, with their values"
        )
    return given


def weights_of(column: columns.Column) -> Floats:
    """Return the weights of a column's users, in a pass of its own."""
    return np.concatenate([block[:, 1] for block in column.blocks()])


def _summary(weights: Floats, most: float) -> tuple[float, float]:
    """Return mean and design effect of weights once trimmed."""
    ratios = np.minimum(weights / most, 1.0)
    mean = float(ratios.mean())
    return most * mean, max(float((ratios**2).mean()) / mean**2, 1.0)
