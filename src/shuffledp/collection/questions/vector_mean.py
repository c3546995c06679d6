"""A vector of bounded norm: the mean of each coordinate."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.checks import set_fields
from shuffledp.core.errors import ParameterError
from shuffledp.randomizers import registry


@dataclass(frozen=True, slots=True, init=False)
class VectorMean(question.Means):
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
    DomainError
        If a name is no text.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> question = sdp.VectorMean(["east", "north"], norm_bound=1.0)
    >>> plan = sdp.plan(question, num_users=1_000, epsilon=1.0, delta=1e-6)
    >>> sdp.run(plan, [[0.6, 0.8]] * 1_000, seed=1).to_dict()["value"]
    ['east', 'north']
    """

    kind: ClassVar[str] = "vector-mean"
    stated: ClassVar[tuple[str, ...]] = ("names", "norm_bound")
    listed: ClassVar[str] = "names"
    # The order of the coordinates names the estimates.
    checked_by: ClassVar[tuple[str, ...]] = ("names", "norm_bound")
    expected_for: ClassVar[str] = "for vectors of zeros, the worst case"
    expected_spread: ClassVar[float] = 0.0  # other vectors of mean zero make the sum no larger

    names: tuple[str, ...]
    norm_bound: float

    def __init__(self, names: Iterable[str], *, norm_bound: float = 1.0) -> None:
        spelt.require_list("names", names)
        names = tuple(names)
        spelt.require_text("names", *names)
        if len(names) < 2 or len(set(names)) < len(names):
            raise ParameterError(
                f"names = {names}: give two different ones; for a single column ask for a mean"
            )
        set_fields(self, names=names, norm_bound=columns.Ball(norm_bound).norm_bound)

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The coordinates, each of which is a column."""
        return self.names

    @property
    def limits(self) -> columns.Ball:
        """Limit of the norm."""
        return columns.Ball(self.norm_bound)

    @property
    def useless_error(self) -> float:
        """Half of the bound: a 95 % interval is then as wide as the ball."""
        return 0.5 * self.norm_bound

    @property
    def central_sensitivity(self) -> float:
        """L1 sensitivity: one vector moves the sum by 2 norms at most, by sqrt(d) more in L1."""
        return 2.0 * self.norm_bound * math.sqrt(len(self.names))

    @property
    def no_values(self) -> NDArray[np.float64]:
        """Vectors of no users."""
        return np.empty((0, len(self.names)))

    def candidates(self) -> question.Candidates:
        """Return all registered randomizers of vectors."""
        return question.candidates_of(
            registry.VECTOR_RANDOMIZERS, dimension=len(self.names), norm_bound=self.norm_bound
        )

    def source_of(self, values: Any) -> tables.Source:
        """Return vectors in memory as columns."""
        return tables.source_of_vectors(values, self.names)

    def read(self, source: tables.Source) -> columns.Column:
        """Return columns of vectors, checked."""
        return columns.numbers(source, self, is_vector=True)

    def value_of_one(self, answer: Any) -> NDArray[np.float64]:
        """Return one user's vector, shape (1, d)."""
        if spelt.is_gap(answer):
            raise single.no_answer()
        return single.within(tables.rows_of_numbers([answer], self.names), self.limits)

    def describe(self) -> str:
        """Return dimension and norm bound."""
        return f"vectors of {len(self.names)} numbers, norm at most {self.norm_bound:g}"
