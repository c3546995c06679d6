"""The expected number of balls in the fullest of k bins: enclosed at any size.

E[max] - n / k is n / k rounded up, less n / k, plus the sum over larger loads m of Pr[max > m]: no
term is negative, so the excess is as accurate as they are. The chances come from a recurrence for
many balls in few bins, else from characteristic functions. Where many loads matter the
chance is a smooth function of the load, and the polynomial through 48 of each panel is summed
instead (`lattice_rule`).

*Error budget.* Round-off and truncation of every chance times how much the sum amplifies it; loads
left out. All that is proved to first order in the round-off; truncation of the sum over loads is
read off the decay of the Chebyshev coefficients, 16-fold.

*The recurrence*, for many balls in few bins. Let P_j(s) be the probability that s balls in j bins
leave no bin above m >= n/k. Ball s + 1 is the first to overfill a bin if it falls on one of exactly
m balls while no other has more, so P_j(s) = P_j(s + 1) + h_j(s) P_{j-1}(s - m), h_j(s) =
Pr[Bin(s, 1/j) = m], and P_j(j m + 1) = 0. With the deficit i = j m - s, G_j(i) = P_j(j m - i) and
G_1 = 1,

    G_j(i) = sum over 0 <= t <= i of h_j(j m - t) G_{j-1}(t),   Pr[max <= m] = G_k(k m - n).

Nothing cancels; where sigma = sqrt(n / k) is at least 64 the sum is taken by strides of at most
sigma / 16. A level adds a relative 1e-14.

*The contour integral*: loads as Poisson variables that must add up to n. n balls fall into bins of
some means, and the others into a rest, whose load is ignored. Given that all counts add up to n,
independent Poisson variables have their law, so Pr[max > m] is the integral over a period of the
decrease of the product of their characteristic functions when each is cut at m, over Pr[Po(n) = n].

*Trapezoids.* M equal nodes are too much by at most Pr[abs(Po(n) - n) >= M]: 1e-19 of Pr[Po(n) = n].
*Nodes left out.* abs(phi_m(t)) <= max p / sin(t / 2); nodes beyond one where the product of these
is below 1e-19 of what matters are left out: some hundred are left from 16 bins on, and some forty
where there is a rest, whatever n. *Round-off.* First-order effects of an error of 1e-14 of each
mass and phase are added up.

*Loads left out.* By negative association of the counts (Joag-Dev and Proschan 1983), Pr[max <= m]
is at most the product of Pr[h_y <= m], which Chernoff bounds by e^-80 below the least load. A load
between that and the first one is exceeded at least as likely as the first. Above the last one
Chernoff's inequality and the union of all bins leave e^-48, of n balls.
"""

import functools
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
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

# Below e^-60 the product without cuts is left out, in units of the error of a mass.
_LOG_SMALL = -60.0
_LEFT_OUT = math.exp(_LOG_SMALL) / _MASS_ERROR

# The maximum is below the least load, or above the last one, with at most these chances; as many
# bins are expected above the first one.
_LOG_BELOW = -80.0
_LOG_ABOVE = -48.0
_EXPECTED_ABOVE = 46.0


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


class Window(NamedTuple):
    """Loads ``first`` to ``last`` matter, inclusive; the maximum is hardly below ``least``."""

    least: int
    first: int
    last: int

    def rule(self, bins: "Bins") -> "LatticeRule":
        """Return the rule for the loads after the first."""
        # From above the mean on ten deviations matter, and twice as many from below it.
        is_wide = self.last - self.first > 12.0 * math.sqrt(float(bins.means.max()))
        panels = 5 if is_wide or bins.number > 6 else 3 if bins.number > 3 else 2
        return lattice_rule(max(self.last - self.first, 1), panels)


