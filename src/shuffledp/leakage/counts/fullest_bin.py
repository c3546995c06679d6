"""The expected number of balls in the fullest of k bins: enclosed at any size.

E[max] - n / k is n / k rounded up, less n / k, plus the sum over larger loads m of Pr[max > m]: no
term is negative, so the excess is as accurate as they are. The chances come from a recurrence for
many balls in few bins, else from characteristic functions. Where many loads matter the
chance is a smooth function of the load, and the polynomial through 48 of each panel is summed
instead (`lattice_rule`).

*Error budget.* Round-off and truncation of every chance times how much the sum amplifies it; loads
left out above (Chernoff) and below (at most their number times the chance at the lowest load). All
that is proved to first order in the round-off; truncation of the sum over loads is read off the
decay of the Chebyshev coefficients, 16-fold.

*The recurrence*, for many balls in few bins. Let P_j(s) be the probability that s balls in j bins
leave no bin above m >= n/k. Ball s + 1 is the first to overfill a bin if it falls on one of exactly
m balls while no other has more, so P_j(s) = P_j(s + 1) + h_j(s) P_{j-1}(s - m), h_j(s) =
Pr[Bin(s, 1/j) = m], and P_j(j m + 1) = 0. With the deficit i = j m - s, G_j(i) = P_j(j m - i) and
G_1 = 1,

    G_j(i) = sum over 0 <= t <= i of h_j(j m - t) G_{j-1}(t),   Pr[max <= m] = G_k(k m - n).

Nothing cancels; where sigma = sqrt(n / k) is at least 64 the sum is taken by strides of at most
sigma / 16. A level adds a relative 1e-14.

*The contour integral*: loads as Poisson variables that must add up to n. n balls fall into b bins
of mean ``mean`` each, and the others into a rest, whose load is ignored. Given that all counts
add up to n, independent Poisson variables have their law, so Pr[max > m] is the integral over a
period of the decrease of the product of their characteristic functions when each is cut at m, over
Pr[Po(n) = n].

*Trapezoids.* M equal nodes are too much by at most Pr[abs(Po(n) - n) >= M]: 1e-19 of Pr[Po(n) = n].
*Nodes left out.* abs(phi_m(t)) <= max p / sin(t / 2); nodes beyond one where the product of these
is below 1e-19 of what matters are left out: some hundred are left from 16 bins on, and some forty
where there is a rest, whatever n. *Round-off.* First-order effects of an error of 1e-14 of each
mass and phase are added up. Bins of several means (`uneven_tails`) are multiplied as they are, each
factor right to 3e-14.
"""

import functools
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats, Integers, Waves
from shuffledp.core.checks import require_at_least
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up

_ULP = math.ulp(1.0)
_LOG_NEGLIGIBLE = math.log(1e-19)
_TRUNCATION = 5e-18
_MASS_ERROR = 1e-14

# Nodes of a block.
_BLOCK = 256

