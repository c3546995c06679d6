"""Frequencies from counts: unbiased values, standard errors, confidence intervals."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import Counts
from shuffledp.estimation.intervals import (
    Arrays,
    Interval,
    KnownTotal,
    SupportLaw,
    simultaneous_confidence,
    with_sampling,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequencyEstimates(Arrays):
    """Estimates for each of k categories; arrays of shape (k,), read-only.

    Parameters
    ----------
    count : ndarray of float64
        Unbiased number of users with the value; may be negative or above ``num_users``.
    frequency : ndarray of float64
        ``count / num_users``.
    standard_error : ndarray of float64
        Standard error of the unbiased ``frequency`` among these users, with fixed values: the
        randomization alone.
    population_standard_error : ndarray of float64
        Standard error of the frequency in a population that the users are a random sample of.
    lower, upper : ndarray of float64
        Confidence interval of the frequency among these users; not clipped to [0, 1].
    population_lower, population_upper : ndarray of float64
        The same in a population that the users are a random sample of. Wider than necessary for
        Clopper-Pearson intervals, which cover for a population as they are.
    num_users : int
        Number of reports.
    confidence : float
        Nominal coverage of each interval, in (0, 1).
    interval : str
        Kind of interval.
    post_processing : tuple of str
        Names of the steps applied to ``count`` and ``frequency`` after estimation, in order.
        Empty: the values are unbiased.
    is_simultaneous : bool
        True if all k intervals hold at once with that confidence, rather than each alone.
    """

    count: NDArray[np.float64]
    frequency: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    population_standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    population_lower: NDArray[np.float64] = field(init=False, repr=False)
    population_upper: NDArray[np.float64] = field(init=False, repr=False)
    num_users: int
    confidence: float
    interval: str
    post_processing: tuple[str, ...] = ()
    is_simultaneous: bool = False

    def _population_interval(self) -> Interval:
        return with_sampling((self.lower, self.upper), self.quantile**2 / self.num_users)

    def _among(self, num_users: int) -> Self:
        # Sampling variance of a share, for each unit of f (1 - f).
        unit = (num_users - self.num_users) / (self.num_users * (num_users - 1))
        share = np.clip(self.frequency, 0.0, 1.0)
        lower, upper = with_sampling((self.lower, self.upper), self.quantile**2 * unit)
        return replace(
            self,
            count=num_users * self.frequency,
            standard_error=np.sqrt(self.standard_error**2 + unit * share * (1.0 - share)),
            lower=lower,
            upper=upper,
            num_users=num_users,
        )


def estimate_frequencies(
    counts: Counts,
    *,
    support_probabilities: tuple[float, float],
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> FrequencyEstimates:
    """Return the unbiased estimate of each category's frequency, with its error.

    Parameters
    ----------
    counts : Counts
        Counts of at least one report.
    support_probabilities : (float, float)
        p and q of the randomizer that made the reports: its ``support_probabilities``.
    confidence : float
        Nominal coverage of each interval, in (0, 1).
    simultaneous : bool
        True if all k intervals must hold at once with that confidence (Bonferroni: each has a k-th
        of the error), rather than each alone.

    Returns
    -------
    FrequencyEstimates
        With Wilson intervals, which cover well for rare values and few users. Values are neither
        clipped nor normalised; see `shuffledp.estimation.post_processing`.

    Raises
    ------
    ParameterError
        If p <= q (at epsilon0 = 0 reports carry no information), or confidence is out of range.
    DataError
        If there are no reports, or the number of dummies is next to impossible under their law.

    Notes
    -----
    Source: Wang, Blocki, Li, Jha, USENIX Security 2017: count = (support - n q) / (p - q), whose
    expectation is the true count. With M dummies, M / k is subtracted from each support first, and
    the errors include the deviation of the dummies of one category from that. ``standard_error``,
    ``lower`` and ``upper`` are for the randomness of reports and dummies given the users, the whole
    error if the question is about the people who answered. For the population that they were
    sampled from, frequency (1 - frequency) / n is added to its square, which gives
    ``population_standard_error``, and the interval is widened accordingly. Both variances are taken
    at the estimate, clipped to [0, 1] only inside them.

    p and q are floats, so p - q has an absolute error of about 1e-16. It matters only for
    epsilon0 below about 1e-8, where the standard error is far greater still.

    Examples
    --------
    >>> counts = Counts(support=np.array([60, 40]), num_reports=100, fingerprint="")
    >>> estimates = estimate_frequencies(counts, support_probabilities=(0.75, 0.25))
    >>> estimates.count.tolist()
    [70.0, 30.0]
    """
    law, count = unbiased_counts(counts, support_probabilities)
    num_users, frequency = law.num_users, count / law.num_users
    each = simultaneous_confidence(confidence, count.size) if simultaneous else confidence
    lower, upper = law.wilson_interval(frequency, each)
    errors, share = law.standard_error(frequency), np.clip(frequency, 0.0, 1.0)
    return FrequencyEstimates(
        count=count,
        frequency=frequency,
        standard_error=errors,
        population_standard_error=np.sqrt(errors**2 + share * (1.0 - share) / num_users),
        lower=lower,
        upper=upper,
        num_users=num_users,
        confidence=confidence,
        interval="wilson",
        is_simultaneous=simultaneous,
    )


def unbiased_counts(
    counts: Counts, support_probabilities: tuple[float, float]
) -> tuple[SupportLaw, NDArray[np.float64]]:
    """Return the law of a support, and the estimated counts; raises as `estimate_frequencies`."""
    p, q = _require_informative(support_probabilities)
    num_users = counts.num_reports
    if num_users == 0:
        raise DataError("there are no reports, so there is nothing to estimate: collect some")
    dummies = KnownTotal.of(counts.dummies, counts.num_dummies, counts.support.size)
    law = SupportLaw(p, q, num_users, counts.supports_per_report, dummies)
    supports = counts.support.astype(np.float64) - dummies.mean
    return law, (supports - num_users * law.num_slots * q) / (p - q)


def expected_standard_error(
    *,
    support_probabilities: tuple[float, float],
    num_users: int,
    frequency: float,
    num_slots: int = 1,
    dummy_variance: float = 0.0,
) -> float:
    """Return the standard error that an estimate will have, before any data is seen.

    Parameters
    ----------
    support_probabilities : (float, float)
        p and q of the randomizer.
    num_users : int
        Number of users, at least 1.
    frequency : float
        Share of users with the value, in [0, 1].
    num_slots : int
        Largest number of times that one report can support one category.
    dummy_variance : float
        Variance of the number of dummies in one category about the known mean M / k, which is
        ``DummyLaw.error_variance``.

    Returns
    -------
    float
        Exact for that share, up to rounding: the variance is known, given the users.

    Examples
    --------
    >>> expected_standard_error(support_probabilities=(0.75, 0.25), num_users=3, frequency=0.1)
    0.5
    """
    p, q = _require_informative(support_probabilities)
    extra = KnownTotal(mean_variance=require_non_negative("dummy_variance", dummy_variance))
    law = SupportLaw(p, q, num_users, num_slots, extra)
    require_at_least("num_users", num_users, 1)
    if not 0.0 <= frequency <= 1.0:
        raise ParameterError(f"frequency = {frequency} is not in [0, 1]: it is a share of users")
    return float(law.standard_error(np.array([frequency]))[0])


def _require_informative(support_probabilities: tuple[float, float]) -> tuple[float, float]:
    """Return p and q if 0 <= q < p <= 1, else raise `ParameterError`."""
    p, q = support_probabilities
    if not 0.0 <= q < p <= 1.0:
        raise ParameterError(
            "the reports say nothing about the values: use a larger epsilon0 "
            f"(support_probabilities = ({p}, {q}) are not 0 <= q < p <= 1)"
        )
    return p, q
