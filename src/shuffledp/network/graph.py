"""``Graph``: who can pass reports on to whom, as an undirected simple graph in compressed rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array
from typing import NamedTuple

#: Most users: their numbers must fit 32 bits, with a sign.
MOST_USERS = 2**31 - 1


class Parts(NamedTuple):
    """What a graph is made of; see `Graph` for the fields."""

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    num_self_loops: int
    num_duplicates: int


def parts_of_edges(edges: ArrayLike, num_users: SupportsIndex | None) -> Parts:
    """Return the rows of a list of edges; see `Graph.from_edges`."""
    from shuffledp.network import graph_kernels as kernels

    pairs, number = _checked_pairs(edges, num_users)
    ends = read_only(np.ascontiguousarray(pairs, dtype=np.int64))
    starts = np.zeros(number + 1, dtype=np.int64)
    num_loops = kernels.count_ends(ends, starts)
    unsorted = np.empty(int(starts[-1]), dtype=np.int32)
    kernels.scatter_ends(ends, starts[:-1].copy(), unsorted)
    rows = sorted_rows(starts, unsorted)
    num_kept = kernels.drop_repeats(starts, rows)
    if num_kept == rows.size:
        return Parts(starts, rows, num_loops, 0)
    return Parts(starts, rows[:num_kept].copy(), num_loops, (rows.size - num_kept) // 2)


def parts_of_matrix(matrix: Any) -> Parts:
    """Return the rows of a symmetric sparse matrix of zeros and ones; see `Graph.from_scipy`."""
    if not hasattr(matrix, "tocsr"):
        raise ParameterError(
            f"matrix is of type {type(matrix).__name__}: give a sparse matrix of scipy"
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError(
            f"matrix has shape {matrix.shape}: give a square one, a row and a column for each user"
        )
    number = _require_users(matrix.shape[0])
    compressed = matrix.tocsr(copy=True)
    compressed.sum_duplicates()
    compressed.eliminate_zeros()
    _require_no_weights(compressed.data)
    users = np.repeat(np.arange(number, dtype=np.int32), np.diff(compressed.indptr))
    others = compressed.indices.astype(np.int32)
    is_proper = users != others
    starts = np.zeros(number + 1, dtype=np.int64)
    np.cumsum(np.bincount(users[is_proper], minlength=number), out=starts[1:])
    neighbours = others[is_proper]
    _require_symmetric(starts, neighbours)
    return Parts(starts, neighbours, users.size - neighbours.size, 0)


def parts_of_networkx(graph: Any) -> tuple[Parts, tuple[str, ...] | None]:
    """Return the rows and the labels of a graph of networkx; see `Graph.from_networkx`."""
    if graph.is_directed():
        raise ParameterError(
            "graph is directed: reports go both ways along an edge; give graph.to_undirected()"
        )
    nodes = list(graph.nodes)
    number_of = {node: number for number, node in enumerate(nodes)}
    ends: list[int] = []
    for first, second, weight in graph.edges(data="weight", default=1):
        if weight != 1:
            raise ParameterError(_weight_message(weight, f"edge ({first!r}, {second!r})"))
        ends += (number_of[first], number_of[second])
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)
    is_numbered = all(type(node) is int and node == i for i, node in enumerate(nodes))
    labels = None if is_numbered else tuple(str(node) for node in nodes)
    return parts_of_edges(edges, _require_users(len(nodes))), labels


def sorted_rows(starts: NDArray[np.int64], rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the rows of an undirected graph with the neighbours in each sorted.

    An edge may be there several times, as often in one direction as in the other.
    """
    from shuffledp.network import graph_kernels as kernels

    out = np.empty_like(rows)
    kernels.transpose(read_only(starts), read_only(rows), starts[:-1].copy(), out)
    return out


