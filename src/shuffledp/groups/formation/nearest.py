"""Groups of a stated size: each person with the nearest others."""

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.groups.formation import rows as compressed
from shuffledp.groups.formation.points import Places, distinct_places
from shuffledp.groups.formation.rows import Rows, count_of


def groups_of_nearest(
    points: ArrayLike, group_size: SupportsIndex, *, metric: str = "euclidean"
) -> tuple[Rows, str]:
    """Return the group of each person: the person and the nearest others.

    Parameters
    ----------
    points : array-like of float, shape (num_users, d) or (num_users,)
        Coordinates; see `points.METRICS`.
    group_size : int
        Members of each group, the person included, in [1, num_users].
    metric : {"euclidean", "haversine", "absolute"}
        How to measure.

    Returns
    -------
    rows : Rows
        Each distinct group once.
    description : str
        For reports.

    Raises
    ------
    ParameterError
        If a coordinate or the size is out of range, or there would be more than 250 million
        memberships; they are counted before any is stored.

    Notes
    -----
    Others are taken by distance, as computed in double precision, and then by number. People of
    one place so share the group of its first ``group_size`` people, in that order; who is not among
    them takes the place of the last.

    Cost: O(n (log n + group_size)) in two or three dimensions, by a k-d tree. Memory: the
    result, and some 50 MB.

    Examples
    --------
    >>> rows, description = groups_of_nearest([5, 5, 5, 9], 2, metric="absolute")
    >>> rows.members.reshape(-1, 2).tolist(), rows.group_of.tolist(), description
    ([[0, 1], [0, 3], [0, 2]], [0, 0, 2, 1], 'each person and the 1 nearest other')
    """
    places = distinct_places(points, metric)
    num_users = places.place_of.size
    size = require_at_least("group_size", group_size, 1)
    if size > num_users:
        raise ParameterError(
            f"group_size = {size} is not in [1, {num_users}]: there are only "
            f"{count_of(num_users, 'person', 'people')}"
        )
    others = count_of(size - 1, "nearest other", "nearest others")
    description = f"each person and the {others}"
    if size == num_users:
        return compressed.one_group(num_users), description
    counts = np.bincount(places.place_of)
    # One group a place, and one for each of its people who is not among the first of it.
    total = size * int((1 + np.maximum(counts - size, 0)).sum())
    compressed.require_memberships(total, remedy="smaller groups (--group-size)")
    return compressed.distinct_rows(
        _groups(places, compressed.starts_of(counts), size)
    ), description


def _groups(places: Places, place_starts: NDArray[np.int64], size: int) -> Rows:
    """Return the groups of places, and then those of people who are not in their place's."""
    from shuffledp.groups.formation import groups_kernels as kernels

    place_of = places.place_of
    people = np.argsort(place_of, kind="stable").astype(np.int32)
    nearest = _nearest_people(places.points, place_starts, people, size)
    last = nearest[:, -1].copy()
    all_starts = np.arange(len(nearest) + 1, dtype=np.int64) * size
    kernels.sort_rows(all_starts, nearest.reshape(-1))
    outsiders = np.flatnonzero(kernels.is_outside(all_starts, nearest.reshape(-1), place_of))
    own = nearest[place_of[outsiders]]
    own[own == last[place_of[outsiders], np.newaxis]] = outsiders
    group_of = place_of.copy()
    group_of[outsiders] = len(nearest) + np.arange(outsiders.size)
    starts = np.arange(len(nearest) + outsiders.size + 1, dtype=np.int64) * size
    kernels.sort_rows(all_starts[: outsiders.size + 1], own.reshape(-1))
    members = compressed.joined([nearest.reshape(-1), own.reshape(-1)])
    return Rows(place_of.size, starts, members, group_of)


def _nearest_people(
    points: NDArray[np.float64],
    place_starts: NDArray[np.int64],
    people: NDArray[np.int32],
    size: int,
) -> NDArray[np.int32]:
    """Return the nearest people of each place (g, size), by distance and then by number."""
    from scipy.spatial import cKDTree

    from shuffledp.groups.formation import groups_kernels as kernels

    tree = cKDTree(points)
    nearest = np.empty((len(points), size), dtype=np.int32)
    remaining = np.arange(len(points))
    # One place more than may be needed, to see whether the last one needed is the only such.
    num_found = min(size + 1, len(points))
    while remaining.size:
        unresolved = []
        step = max(1, compressed.BLOCK_MEMBERSHIPS // num_found)
        for first in range(0, remaining.size, step):
            block = remaining[first : first + step]
            distances, found = tree.query(points[block], k=num_found)
            shape = (block.size, num_found)
            taken = np.empty((block.size, size), dtype=np.int32)
            is_done = np.empty(block.size, dtype=np.bool_)
            kernels.take_nearest(
                distances.reshape(shape), found.reshape(shape), place_starts, people, taken, is_done
            )
            nearest[block[is_done]] = taken[is_done]
            unresolved.append(block[~is_done])
        remaining = np.concatenate(unresolved)
        num_found = min(2 * num_found, len(points))
    return nearest
