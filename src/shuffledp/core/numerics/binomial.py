"""Binomial probabilities to full relative accuracy, for arrays.

Relative, not absolute, accuracy is what accounting needs: delta = 1e-12 is a difference of tails
that are themselves about 1e-10. ``lgamma`` would lose n * 1e-16 in the exponent; Loader's
saddle-point form ("Fast and accurate computation of binomial probabilities", 2000) does not.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

# ln(n!) - ln(sqrt(2 pi n) (n/e)^n) for n = 0 (unused) to 15; the series below takes over there.
# Written out, since the difference would lose two digits, and not the same ones on all machines.
_STIRLING_ERRORS = np.array(
    [
        0.0,
        0.08106146679532726,
        0.0413406959554093,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
        0.00833056343336287,
        0.007573675487951841,
        0.00694284010720953,
        0.006408994188004207,
        0.0059513701127588475,
        0.005554733551962801,
    ]
)

# Below this size of v = (x - mean) / (x + mean) a deviance is summed as a series, of as many terms:
# the next is below 1e-17 of the sum.
_SERIES_UP_TO, _SERIES_TERMS = 0.1, 8

# Points at which a window's end is looked for at once.
_POINTS = 65


def stirling_error(n: Numbers) -> Numbers:
    """Return ln(n!) minus Stirling's approximation, for whole n >= 1, and 0 for 0."""
    # No branches: compiled loops of `shuffledp.leakage` take this function for single numbers.
    large = np.maximum(n, 16.0)
    square = large * large
    series = (
        1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square)
        / square
    ) / large
    listed = _STIRLING_ERRORS[np.int64(np.minimum(n, 15.0))]
    found: Numbers = (n < 16.0) * listed + (n >= 16.0) * series
    return found


@np.errstate(all="ignore")
def deviance(x: ArrayLike, mean: ArrayLike) -> Numbers:
    """Return x ln(x / mean) + mean - x without cancellation, for x >= 0 and mean >= 0."""
    x, mean = np.asarray(x, np.float64), np.asarray(mean, np.float64)
    difference = x - mean
    v = difference / (x + mean)
    square = v * v
    series = np.zeros_like(square)
    for j in range(_SERIES_TERMS, 0, -1):
        series = (series + 1.0 / (2 * j + 1)) * square
    near = difference * v + 2.0 * x * v * series
    far = np.where(x > 0.0, x * np.log(x / mean), 0.0) - difference
    return np.where(x == mean, 0.0, np.where(np.abs(v) < _SERIES_UP_TO, near, far))


def chernoff_exponent(n: ArrayLike, k: ArrayLike, p: ArrayLike, q: ArrayLike) -> Numbers:
    """Return E with Pr[Bin(n, p) is at least as far out as k, on k's side] <= exp(-E), q = 1 - p.

    The deviance of k, which is that of its likelihood at p against that at k / n.
    """
    n, k, p, q = (np.asarray(each, np.float64) for each in (n, k, p, q))
    both = deviance(np.stack([k, n - k]), np.stack([n * p + 0.0 * k, n * q + 0.0 * k]))
    exponent: Numbers = both[0] + both[1]
    return exponent


@np.errstate(all="ignore")
def log_binomial_pmf(n: ArrayLike, k: ArrayLike, p: ArrayLike, q: ArrayLike) -> Numbers:
    """Return ln Pr[Bin(n, p) = k] for whole 0 <= k <= n and 0 <= p <= 1, q = 1 - p.

    The complement is an argument of its own because either of the two may be tiny.
    """
    n, k, p, q = (np.asarray(each, np.float64) for each in (n, k, p, q))
    errors = stirling_error(np.stack([n + 0.0 * k, k, n - k]))
    inner = errors[0] - errors[1] - errors[2] - chernoff_exponent(n, k, p, q)
    inner += 0.5 * np.log(n / (2.0 * math.pi * k * (n - k)))
    # With all or nothing, n times a logarithm; and 0 without terms.
    none, every = (np.where(off < on, np.log1p(-off), np.log(on)) for off, on in ((p, q), (q, p)))
    ends = np.where(n > 0.0, n * np.where(k == 0.0, none, every), 0.0)
    return np.where((k == 0.0) | (k == n), ends, inner)


def binomial_pmf(n: ArrayLike, k: ArrayLike, p: ArrayLike, q: ArrayLike) -> Numbers:
    """Return Pr[Bin(n, p) = k], as `log_binomial_pmf` takes it.

    Relative error at most 1e-12 + 4e-15 sqrt(n) within 40 standard deviations of the mean (the
    second term is the rounding of n p itself), checked against multiprecision.
    """
    return np.exp(log_binomial_pmf(n, k, p, q))


def binomial_window(n: float, p: float, q: float, tail_exponent: float) -> tuple[float, float]:
    """Return first and last outcome of Bin(n, p) outside which each tail is < exp(-exponent).

    A search on the Chernoff exponent, O(log n).
    """
    mode = min(max(math.floor(n * p), 0), n)
    ends = []
    for side in (-1.0, 1.0):  # by distances from the mode
        inside, outside = 0.0, 1.0 + (n - mode if side > 0.0 else mode)
        while outside - inside > 1.0:
            distances = np.unique(np.rint(np.linspace(inside, outside, _POINTS)))[1:-1]
            negligible = chernoff_exponent(n, mode + side * distances, p, q) >= tail_exponent
            outside = min(distances[negligible], default=outside)
            inside = max(distances[distances < outside], default=inside)
        ends.append(float(mode + side * inside))
    return ends[0], ends[1]
