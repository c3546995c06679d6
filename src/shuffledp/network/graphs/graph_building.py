"""Compressed rows of graphs in the making: from edges, matrices, and graphs of networkx."""

from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only

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
    from shuffledp.network.graphs import graph_kernels as kernels

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
    from shuffledp.network.graphs import graph_kernels as kernels

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
    from shuffledp.network.graphs import graph_kernels as kernels

    user, other = kernels.first_one_way(read_only(starts), read_only(neighbours))
    if user >= 0:
        raise ParameterError(
            f"matrix has an entry at ({user}, {other}) but none at ({other}, {user}), as of a "
            "directed graph: reports go both ways along an edge; give matrix + matrix.T with "
            "ones in place of twos"
        )
