"""Errors of running counts: standard errors, errors that are proved, and bands.

With c = L / gap let f^ = c sum of a_v U_v be a linear estimate. With r_2 the mean of the product of
two different signs, Var f^ is at most (n / L) c^2 [sum a_v^2 + r_2 sum over levels of max Q_h] for
r_2 >= 0, and (n / L) c^2 (1 - r_2) sum a_v^2 for r_2 < 0 (Q_h = 0 for the cover). max Q_h is 0 for
online least squares too, and 2 P_h N_h for smoothed counts, P_h and -N_h being the largest and the
least weight of the level. With values of several bits sum a_v^2 is multiplied by the encoding's
variance factor, the pairs are not.

A band for all periods reaches a quantile of the largest error over its standard deviation, which
depends on the tree and the estimator alone: simulated once, with a fixed seed, and rounded up by an
order statistic that is too small with probability at most `QUANTILE_FAILURE_RATE`; where that is
wider than Sidak's inequality allows, that one is taken.

Proofs: docs/results/monitoring-estimates.md. Errors that are proved are Theorem 6 of
Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by Shuffling", SODA
2019, arXiv:1811.12469v2, with constants.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import (
    require_at_least,
    require_finite,
    require_open_unit,
    require_positive,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.estimation.intervals import normal_quantile, simultaneous_confidence
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    by_node,
    cover_sizes,
    level_weighted_sums,
    online_running_counts,
    require_through,
    running_sums,
    smoothed_running_counts,
    update_level_weighted_sums,
)


class PathStep(NamedTuple):
    """One height of the paths to all leaves of a complete tree; arrays of shape (2^m,)."""

    height: int  # h, from m down to 0
    # Which node of this height is on the path to the leaf, from 0 in this tree.
    place: NDArray[np.int64]
    # Kappa, the node's weight in the smoothed sum over 1 ... t within the tree.
    weight: NDArray[np.float64]
    sibling: NDArray[np.int64]  # Which node of height h - 1 hangs beside the path; empty at h = 0
    # Whether it is on the left, so that it belongs to 1 ... t; empty at h = 0.
    is_left: NDArray[np.bool_]
    # C / (2^h - 1): weight of its leaves; times 2^q for its nodes of height q; empty at h = 0.
    coefficient: NDArray[np.float64]


def prefix_walk(height: int) -> Iterator[PathStep]:
    """Walk from the root of a complete tree to each of its leaves t = 1 ... 2^height at once.

    Yields steps for h = m, m - 1, ..., 0, in O(2^m) each.
    """
    leaves = np.arange(1 << height, dtype=np.int64)
    mu = np.zeros(leaves.size)
    for h in range(height, -1, -1):
        place = leaves >> h
        inside = leaves + 1 - (place << h)
        weight = (inside + 2.0**h * mu) / (2.0 ** (h + 1) - 1.0)
        mu = mu - weight
        if h:
            child = leaves >> (h - 1)
            is_left = (child & 1).astype(np.bool_)
            sibling = child ^ 1
            coefficient = (is_left + mu) / (2.0**h - 1.0)
        else:
            sibling, is_left, coefficient = leaves[:0], leaves[:0].astype(np.bool_), mu[:0]
        yield PathStep(h, place, weight, sibling, is_left, coefficient)


def trees_of(tree: PeriodTree, through: int) -> Iterator[tuple[int, int]]:
    """Yield height and number of periods before it, of each complete tree up to ``through``."""
    for level, position in tree.cover(through):
        yield level - 1, (position - 1) << (level - 1)


#: Names of the online estimators.
METHODS = ("least-squares", "cover")


def require_method(method: str, *, smoothed: bool = False) -> str:
    """Return the name of an online estimator; ``smoothed`` goes with least squares only."""
    if method not in METHODS:
        raise ParameterError(f"method = {method!r} is not one of {', '.join(METHODS)}")
    if smoothed and method != "least-squares":
        raise ParameterError(
            f"method = {method!r} has no smoothed form: take 'least-squares', or smoothed = False"
        )
    return method


def variance_factors(
    tree: PeriodTree, through: int, *, method: str = "least-squares", smoothed: bool = False
) -> NDArray[np.float64]:
    """Return sum a_v^2: the variance of each running count where every node has variance 1.

    Cover: the number of one-bits of t. Least squares: the sum of 2^m / (2^(m+1) - 1) over the
    one-bits 2^m of t, so hardly more than half of it.
    """
    last = require_through(tree, through)
    require_method(method, smoothed=smoothed)
    if method == "cover":
        return cover_sizes(last).astype(np.float64)
    if smoothed:
        return smoothed_squares(
            tree,
            last,
            own=_one,
            below=_four_weighted_nodes,
        )
    periods = np.arange(1, last + 1)
    factors = np.zeros(last)
    for height in range(last.bit_length()):
        factors += (periods >> height & 1) * block_variance(height)
    return factors


def _one(level: int, nodes: NDArray[np.int64]) -> np.float64:  # noqa: ARG001  # all are alike
    """Return 1 for each node."""
    return np.float64(1.0)


def _four_weighted_nodes(level: int, nodes: NDArray[np.int64]) -> np.float64:  # noqa: ARG001
    """Return the sum of 4^height over the subtree of a node of a level."""
    return np.float64(2.0 ** (level - 1) * (2.0**level - 1.0))


def block_variance(height: int) -> float:
    """Return v_m = 2^m / (2^(m+1) - 1), the variance of the total of a complete tree."""
    return 2.0**height / (2.0 ** (height + 1) - 1.0)


#: From a level and nodes of it (flat indices) to numbers: a column for each, or one for all.
NodeNumbers = Callable[[int, NDArray[np.int64]], "NDArray[np.float64] | np.float64"]


def smoothed_squares(
    tree: PeriodTree, through: int, *, own: NodeNumbers, below: NodeNumbers
) -> NDArray[np.float64]:
    """Return the sum over nodes of (weight in the smoothed count at t)^2 times a number N_v.

    ``own`` gives the numbers of nodes of a level, ``below`` the sums over their subtrees of
    4^height(v) N_v. O(through log through).
    """
    total = np.zeros(through)
    earlier = 0.0
    for height, start in trees_of(tree, through):
        squares = np.full(1 << height, earlier)
        for step in prefix_walk(height):
            level = step.height + 1
            first = tree.offset(level) + (start >> step.height)
            squares += step.weight**2 * own(level, first + step.place)
            if step.height:
                beside = tree.offset(level - 1) + (start >> (step.height - 1)) + step.sibling
                squares += step.coefficient**2 * below(level - 1, beside)
        total[start : start + squares.size] = squares
        root = np.array([tree.offset(height + 1) + (start >> height)])
        earlier += float(np.sum(below(height + 1, root))) / (2.0 ** (height + 1) - 1.0) ** 2
    return total


def smoothed_pairs(
    tree: PeriodTree, through: int, level_numbers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum over levels of max Q_h times a number >= 0, for the smoothed count at every t.

    2 P_h N_h is the maximum itself, not only a bound; 0 at t = ``through``.
    """
    last = require_through(tree, through)
    total = np.zeros(last)
    earlier = 0.0  # weight of the leaves of the tree before: the largest so far
    for height, start in trees_of(tree, last):
        for level_height, most, least in _extreme_weights(height, earlier):
            pairs = 2.0 * most * least
            total[start : start + pairs.size] += level_numbers[level_height] * pairs
        earlier = 1.0 / (2.0 ** (height + 1) - 1.0)
    return total


