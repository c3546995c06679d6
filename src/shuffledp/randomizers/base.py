"""Interfaces of randomizers: ``LocalRandomizer``, and base classes that do most of the work."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Floats, Integers
from shuffledp.core.checks import require_non_negative, set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.core.reports import Aggregate, Counts, Reports, Sums
from shuffledp.estimation.frequencies import (
    FrequencyEstimates,
    estimate_frequencies,
    expected_standard_error,
)
from shuffledp.estimation.means import MeanEstimates, NoiseLaw, estimate_means
from shuffledp.randomizers import checks, thresholds

# Probabilities of outputs (columns) given inputs (rows); each row sums to exactly 1.
Channel = tuple[tuple[Fraction, ...], ...]

# Results of the estimators: unbiased values, with their errors.
Estimates = FrequencyEstimates | MeanEstimates

# Cells of a matrix of reports and categories that are processed together.
_CELLS_AT_A_TIME = 2**22


class LocalRandomizer(Protocol):
    """A law that each user applies once to their own value, before anything leaves their hands.

    ``epsilon0`` and ``profile`` account for exactly the law that is drawn. To add a randomizer of
    your own, start from `CategoryRandomizer` or `MeanRandomizer`, which leave little to write.

    Examples
    --------
    >>> from shuffledp.randomizers import KRandomizedResponse, LocalRandomizer
    >>> law: LocalRandomizer = KRandomizedResponse(domain_size=4, epsilon0=1.0)
    >>> law.epsilon0 <= 1.0, law.profile.domain_size
    (True, 4)
    """

    @property
    def name(self) -> str:
        """Registered name, for example ``"k-rr"``."""

    @property
    def epsilon0(self) -> float:
        """Local privacy loss in nats of the law drawn, rounded up; at most the loss asked for."""

    @property
    def profile(self) -> LocalProfile:
        """Privacy law of the randomizer, all that the accountant needs."""

    @property
    def fingerprint(self) -> str:
        """Name of the exact law: changes with the family and with every parameter of it."""

    @property
    def num_report_bytes(self) -> int:
        """Bytes that one report takes in ``Reports.data``."""

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one fresh report for each value; axis 0 is the users, and may be empty."""

    def aggregate(self, reports: Reports) -> Aggregate:
        """Return all that an estimator needs of the reports; aggregates of one law add."""

    def estimate(self, data: Any, *, confidence: float = 0.95) -> Estimates:
        """Return unbiased estimates from reports, or from their aggregate."""


