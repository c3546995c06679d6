"""Running counts from sums of reports at the nodes of the tree, and their errors.

With z[u] = Z[u] / (2^(m+1) - 1) for a node of height m, Z[u] = 2^m S[u] + Z[left] + Z[right], the
best estimate from a node and its descendants has variance v_m = 2^m / (2^(m+1) - 1) if every node
has variance 1: 1, 2/3, 4/7, ..., 1/2. Z are whole numbers if S are: exact, and independent of the
order in which reports arrive.

With c = L / gap let f^ = c sum of a_v U_v be a linear estimate. With r_2 the mean of the product of
two different signs, Var f^ is at most (n / L) c^2 [sum a_v^2 + r_2 sum over levels of max Q_h] for
r_2 >= 0, and (n / L) c^2 (1 - r_2) sum a_v^2 for r_2 < 0. max Q_h is 0 for online least squares,
and 2 P_h N_h for smoothed counts, P_h and -N_h being the largest and the least weight of the level.
With values of several bits sum a_v^2 is multiplied by the encoding's
variance factor, the pairs are not.

A band for all periods reaches Sidak's quantile, which holds whatever the correlations of the
errors, and is at most 2 % above that of a tree's largest error (simulated, up to 4,096 periods).

*Proof of the variance.* One user's part at level h is c sum of a_j u_j with u_j^2 = 1 and
E u_i u_j = r_2 s_i s_j: its second moment is (c^2/L) sum over h of (sum a_j^2 + r_2 Q_h), where Q_h
is the sum of a_i a_j s_i s_j over i != j. For r_2 < 0, -Q_h <= sum a_j^2.

*Proof of the errors.* f^_t is a sum of independent parts, one a user, at most c A_t: a block of
height m has 2^(m-q) nodes of height q with weights 2^q/(2^(m+1) - 1). Means are 0 or 1. Bernstein
and the union bound.

Statements: docs/results/monitoring-estimates.md.

*Smoothed counts.* In the tree of height m that t lies in let the node of height h on the path to t
have t_h leaves in 1 ... t. With mu_m = 0, kappa_h = (t_h + 2^h mu_h)/(2^(h+1) - 1) and mu_(h-1) =
mu_h - kappa_h, that node has the weight kappa_h; its child beside the path has the z-weight C = 1 +
mu_(h-1) on the left, C = mu_(h-1) on the right, its descendants of height q the weight C 2^q/(2^h -
1). At each level weights are >= 0 and do not fall up to the path, and are <= 0 and do not fall
behind it.

*Proof.* Let p be the children's estimate of the sum over the t_h leaves, y of the whole, v the
variance of a child's. All leaves have the same covariance with the total, so Cov(p, y) =
t_h/(2^h - 1). With S of the node the best estimates are p + Cov(p, y)/(2 v + 1) (S - y) and
y + 2 v/(2 v + 1) (S - y); the first plus mu times the second is p + mu y + kappa (S - y). By
induction -1 <= mu <= 0, and (2^(h+1) - 1) mu_(h-1) = (2^h - 1) mu_h - t_h with 0 <= t_h <= 2^h
gives -mu_(h-1)/(2^h - 1) >= -mu_h/(2^(h+1) - 1) and
(1 + mu_(h-1))/(2^h - 1) >= (1 + mu_h)/(2^(h+1) - 1).

*max Q_h.* On either side of a peak an alternating sum lies between 0 and its term next to the peak,
of the other sign than the peak's; so for weights >= 0 that rise and then fall the whole is at most
the peak, and max Q_h = 0. For smoothed counts the parts X, Y up to the path and behind it have X^2,
Y^2 at most their sums of squares, so Q_h <= 2 X Y <= 2 P_h N_h; a user who is on from one node to
the other attains it.

Proved errors are Theorem 6 of Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta,
"Amplification by Shuffling", SODA 2019, arXiv:1811.12469v2, with constants.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.reports import read_only
from shuffledp.core.shown import Frames
from shuffledp.monitoring.design import MonitorDesign, PeriodTree


def running_sums(tree: PeriodTree, node_values: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the sum over the cover of 1 ... t of a number or row for each node, for every t.

    The cover of t, one node for each one-bit of t (Algorithm 2, lines 7 to 10, of
    arXiv:1811.12469v2), is the cover of t without its last one-bit, and the node that ends at t and
    is as long as this bit says. O(through).
    """
    sums = np.zeros((through + 1, *node_values.shape[1:]), dtype=node_values.dtype)
    for height in reversed(range(through.bit_length())):
        # The periods whose last one-bit is this one: odd multiples of the length.
        length = 1 << height
        ends = slice(length, through + 1, 2 * length)
        first = tree.offset(height + 1)
        before = sums[0 : through + 1 - length : 2 * length]
        sums[ends] = before + node_values[first : first + (through >> height) : 2]
    return sums[1:]


