"""Standard errors and confidence intervals of a frequency seen through a randomizer.

One report supports a category with probability p if it is its user's true value and q if not, and
users randomize independently. Among n users of whom a share f has the value, the support c then
has mean n (q + f (p - q)) and variance n V(f), V(f) = f p (1 - p) + (1 - f) q (1 - q), *given who
the users are*. That is the randomness that matters where the question is about the very people
who answered, and it is exact. If the users are themselves a random sample and the question is
about the population, sampling adds f (1 - f) / n to the variance of the estimate, so that
V(f) / (n (p - q)^2) becomes s (1 - s) / (n (p - q)^2), s = q + f (p - q).
"""

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_open_unit
from shuffledp.core.errors import ParameterError

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


def standard_error(
    frequency: NDArray[np.float64],
    *,
    support_probabilities: tuple[float, float],
    num_users: int,
    num_slots: int = 1,
) -> NDArray[np.float64]:
    """Return the standard error of the unbiased frequency, given who the users are.

    Parameters
    ----------
    frequency : ndarray, shape (k,)
        True frequencies, or estimates of them. Clipped to [0, 1] here, and only here: V(f) of an
        impossible f could be negative.
    support_probabilities : (float, float)
        p and q, with p > q.
    num_users : int
        Number of reports, at least 1.
    num_slots : int
        Slots of a report, each of which may support the category; the true value is in at most one
        of them, and the others add noise alone.

    Returns
    -------
    ndarray, shape (k,)
        sqrt(V(f) / n) / (p - q), rounded to nearest.

    Notes
    -----
    Source: Wang, Blocki, Li, Jha, USENIX Security 2017, Eq. (2), for fixed users: the same as
    [q (1 - q) + f (p - q) (1 - p - q)] / (n (p - q)^2).

    Examples
    --------
    >>> float(standard_error(np.array([0.0]), support_probabilities=(0.5, 0.25), num_users=3)[0])
    1.0
    """
    p, q = support_probabilities
    possible = np.clip(frequency, 0.0, 1.0)
    variance = possible * (p * (1.0 - p)) + (num_slots - possible) * (q * (1.0 - q))
    result: NDArray[np.float64] = np.sqrt(variance / num_users) / (p - q)
    return result


def wald_interval(
    frequency: NDArray[np.float64],
    *,
    support_probabilities: tuple[float, float],
    num_users: int,
    confidence: float,
    num_slots: int = 1,
) -> Interval:
    """Return estimate -/+ z standard errors, the variance taken at the estimate.

    Parameters
    ----------
    frequency : ndarray, shape (k,)
        Unbiased estimates; may lie outside [0, 1].
    support_probabilities : (float, float)
        p and q, with p > q.
    num_users : int
        Number of reports, at least 1.
    confidence : float
        Nominal coverage, in (0, 1).
    num_slots : int
        As for `standard_error`.

    Returns
    -------
    lower, upper : ndarray, shape (k,)
        Not clipped to [0, 1].

    Raises
    ------
    ParameterError
        If ``confidence`` is not in (0, 1).
    """
    margin = normal_quantile(confidence) * standard_error(
        frequency,
        support_probabilities=support_probabilities,
        num_users=num_users,
        num_slots=num_slots,
    )
    return frequency - margin, frequency + margin


def wilson_interval(
    frequency: NDArray[np.float64],
    *,
    support_probabilities: tuple[float, float],
    num_users: int,
    confidence: float,
    num_slots: int = 1,
) -> Interval:
    """Return every f that the support does not contradict, the variance taken at that f.

    Parameters
    ----------
    frequency : ndarray, shape (k,)
        Unbiased estimates; may lie outside [0, 1].
    support_probabilities : (float, float)
        p and q, with p > q.
    num_users : int
        Number of reports, at least 1.
    confidence : float
        Nominal coverage, in (0, 1).
    num_slots : int
        As for `standard_error`.

    Returns
    -------
    lower, upper : ndarray, shape (k,)
        The two roots f of abs(estimate - f) (p - q) = z sqrt(V(f) / n). They are not clipped to
        [0, 1], so that the interval keeps its width as a measure of noise, and so that an estimate
        below zero is seen for what it is.

    Raises
    ------
    ParameterError
        If ``confidence`` is not in (0, 1).

    Notes
    -----
    Source: Wilson 1927, for V(f) in place of the binomial variance. V is linear in f,
    V(f) = V(0) + g f, so that with a = z^2 / (n (p - q)^2) the condition is the quadratic
    f^2 - (2 e + a g) f + e^2 - a V(0) <= 0 for the estimate e. A quarter of its discriminant is
    a V(e) + (a g / 2)^2, with V continued linearly; it is not negative, since V(e) >= 0 at the
    ends c = 0, where it is p q, and c = n, where it is (1 - p) (1 - q).
    """
    p, q = support_probabilities
    variance_of_others = num_slots * (q * (1.0 - q))
    slope = p * (1.0 - p) - q * (1.0 - q)
    scale = normal_quantile(confidence) ** 2 / (num_users * (p - q) ** 2)
    centre = frequency + 0.5 * scale * slope
    # Round-off alone can take the variance below zero, by 1e-17 where p is 1 to machine precision.
    variance = np.maximum(variance_of_others + slope * frequency, 0.0)
    margin = np.sqrt(scale * variance + (0.5 * scale * slope) ** 2)
    return centre - margin, centre + margin


