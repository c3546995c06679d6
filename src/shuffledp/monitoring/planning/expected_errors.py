"""How far running counts will be from the truth, before any report is seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.reports import read_only
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.running_counts.bands import band_quantile
from shuffledp.monitoring.running_counts.proven_errors import proven_errors
from shuffledp.monitoring.running_counts.variances import expected_standard_errors
from shuffledp.monitoring.tree import PeriodTree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedErrors:
    """Errors of the running counts by one online estimator, period by period.

    Parameters
    ----------
    method : str
        ``"least-squares"`` or ``"cover"``: online, from the reports up to the period.
    confidence : float
        Of the bands, in (0, 1).
    num_values : int
        Counts that run side by side, at least 1: a band for all periods holds for all of them.
    standard_errors : ndarray of float64, shape (periods,)
        In users, of the count of one value; an upper bound for every history.
    proven : ndarray of float64, shape (periods,)
        Errors that no count at any period exceeds with that confidence: proved without any normal
        approximation (Theorem 6 with constants). In users.
    """

    method: str
    confidence: float
    num_values: int
    standard_errors: NDArray[np.float64]
    proven: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("standard_errors", "proven"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def worst(self) -> float:
        """The largest standard error of a period."""
        return float(self.standard_errors.max())

    @property
    def mean(self) -> float:
        """The mean standard error of the periods."""
        return float(self.standard_errors.mean())

    @property
    def root_mean_square(self) -> float:
        """The root mean square standard error of the periods."""
        return root_mean_square(self.standard_errors)

    @property
    def pointwise_quantile(self) -> float:
        """How many standard errors the band reaches to either side that holds at one period."""
        return self._quantile(simultaneous=False)

    @property
    def simultaneous_quantile(self) -> float:
        """The same for the band that holds at all periods and values at once.

        It is simulated when it is first asked for, in half a second at most.
        """
        return self._quantile(simultaneous=True)

    @property
    def pointwise_half_widths(self) -> NDArray[np.float64]:
        """Half-widths of the band that holds at each period alone."""
        return self.standard_errors * self.pointwise_quantile

    @property
    def simultaneous_half_widths(self) -> NDArray[np.float64]:
        """Half-widths of the band that holds at all periods at once."""
        return self.standard_errors * self.simultaneous_quantile

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values."""
        return {
            "method": self.method,
            "worst_standard_error": self.worst,
            "mean_standard_error": self.mean,
            "root_mean_square_standard_error": self.root_mean_square,
            "worst_pointwise_half_width": self.worst * self.pointwise_quantile,
            "worst_simultaneous_half_width": self.worst * self.simultaneous_quantile,
            "worst_proven_error": float(self.proven.max()),
            "standard_errors": self.standard_errors.tolist(),
            "pointwise_half_widths": self.pointwise_half_widths.tolist(),
            "simultaneous_half_widths": self.simultaneous_half_widths.tolist(),
            "proven_errors": self.proven.tolist(),
        }

    def _quantile(self, *, simultaneous: bool) -> float:
        periods = self.standard_errors.size
        return band_quantile(
            PeriodTree(periods=periods),
            periods,
            self.confidence,
            method=self.method,
            simultaneous=simultaneous,
            num_values=self.num_values,
        )


def expected_errors(
    design: MonitorDesign, *, num_users: int, confidence: float, method: str
) -> ExpectedErrors:
    """Return the errors of one online estimator.

    Parameters
    ----------
    design : MonitorDesign
        What clients and server agree on.
    num_users : int
        n, at least 1.
    confidence : float
        Of the bands, in (0, 1).
    method : {"least-squares", "cover"}
        Estimator.

    Returns
    -------
    ExpectedErrors
        Upper bounds for every history.

    Examples
    --------
    >>> design = MonitorDesign(periods=8, max_changes=1, epsilon0=1.0)
    >>> errors = expected_errors(design, num_users=900, confidence=0.95, method="cover")
    >>> bool(abs(errors.standard_errors[0] - 30 * 2 / design.law.gap) < 1e-9)  # sqrt(n L) / gap
    True
    """
    law, factor = design.law, design.encoding.variance_factor
    return ExpectedErrors(
        method=method,
        confidence=confidence,
        num_values=design.encoding.num_values,
        standard_errors=expected_standard_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            method=method,
            pair_correlation=law.pair_correlation,
            variance_factor=factor,
        ),
        proven=proven_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            confidence=confidence,
            method=method,
            pair_correlation=law.pair_correlation,
            variance_factor=factor,
            num_values=design.encoding.num_values,
        ),
    )


def smoothed_errors(design: MonitorDesign, *, num_users: int) -> NDArray[np.float64]:
    """Return the standard errors once all reports are there, by least squares over the whole tree.

    Parameters
    ----------
    design : MonitorDesign
        What clients and server agree on.
    num_users : int
        n, at least 1.

    Returns
    -------
    ndarray of float64, shape (periods,), read-only
        In users; upper bounds for every history.
    """
    return read_only(
        expected_standard_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            smoothed=True,
            pair_correlation=design.law.pair_correlation,
            variance_factor=design.encoding.variance_factor,
        )
    )


def root_mean_square(standard_errors: NDArray[np.float64]) -> float:
    """Return the root mean square over the periods."""
    return float(np.sqrt(np.mean(np.square(standard_errors))))