def level_weighted_sums(tree: PeriodTree, node_values: NDArray[Any]) -> NDArray[Any]:
    """Return Z: for each node the sum over its subtree of 2^height times the node's value.

    Integers stay integers and must keep below 2^63: a level of n users adds up to 2^(L-1) n at
    most.
    """
    weighted = node_values.copy()
    for level in range(2, tree.num_levels + 1):
        first, below = tree.offset(level), tree.offset(level - 1)
        count = tree.nodes_at(level)
        here = slice(first, first + count)
        weighted[here] *= 1 << (level - 1)
        weighted[here] += weighted[below : below + 2 * count : 2]
        weighted[here] += weighted[below + 1 : below + 2 * count : 2]
    return weighted


def node_estimates(tree: PeriodTree, weighted: NDArray[Any]) -> NDArray[Any]:
    """Return z: the best estimate of each node's total from the node and its descendants."""
    levels = range(1, tree.num_levels + 1)
    leaves = np.repeat([2**level - 1 for level in levels], [tree.nodes_at(each) for each in levels])
    estimates: NDArray[Any] = weighted / leaves.reshape(-1, *(1,) * (weighted.ndim - 1))
    return estimates


def online_running_counts(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of the sum over 1 ... t from the nodes ended by t.

    Optimal among linear unbiased estimators from these nodes; it does not change when later reports
    arrive. Honaker 2015, "Efficient use of differentially private binary trees"; the closed form is
    ours.
    """
    return running_sums(tree, node_estimates(tree, weighted), through)


def smoothed_running_counts(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of the sum over 1 ... t from all nodes up to ``through``.

    Optimal among all linear unbiased estimators; at t = ``through`` equal to
    `online_running_counts`. Hay, Rastogi, Miklau, Suciu, VLDB 2010, arXiv:0904.0942v5, Theorem 3,
    for each tree of the forest: in the end each node is the sum of its children.
    """
    estimates = node_estimates(tree, weighted)
    for level in range(through.bit_length() - 1, 0, -1):
        first, above, pairs = tree.offset(level), tree.offset(level + 1), through >> level
        children = estimates[first : first + 2 * pairs].reshape(pairs, 2, *weighted.shape[1:])
        excess = estimates[above : above + pairs] - children[:, 0] - children[:, 1]
        children += (excess / 2)[:, None]
    return np.cumsum(estimates[:through], axis=0)


_ARRAYS = ("periods", "counts", "standard_errors", "lower", "upper")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningCounts(Frames):
    """Number of users with each value at each of the periods 1 ... T, or at one; read-only.

    Parameters
    ----------
    periods : ndarray of int64, shape (T,)
        1 ... T. For a single period these arrays have no axis of periods.
    counts : ndarray of float64, shape (T,) or (T, domain_size)
        Unbiased numbers of users; may be negative or above their number. No second axis for
        booleans.
    standard_errors : ndarray of float64, same shape
        Standard errors of ``counts``.
    lower, upper : ndarray of float64, same shape
        Bands; not clipped.
    is_smoothed : bool
        Whether the reports of all T periods were used for every period, so that ``counts`` change
        when more arrive; otherwise the counts at t use no later reports.
    confidence : float
        Nominal coverage of the bands, in (0, 1).
    is_simultaneous : bool
        Whether all bands hold at once with that confidence, rather than each alone.
    labels : tuple
        The counted values, in order.
    """

    periods: NDArray[np.int64]
    counts: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    is_smoothed: bool
    confidence: float
    is_simultaneous: bool
    labels: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name))))

    def __len__(self) -> int:
        return int(self.periods.size)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return ``period``, ``value`` if there are labels, ``count``, its error and band."""
        shape, has_values = self.counts.shape, self.counts.ndim > self.periods.ndim
        periods = self.periods[..., np.newaxis] if has_values else self.periods
        found: dict[str, NDArray[Any]] = {"period": np.broadcast_to(periods, shape)}
        if has_values:
            labels = np.array([*map(str, self.labels)], dtype=object)
            found["value"] = np.broadcast_to(labels, shape)
        found |= {"count": self.counts, "standard_error": self.standard_errors}
        found |= {"lower": self.lower, "upper": self.upper}
        return {name: each.reshape(-1) for name, each in found.items()}

    def at(self, t: int) -> "RunningCounts":
        """Return the estimate for one of the periods.

        Parameters
        ----------
        t : int
            In [1, T].

        Returns
        -------
        RunningCounts
            With these bands, for the period alone.

        Raises
        ------
        ParameterError
            If ``t`` is out of range.
        """
        require_at_least("t", t, 1, len(self), "no later period is here")
        return replace(self, **{name: getattr(self, name)[t - 1] for name in _ARRAYS})


def tree_heights(through: int) -> Iterator[int]:
    """Yield the heights of the complete trees that make up the periods 1 ... T, in order."""
    return (height for height in reversed(range(through.bit_length())) if through >> height & 1)


def block_variance(height: int) -> float:
    """Return v_m = 2^m / (2^(m+1) - 1), the variance of the total of a complete tree."""
    return 2.0**height / (2.0 ** (height + 1) - 1.0)


def online_factors(through: int) -> Floats:
    """Return sum a_v^2: the variance of each online count if every node has variance 1.

    The sum of 2^m / (2^(m+1) - 1) over the one-bits 2^m of t: hardly more than half the number of
    nodes of the cover.
    """
    periods = np.arange(1, through + 1)
    heights = range(through.bit_length())
    factors = [(periods >> height & 1) * block_variance(height) for height in heights]
    return np.asarray(np.sum(factors, axis=0))


def smoothed_factors(through: int) -> tuple[Floats, Floats]:
    """Return sum a_v^2, and the sum over levels of max Q_h, for the smoothed count at every t.

    The variance of a best estimate is its covariance with any other unbiased one, so the sum of its
    weights on nodes that partition 1 ... t, which are the trees before, the nodes to the left of
    the path from the root of a tree to its leaf t, and the leaf. 2 P_h N_h is the maximum itself,
    not only a bound; 0 at t = ``through``.
    """
    found: list[tuple[Floats, Floats]] = []
    earlier, outside = 0.0, 0.0  # variances, and weight of the leaves, of the trees before
    for height in tree_heights(through):
        leaves = np.arange(1 << height, dtype=np.int64)
        variances, (mu, pairs, right) = np.full(leaves.size, earlier), np.zeros((3, leaves.size))
        # Weights of the leaves of the last trees beside the path on the left, and minus on the
        # right: C / (2^h - 1), times 2^q for their nodes of height q.
        left = np.full(leaves.size, outside)
        for h in range(height, -1, -1):
            length = 2.0**h
            inside = leaves + 1 - (leaves >> h << h)
            weight = (inside + length * mu) / (2.0 * length - 1.0)  # kappa, of the node on the path
            mu = mu - weight
            most = np.maximum(length * left, weight)
            pairs += 2.0 * most * np.maximum(length * right, -weight)
            if h:
                is_left = (leaves >> (h - 1) & 1).astype(np.bool_)
                coefficient = (is_left + mu) / (length - 1.0)
                variances += is_left * coefficient * (0.5 * length)
                left = np.where(is_left, coefficient, left)
                right = np.where(is_left, right, -coefficient)
        found.append((variances + weight, pairs))
        earlier += block_variance(height)
        outside = 1.0 / (2.0 ** (height + 1) - 1.0)
    totals, sums = zip(*found, strict=True)
    return np.concatenate(totals), np.concatenate(sums)


def expected_standard_errors(
    design: MonitorDesign, *, num_users: int, through: int, smoothed: bool = False
) -> Floats:
    """Return the standard error, in users, of running counts at 1 ... T, before any report is seen.

    An upper bound for every history: the variance of the users' increments themselves, less than n,
    is not subtracted, nor are users who come late or leave early. Rounded to nearest.
    """
    correlation = design.law.pair_correlation
    squares, pairs = smoothed_factors(through) if smoothed else (online_factors(through), 0.0)
    squares *= design.encoding.variance_factor
    if correlation < 0.0:
        squares *= 1.0 - correlation
    else:
        squares += correlation * pairs
    return design.scale * np.sqrt(num_users / design.num_levels * squares)


def proven_errors(design: MonitorDesign, *, num_users: int, confidence: float) -> Floats:
    """Return errors, in users, that all running counts keep at once, by Bernstein's inequality.

    With probability ``confidence`` or more, over the users' randomness and for any histories, no
    error at any period, of any value, is above; for online estimates. Rounded up. ``num_users``
    may be an upper bound. The variance factor is also at least the largest factor that the encoding
    puts on one report: 1 for booleans, K of K for one-hot columns, 2 of 4 for Hadamard.
    """
    factor, c = design.encoding.variance_factor, design.scale
    factors = online_factors(design.periods)
    squares = factors * (1.0 - min(design.law.pair_correlation, 0.0))
    variance = num_users * c**2 * factor * squares / design.num_levels
    step = c * factor * factors + 1.0
    exponent = math.log(2.0 * design.periods * design.encoding.domain_size)
    exponent -= math.log(1.0 - confidence)
    # The root of x^2 - 2 exponent step x / 3 - 2 exponent variance.
    linear = exponent * step / 3.0
    errors: Floats = linear + np.sqrt(linear**2 + 2.0 * exponent * variance)
    return errors * round_up(1.0, operations=64)


def band_quantile(
    confidence: float, *, num_periods: int, domain_size: int, simultaneous: bool
) -> float:
    """Return the half-width of a band in standard errors, of one period and value or of all.

    For all values by Bonferroni's inequality, for all periods of a value by Sidak's of 1967: normal
    variables, of any correlations, are all within a band with at least the product of the single
    probabilities.
    """
    outside = 1.0 - require_open_unit("confidence", confidence)
    if simultaneous:
        # 1 - (1 - outside / K)^(1 / T), without cancellation.
        outside = -math.expm1(math.log1p(-outside / domain_size) / num_periods)
    return math.fabs(NormalDist().inv_cdf(0.5 * outside))
