"""Binomial laws, compiled: probabilities to full relative accuracy, and sums of two by contours.

Accounting needs relative, not absolute, accuracy: delta = 1e-12 is a difference of tails
that are themselves about 1e-10. ``lgamma`` would lose n * 1e-16 in the exponent; Loader's
saddle-point form ("Fast and accurate computation of binomial probabilities", 2000) does not.

S = Bin(num_high, 1 - q) + Bin(num_low, q) has no closed form, but its generating function phi(z)
has, and the trapezoidal rule on a circle |z| = r converges faster than any power: with M nodes it
gives Pr[S = s] plus aliases r^M Pr[S = s + M] + ..., which a tilt r near the saddle point makes
negligible. Only about twenty nodes are not negligible themselves, whatever the number of users.
"""

import math
from decimal import Context, Decimal, localcontext

import numpy as np

from shuffledp.core.compiled import njit

_LOG_ROOT_TAU = Decimal("0.9189385332046727417803297364")  # ln sqrt(2 pi)


def _small_stirling_error(n: int) -> float:
    """Return ln(n!) - ln(sqrt(2 pi n) (n/e)^n), right to the last digit on all machines."""
    with localcontext(Context(prec=40)):  # whatever the program has set
        half = n + Decimal("0.5")
        return float(Decimal(math.factorial(n)).ln() - half * Decimal(n).ln() + n - _LOG_ROOT_TAU)


# For n = 0 (unused) to 15; the series below takes over there.
_STIRLING_ERROR_TABLE = np.array([0.0, *map(_small_stirling_error, range(1, 16))])


@njit
def stirling_error(n: float) -> float:
    """Return ln(n!) minus Stirling's approximation, for whole n >= 1."""
    if n <= 15.0:
        return float(_STIRLING_ERROR_TABLE[int(n)])
    square = n * n
    later = (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square
    return (1.0 / 12.0 - (1.0 / 360.0 - later) / square) / n


@njit
def deviance(x: float, mean: float, difference: float) -> float:
    """Return x ln(x / mean) + mean - x without cancellation, where difference = x - mean.

    x and mean are above 0.
    """
    v = difference / (x + mean)
    if abs(v) >= 0.5:
        return x * math.log(x / mean) - difference
    total = difference * v
    term = 2.0 * x * v
    v *= v
    for j in range(1, 1000):
        term *= v
        following = total + term / (2 * j + 1)
        if following == total:
            break
        total = following
    return total


@njit
def log_binomial_pmf(n: float, k: float, p: float, q: float) -> float:
    """Return ln Pr[Bin(n, p) = k] for whole 0 <= k <= n and 0 <= p <= 1, q = 1 - p.

    The complement is an argument of its own because either of the two may be tiny. Error at most
    1e-12 + 4e-15 sqrt(n) within 40 standard deviations of the mean (the second term is the rounding
    of n p itself), checked against multiprecision. O(1).
    """
    if p <= 0.0:
        return 0.0 if k == 0.0 else -math.inf
    if q <= 0.0:
        return 0.0 if k == n else -math.inf
    if k == 0.0:
        return n * (math.log1p(-p) if p < q else math.log(q))
    if k == n:
        return n * (math.log1p(-q) if q < p else math.log(p))
    exponent = stirling_error(n) - stirling_error(k) - stirling_error(n - k)
    exponent -= deviance(k, n * p, k - n * p)
    exponent -= deviance(n - k, n * q, n - k - n * q)
    return exponent + 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))


# Nodes whose factor exp(-variance (1 - cos)) is below exp(-42) = 6e-19 are left out.
_NEGLIGIBLE_SUM = 42.0


@njit
def tilted_moments(num_high: float, num_low: float, q: float, r: float) -> tuple[float, float]:
    """Return mean and variance of S under the law tilted by r^s, 0 < r <= 1."""
    scale = q + (1.0 - q) * r
    high, high_off = (1.0 - q) * r / scale, q / scale
    low = q * r / (1.0 - q + q * r)
    mean = num_high * high + num_low * low
    return mean, num_high * high * high_off + num_low * low * (1.0 - low)


@njit
def log_tilt(r: float) -> float:
    """Return ln r, as accurate as r is near 1."""
    return math.log1p(r - 1.0) if r > 0.5 else math.log(r)


