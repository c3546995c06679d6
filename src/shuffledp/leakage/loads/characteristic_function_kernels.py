"""Compiled sums over the nodes of the maximum load's contour integral."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.binomial_kernels import stirling_error
from shuffledp.leakage.loads.recurrence_kernels import deviance_at

# Steps by rotation between two fresh sines and cosines.
_ROTATIONS = 64

# Powers of what is larger might overflow.
_LARGEST_EXPONENT = 50.0

# A node with a smaller logarithm of its modulus adds nothing.
_LOG_NEGLIGIBLE = -75.0


@njit(cache=True, nogil=True)
def poisson_masses(mean: float, first: int, size: int) -> NDArray[np.float64]:
    """Return Pr[Po(mean) = first], ... for ``size`` numbers from ``first`` >= 0."""
    masses = np.empty(size)
    for i in range(size):
        x = float(first + i)
        if x == 0.0:
            masses[i] = math.exp(-mean)
        else:
            exponent = -stirling_error(x) - deviance_at(x, mean, x - mean)
            masses[i] = math.exp(exponent) / math.sqrt(2.0 * math.pi * x)
    return masses


@njit(cache=True, nogil=True)
def sine_defect(angle: float) -> float:
    """Return sin(angle) - angle without cancellation, for 0 <= angle <= pi."""
    if angle > 0.5:
        return math.sin(angle) - angle
    square = angle * angle
    term = -angle * square / 6.0
    total = term
    for j in range(2, 12):
        term *= -square / ((2.0 * j) * (2.0 * j + 1.0))
        total += term
    return total


@njit(cache=True, nogil=True)
def _lost_share(
    bins: float, ratio_real: float, ratio_imag: float, mass_ratio: float
) -> tuple[float, float, float]:
    """Return real and imaginary part of 1 - (1 - ratio)^bins, and the size of its round-off.

    The modulus of the ratio is below 1/2. ``mass_ratio`` is what it would be without cancellation.
    abs(z^k - w^k) <= k abs(z - w) max(abs(z), abs(w))^(k - 1) gives the round-off.
    """
    gone = ratio_real * (ratio_real - 2.0) + ratio_imag * ratio_imag
    log_kept = 0.5 * bins * math.log1p(gone)
    turned = bins * math.atan2(-ratio_imag, 1.0 - ratio_real)
    real = 2.0 * math.sin(0.5 * turned) ** 2 - math.expm1(log_kept) * math.cos(turned)
    imag = -math.exp(log_kept) * math.sin(turned)
    largest = max(1.0, math.exp(log_kept))
    size = 4.0 * min(abs(real) + abs(imag), 2.0) + 2.0 * bins * mass_ratio * largest
    return real, imag, size


@njit(cache=True, nogil=True)
def _kept_power(
    bins: float, real: float, imag: float, turn: float, mass: float
) -> tuple[float, float]:
    """Return the real part of z^bins e^(-i turn), and the size of its round-off.

    z is good to the round-off of ``mass``.
    """
    modulus = math.hypot(real, imag)
    if modulus == 0.0 or bins * math.log(modulus) < _LOG_NEGLIGIBLE:
        return 0.0, 0.0
    power = math.exp(bins * math.log(modulus))
    angle = bins * math.atan2(imag, real) - turn
    return power * math.cos(angle), power * (2.0 + 2.0 * bins * mass / modulus)


@njit(cache=True, nogil=True)
def add_nodes(
    mean: float,
    bins: float,
    shift: float,
    angle: float,
    num_nodes: int,
    masses: NDArray[np.float64],
    first: int,
    loads: NDArray[np.int64],
    sums: NDArray[np.float64],
    moduli: NDArray[np.float64],
) -> None:
    """Add the nodes' parts of Pr[max > load, sum = n] times the period to ``sums``.

    Parameters: mean of the Poisson law of a bin, number of bins, n minus their product, distance of
    two nodes, number of nodes from 0 up, masses from ``first`` up, loads in decreasing order, sums
    and first-order sizes of the round-off (in units of the round-off of a mass), both per load.
    """
    top = masses.size
    for node in range(num_nodes):
        theta = node * angle
        share = 1.0 if node == 0 else 2.0
        log_free = -2.0 * mean * math.sin(0.5 * theta) ** 2
        turn = mean * sine_defect(theta)
        free_modulus = math.exp(log_free)
        free_real = free_modulus * math.cos(turn)
        free_imag = free_modulus * math.sin(turn)
        phase = bins * turn - shift * theta
        power = math.exp(bins * log_free)
        power_real = power * math.cos(phase)
        power_imag = power * math.sin(phase)
        step_real = math.cos(theta)
        step_imag = -math.sin(theta)
        real = 0.0
        imag = 0.0
        mass = 0.0  # what the tail would be without cancellation: its round-off goes with it
        at = top  # masses[at:] are in the tail
        left = 0
        for i in range(loads.size):
            target = max(loads[i] + 1 - first, 0)
            while at > target:
                at -= 1
                if left == 0:
                    where = (first + at - mean) * theta
                    unit_real = math.cos(where)
                    unit_imag = math.sin(where)
                    left = _ROTATIONS
                else:
                    unit_real, unit_imag = (
                        unit_real * step_real - unit_imag * step_imag,
                        unit_real * step_imag + unit_imag * step_real,
                    )
                left -= 1
                real += masses[at] * unit_real
                imag += masses[at] * unit_imag
                mass += masses[at]
            tail = math.hypot(real, imag)
            if tail < 0.5 * free_modulus and bins * tail < _LARGEST_EXPONENT * free_modulus:
                square = free_modulus * free_modulus
                gone_real, gone_imag, lost = _lost_share(
                    bins,
                    (real * free_real + imag * free_imag) / square,
                    (imag * free_real - real * free_imag) / square,
                    mass / free_modulus,
                )
                sums[i] += share * (power_real * gone_real - power_imag * gone_imag)
                moduli[i] += share * power * lost * (1.0 - bins * log_free)
            else:
                part, size = _kept_power(
                    bins, free_real - real, free_imag - imag, shift * theta, mass + free_modulus
                )
                sums[i] += share * (power_real - part)
                moduli[i] += share * (power * (1.0 - bins * log_free) + size)
