"""``CategoryRandomizer``: what all randomizers of one value out of k share."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.frequencies import FrequencyEstimates, estimate_frequencies
from shuffledp.randomizers.protocol import Channel

# Cells of a matrix of reports and categories that are looked at together.
_CELLS_AT_A_TIME = 2**22


class CategoryRandomizer(ABC):
    """A `LocalRandomizer` of categories 0, ..., k - 1 whose reports *support* some of them.

    A report supports the user's own category with probability p and each other one with
    probability q, the `support_probabilities`. That is all an unbiased estimate needs. A class
    that derives from this one gives the five attributes below, `profile`,
    `support_probabilities`, `randomize` and `supports`; the rest follows, and may be replaced by
    something faster. docs/guides/adding-a-randomizer.md walks through an example.

    Attributes
    ----------
    name : str
        As in ``make_randomizer``.
    k : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss in nats of the law that is drawn, rounded up.
    fingerprint : str
        Name of the exact law; see `fingerprint_of`.
    """

    __slots__ = ()

    name: ClassVar[str]
    k: int
    epsilon0: float
    fingerprint: str

    @property
    @abstractmethod
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket where it is known."""

    @property
    @abstractmethod
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a report supports a category: the user's own one, and any other one.

        Rounded to the nearest floats.
        """

    @abstractmethod
    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one report for each category code.

        Parameters
        ----------
        values : ndarray of integers, shape (n,)
            True categories, in [0, k). May be empty.
        entropy : Entropy
            Source of randomness.

        Returns
        -------
        Reports
            One row a user.

        Raises
        ------
        DomainError
            If a code lies outside [0, k); the message names the first.
        ParameterError
            If ``values`` is not a one-dimensional array of integers.
        """

    @abstractmethod
    def supports(self, reports: Reports) -> NDArray[np.bool_]:
        """Return which categories each report supports: booleans, shape (n, k).

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
    def likelihood_ratio(self) -> float | None:
        """How much likelier a report is for a category it supports than for one it does not.

        e^epsilon0 unless a class says otherwise; ``None`` where that is not one number for all
        reports and all such pairs of categories, so that reports say more than what they support.
        """
        return math.exp(self.epsilon0)

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report."""
        empty = np.empty(0, dtype=np.int64)
        row = self.randomize(empty, Entropy.from_seed(0)).data
        return int(row.dtype.itemsize * np.prod(row.shape[1:], dtype=np.int64))

    def aggregate(self, reports: Reports) -> Counts:
        """Return how many reports support each category.

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
        support = np.zeros(self.k, dtype=np.int64)
        step = max(1, _CELLS_AT_A_TIME // self.k)
        for start in range(0, max(reports.num_reports, 1), step):
            part = Reports(data=reports.data[start : start + step], fingerprint=reports.fingerprint)
            support += self.supports(part).sum(axis=0)
        return Counts(
            support=support, num_reports=reports.num_reports, fingerprint=self.fingerprint
        )

    def estimate(
        self,
        data: Reports | Counts,
        *,
        confidence: float = 0.95,
        interval: str = "wilson",
        simultaneous: bool = False,
    ) -> FrequencyEstimates:
        """Return the unbiased frequency of each category, and how far it may be off.

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
            Nothing is clipped or normalised.

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

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        Raises
        ------
        ParameterError
            If k is too large for the matrix to be written out, or it is not known.
        """
        raise ParameterError(f"randomizer {self.name!r} has no channel matrix on record")

    def report_columns(self) -> Reports:
        """Return the reports that the columns of `channel` stand for, one a column, in order.

        Raises
        ------
        ParameterError
            If k is too large for the matrix to be written out, or it is not known.
        """
        raise ParameterError(f"randomizer {self.name!r} has no list of its reports on record")


def require_same_law(found: str, expected: str) -> None:
    """Raise `FingerprintError` unless an aggregate is of the law expected."""
    if found != expected:
        raise FingerprintError(
            f"these counts carry the fingerprint {found!r}, this randomizer's is {expected!r}: "
            "estimate with the randomizer (name and parameters) that made the reports"
        )
