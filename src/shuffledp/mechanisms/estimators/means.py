"""Means from sums of reports: unbiased values, standard errors, confidence intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import DataError
from shuffledp.mechanisms.estimators.intervals import normal_quantile, simultaneous_confidence
from shuffledp.mechanisms.reports import Sums, read_only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanEstimates:
    """Estimates of the mean of each of d coordinates; arrays of shape (d,), read-only.

    Parameters
    ----------
    mean : ndarray of float64
        Unbiased; may lie outside the range of the values.
    standard_error : ndarray of float64
        Of the mean, from the spread of the reports.
    lower, upper : ndarray of float64
        Confidence interval of the mean; not clipped.
    num_users : int
        Number of reports.
    confidence : float
        Nominal coverage, in (0, 1).
    is_simultaneous : bool
        Whether all intervals hold at once with that confidence, rather than each alone.
    """

    mean: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    num_users: int
    confidence: float
    is_simultaneous: bool = False

    def __post_init__(self) -> None:
        for name in ("mean", "standard_error", "lower", "upper"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def interval(self) -> str:
        """Kind of interval: normal."""
        return "normal"

    @property
    def post_processing(self) -> tuple[str, ...]:
        """Nothing: means are left as estimated."""
        return ()

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays by name, in the order of a table."""
        return {
            "mean": self.mean,
            "standard_error": self.standard_error,
            "lower": self.lower,
            "upper": self.upper,
        }


def estimate_means(
    sums: Sums,
    *,
    offset: float = 0.0,
    factor: float = 1.0,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> MeanEstimates:
    """Return the mean of each coordinate, ``offset + factor * score`` being what a report means.

    Parameters
    ----------
    sums : Sums
        Of at least two reports.
    offset, factor : float
        What takes a score to the user's units; factor > 0.
    confidence : float
        Nominal coverage, in (0, 1).
    simultaneous : bool
        Whether all intervals hold at once with that confidence (Bonferroni).

    Returns
    -------
    MeanEstimates
        Nothing is clipped.

    Raises
    ------
    DataError
        If there are fewer than two reports, whose spread nobody can tell.
    ParameterError
        If ``factor`` or ``confidence`` is out of range.

    Notes
    -----
    The variance is the unbiased sample variance of the reports. For users who are a random sample
    of a population it is that of the estimate of the population's mean. For the mean over the very
    users who reported it is too large by the variance of their values, so that the interval errs
    on the wide side: how much of the reports' spread comes from the values cannot be told. The
    intervals are normal ones; reports are bounded or have exponential tails.

    Examples
    --------
    >>> sums = Sums(
    ...     total=np.array([6.0]), total_of_squares=np.array([20.0]), num_reports=2, fingerprint=""
    ... )
    >>> estimates = estimate_means(sums)
    >>> float(estimates.mean[0]), float(estimates.standard_error[0])
    (3.0, 1.0)
    """
    factor = require_positive("factor", factor)
    num_users = sums.num_reports
    if num_users < 2:
        raise DataError(f"there are {num_users} reports: a mean and its error need at least two")
    each = simultaneous_confidence(confidence, sums.total.size) if simultaneous else confidence
    quantile = normal_quantile(each)
    centre = sums.total / num_users
    # Round-off can take the variance of equal reports below zero.
    variance = np.maximum(sums.total_of_squares - num_users * centre**2, 0.0) / (num_users - 1)
    mean = offset + factor * centre
    standard_error = factor * np.sqrt(variance / num_users)
    return MeanEstimates(
        mean=mean,
        standard_error=standard_error,
        lower=mean - quantile * standard_error,
        upper=mean + quantile * standard_error,
        num_users=num_users,
        confidence=confidence,
        is_simultaneous=simultaneous,
    )
