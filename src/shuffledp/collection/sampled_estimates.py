"""Estimates about all users where the reports of a random sample of them were released.

Where holders hand in one report each, m of the n users' reports are seen, and which ones is
independent of the values. A share among the m is unbiased for the share f among all n, and strays
from it with variance f (1 - f) / m * (n - m) / (n - 1), for m drawn without replacement. The
randomizers' own errors come on top, and are independent of that. For means, values with
the variance S^2 (divisor n - 1) stray with the variance S^2 (1 / m - 1 / n).

Where all n are themselves a random sample of a population, so are the m: the standard errors for
the population stay what they are.
"""

from dataclasses import replace

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import normal_quantile, simultaneous_confidence
from shuffledp.estimation.means import MeanEstimates


def for_all_users(
    estimates: FrequencyEstimates | MeanEstimates, num_users: int
) -> FrequencyEstimates | MeanEstimates:
    """Return estimates about all users, made from the reports of a random sample of them.

    Parameters
    ----------
    estimates : FrequencyEstimates or MeanEstimates
        About the users whose reports were released, ``estimates.num_users`` of them.
    num_users : int
        How many users there are, at least that many.

    Returns
    -------
    FrequencyEstimates or MeanEstimates
        Counts are those among all users, and standard errors and intervals allow for the sampling;
        those for a population stay. They err on the wide side: the sampling variance of an interval
        is the largest of any frequency in it, or so near that a sample need not show the
        difference; and of a mean it errs where the standard error does.

    Raises
    ------
    ParameterError
        If there are fewer users than reports.

    Notes
    -----
    Source: this module. An interval is widened around its middle by adding the squared half
    width and z^2 times the sampling variance, as for independent errors.

    Examples
    --------
    >>> from shuffledp.estimation.frequencies import estimate_frequencies
    >>> from shuffledp.core.reports import Counts
    >>> counts = Counts(support=np.array([60, 40]), num_reports=100, fingerprint="")
    >>> sample = estimate_frequencies(counts, support_probabilities=(0.75, 0.25))
    >>> for_all_users(sample, 1000).count.tolist()
    [700.0, 300.0]
    """
    number = require_at_least("num_users", num_users, 1)
    seen = estimates.num_users
    if number < seen:
        raise ParameterError(
            f"num_users = {number} is below the number of reports, {seen}: count everybody"
        )
    if number == seen:
        return estimates
    if isinstance(estimates, MeanEstimates):
        return _mean_for_all(estimates, number)
    # Sampling variance of a share, for each unit of f (1 - f).
    unit = (number - seen) / (seen * (number - 1))
    confidence = estimates.confidence
    if estimates.is_simultaneous:
        confidence = simultaneous_confidence(confidence, estimates.frequency.size)
    share = np.clip(estimates.frequency, 0.0, 1.0)
    lower, upper = estimates.lower, estimates.upper
    scale = normal_quantile(confidence) ** 2 * unit
    # f (1 - f) is largest at the point nearest to one half. A share below z^2 / m may show nowhere
    # in a sample (Wilson's interval for a count of zero ends there).
    worst = np.clip(np.clip(0.5, lower - scale, upper + scale), 0.0, 1.0)
    middle = (lower + upper) / 2.0
    half = np.sqrt(((upper - lower) / 2.0) ** 2 + scale * worst * (1.0 - worst))
    return replace(
        estimates,
        count=number * estimates.frequency,
        standard_error=np.sqrt(estimates.standard_error**2 + unit * share * (1.0 - share)),
        lower=middle - half,
        upper=middle + half,
        num_users=number,
    )


def _mean_for_all(estimates: MeanEstimates, number: int) -> MeanEstimates:
    """Return means for all users: noise and spread of values weigh 1/m and 1/m - 1/n.

    The squared standard error for a population is (noise + spread) / m, that for those who were
    seen noise / m.
    """
    seen = estimates.num_users / number
    errors = np.sqrt(
        seen * estimates.standard_error**2 + (1.0 - seen) * estimates.population_standard_error**2
    )
    confidence = estimates.confidence
    if estimates.is_simultaneous:
        confidence = simultaneous_confidence(confidence, errors.size)
    margin = normal_quantile(confidence) * errors
    return replace(
        estimates,
        standard_error=errors,
        lower=estimates.mean - margin,
        upper=estimates.mean + margin,
        num_users=number,
    )
