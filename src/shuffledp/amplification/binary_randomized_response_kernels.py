"""Exact divergences of shuffled binary randomized response, and their maximum, compiled.

See `binary_randomized_response` for the mathematics.
"""

import math
from typing import NamedTuple

from shuffledp.core.compiled import njit
from shuffledp.core.numerics.binomial_kernels import (
    log_tilted_mass,
    points_and_tail,
    tilted_moments,
)

# ln 1e-300: no smaller divergence is told from 0.
_LOG_SMALLEST = -690.7755278982137

# Number of stretches in a row that must be settled before a longer one is tried.
_STREAK = 4


class Rates(NamedTuple):
    """Differences of p = e^epsilon0, e = e^epsilon and 1, each given, because they may be close."""

    ratio_minus_one: float  # p - 1
    slope: float  # e - 1
    excess: float  # p - e


@njit
def saddle_tilt(num_high: float, num_low: float, q: float, s: float) -> float:
    """Return the r > 0 under which the tilted mean of S is s: a root of a quadratic."""
    if s == num_high + num_low:
        return math.inf  # only an infinite tilt has its mean at the end
    pq = q * (1.0 - q)
    a = (num_high + num_low - s) * pq
    b = (num_high - s) * (1.0 - q) ** 2 + (num_low - s) * q * q  # s may be next to num_high
    c = s * pq
    root = math.sqrt(b * b + 4.0 * a * c)
    return 2.0 * c / (b + root) if b >= 0.0 else (root - b) / (2.0 * a)


@njit
def log_divergence_upper(num_high: float, num_low: float, rates: Rates) -> float:
    """Return a Chernoff bound on ln of `pair_divergence`, rounded up; constant cost.

    delta <= gain f(m) <= gain r^-M E[r^S] for 0 < r <= 1 and M >= m. P(s) <= e Q(s) where
    f(s - 1) >= kappa f(s), kappa = (p - e)/(p e - 1) <= 1, p = e^epsilon0. The mode M of S tilted
    by kappa^s has kappa f(M + 1) <= f(M), so that m <= M, and is within 1 of its mean (Darroch
    1964).
    """
    ratio_minus_one, slope, excess = rates
    ratio = ratio_minus_one + 1.0
    q = 1.0 / (ratio + 1.0)
    others = num_high + num_low
    log_gain = math.log(excess) + math.log(q) if excess > 0.0 else -math.inf
    kappa = excess / (ratio_minus_one + ratio * slope)
    mean, _ = tilted_moments(num_high, num_low, q, kappa)
    last = math.floor(mean + 2.0 + 2e-15 * others)  # more than the rounding of the mean
    if last >= others:
        return log_gain + 1e-12
    r = min(saddle_tilt(num_high, num_low, q, last), 1.0)
    exponent, size = log_tilted_mass(num_high, num_low, q, last, r)
    return log_gain + min(exponent + 4e-15 * size, 0.0) + 1e-12


@njit
def divergence_terms(num_high: float, num_low: float, rates: Rates) -> tuple[float, float]:
    """Return delta of one neighbouring pair, and the size of the terms that cancel in it.

    The others hold ``num_high`` ones and ``num_low`` zeros; the victim's zero becomes a one.
    """
    ratio_minus_one, slope, excess = rates
    ratio = ratio_minus_one + 1.0
    q = 1.0 / (ratio + 1.0)
    gain = excess * q
    others = num_high + num_low
    if others == 0.0:
        return gain, gain
    # P(s) > e Q(s) while f(s-1)/f(s) < kappa; f log-concave, so the optimal set is {s <= m}.
    kappa = excess / (ratio_minus_one + ratio * slope)
    below_pole = math.exp(-0.7 / max(math.sqrt(others * q * (1.0 - q)), 1.0))
    mean, _ = tilted_moments(num_high, num_low, q, kappa)
    s = min(max(math.floor(mean + 1.0), 1.0), others)
    direction = 0.0
    while True:
        tilt = min(saddle_tilt(num_high, num_low, q, s), below_pole)
        before, here, after, tail = points_and_tail(num_high, num_low, q, s, tilt)
        if before > kappa * here and direction <= 0.0:
            if s == 1.0:
                return gain * before, gain * before  # only s = 0 is left in the set
            s -= 1.0
            direction = -1.0
        elif here < kappa * after and s < others and direction >= 0.0:
            s += 1.0
            direction = 1.0
        else:
            # All four come from one sum, so each has the round-off of the largest.
            largest = max(before, here, after)
            return gain * here - slope * tail, gain * largest + slope * max(tail, largest)


@njit
def pair_divergence(num_high: float, num_low: float, rates: Rates) -> tuple[float, float]:
    """Return `divergence_terms`, or zeros where delta is proved to be below 1e-300."""
    if log_divergence_upper(num_high, num_low, rates) < _LOG_SMALLEST:
        return 0.0, 0.0
    return divergence_terms(num_high, num_low, rates)


@njit
def own_divergence(rates: Rates) -> float:
    """Return delta of the victim's report alone, rounded up: no pair has a larger one."""
    return rates.excess / (rates.ratio_minus_one + 2.0) * (1.0 + 1e-14)


@njit
def pair_divergence_upper(num_high: float, num_low: float, rates: Rates, enough: float) -> float:
    """Return `pair_divergence` with its error budget added, or any upper bound <= ``enough``."""
    log_upper = log_divergence_upper(num_high, num_low, rates)
    if log_upper < _LOG_SMALLEST or log_upper < math.log(enough) - 1e-12:
        return math.exp(log_upper)
    value, size = divergence_terms(num_high, num_low, rates)
    root = math.sqrt(num_high + num_low)
    found = value * (1.0 + 1e-12 + 4e-15 * root) + size * (1e-12 + 1e-15 * root)
    return min(found, own_divergence(rates))


@njit
def worst_sampled(others: float, rates: Rates, samples: int, zooms: int) -> float:
    """Return the number of ones with the largest delta among ``samples``, refined near the best."""
    first, last, best, highest = 0.0, others, 0.0, -1.0
    for _ in range(zooms):
        step = max((last - first) / (samples - 1.0), 1.0)
        ones = first
        for i in range(samples + 1):
            ones = min(math.floor(first + i * step), last)
            delta, _ = pair_divergence(ones, others - ones, rates)
            if delta > highest:
                best, highest = ones, delta
            if ones == last:
                break
        first = max(math.floor(best - step), 0.0)
        last = min(math.ceil(best + step), others)
    return best


@njit
def first_excess(others: float, rates: Rates, target: float, start: float) -> float:
    """Return the first number of ones >= ``start`` whose delta may exceed ``target``, or -1.

    Adding a user is post-processing, so the data (a ones, others - length + 1 - a zeros) dominate
    all of a, a + 1, ..., a + length - 1 ones among ``others``: whole stretches are settled at
    once, and their length doubles or halves as needed.
    """
    ones = start
    length = 1.0
    streak = _STREAK
    while ones <= others:
        length = min(length, others - ones + 1.0)
        zeros = others - length + 1.0 - ones
        delta = pair_divergence_upper(ones, zeros, rates, target)
        if delta <= target:
            ones += length
            streak += 1
            if streak >= _STREAK:
                length *= 2.0
        elif length == 1.0:
            return ones
        else:
            length = math.floor(0.5 * length)
            streak = 0
    return -1.0
