"""Running counts from sums of reports at the nodes of the tree: by covers, and by least squares.

Weighted least squares on the dyadic tree, with weights in closed form.

All nodes are measured with the same variance, here 1. Let a node u of height m (0 for a leaf) and
all its descendants be known, and nothing else. The least-squares estimate of its total is

    z[u] = Z[u] / (2^(m+1) - 1),   Z[u] = sum over nodes v in the subtree of 2^height(v) S[v],

with variance v_m = 2^m / (2^(m+1) - 1): 1, 2/3, 4/7, 8/15, ..., 1/2. Proof by induction: the
children's estimates give y = z[left] + z[right] of variance 2 v_(m-1) = 2^m / (2^m - 1), the node
itself S[u] of variance 1, and weights in proportion to inverse variances are 2^m / (2^(m+1) - 1)
for S[u] and (2^m - 1) / (2^(m+1) - 1) for y = (Z[left] + Z[right]) / (2^m - 1).

So Z[u] = 2^m S[u] + Z[left] + Z[right] are whole numbers where S are: exact, and independent of the
order in which reports arrive.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.tree import PeriodTree


def cover_sizes(through: int) -> NDArray[np.int64]:
    """Return how many nodes cover the periods 1 ... t, for every t.

    Parameters
    ----------
    through : int
        Last t, at least 1.

    Returns
    -------
    ndarray of int64, shape (through,)
        The number of one-bits of t; index 0 is t = 1.

    Raises
    ------
    ParameterError
        If ``through`` is below 1.

    Examples
    --------
    >>> cover_sizes(8).tolist()
    [1, 1, 2, 1, 2, 2, 3, 1]
    """
    last = require_at_least("through", through, 1)
    sizes: NDArray[np.int64] = np.bitwise_count(np.arange(1, last + 1)).astype(np.int64)
    return sizes


def running_sums(tree: PeriodTree, node_values: ArrayLike, through: int) -> NDArray[Any]:
    """Return the sum over the cover of 1 ... t of a number for each node, for every t.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    node_values : array-like, shape (num_nodes, ...)
        In the order of the tree's flat index. Fractions stay fractions.
    through : int
        Last t, in [1, periods]. Nodes that end later are not looked at.

    Returns
    -------
    ndarray, shape (through, ...)
        Index 0 is t = 1. float64, or int64 where the values are integers, or objects.

    Raises
    ------
    ParameterError
        If a shape or ``through`` is out of range.

    Notes
    -----
    The cover of t is that of t without its last one-bit, and the node that ends at t and is as long
    as this bit says. From the highest bit down each level is one vectorised step. Cost: O(through).

    Examples
    --------
    >>> running_sums(PeriodTree(periods=4), [1, 2, 4, 8, 16, 32, 64], 4).tolist()
    [1, 16, 20, 64]
    """
    values = require_node_values(tree, node_values)
    last = require_through(tree, through)
    sums = np.zeros((last + 1, *values.shape[1:]), dtype=values.dtype)
    for height in reversed(range(last.bit_length())):
        # The periods whose last one-bit is this one: odd multiples of the length.
        length = 1 << height
        ends = slice(length, last + 1, 2 * length)
        num_nodes = last >> height
        first = tree.offset(height + 1)
        before = sums[0 : last + 1 - length : 2 * length]
        sums[ends] = before + values[first : first + num_nodes : 2]
    return sums[1:]


def require_node_values(tree: PeriodTree, node_values: ArrayLike) -> NDArray[Any]:
    """Return one number or row for each node as int64, float64 or objects, else raise."""
    values = np.asarray(node_values)
    if values.ndim == 0 or values.shape[0] != tree.num_nodes:
        raise ParameterError(
            f"node_values has shape {values.shape}: give one entry for each of the "
            f"{tree.num_nodes} nodes of {tree.periods} periods"
        )
    if values.dtype == object:
        return values
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64, copy=False)


def require_through(tree: PeriodTree, through: int) -> int:
    """Return the last period asked for, in [1, periods], else raise `ParameterError`."""
    last = require_at_least("through", through, 1)
    if last > tree.periods:
        raise ParameterError(
            f"through = {last} is not in [1, {tree.periods}]: the tree has no more periods"
        )
    return last


def level_weighted_sums(tree: PeriodTree, node_values: ArrayLike, base: int = 2) -> NDArray[Any]:
    """Return for each node the sum over its subtree of base^height times the node's value.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    node_values : array-like, shape (num_nodes, ...)
        S; integers stay integers, fractions stay fractions.
    base : int
        2 for estimates; 4, with numbers of reports for S, for their variances.

    Returns
    -------
    ndarray, shape (num_nodes, ...)
        Z. Integers must keep below 2^63: the sums of a level of n users add up to at most
        2^(L-1) n. Cost: O(num_nodes).

    Raises
    ------
    ParameterError
        If the shape is not that of the tree.

    Examples
    --------
    >>> level_weighted_sums(PeriodTree(periods=3), [1, 2, 4, 8]).tolist()
    [1, 2, 4, 19]
    """
    values = require_node_values(tree, node_values)
    weighted = values.copy()
    for level in range(2, tree.num_levels + 1):
        _combine_level(tree, values, weighted, level=level, places=None, base=base)
    return weighted


def update_level_weighted_sums(
    tree: PeriodTree,
    node_values: NDArray[Any],
    weighted: NDArray[Any],
    touched: NDArray[np.int64],
    base: int = 2,
) -> None:
    """Bring `level_weighted_sums` up to date after the values of a few nodes have changed.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    node_values : ndarray, shape (num_nodes, ...)
        The new values.
    weighted : ndarray, shape (num_nodes, ...)
        What `level_weighted_sums` returned for the old ones; changed in place.
    touched : ndarray of int64
        Flat indices of the nodes that changed, ascending, each once.
    base : int
        As there.

    Notes
    -----
    Recomputed from the children, not added to: then floating-point sums do not depend on how the
    reports were cut into batches, either. Cost: O(number of touched nodes and their ancestors).
    """
    parents = np.empty(0, dtype=np.int64)  # positions from 0, of the level that is next
    for level in range(1, tree.num_levels + 1):
        first, count = tree.offset(level), tree.nodes_at(level)
        start, stop = np.searchsorted(touched, (first, first + count))
        places = np.union1d(touched[start:stop] - first, parents[parents < count])
        if places.size:
            if level == 1:
                weighted[first + places] = node_values[first + places]
            else:
                _combine_level(tree, node_values, weighted, level=level, places=places, base=base)
        parents = np.unique(places >> 1)


def online_node_estimates(tree: PeriodTree, weighted: NDArray[Any]) -> NDArray[Any]:
    """Return z: the best estimate of each node's total from the node and its descendants.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    weighted : ndarray, shape (num_nodes, ...)
        Z of `level_weighted_sums`, base 2.

    Returns
    -------
    ndarray, shape (num_nodes, ...)
        float64, or objects where Z are: Z / (2^(height+1) - 1).

    Examples
    --------
    >>> tree = PeriodTree(periods=2)
    >>> online_node_estimates(tree, level_weighted_sums(tree, [1.0, 2.0, 6.0])).tolist()
    [1.0, 2.0, 5.0]
    """
    leaves = by_node(tree, lambda height: 2 ** (height + 1) - 1)
    if weighted.dtype == object:
        leaves = leaves.astype(np.int64).astype(object)
    estimates: NDArray[Any] = weighted / leaves.reshape(-1, *(1,) * (weighted.ndim - 1))
    return estimates


def online_running_counts(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of the sum over 1 ... t from the nodes ended by t.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    weighted : ndarray, shape (num_nodes, ...)
        Z of `level_weighted_sums`, base 2.
    through : int
        Last t, in [1, periods].

    Returns
    -------
    ndarray, shape (through, ...)
        Index 0 is t = 1. The estimate at t does not change when later reports arrive.

    Raises
    ------
    ParameterError
        If ``through`` is out of range.

    Notes
    -----
    Optimal among linear estimators that are unbiased and use nodes ended by t: these are the nodes
    of the cover of t and their descendants, disjoint trees with nothing in common, so that the best
    estimate of the sum is the sum of the best estimates. Source: Honaker 2015, "Efficient use of
    differentially private binary trees" (estimation from below); the closed form is ours.
    Cost: O(num_nodes).
    """
    return running_sums(tree, online_node_estimates(tree, weighted), through)