# Below e^-30 a characteristic function is negligible beside the round-off of its tail.
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
    # M solves: M^2 is twice the exponent needed, times n + M / 3.
    return 2 * int(np.ceil(bernstein_reach(needed, num_balls)) // 2) + 1


def largest_mass(mean: float) -> float:
    """Return an upper bound of the largest mass of the Poisson law."""
    # A mass at x is at most 1 / sqrt(2 pi x), and the mode is above mean - 1.
    return min(1.0, 1.0 / math.sqrt(2.0 * math.pi * (mean - 1.0))) if mean > 2.0 else 1.0


class Setting(NamedTuple):
    """n balls, b bins of mean ``mean``, a rest of mean ``rest``; ``shift`` is n less the means."""

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
    return mean * (-2.0 * np.sin(0.5 * angles) ** 2 + 1j * defect)


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
    # The characteristic function without its tail, without cancellation.
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
    """Balls, means of bins, number of bins of each mean, and loads that bins hardly ever exceed."""

    balls: int
    means: Floats
    counts: Integers
    lasts: Integers


def uneven_angles(bins: UnevenBins, first: int) -> Floats:
    """Return the nodes that matter where loads are cut at ``first`` or above."""
    heights = np.log([largest_mass(mean) for mean in bins.means.tolist()])
    # Mass cut off from bins of far smaller means, by Bernstein: their functions are nearly free.
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


# Sums are taken by strides of at most sigma / _STRIDES, of sigma from the smallest on.
_SMALLEST_SPREAD = 64.0
_STRIDES = 16.0
_HALF_STENCIL = 7

# More bins are quicker by characteristic functions, at any number of balls.
_MOST_BINS = 10

# Relative error of a level.
LEVEL_ERROR = 1e-14

# Bernoulli's numbers B_0, B_1 (= 1/2), ..., B_13.
_BERNOULLI = (1, 1 / 2, 1 / 6, 0, -1 / 30, 0, 1 / 42, 0, -1 / 30, 0, 5 / 66, 0, -691 / 2730, 0)


@functools.lru_cache(maxsize=1)
def _basis() -> Floats:
    """Return the coefficients of Lagrange's polynomials of the stencil, one row a point."""
    rows = []
    for at in (points := range(1 - _HALF_STENCIL, _HALF_STENCIL + 1)):
        others = [p for p in points if p != at]
        scale = math.prod(at - p for p in others)
        rows.append(np.polynomial.polynomial.polyfromroots(others) / scale)
    return np.array(rows)


def stride_rule(stride: float) -> Floats:
    """Return weights for the sum of f(1), ..., f(stride) from f at whole multiples of the stride.

    Exact for polynomials of degree 13 (Faulhaber's formula); ``stride`` may be a fraction.
    """
    moments = [
        sum(math.comb(d + 1, j) * _BERNOULLI[j] * stride ** (1 - j) for j in range(d + 1)) / (d + 1)
        for d in range(2 * _HALF_STENCIL)
    ]
    rule: Floats = _basis() @ np.array(moments)
    return rule


def recurrence_tails(num_balls: int, num_bins: int, loads: Integers) -> tuple[Floats, Floats]:
    """Return Pr[max > load] by the recurrence, and bounds on errors; 2 <= k <= 1000, n >= 4096 k.

    They cover round-off; the error of strides is below it. O(k (k m - n) / sigma) a load.
    """
    from shuffledp.leakage.counts.count_kernels import confined, overflow_weight

    spread, inside = math.sqrt(num_balls / num_bins), []
    for load in loads.tolist():
        deficit = num_bins * load - num_balls
        if deficit == 0:
            weights = (overflow_weight(float(load), float(j), 0.0) for j in range(2, num_bins + 1))
            inside.append(math.prod(weights))
        else:
            strides = math.ceil(deficit * _STRIDES / spread)
            rule = stride_rule(deficit / strides)
            inside.append(confined(load, num_bins, deficit, strides, rule))
    chances = np.clip(inside, 0.0, 1.0)
    return 1.0 - chances, chances * (LEVEL_ERROR * num_bins)


def in_bins(num_balls: int, num_bins: int) -> Setting:
    """Return the bins alone, without a rest."""
    mean = num_balls / num_bins
    shift = float(num_balls - num_bins * Fraction(mean))
    return Setting(num_balls, num_bins, mean, rest=0.0, shift=shift)


def characteristic_tails(num_balls: int, num_bins: int, loads: Integers) -> tuple[Floats, Floats]:
    """Return Pr[max > load] by the characteristic function, and bounds on the absolute errors.

    Loads increase from n / k or more. N nodes and W masses cost O(N (W + loads)); W is about 12
    sqrt(n / k), N some hundred from k = 16 on, and up to 6 sqrt(n) for k = 2.
    """
    setting = in_bins(num_balls, num_bins)
    log_rare = _LOG_NEGLIGIBLE + log_sum_mass(num_balls) - math.log(num_bins)
    # Bernstein: beyond this load a bin has less than e^log_rare.
    reach = bernstein_reach(-log_rare, setting.mean)
    last = max(math.ceil(setting.mean + reach), int(loads[-1]) + 1)
    return contour_tails(setting, loads, last, contour_angles(setting))


# A panel of more whole numbers has this many nodes; in others each number is one.
_NODES_A_PANEL = 48
_MOST_ONE_BY_ONE = 256

# Coefficients from which the truncation is estimated, and a safety factor.
_LAST_COEFFICIENTS = 8
_SAFETY = 16.0


def num_panels(num_bins: int) -> int:
    """Return the number of panels into which the loads of a maximum are cut."""
    return 2 if num_bins <= 3 else 3 if num_bins <= 6 else 5


class LatticeRule(NamedTuple):
    """Nodes and weights of a sum over whole numbers, and coefficients of its truncation."""

    nodes: Integers
    weights: Floats
    checks: Floats  # shape (8, nodes)
    starts: Integers  # of the panels among the nodes

    def total(self, values: Floats, error: float = 0.0) -> tuple[float, float]:
        """Return the sum over all numbers, and its error: truncation, an estimate, and round-off.

        Each value may be off by ``error``.
        """
        checks = np.add.reduceat(self.checks * values, self.starts, axis=1)
        last = np.abs(checks).max(axis=0)
        slack = _SAFETY * float(last.sum()) + float(np.abs(self.weights).sum()) * error
        return math.fsum(self.weights * values), slack


@functools.lru_cache(maxsize=64)
def lattice_rule(size: int, panels: int) -> LatticeRule:
    """Return the rule for ``size`` >= 1 whole numbers in ``panels`` panels of 48 nodes."""
    if size <= panels * _MOST_ONE_BY_ONE:
        return LatticeRule(np.arange(size), np.ones(size), np.zeros((1, size)), np.zeros(1, int))
    edges = [size * panel // panels for panel in range(panels + 1)]
    rules = [_panel_rule(right - left) for left, right in itertools.pairwise(edges)]
    nodes, weights, checks = zip(*rules, strict=True)
    starts = np.cumsum([0, *map(len, nodes[:-1])])
    places = [left + inside for left, inside in zip(edges, nodes, strict=False)]
    return LatticeRule(np.hstack(places), np.hstack(weights), np.hstack(checks), starts)


@functools.lru_cache(maxsize=64)
def _panel_rule(size: int) -> tuple[Integers, Floats, Floats]:
    """Return nodes, weights and checks of one panel of more than 256 numbers."""
    angles = (np.arange(_NODES_A_PANEL) + 0.5) * (np.pi / _NODES_A_PANEL)
    nodes = np.unique(np.floor(0.5 * size * (1.0 - np.cos(angles))).astype(np.int64))
    places = (2.0 * nodes + 1.0) / size - 1.0
    # Gram's polynomials, orthogonal over all numbers: all but the constant one have the sum 0.
    gram = [np.ones(len(nodes)), places]
    for j in range(1, len(nodes) - 1):
        ahead = (2 * j + 1) * places * gram[j] - j * (1.0 - (j / size) ** 2) * gram[j - 1]
        gram.append(ahead / (j + 1))
    weights: Floats = size * np.linalg.inv(np.transpose(gram))[0]
    solver = np.linalg.inv(np.polynomial.chebyshev.chebvander(places, len(nodes) - 1))
    return nodes, weights, size * np.asarray(solver[-_LAST_COEFFICIENTS:], dtype=np.float64)


LARGEST_NUM_BALLS = 10**15

# Up to here the central coefficient is an exact integer, beyond three terms give it to 1e-16.
_MOST_EXACT = 64

# Relative error of the closed form for two bins: 16 roundings.
_CLOSED_FORM_ERROR = 16.0 * math.ulp(1.0)

# Rounding of the last additions, in units of the answer.
_LAST_ROUNDINGS = 4.0 * math.ulp(1.0)

# Exponent of the mass neglected above, and number of bins expected above the lowest load.
_LOG_NEGLIGIBLE_ABOVE = 48.0
_EXPECTED_ABOVE = 46.0


class LoadWindow(NamedTuple):
    """Loads ``first`` to ``last`` (inclusive), and a bound on the sum left out above."""

    first: int
    last: int
    beyond: float


def least_load(num_balls: int, num_bins: int) -> int:
    """Return the least possible maximum load, n / k rounded up."""
    return -(-num_balls // num_bins)


def _relative_entropy(num_balls: int, num_bins: int, load: int) -> float:
    """Return n times the relative entropy of load / n to 1 / k, load >= n / k; rounded down."""
    mean = num_balls / num_bins
    if load >= num_balls:
        return num_balls * math.log(num_bins) * (1.0 - 1e-12)
    excess = (load * num_bins - num_balls) / num_bins
    inside = load * math.log1p(excess / mean)
    outside = (num_balls - load) * math.log1p(-excess / (num_balls - mean))
    return max((inside + outside) - 1e-12 * (inside - outside), 0.0)


def load_window(num_balls: int, num_bins: int) -> LoadWindow:
    """Return the loads that matter to the maximum of ``num_balls`` in ``num_bins`` bins."""
    least, mean = least_load(num_balls, num_bins), num_balls / num_bins
    log_bins = math.log(num_bins)

    def is_rare(load: int) -> bool:
        return _relative_entropy(num_balls, num_bins, load + 1) >= log_bins + _LOG_NEGLIGIBLE_ABOVE

    def is_often_above(load: int) -> bool:
        # About Pr[Po(mean) > load + 1]; where the window begins is a matter of speed alone.
        beyond = load + 1.5
        deviance = max(beyond * math.log(beyond / mean) - (beyond - mean), 0.0)
        return 0.5 * num_bins * math.erfc(math.sqrt(deviance)) < _EXPECTED_ABOVE

    # Both rise with the load.
    last = least + bisect_left(range(least, max(num_balls - 1, least)), True, key=is_rare)
    first = least + bisect_left(range(least, last), True, key=is_often_above)
    if last + 1 >= num_balls:  # the maximum is never above n
        return LoadWindow(first, last, 0.0)
    load = last + 2
    log_next = log_bins - _relative_entropy(num_balls, num_bins, load)
    ratio = (num_balls - load) / (load * (num_bins - 1.0))
    # There are no more than n - last terms, each at most the first.
    most = min(1.0 / (1.0 - ratio) if ratio < 1.0 else math.inf, float(num_balls - last))
    return LoadWindow(first, last, math.exp(log_next) * most * (1.0 + 1e-9))


def _closed_form_excess(num_balls: int) -> Enclosure:
    """Return the excess for two bins, n C(2j, j) / 2^(2j + 1) with j = floor(n / 2)."""
    half = num_balls // 2
    if half <= _MOST_EXACT:
        central = math.comb(2 * half, half) / (1 << (2 * half))
    else:
        square = float(half) * half
        exponent = (-1.0 / 8.0 + (1.0 / 192.0 - 1.0 / (640.0 * square)) / square) / half
        central = math.exp(exponent) / math.sqrt(math.pi * half)
    value = 0.5 * num_balls * central
    return Enclosure.around(value, value * _CLOSED_FORM_ERROR)


def faster_tails(num_balls: int, num_bins: int, loads: Integers) -> tuple[Floats, Floats]:
    """Return Pr[max > load] and bounds on the errors by the faster of both methods."""
    is_full = num_balls >= _SMALLEST_SPREAD**2 * num_bins
    by = recurrence_tails if is_full and num_bins <= _MOST_BINS else characteristic_tails
    return by(num_balls, num_bins, loads)


def maximum_load_excess(num_balls: int, num_bins: int) -> Enclosure:
    """Enclose E[max load] - n / k for n balls thrown uniformly and independently into k bins.

    Parameters
    ----------
    num_balls : int
        n, 1 to 1e15.
    num_bins : int
        k >= 2.

    Returns
    -------
    Enclosure
        Half as wide as 1e-12 to 1e-11 of the excess, mostly, and 1e-10 at worst; 4e-15 for two
        bins. The error budget is the module's.

    Raises
    ------
    ParameterError
        If a number is not whole or out of range.

    Notes
    -----
    Cost: below 0.1 s for n up to 1e9 and k up to 1e4, mostly milliseconds; hardly grows with n from
    n / k = 1e5 on.

    Examples
    --------
    Two balls in two bins meet half of the time: E[max] = 3/2.

    >>> found = maximum_load_excess(2, 2)
    >>> round(found.lower, 12), round(found.upper, 12)
    (0.5, 0.5)
    """
    balls = require_at_least("num_balls", num_balls, 1, LARGEST_NUM_BALLS)
    bins = require_at_least("num_bins", num_bins, 2, LARGEST_NUM_BALLS)
    if bins == 2:
        return _closed_form_excess(balls)
    if balls == 1:
        alone = 1.0 - 1.0 / bins
        return Enclosure(math.nextafter(alone, 0.0), math.nextafter(alone, 1.0))
    return excess_by(faster_tails, balls, bins)


def excess_share(num_balls: int, num_bins: int) -> Enclosure:
    """Enclose V_S - 1/k: the excess of the fullest bin's share over an even one."""
    found = maximum_load_excess(num_balls, num_bins)
    lower, upper = found.lower / num_balls, found.upper / num_balls
    return Enclosure(round_down(lower, operations=2), round_up(upper, operations=2))


def excess_by(tails_by: Callable[..., tuple[Floats, Floats]], balls: int, bins: int) -> Enclosure:
    """Enclose the excess of at least two balls from the chances of the loads."""
    window = load_window(balls, bins)
    rule = lattice_rule(window.last - window.first + 1, num_panels(bins))
    loads = window.first + rule.nodes
    tails, errors = tails_by(balls, bins, loads)
    total, slack = rule.total(tails, float(errors.max()))
    # Above the least possible load but below the window, a load's chance is at most the first's.
    skipped = (window.first - least_load(balls, bins)) * (1.0 - float(tails[0] - errors[0]))
    value = (window.first * bins - balls) / bins + total
    slack += _LAST_ROUNDINGS * value
    lowest = least_load(balls, bins) - balls / bins
    return Enclosure(
        max(value - slack - skipped, lowest * (1.0 - _LAST_ROUNDINGS), 0.0),
        value + slack + window.beyond,
    )


# Nodes times masses of all bins: about a second.
_MOST_STEPS = 4e8


def uneven_maximum(num_balls: int, law: Floats) -> Enclosure | None:
    """Enclose E[max load] where bins have any positive law; None where it would take long.

    Mostly within 1e-9 of it, a second at most. Loads outside windows are left out by Bernstein's
    inequality, each with 1e-19.
    """
    if law.size == 1:
        return Enclosure(float(num_balls), float(num_balls))
    if float(np.ptp(law)) == 0.0:
        excess, mean = maximum_load_excess(num_balls, law.size), num_balls / law.size
        lower, upper = round_down(mean + excess.lower), round_up(mean + excess.upper)
        return Enclosure(lower, upper).clipped(most=float(num_balls))
    masses, counts = np.unique(law / math.fsum(law), return_counts=True)
    means = num_balls * masses
    log_rare = _LOG_NEGLIGIBLE + log_sum_mass(num_balls) - math.log(law.size)
    above = bernstein_reach(-log_rare, means)
    lasts = np.minimum(np.ceil(means + above), num_balls).astype(np.int64)
    below = np.floor(means - np.sqrt(-2.0 * log_rare * means))
    first, last = max(int(below.max()), least_load(num_balls, law.size)), int(lasts.max())
    bins = UnevenBins(num_balls, means, counts, lasts)
    angles = uneven_angles(bins, first)
    if angles.size * float(np.maximum(lasts - first, 1).sum()) > _MOST_STEPS:
        return None
    rule = lattice_rule(last - first + 1, num_panels(law.size))
    tails, error = uneven_tails(bins, first + rule.nodes, angles)
    total, slack = rule.total(tails, error)
    value = first + total
    slack += _LAST_ROUNDINGS * value + 1e-18 * float((counts * (lasts + 1)).sum())
    # The mean of a maximum is at least the mean of each of its terms.
    return Enclosure(
        max(value - slack, float(means.max()) * (1.0 - _LAST_ROUNDINGS)), value + slack
    )
