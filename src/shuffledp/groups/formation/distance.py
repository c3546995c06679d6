"""Groups by distance: each person with everybody within a radius.

Boundary: whoever is at exactly the radius is inside. Coordinates such as 0.1 are rounded when they
are stored, and so are distances, so the radius is widened by as much as that can amount to; see
`_widened`. A group may so gain somebody who is farther than the radius by a rounding error, and
never lacks anybody who is within: errors fall on the side that hides more.
"""

from typing import TYPE_CHECKING, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.groups.formation import rows as compressed
from shuffledp.groups.formation.points import Places, chord_of, distinct_places
from shuffledp.groups.formation.rows import Rows

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

_REMEDY = "a smaller radius, groups of a stated size (--group-size)"


# Angles up to pi, rounded, turned into radians and into sines, put unit vectors at most 13 units
# of 2^-53 away from where they belong. `_widened` allows for sqrt(3) times this, each. That is
# 40 nm on the ground, and a metre for radii of half the circumference, where chords hardly grow.
_ROUNDING_OF_UNIT_VECTORS = 8.0


def groups_by_distance(
    points: ArrayLike, radius: SupportsFloat, *, metric: str = "euclidean"
) -> tuple[Rows, str]:
    """Return the group of each person: everybody within a distance, the person included.

    Parameters
    ----------
    points : array-like of float, shape (num_users, d) or (num_users,)
        Coordinates; see `points.METRICS`.
    radius : float
        Largest distance, >= 0; in metres for ``"haversine"``.
    metric : {"euclidean", "haversine", "absolute"}
        How to measure. ``"haversine"`` takes the Earth for a sphere of 6,371,008.8 m.

    Returns
    -------
    rows : Rows
        Each distinct group once.
    description : str
        For reports.

    Raises
    ------
    ParameterError
        If a coordinate or the radius is out of range, or there would be more than 250 million
        memberships; they are counted before any is stored.

    Notes
    -----
    Cost: O(n log n + memberships) for one column; for more a k-d tree, whose cost grows fast with
    the number of columns. Memory: the result, and some 100 MB.

    Examples
    --------
    >>> rows, description = groups_by_distance([0.1, 0.2, 0.3], 0.1, metric="absolute")
    >>> rows.starts.tolist(), rows.members.tolist(), description
    ([0, 2, 5, 7], [0, 1, 0, 1, 2, 1, 2], 'people whose values differ by at most 0.1')
    """
    places = distinct_places(points, metric)
    distance = require_non_negative("radius", radius)
    largest = float(np.abs(places.points).max())
    if metric == "haversine":
        description = f"people within {distance:,.6g} m of each other"
        reach = _widened(chord_of(distance), _ROUNDING_OF_UNIT_VECTORS, 3)
    else:
        description = f"people within {distance:g} of each other"
        reach = _widened(distance, largest, places.points.shape[1])
    if metric == "absolute":
        description = f"people whose values differ by at most {distance:g}"
    return _distinct_groups(places, reach), description


def _widened(reach: float, largest: float, num_columns: int) -> float:
    """Return a reach in which rounding errors hide nobody who is at the distance or nearer.

    With u = 2^-53: two coordinates of size at most X, rounded from the numbers meant, change a
    distance by at most 2 u sqrt(d) X; subtracting, squaring and adding d of them changes it by a
    factor of at most 1 + (d + 4) u / 2, and forming a window in one column by 2 u (X + reach).
    All that is below 4 u (sqrt(d) X + d reach).
    """
    if reach == 0.0:
        return 0.0  # equal values are equal however they were rounded
    slack = 2.0**-51 * (num_columns**0.5 * largest + num_columns * reach)
    return float(reach + slack)


def _distinct_groups(places: Places, reach: float) -> Rows:
    """Return the groups of people whose places are within reach of each other."""
    num_users = places.place_of.size
    spread = np.ptp(places.points, axis=0)
    if reach >= float(np.sqrt((spread**2).sum())):
        return compressed.one_group(num_users)
    counts = np.bincount(places.place_of)
    place_starts = compressed.starts_of(counts)
    people = np.argsort(places.place_of, kind="stable").astype(np.int32)
    gather = _gather_windows if places.points.shape[1] == 1 else _gather_by_tree
    starts, members = gather(places.points, reach, place_starts, people)
    return compressed.distinct_rows(Rows(num_users, starts, members, places.place_of))


def _gather_windows(
    points: NDArray[np.float64],
    reach: float,
    place_starts: NDArray[np.int64],
    people: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return starts and members of the groups around the ascending places of one column."""
    from shuffledp.groups.formation import groups_kernels as kernels

    values = points[:, 0]
    first = place_starts[np.searchsorted(values, values - reach, side="left")]
    end = place_starts[np.searchsorted(values, values + reach, side="right")]
    starts = compressed.starts_of(end - first)
    compressed.require_memberships(int(starts[-1]), remedy=_REMEDY)
    members = np.empty(starts[-1], dtype=np.int32)
    kernels.copy_windows(people, first, starts, members)
    kernels.sort_rows(starts, members)
    return starts, members


def _gather_by_tree(
    points: NDArray[np.float64],
    reach: float,
    place_starts: NDArray[np.int64],
    people: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return starts and members of the groups around places of several columns."""
    from scipy.spatial import cKDTree

    from shuffledp.groups.formation import groups_kernels as kernels

    tree = cKDTree(points)
    counts = np.diff(place_starts)
    # Both counts are exact in double precision, where the limit lies far below 2^53.
    total = int(tree.count_neighbors(tree, reach, weights=(None, counts.astype(np.float64))))
    compressed.require_memberships(total, remedy=_REMEDY)
    all_sizes: list[NDArray[np.int64]] = []
    blocks: list[NDArray[np.int32]] = []
    # Blocks of places whose pairs are about BLOCK_MEMBERSHIPS; where people are dense, halved.
    step = max(1, len(points) * compressed.BLOCK_MEMBERSHIPS // total)
    pending = [(first, min(first + step, len(points))) for first in range(0, len(points), step)]
    pending.reverse()
    while pending:
        first, end = pending.pop()
        block = cKDTree(points[first:end])
        if end - first > 1 and _num_pairs(block, tree, reach) > 2 * compressed.BLOCK_MEMBERSHIPS:
            middle = (first + end) // 2
            pending += [(middle, end), (first, middle)]
            continue
        pairs = block.sparse_distance_matrix(tree, reach, output_type="ndarray")
        centres, near = np.ascontiguousarray(pairs["i"]), np.ascontiguousarray(pairs["j"])
        sizes = np.zeros(end - first, dtype=np.int64)
        kernels.count_people(centres, near, place_starts, sizes)
        starts = compressed.starts_of(sizes)
        members = np.empty(starts[-1], dtype=np.int32)
        kernels.copy_people(centres, near, place_starts, people, starts[:-1].copy(), members)
        kernels.sort_rows(starts, members)
        all_sizes.append(sizes)
        blocks.append(members)
    return compressed.starts_of(np.concatenate(all_sizes)), compressed.joined(blocks)


def _num_pairs(block: "cKDTree", tree: "cKDTree", reach: float) -> int:
    """Return how many pairs of places are within reach, one of them in the block."""
    return int(block.count_neighbors(tree, reach))