class Bins(NamedTuple):
    """n balls, ``counts`` bins of each mean, and a rest; ``shift`` is n less all means."""

    balls: int
    means: Floats
    counts: Integers
    rest: float = 0.0
    shift: float = 0.0

    @property
    def number(self) -> int:
        """Number of bins."""
        return int(self.counts.sum())

    @property
    def are_all_alike(self) -> bool:
        """True if there are no others: one mean, and no rest."""
        return self.rest == 0.0 and self.counts.size == 1

    @property
    def least(self) -> int:
        """The least possible maximum load: n over the bins rounded up, where there is no rest."""
        return 0 if self.rest > 0.0 else -(-self.balls // self.number)

    def exponents(self, load: int) -> Floats:
        """Return n times the relative entropies of load / n to the chances, rounded down."""
        excess, rest = load - self.means, np.maximum(self.balls - self.means, _ULP)
        inside = load * np.log1p(excess / self.means) if load > 0 else 0.0 * excess
        outside = (self.balls - load) * np.log1p(np.maximum(-excess / rest, _ULP - 1.0))
        rounding = 1e-12 * (np.abs(inside) + np.abs(outside))
        exponents: Floats = np.maximum(inside + outside - rounding, 0.0)
        return exponents

    @property
    def lasts(self) -> Integers:
        """Loads that bins of each mean hardly ever exceed, by Bernstein's inequality."""
        rare = math.log(self.number + 1.0) + math.log(self.balls) - _LOG_ABOVE
        above = np.ceil(self.means + bernstein_reach(rare, self.means))
        lasts: Integers = np.clip(above, 1, self.balls).astype(np.int64)
        return lasts

    def window(self) -> Window:
        """Return the loads that matter to the maximum."""

        def may_be_most(load: int) -> bool:
            # Counts are negatively associated: at most, chances to stay below are multiplied.
            exponents = np.where(self.means > load, self.counts * self.exponents(load), 0.0)
            return float(exponents.sum()) < -_LOG_BELOW

        def is_rare(load: int) -> bool:
            above = self.exponents(load + 1) * (self.means < load + 1)
            return float(self.counts @ np.exp(-above)) <= math.exp(_LOG_ABOVE)

        def is_often_above(load: int) -> bool:
            # About Pr[Po(mean) > load + 1]; where the window begins is a matter of speed alone.
            deviances = (load + 1.5) * np.log((load + 1.5) / self.means) - (load + 1.5 - self.means)
            chances = [0.5 * math.erfc(math.sqrt(max(each, 0.0))) for each in deviances.tolist()]
            return float(self.counts @ chances) < _EXPECTED_ABOVE

        least = self.least
        if not self.are_all_alike:
            mean = range(math.floor(float(self.means.max())) + 1)
            least = max(bisect_left(mean, True, key=may_be_most), least)
        most = max(int(self.lasts.max()), least)
        last = least + bisect_left(range(least, most), True, key=is_rare)
        first = least + bisect_left(range(least, last), True, key=is_often_above)
        return Window(least, first, last)


def alike_bins(balls: int, bins: int, chance: Fraction) -> Bins:
    """Return bins that each get a ball with this chance, at most 1 / bins."""
    mean = float(balls * chance)
    beside = balls - bins * Fraction(mean)
    rest = float(max(beside, Fraction(0))) if bins * chance < 1 else 0.0
    return Bins(balls, np.array([mean]), np.array([bins]), rest, float(beside - Fraction(rest)))


def contour_angles(bins: Bins, first: int) -> Floats:
    """Return the nodes that matter where loads are cut at ``first`` or above, from 0 up."""
    period, limit = contour_period(bins.balls), _LOG_NEGLIGIBLE + log_sum_mass(bins.balls)
    heights = np.log([largest_mass(mean) for mean in bins.means.tolist()])
    # Mass cut off from bins of far smaller means, by Bernstein: their functions are nearly free.
    gaps = np.maximum(first + 1.0 - bins.means, 0.0)
    cut = -0.5 * gaps * gaps / (bins.means + gaps / 3.0)

    def is_negligible(node: int) -> bool:
        sine = math.sin(math.pi * node / period)
        free = np.logaddexp(-2.0 * bins.means * sine * sine, cut)
        sizes = np.minimum(np.minimum(heights - math.log(sine), free), 0.0)
        size = float(bins.counts @ sizes) - 2.0 * bins.rest * sine * sine
        return max(size, -2.0 * bins.balls * sine * sine) <= limit

    count = 1 + bisect_left(range(1, (period + 1) // 2), True, key=is_negligible)
    return np.arange(count, dtype=np.float64) * np.float64(2.0 * math.pi / period)


def contour_tails(bins: Bins, loads: Integers, angles: Floats) -> tuple[Floats, Floats]:
    """Return Pr[max > load] for ascending loads, and bounds of the errors."""
    from shuffledp.leakage.counts.count_kernels import poisson_masses

    first = int(loads[0]) + 1
    groups = []
    for mean, count, last in zip(
        bins.means.tolist(), bins.counts.tolist(), bins.lasts, strict=True
    ):
        masses = poisson_masses(mean, first, int(max(last + 1 - first, 0)) + 1)
        groups.append(_Group(mean, count, first, masses))
    sums, sizes = np.zeros(loads.size), np.zeros(loads.size)
    near = int(np.count_nonzero(2.0 * bins.balls * np.sin(0.5 * angles) ** 2 < -_LOG_SMALL))
    edges = [*range(0, near, _BLOCK), *range(near, angles.size, _BLOCK), angles.size]
    for start, stop in pairwise(edges):
        block, terms_of = angles[start:stop], _near if start < near else _far
        shares = np.where(block > 0.0, 2.0, 1.0)
        terms, errors = terms_of(bins, groups, block, loads + 1)
        sums += shares @ terms
        sizes += shares @ errors
    scale = math.exp(-log_sum_mass(bins.balls)) / contour_period(bins.balls)
    return np.clip(sums * scale, 0.0, 1.0), sizes * (scale * _MASS_ERROR) + _TRUNCATION


class _Group(NamedTuple):
    """Bins of one mean, and the masses of their loads from ``first`` on."""

    mean: float
    number: int
    first: int
    masses: Floats

    def tail(self, angles: Floats, edges: Integers) -> tuple[Waves, Floats]:
        """Return waves (nodes, edges) and masses (edges,) of all from each edge up."""
        from shuffledp.leakage.counts.count_kernels import group_waves

        starts = np.minimum(edges - self.first, self.masses.size)
        stops = np.append(starts[1:], self.masses.size)
        waves = group_waves(self.masses, self.first - self.mean, angles, starts, stops)
        totals = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)
        return np.cumsum(waves[::-1], axis=0)[::-1].T, totals[starts]


def _log_free(angles: Floats) -> Waves:
    """Return ln E[e^(i t (X - 1))] for a Poisson variable of mean 1, e^(it) - 1 - it; as a column.

    It is as many times that for another mean.
    """
    # sin t - t, by its series where it would cancel.
    square = np.minimum(angles, 0.5) ** 2
    series = np.ones_like(angles)
    for j in range(9, 1, -1):
        series = 1.0 - series * square / (2.0 * j * (2.0 * j + 1.0))
    defect = np.where(angles > 0.5, np.sin(angles) - angles, -angles * square / 6.0 * series)
    return (-2.0 * np.sin(0.5 * angles) ** 2 + 1j * defect)[:, None]


def _near(
    bins: Bins, groups: Sequence[_Group], angles: Floats, edges: Integers
) -> tuple[Floats, Floats]:
    """Return the real parts of the integrand, and first-order sizes of their round-off.

    The share that a product of 1 - x loses is added up without cancellation.
    """
    lost = np.zeros((angles.size, edges.size), np.complex128)
    doubt, log_free = np.zeros(lost.shape), _log_free(angles)
    for group in groups:
        free = np.exp(-group.mean * log_free)
        waves, masses = group.tail(angles, edges)
        gone = waves * free
        doubt += group.number * masses * np.abs(free) / (np.abs(1.0 - gone) + _MASS_ERROR)
        lost = _either(lost, _any_of(gone, group.number))
    exponent = (bins.balls - bins.shift) * log_free - 1j * bins.shift * angles[:, None]
    whole = np.exp(exponent)
    terms, kept = whole * lost, np.abs(whole * (1.0 - lost))
    roundings = 4.0 * np.minimum(np.abs(lost), 2.0) * np.abs(whole) * (1.0 - exponent.real)
    return terms.real, roundings + 2.0 * kept * doubt


def _far(
    bins: Bins, groups: Sequence[_Group], angles: Floats, edges: Integers
) -> tuple[Floats, Floats]:
    """Return the same far from 0, where next to nothing is left without the cuts."""
    log_free = _log_free(angles)
    turned = np.exp(bins.rest * log_free - 1j * bins.shift * angles[:, None])
    kept = np.repeat(turned, edges.size, axis=1)
    doubt = np.zeros(kept.shape)
    for group in groups:
        free = np.exp(group.mean * log_free)
        waves, masses = group.tail(angles, edges)
        each = free - waves
        doubt += group.number * (masses + np.abs(free)) / (np.abs(each) + _MASS_ERROR)
        kept *= each**group.number
    return -kept.real, np.abs(kept) * (2.0 * doubt + 4.0) + _LEFT_OUT


def _either(one: Waves, other: Waves) -> Waves:
    """Return 1 - (1 - one) (1 - other)."""
    return one + other - one * other


def _any_of(gone: Waves, count: int) -> Waves:
    """Return 1 - (1 - gone)^count, count >= 1, by squaring."""
    if count == 1:
        return gone
    half = _any_of(gone, count // 2)
    both = _either(half, half)
    return _either(both, gone) if count % 2 else both


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


def by_recurrence(bins: Bins, loads: Integers) -> tuple[Floats, Floats]:
    """Return Pr[max > load] of 2 <= k <= 1000 even bins, n >= 4096 k, and bounds on errors.

    They cover round-off; the error of strides is below it. O(k (k m - n) / sigma) a load.
    """
    from shuffledp.leakage.counts.count_kernels import confined, overflow_weight

    number, inside = bins.number, []
    spread = math.sqrt(bins.balls / number)
    for load in loads.tolist():
        deficit = number * load - bins.balls
        if deficit == 0:
            weights = (overflow_weight(float(load), float(j), 0.0) for j in range(2, number + 1))
            inside.append(math.prod(weights))
        else:
            strides = math.ceil(deficit * _STRIDES / spread)
            rule = stride_rule(deficit / strides)
            inside.append(confined(load, number, deficit, strides, rule))
    chances = np.clip(inside, 0.0, 1.0)
    return 1.0 - chances, chances * (LEVEL_ERROR * number)


# A panel of more whole numbers has this many nodes; in others each number is one.
_NODES_A_PANEL = 48
_MOST_ONE_BY_ONE = 256

# Coefficients from which the truncation is estimated, and a safety factor.
_LAST_COEFFICIENTS = 8
_SAFETY = 16.0


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

# Nodes times loads, about a second, and the cost of a load that is summed up, in these.
_MOST_STEPS = 4e8
_STEPS_A_LOAD = 30.0


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


TailsBy = Callable[[Bins, Integers], tuple[Floats, Floats]]


def by_contour(bins: Bins, loads: Integers) -> tuple[Floats, Floats]:
    """Return Pr[max > load] by contours, and bounds on errors."""
    return contour_tails(bins, loads, contour_angles(bins, int(loads[0])))


def takes_long(bins: Bins) -> bool:
    """Return True if `by_contour` takes long, as it may where a few bins are not all alike."""
    window = bins.window()
    loads = float(np.maximum(bins.lasts - window.first, 1).sum())
    loads += _STEPS_A_LOAD * window.rule(bins).nodes.size
    return contour_angles(bins, window.first).size * loads > _MOST_STEPS


def faster_tails(bins: Bins, loads: Integers) -> tuple[Floats, Floats]:
    """Return Pr[max > load] and bounds on the errors by the faster of both methods."""
    is_full = bins.balls >= _SMALLEST_SPREAD**2 * bins.number
    is_by_recurrence = is_full and bins.are_all_alike and bins.number <= _MOST_BINS
    return by_recurrence(bins, loads) if is_by_recurrence else by_contour(bins, loads)


def excess_over(reference: Fraction, bins: Bins, tails_by: TailsBy = faster_tails) -> Enclosure:
    """Enclose E[max load] less a number from the chances of the loads."""
    window = bins.window()
    rule = window.rule(bins)
    # The chance at the first load may be on the other side of a bend.
    tails, errors = tails_by(bins, window.first + np.append(0, 1 + rule.nodes))
    error = float(errors.max())
    total, slack = rule.total(tails[1:], error)
    value = float(window.first - reference) + float(tails[0]) + total
    slack += error + _LAST_ROUNDINGS * abs(value)
    if bins.rest > 0.0:  # the law is for the rounded mean: balls whose bin differs
        slack += _LAST_ROUNDINGS * bins.balls
    # From the least load to the first, the chance to exceed one is at least that at the first.
    skipped = (window.first - window.least) * (1.0 - float(tails[0] - errors[0]))
    lower = value - slack - skipped - window.least * math.exp(_LOG_BELOW)
    # The mean of a maximum is at least the mean of each of its terms.
    lowest = float(max(Fraction(float(bins.means.max())), Fraction(bins.least)) - reference)
    upper = value + slack + bins.balls * math.exp(_LOG_ABOVE)
    return Enclosure(max(lower, lowest * (1.0 - _LAST_ROUNDINGS), 0.0), upper)


def alike_excess(num_balls: int, num_bins: int, chance: Fraction) -> Enclosure | None:
    """Enclose E[max load] - n r for n balls of which each of b bins gets one with chance r.

    b r is at most 1. To some 1e-12 of it; None where it would take above a second.
    """
    bins = alike_bins(num_balls, num_bins, chance)
    if bins.are_all_alike:
        return excess_over(num_balls * chance, bins)
    return None if takes_long(bins) else excess_over(Fraction(float(bins.means[0])), bins)


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
    even = Fraction(1, bins)
    return excess_over(balls * even, alike_bins(balls, bins, even))


def excess_share(num_balls: int, num_bins: int) -> Enclosure:
    """Enclose V_S - 1/k: the excess of the fullest bin's share over an even one."""
    found = maximum_load_excess(num_balls, num_bins)
    lower, upper = found.lower / num_balls, found.upper / num_balls
    return Enclosure(round_down(lower, operations=2), round_up(upper, operations=2))


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
    shift = num_balls - math.fsum((means * counts).tolist())
    bins = Bins(num_balls, means, counts, shift=shift)
    return None if takes_long(bins) else excess_over(Fraction(0), bins)
