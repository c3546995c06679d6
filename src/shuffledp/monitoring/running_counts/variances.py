"""Variances of running counts: what the nodes' noise, and pairs of reports of one user, add up to.

One user of n draws one of L levels and sends a sign for each node of it. With c = L / gap let
f^ = c sum of a_v U_v be a linear estimate, U_v the sum of the signs at node v. For one user

    E[(c sum a_v u_v)^2] = (c^2 / L) sum over levels h of [ sum_j a_hj^2 + r_2 Q_h ],
    Q_h = (sum_j a_hj s_j)^2 - sum_j a_hj^2 s_j^2,

s_j in {-1, 0, 1} being the increments of his nodes and r_2 the expected product of two different
signs (0 for sampled changes). The increments of one bit alternate: +1, -1, +1, .... So Var f^ is at
most (n / L) c^2 [ sum a_v^2 + r_2 sum_h max Q_h ] for r_2 >= 0, and for r_2 < 0, since
-Q_h <= sum_j a_hj^2, at most (n / L) c^2 (1 - r_2) sum a_v^2 (Q_h = 0 for the cover).

Lemma. If weights are >= 0 and rise to a peak, then fall, an alternating sum of some of them is at
most the largest taken, in absolute value, and Q_h <= 0. (On either side of the peak alternating
sums of a monotone sequence lie between 0 and the largest term.) So r_2 >= 0 costs nothing
- for the cover: one node a level;
- for online least squares: at each level the weights are positive and rise from block to block;
and for smoothed counts, whose weights are of that kind and >= 0 up to the path to t, and <= 0
behind, Q_h <= 2 P_h N_h, P_h and -N_h being the largest and the least weight of the level.
At each level two changes attain that.

With values of several bits (one-hot, Hadamard) sum a_v^2 is multiplied by the
encoding's variance factor. The pairs are not: columns of two nodes are drawn independently, so the
expected product of what they add to a value's estimate is that of the value's own increments.

With which weights the smoothed running count at t uses the nodes: closed forms, tree by tree
---------------------------------------------------------------------------------------------

The nodes ended by ``through`` form complete trees, one for each node of its cover. The trees before
t's are used as by online least squares, those after it not at all. In the tree that t lies in, walk
from the root down to the leaf t. Beside each node of this path hangs its sibling, with all its
descendants; all nodes of one level of a hanging tree have the same weight, since the sum over
1 ... t contains all or none of its leaves.

Let the node of height h on the path have t_h of its 2^h leaves in 1 ... t. Let mu_h be the weight
that what is estimated gives to z of this node besides; at the root mu = 0. Then

    kappa_h = (t_h + 2^h mu_h) / (2^(h+1) - 1)     is the weight of the node itself,
    mu_(h-1) = mu_h - kappa_h,

and the hanging sibling has z-weight c = 1 + mu_(h-1) if it is to the left, so in 1 ... t, and
c = mu_(h-1) if it is to the right: its nodes of height q have weight c 2^q / (2^h - 1).

Proof. Let p' be the best estimate from below of the sum over the t_h leaves, y = z[left] +
z[right], v the children's variance. All leaves of a complete tree have the same covariance with the
estimate of its total, so Cov(p', y) = t_h 2 v / 2^h = t_h / (2^h - 1). With the node's own S the
best estimates are p' + (Cov(p', y) / (2 v + 1)) (S - y) and y + (2 v / (2 v + 1)) (S - y); the
first plus mu times the second is p' + mu y + kappa (S - y), and p' is an estimate of one child plus
nothing of the right sibling or all of the left one.

Signs and order. -1 <= mu <= 0. So weights are at least 0 to the left of the path and at most 0 to
the right. From (2^(h+1) - 1) mu_(h-1) = (2^h - 1) mu_h - t_h follow

    -mu_(h-1) / (2^h - 1)    >=  -mu_h / (2^(h+1) - 1),
    (1 + mu_(h-1)) / (2^h - 1)  >=  (1 + mu_h) / (2^(h+1) - 1),

so that at each level abs(weight) does not fall towards t, from either side.

Variances from the numbers of reports that arrived, rather than from a number of users
--------------------------------------------------------------------------------------

A report is +1 or -1, so a sum of R of them has variance R at most, and all that `variances` says
of n / L reports a node holds for the numbers N_v that are there, in expectation over the levels
that users drew.

Errors that no running count exceeds but with a stated probability: proved, for every n
---------------------------------------------------------------------------------------

Theorem 6 of the source, with constants. The estimate at t is a sum over users, who randomize
independently. One user's part is c times a weighted sum of the signs that he sends at one level; so
it is at most c A in absolute value, A the largest sum of weights of one level. Its mean is his
state at t, 0 or 1, and the variances of all parts add up to at most n c^2 V / L, V the sum of all
squared weights. By Bernstein's inequality the error is above x with probability at most

    2 exp(-x^2 / (2 (n c^2 V / L + (c A + 1) x / 3))),

which is set to a d-th of the failure probability. For the cover V is the number of nodes of the
cover of t, at most log2 d + 1, and A = 1. For online least squares both V and A are the sum of
2^m / (2^(m+1) - 1) over the one-bits 2^m of t: A belongs to the level of single periods.

So the error is at most of order c sqrt(n log(d / beta)) for c = L / gap, L = log2 d + 1, and
sampled changes have 1 / gap = k (e0 + 1) / (e0 - 1): of order (e0 + 1) / (e0 - 1) k log2(d)
sqrt(n log(d / beta)), a factor sqrt(log2 d) less than in the printed proof, which adds up
the largest errors of all nodes of a cover instead of their variances.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import (
    require_at_least,
    require_finite,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.monitoring.running_counts.sums import (
    by_node,
    cover_sizes,
    level_weighted_sums,
    require_through,
    running_sums,
    update_level_weighted_sums,
)
from shuffledp.monitoring.tree import PeriodTree


class PathStep(NamedTuple):
    """One height of the paths to all leaves of a complete tree; arrays of shape (2^m,).

    Parameters
    ----------
    height : int
        h, from m down to 0.
    place : ndarray of int64
        Which node of this height is on the path to the leaf, from 0 in this tree.
    weight : ndarray of float64
        kappa, the node's weight in the smoothed sum over 1 ... t within the tree.
    sibling : ndarray of int64
        Which node of height h - 1 hangs beside the path; empty at h = 0.
    is_left : ndarray of bool
        Whether it is on the left, so that it belongs to 1 ... t; empty at h = 0.
    coefficient : ndarray of float64
        c / (2^h - 1): weight of its leaves; times 2^q for its nodes of height q; empty at h = 0.
    """

    height: int
    place: NDArray[np.int64]
    weight: NDArray[np.float64]
    sibling: NDArray[np.int64]
    is_left: NDArray[np.bool_]
    coefficient: NDArray[np.float64]


def prefix_walk(height: int) -> Iterator[PathStep]:
    """Walk from the root of a complete tree to each of its leaves t = 1 ... 2^height at once.

    Parameters
    ----------
    height : int
        m, at least 0.

    Yields
    ------
    PathStep
        For h = m, m - 1, ..., 0. Cost: O(2^m) each.

    Examples
    --------
    >>> [step.weight.tolist() for step in prefix_walk(0)]
    [[1.0]]
    >>> root, leaves = prefix_walk(1)  # f_1 = 2/3 S[1] - 1/3 S[2] + 1/3 S[1..2]
    >>> root.weight.round(6).tolist(), root.coefficient.round(6).tolist()
    ([0.333333, 0.666667], [-0.333333, 0.333333])
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
    """Yield height and number of periods before it, of each complete tree up to ``through``.

    Examples
    --------
    >>> list(trees_of(PeriodTree(periods=7), 6))
    [(2, 0), (1, 4)]
    """
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

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree.
    through : int
        Last t, in [1, periods].
    method : {"least-squares", "cover"}
        Estimator.
    smoothed : bool
        Whether all nodes up to ``through`` are used for every t (least squares only).

    Returns
    -------
    ndarray of float64, shape (through,)
        To about 1e-15 relatively. Cover: the number of one-bits of t. Least squares: the sum of
        2^m / (2^(m+1) - 1) over the one-bits 2^m of t, so hardly more than half of it.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: the docstrings of this module and of `sums`. Cost: O(through),
    smoothed O(through log through).

    Examples
    --------
    >>> tree = PeriodTree(periods=4)
    >>> variance_factors(tree, 4, method="cover").tolist()
    [1.0, 1.0, 2.0, 1.0]
    >>> (21 * variance_factors(tree, 4)).round(9).tolist()
    [21.0, 14.0, 35.0, 12.0]
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
    """Return the sum over nodes of (weight in the smoothed count at t)^2 times a number.

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree.
    through : int
        Last period whose nodes are used, in [1, periods].
    own : callable
        Numbers N_v of nodes of a level, given by flat indices.
    below : callable
        For nodes of a level, the sums over their subtrees of 4^height(v) N_v.

    Returns
    -------
    ndarray of float64, shape (through,)
        Cost: O(through log through).
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
    """Return the sum over levels of max Q_h times a number, for the smoothed count at every t.

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree.
    through : int
        Last period whose nodes are used, in [1, periods].
    level_numbers : ndarray, shape (num_levels,)
        A number >= 0 for each level, leaf level first.

    Returns
    -------
    ndarray of float64, shape (through,)
        At least 0; 0 at t = ``through``. Cost: O(through log through).

    Notes
    -----
    Source: this module's docstring; 2 P_h N_h is the maximum itself, not only a bound.

    Examples
    --------
    >>> smoothed_pairs(PeriodTree(periods=2), 2, np.ones(2)).round(9).tolist()  # 2 (2/3) (1/3)
    [0.444444444, 0.0]
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
    """Return the standard error that each running count will have, before any report is seen.

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree.
    num_users : int
        n, at least 1; all take part from the first period to the last.
    scale : float
        c = L / gap, positive.
    method : {"least-squares", "cover"}
        Estimator.
    smoothed : bool
        Whether all nodes up to ``through`` are used for every t (least squares only).
    through : int, optional
        Last t, in [1, periods]; all periods unless given.
    pair_correlation : float
        r_2, in [-1, 1].
    variance_factor : float
        Of the encoding, at least 1.

    Returns
    -------
    ndarray of float64, shape (through,)
        In users. An upper bound for every history: what the users' increments themselves take off,
        less than n, is left in. Rounded to nearest.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: this module's docstring.

    Examples
    --------
    >>> tree = PeriodTree(periods=4)  # 3 levels; c = 6 for gap = 1/2
    >>> expected_standard_errors(tree, num_users=300, scale=6.0, method="cover").tolist()
    [60.0, 60.0, 84.85..., 60.0]
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
    """Return the variance over c^2: what single reports and pairs of one user's add up to.

    Parameters
    ----------
    squares : ndarray
        Sum of a_v^2 times the number of reports at v, times the encoding's variance factor.
    pairs : ndarray
        Sum of max Q_h times the number of users of level h; looked at for r_2 > 0 only.
    pair_correlation : float
        r_2, in [-1, 1]; 0 for the cover, whatever the law.

    Returns
    -------
    ndarray
        Never below the truth.
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
    """Numbers of reports of each node, and what their sums of squares need.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    numbers : ndarray of int64, shape (num_nodes,)
        N_v; changed in place as reports arrive, followed by `refresh`.
    weighted : ndarray of float64, shape (num_nodes,)
        Sums over subtrees of 4^height(v) N_v.

    Examples
    --------
    >>> received = ReceivedReports.of(PeriodTree(periods=2), np.array([9, 9, 9]))
    >>> received.running_squares(2, method="cover").tolist()
    [9.0, 9.0]
    >>> received.running_squares(2).tolist()  # variance 2/3 at period 2
    [9.0, 6.0]
    """

    tree: PeriodTree
    numbers: NDArray[np.int64]
    weighted: NDArray[np.float64]

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
        """Return level and position of a node without a report, of those in a cover of t.

        Parameters
        ----------
        through : int
            Only covers of t = 1 ... ``through`` are looked at: nodes of odd position.

        Returns
        -------
        (level, position) or None
            None if every such node has a report.
        """
        for level in range(1, through.bit_length() + 1):
            first = self.tree.offset(level)
            empty = np.flatnonzero(self.numbers[first : first + (through >> (level - 1)) : 2] == 0)
            if empty.size:
                return level, 2 * int(empty[0]) + 1
        return None

    def running_squares(
        self, through: int, *, method: str = "least-squares", smoothed: bool = False
    ) -> NDArray[np.float64]:
        """Return the sum of a_v^2 N_v of each running count.

        Parameters
        ----------
        through : int
            Last t, in [1, periods].
        method : {"least-squares", "cover"}
            Estimator.
        smoothed : bool
            Whether it is the smoothed one.

        Returns
        -------
        ndarray of float64, shape (through,)
        """
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

        Parameters
        ----------
        through : int
            Last period whose reports the smoothed counts use, in [1, periods].

        Returns
        -------
        ndarray of float64, shape (through,)
            The number of users of a level is taken to be the largest number of reports of one of
            its nodes: exact if nobody comes late or leaves early.
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
    num_values: int = 1,
) -> NDArray[np.float64]:
    """Return errors that all running counts keep at once, proved by Bernstein's inequality.

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree, of d periods.
    num_users : int
        n, at least 1; or an upper bound of it.
    scale : float
        c = L / gap, positive.
    confidence : float
        1 - beta, in (0, 1): with this probability or more, over the users' randomness, no error at
        any period, of any value, is above what is returned.
    method : {"cover", "least-squares"}
        Online estimator.
    pair_correlation : float
        r_2, in [-1, 1].
    variance_factor : float
        Of the encoding, at least 1. It is also at least the largest factor that the encoding puts
        on one report: that is 1 for booleans, K of K for one-hot columns, 2 of 4 for Hadamard.
    num_values : int
        How many counts run side by side, at least 1.

    Returns
    -------
    ndarray of float64, shape (periods,)
        In users, rounded up. Holds whatever the histories, for estimates that are not clipped.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: this module's docstring; Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta,
    "Amplification by Shuffling", SODA 2019, arXiv:1811.12469v2, Theorem 6, whose constant is not
    stated. Cost: O(d).

    Examples
    --------
    >>> tree = PeriodTree(periods=1)  # one node: V = 1
    >>> x = proven_errors(tree, num_users=100, scale=2.0, confidence=0.95)[0]
    >>> round(2 * math.exp(-(x**2) / (2 * (400 + 3 * x / 3))), 9)
    0.05
    """
    users = require_at_least("num_users", num_users, 1)
    values = require_at_least("num_values", num_values, 1)
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
