"""Chernoff's bound of the mean of what a linear form of a histogram is above a level."""

import numpy as np
from numpy.typing import NDArray

# Exponentials of tilts times weights stay finite, and so do their sums.
_LARGEST_EXPONENT = 500.0

_LEAST_MOMENT = 1e-12

# Nothing that is positive is rounded to 0.
_SMALLEST = 1e-290


def excess_means(
    num_users: int, law: NDArray[np.float64], parts: NDArray[np.float64], level: float = 0.0
) -> NDArray[np.float64]:
    """Bound E[(sum_y parts_xy h_y / n - level)_+] for each row x, h ~ Multinomial(n, law).

    Parameters
    ----------
    num_users : int
        n >= 1.
    law : ndarray of float64, shape (m,)
        Positive.
    parts : ndarray of float64, shape (k, m)
        Any weights.
    level : float
        At least 0.

    Returns
    -------
    ndarray of float64, shape (k,)
        Errs upwards.

    Notes
    -----
    s_+ <= e^(t s) / (e t) for every t > 0, so with kappa the cumulant function of one report's
    weight the mean is at most e^(n (kappa(t) - t level)) / (e n t). t is near the best one for a
    normal law; any is valid. O(k m).

    Examples
    --------
    A hundred coins: heads above 60, on average 0.041, over 100.

    >>> excess_means(100, np.array([0.5, 0.5]), np.array([[1.0, 0.0]]), 0.6).round(4)
    array([0.0012])
    """
    means = parts @ law
    variances = np.maximum(np.square(parts - means[:, None]) @ law, _SMALLEST)
    tilts = np.maximum((level - means) / variances, 1.0 / np.sqrt(num_users * variances))
    largest = max(float(np.abs(parts).max()), level, _SMALLEST)
    tilts = np.minimum(tilts, _LARGEST_EXPONENT / largest)
    moments = np.expm1(tilts[:, None] * parts) @ law
    # A moment that is too large is safe, and one this small is all but lost to rounding.
    logarithms = np.log1p(np.maximum(moments, _LEAST_MOMENT - 1.0))
    exponents = num_users * (logarithms - tilts * level) - 1.0
    with np.errstate(under="ignore", over="ignore"):
        bounds = np.exp(exponents) / (num_users * tilts)
    # An average is above the level by no more than its terms are, on average (Jensen).
    alone = np.maximum(parts - level, 0.0) @ law
    least: NDArray[np.float64] = 1.01 * np.minimum(bounds, alone) + _SMALLEST
    return least
