"""Running counts from sums of reports at the nodes of the tree, by least squares.

With z[u] = Z[u] / (2^(m+1) - 1) for a node of height m, Z[u] = 2^m S[u] + Z[left] + Z[right], the
best estimate from a node and its descendants has variance v_m = 2^m / (2^(m+1) - 1) where every
node's is 1: 1, 2/3, 4/7, ..., 1/2. Z are whole numbers where S are: exact, and independent of the
order in which reports arrive. Proofs: docs/results/monitoring-estimates.md.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.core.frames import Frames
from shuffledp.core.reports import read_only
from shuffledp.monitoring.design import PeriodTree


def running_sums(tree: PeriodTree, node_values: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the sum over the cover of 1 ... t of a number or row for each node, for every t.

    The cover of t, one node for each one-bit of t (Algorithm 2, lines 7 to 10, of
    arXiv:1811.12469v2), is that of t without its last one-bit, and the node that ends at t and is
    as long as this bit says. O(through).
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

    Optimal among all linear unbiased estimators; at t = ``through`` that of
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
    """How many users have a value at each of the periods 1 ... T, or at one; arrays read-only.

    Parameters
    ----------
    periods : ndarray of int64, shape (T,)
        1 ... T. For a single period these arrays have no axis of periods.
    counts : ndarray of float64, shape (T,) or (T, domain_size)
        Unbiased numbers of users; may be negative or above their number. No second axis for
        booleans.
    standard_errors : ndarray of float64, same shape
        Of ``counts``.
    lower, upper : ndarray of float64, same shape
        Bands; not clipped.
    is_smoothed : bool
        Whether the reports of all T periods were used for every period, so that ``counts`` change
        when more arrive; else the counts at t are what was known at t.
    confidence : float
        Nominal coverage of the bands, in (0, 1).
    is_simultaneous : bool
        Whether all bands hold at once with that confidence, rather than each alone.
    labels : tuple
        What is counted, one entry a value.
    """

    periods: NDArray[np.int64]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
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
        """Return ``period``, ``value`` where there are labels, ``count``, its error and band."""
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
        if not 1 <= t <= len(self):
            raise ParameterError(f"t = {t} is not in [1, {len(self)}]: no other period is here")
        return replace(self, **{name: getattr(self, name)[t - 1] for name in _ARRAYS})
