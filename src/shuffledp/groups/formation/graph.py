"""Groups by hops: each person with everybody within some steps in a graph of who knows whom."""

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.groups.formation import rows as compressed
from shuffledp.groups.formation.rows import Rows, count_of, require_users

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def groups_by_hops(
    edges: ArrayLike, *, num_users: SupportsIndex, hops: SupportsIndex = 1
) -> tuple[Rows, str]:
    """Return the group of each person: everybody within some hops, the person included.

    Parameters
    ----------
    edges : array-like of int, shape (m, 2)
        Pairs of people, in either direction. Self-loops and repeated edges do nothing.
    num_users : int
        Number of people, >= 1.
    hops : int
        Largest number of steps along edges, >= 0. With 0 everybody is alone.

    Returns
    -------
    rows : Rows
        Each distinct group once.
    description : str
        For reports.

    Raises
    ------
    ParameterError
        If an edge names somebody outside [0, num_users), or there would be more than 250 million
        memberships; they are counted before any is stored.

    Notes
    -----
    Cost: the edges that touch each group, twice. Where so many hops reach everybody who can be
    reached at all, groups are the connected components, and the cost is O(num_users + edges).

    Examples
    --------
    >>> rows, description = groups_by_hops([(0, 1), (1, 2), (2, 3)], num_users=4, hops=2)
    >>> rows.starts.tolist(), rows.group_of.tolist(), description
    ([0, 3, 7, 10], [0, 1, 1, 2], 'people within 2 hops of each other')
    """
    number = require_users(num_users)
    # More than num_users hops reach nobody else.
    steps = min(require_at_least("hops", hops, 0), number)
    graph = _adjacency(_checked_edges(edges, number), number)
    description = f"people within {count_of(steps, 'hop', 'hops')} of each other"
    labels = _components_if_within(graph, steps)
    if labels is not None:
        return _rows_of_labels(labels), description
    return compressed.distinct_rows(_reached(graph, steps)), description


def _checked_edges(edges: ArrayLike, num_users: int) -> NDArray[np.int64]:
    """Return the edges as an array (m, 2), else raise."""
    try:
        array = np.asarray(edges)
    except ValueError:
        raise ParameterError(
            "edges are not all pairs: give two numbers of people an edge"
        ) from None
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ParameterError(
            f"edges has shape {array.shape} and dtype {array.dtype}: give integers, "
            "two numbers of people an edge"
        )
    outside = np.argwhere((array < 0) | (array >= num_users))
    if outside.size:
        row, column = outside[0]
        raise ParameterError(
            f"edges[{row}, {column}] = {array[row, column]} is not in [0, {num_users}): number "
            "people from 0, and give num_users for all of them"
        )
    return array.astype(np.int64, copy=False)


def _adjacency(edges: NDArray[np.int64], num_users: int) -> "csr_array":
    """Return the sparse matrix of who is joined to whom, both ways, each pair once."""
    from scipy.sparse import csr_array

    proper = edges[edges[:, 0] != edges[:, 1]]
    ends = np.concatenate([proper, proper[:, ::-1]])
    ones = np.ones(len(ends), dtype=bool)
    return csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(num_users, num_users))


def _components_if_within(graph: "csr_array", hops: int) -> NDArray[np.int64] | None:
    """Return the connected component of each person if hops surely reach all of it, else None.

    If nobody is farther than e from one person of the component, no two are farther than 2 e.
    """
    from scipy.sparse.csgraph import connected_components

    from shuffledp.groups.formation import groups_kernels as kernels

    _, labels = connected_components(graph, directed=False)
    _, sources = np.unique(labels, return_index=True)
    queue = np.zeros(labels.size, dtype=np.int32)
    queue[: sources.size] = sources
    marks = np.full(labels.size, -1, dtype=np.int64)
    marks[sources] = 0
    _, farthest = kernels.spread(*_arrays(graph), labels.size, 0, marks, queue, sources.size)
    return labels.astype(np.int64) if hops >= 2 * farthest else None


def _rows_of_labels(labels: NDArray[np.int64]) -> Rows:
    """Return one group for each label."""
    return Rows(
        labels.size,
        compressed.starts_of(np.bincount(labels)),
        np.argsort(labels, kind="stable").astype(np.int32),
        labels,
    )


def _reached(graph: "csr_array", hops: int) -> Rows:
    """Return the groups of all people, one after the other."""
    from shuffledp.groups.formation import groups_kernels as kernels

    num_users = graph.shape[0]
    sizes = np.zeros(num_users, dtype=np.int64)
    limit = compressed.MOST_MEMBERSHIPS
    total = kernels.count_reached(*_arrays(graph), hops, limit, sizes)
    compressed.require_memberships(total, remedy="fewer hops (--hops)", at_least=True)
    starts = compressed.starts_of(sizes)
    members = np.empty(total, dtype=np.int32)
    kernels.copy_reached(*_arrays(graph), hops, starts, members)
    return Rows(num_users, starts, members, np.arange(num_users))


def _arrays(graph: "csr_array") -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the neighbours of each person start, and the neighbours."""
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
