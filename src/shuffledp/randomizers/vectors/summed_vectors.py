"""``SummedVectors``: what both forms of PrivUnit do with the vectors that they report."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import Reports, Sums
from shuffledp.randomizers.vectors.decoding import decoding_scale
from shuffledp.randomizers.vectors.vector_reports import (
    Lengths,
    randomize_vectors,
    require_possible_norms,
    require_vector_reports,
    sum_vectors,
)


class SummedVectors:
    """Mixed into a `MeanRandomizer` whose reports are vectors around the user's own one.

    A class that mixes it in says how long reports can be, whether they lie on the unit sphere, and
    draws their lengths along and across the user's direction.
    """

    __slots__ = ()

    norm_range: ClassVar[tuple[float, float]]
    is_on_sphere: ClassVar[bool]

    dimension: int
    epsilon0: float
    norm_bound: float
    mean_along: float
    fingerprint: str

    @abstractmethod
    def _draw_lengths(self, count: int, entropy: Entropy) -> Lengths:
        """Return the lengths of a number of reports along and across."""

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report: 4 a coordinate."""
        return 4 * self.dimension

    @property
    def score_scale(self) -> tuple[float, float]:
        """Offset 0 and factor norm_bound / m; refused for epsilon0 = 0. See `MeanRandomizer`."""
        return decoding_scale(self.mean_along, self.norm_bound)

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one vector of float32 for each value. See `MeanRandomizer`."""
        data = randomize_vectors(
            values,
            dimension=self.dimension,
            norm_bound=self.norm_bound,
            entropy=entropy,
            draw_lengths=self._draw_lengths,
            is_on_sphere=self.is_on_sphere,
        )
        return Reports(data=data, fingerprint=self.fingerprint)

    def scores(self, reports: Reports) -> NDArray[np.float64]:
        """Return the vectors of the reports, shape (n, d). See `MeanRandomizer`."""
        rows = self._rows(reports)
        require_possible_norms(rows, norm_range=self.norm_range)
        return rows.astype(np.float64)

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of the reports and of their squares. See `MeanRandomizer`."""
        return sum_vectors(
            self._rows(reports), norm_range=self.norm_range, fingerprint=self.fingerprint
        )

    def _rows(self, reports: Reports) -> NDArray[np.float32]:
        """Return the vectors of the reports if they are of this law."""
        return require_vector_reports(
            reports, dimension=self.dimension, fingerprint=self.fingerprint
        )
