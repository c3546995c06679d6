"""``HashedReports``: all that a randomizer does whose law is a `HashedResponse`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.categories.linear_hashing import (
    LARGEST_CHANNEL_K,
    HashedResponse,
)
from shuffledp.randomizers.categories.linear_hashing_counts import count_supports
from shuffledp.randomizers.protocol import Channel


class HashedReports:
    """Mixed into a `CategoryRandomizer` that has ``num_buckets`` g and ``threshold``.

    A report is one whole number a g + y: the user's own seed a, and the bucket y to which their
    category is hashed, randomized.
    """

    __slots__ = ()

    k: int
    epsilon0: float
    num_buckets: int
    threshold: int
    fingerprint: str

    @property
    def _law(self) -> HashedResponse:
        """The exact law of a report."""
        return HashedResponse(k=self.k, num_buckets=self.num_buckets, threshold=self.threshold)

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report: 1, 2, 4 or 8."""
        return int(self._law.report_type.itemsize)

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that the report's bucket is that of the user's category, or of any other one.

        The latter is exactly 1/g. Rounded to the nearest floats.
        """
        return self._law.support_probabilities

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss and the largest blanket.

        Its proof is in `HashedResponse.blanket`; the attack is that of `HashedResponse.attack`.
        """
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            domain_size=self.k,
            blanket=self._law.blanket(),
            attack=self._law.attack(),
            channel=self.channel if self.k <= LARGEST_CHANNEL_K else None,
        )

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one whole number a g + y for each code. See `CategoryRandomizer`."""
        return Reports(data=self._law.randomize(values, entropy), fingerprint=self.fingerprint)

    def supports(self, reports: Reports) -> NDArray[np.bool_]:
        """Return which categories hash to each report's bucket. See `CategoryRandomizer`."""
        law = self._law
        return law.supports(law.require(reports, self.fingerprint))

    def aggregate(self, reports: Reports) -> Counts:
        """Return how many reports support each category. See `CategoryRandomizer`."""
        law = self._law
        data = law.require(reports, self.fingerprint)
        return Counts(
            support=count_supports(law, data), num_reports=data.size, fingerprint=self.fingerprint
        )

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        Returns
        -------
        tuple of tuples of Fraction, k by g^(m + 1)
            Column a g + y is seed a and bucket y. Each row sums to exactly 1.

        Raises
        ------
        ParameterError
            If k is above 8.
        """
        return self._law.channel()

    def report_columns(self) -> Reports:
        """Return every possible report, in ascending order. See `CategoryRandomizer`."""
        return Reports(data=self._law.all_reports(), fingerprint=self.fingerprint)
