"""People of the experiments of Meehan et al.: crescents, and the nearest friends in a graph."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from shuffledp import Entropy
from shuffledp.groups import Groups

#: The labels of the crescents, by code: cluster, crescent, half.
LABELS = (
    *("dark red", "light red", "dark orange", "light orange"),
    *("dark blue", "light blue", "dark green", "light green"),
)

# From one crescent to the second, which lies upside down, so that they interlock; and from one
# cluster to the second, far beyond the crescents' height of about 2.
_SECOND_CRESCENT, _SECOND_CLUSTER = (1.0, 0.45), (0.0, -3.2)
_SCATTER = 0.09


def draw_crescents(
    num_users: int, entropy: Entropy
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Draw public positions, shape (n, 2), and private labels, indices into `LABELS`.

    Two clusters (warm, cool) lie apart. In each, two half circles of radius 1 interlock, and half
    of each is light, half dark: labels can be told at three scales. Each label has n/8 people,
    rounded up or down. The paper describes its set without the numbers; these are ours.
    """
    generator = entropy.generator()
    labels = generator.permutation(np.arange(num_users) % len(LABELS))
    cluster, crescent, half = labels // 4, labels // 2 % 2, labels % 2
    angle = np.pi / 2 * (half + generator.random(num_users))
    upside_down = 1.0 - 2.0 * crescent
    points = upside_down[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    points += np.outer(crescent, _SECOND_CRESCENT) + np.outer(cluster, _SECOND_CLUSTER)
    points += _SCATTER * generator.standard_normal(points.shape)
    return points, labels.astype(np.uint8)


def coarser(labels: NDArray[np.integer], num_ways: int) -> NDArray[np.integer]:
    """Return labels merged to 8, 4 (one a crescent) or 2 (one a cluster).

    >>> coarser(np.arange(8), 4).tolist(), coarser(np.arange(8), 2).tolist()
    ([0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1])
    """
    return labels // (len(LABELS) // num_ways)


_BLOCK_ROWS = 512
# A key orders people by hops, then by walks of that length (more first), then by number.
_HOP_SHIFT, _WALK_SHIFT = 56, 24
_MOST_WALKS = (1 << (_HOP_SHIFT - _WALK_SHIFT)) - 1
_UNREACHED = 1 << 62


def nearest_in_graph(
    edges: NDArray[np.integer[Any]], num_users: int, most: int
) -> NDArray[np.int32]:
    """Return the nearest people of each person in a graph, the person first; shape (n, most).

    They are ordered by hops; at equal hops those come first to whom more shortest walks lead (at
    two hops: more common friends), then by number. So every beginning of a row is a group. Where
    the graph is not connected, strangers come last.
    """
    friends = _adjacency(edges, num_users)
    nearest = np.empty((num_users, most), dtype=np.int32)
    for first in range(0, num_users, _BLOCK_ROWS):
        rows = np.arange(first, min(first + _BLOCK_ROWS, num_users))
        keys = _keys(friends, rows, most)
        closest = np.sort(np.partition(keys, most - 1, axis=1)[:, :most], axis=1)
        nearest[rows] = closest & ((1 << _WALK_SHIFT) - 1)
    return nearest


def _keys(friends: csr_array, rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return one key a person of ``rows`` (axis 0) and other person, smaller for nearer ones.

    The search goes one hop further only for those who have not met ``most`` people yet.
    """
    keys = np.tile(_UNREACHED + np.arange(friends.shape[0]), (rows.size, 1))
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
        open_rows, walks = open_rows[still], csr_array(counts[still]) @ friends
        hops += 1
    return keys


def groups_of_nearest(nearest: NDArray[np.int32], size: int) -> Groups:
    """Return one group a person: the first ``size`` of the nearest.

    >>> groups_of_nearest(np.array([[0, 1], [1, 0], [2, 1]], dtype=np.int32), 2).group_of.tolist()
    [0, 0, 1]
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
    """Return leading eigenvectors of the normalised adjacency, shape (n, num_columns).

    Friends have similar coordinates, so that a model which takes tables can learn from a graph.
    Each column has mean square 1, and a sign that is fixed.
    """
    friends = _adjacency(edges, num_users)
    degrees = np.maximum(friends.sum(axis=1), 1)
    scale = diags_array(1.0 / np.sqrt(degrees))
    start = np.sqrt(degrees / degrees.sum())
    _, vectors = eigsh(scale @ friends.astype(np.float64) @ scale, k=num_columns, v0=start)
    vectors = vectors[:, ::-1] / np.sqrt(degrees)[:, None]
    vectors /= np.sqrt((vectors * vectors).mean(axis=0))
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(num_columns)])


def _adjacency(edges: NDArray[np.integer[Any]], num_users: int) -> csr_array:
    """Return the symmetric matrix that has a 1 for each pair of friends."""
    ends = np.concatenate([edges, edges[:, ::-1]]).T
    return csr_array((np.ones(ends.shape[1], dtype=np.int64), ends), shape=(num_users, num_users))
