"""Point and tail probabilities of a sum of two binomials by a contour sum, compiled.

S = Bin(num_high, 1 - q) + Bin(num_low, q) has no closed form, but its generating function phi(z)
has, and the trapezoidal rule on a circle |z| = r converges faster than any power: with M nodes it
gives Pr[S = s] plus aliases r^M Pr[S = s + M] + ..., which a tilt r near the saddle point makes
negligible. Only about twenty nodes are not negligible themselves, whatever the number of users.
"""

import math

from numba import njit

# Nodes whose factor exp(-variance (1 - cos)) is below exp(-42) = 6e-19 are left out.
_NEGLIGIBLE_EXPONENT = 42.0


@njit(cache=True, nogil=True)
def tilted_moments(num_high: float, num_low: float, q: float, r: float) -> tuple[float, float]:
    """Return mean and variance of S under the law tilted by r^s, 0 < r <= 1."""
    high = (1.0 - q) * r / (q + (1.0 - q) * r)
    low = q * r / (1.0 - q + q * r)
    mean = num_high * high + num_low * low
    return mean, num_high * high * (1.0 - high) + num_low * low * (1.0 - low)


@njit(cache=True, nogil=True)
def log_tilt(r: float) -> float:
    """Return ln r, as accurate as r is near 1."""
    return math.log1p(r - 1.0) if r > 0.5 else math.log(r)


@njit(cache=True, nogil=True)
def log_tilted_mass(
    num_high: float, num_low: float, q: float, s: float, r: float
) -> tuple[float, float]:
    """Return ln(r^-s E[r^S]), at least ln Pr[S = s], and the size of its terms; 0 < r <= 1."""
    one_minus_r = 1.0 - r  # exact where it matters, near r = 1
    if one_minus_r < 0.5:
        log_high = math.log1p(-(1.0 - q) * one_minus_r)
    else:
        log_high = math.log(q + (1.0 - q) * r)
    high = num_high * log_high
    low = num_low * math.log1p(-q * one_minus_r)
    power = s * log_tilt(r)
    return high + low - power, abs(high) + abs(low) + abs(power)


@njit(cache=True, nogil=True)
def trapezoidal_nodes(
    num_high: float, num_low: float, q: float, s: float, r: float
) -> tuple[float, int]:
    """Return the number of nodes of the sum at s, and how many of one side are not negligible."""
    mean, variance = tilted_moments(num_high, num_low, q, r)
    # One period must take the tilted law past nine deviations, and the plain law from s to nine
    # beyond its mean, hence the shift.
    shift = abs(num_high * (1.0 - q) + num_low * q - s) + abs(mean - s)
    num_nodes = 2.0 * math.ceil(4.6 * math.sqrt(variance) + 0.5 * shift + 10.0) + 1.0
    last = 0.5 * (num_nodes - 1.0)
    if variance > 0.5 * _NEGLIGIBLE_EXPONENT:
        angle = 2.0 * math.asin(math.sqrt(0.5 * _NEGLIGIBLE_EXPONENT / variance))
        last = min(last, math.floor(angle * num_nodes / (2.0 * math.pi)))
    return num_nodes, int(last) + 1


@njit(cache=True, nogil=True)
def points_and_tail(
    num_high: float, num_low: float, q: float, s: float, r: float
) -> tuple[float, float, float, float]:
    """Return Pr[S = s - 1], Pr[S = s], Pr[S = s + 1] and Pr[S <= s - 1].

    Parameters
    ----------
    num_high, num_low : float
        Whole numbers of terms with success probability 1 - q and q, at least one in all.
    q : float
        In (0, 1/2).
    s : float
        A whole number in [1, num_high + num_low].
    r : float
        The tilt, in (0, 1). Best where the tilted mean is within a deviation of s, but at most
        exp(-0.7 / max(deviation, 1)), since the tail has a pole at r = 1.

    Notes
    -----
    A trapezoidal sum with M nodes for the tail gives F(s - 1) + r^M F(s - 1 + M) + ...; M is so
    large that those F are 1, and the geometric series is subtracted. Common relative error at most
    1e-12 + 4e-15 sqrt(n) (rounding of the exponents); beyond that each is off by at most
    1e-12 + 1e-15 sqrt(n) of the largest of the four. Checked against multiprecision convolution.
    """
    num_nodes, visited = trapezoidal_nodes(num_high, num_low, q, s, r)
    high = (1.0 - q) * r / (q + (1.0 - q) * r)
    low = q * r / (1.0 - q + q * r)
    before, here, after, tail = 0.0, 0.0, 0.0, 0.0
    for node in range(visited):
        theta = 2.0 * math.pi * node / num_nodes
        versine = 2.0 * math.sin(0.5 * theta) ** 2
        sine = math.sin(theta)
        log_modulus = 0.5 * (
            num_high * math.log1p(-2.0 * high * (1.0 - high) * versine)
            + num_low * math.log1p(-2.0 * low * (1.0 - low) * versine)
        )
        phase = (
            num_high * math.atan2(high * sine, 1.0 - high * versine)
            + num_low * math.atan2(low * sine, 1.0 - low * versine)
            - s * theta
        )
        modulus = math.exp(log_modulus) * (1.0 if node == 0 else 2.0)
        real, imaginary = modulus * math.cos(phase), modulus * math.sin(phase)
        cosine = 1.0 - versine
        here += real
        before += real * cosine - imaginary * sine
        after += real * cosine + imaginary * sine
        # 1/(1 - r e^{i theta}), and one power less of e^{i theta} in the tail than at s
        real_gap, imaginary_gap = 1.0 - r * cosine, -r * sine
        norm = real_gap * real_gap + imaginary_gap * imaginary_gap
        real_shifted = real * cosine - imaginary * sine
        imaginary_shifted = imaginary * cosine + real * sine
        tail += (real_shifted * real_gap + imaginary_shifted * imaginary_gap) / norm
    log_scale, _ = log_tilted_mass(num_high, num_low, q, s, r)
    scale = math.exp(log_scale) / num_nodes
    aliases = 1.0 / math.expm1(-num_nodes * log_tilt(r))
    return scale * before * r, scale * here, scale * after / r, scale * tail * r - aliases
