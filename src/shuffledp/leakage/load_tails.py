"""How often no bin has more than m balls, in two ways that share nothing but the law.

*The recurrence*, for many balls in few bins: the first ball that would be one too many. With G_1 =
1 and h_j(s) = Pr[Bin(s, 1/j) = m],

    G_j(i) = sum over 0 <= t <= i of h_j(j m - t) G_{j-1}(t),   Pr[max <= m] = G_k(k m - n).

Nothing cancels; where sigma = sqrt(n / k) is at least 64 the sum is taken by strides of at most
sigma / 16. A level adds a relative 1e-14. Beyond some 1900 bins it would underflow.

*The characteristic function*, for all else: Poisson bins and a contour integral over nodes of a
period. Aliases and nodes left out are below 4e-18 of a chance; the kernel adds up the first-order
effect of a relative error of 1e-14 of each mass and phase.

Proofs, and what is estimated: docs/results/leakage-maximum-load.md.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Sums are taken by strides of at most sigma / _STRIDES, of sigma from the smallest on.
_SMALLEST_SPREAD = 64.0
_STRIDES = 16.0
_HALF_STENCIL = 7

# More bins would underflow.
_MOST_BINS = 1000

# Relative error of a level.
LEVEL_ERROR = 1e-14

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)

# Seconds a term takes, about.
_SECONDS_A_TERM = 4e-8


@functools.lru_cache(maxsize=1)
def _basis() -> NDArray[np.float64]:
    """Return the coefficients of Lagrange's polynomials of the stencil, one row a point."""
    points = range(1 - _HALF_STENCIL, _HALF_STENCIL + 1)
    rows = []
    for at in points:
        others = [p for p in points if p != at]
        scale = math.prod(at - p for p in others)
        rows.append(np.polynomial.polynomial.polyfromroots(others) / scale)
    return np.array(rows)


def stride_rule(stride: float) -> NDArray[np.float64]:
    """Return weights for the sum of f(1), ..., f(stride) from f at whole multiples of the stride.

    Exact for polynomials of degree 13 (Euler-Maclaurin); ``stride`` may be a fraction.
    """
    size = 2 * _HALF_STENCIL
    moments = np.empty(size)
    for degree in range(size):
        total = stride / (degree + 1.0) + (0.5 if degree else 0.0)
        if degree == 0:
            total = stride
        for index, bernoulli in enumerate(_BERNOULLI, start=1):
            order = 2 * index - 1
            if order > degree:
                break
            falling = math.perm(degree, order)
            at_end = falling * stride ** float(-order)
            at_start = falling * stride ** float(-degree) if order == degree else 0.0
            total += bernoulli / math.factorial(order + 1) * (at_end - at_start)
        moments[degree] = total
    rule: NDArray[np.float64] = _basis() @ moments
    return rule


def recurrence_seconds(num_balls: int, num_bins: int, loads: NDArray[np.int64]) -> float:
    """Return about how long `recurrence_tails` takes; inf where it does not apply."""
    spread = math.sqrt(num_balls / num_bins)
    if num_bins > _MOST_BINS or spread < _SMALLEST_SPREAD:
        return math.inf
    deficits = num_bins * loads.astype(np.float64) - num_balls
    terms = deficits / (spread / _STRIDES) + 2.0 * _HALF_STENCIL * num_bins
    return float(terms.sum()) * num_bins * _SECONDS_A_TERM