def smoothed_nodes(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of each node's total from all nodes ended by ``through``.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    weighted : ndarray, shape (num_nodes, ...)
        Z of `level_weighted_sums`, base 2.
    through : int
        Last period whose reports are used, in [1, periods].

    Returns
    -------
    ndarray, shape (num_nodes, ...)
        Consistent: each node is the sum of its children. Nodes that end later are 0.

    Raises
    ------
    ParameterError
        If ``through`` is out of range.

    Notes
    -----
    Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms
    through consistency", VLDB 2010, arXiv:0904.0942v5, Theorem 3, for each tree of the forest. From
    the top, where z is already the best estimate, down: what a parent has beyond the sum of its
    children's z is shared by both equally. Cost: O(num_nodes).
    """
    last = require_through(tree, through)
    estimates = online_node_estimates(tree, weighted)
    for level in range(tree.num_levels, 0, -1):
        first, ended = tree.offset(level), last >> (level - 1)
        estimates[first + ended : first + tree.nodes_at(level)] = 0
        if level < tree.num_levels:
            pairs = ended // 2
            above = tree.offset(level + 1)
            children = estimates[first : first + 2 * pairs].reshape(pairs, 2, *weighted.shape[1:])
            excess = estimates[above : above + pairs] - children[:, 0] - children[:, 1]
            children += (excess / 2)[:, None]
    return estimates


def smoothed_running_counts(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of the sum over 1 ... t from all nodes up to ``through``.

    Parameters
    ----------
    tree : PeriodTree
        Whose nodes they are.
    weighted : ndarray, shape (num_nodes, ...)
        Z of `level_weighted_sums`, base 2.
    through : int
        Last period whose reports are used, in [1, periods].

    Returns
    -------
    ndarray, shape (through, ...)
        Index 0 is t = 1. Every estimate changes when further reports arrive; at t = ``through`` it
        is that of `online_running_counts`.

    Raises
    ------
    ParameterError
        If ``through`` is out of range.

    Notes
    -----
    Optimal among all linear unbiased estimators. Cost: O(num_nodes).
    """
    leaves = smoothed_nodes(tree, weighted, through)[:through]
    return np.cumsum(leaves, axis=0)


def _combine_level(
    tree: PeriodTree,
    values: NDArray[Any],
    weighted: NDArray[Any],
    *,
    level: int,
    places: NDArray[np.int64] | None,
    base: int,
) -> None:
    """Set the weighted sums of some nodes of a level (all: None) from those of their children."""
    first, below = tree.offset(level), tree.offset(level - 1)
    # As a float where sums are: 4^height times a number of reports may not fit 63 bits.
    share = float(base) ** (level - 1) if weighted.dtype == np.float64 else base ** (level - 1)
    if places is None:
        count = tree.nodes_at(level)
        here: Any = slice(first, first + count)
        left: Any = slice(below, below + 2 * count, 2)
        right: Any = slice(below + 1, below + 2 * count, 2)
    else:
        here, left = first + places, below + 2 * places
        right = left + 1
    weighted[here] = share * values[here] + weighted[left] + weighted[right]


def by_node(tree: PeriodTree, of_height: Callable[[int], int]) -> NDArray[np.float64]:
    """Return for each node a number that depends on its height, shape (num_nodes,)."""
    numbers = np.array([of_height(height) for height in range(tree.num_levels)], dtype=np.float64)
    sizes = [tree.nodes_at(level) for level in range(1, tree.num_levels + 1)]
    return np.repeat(numbers, sizes)
