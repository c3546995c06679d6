"""Public coordinates: which are allowed, and where they lie in the space they are measured in.

Distances along the surface of the Earth, taken as a sphere, grow with the straight line through
it, the chord. So all three metrics become straight lines between points, which trees can search:

===========  ==========================================================================
metric       measured between
===========  ==========================================================================
euclidean    the points as they are
absolute     numbers, as points of one coordinate
haversine    unit vectors from the middle of the Earth; see `chord_of`
===========  ==========================================================================

*Groups by distance.* Whoever is at exactly the radius is inside. Coordinates such as 0.1 are
rounded when they are stored, and so are distances, so the radius is widened by as much as that can
amount to; see `_widened`. A group may so gain somebody who is farther than the radius by a rounding
error, and never lacks anybody who is within: errors fall on the side that hides more.
"""

import math
from typing import NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.errors import ParameterError
from shuffledp.groups import group_rows as compressed
from shuffledp.groups.group_rows import Rows, count_of, require_users

#: The names of the metrics, and how many columns each takes (None: any number).
METRICS: dict[str, int | None] = {"euclidean": None, "haversine": 2, "absolute": 1}
#: Mean radius of the Earth in metres (Moritz, "Geodetic Reference System 1980", R1). Real
#: distances differ from those on the sphere by up to 0.56 %.
EARTH_RADIUS = 6_371_008.8
#: Squares of coordinates up to this size stay within double precision.
LARGEST_COORDINATE = 1e150
_LIMITS = {"haversine": (("latitude", 90.0), ("longitude", 180.0))}


class Places(NamedTuple):
    """The distinct places of people: ``points`` (g, d), ascending, and ``place_of`` each person."""

    points: Floats
    place_of: Integers


def require_metric(metric: str, num_columns: int) -> str:
    """Return the name of a metric if it exists and fits the number of columns, else raise."""
    if metric not in METRICS:
        raise ParameterError(f"metric = {metric!r} is not one of {', '.join(METRICS)}")
    wanted = METRICS[metric]
    if num_columns < 1 or (wanted is not None and num_columns != wanted):
        columns = {None: "one column or more", 1: "one column", 2: "latitude and longitude"}
        raise ParameterError(
            f"metric = {metric!r} takes {columns[wanted]}, not {num_columns} columns"
        )
    return metric


def first_fault(points: Floats, metric: str) -> tuple[int, int, str] | None:
    """Return row, column and what is wrong there with the first unusable coordinate, or None."""
    named = _LIMITS.get(metric, (("coordinate", LARGEST_COORDINATE),) * points.shape[1])
    limits = np.array([limit for _, limit in named])
    is_bad = ~(np.abs(points) <= limits)  # so that NaN is bad
    if not is_bad.any():
        return None
    row, column = (int(index) for index in np.argwhere(is_bad)[0])
    value = points[row, column]
    if not math.isfinite(value):
        return row, column, f"{value} is not finite"
    name, limit = named[column]
    return row, column, f"{name} {value} is not in [-{limit:g}, {limit:g}]"


def distinct_places(points: ArrayLike, metric: str) -> Places:
    """Check coordinates and return the distinct places among them, in the space of the metric.

    For ``"haversine"`` these are unit vectors: a pole is one place whatever the longitude, and the
    date line is one line.
    """
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            "points do not form an array of numbers: give the same coordinates for every person"
        ) from None
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ParameterError(
            f"points has shape {array.shape}: give one row a person, one column a coordinate"
        )
    require_metric(metric, array.shape[1])
    require_users(array.shape[0])
    if fault := first_fault(array, metric):
        row, column, reason = fault
        raise ParameterError(f"points[{row}, {column}]: {reason}")
    # Adding 0.0 makes -0.0 the same as 0.0.
    array = (_unit_vectors(array) if metric == "haversine" else array) + 0.0
    order = np.lexsort(array.T[::-1])  # by the first column, then the second and so on
    by_value = array[order]
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (by_value[1:] != by_value[:-1]).any(axis=1)
    place_of = np.empty(order.size, dtype=np.int64)
    place_of[order] = np.cumsum(is_new) - 1
    return Places(by_value[is_new], place_of)


def points_of_people(coordinates: ArrayLike, metric: str, num_users: int) -> Floats:
    """Return checked coordinates of each person, in the space of the metric."""
    points, place_of = distinct_places(coordinates, metric)
    if place_of.size != num_users:
        raise ParameterError(
            f"coordinates has {place_of.size:,} rows for {num_users:,} people: give one for each"
        )
    return points[place_of]


def chord_of(metres: float) -> float:
    """Return the chord between points so far apart, in radii of the Earth; at most 2."""
    return 2.0 * math.sin(min(metres / (2.0 * EARTH_RADIUS), math.pi / 2.0))


def _unit_vectors(degrees: Floats) -> Floats:
    """Return points (n, 3) of the unit sphere from latitudes and longitudes (n, 2)."""
    latitude = np.radians(degrees[:, 0])
    # The same meridian by two names, which sines would tell apart by their rounding.
    longitude = np.radians(np.where(degrees[:, 1] == -180.0, 180.0, degrees[:, 1]))
    across = np.where(np.abs(degrees[:, 0]) == 90.0, 0.0, np.cos(latitude))
    vectors = (across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude))
    return np.stack(vectors, axis=1)


