"""Variances from the numbers of reports that arrived, rather than from a number of users.

A report is +1 or -1, so a sum of R of them has variance R at most, and all that `variances` says
of n / L reports a node holds for the numbers N_v that are there, in expectation over the levels
that users drew.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.monitoring.running_counts.covers import running_sums
from shuffledp.monitoring.running_counts.least_squares import (
    by_node,
    level_weighted_sums,
    update_level_weighted_sums,
)
from shuffledp.monitoring.running_counts.variances import (
    smoothed_pairs,
    smoothed_squares,
)
from shuffledp.monitoring.tree import PeriodTree


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
