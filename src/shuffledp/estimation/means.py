"""Means from sums of reports: unbiased values, standard errors, confidence intervals."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import DataError
from shuffledp.core.reports import Sums
from shuffledp.estimation.intervals import (
    Arrays,
    Interval,
    normal_quantile,
    simultaneous_confidence,
)


class NoiseLaw(NamedTuple):
    """Noise of the reports as a function of their squares; see docs/results/standard-errors.md.

    Parameters
    ----------
    share, constant : float
        Variance of a report given its user's value, averaged over the users: ``share`` times the
        mean squared score, plus ``constant``; in squared scores. A NaN ``share`` means that reports
        cannot separate noise from the spread of the values; their whole variance is then the bound.
    least : float
        The least such variance over all values, >= 0.
    """

    share: float = math.nan
    constant: float = 0.0
    least: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanEstimates(Arrays):
    """Estimates of the mean of each of d coordinates; arrays of shape (d,), read-only.

    Parameters
    ----------
    mean : ndarray of float64
        Unbiased estimate of the mean; may lie outside the range of the values.
    standard_error : ndarray of float64
        Standard error of the mean of these users, with fixed values: the randomization alone.
    population_standard_error : ndarray of float64
        Standard error of the mean of a population that the users are a random sample of.
    lower, upper : ndarray of float64
        Confidence interval of the mean of these users, from ``standard_error``; not clipped.
    population_lower, population_upper : ndarray of float64
        The same for a population, from ``population_standard_error``.
    num_users : int
        Number of reports.
    confidence : float
        Nominal coverage, in (0, 1).
    is_simultaneous : bool
        True if all intervals hold at once with that confidence, rather than each alone.
    """

    interval: ClassVar[str] = "normal"
    post_processing: ClassVar[tuple[str, ...]] = ()  # means are left as estimated

    mean: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    population_standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    population_lower: NDArray[np.float64] = field(init=False, repr=False)
    population_upper: NDArray[np.float64] = field(init=False, repr=False)
    num_users: int
    confidence: float
    is_simultaneous: bool = False

    def _population_interval(self) -> Interval:
        margin = self.quantile * self.population_standard_error
        return self.mean - margin, self.mean + margin

    def _among(self, num_users: int) -> Self:
        # Squared error for a population: (noise + spread) / m; for the users seen: noise / m.
        seen = self.num_users / num_users
        own, population = self.standard_error**2, self.population_standard_error**2
        errors = np.sqrt(seen * own + (1.0 - seen) * population)
        return replace(
            self,
            standard_error=errors,
            lower=self.mean - self.quantile * errors,
            upper=self.mean + self.quantile * errors,
            num_users=num_users,
        )


def estimate_means(
    sums: Sums,
    *,
    offset: float = 0.0,
    factor: float = 1.0,
    noise: NoiseLaw = NoiseLaw(),  # noqa: B008 - immutable
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> MeanEstimates:
    """Return the mean of each coordinate of values ``offset + factor * score``.

    Parameters
    ----------
    sums : Sums
        Sums of at least two reports.
    offset, factor : float
        Affine map from a score to the user's units; factor > 0.
    noise : NoiseLaw
        Noise law of the randomizer of the reports; without it the standard error is an upper bound.
    confidence : float
        Nominal coverage, in (0, 1).
    simultaneous : bool
        True if all intervals must hold at once with that confidence (Bonferroni).

    Returns
    -------
    MeanEstimates
        Values are not clipped.

    Raises
    ------
    DataError
        If there are fewer than two reports, which have no sample variance.
    ParameterError
        If ``factor`` or ``confidence`` is out of range.

    Notes
    -----
    Source: docs/results/standard-errors.md. The sample variance of the reports estimates, without
    bias, their noise plus the variance of the values, as they add for a population. The noise alone
    is estimated without bias if the law determines it (``noise``), and bounded by the whole
    otherwise; errors of both are upwards. The intervals are normal ones; reports are bounded or
    have exponential tails.

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
    total = np.maximum(sums.total_of_squares - num_users * centre**2, 0.0) / (num_users - 1)
    told = noise.share * (sums.total_of_squares / num_users) + noise.constant
    alone = np.maximum(total if math.isnan(noise.share) else told, noise.least)
    mean = offset + factor * centre
    standard_error = factor * np.sqrt(alone / num_users)
    return MeanEstimates(
        mean=mean,
        standard_error=standard_error,
        population_standard_error=factor * np.sqrt(np.maximum(total, alone) / num_users),
        lower=mean - quantile * standard_error,
        upper=mean + quantile * standard_error,
        num_users=num_users,
        confidence=confidence,
        is_simultaneous=simultaneous,
    )