@njit
def log_tilted_mass(
    num_high: float, num_low: float, q: float, s: float, r: float
) -> tuple[float, float]:
    """Return ln(r^-s E[r^S]), at least ln Pr[S = s], and the size of its terms; 0 < r <= 1."""
    one_minus_r = 1.0 - r  # exact where it matters, near r = 1
    power = s * log_tilt(r)
    if (1.0 - q) * r > q:
        # Counted from num_high, so that certain ones leave nothing to cancel.
        high = num_high * math.log1p(q * one_minus_r / r)
        power = (s - num_high) * log_tilt(r)
    elif one_minus_r < 0.5:
        high = num_high * math.log1p(-(1.0 - q) * one_minus_r)
    else:
        high = num_high * math.log(q + (1.0 - q) * r)
    low = num_low * math.log1p(-q * one_minus_r)
    return high + low - power, abs(high) + abs(low) + abs(power)


@njit
def trapezoidal_nodes(
    num_high: float, num_low: float, q: float, s: float, r: float
) -> tuple[float, int]:
    """Return the number of nodes of the sum at s, and the number on one side that matter."""
    mean, variance = tilted_moments(num_high, num_low, q, r)
    # One period must take the tilted law past nine deviations, and the plain law from s to nine
    # beyond its mean, hence the shift.
    shift = abs(num_high * (1.0 - q) + num_low * q - s) + abs(mean - s)
    num_nodes = 2.0 * math.ceil(4.6 * math.sqrt(variance) + 0.5 * shift + 10.0) + 1.0
    last = 0.5 * (num_nodes - 1.0)
    if variance > 0.5 * _NEGLIGIBLE_SUM:
        angle = 2.0 * math.asin(math.sqrt(0.5 * _NEGLIGIBLE_SUM / variance))
        last = min(last, math.floor(angle * num_nodes / (2.0 * math.pi)))
    return num_nodes, int(last) + 1


@njit
def points_and_tail(
    num_high: float, num_low: float, q: float, s: float, r: float
) -> tuple[float, float, float, float]:
    """Return Pr[S = s - 1], Pr[S = s], Pr[S = s + 1] and Pr[S <= s - 1]."""
    num_nodes, visited = trapezoidal_nodes(num_high, num_low, q, s, r)
    scale = q + (1.0 - q) * r
    high, high_off = (1.0 - q) * r / scale, q / scale
    low = q * r / (1.0 - q + q * r)
    # Likely ones are counted from num_high: the phase of those that are certain is exact.
    counted, base = (high_off, num_high - s) if high > 0.5 else (high, -s)
    turn = -num_high if high > 0.5 else num_high
    before, here, after, tail = 0.0, 0.0, 0.0, 0.0
    for node in range(visited):
        theta = 2.0 * math.pi * node / num_nodes
        versine = 2.0 * math.sin(0.5 * theta) ** 2
        sine = math.sin(theta)
        log_modulus = 0.5 * (
            num_high * math.log1p(-2.0 * high * high_off * versine)
            + num_low * math.log1p(-2.0 * low * (1.0 - low) * versine)
        )
        phase = (
            turn * math.atan2(counted * sine, 1.0 - counted * versine)
            + num_low * math.atan2(low * sine, 1.0 - low * versine)
            + base * theta
        )
        modulus = math.exp(log_modulus) * (1.0 if node == 0 else 2.0)
        real, imaginary = modulus * math.cos(phase), modulus * math.sin(phase)
        cosine = 1.0 - versine
        real_shifted = real * cosine - imaginary * sine
        imaginary_shifted = imaginary * cosine + real * sine
        here += real
        before += real_shifted
        after += real * cosine + imaginary * sine
        # 1/(1 - r e^{i theta}), and one power less of e^{i theta} in the tail than at s
        real_gap, imaginary_gap = 1.0 - r * cosine, -r * sine
        norm = real_gap * real_gap + imaginary_gap * imaginary_gap
        tail += (real_shifted * real_gap + imaginary_shifted * imaginary_gap) / norm
    log_scale, _ = log_tilted_mass(num_high, num_low, q, s, r)
    scale = math.exp(log_scale) / num_nodes
    # From 700 on they are below 1e-304, and plain Python would raise where compiled code has inf.
    aliases = 1.0 / math.expm1(min(-num_nodes * log_tilt(r), 700.0))
    return scale * before * r, scale * here, scale * after / r, scale * tail * r - aliases
