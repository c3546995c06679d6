"""What products of two and more signs add to the likelihoods: a shift, and a chance that it fails.

With pre-drawn signs the likelihood ratio of everything released, relative to M uniform sets of
reports of which N_h are at level h, is

    LR_x = 1 + sum_h (N_h / M) sum_{i >= 1} r_i e_i(x_1 A_{h,1}, x_2 A_{h,2}, ...),

A_{h,j} the mean of the N_h reports at node j, e_i the elementary symmetric polynomial, and at most
k of the x at a level not 0. Write D = D_1 + D_2 + D_3 for LR_x - e LR_x' - (1 - e), split into
i = 1, i = 2 and i >= 3, e = e^epsilon. For any shifts s_2, s_3 >= 0

    (1 - e + D)_+ <= (1 - e + D_1 + s_2 + s_3)_+ + (D_2 - s_2)_+ + (D_3 - s_3)_+,

and from below (1 - e + D_1 - s_2 - s_3)_+ - (-D_2 - s_2)_+ - (-D_3 - s_3)_+. It remains to bound
the means of the last two by a small tau.

*Order two.* e_2 is affine in each of its arguments, which are independent with E e^(c A) <=
e^(c^2 / 2 N): replacing them one by one by Gaussians of variance 1/N does not lower the moment
generating function. The matrix of e_2 has eigenvalues (k - 1)/2, once, and -1/2, k - 1 times: for
0 <= t < 1/(k - 1)

    ln E exp(+-t sum_h N_h e_2(x A_h)) <= L psi(+-, t),
    psi(+-, t) = -(1/2) [ln(1 -+ (k - 1) t) + (k - 1) ln(1 +- t)],

also with fewer arguments (Jensen) and for N_h = 0. D_2 = (r_2 / M) (P - e P') with two such sums.
By Hölder's inequality with weights 1/(1+e) and e/(1+e), at l = t M / ((1 + e) abs(r_2))

    ln E e^(l D_2) <= L (psi(s, t) + e psi(-s, t)) / (1 + e),      s the sign of r_2,

whatever P and P' have in common. Last, y_+ <= e^(l y) / (e l), here with Euler's number.

*Orders from three.* e_i is a homogeneous polynomial of degree i in independent signs, with
E e_i^2 <= C(k, i) / N_h^i, and uncorrelated between levels. By hypercontractivity (Bonami;
O'Donnell, "Analysis of Boolean Functions", 2014, Theorem 9.21) its norm of order p >= 2 is at most
(p - 1)^(i/2) times that of order 2:

    norm_p(D_3) <= nu = (1 + e) sum_{i >= 3} abs(r_i) sqrt((p - 1)^i C(k, i) L N^(2 - i)) / M

where all N_h >= N, or N = 1 (then N_h = 0 adds nothing). And y_+ <= (y + s)^p (p - 1)^(p - 1) /
(p^p s^(p - 1)) gives E(D_3 - s_3)_+ <= nu (nu / s_3)^(p - 1) ((p - 1)/p)^(p - 1) / p.

Both fall with M and N: they are evaluated at low quantiles, and the chance of less is added.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.monitoring_profile import MonitoringProfile

# Outward factors for the round-off of exponents of some hundreds.
_WIDER = 1.0 + 1e-9

_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Who hides the target: independent users, uniform with a certain chance, on certain levels.

    Parameters
    ----------
    num_users : int
        n, the target included.
    share : float
        q: chance of another user to be one of the M.
    num_levels : int
        L: levels that the M are spread over, uniformly.
    """

    num_users: int
    share: float
    num_levels: int

    def quantiles(self, failure: float) -> tuple[int, int]:
        """Return M and N such that fewer, in all or at a level, has a chance below ``failure``.

        Chernoff's inequality and the union bound. M counts the target, N does not.
        """
        from shuffledp.core.numerics.binomial_blocks_kernels import binomial_window

        exponent = math.log((1.0 + self.num_levels) / failure) * _WIDER
        others = float(self.num_users - 1)
        if others == 0.0:
            return 1, 0
        in_all, _ = binomial_window(others, self.share, 1.0 - self.share, exponent)
        each = self.share / self.num_levels
        at_level, _ = binomial_window(others, each, 1.0 - each, exponent)
        return int(in_all) + 1, int(at_level)


def has_higher_orders(profile: MonitoringProfile) -> bool:
    """Return whether products of two or more signs have a mean.

    Examples
    --------
    >>> from fractions import Fraction
    >>> has_higher_orders(MonitoringProfile(
    ...     protocol="sampled-change", epsilon0=1.1, max_changes=2, num_levels=4,
    ...     sign_correlations=(Fraction(1), Fraction(1, 4)), uniform_share=Fraction(1, 2),
    ...     alternating=True))
    False
    """
    return any(profile.sign_correlations[2:])


