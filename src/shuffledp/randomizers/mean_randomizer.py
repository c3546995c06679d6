"""``MeanRandomizer``: what all randomizers of numbers and vectors share."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Reports, Sums
from shuffledp.estimation.means import MeanEstimates, NoiseLaw, estimate_means
from shuffledp.randomizers.category_randomizer import require_same_law


class MeanRandomizer(ABC):
    """A `LocalRandomizer` of numbers or vectors: each report has the value as its expectation.

    A class that derives from this one gives the attributes below, `profile`, `dimension`,
    `randomize`, `scores`, `score_scale`, `report_variance` and `mean_report_variance`; the rest
    follows. The value that a
    report stands for is ``offset + factor * score``, whose expectation is the user's value.

    Attributes
    ----------
    name : str
        As in ``NUMBER_RANDOMIZERS`` or ``VECTOR_RANDOMIZERS``.
    epsilon0 : float
        Local privacy loss in nats of the law that is drawn, rounded up.
    fingerprint : str
        Name of the exact law; see `fingerprint_of`.
    """

    __slots__ = ()

    name: ClassVar[str]
    epsilon0: float
    fingerprint: str

    @property
    @abstractmethod
    def profile(self) -> LocalProfile:
        """What the accountant needs to know."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates d of a value; 1 for a number."""

    @property
    @abstractmethod
    def score_scale(self) -> tuple[float, float]:
        """Offset and factor that take a score to the user's units."""

    @abstractmethod
    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one report for each value.

        Parameters
        ----------
        values : ndarray of numbers, shape (n,), or (n, d) for vectors
            May be empty.
        entropy : Entropy
            Source of randomness.

        Returns
        -------
        Reports
            One row a user.

        Raises
        ------
        DomainError
            If a value is NaN or out of range; the message names the first.
        ParameterError
            If ``values`` is not an array of numbers of that shape.
        """

    @abstractmethod
    def scores(self, reports: Reports) -> NDArray[np.float64]:
        """Return the score of each report, shape (n, d); whole numbers where possible.

        Raises
        ------
        FingerprintError
            If the reports were made by another law.
        DomainError
            If this law makes no such report.
        ParameterError
            If the reports have another type or shape.
        """

    @abstractmethod
    def report_variance(self, value: float) -> float:
        """Return the variance of one report's decoded value, given the user's.

        Parameters
        ----------
        value : float
            The user's number, in its units; for vectors their Euclidean norm, and the result is
            the mean over the coordinates.

        Returns
        -------
        float
            In squared units.
        """

    @abstractmethod
    def mean_report_variance(self) -> float:
        """Return the variance of a report for a typical value, by which randomizers are compared.

        Returns
        -------
        float
            In squared units. For numbers the mean over values spread evenly over the range; for
            vectors that of the zero vector, the largest, averaged over the coordinates.
        """

    def noise_law(self) -> NoiseLaw:
        """Return how the noise of the reports follows from their squares.

        Returns
        -------
        NoiseLaw
            Unless a class says otherwise, that it cannot be told from the spread of the values, so
            that the standard error of a mean is an upper bound.
        """
        return NoiseLaw()

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report."""
        shape = (0,) if self.dimension == 1 else (0, self.dimension)
        row = self.randomize(np.empty(shape), Entropy.from_seed(0)).data
        return int(row.dtype.itemsize * np.prod(row.shape[1:], dtype=np.int64))

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of the reports' scores and of their squares.

        Parameters
        ----------
        reports : Reports
            In any order.

        Returns
        -------
        Sums
            They add with other sums of the same law.

        Raises
        ------
        FingerprintError
            If the reports were made by another law.
        DomainError
            If this law makes no such report.
        ParameterError
            If the reports have another type or shape.
        """
        scores = self.scores(reports)
        return Sums(
            total=scores.sum(axis=0),
            total_of_squares=np.einsum("ij,ij->j", scores, scores),
            num_reports=reports.num_reports,
            fingerprint=self.fingerprint,
        )

    def estimate(
        self, data: Reports | Sums, *, confidence: float = 0.95, simultaneous: bool = False
    ) -> MeanEstimates:
        """Return the unbiased mean of each coordinate, and how far it may be off.

        Parameters
        ----------
        data : Reports or Sums
            Reports of this law, or what `aggregate` made of them.
        confidence : float
            Nominal coverage, in (0, 1).
        simultaneous : bool
            Whether the intervals of all coordinates hold at once with that confidence.

        Returns
        -------
        MeanEstimates
            In the user's units; nothing is clipped.

        Raises
        ------
        FingerprintError
            If the data are of another law.
        DataError
            If there are fewer than two reports.
        """
        sums = self.aggregate(data) if isinstance(data, Reports) else data
        require_same_law(sums.fingerprint, self.fingerprint)
        offset, factor = self.score_scale
        return estimate_means(
            sums,
            offset=offset,
            factor=factor,
            noise=self.noise_law(),
            confidence=confidence,
            simultaneous=simultaneous,
        )
