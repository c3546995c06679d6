"""Running counts by the dyadic cover: the sum of the nodes that partition the periods 1 ... t."""

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
