"""Compiled steps of the maximum load's recurrence, level by level."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.binomial_kernels import deviance_series, stirling_error

# Nothing below this changes a probability: a level has at most some 1e7 terms.
_NEGLIGIBLE = 1e-30

# Below this many balls in the other bins no table of Stirling's error holds between whole numbers.
_FEWEST_ELSEWHERE = 16.0


@njit(cache=True, nogil=True)
def deviance_at(x: float, mean: float, difference: float) -> float:
    """Return x ln(x / mean) + mean - x for x > 0 and mean > 0, where difference = x - mean.

    The difference is an argument of its own because it must be good to a relative error as well.
    The series goes further out than speed would ask for: what cancels costs digits.
    """
    if abs(difference) >= 0.5 * (x + mean):
        return x * math.log(x / mean) - difference
    return deviance_series(x, mean, difference)


@njit(cache=True, nogil=True)
def overflow_weight(load: float, bins: float, deficit: float) -> float:
    """Return Pr[Bin(s, 1/bins) = load] for s = bins * load - deficit balls, bins >= 2, load >= 1.

    Where s - load is at least 16, s may be a fraction: factorials are gamma functions then.
    """
    elsewhere = (bins - 1.0) * load - deficit
    if elsewhere < 0.0:
        return 0.0
    if elsewhere == 0.0:
        return math.pow(bins, -load)
    balls = load + elsewhere
    difference = deficit / bins
    exponent = (
        stirling_error(balls)
        - stirling_error(load)
        - stirling_error(elsewhere)
        - deviance_at(load, balls / bins, difference)
        - deviance_at(elsewhere, balls * (1.0 - 1.0 / bins), -difference)
    )
    return math.exp(exponent) * math.sqrt(balls / (2.0 * math.pi * load * elsewhere))


@njit(cache=True, nogil=True)
def confined_by_steps(load: int, bins: int, deficit: int) -> float:
    """Return the probability that bins * load - deficit balls leave no bin above ``load``.

    Every deficit from 0 is visited: O(bins * deficit), less where the weights die out before.
    """
    level = np.ones(deficit + 1)
    for j in range(2, bins + 1):
        total = 0.0
        stop = deficit + 1
        for i in range(deficit + 1):
            weight = overflow_weight(float(load), float(j), float(i))
            total += weight * level[i]
            level[i] = total
            if weight < _NEGLIGIBLE:  # weights fall with the deficit
                stop = i + 1
                break
        for i in range(stop, deficit + 1):
            level[i] = total
    return float(level[deficit])


@njit(cache=True, nogil=True)
def confined_by_strides(
    load: int, bins: int, deficit: int, num_strides: int, rule: NDArray[np.float64]
) -> float:
    """Return the same from ``num_strides`` equal strides of the deficit and a summation rule.

    ``rule`` has 2 q weights: the sum of f over one stride from the values at its q nearest grid
    points on each side. The grid reaches q points further for each level that is still to come.
    """
    half = rule.size // 2
    stride = deficit / num_strides
    pad = half * (bins - 1)
    size = num_strides + 1 + 2 * pad
    level = np.ones(size)
    terms = np.zeros(size)
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
        level[pad] = terms[pad]
        for index in range(pad + 1, pad + num_strides + reach + 1):
            added = 0.0
            for c in range(2 * half):
                added += rule[c] * terms[index - half + c]
            level[index] = level[index - 1] + added
        for index in range(pad, pad - reach, -1):
            added = 0.0
            for c in range(2 * half):
                added += rule[c] * terms[index - half + c]
            level[index - 1] = level[index] - added
    return float(level[pad + num_strides])
