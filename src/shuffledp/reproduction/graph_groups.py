"""People of a graph: the nearest of each, as groups of one size, and public coordinates."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.groups.formation.groups import Groups

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK_ROWS = 512
# A key orders people by hops, then by walks of that length (more first), then by number.
_HOP_SHIFT, _WALK_SHIFT = 56, 24
_MOST_WALKS = (1 << (_HOP_SHIFT - _WALK_SHIFT)) - 1
_INDEX_BITS = (1 << _WALK_SHIFT) - 1
_UNREACHED = 1 << 62


def nearest_in_graph(
    edges: NDArray[np.integer[Any]], num_users: int, most: int
) -> NDArray[np.int32]:
    """Return the nearest people of each person in a graph, the person first.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Pairs of friends, each once, nobody with oneself; of a connected graph.
    num_users : int
        Number of people, at most 2^24.
    most : int
        How many to return, in [1, num_users].

    Returns
    -------
    ndarray of int32, shape (num_users, most)
        By number of hops; at equal hops those first to whom more shortest walks lead (at two
        hops: more common friends), then by number. So every beginning of a row is a group.

    Notes
    -----
    Cost: sparse products by blocks of rows; seconds for 10,000 people. Where the graph is not
    connected, strangers come last.
    """
    friends = _adjacency(edges, num_users)
    nearest = np.empty((num_users, most), dtype=np.int32)
    for first in range(0, num_users, _BLOCK_ROWS):
        rows = np.arange(first, min(first + _BLOCK_ROWS, num_users))
        keys = _keys(friends, rows, most)
        closest = np.sort(np.partition(keys, most - 1, axis=1)[:, :most], axis=1)
        nearest[rows] = closest & _INDEX_BITS
    return nearest


def _keys(friends: "csr_array", rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return one key a person of ``rows`` (axis 0) and other person, smaller for nearer ones.

    The search goes one hop further only for those who have not met ``most`` people yet.
    """
    numbers = np.arange(friends.shape[0])
    keys = np.tile(_UNREACHED + numbers, (rows.size, 1))
    keys[np.arange(rows.size), rows] = rows
    open_rows, walks, hops = np.arange(rows.size), friends[rows], 1
    while open_rows.size:
        counts = walks.toarray()
        counts[keys[open_rows] < _UNREACHED] = 0
        new_row, new_person = np.nonzero(counts)
        weight = _MOST_WALKS - np.minimum(counts[new_row, new_person], _MOST_WALKS)
        ranked = (hops << _HOP_SHIFT) + (weight << _WALK_SHIFT) + new_person
        keys[open_rows[new_row], new_person] = ranked
        enough = (keys[open_rows] < _UNREACHED).sum(axis=1) >= most
        still = ~enough & (counts > 0).any(axis=1)
        open_rows, walks = open_rows[still], _sparse(counts[still]) @ friends
        hops += 1
    return keys


def groups_of_nearest(nearest: NDArray[np.int32], size: int) -> Groups:
    """Return one group a person: the first ``size`` of the nearest.

    Parameters
    ----------
    nearest : ndarray of int32, shape (n, most)
        See `nearest_in_graph`.
    size : int
        Members of each group, in [1, most].

    Returns
    -------
    Groups
        Equal groups once.

    Examples
    --------
    >>> groups = groups_of_nearest(np.array([[0, 1], [1, 0], [2, 1]], dtype=np.int32), 2)
    >>> groups.num_groups, groups.group_of.tolist()
    (2, [0, 0, 1])
    """
    members = np.sort(nearest[:, :size], axis=1)
    distinct, chosen = np.unique(members, axis=0, return_inverse=True)
    return Groups(
        num_users=nearest.shape[0],
        starts=np.arange(distinct.shape[0] + 1, dtype=np.int64) * size,
        members=distinct.reshape(-1).astype(np.int32),
        group_of=chosen.reshape(-1).astype(np.int64),
        description=f"the {size} nearest people in the graph",
    )


def graph_coordinates(
    edges: NDArray[np.integer[Any]], num_users: int, num_columns: int
) -> NDArray[np.float64]:
    """Return public coordinates of people: leading eigenvectors of the normalised adjacency.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Pairs of friends, each once.
    num_users : int
        Number of people.
    num_columns : int
        How many coordinates, below ``num_users``.

    Returns
    -------
    ndarray of float64, shape (num_users, num_columns)
        Each column has mean square 1, and a sign that is fixed.

    Notes
    -----
    Friends have similar coordinates, so that a model which takes tables can learn from a graph.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    friends = _adjacency(edges, num_users)
    degrees = np.maximum(friends.sum(axis=1), 1)
    scale = diags_array(1.0 / np.sqrt(degrees))
    start = np.sqrt(degrees / degrees.sum())
    _, vectors = eigsh(scale @ friends.astype(np.float64) @ scale, k=num_columns, v0=start)
    vectors = vectors[:, ::-1] / np.sqrt(degrees)[:, None]
    vectors /= np.sqrt((vectors * vectors).mean(axis=0))
    largest = np.abs(vectors).argmax(axis=0)
    signed: NDArray[np.float64] = vectors * np.sign(vectors[largest, np.arange(num_columns)])
    return signed


def _adjacency(edges: NDArray[np.integer[Any]], num_users: int) -> "csr_array":
    """Return the symmetric matrix that has a 1 for each pair of friends."""
    from scipy.sparse import csr_array

    first, second = edges[:, 0], edges[:, 1]
    places = (np.concatenate([first, second]), np.concatenate([second, first]))
    return csr_array(
        (np.ones(2 * edges.shape[0], dtype=np.int64), places), shape=(num_users, num_users)
    )


def _sparse(counts: NDArray[np.int64]) -> "csr_array":
    """Return a dense block as a sparse one."""
    from scipy.sparse import csr_array

    return csr_array(counts)