def clopper_pearson_interval(
    frequency: NDArray[np.float64],
    *,
    support_probabilities: tuple[float, float],
    num_users: int,
    confidence: float,
    num_slots: int = 1,
) -> Interval:
    """Return every f whose binomial tails do not contradict the support: never too short.

    Parameters
    ----------
    frequency : ndarray, shape (k,)
        Unbiased estimates; may lie outside [0, 1].
    support_probabilities : (float, float)
        p and q, with p > q.
    num_users : int
        Number of reports, at least 1.
    confidence : float
        Least coverage, in (0.5, 1).
    num_slots : int
        As for `standard_error`.

    Returns
    -------
    lower, upper : ndarray, shape (k,)
        Not clipped to [0, 1].

    Raises
    ------
    ParameterError
        If ``confidence`` is not in (0.5, 1).

    Notes
    -----
    Source: Clopper, Pearson 1934. The support of a category is a sum of N = n m independent coins,
    m the number of slots, of mean chance s = q + f (p - q) / m. For users drawn at random from a
    population (and one slot) it is binomial, and coverage is at least ``confidence`` exactly. Given
    who the users are, the coins differ, which makes both tails lighter than the binomial ones
    (Hoeffding 1956, Theorem 4, from a distance of one from the mean on; nearer, tails are above
    1/4, which the limits of ``confidence`` leave inside, but for a single supporting report, or a
    single one that does not, where Markov's inequality serves instead). So it covers then, too, and
    the more, the more p differs from q: for common values and a large epsilon0 it is far too wide,
    by the share that sampling would add. For rare values, many categories and simultaneous
    intervals it is the one to take. Cost: a microsecond a category.

    Examples
    --------
    >>> lower, upper = clopper_pearson_interval(
    ...     np.array([0.0]), support_probabilities=(1.0, 0.0), num_users=100, confidence=0.95
    ... )
    >>> float(lower[0]), round(float(upper[0]), 6) == round(1.0 - 0.025**0.01, 6)
    (0.0, True)
    """
    if not require_open_unit("confidence", confidence) > 0.5:
        raise ParameterError(
            f"confidence = {confidence} is not in (0.5, 1): this interval bounds tails below 1/4"
        )
    p, q = support_probabilities
    trials = float(num_users) * num_slots
    support = np.rint(num_users * (num_slots * q + frequency * (p - q)))
    least, most = _share_limits(support, trials, 0.5 * (1.0 - confidence))
    lower, upper = (num_slots * (share - q) / (p - q) for share in (least, most))
    return lower, upper


def _share_limits(support: NDArray[np.float64], trials: float, tail: float) -> Interval:
    """Return the least and the largest mean chance of ``trials`` coins that the support allows."""
    from scipy.special import betainccinv, betaincinv

    # At the ends the beta law has no density; the limits are 0 and 1 there.
    least = betaincinv(np.maximum(support, 1.0), trials - support + 1.0, tail)
    most = betainccinv(support + 1.0, np.maximum(trials - support, 1.0), tail)
    least = np.select([support <= 0.0, support == 1.0], [0.0, tail / trials], least)
    most = np.select([support >= trials, support == trials - 1.0], [1.0, 1.0 - tail / trials], most)
    return least, most


def normal_quantile(confidence: float) -> float:
    """Return z such that a standard normal lies in [-z, z] with probability ``confidence``.

    Parameters
    ----------
    confidence : float
        In (0, 1).

    Returns
    -------
    float
        To double precision.

    Raises
    ------
    ParameterError
        If ``confidence`` is not in (0, 1).

    Examples
    --------
    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    require_open_unit("confidence", confidence)
    # By the lower tail, which a confidence close to 1 leaves exact: 0.5 + confidence / 2 may be 1.
    quantile = -NormalDist().inv_cdf(0.5 * (1.0 - confidence))
    return math.fabs(quantile)


def simultaneous_confidence(confidence: float, num_intervals: int) -> float:
    """Return the confidence that each interval needs so that all of them hold with ``confidence``.

    Parameters
    ----------
    confidence : float
        Nominal coverage of all intervals together, in (0, 1).
    num_intervals : int
        How many there are, at least 1.

    Returns
    -------
    float
        1 - (1 - confidence) / num_intervals.

    Raises
    ------
    ParameterError
        If ``confidence`` is not in (0, 1).

    Notes
    -----
    Bonferroni's inequality, which needs nothing of how the estimates depend on each other.

    It asks for quantiles far in the tail, and those of the normal law are too short for the support
    of a rare category where chance alone, n q, supports it seldom. For k = 1024 categories by k-RR
    at epsilon0 = 1 and confidence 0.95, the Wilson interval of a category that nobody has misses
    67 times as often as it should at n = 1,000 (n q = 1), 4.2 times at 10,000 (n q = 10) and 1.4
    times at 100,000 (n q = 97), so that all intervals hold at once with probability 0.035, 0.81
    and 0.93. The Wald interval, whose variance is taken at the estimate, does not fall short there.
    Neither does a randomizer with a larger q: both unary encodings reach 0.95 at n = 1,000. Look at
    n q: trust simultaneous Wilson intervals from 100 or so, and below take Clopper-Pearson's, which
    cover whatever n q is.

    Examples
    --------
    >>> simultaneous_confidence(0.95, 1)
    0.95
    """
    alpha = 1.0 - require_open_unit("confidence", confidence)
    return confidence if num_intervals == 1 else 1.0 - alpha / num_intervals


#: Name of each kind of interval, and its function.
INTERVALS: Mapping[str, Callable[..., Interval]] = MappingProxyType(
    {
        "wilson": wilson_interval,
        "wald": wald_interval,
        "clopper-pearson": clopper_pearson_interval,
    }
)