def recurrence_tails(
    num_balls: int, num_bins: int, loads: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr[max > load] by the recurrence, 2 <= k <= 1000 and n >= 4096 k.

    And bounds on errors.

    They cover round-off; that of strides is below it. O(k (k m - n) / sigma) a load.
    """
    from shuffledp.leakage.load_kernels import confined, overflow_weight

    spread = math.sqrt(num_balls / num_bins)
    inside = np.empty(len(loads))
    for position, load in enumerate(loads.tolist()):
        deficit = num_bins * load - num_balls
        if deficit == 0:
            weights = (overflow_weight(float(load), float(j), 0.0) for j in range(2, num_bins + 1))
            inside[position] = math.prod(weights)
        else:
            strides = math.ceil(deficit * _STRIDES / spread)
            rule = stride_rule(deficit / strides)
            inside[position] = confined(load, num_bins, deficit, strides, rule)
    inside = np.clip(inside, 0.0, 1.0)
    return 1.0 - inside, inside * (LEVEL_ERROR * num_bins)


_LOG_NEGLIGIBLE = math.log(1e-19)

# Relative error of a mass times its phase.
_MASS_ERROR = 1e-14

# Errors of truncation, relative to Pr[sum = n].
_TRUNCATION = 1e-18

# Seconds for a mass, and for a load, at one node, about.
_SECONDS_A_MASS, _SECONDS_A_LOAD = 3e-9, 1e-7


class NodeSet(NamedTuple):
    """The first ``num_nodes`` of nodes 2 pi / ``period`` apart, from 0 up."""

    period: int
    num_nodes: int

    @property
    def angle(self) -> float:
        """Distance of two nodes."""
        return 2.0 * math.pi / self.period


def log_sum_mass(num_balls: int) -> float:
    """Return ln Pr[Po(n) = n], to some ulps."""
    if num_balls <= 20:
        return math.log(num_balls**num_balls / math.factorial(num_balls)) - num_balls
    n = float(num_balls)
    square = n * n
    # Stirling's series; the next term is below 1e-14 at n = 20.
    series = 1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square
    return -0.5 * math.log(2.0 * math.pi * n) - series / n


def contour_period(num_balls: int) -> int:
    """Return an odd M with Pr[abs(Po(n) - n) >= M] <= 1e-19 Pr[Po(n) = n], by Bernstein."""
    needed = math.log(2.0) - _LOG_NEGLIGIBLE - log_sum_mass(num_balls)
    # M solves: M^2 is twice what is needed, times n + M / 3.
    third = needed / 3.0
    distance = third + math.sqrt(third * third + 2.0 * needed * num_balls)
    return 2 * (math.ceil(distance) // 2) + 1


def largest_mass(mean: float) -> float:
    """Return an upper bound of the largest mass of the Poisson law."""
    # A mass at x is at most 1 / sqrt(2 pi x), and the mode is above mean - 1.
    return min(1.0, 1.0 / math.sqrt(2.0 * math.pi * (mean - 1.0))) if mean > 2.0 else 1.0


def node_set(num_balls: int, num_bins: int) -> NodeSet:
    """Return the nodes for ``num_balls`` in ``num_bins`` bins, from the bounds of the module."""
    period = contour_period(num_balls)
    total = (period + 1) // 2
    log_limit = (_LOG_NEGLIGIBLE + log_sum_mass(num_balls)) / num_bins
    sine = largest_mass(num_balls / num_bins) * math.exp(-log_limit)
    if sine >= 1.0:
        return NodeSet(period, total)
    reach = 2.0 * math.asin(sine)
    # e^(-n (1 - cos t)) bounds the modulus of phi^k, which is subtracted from.
    free = math.sqrt(-log_limit * num_bins / (2.0 * num_balls))
    reach = max(reach, 2.0 * math.asin(min(free, 1.0)))
    return NodeSet(period, min(total, math.floor(reach * period / (2.0 * math.pi)) + 2))


def _top_load(mean: float, log_mass: float) -> int:
    """Return a load with Pr[Po(mean) > load] <= e^log_mass, by Bernstein's inequality."""
    third = -log_mass / 3.0
    return math.ceil(mean + third + math.sqrt(third * third - 2.0 * log_mass * mean))


def characteristic_seconds(num_balls: int, num_bins: int, loads: NDArray[np.int64]) -> float:
    """Return about how long `characteristic_tails` takes."""
    nodes = node_set(num_balls, num_bins).num_nodes
    masses = 12.0 * math.sqrt(num_balls / num_bins) + 40.0
    return nodes * (masses * _SECONDS_A_MASS + len(loads) * _SECONDS_A_LOAD)


def characteristic_tails(
    num_balls: int, num_bins: int, loads: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr[max > load] by the characteristic function, and bounds on the absolute errors.

    Loads increase from n / k or more. N nodes and W masses cost O(N (W + loads)); W is about 12
    sqrt(n / k), N some hundred from k = 16 on, and up to 6 sqrt(n) for k = 2.
    """
    from shuffledp.leakage.load_kernels import (
        add_nodes,
        poisson_masses,
    )

    mean = num_balls / num_bins
    numerator, denominator = mean.as_integer_ratio()
    shift = (num_balls * denominator - num_bins * numerator) / denominator
    nodes = node_set(num_balls, num_bins)
    log_sum = log_sum_mass(num_balls)
    first = int(loads[0]) + 1
    top = max(_top_load(mean, _LOG_NEGLIGIBLE + log_sum - math.log(num_bins)), first)
    masses = poisson_masses(mean, first, top - first + 1)
    sums, sizes = np.zeros(len(loads)), np.zeros(len(loads))
    downwards = np.ascontiguousarray(loads[::-1])
    add_nodes(
        mean,
        float(num_bins),
        shift,
        nodes.angle,
        nodes.num_nodes,
        masses,
        first,
        downwards,
        sums,
        sizes,
    )
    scale = math.exp(-log_sum) / nodes.period
    tails = np.clip(sums[::-1] * scale, 0.0, 1.0)
    errors = sizes[::-1] * (scale * _MASS_ERROR) + 4.0 * _TRUNCATION
    return tails, errors