def _checked_pairs(edges: ArrayLike, num_users: SupportsIndex | None) -> tuple[NDArray[Any], int]:
    """Return the edges as an array (m, 2), and the number of users, else raise."""
    try:
        array = np.asarray(edges)
    except (ValueError, OverflowError):
        raise ParameterError("edges are not all pairs: give two users an edge") from None
    if array.size == 0:
        if num_users is None:
            raise ParameterError("there are no edges, so num_users cannot be told: give it")
        return np.empty((0, 2), dtype=np.int64), _require_users(num_users)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ParameterError(
            f"edges has shape {array.shape} and dtype {array.dtype}: give integers, two users an "
            "edge"
        )
    lowest, highest = int(array.min()), int(array.max())
    number = _require_users(max(highest, 0) + 1 if num_users is None else num_users)
    if lowest < 0 or highest >= number:
        row, column = np.argwhere((array < 0) | (array >= number))[0]
        raise ParameterError(
            f"edges[{row}, {column}] = {array[row, column]} is not in [0, {number}): number users "
            "from 0, and give num_users for all of them"
        )
    return array, number


def _require_users(num_users: SupportsIndex) -> int:
    """Return the number of users if it is in [1, 2^31 - 1], else raise `ParameterError`."""
    number = require_at_least("num_users", num_users, 1)
    if number > MOST_USERS:
        raise ParameterError(
            f"num_users = {number:,} is above {MOST_USERS:,}: number users from 0 without gaps, "
            "or work on one component at a time"
        )
    return number


def _require_no_weights(entries: NDArray[Any]) -> None:
    """Raise `ParameterError` unless all entries are 1; NaN is not."""
    is_weight = ~(entries == 1)
    if is_weight.any():
        raise ParameterError(_weight_message(entries[int(np.argmax(is_weight))], "an entry"))


def _weight_message(weight: object, where: str) -> str:
    """Return why a weight is refused."""
    return (
        f"{where} has weight {weight}: weights are not used, each neighbour is equally likely; "
        "set every weight to 1"
    )


