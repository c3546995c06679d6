"""Compiled loops of the informed adversary: Fourier sums, B-splines, likelihoods.

*Likelihoods of a histogram under k-RR when the others' values are known.* With o = t / (1 - t) and
B users who answer at random, the chance of a histogram is up to a factor the sum over K of B! k^-B
product over v of C(c_v, K_v) o^K_v / (h_v - K_v)!. B! is the integral of l^B e^-l, and given l the
noise on the values is independent: one integral of one-dimensional sums, all positive. Taking the
target's report x away multiplies the integrand by the mean noise on x over l. Gauss-Legendre nodes
over seven and a half deviations on each side give likelihood ratios to 1e-7 at least (checked
against fractions).
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _gain(found: np.ndarray, largest: np.ndarray, near: np.ndarray, weights: np.ndarray) -> float:
    """Return by how much one refined coefficient's maximum is below the mean of the maxima."""
    coarse, fine = 0.0, 0.0
    for x in range(found.shape[0]):
        value = 0.0
        for j in range(near.size):
            value += weights[j] * found[x, near[j]]
        fine = max(fine, value)
    for j in range(near.size):
        coarse += weights[j] * largest[near[j]]
    return max(coarse - fine, 0.0)


@njit(cache=True, nogil=True)
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
    """Return by how much the sum of the largest coefficients falls where B-splines are halved."""
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


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)

# Terms below this times the largest are left out of a sum.
_NEGLIGIBLE = 1e-17

_REACH = 7.5
_LEAST_REACH = 45.0
_MOST_STEPS = 60


@njit(cache=True, nogil=True)
def noise_moments(c: float, h: float, odds: float, rate: float) -> tuple[float, float, float]:
    """Return ln F, and mean and variance of the noise h - K, at noise of mean ``rate`` = l / k."""
    if c == 0.0 or h == 0.0:
        return h * math.log(rate) - math.lgamma(h + 1.0), h, 0.0
    # The largest term: (c - K) (h - K) odds / rate = K + 1, solved without cancellation.
    ratio = rate / odds
    linear = c + h + ratio
    root = math.sqrt(max(linear * linear - 4.0 * c * h, 0.0))
    start = min(max(math.floor(2.0 * c * h / (linear + root)), 0.0), c, h)
    total, first, second = 1.0, 0.0, 0.0
    term, kept = 1.0, start
    while kept < c and kept < h:
        term *= (c - kept) * (h - kept) / ((kept + 1.0) * ratio)
        kept += 1.0
        total += term
        first += term * (kept - start)
        second += term * (kept - start) * (kept - start)
        if term < _NEGLIGIBLE * total:
            break
    term, kept = 1.0, start
    while kept > 0.0:
        term *= kept * ratio / ((c - kept + 1.0) * (h - kept + 1.0))
        kept -= 1.0
        total += term
        first += term * (kept - start)
        second += term * (kept - start) * (kept - start)
        if term < _NEGLIGIBLE * total:
            break
    mean = first / total
    log_term = (
        math.lgamma(c + 1.0)
        - math.lgamma(start + 1.0)
        - math.lgamma(c - start + 1.0)
        + start * math.log(odds)
        + (h - start) * math.log(rate)
        - math.lgamma(h - start + 1.0)
    )
    return log_term + math.log(total), h - start - mean, max(second / total - mean * mean, 0.0)


@njit(cache=True, nogil=True)
def _total_moments(
    counts: np.ndarray, seen: np.ndarray, copies: np.ndarray, odds: float, rate: float
) -> tuple[float, float]:
    """Return mean and variance of the noise on all values."""
    mean, variance = 0.0, 0.0
    for j in range(counts.size):
        _, each, spread = noise_moments(counts[j], seen[j], odds, rate)
        mean += copies[j] * each
        variance += copies[j] * spread
    return mean, variance


@njit(cache=True, nogil=True)
def _noise_range(
    counts: np.ndarray, seen: np.ndarray, copies: np.ndarray, odds: float, domain_size: float
) -> tuple[float, float]:
    """Return the ends of the range of l that matters."""
    most = 0.0
    for j in range(counts.size):
        most += copies[j] * seen[j]
    # The bump is where the mean noise is l; there the mean over l falls from above one to below.
    low, high = 0.0, most
    place = most / (1.0 + odds)
    mean, variance = 0.0, 0.0
    for _ in range(_MOST_STEPS):
        place = max(place, 1e-9)
        mean, variance = _total_moments(counts, seen, copies, odds, place / domain_size)
        if mean > place:
            low = place
        else:
            high = place
        slope = variance / place - 1.0
        step = place - (mean - place) / slope if slope < -1e-3 else 0.5 * (low + high)
        if not low <= step <= high:
            step = 0.5 * (low + high)
        done = abs(step - place) <= 0.02 * math.sqrt(place + 1.0)
        place = step
        if done:
            break
    width = place / math.sqrt(max(mean - variance, 1.0))
    return max(place - _REACH * width, 0.0), place + _REACH * width + _LEAST_REACH


@njit(cache=True, nogil=True)
def likelihoods(
    counts: np.ndarray, seen: np.ndarray, copies: np.ndarray, odds: float, domain_size: float
) -> np.ndarray:
    """Return likelihoods of the target's report, in proportion, one for each kind of value."""
    size = counts.size
    low, high = _noise_range(counts, seen, copies, odds, domain_size)
    logs = np.empty(_NODES.size)
    means = np.empty((size, _NODES.size))
    for i in range(_NODES.size):
        place = 0.5 * (high + low) + 0.5 * (high - low) * _NODES[i]
        logs[i] = -place + math.log(_WEIGHTS[i])
        for j in range(size):
            value, mean, _ = noise_moments(counts[j], seen[j], odds, place / domain_size)
            logs[i] += copies[j] * value
            means[j, i] = mean / place
    weights = np.exp(logs - logs.max())
    result = np.empty(size)
    for j in range(size):
        total = 0.0
        for i in range(_NODES.size):
            total += weights[i] * means[j, i]
        result[j] = total
    return result


@njit(cache=True, nogil=True)
def posterior_maxima(
    counts: np.ndarray,
    histograms: np.ndarray,
    prior: np.ndarray,
    truth: float,
    answer: float,
    out: np.ndarray,
) -> None:
    """Write the posterior probability of the best guess for each row of ``histograms``."""
    domain_size = counts.size
    odds = truth / (1.0 - truth)
    places = np.empty(domain_size, dtype=np.int64)
    kinds = np.empty((3, domain_size))
    for row in range(histograms.shape[0]):
        # Values with the same two counts are one kind; sorting brings them together.
        keys = counts * (histograms[row].max() + 1) + histograms[row]
        size, last = 0, np.int64(-1)
        for x in np.argsort(keys):
            if size == 0 or keys[x] != last:
                last = keys[x]
                kinds[0, size] = counts[x]
                kinds[1, size] = histograms[row, x]
                kinds[2, size] = 0.0
                size += 1
            kinds[2, size - 1] += 1.0
            places[x] = size - 1
        found = likelihoods(
            kinds[0, :size], kinds[1, :size], kinds[2, :size], odds, float(domain_size)
        )
        noise = answer * (found * kinds[2, :size]).sum()
        best, total = 0.0, 0.0
        for x in range(domain_size):
            chance = prior[x] * (noise + truth * found[places[x]])
            total += chance
            best = max(best, chance)
        out[row] = best / total
