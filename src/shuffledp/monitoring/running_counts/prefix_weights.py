"""With which weights the smoothed running count at t uses the nodes: closed forms, tree by tree.

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
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.monitoring.tree import PeriodTree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathStep:
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
        yield PathStep(
            height=h,
            place=place,
            weight=weight,
            sibling=sibling,
            is_left=is_left,
            coefficient=coefficient,
        )


def trees_of(tree: PeriodTree, through: int) -> Iterator[tuple[int, int]]:
    """Yield height and number of periods before it, of each complete tree up to ``through``.

    Examples
    --------
    >>> list(trees_of(PeriodTree(periods=7), 6))
    [(2, 0), (1, 4)]
    """
    for level, position in tree.cover(through):
        yield level - 1, (position - 1) << (level - 1)