def _require_symmetric(starts: NDArray[np.int64], neighbours: NDArray[np.int32]) -> None:
    """Raise `ParameterError` if an edge goes one way only."""
    from shuffledp.network import graph_kernels as kernels

    user, other = kernels.first_one_way(read_only(starts), read_only(neighbours))
    if user >= 0:
        raise ParameterError(
            f"matrix has an entry at ({user}, {other}) but none at ({other}, {user}), as of a "
            "directed graph: reports go both ways along an edge; give matrix + matrix.T with "
            "ones in place of twos"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """An undirected simple graph: no direction, no weights, no self-loops, no edge twice.

    Made by `from_edges`, `from_networkx` or `from_scipy`. The constructor takes rows that are
    ready, and checks them.

    Parameters
    ----------
    starts : ndarray of int64, shape (n + 1,)
        Where the rows start: the neighbours of user u are
        ``neighbours[starts[u]:starts[u + 1]]``. n is in [1, 2^31 - 1]. Kept as a read-only view.
    neighbours : ndarray of int32, shape (2 m,)
        Users, ascending in each row; each edge stands in both rows. Kept as a read-only view.
    labels : tuple of str, optional
        A name for each user, all different. Without it users are named by their number.
    num_self_loops : int
        How many edges from a user to the same user were given, and left out; >= 0.
    num_duplicates : int
        How many edges were given again, in either direction, and left out; >= 0.

    Raises
    ------
    ParameterError
        If the rows are not those of such a graph, or the labels do not fit. The message names the
        user.

    Notes
    -----
    Users without neighbours are allowed: reports stay with them. Memory: 8 bytes a user, and 8
    bytes an edge. Cost of the checks: O(n + m).

    Examples
    --------
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 1), (3, 3)])
    >>> graph, graph.num_self_loops, graph.num_duplicates
    (Graph(num_users=4, num_edges=2), 1, 1)
    >>> graph.degrees.tolist(), graph.neighbours_of(1).tolist()
    ([1, 2, 1, 0], [0, 2])
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    labels: tuple[str, ...] | None = None
    num_self_loops: int = 0
    num_duplicates: int = 0

    def __post_init__(self) -> None:
        from shuffledp.network import graph_kernels as kernels

        starts = _flat_integers("starts", self.starts, np.int64)
        neighbours = _flat_integers("neighbours", self.neighbours, np.int32)
        _require_rows(starts, neighbours.size)
        object.__setattr__(self, "starts", read_only(starts))
        object.__setattr__(self, "neighbours", read_only(neighbours))
        fault, user, other = kernels.first_fault(self.starts, self.neighbours)
        if fault != kernels.NO_FAULT:
            raise ParameterError(_fault_message(fault, user, other, self.num_users))
        user, other = kernels.first_one_way(self.starts, self.neighbours)
        if user >= 0:
            raise ParameterError(
                f"user {user} has neighbour {other}, but not the other way round: give each edge "
                "in the rows of both, or make the graph with Graph.from_edges"
            )
        if self.labels is not None:
            object.__setattr__(self, "labels", _checked_labels(self.labels, self.num_users))
        for name in ("num_self_loops", "num_duplicates"):
            object.__setattr__(self, name, require_at_least(name, getattr(self, name), 0))

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
            Pairs of users, in either direction, in any order. Self-loops, and edges that were
            given before in either direction, are left out and counted.
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
        Two counting sorts: O(n + m), 2 s for 10^6 users and 10^7 edges. Memory: 24 bytes an edge
        at most besides ``edges``, and 16 more if these are not of type int64.

        Examples
        --------
        >>> Graph.from_edges([(2, 0), (0, 1)]).neighbours_of(0).tolist()
        [1, 2]
        """
        return cls._of(parts_of_edges(edges, num_users), labels)

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Return the graph of a networkx graph.

        Parameters
        ----------
        graph : networkx.Graph
            Or anything with the same methods ``is_directed``, ``nodes`` and ``edges``. Of a
            multigraph, parallel edges count as one.

        Returns
        -------
        Graph
            Users in the order of its nodes; ``labels`` are its nodes as text, unless these are
            the numbers 0, 1, ..., n - 1 in order.

        Raises
        ------
        ParameterError
            If it is directed, has no nodes, an edge has a weight other than 1, or two nodes are
            the same text.

        Notes
        -----
        Cost: O(n + m) steps of Python, about a second for 10^6 edges.
        """
        parts, labels = parts_of_networkx(graph)
        return cls._of(parts, labels)

    @classmethod
    def from_scipy(cls, matrix: Any) -> Self:
        """Return the graph of a symmetric sparse matrix.

        Parameters
        ----------
        matrix : scipy sparse array or matrix, shape (n, n)
            1 where users are joined, 0 elsewhere. Ones on the diagonal are self-loops, which are
            left out and counted.

        Returns
        -------
        Graph
            Without labels.

        Raises
        ------
        ParameterError
            If it is not sparse, not square, not symmetric, or has an entry other than 0 and 1.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> graph = Graph.from_scipy(csr_array([[1, 1], [1, 0]]))
        >>> graph.num_edges, graph.num_self_loops
        (1, 1)
        """
        return cls._of(parts_of_matrix(matrix), None)

    @property
    def num_users(self) -> int:
        """Number of users n."""
        return self.starts.size - 1

    @property
    def num_edges(self) -> int:
        """Number of edges m."""
        return self.neighbours.size // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each user, shape (n,); a new array."""
        return np.diff(self.starts)

    @property
    def num_isolated(self) -> int:
        """Number of users without neighbours."""
        return int(np.count_nonzero(self.degrees == 0))

    @property
    def is_regular(self) -> bool:
        """Whether all users have the same number of neighbours."""
        degrees = self.degrees
        return bool((degrees == degrees[0]).all())

    @property
    def irregularity(self) -> float:
        """Irregularity Gamma = n sum_j pi_j^2 of the law of `stationary_law`.

        1 where all users have as many neighbours, at most n / 2 otherwise. Exact, but for one
        rounding to the nearest float. Cost: O(n log n).

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
        """Return the neighbours of one user, ascending, as a read-only view.

        Raises
        ------
        ParameterError
            If ``user`` is not in [0, n).
        """
        index = require_at_least("user", user, 0)
        if index >= self.num_users:
            raise ParameterError(
                f"user = {index} is not in [0, {self.num_users}): users are numbered from 0"
            )
        return self.neighbours[self.starts[index] : self.starts[index + 1]]

    def stationary_law(self) -> NDArray[np.float64]:
        """Return the law pi_j = degree_j / (2 m), which one step of the random walk keeps.

        Returns
        -------
        ndarray of float64, shape (n,)
            Each rounded to the nearest float. The only such law if the graph is connected; of
            several components it gives each as much as it has edges, and users without neighbours
            nothing. Uniform where there are no edges at all, for then every law is kept.

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
            0 for the largest component, 1 for the next, and so on; of equal ones that of the
            smallest user comes first. Cost: O(n + m).

        Examples
        --------
        >>> Graph.from_edges([(1, 2), (3, 4)]).components().tolist()
        [2, 0, 0, 1, 1]
        """
        found, _ = self._explored()
        sizes = np.bincount(found)
        rank = np.empty(sizes.size, dtype=np.int32)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size, dtype=np.int32)
        return rank[found]

    def largest_component(self) -> tuple["Graph", NDArray[np.int64]]:
        """Return the largest connected component, and which users are in it.

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
            With the labels of these users. Its counts of what was left out are 0.

        Raises
        ------
        ParameterError
            If there are none, one is there twice, or is not in [0, n).

        Notes
        -----
        Cost: O(n + the neighbours of these users).

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2), (2, 3)]).subgraph([2, 1]).num_edges
        1
        """
        from shuffledp.network import graph_kernels as kernels

        chosen, number_of = _numbered(users, self.num_users)
        starts = np.zeros(chosen.size + 1, dtype=np.int64)
        most = int((self.starts[chosen + 1] - self.starts[chosen]).sum())
        rows = np.empty(most, dtype=np.int32)
        written = kernels.copy_induced(
            self.starts, self.neighbours, read_only(chosen), read_only(number_of), starts, rows
        )
        return Graph(
            starts=starts,
            neighbours=sorted_rows(starts, rows[:written]),
            labels=None if self.labels is None else tuple(self.labels[user] for user in chosen),
        )

    def is_bipartite(self) -> bool:
        """Return whether a walk that always moves would swing between two sides for ever.

        Returns
        -------
        bool
            Whether some component with an edge falls into two sides such that each edge joins one
            to the other; equally, has no cycle of odd length. A user without neighbours does not
            count: a report there stays, and nothing swings. Cost: O(n + m).

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2)]).is_bipartite()
        True
        >>> Graph.from_edges([(0, 1), (1, 2), (2, 0)]).is_bipartite()
        False
        """
        from shuffledp.network import graph_kernels as kernels

        component, side = self._explored()
        sizes = np.bincount(component)
        is_odd = np.zeros(sizes.size, dtype=np.bool_)
        kernels.mark_odd_components(self.starts, self.neighbours, component, side, is_odd)
        return bool((~is_odd & (sizes > 1)).any())

    def to_scipy(self) -> "csr_array":
        """Return the adjacency matrix.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, n)
            Symmetric, 1.0 where users are joined. A new matrix, 12 bytes an entry; 16 where there
            are 2^31 or more, for scipy numbers entries and users by the same type.
        """
        from scipy.sparse import csr_array

        index = np.int32 if self.neighbours.size < 2**31 else np.int64
        matrix = csr_array(
            (
                np.ones(self.neighbours.size),
                self.neighbours.astype(index),
                self.starts.astype(index),
            ),
            shape=(self.num_users, self.num_users),
        )
        matrix.has_canonical_format = True
        return matrix

    def __repr__(self) -> str:
        return f"Graph(num_users={self.num_users}, num_edges={self.num_edges})"

    def _explored(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the component of each user, in the order of first users, and its side there."""
        from shuffledp.network import graph_kernels as kernels

        component = np.full(self.num_users, -1, dtype=np.int32)
        side = np.empty(self.num_users, dtype=np.bool_)
        queue = np.empty(self.num_users, dtype=np.int32)
        kernels.spread(self.starts, self.neighbours, component, side, queue)
        return component, side

    @classmethod
    def _of(cls, parts: Parts, labels: Sequence[str] | None) -> Self:
        """Return the graph of rows that are ready."""
        return cls(
            starts=parts.starts,
            neighbours=parts.neighbours,
            labels=None if labels is None else tuple(labels),
            num_self_loops=parts.num_self_loops,
            num_duplicates=parts.num_duplicates,
        )


