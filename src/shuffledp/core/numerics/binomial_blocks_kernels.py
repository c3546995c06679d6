"""A binomial law cut into blocks of consecutive outcomes, each with its mass and mean, compiled.

Sums over millions of outcomes become sums over thousands of blocks; because every block keeps its
exact mass and conditional mean, convexity bounds the error from both sides.
"""

import math

import numpy as np
from numba import njit

from shuffledp.core.numerics.binomial_kernels import binomial_pmf, deviance


@njit(cache=True, nogil=True)
def chernoff_exponent(n: float, k: float, p: float, q: float) -> float:
    """Return E with Pr[Bin(n, p) is at least as far out as k, on k's side] <= exp(-E), q = 1 - p.

    The deviance of k, which is that of its likelihood at p against that at k / n.
    """
    if p <= 0.0:
        return 0.0 if k == 0.0 else math.inf
    if q <= 0.0:
        return 0.0 if k == n else math.inf
    exponent = n * p if k == 0.0 else deviance(k, n * p)
    exponent += n * q if k == n else deviance(n - k, n * q)
    return exponent


@njit(cache=True, nogil=True)
def binomial_window(n: float, p: float, q: float, tail_exponent: float) -> tuple[float, float]:
    """Return first and last outcome of Bin(n, p) outside which each tail is < exp(-exponent).

    Bisection on the Chernoff exponent, O(log n).
    """
    mode = min(max(math.floor(n * p), 0.0), n)
    outside, inside = -1.0, mode
    while inside - outside > 1.0:
        middle = math.floor(0.5 * (inside + outside))
        if chernoff_exponent(n, middle, p, q) >= tail_exponent:
            outside = middle
        else:
            inside = middle
    first = inside
    outside, inside = n + 1.0, mode
    while outside - inside > 1.0:
        middle = math.ceil(0.5 * (inside + outside))
        if chernoff_exponent(n, middle, p, q) >= tail_exponent:
            outside = middle
        else:
            inside = middle
    return first, inside


@njit(cache=True, nogil=True)
def binomial_blocks(
    n: float, p: float, q: float, first: float, last: float, max_blocks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut [first, last] into at most ``max_blocks`` blocks: starts, masses, conditional means.

    ``starts`` has one entry more than there are blocks: block i is [starts[i], starts[i+1] - 1].
    Cost O(last - first): the pmf by recurrence, anchored anew every 512 outcomes so that its
    relative error stays within 2e-13 of the anchor's.
    """
    count = last - first + 1.0
    length = math.ceil(count / max_blocks)
    num_blocks = math.ceil(count / length)
    starts = np.empty(num_blocks + 1)
    masses = np.empty(num_blocks)
    means = np.empty(num_blocks)
    odds = p / q if q > 0.0 else 0.0
    pmf = 0.0
    since_anchor = 512
    for i in range(num_blocks):
        start = first + i * length
        stop = min(start + length, last + 1.0)
        mass = 0.0
        moment = 0.0
        k = start
        while k < stop:
            if since_anchor >= 512:
                pmf = binomial_pmf(n, k, p, q)
                since_anchor = 0
            mass += pmf
            moment += pmf * (k - start)
            pmf *= odds * (n - k) / (k + 1.0)
            since_anchor += 1
            k += 1.0
        starts[i] = start
        masses[i] = mass
        means[i] = start + (moment / mass if mass > 0.0 else 0.0)
    starts[num_blocks] = last + 1.0
    return starts, masses, means
