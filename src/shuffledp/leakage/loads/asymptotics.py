"""What the expected maximum load tends to with many balls, and what has been published."""

import functools
import math

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

# Nodes of the trapezoidal rule; the integrands are analytic and dead at both ends.
_FIRST, _LAST, _STEP = -12.0, 40.0, 1.0 / 128.0


@functools.lru_cache(maxsize=256)
def normal_maximum_moments(num_variables: int) -> tuple[float, float, float]:
    """Return the first three moments of the largest of k standard normal variables.

    Parameters
    ----------
    num_variables : int
        k, 1 to 1e15.

    Returns
    -------
    mean, mean_square, mean_cube : float
        Good to some 1e-13.

    Notes
    -----
    The trapezoidal rule for the density k phi Phi^(k-1); constant cost.

    Examples
    --------
    For two variables the mean is 1 / sqrt(pi), and for three 3 / (2 sqrt(pi)):

    >>> import math
    >>> [round(normal_maximum_moments(k)[0] * math.sqrt(math.pi), 12) for k in (2, 3)]
    [1.0, 1.5]
    """
    from scipy.special import log_ndtr

    variables = require_at_least("num_variables", num_variables, 1)
    z = np.arange(_FIRST, _LAST, _STEP)
    logs = (variables - 1) * log_ndtr(z) - 0.5 * z * z
    density = np.exp(logs) * (variables * _STEP / math.sqrt(2.0 * math.pi))
    return math.fsum(density * z), math.fsum(density * z * z), math.fsum(density * z**3)


def asymptotic_excess(num_balls: int, num_bins: int, *, num_terms: int = 2) -> float:
    """Return the leading terms of E[max load] - n / k for many balls.

    With mu, s and c the mean, the mean square and the mean cube of the largest of k standard normal
    variables, and lambda = n / k,

        E[max] = lambda + mu sqrt(lambda) + (s - 1) / 6
                 + (mu / (8 k) - mu / 24 + (mu - c) / 72) / sqrt(lambda) + O(1 / lambda).

    For k = 2 there is moreover a part 1 / (8 sqrt(pi lambda)) that is taken off at even n and added
    at odd n; it is not in the series.

    Parameters
    ----------
    num_balls, num_bins : int
        n >= 1 and k >= 2.
    num_terms : int
        2 or 3 of the terms after lambda.

    Returns
    -------
    float
        No bound on either side; accurate where n / k is large.

    Raises
    ------
    ParameterError
        If a number is not whole or out of range.

    Notes
    -----
    The loads of a Poisson number of balls of mean n are independent with the quantile
    lambda + sqrt(lambda) z + (z^2 - 1) / 6 at lambda = n / k (Cornish and Fisher 1937, without the
    rounding to whole numbers, which is made up for by half a ball), and the maximum of increasing
    functions of k normal variables is that function of their maximum. A fixed number of balls
    changes neither of the first two terms, and adds mu / (8 k sqrt(lambda)). The terms are derived;
    the size of what is left out is seen in numbers, not proved.

    Examples
    --------
    >>> round(asymptotic_excess(10**6, 5), 1)
    520.2
    """
    balls = require_at_least("num_balls", num_balls, 1)
    bins = require_at_least("num_bins", num_bins, 2)
    terms = require_at_least("num_terms", num_terms, 2)
    if terms > 3:
        raise ParameterError(f"num_terms = {terms} is above 3: only three terms are known")
    mean, mean_square, mean_cube = normal_maximum_moments(bins)
    root = math.sqrt(balls / bins)
    total = mean * root + (mean_square - 1.0) / 6.0
    if terms == 3:
        total += (mean / (8.0 * bins) - mean / 24.0 + (mean - mean_cube) / 72.0) / root
    return total


def published_approximation(num_balls: int, num_bins: int) -> float:
    """Return 1 / k + sqrt(ln(k) / (k n)), the approximation of E[max load] / n in the literature.

    Parameters
    ----------
    num_balls, num_bins : int
        n >= 1 and k >= 2.

    Returns
    -------
    float
        No bound. For many balls its second term is too large up to k = 8 (by 1 / .68, .81, .87 and
        .92 for k = 2 to 5) and too small from k = 9; `asymptotic_excess` has the right constant.

    Raises
    ------
    ParameterError
        If a number is not whole or too small.

    Notes
    -----
    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Eq. (15) with f = 1.

    Examples
    --------
    >>> round(published_approximation(200, 2), 4)
    0.5416
    """
    balls = require_at_least("num_balls", num_balls, 1)
    bins = require_at_least("num_bins", num_bins, 2)
    return 1.0 / bins + math.sqrt(math.log(bins) / bins / balls)
