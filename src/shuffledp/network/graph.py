"""``Graph``: an undirected simple graph of users who can pass reports on, in compressed rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least, require_edges, set_fields
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Most users: their numbers must fit 32 bits, with a sign.
MOST_USERS = 2**31 - 1


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Graph:
    """An undirected simple graph: no direction, no weights, no self-loops, no edge twice.

    Made by `from_edges` or `read_graph`; the constructor takes its rows unchecked.

    Parameters
    ----------
    starts : ndarray of int64, shape (n + 1,)
        Starts of the rows: the neighbours of user u are
        ``neighbours[starts[u]:starts[u + 1]]``. n is in [1, 2^31 - 1]. Kept as a read-only view.
    neighbours : ndarray of int32, shape (2 m,)
        Users, ascending in each row; each edge stands in both rows. Kept as a read-only view.
    labels : tuple of str, optional
        A name for each user, all different. Without it users are named by their number.
    num_self_loops : int
        Number of edges given from a user to the same user, and left out; >= 0.
    num_duplicates : int
        Number of edges given again, in either direction, and left out; >= 0.

    Notes
    -----
    Users without neighbours are allowed: reports stay with them. Memory: 8 bytes a user, and 8
    bytes an edge.

    Examples
    --------
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 1), (3, 3)])
    >>> graph, graph.num_self_loops, graph.num_duplicates
    (Graph(num_users=4, num_edges=2), 1, 1)
    >>> graph.degrees.tolist(), graph.neighbours_of(1).tolist()
    ([1, 2, 1, 0], [0, 2])
    """

    starts: Integers
    neighbours: NDArray[np.int32]
    labels: tuple[str, ...] | None = None
    num_self_loops: int = 0
    num_duplicates: int = 0

    def __post_init__(self) -> None:
        set_fields(self, starts=read_only(self.starts), neighbours=read_only(self.neighbours))
        if self.labels is None:
            return
        names = tuple(self.labels)
        if len(names) != self.num_users:
            raise ParameterError(
                f"labels has {len(names):,} entries for {self.num_users:,} users: give one a user"
            )
        if not all(isinstance(name, str) for name in names):
            raise ParameterError("labels are not all text: turn them into text with str()")
        if len(set(names)) < self.num_users:
            raise ParameterError("labels holds a name twice: give every user one of their own")
        set_fields(self, labels=names)

    @classmethod
    def from_edges(
        cls,
        edges: ArrayLike,
        *,
        num_users: SupportsIndex | None = None,
        labels: Sequence[str] | None = None,
    ) -> Self:
        """Return the graph of these edges.

        Parameters
        ----------
        edges : array-like of int, shape (m, 2)
            Pairs of users, in either direction, in any order. Self-loops, and edges that were given
            before in either direction, are left out and counted.
        num_users : int, optional
            Number of users, in [1, 2^31 - 1]. By default they end with the largest in an edge.
        labels : sequence of str, optional
            A name for each user.

        Returns
        -------
        Graph
            Users that are in no edge have no neighbours.

        Raises
        ------
        ParameterError
            If the edges are no pairs of whole numbers in [0, num_users), or the labels do not fit.

        Notes
        -----
        Two sorts: O(m log m), 2 s for 10^6 users and 10^7 edges.

        Examples
        --------
        >>> Graph.from_edges([(2, 0), (0, 1)]).neighbours_of(0).tolist()
        [1, 2]
        """
        asked = None if num_users is None else require_at_least("num_users", num_users, 1)
        pairs, number = require_edges(edges, asked)
        if number > MOST_USERS:
            raise ParameterError(
                f"num_users = {number:,} is above {MOST_USERS:,}: number users from 0 without "
                "gaps, or work on one component at a time"
            )
        first, second = pairs.astype(np.int64).T
        low, high = np.minimum(first, second), np.maximum(first, second)
        is_proper = low != high
        given = low[is_proper] * number + high[is_proper]
        given.sort()
        edge = given[np.append(True, given[1:] != given[:-1])[: given.size]]
        low, high = np.divmod(edge, number)
        both = np.concatenate([edge, high * number + low])
        both.sort()
        degrees = np.bincount(low, minlength=number) + np.bincount(high, minlength=number)
        starts = np.concatenate([[0], np.cumsum(degrees)])
        return cls(
            starts=starts,
            neighbours=(both % number).astype(np.int32),
            labels=None if labels is None else tuple(labels),
            num_self_loops=first.size - given.size,
            num_duplicates=given.size - edge.size,
        )

    @property
    def num_users(self) -> int:
        """Number of users n."""
        return self.starts.size - 1

    @property
    def num_edges(self) -> int:
        """Number of edges m."""
        return self.neighbours.size // 2

    @property
    def degrees(self) -> Integers:
        """Number of neighbours of each user, shape (n,); a new array."""
        return np.diff(self.starts)

    @property
    def num_isolated(self) -> int:
        """Number of users without neighbours."""
        return int(np.count_nonzero(self.degrees == 0))

    @property
    def irregularity(self) -> float:
        """Irregularity Gamma = n sum_j pi_j^2 of the law of `stationary_law`.

        1 if all users have the same number of neighbours, at most n / 2 otherwise. Exact, except
        for one rounding to the nearest float. Cost: O(n log n).

        Notes
        -----
        Source: Gamma_G of Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling:
        Privacy Amplification via Random Walks", SIGMOD 2022, arXiv:2204.03919, Section 4.2.
        """
        if self.num_edges == 0:
            return 1.0
        values, counts = np.unique(self.degrees, return_counts=True)
        # In Python's integers, which cannot overflow.
        squares = sum(d * d * c for d, c in zip(values.tolist(), counts.tolist(), strict=True))
        gamma: float = self.num_users * squares / (2 * self.num_edges) ** 2
        return gamma

    def neighbours_of(self, user: SupportsIndex) -> NDArray[np.int32]:
        """Return the neighbours of one user in [0, n), ascending, as a read-only view."""
        index = user.__index__()
        return self.neighbours[self.starts[index] : self.starts[index + 1]]

    def name_of(self, user: int) -> str:
        """Return the label of a user, or the number."""
        return str(user) if self.labels is None else self.labels[user]

    def stationary_law(self) -> Floats:
        """Return the law pi_j = degree_j / (2 m), invariant under a step of the random walk.

        Returns
        -------
        ndarray of float64, shape (n,)
            Each rounded to the nearest float. The only such law if the graph is connected; several
            components have mass in proportion to their edges, and users without neighbours have
            none. Uniform if there are no edges at all, for then every law is invariant.

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2)]).stationary_law().tolist()
        [0.25, 0.5, 0.25]
        """
        if self.num_edges == 0:
            return np.full(self.num_users, 1.0 / self.num_users)
        return self.degrees / self.neighbours.size

    @property
    def num_components(self) -> int:
        """Number of connected components; a user without neighbours is one. Cost: O(n + m)."""
        return int(self.components().max()) + 1

    def components(self) -> NDArray[np.int32]:
        """Return the number of the connected component of each user.

        Returns
        -------
        ndarray of int32, shape (n,)
            0 for the largest component, 1 for the next, and so on; among equal ones the component
            of the smallest user comes first. Cost: O(n + m).

        Examples
        --------
        >>> Graph.from_edges([(1, 2), (3, 4)]).components().tolist()
        [2, 0, 0, 1, 1]
        """
        from scipy.sparse.csgraph import connected_components

        # Components are numbered in the order of their first users.
        _, found = connected_components(self.matrix(), directed=False)
        sizes = np.bincount(found)
        rank = np.empty(sizes.size, dtype=np.int32)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size, dtype=np.int32)
        numbers: NDArray[np.int32] = rank[found]
        return numbers

    def largest_component(self) -> tuple["Graph", Integers]:
        """Return the largest connected component, and the users in it.

        Returns
        -------
        graph : Graph
            With the labels of the users kept; this very graph, if it is connected.
        kept : ndarray of int64
            Ascending: user i of the component is user ``kept[i]`` of this graph.

        Examples
        --------
        >>> component, kept = Graph.from_edges([(1, 4), (2, 2)]).largest_component()
        >>> component.num_users, kept.tolist()
        (2, [1, 4])
        """
        kept = np.flatnonzero(self.components() == 0)
        return (self, kept) if kept.size == self.num_users else (self.subgraph(kept), kept)

    def subgraph(self, users: ArrayLike) -> "Graph":
        """Return the graph of some users, and of the edges between them.

        Parameters
        ----------
        users : array-like of int, shape (k,)
            At least one, all different, in any order: user i of the result is ``users[i]``.

        Returns
        -------
        Graph
            With the labels of these users. Its counts of edges left out are 0.

        Raises
        ------
        ParameterError
            If there are none, one is there twice, or is not in [0, n).

        Notes
        -----
        Cost: as for `from_edges`.

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2), (2, 3)]).subgraph([2, 1]).num_edges
        1
        """
        chosen = np.asarray(users)
        if not 0 < chosen.size == np.unique(chosen).size:
            raise ParameterError("users is empty, or holds a user twice: give each once")
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise ParameterError(
                f"users has shape {chosen.shape} and dtype {chosen.dtype}: give a list of whole "
                f"numbers in [0, {self.num_users})"
            )
        if (outside := chosen[(chosen < 0) | (chosen >= self.num_users)]).size:
            raise ParameterError(
                f"users = {outside[0]} is not in [0, {self.num_users}): number users from 0"
            )
        number_of = np.full(self.num_users, -1, dtype=np.int32)
        number_of[chosen] = np.arange(chosen.size, dtype=np.int32)
        ends = [number_of[np.repeat(np.arange(self.num_users), self.degrees)]]
        ends.append(number_of[self.neighbours])
        edges = np.stack(ends, axis=1)
        return Graph.from_edges(
            edges[(edges[:, 0] >= 0) & (edges[:, 0] < edges[:, 1])],
            num_users=chosen.size,
            labels=None if self.labels is None else [self.labels[user] for user in chosen],
        )

    def is_bipartite(self) -> bool:
        """Return True if the graph is bipartite, so that a walk that always moves never mixes.

        Returns
        -------
        bool
            True if some component with an edge falls into two sides such that each edge joins one
            to the other; equally, has no cycle of odd length. A user without neighbours does not
            count: a report there stays, and nothing oscillates. Cost: O(n + m).

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2)]).is_bipartite()
        True
        >>> Graph.from_edges([(0, 1), (1, 2), (2, 0)]).is_bipartite()
        False
        """
        from scipy.sparse import block_array
        from scipy.sparse.csgraph import connected_components

        edges = self.matrix()
        # Two copies of each user, edges from one to the other: connected unless bipartite.
        doubled, _ = connected_components(
            block_array([[None, edges], [edges, None]]), directed=False
        )
        return int(doubled) > self.num_components + self.num_isolated

    def __repr__(self) -> str:
        return f"Graph(num_users={self.num_users}, num_edges={self.num_edges})"

    def matrix(self) -> "csr_array":
        """Return the edges as a sparse matrix of ones."""
        from scipy.sparse import csr_array

        ones = np.ones(self.neighbours.size, dtype=np.int8)
        return csr_array((ones, self.neighbours, self.starts), shape=(self.num_users,) * 2)
