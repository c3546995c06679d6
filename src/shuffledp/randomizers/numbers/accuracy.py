"""How far an estimated mean will be off, before any data is seen."""

import math
from typing import SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.randomizers.mean_randomizer import MeanRandomizer


def expected_standard_error(
    randomizer: MeanRandomizer, *, num_users: SupportsIndex, value: float | None = None
) -> float:
    """Return the standard error that a mean will have, given who the users are.

    Parameters
    ----------
    randomizer : MeanRandomizer
        For example `Duchi`.
    num_users : int
        Number of users, at least 1.
    value : float, optional
        What all users are taken to have, in the range. Without it their values are taken to be
        spread evenly over the range: the root mean square over it.

    Returns
    -------
    float
        In the units of the values, to double precision. The variances of the users add, so that
        for any other values it lies between those for the best and the worst single value.

    Raises
    ------
    DomainError
        If ``value`` is outside the range.
    ParameterError
        If ``num_users`` is below 1, or the reports say nothing (epsilon0 = 0).

    Examples
    --------
    >>> from shuffledp.randomizers.numbers.laplace import DiscreteLaplace
    >>> randomizer = DiscreteLaplace(low=0, high=1, epsilon0=1.0)
    >>> round(expected_standard_error(randomizer, num_users=200), 4)  # sqrt(2 / 200)
    0.1
    """
    count = require_at_least("num_users", num_users, 1)
    variance = (
        randomizer.mean_report_variance() if value is None else randomizer.report_variance(value)
    )
    return math.sqrt(variance / count)
