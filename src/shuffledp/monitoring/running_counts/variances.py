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

With values of several bits (one-hot, Hadamard, attributes) sum a_v^2 is multiplied by the
encoding's variance factor. The pairs are not: columns of two nodes are drawn independently, so the
expected product of what they add to a value's estimate is that of the value's own increments.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_finite, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.running_counts.covers import cover_sizes, require_through
from shuffledp.monitoring.running_counts.prefix_weights import prefix_walk, trees_of
from shuffledp.monitoring.tree import PeriodTree

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
    Source: this module's docstring, `least_squares` and `prefix_weights`. Cost: O(through),
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