def _flat_integers(name: str, values: ArrayLike, dtype: type) -> NDArray[Any]:
    """Return a flat contiguous array of integers of a type, without a copy if it is one."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: give a flat array of integers"
        )
    limits = np.iinfo(dtype)
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise ParameterError(
            f"{name} lies in [{array.min()}, {array.max()}], beyond {limits.dtype}: users are "
            f"numbered from 0, at most to {MOST_USERS - 1:,}"
        )
    return np.ascontiguousarray(array, dtype=dtype)


def _require_rows(starts: NDArray[np.int64], num_entries: int) -> None:
    """Raise `ParameterError` unless ``starts`` cuts so many entries into rows."""
    if not 2 <= starts.size <= MOST_USERS + 1:
        raise ParameterError(
            f"starts has {starts.size:,} entries: a graph has 1 to {MOST_USERS:,} users, and "
            "starts one entry more"
        )
    if starts[0] != 0 or starts[-1] != num_entries or (starts[1:] < starts[:-1]).any():
        raise ParameterError(
            f"starts must ascend from 0 to the number of neighbours, which is {num_entries:,}"
        )


def _fault_message(fault: int, user: int, other: int, num_users: int) -> str:
    """Return what is wrong with the row of a user."""
    from shuffledp.network import graph_kernels as kernels

    what = {
        kernels.OUTSIDE: f"which is not in [0, {num_users})",
        kernels.SELF_LOOP: "which is the user",
        kernels.NOT_ASCENDING: "out of order or twice",
    }[fault]
    return f"user {user} has neighbour {other}, {what}: make the graph with Graph.from_edges"


def _checked_labels(labels: tuple[str, ...], num_users: int) -> tuple[str, ...]:
    """Return the labels as a tuple, or raise unless they are one for each user, all different."""
    names = tuple(labels)
    if len(names) != num_users:
        raise ParameterError(
            f"labels has {len(names):,} entries for {num_users:,} users: give one a user"
        )
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("labels are not all text: turn them into text with str()")
    if len(set(names)) < num_users:
        raise ParameterError("labels holds a name twice: give every user one of their own")
    return names


def _numbered(users: ArrayLike, num_users: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return chosen users, and for every user the place among these, or -1; else raise."""
    chosen = _flat_integers("users", users, np.int64).astype(np.int64)
    if chosen.size == 0:
        raise ParameterError("users is empty: choose at least one")
    if chosen.min() < 0 or chosen.max() >= num_users:
        raise ParameterError(
            f"users lies in [{chosen.min()}, {chosen.max()}], not in [0, {num_users}): users are "
            "numbered from 0"
        )
    number_of = np.full(num_users, -1, dtype=np.int32)
    number_of[chosen] = np.arange(chosen.size, dtype=np.int32)
    if np.count_nonzero(number_of >= 0) < chosen.size:
        raise ParameterError("users holds a user twice: give each once")
    return chosen, number_of
