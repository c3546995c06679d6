"""Estimates about all users from the reports of a random sample of them."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import with_sampling
from shuffledp.estimation.means import MeanEstimates

EstimatesT = TypeVar("EstimatesT", bound=FrequencyEstimates | MeanEstimates)


def for_all_users(estimates: EstimatesT, num_users: int) -> EstimatesT:
    """Return estimates about all users, made from the reports of a random sample of them.

    If holders hand in one report each, m of the n users' reports are seen, and the selection is
    independent of the values. A share among the m is unbiased for the share f among all n, and
    has the sampling variance f (1 - f) / m * (n - m) / (n - 1), for m drawn without replacement.
    The randomizers' own errors are added, and are independent of it. For means, values with the
    variance S^2 (divisor n - 1) have the sampling variance S^2 (1 / m - 1 / n). If all n are
    themselves a random sample of a population, so are the m: the standard errors for the
    population do not change. See `with_sampling`, too.
    """
    number = require_at_least("num_users", num_users, 1)
    seen = estimates.num_users
    if number < seen:
        raise ParameterError(
            f"num_users = {number} is below the number of reports, {seen}: count everybody"
        )
    if number == seen:
        return estimates
    quantile = estimates.quantile
    sizes: FrequencyEstimates | None = getattr(estimates, "sizes", None)
    if sizes is not None:  # group means: their errors are for a population already
        more: Any = {"sizes": for_all_users(sizes, number)}
        return replace(estimates, num_users=number, **more)
    if isinstance(estimates, MeanEstimates):
        # Squared error for a population: (noise + spread) / m; for the users seen: noise / m.
        own, population = estimates.standard_error**2, estimates.population_standard_error**2
        errors = np.sqrt((seen / number) * own + (1.0 - seen / number) * population)
        return replace(
            estimates,
            standard_error=errors,
            lower=estimates.mean - quantile * errors,
            upper=estimates.mean + quantile * errors,
            num_users=number,
        )
    # Sampling variance of a share, for each unit of f (1 - f).
    unit = (number - seen) / (seen * (number - 1))
    share = np.clip(estimates.frequency, 0.0, 1.0)
    lower, upper = with_sampling((estimates.lower, estimates.upper), quantile**2 * unit)
    return replace(
        estimates,
        count=number * estimates.frequency,
        standard_error=np.sqrt(estimates.standard_error**2 + unit * share * (1.0 - share)),
        lower=lower,
        upper=upper,
        num_users=number,
    )
