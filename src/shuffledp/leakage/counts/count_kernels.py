"""Compiled loops: the fullest bin's recurrence, nodes of contour integrals, splines near ties."""

import math

import numpy as np

from shuffledp.core.arrays import Floats, Integers, Waves
from shuffledp.core.compiled import njit
from shuffledp.core.numerics.binomial_kernels import deviance, stirling_error

# Nothing below this changes a probability of the recurrence: a level has at most some 1e7 terms.
_NEGLIGIBLE = 1e-30

# Below this many balls in the other bins no table of Stirling's error holds between whole numbers.
_FEWEST_ELSEWHERE = 16.0

# Steps by rotation between two fresh sines and cosines.
_ROTATIONS = 64


@njit
def overflow_weight(load: float, bins: float, deficit: float) -> float:
    """Return Pr[Bin(s, 1/bins) = load] for s = bins * load - deficit balls; bins >= 2, load > 0."""
    elsewhere = (bins - 1.0) * load - deficit
    if elsewhere < 0.0:
        return 0.0
    if elsewhere == 0.0:
        return math.pow(bins, -load)
    balls = load + elsewhere
    difference = deficit / bins
    exponent = stirling_error(balls) - stirling_error(load) - stirling_error(elsewhere)
    exponent -= deviance(load, balls / bins, difference)
    exponent -= deviance(elsewhere, balls * (1.0 - 1.0 / bins), -difference)
    return math.exp(exponent) * math.sqrt(balls / (2.0 * math.pi * load * elsewhere))


@njit
def confined(load: int, bins: int, deficit: int, num_strides: int, rule: Floats) -> float:
    """Return the probability that bins * load - deficit balls leave no bin above ``load``."""
    half = rule.size // 2
    stride = deficit / num_strides
    pad = half * (bins - 1)
    size = num_strides + 1 + 2 * pad
    level, terms, added = np.ones(size), np.zeros(size), np.zeros(size)
    for j in range(2, bins + 1):
        reach = half * (bins - j)
        first = pad - reach - half
        last = pad + num_strides + reach + half
        terms[:] = 0.0
        for index in range(first, last + 1):
            at = stride * (index - pad)
            if (j - 1.0) * load - at < _FEWEST_ELSEWHERE:
                break
            weight = overflow_weight(float(load), float(j), at)
            terms[index] = weight * level[index]
            if at > 0.0 and weight < _NEGLIGIBLE:
                break
        for index in range(pad - reach + 1, pad + num_strides + reach + 1):
            total = 0.0
            for c in range(2 * half):
                total += rule[c] * terms[index - half + c]
            added[index] = total
        level[pad] = terms[pad]
        for index in range(pad + 1, pad + num_strides + reach + 1):
            level[index] = level[index - 1] + added[index]
        for index in range(pad, pad - reach, -1):
            level[index - 1] = level[index] - added[index]
    return float(level[pad + num_strides])


@njit
def poisson_masses(mean: float, first: int, size: int) -> Floats:
    """Return Pr[Po(mean) = first], ... for ``size`` numbers from ``first`` >= 0."""
    masses = np.empty(size)
    for i in range(size):
        x = float(first + i)
        if x == 0.0:
            masses[i] = math.exp(-mean)
        else:
            exponent = -stirling_error(x) - deviance(x, mean, x - mean)
            masses[i] = math.exp(exponent) / math.sqrt(2.0 * math.pi * x)
    return masses


@njit
def group_waves(
    masses: Floats, origin: float, angles: Floats, starts: Integers, stops: Integers
) -> Waves:
    """Return the sum of masses[j] e^(i angle (origin + j)) over start <= j < stop."""
    found = np.empty((starts.size, angles.size), dtype=np.complex128)
    turn_real, turn_imag = np.cos(angles), np.sin(angles)
    unit_real, unit_imag = np.empty(angles.size), np.empty(angles.size)
    real, imag = np.empty(angles.size), np.empty(angles.size)
    for group in range(starts.size):
        real[:] = 0.0
        imag[:] = 0.0
        left = 0
        for j in range(starts[group], stops[group]):
            mass = masses[j]
            if left == 0:
                left = _ROTATIONS
                for node in range(angles.size):
                    where = (origin + j) * angles[node]
                    unit_real[node], unit_imag[node] = np.cos(where), np.sin(where)
            left -= 1
            for node in range(angles.size):
                x, y = unit_real[node], unit_imag[node]
                real[node] += mass * x
                imag[node] += mass * y
                unit_real[node] = x * turn_real[node] - y * turn_imag[node]
                unit_imag[node] = x * turn_imag[node] + y * turn_real[node]
        for node in range(angles.size):
            found[group, node] = complex(real[node], imag[node])
    return found


@njit
def _neighbours(cell: int, offsets: np.ndarray, shape: np.ndarray, out: np.ndarray) -> None:
    """Write the flat places of a cell's neighbours; axes wrap around."""
    place = np.empty(shape.size, dtype=np.int64)
    for axis in range(shape.size - 1, -1, -1):
        place[axis] = cell % shape[axis]
        cell //= shape[axis]
    for i in range(offsets.shape[0]):
        flat = 0
        for axis in range(shape.size):
            flat = flat * shape[axis] + (place[axis] + offsets[i, axis]) % shape[axis]
        out[i] = flat


@njit
def _gain(found: np.ndarray, largest: np.ndarray, near: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean of the maxima minus the maximum of one refined coefficient, at least 0."""
    coarse, fine = 0.0, 0.0
    for x in range(found.shape[0]):
        value = 0.0
        for j in range(near.size):
            value += weights[j] * found[x, near[j]]
        fine = max(fine, value)
    for j in range(near.size):
        coarse += weights[j] * largest[near[j]]
    return max(coarse - fine, 0.0)


@njit
def refinement_gain(
    found: np.ndarray,
    largest: np.ndarray,
    best: np.ndarray,
    shape: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    begins: np.ndarray,
    least: float,
) -> float:
    """Return the decrease of the sum of the largest coefficients where B-splines are halved."""
    near = np.empty(weights.size, dtype=np.int64)
    around = begins[1]
    gain = 0.0
    for cell in range(largest.size):
        if np.abs(found[:, cell]).max() < least:
            continue
        _neighbours(cell, offsets[:around], shape, near)
        if np.all(best[near[:around]] == best[cell]):
            continue
        _neighbours(cell, offsets, shape, near)
        for i in range(begins.size - 1):
            part = slice(begins[i], begins[i + 1])
            gain += _gain(found, largest, near[part], weights[part])
    return gain / (begins.size - 1)