def _extreme_weights(
    height: int, earlier: float
) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield a height, and for each t largest weight and minus the least there, both at least 0."""
    left = np.full(1 << height, earlier)  # weight of the leaves of the last tree hung on the left
    right = np.zeros(1 << height)  # minus that on the right
    for step in prefix_walk(height):
        length = 2.0**step.height
        most = np.maximum(length * left, step.weight)
        least = np.maximum(length * right, -step.weight)
        yield step.height, most, least
        if step.height:
            left = np.where(step.is_left, step.coefficient, left)
            right = np.where(step.is_left, right, -step.coefficient)


def expected_standard_errors(
    tree: PeriodTree,
    *,
    num_users: int,
    scale: float,
    method: str = "least-squares",
    smoothed: bool = False,
    through: int | None = None,
    pair_correlation: float = 0.0,
    variance_factor: float = 1.0,
) -> NDArray[np.float64]:
    """Return the standard error, in users, of each running count, before any report is seen.

    An upper bound for every history, if all take part from the first period to the last: what the
    users' increments themselves take off, less than n, is left in. Rounded to nearest.
    """
    users = require_at_least("num_users", num_users, 1)
    last = tree.periods if through is None else require_through(tree, through)
    c = require_positive("scale", scale)
    per_level = users / tree.num_levels
    squares = variance_factors(tree, last, method=method, smoothed=smoothed)
    squares *= require_positive("variance_factor", variance_factor) * per_level
    correlation = require_pair_correlation(pair_correlation) if method != "cover" else 0.0
    pairs = np.zeros(last)
    if smoothed and correlation > 0.0:
        pairs = smoothed_pairs(tree, last, np.full(tree.num_levels, per_level))
    return c * np.sqrt(with_pairs(squares, pairs, correlation))


def with_pairs(
    squares: NDArray[np.float64], pairs: NDArray[np.float64], pair_correlation: float
) -> NDArray[np.float64]:
    """Return the variance over c^2 of squares (times the variance factor) and pairs; upwards.

    The correlation r_2 is 0 for the cover, whatever the law.
    """
    if pair_correlation < 0.0:
        return squares * (1.0 - pair_correlation)
    return squares + pair_correlation * pairs


def require_pair_correlation(value: float) -> float:
    """Return r_2 if it is in [-1, 1], else raise `ParameterError`."""
    number = require_finite("pair_correlation", value)
    if not -1.0 <= number <= 1.0:
        raise ParameterError(f"pair_correlation = {value} is not in [-1, 1]: it is a mean of signs")
    return number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceivedReports:
    """Numbers of reports of each node, and what their sums of squares need."""

    tree: PeriodTree  # Whose nodes they are
    # Shape (num_nodes,); N_v; changed in place as reports arrive, followed by `refresh`.
    numbers: NDArray[np.int64]
    weighted: NDArray[np.float64]  # shape (num_nodes,); Sums over subtrees of 4^height(v) N_v

    @classmethod
    def of(cls, tree: PeriodTree, numbers: NDArray[np.int64]) -> "ReceivedReports":
        """Return them for given numbers, which are kept, not copied."""
        weighted = level_weighted_sums(tree, numbers.astype(np.float64), base=4)
        return cls(tree=tree, numbers=numbers, weighted=weighted)

    def refresh(self, touched: NDArray[np.int64]) -> None:
        """Take note that the numbers of some nodes, ascending flat indices, have changed."""
        update_level_weighted_sums(self.tree, self.numbers, self.weighted, touched, base=4)

    def last_period(self) -> int:
        """Return the last period of which there is a report; 0 if there is none."""
        last = 0
        for level in range(1, self.tree.num_levels + 1):
            first = self.tree.offset(level)
            nodes = np.flatnonzero(self.numbers[first : first + self.tree.nodes_at(level)])
            if nodes.size:
                last = max(last, int(nodes[-1] + 1) << (level - 1))
        return last

    def first_gap(self, through: int) -> tuple[int, int] | None:
        """Return level and position of a node of a cover without a report, if there is one."""
        for level in range(1, through.bit_length() + 1):
            first = self.tree.offset(level)
            empty = np.flatnonzero(self.numbers[first : first + (through >> (level - 1)) : 2] == 0)
            if empty.size:
                return level, 2 * int(empty[0]) + 1
        return None

    def running_squares(
        self, through: int, *, method: str = "least-squares", smoothed: bool = False
    ) -> NDArray[np.float64]:
        """Return the sum of a_v^2 N_v of each running count."""
        if method == "cover":
            return running_sums(self.tree, self.numbers.astype(np.float64), through)
        if smoothed:
            return smoothed_squares(
                self.tree,
                through,
                own=lambda _, nodes: self.numbers[nodes].astype(np.float64),
                below=lambda _, nodes: self.weighted[nodes],
            )
        leaves = by_node(self.tree, lambda height: 2 ** (height + 1) - 1)
        return running_sums(self.tree, self.weighted / leaves**2, through)

    def running_pairs(self, through: int) -> NDArray[np.float64]:
        """Return the sum over levels of max Q_h times the number of users of the level.

        That is taken to be the largest number of reports of one of its nodes: exact if nobody comes
        late or leaves early.
        """
        largest = np.zeros(self.tree.num_levels)
        for level in range(1, through.bit_length() + 1):
            first = self.tree.offset(level)
            largest[level - 1] = self.numbers[first : first + (through >> (level - 1))].max()
        return smoothed_pairs(self.tree, through, largest)


def proven_errors(
    tree: PeriodTree,
    *,
    num_users: int,
    scale: float,
    confidence: float,
    method: str = "cover",
    pair_correlation: float = 0.0,
    variance_factor: float = 1.0,
    domain_size: int = 1,
) -> NDArray[np.float64]:
    """Return errors, in users, that all running counts keep at once, by Bernstein's inequality.

    With probability ``confidence`` or more, over the users' randomness and whatever the histories,
    no error at any period, of any value, is above; for estimates that are not clipped. Rounded up.
    ``num_users`` may be an upper bound. The variance factor is also at least the largest factor
    that the encoding puts on one report: 1 for booleans, K of K for one-hot columns, 2 of 4 for
    Hadamard.
    """
    users = require_at_least("num_users", num_users, 1)
    values = require_at_least("domain_size", domain_size, 1)
    c = require_positive("scale", scale)
    factor = require_positive("variance_factor", variance_factor)
    beta = 1.0 - require_open_unit("confidence", confidence)
    squares = variance_factors(tree, tree.periods, method=require_method(method))
    largest: NDArray[np.float64] | float = 1.0
    if method != "cover":
        largest = squares
        squares = with_pairs(squares, squares, min(require_pair_correlation(pair_correlation), 0.0))
    variance = users * c**2 * factor * squares / tree.num_levels
    step = c * factor * largest + 1.0
    exponent = math.log(2.0 * tree.periods * values) - math.log(beta)
    # The root of x^2 - 2 exponent step x / 3 - 2 exponent variance.
    linear = exponent * step / 3.0
    errors: NDArray[np.float64] = linear + np.sqrt(linear**2 + 2.0 * exponent * variance)
    return errors * round_up(1.0, operations=64)


#: Probability that a simulated quantile is below the true one: over the seeds, this one is fixed.
QUANTILE_FAILURE_RATE = 1e-9

_SEED = 20_181_129
_MOST_RUNS = 20_000
_FEWEST_RUNS = 400  # with fewer the order statistic is no better than Sidak's inequality
_MOST_NORMALS = 30_000_000  # about a second
_BLOCK_NORMALS = 1 << 18  # fits the cache with what is made from them


def band_quantile(
    tree: PeriodTree,
    through: int,
    confidence: float,
    *,
    method: str = "least-squares",
    smoothed: bool = False,
    simultaneous: bool = True,
    domain_size: int = 1,
) -> float:
    """Return how many standard errors a band reaches to either side.

    Pointwise the quantile of the normal law. Simultaneous, for all periods 1 ... ``through`` and
    all values: at least that of the maximum, but for the failure rate, and never above
    Bonferroni's. Sidak 1967: normal variables, whatever their correlations, are all within a band
    with at least the product of the single probabilities; above 37,000 periods that alone.
    """
    last = require_through(tree, through)
    require_method(method, smoothed=smoothed)
    require_open_unit("confidence", confidence)
    if not simultaneous:
        return normal_quantile(confidence)
    return _simultaneous_quantile(last, confidence, method, smoothed, domain_size)


def sidak_quantile(confidence: float, num_periods: int, domain_size: int = 1) -> float:
    """Return q such that so many normal errors are all in [-q, q] with that confidence or more.

    Bonferroni's inequality among ``domain_size`` such series.
    """
    from scipy.special import ndtri

    tail = (1.0 - confidence) / domain_size
    # 1 - (1 - tail)^(1 / d), without cancellation; and by the lower tail of the normal law.
    each = -math.expm1(math.log1p(-tail) / num_periods)
    return math.fabs(float(ndtri(0.5 * each)))


@lru_cache(maxsize=1024)
def _simultaneous_quantile(
    through: int, confidence: float, method: str, smoothed: bool, domain_size: int
) -> float:
    """Return the lesser of the simulated quantile and Sidak's."""
    each = simultaneous_confidence(confidence, domain_size)
    simulated = _order_statistic(simulated_maxima(through, method, smoothed), each)
    return min(simulated, sidak_quantile(confidence, through, domain_size))