class FrequencyRandomizer(ABC):
    """A `LocalRandomizer` whose reports support categories, so that they can be counted."""

    __slots__ = ()

    domain_size: int
    epsilon0: float
    fingerprint: str

    @property
    @abstractmethod
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, and the blanket where it is known."""

    @property
    @abstractmethod
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a report supports a category that its user holds, and any other one."""

    @abstractmethod
    def aggregate(self, reports: Reports) -> Counts:
        """Return the number of reports that support each category; counts of one law add."""

    @property
    def influence(self) -> float:
        """Largest change of a category's estimated count by another report of one user.

        One report supports a category in each of its slots, another one in none. Infinite where
        reports say nothing.
        """
        p, q = self.support_probabilities
        return getattr(self, "num_slots", 1) / (p - q) if p > q else math.inf

    def estimate(
        self,
        data: Reports | Counts,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> FrequencyEstimates:
        """Return the unbiased share of users with each category, with standard error and interval.

        ``data`` are reports of this law, or their aggregate; the options come from
        `estimate_frequencies`. Nothing is clipped or normalised; shares of several categories a
        user sum to the mean number of these. `ParameterError` if reports say nothing
        (epsilon0 = 0), `DataError` if there are none.
        """
        return estimate_frequencies(
            checks.aggregate_of(self, data),
            support_probabilities=self.support_probabilities,
            confidence=confidence,
            simultaneous=simultaneous,
        )


class CategoryRandomizer(FrequencyRandomizer):
    """A `LocalRandomizer` of categories 0, ..., k - 1 whose reports *support* some of them.

    A report supports the user's own category with probability p and each other one with
    probability q, the `support_probabilities`. That is all an unbiased estimate needs. A class
    that derives from this one gives the four attributes below, `profile`,
    `support_probabilities`, `randomize` and `supports`; the rest follows, and may be replaced by
    something faster. docs/guides/adding-a-randomizer.md walks through an example.

    Methods that read reports raise `FingerprintError` for reports of another law, `DomainError` for
    reports that this law never makes, and `ParameterError` for another type or shape.

    Attributes
    ----------
    name : str
        As in ``make_randomizer``.
    domain_size : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss in nats of the law that is drawn, rounded up.
    fingerprint : str
        Name of the exact law; see `fingerprint_of`.
    """

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one report for each category code.

        ``values`` are true categories in [0, k), shape (n,), n = 0 too; the reports have one row a
        user. `DomainError` names the first code outside [0, k), and `ParameterError` is raised
        unless they are integers on one axis.
        """

    @abstractmethod
    def supports(self, reports: Reports) -> Booleans:
        """Categories that each report supports: booleans, shape (n, k)."""

    @property
    def num_report_bytes(self) -> int:
        """Bytes per report."""
        return bytes_of_row(self.randomize(np.empty(0, np.int64), Entropy.from_seed(0)))

    def report_for(self, category: int) -> NDArray[Any]:
        """Return a report that supports a category: the first that randomizing it gives."""
        entropy = Entropy.from_seed(0)
        while True:
            drawn = self.randomize(np.array([category]), entropy)
            if self.supports(drawn)[0, category]:
                return drawn.data

    def aggregate(self, reports: Reports) -> Counts:
        """Return the number of reports that support each category; counts of one law add."""
        support = np.zeros(self.domain_size, dtype=np.int64)
        step = max(1, _CELLS_AT_A_TIME // self.domain_size)
        for start in range(0, max(reports.num_reports, 1), step):
            part = Reports(data=reports.data[start : start + step], fingerprint=reports.fingerprint)
            support += self.supports(part).sum(axis=0)
        count = reports.num_reports
        return Counts(support=support, num_reports=count, fingerprint=self.fingerprint)

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        Raises
        ------
        ParameterError
            If k is too large for the matrix to be written out, or it is not known.
        """
        raise ParameterError(f"randomizer {self.name!r} has no channel matrix on record")

    def report_columns(self) -> Reports:
        """Return the reports that the columns of `channel` stand for; raises as `channel`."""
        raise ParameterError(f"randomizer {self.name!r} has no list of its reports on record")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRandomizer(CategoryRandomizer):
    """A `CategoryRandomizer` whose exact law is settled by k and by the loss asked for."""

    largest_channel: ClassVar[int] = 8  # largest number of categories with explicit matrices
    may_be_bare: ClassVar[bool] = False  # whether there is a law without any noise, epsilon0 = inf

    domain_size: int
    epsilon0: float
    threshold: int = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_fields(self, domain_size=checks.require_domain_size(self.domain_size))
        if not (self.may_be_bare and self.epsilon0 == math.inf):
            set_fields(self, epsilon0=require_non_negative("epsilon0", self.epsilon0))
        law, epsilon0 = thresholds.settle(self.epsilon0, self._law_for)
        fingerprint = checks.fingerprint_of(self.name, k=self.domain_size, **law)
        set_fields(self, epsilon0=epsilon0, fingerprint=fingerprint, **law)

    @abstractmethod
    def _law_for(self, epsilon0: float) -> tuple[dict[str, int], float]:
        """Return the numbers that make up a law, ``threshold`` among them, and its loss."""

    @abstractmethod
    def _support(self, reports: Reports) -> Integers:
        """Return the number of checked reports that support each category."""

    def aggregate(self, reports: Reports) -> Counts:
        """Return the number of reports that support each category. See `CategoryRandomizer`."""
        support, count = self._support(reports), reports.num_reports
        return Counts(support=support, num_reports=count, fingerprint=self.fingerprint)

    def report_columns(self) -> Reports:
        """Return the reports that the columns of `channel` stand for, in ascending order."""
        if self.domain_size > self.largest_channel:
            raise ParameterError(
                f"domain_size = {self.domain_size} is above {self.largest_channel}: the channel "
                "matrix is written out for small domains only; use profile.blanket or "
                "support_probabilities"
            )
        return Reports(data=self._columns(), fingerprint=self.fingerprint)

    @abstractmethod
    def _columns(self) -> NDArray[Any]:
        """Return all possible reports, of a small law."""

    def _two_valued(self, supporting: Fraction, other: Fraction) -> Channel:
        """Return the channel where reports that support the truth are equally probable, or not."""
        rows = self.supports(self.report_columns()).T.tolist()
        return tuple(tuple(supporting if each else other for each in row) for row in rows)

    def _profile(
        self,
        *blanket: BlanketAtom,
        attack: tuple[BlanketAtom, ...] = (),
        family: RandomizerFamily = RandomizerFamily.OTHER,
    ) -> LocalProfile:
        """Return the profile of this law with a blanket and an attack."""
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=family,
            domain_size=self.domain_size,
            blanket=blanket,
            attack=attack,
            channel=self.channel if self.domain_size <= self.largest_channel else None,
        )