def higher_order_shift(
    profile: MonitoringProfile, crowd: Crowd, *, epsilon: float, tail: float, from_above: bool
) -> tuple[float, float]:
    """Return a shift of the likelihoods' difference, and what may be missed beyond it.

    Parameters
    ----------
    profile : MonitoringProfile
        Its correlations from r_2 on.
    crowd : Crowd
        Users that answer uniformly.
    epsilon : float
        At least 0, at most 200.
    tail : float
        tau, in (0, 1): what each part may miss.
    from_above : bool
        Whether the difference is to be bounded from above, or from below.

    Returns
    -------
    shift : float
        s_2 + s_3, rounded up; ``inf`` if the crowd is too small for any to be proved.
    rare : float
        Chance, at most, that the crowd is too small for it.

    Notes
    -----
    The parts beyond the shift have a mean of at most 2 tau together, given that the crowd is not
    too small. Cost: O(k + ln(1/tau)) vector operations.

    Examples
    --------
    >>> from fractions import Fraction
    >>> profile = MonitoringProfile(
    ...     protocol="two", epsilon0=1.1, max_changes=2, num_levels=1, alternating=True,
    ...     sign_correlations=(Fraction(1), Fraction(1, 4), Fraction(1, 9)),
    ...     uniform_share=Fraction(1, 2))
    >>> crowd = Crowd(num_users=10**6, share=0.5, num_levels=1)
    >>> shift, rare = higher_order_shift(
    ...     profile, crowd, epsilon=0.0, tail=1e-10, from_above=True)
    >>> 0.0 < shift < 1e-4, rare
    (True, 1e-10)
    """
    in_all, at_level = crowd.quantiles(tail)
    each = max(at_level, 1)
    sign = 1.0 if from_above else -1.0
    second = sign * float(profile.correlation(2))
    factor = (1.0 + math.exp(epsilon)) / in_all
    shift = _second_shift(
        second, epsilon, factor, changes=profile.max_changes, levels=crowd.num_levels, tail=tail
    )
    log_orders = _log_orders(profile, crowd.num_levels, each)
    return (shift + _later_shift(log_orders, factor, tail)) * _WIDER, tail


def _second_shift(
    correlation: float, epsilon: float, factor: float, *, changes: int, levels: int, tail: float
) -> float:
    """Return s_2 with E(D_2 - s_2)_+ <= tail: the least over a grid of tilts."""
    if correlation == 0.0:
        return 0.0
    tilt = np.linspace(0.02, 0.98, 49) / (changes - 1.0)

    def log_moment(sign: float) -> NDArray[np.float64]:
        wide = np.log1p(-sign * (changes - 1.0) * tilt)
        return -0.5 * levels * (wide + (changes - 1.0) * np.log1p(sign * tilt))

    ratio = 1.0 / (1.0 + math.exp(-epsilon))  # e / (1 + e)
    sign = math.copysign(1.0, correlation)
    exponent = (1.0 - ratio) * log_moment(sign) + ratio * log_moment(-sign)
    slope = tilt / (factor * abs(correlation))
    shifts = (exponent - 1.0 - np.log(slope) - math.log(tail)) / slope
    return max(float(np.min(shifts)), 0.0)


def _log_orders(
    profile: MonitoringProfile, num_levels: int, each: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return i and ln of abs(r_i) sqrt(C(k, i) L N^(2 - i)), for all i >= 3 with r_i not 0."""
    changes = profile.max_changes
    orders, logs = [], []
    for order, correlation in enumerate(profile.sign_correlations[3:], start=3):
        if correlation:
            log_binomial = (
                math.lgamma(changes + 1.0)
                - math.lgamma(order + 1.0)
                - math.lgamma(changes - order + 1.0)
            )
            squared = log_binomial + math.log(num_levels) + (2.0 - order) * math.log(each)
            log_correlation = math.log(abs(correlation.numerator))
            log_correlation -= math.log(correlation.denominator)
            orders.append(float(order))
            logs.append(log_correlation + 0.5 * squared)
    return np.array(orders), np.array(logs)


def _later_shift(
    log_orders: tuple[NDArray[np.float64], NDArray[np.float64]], factor: float, tail: float
) -> float:
    """Return s_3 with E(D_3 - s_3)_+ <= tail: the least over a grid of orders p."""
    orders, at_two = log_orders
    if orders.size == 0:
        return 0.0
    best, power = math.inf, 2.0
    while power <= 4.0 - 4.0 * math.log(tail):
        logs = at_two + 0.5 * orders * math.log(power - 1.0)
        top = float(np.max(logs))
        log_norm = math.log(factor) + top + math.log(float(np.sum(np.exp(logs - top))))
        log_shift = log_norm + math.log1p(-1.0 / power)
        log_shift += (log_norm - math.log(power * tail)) / (power - 1.0)
        if log_shift < _LARGEST_EXPONENT:
            best = min(best, math.exp(log_shift))
        power *= 1.1
    return best
