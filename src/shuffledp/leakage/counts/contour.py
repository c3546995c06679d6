"""Loads as Poisson variables that must add up to n: the fullest bin by a contour integral.

n balls fall into b bins of mean ``mean`` each, and the others into a rest, of which nothing is
asked. Given that all counts add up to n, independent
Poisson variables have their law, so Pr[max > m] is the integral over a period of what the product
of their characteristic functions loses where each is cut at m, over Pr[Po(n) = n].

*Trapezoids.* M equal nodes are too much by at most Pr[abs(Po(n) - n) >= M]: 1e-19 of Pr[Po(n) = n].
*Nodes left out.* abs(phi_m(t)) <= max p / sin(t / 2); nodes beyond one where the product of these
is below 1e-19 of what matters are left out: some hundred are left from 16 bins on, and some forty
where there is a rest, whatever n. *Round-off.* First-order effects of an error of 1e-14 of each
mass and phase are added up. Bins of several means (`uneven_tails`) are multiplied as they are, each
factor right to 3e-14. Proofs: docs/results/leakage-maximum-load.md.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats, Integers, Waves

_ULP = math.ulp(1.0)
_LOG_NEGLIGIBLE = math.log(1e-19)
_TRUNCATION = 5e-18
_MASS_ERROR = 1e-14

# Nodes that are worked on in one go.
_BLOCK = 256

# Below e^-30 a characteristic function is nothing beside the round-off of what is taken from it.
_LOG_SMALL = -30.0
_LARGEST_EXPONENT = 50.0


def bernstein_reach(exponent: float, variance: Any) -> Any:
    """Return the deviation of a sum of indicators exceeded with probability at most e^-exponent."""
    third = exponent / 3.0
    return third + np.sqrt(third * third + 2.0 * exponent * variance)


def log_sum_mass(num_balls: int) -> float:
    """Return ln Pr[Po(n) = n], to some ulps."""
    from shuffledp.core.numerics.binomial_kernels import stirling_error

    return -0.5 * math.log(2.0 * math.pi * num_balls) - stirling_error(float(num_balls))


def contour_period(num_balls: int) -> int:
    """Return an odd M with Pr[abs(Po(n) - n) >= M] <= 1e-19 Pr[Po(n) = n], by Bernstein."""
    needed = math.log(2.0) - _LOG_NEGLIGIBLE - log_sum_mass(num_balls)
    # M solves: M^2 is twice what is needed, times n + M / 3.
    return 2 * int(np.ceil(bernstein_reach(needed, num_balls)) // 2) + 1


def largest_mass(mean: float) -> float:
    """Return an upper bound of the largest mass of the Poisson law."""
    # A mass at x is at most 1 / sqrt(2 pi x), and the mode is above mean - 1.
    return min(1.0, 1.0 / math.sqrt(2.0 * math.pi * (mean - 1.0))) if mean > 2.0 else 1.0


class Setting(NamedTuple):
    """n balls, b bins of mean ``mean``, a rest of mean ``rest``; ``shift`` is missing from n."""

    balls: int
    bins: int
    mean: float
    rest: float
    shift: float


def contour_angles(setting: Setting) -> Floats:
    """Return the nodes that matter, from 0 up."""
    height = math.log(largest_mass(setting.mean))

    def log_size(sine: float) -> float:
        size = setting.bins * min(height - math.log(sine), 0.0)
        size -= 2.0 * setting.rest * sine * sine
        return max(size, -2.0 * setting.balls * sine * sine)

    return _angles(setting.balls, log_size)


def _angles(balls: int, log_size: Callable[[float], float]) -> Floats:
    """Return the nodes whose terms, of falling log size in sin(t / 2), are not negligible."""
    period = contour_period(balls)
    limit = _LOG_NEGLIGIBLE + log_sum_mass(balls)
    count = 1 + bisect_left(
        range(1, (period + 1) // 2),
        True,
        key=lambda node: log_size(math.sin(math.pi * node / period)) <= limit,
    )
    return np.arange(count, dtype=np.float64) * np.float64(2.0 * math.pi / period)


def contour_tails(
    setting: Setting, loads: Integers, last: int, angles: Floats
) -> tuple[Floats, Floats]:
    """Return Pr[max > load], and bounds of the errors."""
    from shuffledp.leakage.counts.count_kernels import poisson_masses

    first = int(loads[0]) + 1
    masses = poisson_masses(setting.mean, first, last + 1 - first + 1)
    sums, sizes = np.zeros(loads.size), np.zeros(loads.size)
    near = int(np.count_nonzero(2.0 * setting.mean * np.sin(0.5 * angles) ** 2 < -_LOG_SMALL))
    edges = [*range(0, near, _BLOCK), *range(near, angles.size, _BLOCK), angles.size]
    for start, stop in pairwise(edges):
        block = angles[start:stop]
        tail = _tail(masses, first, setting.mean, block, loads + 1)
        terms, errors = _terms(setting, block, *tail, is_near=start < near)
        shares = np.where(block > 0.0, 2.0, 1.0)
        sums += shares @ terms
        sizes += shares @ errors
    scale = math.exp(-log_sum_mass(setting.balls)) / contour_period(setting.balls)
    return np.clip(sums * scale, 0.0, 1.0), sizes * (scale * _MASS_ERROR) + _TRUNCATION


def _tail(
    masses: Floats, first: int, mean: float, angles: Floats, edges: Integers
) -> tuple[Waves, Floats]:
    """Return waves (nodes, edges) and masses (edges,) of all from each edge up; edges ascend."""
    from shuffledp.leakage.counts.count_kernels import group_waves

    starts = np.minimum(edges - first, masses.size)
    stops = np.append(starts[1:], masses.size)
    waves = group_waves(masses, first - mean, angles, starts, stops)
    totals = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    return np.cumsum(waves[::-1], axis=0)[::-1].T, totals[starts]


def _log_free(mean: float, angles: Floats) -> Waves:
    """Return ln E[e^(i t (X - mean))] for a Poisson variable: mean (e^(it) - 1 - it)."""
    # sin t - t, by its series where it would cancel.
    square = np.minimum(angles, 0.5) ** 2
    series = np.ones_like(angles)
    for j in range(9, 1, -1):
        series = 1.0 - series * square / (2.0 * j * (2.0 * j + 1.0))
    defect = np.where(angles > 0.5, np.sin(angles) - angles, -angles * square / 6.0 * series)
    found: Waves = mean * (-2.0 * np.sin(0.5 * angles) ** 2 + 1j * defect)
    return found


def _terms(
    setting: Setting, angles: Floats, waves: Waves, masses: Floats, *, is_near: bool
) -> tuple[Floats, Floats]:
    """Return the real parts of the integrand, and first-order sizes of their round-off.

    Far from 0, where some characteristic function is next to nothing, all that is left counts.
    """
    bins, turn = setting.bins, (-1j * setting.shift * angles)[:, None]
    free, rest = (_log_free(mean, angles)[:, None] for mean in (setting.mean, setting.rest))
    whole = np.exp(bins * free + rest + turn)
    roundings = np.abs(whole) * (1.0 - bins * free.real - rest.real)
    if not is_near:
        each, other = np.exp(free) - waves, np.exp(rest)
        doubt = bins * (masses + np.exp(free.real)) * np.abs(each) ** (bins - 1) * np.abs(other)
        remaining = _power(each, bins) * (other * np.exp(turn))
        return (whole - remaining).real, 2.0 * roundings + 2.0 * doubt + 4.0 * np.abs(remaining)
    # What is left of a characteristic function once its tail is taken away, without cancellation.
    gone = waves * np.exp(-free)
    square = gone.real * (gone.real - 2.0) + gone.imag * gone.imag
    turned = np.arctan2(-gone.imag, 1.0 - gone.real)
    lost = bins * (0.5 * np.log1p(np.maximum(square, -1.0 + _ULP)) + 1j * turned)
    doubt = bins * masses * np.exp(-(free + lost / bins).real)
    remaining = np.exp(bins * free + lost + rest + turn)
    is_small = lost.real < _LARGEST_EXPONENT
    share = -np.expm1(np.where(is_small, lost, 0.0))
    terms = np.where(is_small, whole * share, whole - remaining)
    roundings = np.where(is_small, 4.0 * np.minimum(np.abs(share), 2.0), 2.0) * roundings
    errors = roundings + np.abs(remaining) * (2.0 * doubt + np.where(is_small, 0.0, 4.0))
    return terms.real, errors


def _power(base: Waves, exponent: int) -> Waves:
    """Return a power by squaring, some log2 of the exponent roundings."""
    result, square = np.ones_like(base), base
    while exponent:
        if exponent & 1:
            result = result * square
        exponent >>= 1
        square = square * square
    return result


# A truncated characteristic function is off by less, absolutely.
_FACTOR_ERROR = 3e-14


class UnevenBins(NamedTuple):
    """Balls, the means of bins and how many have each; no bin has above ``lasts``, nearly."""

    balls: int
    means: Floats
    counts: Integers
    lasts: Integers


def uneven_angles(bins: UnevenBins, first: int) -> Floats:
    """Return the nodes that matter where loads are cut at ``first`` or above."""
    heights = np.log([largest_mass(mean) for mean in bins.means.tolist()])
    # What is cut off of bins far behind, by Bernstein: their functions are as good as free.
    gaps = np.maximum(first + 1.0 - bins.means, 0.0)
    cut = -0.5 * gaps * gaps / (bins.means + gaps / 3.0)

    def log_size(sine: float) -> float:
        free = np.logaddexp(-2.0 * bins.means * sine * sine, cut)
        sizes = np.minimum(heights - math.log(sine), free)
        return float(bins.counts @ np.minimum(sizes, 0.0))

    return _angles(bins.balls, log_size)


def uneven_tails(bins: UnevenBins, loads: Integers, angles: Floats) -> tuple[Floats, float]:
    """Return Pr[max > load] for ascending loads, and a bound of the errors."""
    from shuffledp.leakage.counts.count_kernels import poisson_masses

    first = int(loads[0]) + 1
    masses = [
        poisson_masses(mean, first, max(last + 1 - first, 0) + 1)
        for mean, last in zip(bins.means.tolist(), bins.lasts.tolist(), strict=True)
    ]
    shift = bins.balls - math.fsum((bins.means * bins.counts).tolist())
    inside = np.zeros(loads.size)
    for start in range(0, angles.size, _BLOCK):
        block = angles[start : start + _BLOCK]
        product = np.exp(-1j * shift * block)[:, None] * np.ones(loads.size)
        for mean, count, above in zip(bins.means, bins.counts.tolist(), masses, strict=True):
            cut, _ = _tail(above, first, float(mean), block, loads + 1)
            product = product * _power(np.exp(_log_free(float(mean), block))[:, None] - cut, count)
        inside += np.where(block > 0.0, 2.0, 1.0) @ product.real
    scale = math.exp(-log_sum_mass(bins.balls))
    error = _FACTOR_ERROR * (float(bins.counts.sum()) + 1.0) * scale + _TRUNCATION
    return np.clip(1.0 - inside * scale / contour_period(bins.balls), 0.0, 1.0), error