class MeanRandomizer(ABC):
    """A `LocalRandomizer` of numbers or vectors: each report has the value as its expectation.

    A class that derives from this one gives the attributes below, `profile`, `dimension`,
    `randomize`, `scores`, `score_scale` and `mean_report_variance`; the rest follows. The value
    that a report stands for is ``offset + factor * score``, whose expectation is the user's value.
    Methods that read reports raise as in `CategoryRandomizer`.

    Attributes
    ----------
    name : str
        As in ``NUMBER_RANDOMIZERS`` or ``VECTOR_RANDOMIZERS``.
    epsilon0 : float
        Local privacy loss in nats of the law that is drawn, rounded up.
    fingerprint : str
        Name of the exact law; see `fingerprint_of`.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> ages = sdp.plan(sdp.Mean(0, 120), num_users=1_000, epsilon0=1.0, delta=1e-6)
    >>> isinstance(ages.randomizer, MeanRandomizer)
    True
    """

    __slots__ = ()

    name: ClassVar[str]
    epsilon0: float
    fingerprint: str

    @property
    @abstractmethod
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates d of a value; 1 for a number."""

    @property
    @abstractmethod
    def score_scale(self) -> tuple[float, float]:
        """Offset and factor that take a score to the user's units.

        `ParameterError` if epsilon0 is 0, so that the reports say nothing.
        """

    @abstractmethod
    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one report for each value, one row a user.

        ``values`` are numbers, shape (n,), or vectors, shape (n, d); n = 0 too. `DomainError` names
        the first value that is NaN or out of range, and `ParameterError` is raised for another type
        or shape.
        """

    @abstractmethod
    def scores(self, reports: Reports) -> Floats:
        """Return the score of each report, shape (n, d); whole numbers where possible."""

    @abstractmethod
    def mean_report_variance(self) -> float:
        """Return the variance of a report for a typical value, by which randomizers are compared.

        In squared units: for numbers the mean over values spread evenly over the range; for vectors
        the variance for the zero vector, the largest, averaged over the coordinates.
        """

    @property
    def score_limits(self) -> tuple[float, float]:
        """The least and the largest score that a coordinate of a report can have.

        Infinite unless a class says otherwise.
        """
        return -math.inf, math.inf

    @property
    def influence(self) -> float:
        """Largest change of an estimated sum by another report of one user, in the user's units."""
        low, high = self.score_limits
        return self.score_scale[1] * (high - low) if self.epsilon0 else math.inf

    def report_for(self, coordinate: int) -> NDArray[Any]:
        """Return the report that raises the mean of a coordinate most, one row."""
        raise ParameterError(f"no report for coordinate {coordinate} is known: leave out dishonest")

    def noise_law(self) -> NoiseLaw:
        """Noise variance of the reports as a function of their squares.

        Unless a class says otherwise, it cannot be separated from the spread of the values, so that
        the standard error of a mean is an upper bound.
        """
        return NoiseLaw()

    @property
    def num_report_bytes(self) -> int:
        """Bytes per report."""
        shape = (0,) if self.dimension == 1 else (0, self.dimension)
        return bytes_of_row(self.randomize(np.empty(shape), Entropy.from_seed(0)))

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of the reports' scores and of their squares; sums of one law add."""
        total, squares = np.zeros(self.dimension), np.zeros(self.dimension)
        for scores in self._score_blocks(reports):
            total += scores.sum(axis=0)
            squares += np.einsum("ij,ij->j", scores, scores)
        return Sums(
            total=total,
            total_of_squares=squares,
            num_reports=reports.num_reports,
            fingerprint=self.fingerprint,
        )

    def _score_blocks(self, reports: Reports) -> Iterator[Floats]:
        """Yield the scores of some reports at a time; all at once unless a class is sparing."""
        yield self.scores(reports)

    def estimate(
        self, data: Reports | Sums, *, confidence: float = 0.95, simultaneous: bool = False
    ) -> MeanEstimates:
        """Return the unbiased mean of each coordinate, with standard error and interval.

        ``data`` are reports of this law, or their aggregate. In the user's units; nothing is
        clipped. With ``simultaneous`` the intervals of all coordinates hold at once with that
        confidence. `DataError` if there are fewer than two reports.
        """
        sums = checks.aggregate_of(self, data)
        offset, factor = self.score_scale
        return estimate_means(
            sums,
            offset=offset,
            factor=factor,
            noise=self.noise_law(),
            confidence=confidence,
            simultaneous=simultaneous,
        )


def error_at(
    randomizer: Any, num_users: int, frequency: float, dummies: Iterable[DummyLaw] = ()
) -> float:
    """Return the standard error of a frequency; infinite if both probabilities are equal."""
    chances = randomizer.support_probabilities
    if not chances[0] > chances[1]:
        return math.inf
    return expected_standard_error(
        support_probabilities=chances,
        num_users=num_users,
        frequency=frequency,
        num_slots=getattr(randomizer, "num_slots", 1),
        dummy_variance=sum(
            law.error_variance(randomizer.domain_size, num_senders=num_users) for law in dummies
        ),
    )


def bytes_of_row(reports: Reports) -> int:
    """Return the bytes that each row takes, also where there are none."""
    return int(reports.data.dtype.itemsize * np.prod(reports.data.shape[1:], dtype=np.int64))
