"""Convolution of laws on a lattice by FFT, each probability with a bound on its error.

*Tilting.* A convolution by FFT is exact to some 1e-15 of its largest probability, which says
nothing about a tail of 1e-15. So each law is multiplied by e^(theta l) and divided by its sum
M(theta), which moves the bulk of the sum to where the answer is; afterwards the sum's probability
at l is multiplied by the product of the M(theta) and by e^(-theta l). Several theta, four
deviations apart, cover everything from below the mean to the far end, and each probability is
taken from the theta with the smallest error there.

*Budget.* For each theta, with N points, u the unit round-off and phi_i the transform of part i,
which occurs T times:

- each phi_i is off by at most E_i = c u log2(N) sqrt(N) times the l2 norm of the part, c = 8
  (Higham 2002, "Accuracy and Stability of Numerical Algorithms", Theorem 24.2, has c < 7);
- a power T of a number of modulus at most A, off by E, is off by at most T E A^(T - 1), and the
  logarithm and exponential that compute it add (20 T + 8 + 2 abs(T ln A)) u;
- frequencies at which the product is below e^-700 are left out, which adds less than 1e-300;
- the inverse transform adds c u log2(N) times the l2 norm of its result;
- probability outside the N points wraps around: at most 2e-18, by Chernoff's bound;
- the law is known outside the N points too: there it is at most that Chernoff bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.inversion import last_above_first_below

_UNIT = math.ulp(1.0)  # twice the unit round-off

# Round-off of a transform of N points, relative to the l2 norm, is this times log2(N).
_TRANSFORM_ERROR = 4.0 * _UNIT

# Frequencies with less than e to this are left out: all together they add less than the other. An
# envelope grows by less than e^9 in later parts, since a law's transform is 1 at most.
_NEGLIGIBLE_EXPONENT, _NEGLIGIBLE = -700.0, 1e-300

# Each end of a window of transformed probabilities leaves e^-41.5 = 1e-18 outside.
_OUTSIDE_EXPONENT = 41.5

# Neighbouring tilts are this many deviations apart.
_TILT_STEP = 4.0
_MOST_TILTS = 80

# Points of a transform at most: 2^23 of them take 0.8 GB.
_MOST_POINTS = 1 << 23

# A double below this loses digits.
SMALLEST_MASS = 1e-300

# What a product may lose by falling below the range of doubles.
_LEAST_DOUBT = 1e-320


@dataclass(frozen=True, slots=True)
class Part:
    """One law to be convolved with itself ``count`` times: losses and their probabilities, > 0.

    ``indices`` are increasing and ``losses`` are their multiples of the interval.
    """

    indices: Integers
    losses: Floats
    masses: Floats
    count: int


class Convolution(NamedTuple):
    """The law of a sum, and what is not known about it.

    Parameters
    ----------
    first : int
        Index of the first loss.
    masses, doubts : numpy.ndarray
        Probabilities of the losses from there on, and bounds on the errors of each.
    below, beyond : float
        Bounds on the probability of losses before the first and after the last.
    """

    first: int
    masses: Floats
    doubts: Floats
    below: float
    beyond: float


class _Cumulants(NamedTuple):
    """ln E[e^(theta S)] of the sum S of all parts with its first two derivatives in theta."""

    log_moments: list[float]
    value: float
    mean: float
    variance: float


def _cumulants(parts: Sequence[Part], theta: float) -> _Cumulants:
    value = mean = variance = 0.0
    logs = []
    for part in parts:
        exponents = theta * part.losses + np.log(part.masses)
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        centre = float((weights * part.losses).sum())
        logs.append(top + math.log(total))
        value += part.count * logs[-1]
        mean += part.count * centre
        variance += part.count * float((weights * (part.losses - centre) ** 2).sum())
    return _Cumulants(logs, value, mean, variance)


def _steepest(part: Part, theta: float) -> float:
    """Return the largest exponent that tilting uses."""
    return abs(theta) * float(np.abs(part.losses[[0, -1]]).max())


def _log_value(parts: Sequence[Part], theta: float) -> float:
    """Return ln E[e^(theta S)], rounded up."""
    # Each logarithm rounds exponents of at most 720, and theta times a loss.
    slack = math.fsum(part.count * (720.0 + 2.0 * _steepest(part, theta)) * _UNIT for part in parts)
    return _cumulants(parts, theta).value + slack


def _farthest(parts: Sequence[Part], interval: float, exponent: float) -> tuple[float, float]:
    """Return an x with Pr[S >= x] <= e^-exponent, and the theta that proves it.

    Chernoff: Pr[S >= x] <= E[e^(theta S)] e^(-theta x) for every theta > 0, and any will do. The x
    is least where theta times the tilted mean exceeds ln E[e^(theta S)] by the exponent.
    """

    def rate(inverse: float) -> float:
        found = _cumulants(parts, 1.0 / inverse)
        return max(found.mean / inverse - found.value, 0.0)

    deviation = math.sqrt(_cumulants(parts, 0.0).variance)
    guess = max(deviation, 0.1 * interval) / math.sqrt(2.0 * exponent)
    least = min(interval / 60.0, guess)
    _, inverse = last_above_first_below(
        rate, exponent, least, 1e3 * guess, guess=guess, spread=0.1, relative_tolerance=1e-2
    )
    return (_log_value(parts, 1.0 / inverse) + exponent) * inverse, 1.0 / inverse


def _window(
    parts: Sequence[Part], theta: float, cumulants: _Cumulants, interval: float
) -> tuple[int, int]:
    """Return first and last index outside which the tilted sum is e^-41.5 likely on either side."""
    deviation = math.sqrt(cumulants.variance)
    guess = math.sqrt(2.0 * _OUTSIDE_EXPONENT) / max(deviation, 0.3 * interval)
    # Chernoff for the tilted law: ln E[e^(s S)] = value(theta + s) - value(theta).
    down, up = (
        min(
            (_log_value(parts, theta + sign * s) - cumulants.value + _OUTSIDE_EXPONENT) / s
            for s in (0.7 * guess, guess, 1.4 * guess)
        )
        for sign in (-1.0, 1.0)
    )
    lowest, highest = (
        sum(part.count * int(part.indices[end]) for part in parts) for end in (0, -1)
    )
    return max(math.floor(-down / interval), lowest), min(math.ceil(up / interval), highest)


def _require_points(number: int) -> None:
    if number >= _MOST_POINTS:
        raise PrecisionError(
            f"the composed loss is spread over {number} points of the lattice, more than "
            f"{_MOST_POINTS}: compose with a larger interval or accuracy"
        )


def _convolved(
    parts: Sequence[Part], theta: float, log_moments: Sequence[float], num_points: int
) -> tuple[Floats, float]:
    """Return the tilted law of the sum, indices modulo ``num_points``, and how far each is off."""
    per_norm = _TRANSFORM_ERROR * math.log2(num_points)
    size = num_points // 2 + 1
    kept: Integers = np.arange(size)  # frequencies at which the product is not negligible
    spectrum: NDArray[np.complex128] = np.ones(size, np.complex128)
    # ln of what bounds the modulus of the product, exact or computed; its error relative to that.
    envelope: Floats = np.zeros(size)
    growth: Floats = np.zeros(size)
    for part, log_moment in zip(parts, log_moments, strict=True):
        weights = part.masses * np.exp(theta * part.losses - log_moment)
        tilted = np.bincount(part.indices % num_points, weights=weights, minlength=num_points)
        transform: NDArray[np.complex128] = np.fft.rfft(tilted)[kept]
        doubt = per_norm * math.sqrt(num_points * float(tilted @ tilted))
        exponents = part.count * np.log(np.abs(transform) + doubt)
        envelope += exponents
        counts = envelope > _NEGLIGIBLE_EXPONENT
        kept, spectrum, transform = kept[counts], spectrum[counts], transform[counts]
        envelope, growth, exponents = envelope[counts], growth[counts], exponents[counts]
        modulus = np.abs(transform) + doubt
        growth += part.count * (doubt / modulus + 10.0 * _UNIT)
        growth += (4.0 + np.minimum(np.abs(exponents), 750.0)) * _UNIT
        # Nothing is exactly zero: the logarithm of the least double is finite.
        transform.real += np.where(modulus > doubt, 0.0, SMALLEST_MASS)
        spectrum *= transform if part.count == 1 else np.exp(part.count * np.log(transform))
    shares = np.where((kept == 0) | (kept == size - 1), 1.0, 2.0)  # two have no conjugate
    powers = float(shares @ (np.exp(np.minimum(envelope, 600.0)) * growth)) / num_points
    norm = math.sqrt(float(shares @ np.abs(spectrum) ** 2) / num_points)
    full = np.zeros(size, np.complex128)
    full[kept] = spectrum
    return np.fft.irfft(full, num_points), powers + per_norm * norm + _NEGLIGIBLE


def _from_tilt(
    parts: Sequence[Part], theta: float, interval: float, losses: Floats
) -> tuple[Floats, Floats]:
    """Return the probabilities of some losses by one tilt, and how far each is off."""
    cumulants = _cumulants(parts, theta)
    first, last = _window(parts, theta, cumulants, interval)
    _require_points(last - first)
    num_points = 1 << max(last - first, 15).bit_length()
    convolved, error = _convolved(parts, theta, cumulants.log_moments, num_points)
    # Bound on the tilted sum's probability outside the window, hence on what wraps around inside.
    outside = 2.0 * math.exp(-_OUTSIDE_EXPONENT)
    values, doubts = np.zeros_like(losses), np.full_like(losses, outside)
    offset = round(float(losses[0]) / interval)
    start, stop = max(first - offset, 0), min(last + 1 - offset, losses.size)
    # Tilting rounds each exponent once for every factor, and undoing it once more.
    steepest = theta * float(np.abs(losses[start:stop]).max(initial=0.0))
    relative = 4.0 * _UNIT * (2.0 + steepest + abs(cumulants.value))
    for part, log_moment in zip(parts, cumulants.log_moments, strict=True):
        exponent = abs(log_moment) + _steepest(part, theta)
        relative += part.count * _UNIT * (6.0 + 2.0 * exponent)
    wrapped = np.arange(offset + start, offset + stop) % num_points
    values[start:stop] = np.maximum(convolved[wrapped], 0.0)
    doubts[start:stop] += error + (values[start:stop] + error) * math.expm1(min(relative, 600.0))
    # Where this exceeds e^600 the law without tilt is better known.
    scale = np.exp(np.minimum(cumulants.value - theta * losses, 600.0))
    return values * scale, doubts * scale + _LEAST_DOUBT


def convolve(parts: Sequence[Part], interval: float, negligible: float) -> Convolution:
    """Return the law of the sum of independent losses, each with its ``count`` of copies."""
    reach, theta_end = _farthest(parts, interval, -math.log(negligible))
    # From 0 to the last tilt needed, a few deviations of the sum apart.
    tilts = [0.0]
    while tilts[-1] < theta_end and len(tilts) < _MOST_TILTS:
        deviation = math.sqrt(_cumulants(parts, tilts[-1]).variance)
        tilts.append(min(tilts[-1] + _TILT_STEP / max(deviation, 0.5 * interval), theta_end))
    first, _ = _window(parts, 0.0, _cumulants(parts, 0.0), interval)
    below = 2.0 * math.exp(-_OUTSIDE_EXPONENT)
    end = sum(part.count * int(part.indices[-1]) for part in parts)
    last = max(min(math.ceil(reach / interval), end), first)
    _require_points(last - first)
    losses = interval * np.arange(first, last + 1, dtype=np.float64)
    masses, doubts = np.zeros_like(losses), np.full_like(losses, math.inf)
    for theta in tilts:
        values, errors = _from_tilt(parts, theta, interval, losses)
        better = errors < doubts
        np.copyto(masses, values, where=better)
        np.copyto(doubts, errors, where=better)
    beyond = negligible * (1.0 + 1e-12) if last < end else 0.0
    return Convolution(first, masses, doubts, below, beyond)