_REMEDY = "a smaller radius, groups of a stated size, group_size=..."
# Angles up to pi, rounded, turned into radians and into sines, put unit vectors at most 13 units
# of 2^-53 away from where they belong. `_widened` allows for sqrt(3) times this, each. That is
# 40 nm on the ground, and a metre for radii of half the circumference, where chords hardly grow.
_ROUNDING_OF_UNIT_VECTORS = 8.0


def groups_by_distance(
    points: ArrayLike, radius: SupportsFloat, *, metric: str = "euclidean"
) -> Rows:
    """Return the group of each person, everybody within a distance.

    ``"haversine"`` takes the Earth for a sphere of 6,371,008.8 m. Cost: O(n log n + memberships)
    for one column; for more a k-d tree, whose cost grows fast with the number of columns. Memory:
    the result, and some 100 MB. Memberships are counted before any is stored.
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
    num_users = places.place_of.size
    if reach >= float(np.sqrt((np.ptp(places.points, axis=0) ** 2).sum())):
        return compressed.one_group(num_users, description)
    from shuffledp.groups.shuffler_kernels import sort_rows

    place_starts = compressed.starts_of(np.bincount(places.place_of))
    people = np.argsort(places.place_of, kind="stable").astype(np.int32)
    gather = _gather_windows if places.points.shape[1] == 1 else _gather_by_tree
    starts, members = gather(places.points, reach, place_starts, people)
    sort_rows(starts, members)
    return compressed.distinct_rows(Rows(num_users, starts, members, places.place_of, description))


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


def _gather_windows(
    points: Floats, reach: float, place_starts: Integers, people: NDArray[np.int32]
) -> tuple[Integers, NDArray[np.int32]]:
    """Return starts and members of the groups around the ascending places of one column."""
    values = points[:, 0]
    first = place_starts[np.searchsorted(values, values - reach, side="left")]
    end = place_starts[np.searchsorted(values, values + reach, side="right")]
    starts = compressed.starts_of(end - first)
    compressed.require_memberships(int(starts[-1]), remedy=_REMEDY)
    blocks = [
        people[compressed.ranges(first[rows], (end - first)[rows])]
        for rows in compressed.blocks_of(starts)
    ]
    return starts, np.concatenate(blocks)


def _gather_by_tree(
    points: Floats, reach: float, place_starts: Integers, people: NDArray[np.int32]
) -> tuple[Integers, NDArray[np.int32]]:
    """Return starts and members of the groups around places of several columns."""
    from scipy.spatial import cKDTree

    tree = cKDTree(np.repeat(points, np.diff(place_starts), axis=0))
    expected = tree.query_ball_point(points, reach, return_length=True)
    compressed.require_memberships(int(expected.sum()), remedy=_REMEDY)
    sizes, blocks = [], []
    for rows in compressed.blocks_of(compressed.starts_of(expected)):
        block = cKDTree(points[rows])
        pairs = block.sparse_distance_matrix(tree, reach, output_type="ndarray")
        pairs = pairs[np.argsort(pairs["i"], kind="stable")]
        sizes.append(np.bincount(pairs["i"], minlength=rows.stop - rows.start))
        blocks.append(people[pairs["j"]])
    return compressed.starts_of(np.concatenate(sizes)), np.concatenate(blocks)


def groups_of_nearest(
    points: ArrayLike, group_size: SupportsIndex, *, metric: str = "euclidean"
) -> Rows:
    """Return the group of each person, the person and the nearest others.

    Others are taken by distance, as computed in double precision; who counts among those at one
    distance is arbitrary. People of one place share a group, unless there are more of them than
    ``group_size``: who is not in it takes the place of another. Cost: O(n (log n + group_size)) in
    two or three dimensions, by a k-d tree. Memory: twice the result.
    """
    from scipy.spatial import cKDTree

    places = distinct_places(points, metric)
    place_of, num_users = places.place_of, places.place_of.size
    size = require_at_least("group_size", group_size, 1)
    if size > num_users:
        raise ParameterError(
            f"group_size = {size} is not in [1, {num_users}]: there are only "
            f"{count_of(num_users, 'person', 'people')}"
        )
    others = count_of(size - 1, "nearest other", "nearest others")
    description = f"each person and the {others}"
    if size == num_users:
        return compressed.one_group(num_users, description)
    # One group a place, and one for each of its people who is not among the nearest.
    total = size * int((1 + np.maximum(np.bincount(place_of) - size, 0)).sum())
    compressed.require_memberships(total, remedy="a smaller group_size=...")
    tree, num_places = cKDTree(places.points[place_of]), len(places.points)
    nearest = np.empty((num_places, size), dtype=np.int32)
    step = max(1, compressed.BLOCK_MEMBERSHIPS // size)
    for first in range(0, num_places, step):
        block = slice(first, first + step)
        nearest[block] = tree.query(places.points[block], k=np.arange(1, size + 1))[1]
    is_inside = np.zeros(num_users, dtype=bool)
    is_inside[nearest[place_of[nearest] == np.arange(num_places)[:, None]]] = True
    outsiders = np.flatnonzero(~is_inside)
    own = nearest[place_of[outsiders]]
    own[:, -1] = outsiders
    members = np.concatenate([nearest, own])
    members.sort(axis=1)
    starts = np.arange(len(members) + 1, dtype=np.int64) * size
    group_of = place_of.copy()
    group_of[outsiders] = num_places + np.arange(outsiders.size)
    rows = Rows(num_users, starts, members.reshape(-1), group_of, description)
    return compressed.distinct_rows(rows)
