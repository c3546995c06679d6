"""Running counts from sums of reports at the nodes of the tree: by covers, and by least squares.

With z[u] = Z[u] / (2^(m+1) - 1) for a node of height m, Z[u] = 2^m S[u] + Z[left] + Z[right], the
best estimate from a node and its descendants has variance v_m = 2^m / (2^(m+1) - 1) where every
node's is 1: 1, 2/3, 4/7, ..., 1/2. Z are whole numbers where S are: exact, and independent of the
order in which reports arrive. Proofs: docs/results/monitoring-estimates.md.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.monitoring.design import PeriodTree


def cover_sizes(through: int) -> NDArray[np.int64]:
    """Return how many nodes cover the periods 1 ... t, for every t."""
    last = require_at_least("through", through, 1)
    sizes: NDArray[np.int64] = np.bitwise_count(np.arange(1, last + 1)).astype(np.int64)
    return sizes


def running_sums(tree: PeriodTree, node_values: ArrayLike, through: int) -> NDArray[Any]:
    """Return the sum over the cover of 1 ... t of a number for each node, for every t.

    The cover of t is that of t without its last one-bit, and the node that ends at t and is as long
    as this bit says. Fractions stay fractions. O(through).
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

    Integers stay integers and must keep below 2^63: a level of n users adds up to 2^(L-1) n at
    most.
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
    """Bring `level_weighted_sums` up to date after values of a few nodes, ascending, have changed.

    Recomputed from the children, not added to: then floating-point sums do not depend on how the
    reports were cut into batches, either.
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
    """Return z: the best estimate of each node's total from the node and its descendants."""
    leaves = by_node(tree, lambda height: 2 ** (height + 1) - 1)
    if weighted.dtype == object:
        leaves = leaves.astype(np.int64).astype(object)
    estimates: NDArray[Any] = weighted / leaves.reshape(-1, *(1,) * (weighted.ndim - 1))
    return estimates


def online_running_counts(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of the sum over 1 ... t from the nodes ended by t.

    Optimal among linear unbiased estimators from these nodes; it does not change when later reports
    arrive. Honaker 2015, "Efficient use of differentially private binary trees"; the closed form is
    ours.
    """
    return running_sums(tree, online_node_estimates(tree, weighted), through)


def smoothed_nodes(tree: PeriodTree, weighted: NDArray[Any], through: int) -> NDArray[Any]:
    """Return the least-squares estimate of each node's total from all nodes ended by ``through``.

    Hay, Rastogi, Miklau, Suciu, VLDB 2010, arXiv:0904.0942v5, Theorem 3, for each tree of the
    forest. Each node is the sum of its children; nodes that end later are 0.
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

    Optimal among all linear unbiased estimators; at t = ``through`` that of
    `online_running_counts`.
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


_ARRAYS = ("counts", "standard_errors", "lower", "upper")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningEstimate:
    """How many users have a value at one period; arrays read-only.

    Parameters
    ----------
    period : int
        t.
    counts : ndarray of float64, shape () or (domain_size,)
        Unbiased numbers of users; may be negative or above their number. A plain number for
        booleans.
    standard_errors : ndarray of float64, same shape
        Of ``counts``.
    lower, upper : ndarray of float64, same shape
        Band; not clipped.
    method : str
        Estimator.
    confidence : float
        Nominal coverage of the band, in (0, 1).
    is_simultaneous : bool
        Whether the bands of all periods and values of the design hold at once with that
        confidence, rather than each alone.
    labels : tuple
        What is counted, one entry a value.
    post_processing : tuple of str
        Names of the steps applied to ``counts`` after estimation, in order. Empty: unbiased.
    """

    period: int
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    method: str
    confidence: float
    is_simultaneous: bool
    labels: tuple[Hashable, ...] = ()
    post_processing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name))))

    def clipped(self, num_users: float) -> "RunningEstimate":
        """Return the estimate with counts moved into [0, num_users]. See `RunningCounts.clipped`.

        Parameters
        ----------
        num_users : float
            Number of users, in (0, inf).

        Returns
        -------
        RunningEstimate
            ``"clip"`` is appended to ``post_processing``.

        Raises
        ------
        ParameterError
            If ``num_users`` is out of range.
        """
        return replace(
            self,
            counts=_clip(self.counts, num_users),
            post_processing=(*self.post_processing, "clip"),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningCounts:
    """How many users have a value at each of the periods 1 ... T; arrays read-only.

    Parameters
    ----------
    periods : ndarray of int64, shape (T,)
        1 ... T.
    counts : ndarray of float64, shape (T,) or (T, domain_size)
        Unbiased numbers of users; may be negative or above their number. One axis for booleans.
    standard_errors : ndarray of float64, same shape
        Of ``counts``.
    lower, upper : ndarray of float64, same shape
        Bands; not clipped.
    method : str
        Estimator.
    is_smoothed : bool
        Whether the reports of all T periods were used for every period, so that ``counts`` change
        when more arrive; else the counts at t are what was known at t.
    confidence : float
        Nominal coverage of the bands, in (0, 1).
    is_simultaneous : bool
        Whether all bands hold at once with that confidence, rather than each alone.
    labels : tuple
        What is counted, one entry a value.
    post_processing : tuple of str
        Names of the steps applied to ``counts`` after estimation, in order. Empty: unbiased.
    """

    periods: NDArray[np.int64]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    method: str
    is_smoothed: bool
    confidence: float
    is_simultaneous: bool
    labels: tuple[Hashable, ...] = ()
    post_processing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("periods", *_ARRAYS):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return int(self.periods.size)

    def at(self, t: int) -> RunningEstimate:
        """Return the estimate for one of the periods.

        Parameters
        ----------
        t : int
            In [1, T].

        Returns
        -------
        RunningEstimate
            With this method, these bands and steps.

        Raises
        ------
        ParameterError
            If ``t`` is out of range.
        """
        if not 1 <= t <= len(self):
            raise ParameterError(f"t = {t} is not in [1, {len(self)}]: no other period is here")
        return RunningEstimate(
            period=t,
            counts=self.counts[t - 1],
            standard_errors=self.standard_errors[t - 1],
            lower=self.lower[t - 1],
            upper=self.upper[t - 1],
            method=self.method,
            confidence=self.confidence,
            is_simultaneous=self.is_simultaneous,
            labels=self.labels,
            post_processing=self.post_processing,
        )

    def clipped(self, num_users: float) -> "RunningCounts":
        """Return the running counts with each moved to the nearest number in [0, num_users].

        Parameters
        ----------
        num_users : float
            Number of users, in (0, inf).

        Returns
        -------
        RunningCounts
            Biased, upwards for rare values. Standard errors and bands stay those of the unbiased
            counts: a band that holds the truth does so whatever is printed beside it. ``"clip"``
            is appended to ``post_processing``.

        Raises
        ------
        ParameterError
            If ``num_users`` is out of range.
        """
        return replace(
            self,
            counts=_clip(self.counts, num_users),
            post_processing=(*self.post_processing, "clip"),
        )


def _clip(counts: NDArray[np.float64], num_users: float) -> NDArray[np.float64]:
    """Return counts in [0, num_users], as float64 of the same shape."""
    return np.asarray(np.clip(counts, 0.0, require_positive("num_users", num_users)))