@lru_cache(maxsize=64)
def simulated_maxima(through: int, method: str, smoothed: bool) -> NDArray[np.float64]:
    """Return draws of the largest error over its standard deviation, ascending: always the same.

    20,000 up to 750 periods, in proportion fewer above, none from 37,500 on.
    """
    tree = PeriodTree(periods=through)
    num_runs = min(_MOST_RUNS, _MOST_NORMALS // tree.num_nodes)
    if num_runs < _FEWEST_RUNS:
        num_runs = 0
    deviations = np.sqrt(variance_factors(tree, through, method=method, smoothed=smoothed))
    maxima = np.empty(num_runs)
    done = 0
    for noise in _noise(tree.num_nodes, num_runs):
        if method == "cover":
            errors = running_sums(tree, noise, through)
        elif smoothed:
            errors = smoothed_running_counts(tree, level_weighted_sums(tree, noise), through)
        else:
            errors = online_running_counts(tree, level_weighted_sums(tree, noise), through)
        np.abs(errors, out=errors)
        errors /= deviations[:, None]
        maxima[done : done + errors.shape[1]] = errors.max(axis=0)
        done += errors.shape[1]
    maxima.sort()
    maxima.flags.writeable = False
    return maxima


def _noise(num_nodes: int, num_runs: int) -> Iterator[NDArray[np.float64]]:
    """Yield normal noise of nodes, shape (num_nodes, some runs), until there are ``num_runs``."""
    generator = Entropy.from_seed(_SEED).generator()
    block = max(1, _BLOCK_NORMALS // num_nodes)
    for start in range(0, num_runs, block):
        yield generator.standard_normal((num_nodes, min(block, num_runs - start)))


def _order_statistic(maxima: NDArray[np.float64], confidence: float) -> float:
    """Return a draw that is at least the quantile, but for the failure rate; inf if none is."""
    from scipy.special import bdtrc

    runs = maxima.size
    ranks = np.arange(1, runs + 1)
    chances = bdtrc(ranks - 1.0, runs, confidence)
    rank = int(np.searchsorted(-chances, -QUANTILE_FAILURE_RATE)) + 1
    return float(maxima[rank - 1]) if rank <= runs else math.inf
