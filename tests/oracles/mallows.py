"""Mallows models the slow way: rank distances by their definitions, and moments of distances.

Kendall's distance is a sum of independent truncated geometric variates on {0, ..., m - 1}, m = 1,
..., n. With x = m theta, the textbook forms

    mean = q / (1 - q) - m q^m / (1 - q^m),
    variance = q / (1 - q)^2 - m^2 q^m / (1 - q^m)^2

cancel for small x. There, with g(x) = 1 / (e^x - 1) - 1 / x + 1 / 2 (a power series in x), they are

    mean = (m - 1) / 2 + g(theta) - m g(m theta),
    variance = m^2 g'(m theta) - g'(theta),

since the parts 1 / theta cancel exactly.
"""

import math
from fractions import Fraction

import numpy as np

# g(x) = sum over k >= 1 of B_2k / (2k)! x^(2k - 1), B_2k being Bernoulli's numbers. At x <= 1 each
# term is about (2 pi)^-2 times the one before it, so that ten leave an error below 1e-16.
_BERNOULLI = (
    Fraction(1, 6),
    Fraction(-1, 30),
    Fraction(1, 42),
    Fraction(-1, 30),
    Fraction(5, 66),
    Fraction(-691, 2730),
    Fraction(7, 6),
    Fraction(-3617, 510),
    Fraction(43867, 798),
    Fraction(-174611, 330),
)
_SERIES = tuple(
    float(number / math.factorial(2 * k)) for k, number in enumerate(_BERNOULLI, start=1)
)
# Beyond x = 800 all of e^-x, x e^-x and x^2 e^-x are 0 as floats.
_NEGLIGIBLE = 800.0
_CHUNK = 1 << 16


def distance_moments(num_items: int, theta: float) -> tuple[float, float]:
    """Return mean and variance of Kendall's distance from the identity, relatively within 1e-12.

    Cost: O(min(n, 1 / theta)), about 50 ns a term.
    """
    if math.isinf(theta):
        return 0.0, 0.0
    means, variances = [], []
    for m in _sizes(num_items, theta):
        each_mean, each_variance = _truncated_geometric_moments(m, theta)
        means.append(float(each_mean.sum()))
        variances.append(float(each_variance.sum()))
    rest = _rest(num_items, theta)
    if rest:
        mean, variance = _geometric_moments(theta)
        means.append(rest * mean)
        variances.append(rest * variance)
    return math.fsum(means), math.fsum(variances)


def _last_size(num_items: int, theta: float) -> int:
    """Return the last m that is computed by itself: for larger ones q^m is 0 as a float."""
    return int(min(num_items, _NEGLIGIBLE / theta)) if theta > 0.0 else num_items


def _rest(num_items: int, theta: float) -> int:
    """Return how many m are beyond that."""
    return num_items - _last_size(num_items, theta)


def _sizes(num_items: int, theta: float) -> object:
    """Yield the m that are computed one by one, in pieces."""
    last = _last_size(num_items, theta)
    for first in range(1, last + 1, _CHUNK):
        yield np.arange(first, min(first + _CHUNK, last + 1), dtype=np.float64)


def _geometric_moments(theta: float) -> tuple[float, float]:
    """Return mean and variance of a geometric variate, theta > 0."""
    mean = math.exp(-theta) / -math.expm1(-theta)
    return mean, mean / -math.expm1(-theta)


def _truncated_geometric_moments(sizes: object, theta: float) -> tuple[object, object]:
    """Return means and variances of truncated geometric variates on {0, ..., m - 1}."""
    x = sizes * theta
    mean, variance = np.zeros_like(sizes), np.zeros_like(sizes)
    small = x <= 1.0
    m = sizes[small]
    mean[small] = (m - 1.0) / 2.0 + _g(np.float64(theta)) - m * _g(x[small])
    variance[small] = m**2 * _g_slope(x[small]) - _g_slope(np.float64(theta))
    # For m = 1 both are 0; so the difference of the two terms is at least a tenth of the first.
    large = ~small & (sizes > 1.0)
    if large.any():
        m, whole = sizes[large], _geometric_moments(theta)
        tail = np.exp(-x[large]) / -np.expm1(-x[large])
        mean[large] = whole[0] - m * tail
        variance[large] = whole[1] - m**2 * tail / -np.expm1(-x[large])
    return mean, variance


def _g(x: object) -> object:
    """Return 1 / (e^x - 1) - 1 / x + 1 / 2 for x <= 1."""
    total = np.zeros_like(x)
    for coefficient in reversed(_SERIES):
        total = total * x * x + coefficient
    return np.asarray(total * x)


def _g_slope(x: object) -> object:
    """Return the derivative of g for x <= 1."""
    total = np.zeros_like(x)
    for k in range(len(_SERIES), 0, -1):
        total = total * x * x + (2 * k - 1) * _SERIES[k - 1]
    return np.asarray(total)


def kendall_distance(pi):
    """Return the number of inversions: bit by bit, ones before zeros among equal upper bits."""
    pi = np.asarray(pi)
    inversions = 0
    for bit in range(int(pi.size - 1).bit_length()):
        order = np.argsort(pi >> (bit + 1), kind="stable")
        upper, ones = (pi >> (bit + 1))[order], (pi >> bit & 1)[order]
        before = np.cumsum(ones) - ones
        first = np.flatnonzero(np.r_[True, upper[1:] != upper[:-1]])
        before -= np.repeat(before[first], np.diff(np.r_[first, upper.size]))
        inversions += int(before[ones == 0].sum())
    return inversions


def hamming_distance(pi):
    """Return the number of places whose item moved."""
    return int(np.count_nonzero(np.asarray(pi) != np.arange(np.size(pi))))


def cayley_distance(pi):
    """Return the number of items less that of cycles."""
    items = np.asarray(pi).tolist()
    cycles = 0
    for start in range(len(items)):
        if items[start] >= 0:
            cycles += 1
        here = start
        while items[here] >= 0:
            items[here], here = -1, items[here]
    return len(items) - cycles


def footrule_distance(pi):
    """Return Spearman's footrule."""
    return int(np.abs(np.asarray(pi) - np.arange(np.size(pi))).sum())


DISTANCES = {
    "kendall": kendall_distance,
    "hamming": hamming_distance,
    "cayley": cayley_distance,
    "footrule": footrule_distance,
}


def moments_of_distance(name, num_items, theta):
    """Return mean and variance of the distance of a model."""
    if name == "kendall":
        return distance_moments(num_items, theta)
    if name == "cayley":  # independent swaps at odds j e^-theta
        odds = math.exp(-theta) * np.arange(1.0, num_items)
        return float((odds / (1 + odds)).sum()), float((odds / (1 + odds) ** 2).sum())
    # Hamming: n less a nearly Poisson number of fixed points.
    counts = np.arange(num_items + 1.0)
    log_derangements = np.zeros(num_items + 1)  # ln of D_d / d!
    shares = np.cumsum([(-1.0) ** i / math.factorial(i) for i in range(20)])
    with np.errstate(divide="ignore"):
        log_derangements = np.log(shares[np.minimum(counts, 19).astype(int)])
        steps = np.log(np.maximum(num_items - counts[:-1], 0.0))
    logs = np.r_[0.0, np.cumsum(steps)] + log_derangements - theta * counts
    weights = np.exp(logs - logs.max())
    mean = np.average(counts, weights=weights)
    return float(mean), float(np.average((counts - mean) ** 2, weights=weights))
