"""Compiled loops: the recurrence, nodes of contour integrals, lists of histograms."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.binomial_kernels import deviance_series, stirling_error

# Nothing below this changes a probability of the recurrence: a level has at most some 1e7 terms.
_NEGLIGIBLE = 1e-30

# Below this many balls in the other bins no table of Stirling's error holds between whole numbers.
_FEWEST_ELSEWHERE = 16.0

# Steps by rotation between two fresh sines and cosines.
_ROTATIONS = 64


@njit(cache=True, nogil=True)
def deviance_at(x: float, mean: float, difference: float) -> float:
    """Return x ln(x / mean) + mean - x for x > 0 and mean > 0, where difference = x - mean."""
    if abs(difference) >= 0.5 * (x + mean):
        return x * math.log(x / mean) - difference
    return deviance_series(x, mean, difference)


@njit(cache=True, nogil=True)
def overflow_weight(load: float, bins: float, deficit: float) -> float:
    """Return Pr[Bin(s, 1/bins) = load] for s = bins * load - deficit balls; bins >= 2, load > 0."""
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
def confined(
    load: int, bins: int, deficit: int, num_strides: int, rule: NDArray[np.float64]
) -> float:
    """Return the probability that bins * load - deficit balls leave no bin above ``load``."""
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
def group_waves(
    masses: NDArray[np.float64],
    origin: float,
    angles: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> NDArray[np.complex128]:
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


@njit(cache=True, nogil=True)
def _unit(
    units: NDArray[np.complex128],
    x: int,
    step_index: int,
    where: float,
    theta: float,
    step: complex,
) -> complex:
    """Return e^(i (where + step_index) theta) and keep it for the next, which is a rotation."""
    if step_index % _ROTATIONS == 0:
        angle = (where + step_index) * theta
        units[x] = complex(math.cos(angle), math.sin(angle))
    else:
        units[x] *= step
    return complex(units[x])


@njit(cache=True, nogil=True)
def _renew(tree: NDArray[np.complex128], leaves: int, leaf: int) -> None:
    """Renew the products above one leaf, above all (negative), or above none (0)."""
    if leaf > 0:
        inner = leaf // 2
        while inner >= 1:
            tree[inner] = tree[2 * inner] * tree[2 * inner + 1]
            inner //= 2
    elif leaf < 0:
        for inner in range(leaves - 1, 0, -1):
            tree[inner] = tree[2 * inner] * tree[2 * inner + 1]


@njit(cache=True, nogil=True)
def add_weighted_nodes(
    means: NDArray[np.float64],
    rest: float,
    shift: float,
    angle: float,
    num_nodes: int,
    masses: NDArray[np.float64],
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    starts: NDArray[np.int64],
    events: NDArray[np.int64],
    outputs: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Add the nodes' parts of Pr[all loads allowed, sum = n] times the period to ``sums``."""
    bins = means.size
    leaves = 1
    while leaves < bins:
        leaves *= 2
    tree = np.empty(2 * leaves, np.complex128)
    units = np.empty(bins, np.complex128)
    at = np.empty(bins, np.int64)
    for node in range(num_nodes):
        theta = node * angle
        share = 1.0 if node == 0 else 2.0
        size = share * math.exp(-2.0 * rest * math.sin(0.5 * theta) ** 2)
        phase = rest * sine_defect(theta) - shift * theta
        factor = complex(size * math.cos(phase), size * math.sin(phase))
        step = complex(math.cos(theta), math.sin(theta))
        for leaf in range(leaves):
            tree[leaves + leaf] = 1.0
        for x in range(bins):
            at[x] = 0
            tree[leaves + x] = 0.0
            while at[x] < starts[x]:
                tree[leaves + x] += masses[offsets[x] + at[x]] * _unit(
                    units, x, at[x], firsts[x] - means[x], theta, step
                )
                at[x] += 1
        _renew(tree, leaves, -1)
        pending = 0
        for e in range(events.size):
            x = events[e]
            if x >= 0:
                tree[leaves + x] += masses[offsets[x] + at[x]] * _unit(
                    units, x, at[x], firsts[x] - means[x], theta, step
                )
                at[x] += 1
                pending += 1
            if outputs[e] < 0:
                continue
            _renew(tree, leaves, leaves + x if pending == 1 else -pending)
            pending = 0
            sums[outputs[e]] += (factor * tree[1]).real


@njit(cache=True, nogil=True)
def _descend(
    start: int,
    low: np.ndarray,
    high: np.ndarray,
    least_after: np.ndarray,
    most_after: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    ends: np.ndarray,
    rests: np.ndarray,
    masses: np.ndarray,
) -> None:
    """Set entries from ``start`` on to the first histogram that agrees with those before."""
    for i in range(start, low.size):
        if i > 0:
            rests[i] = rests[i - 1] - counts[i - 1]
            masses[i] = masses[i - 1] * tables[starts[i - 1] + counts[i - 1] - low[i - 1]]
        counts[i] = max(low[i], rests[i] - most_after[i])
        ends[i] = min(high[i], rests[i] - least_after[i])


@njit(cache=True, nogil=True)
def next_histograms(
    low: np.ndarray,
    high: np.ndarray,
    least_after: np.ndarray,
    most_after: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    ends: np.ndarray,
    rests: np.ndarray,
    masses: np.ndarray,
    is_first: bool,
    out_counts: np.ndarray,
    out_masses: np.ndarray,
) -> int:
    """Fill a block with the next histograms and the products of their masses; return how many."""
    size = low.size
    start = 0 if is_first else size
    filled = 0
    while True:
        if start == size:  # the next one: raise the last entry that can be
            i = size - 1
            while i >= 0 and counts[i] == ends[i]:
                i -= 1
            if i < 0:
                return filled
            counts[i] += 1
            start = i + 1
        _descend(
            start,
            low,
            high,
            least_after,
            most_after,
            tables,
            starts,
            counts,
            ends,
            rests,
            masses,
        )
        start = size
        for i in range(size):
            out_counts[filled, i] = counts[i]
        last = size - 1
        out_masses[filled] = masses[last] * tables[starts[last] + counts[last] - low[last]]
        filled += 1
        if filled == out_masses.size:
            return filled
