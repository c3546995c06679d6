"""``SetRandomizer``: what the randomizers of sets of answers share."""

from abc import ABC, abstractmethod
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.frequencies import (
    FrequencyEstimates,
    estimate_frequencies,
    expected_standard_error,
)
from shuffledp.randomizers.category_randomizer import (
    CategoryRandomizer,
    require_same_law,
)
from shuffledp.randomizers.checks import LARGEST_K


class SetRandomizer(ABC):
    """A `LocalRandomizer` of sets of at most s = ``max_answers`` of the categories 0, ..., k - 1.

    Sets are filled up to exactly s answers with *dummies*, a category k of its own, so that a
    report does not tell how many answers a user has. Answers go through a `CategoryRandomizer` of
    k + 1 categories, the base.

    Attributes
    ----------
    base_name : str
        Name of the base, as in ``make_randomizer``.
    k : int
        Number of categories, in [2, 2^32 - 2].
    max_answers : int
        The most answers s that a user may hold, in [1, k].
    epsilon0 : float
        Local privacy loss in nats of a whole report, rounded up. Neighbours differ in the whole
        set of one user, not in one answer of it.
    base : CategoryRandomizer
        What one answer goes through.
    fingerprint : str
        Name of the exact law.
    """

    __slots__ = ()

    base_name: str
    k: int
    max_answers: int
    epsilon0: float
    base: CategoryRandomizer
    fingerprint: str

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the kind and of the base, with a colon between."""

    @property
    @abstractmethod
    def profile(self) -> LocalProfile:
        """What the accountant needs to know."""

    @property
    @abstractmethod
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a slot of a report supports a category: one that the user holds, or not.

        Of a report with several slots, the slot of that answer is meant. Rounded to the nearest
        floats.
        """

    @property
    @abstractmethod
    def num_slots(self) -> int:
        """How often one report can support one category."""

    @abstractmethod
    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one report for each set of answers.

        Parameters
        ----------
        values : ndarray of integers, shape (n, any width)
            A row has the answers of a user, in [0, k) and each once, and -1 in places left over.
            The order in a row does not matter. May be empty. See `pad_answers`.
        entropy : Entropy
            Source of randomness.

        Returns
        -------
        Reports
            One row a user.

        Raises
        ------
        DomainError
            If an answer is outside [-1, k), or a user holds one twice, or more than
            ``max_answers``; the message names the first such row.
        ParameterError
            If ``values`` is no two-dimensional array of integers.
        """

    @abstractmethod
    def aggregate(self, reports: Reports) -> Counts:
        """Return how often reports support each category; dummies are left out.

        Parameters
        ----------
        reports : Reports
            In any order.

        Returns
        -------
        Counts
            Exact; they add with other counts of the same law.

        Raises
        ------
        FingerprintError
            If the reports were made by another law.
        DomainError
            If this law makes no such report.
        ParameterError
            If the reports have another type or shape.
        """

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report."""
        row = self.randomize(np.empty((0, 0), dtype=np.int64), Entropy.from_seed(0)).data
        return int(row.dtype.itemsize * np.prod(row.shape[1:], dtype=np.int64))

    def estimate(
        self,
        data: Reports | Counts,
        *,
        confidence: float = 0.95,
        interval: str = "wilson",
        simultaneous: bool = False,
    ) -> FrequencyEstimates:
        """Return the unbiased share of users that hold each category, and how far it may be off.

        Parameters
        ----------
        data : Reports or Counts
            Reports of this law, or what `aggregate` made of them.
        confidence : float
            Nominal coverage, in (0, 1).
        interval : {"wilson", "wald", "clopper-pearson"}
            Kind of interval.
        simultaneous : bool
            Whether all k intervals hold at once with that confidence, rather than each alone.

        Returns
        -------
        FrequencyEstimates
            Nothing is clipped or normalised. The shares of k categories sum to the mean number of
            answers a user, not to 1.

        Raises
        ------
        FingerprintError
            If the data are of another law.
        ParameterError
            If reports say nothing (epsilon0 = 0), or an option is unknown.
        DataError
            If there are no reports.
        """
        counts = self.aggregate(data) if isinstance(data, Reports) else data
        require_same_law(counts.fingerprint, self.fingerprint)
        return estimate_frequencies(
            counts,
            support_probabilities=self.support_probabilities,
            confidence=confidence,
            interval=interval,
            simultaneous=simultaneous,
        )

    def expected_standard_error(self, *, num_users: int, frequency: float) -> float:
        """Return the standard error that an estimate will have, before any data is seen.

        Parameters
        ----------
        num_users : int
            Number of users, at least 1.
        frequency : float
            Share of users that hold the category, in [0, 1].

        Returns
        -------
        float
            Exact, given who the users are, up to rounding.

        Raises
        ------
        ParameterError
            If reports say nothing (epsilon0 = 0), or a number is out of range.
        """
        return expected_standard_error(
            support_probabilities=self.support_probabilities,
            num_users=num_users,
            frequency=frequency,
            num_slots=self.num_slots,
        )

    def _count_slots(self, slots: NDArray[Any], num_reports: int) -> Counts:
        """Return the counts of all slots of reports, each of which the base has made."""
        of_base = Reports(data=slots, fingerprint=self.base.fingerprint)
        return Counts(
            support=self.base.aggregate(of_base).support[: self.k],
            num_reports=num_reports,
            fingerprint=self.fingerprint,
            supports_per_report=self.num_slots,
        )


def require_set_size(k: SupportsIndex, max_answers: SupportsIndex) -> tuple[int, int]:
    """Return both numbers if 2 <= k <= 2^32 - 2 and 1 <= max_answers <= k, else raise."""
    num_categories = require_at_least("k", k, 2)
    if num_categories >= LARGEST_K:
        raise ParameterError(
            f"k = {num_categories} is above {LARGEST_K - 1}: group the values into fewer categories"
        )
    most = require_at_least("max_answers", max_answers, 1)
    if most > num_categories:
        raise ParameterError(
            f"max_answers = {most} is above k = {num_categories}: nobody holds more different "
            "answers than there are; give the most that one user holds"
        )
    return num_categories, most


def require_own(reports: Reports, fingerprint: str) -> None:
    """Raise `FingerprintError` unless the reports are of the law expected."""
    if reports.fingerprint != fingerprint:
        raise FingerprintError(
            f"these reports carry the fingerprint {reports.fingerprint!r}, this randomizer's is "
            f"{fingerprint!r}: count them with the randomizer (base, k, max_answers and epsilon0) "
            "that made them"
        )
