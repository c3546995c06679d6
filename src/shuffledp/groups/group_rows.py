"""Compressed rows of distinct groups: as given, by hops, by distance, or of the nearest.

*Coordinates.* Distances along the surface of the Earth, taken as a sphere, increase with the
straight line through it, the chord. So all three metrics become straight lines between points,
which trees can search:

===========  ==========================================================================
metric       measured between
===========  ==========================================================================
euclidean    the points as they are
absolute     numbers, as points of one coordinate
haversine    unit vectors from the middle of the Earth; see `chord_of`
===========  ==========================================================================

*Groups by distance.* A distance of exactly the radius is inside. Coordinates such as 0.1 are
rounded when they are stored, and so are distances, so the radius is widened by the largest such
error; see `_widened`. A group may so include a person who is farther than the radius by a rounding
error, and never lacks a person within it: errors are on the side that hides more.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least, require_edges, require_non_negative
from shuffledp.core.errors import ParameterError

#: Largest number of people: their numbers must fit 32 bits, with a sign.
MOST_USERS = 2**31 - 1
#: Largest number of memberships, counted before any is stored: 1 GB of them.
MOST_MEMBERSHIPS = 250_000_000
#: Approximate number of memberships processed together.
BLOCK_MEMBERSHIPS = 1 << 20
# Maximum number of cells of the reachability matrix processed together.
_CELLS_AT_A_TIME = 1 << 24


class Rows(NamedTuple):
    """Result of a builder of groups; see `Groups` for the fields."""

    num_users: int
    starts: Integers
    members: NDArray[np.int32]
    group_of: Integers | None
    description: str = "given groups"


def require_users(num_users: SupportsIndex) -> int:
    """Return the number of people if it is in [1, 2^31 - 1], else raise `ParameterError`."""
    return require_at_least("num_users", num_users, 1, MOST_USERS, "shuffle in several batches")


def require_memberships(count: int, *, remedy: str, at_least: bool = False) -> None:
    """Raise `ParameterError` if groups would have too many memberships; try ``remedy``.

    ``at_least`` means that ``count`` is where counting was stopped.
    """
    if count > MOST_MEMBERSHIPS:
        raise ParameterError(
            f"these groups would have {'over ' * at_least}{count:,} memberships, above the limit "
            f"of {MOST_MEMBERSHIPS:,}: try {remedy}, or a uniform shuffle of everybody"
        )


def one_group(num_users: int, description: str) -> Rows:
    """Return one group of everybody, which everybody chose."""
    everybody = np.arange(num_users, dtype=np.int32)
    own = np.zeros(num_users, dtype=np.int64)
    return Rows(num_users, np.array([0, num_users]), everybody, own, description)


def distinct_rows(rows: Rows) -> Rows:
    """Keep the first of each set of equal rows, in order; members ascend, arrays are writeable.

    Rows count as equal if their 256-bit BLAKE2b hashes are. Cost: O(memberships).
    """
    found: dict[bytes, int] = {}
    data = rows.members.data
    number = np.array(
        [
            found.setdefault(blake2b(data[start:end], digest_size=32).digest(), len(found))
            for start, end in pairwise(rows.starts.tolist())
        ]
    )
    if len(found) == number.size:
        return rows
    kept = np.zeros(number.size, dtype=bool)
    kept[np.unique(number, return_index=True)[1]] = True
    sizes = np.diff(rows.starts)
    return rows._replace(
        starts=starts_of(sizes[kept]),
        members=rows.members[np.repeat(kept, sizes)],
        group_of=None if rows.group_of is None else number[rows.group_of],
    )


def blocks_of(starts: Integers) -> Iterator[slice]:
    """Yield slices of rows with about `BLOCK_MEMBERSHIPS` memberships each, at least one row."""
    first, num_rows = 0, starts.size - 1
    while first < num_rows:
        end = int(np.searchsorted(starts, starts[first] + BLOCK_MEMBERSHIPS, side="right")) - 1
        end = max(end, first + 1)
        yield slice(first, end)
        first = end


def ranges(first: Integers, sizes: Integers) -> Integers:
    """Return concatenated ranges first[i], first[i] + 1, ..., each of its own length."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if ends.size else 0
    found: Integers = np.arange(total) + np.repeat(first - (ends - sizes), sizes)
    return found


def starts_of(sizes: Integers) -> Integers:
    """Return the start of each row, given the sizes, and the end of the last row."""
    starts = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def count_of(number: int, singular: str, plural: str) -> str:
    """Return ``"1 person"`` or ``"2 people"``."""
    return f"{number:,} {singular if number == 1 else plural}"


def groups_of_sets(
    sets: Iterable[Iterable[SupportsIndex]],
    *,
    num_users: SupportsIndex,
    ids: Sequence[str] | None = None,
) -> Rows:
    """Return the given groups, each once, in order of first appearance; ids are for messages."""
    number, total = require_users(num_users), 0
    blocks: list[NDArray[np.int32]] = []
    is_covered = np.zeros(number, dtype=bool)
    for index, people in enumerate(sets):
        blocks.append(_checked_set(index, people, number))
        total += blocks[-1].size
        require_memberships(total, remedy="fewer or smaller groups", at_least=True)
        is_covered[blocks[-1]] = True
    missing = np.flatnonzero(~is_covered)
    if missing.size:
        verb = "is" if missing.size == 1 else "are"
        first = missing[0] if ids is None else ids[missing[0]]
        raise ParameterError(
            f"{count_of(missing.size, 'person', 'people')} of {number:,} {verb} in no group, the "
            f"first is {first}: put them in a group, if need be of their own"
        )
    starts = starts_of(np.array([block.size for block in blocks], dtype=np.int64))
    return distinct_rows(Rows(number, starts, np.concatenate(blocks), None))


def _checked_set(index: int, people: Iterable[SupportsIndex], num_users: int) -> NDArray[np.int32]:
    """Return the members of a group, ascending, else raise."""
    try:
        members = np.asarray(people if isinstance(people, np.ndarray) else list(people))
    except (TypeError, ValueError):
        raise ParameterError(
            f"group {index} is {people!r}: give the numbers of its members"
        ) from None
    if members.size == 0:
        raise ParameterError(f"group {index} is empty: leave it out")
    if members.ndim != 1 or members.dtype.kind not in "iu":
        raise ParameterError(
            f"group {index} has members of dtype {members.dtype}: give numbers of people, from 0"
        )
    members = np.sort(members)
    if members[0] < 0 or members[-1] >= num_users:
        member = members[0] if members[0] < 0 else members[-1]
        raise ParameterError(
            f"group {index} has member {member}, which is not in [0, {num_users}): number people "
            "from 0, and give num_users for all of them"
        )
    twice = members[1:][members[1:] == members[:-1]]
    if twice.size:
        raise ParameterError(
            f"group {index} has member {twice[0]} {np.count_nonzero(members == twice[0])} times: "
            "list each member once"
        )
    return members.astype(np.int32)


def groups_by_hops(edges: ArrayLike, *, num_users: SupportsIndex, hops: SupportsIndex = 1) -> Rows:
    """Return the group of each person, everybody within some hops.

    Cost: the edges that touch each group, once a hop.
    """
    from scipy.sparse import csr_array, eye_array

    number = require_users(num_users)
    # More than num_users hops reach nobody else.
    steps = min(require_at_least("hops", hops, 0), number)
    pairs, people = require_edges(edges, number)[0].astype(np.int64), np.arange(number)
    # Pairs of joined people, in both directions, and everybody with themselves.
    ends = np.concatenate([pairs, pairs[:, ::-1], np.stack([people, people], axis=1)])
    near = csr_array((np.ones(len(ends), dtype=bool), ends.T), shape=(number, number))
    everybody = eye_array(number, dtype=bool, format="csr")
    total, sizes, blocks = 0, [], []
    rows_at_a_time = max(1, _CELLS_AT_A_TIME // number)
    for first in range(0, number, rows_at_a_time):
        reached = everybody[first : first + rows_at_a_time]
        for _ in range(steps):
            further = reached @ near
            if further.nnz == reached.nnz:
                break
            reached = further
        reached.sort_indices()
        total += reached.nnz
        require_memberships(total, remedy="a smaller hops=...", at_least=True)
        sizes.append(np.diff(reached.indptr))
        blocks.append(reached.indices.astype(np.int32))
    starts = starts_of(np.concatenate(sizes).astype(np.int64))
    description = f"people within {count_of(steps, 'hop', 'hops')} of each other"
    return distinct_rows(Rows(number, starts, np.concatenate(blocks), people, description))


#: Names of the metrics, and the number of columns of each (None: any number).
METRICS: dict[str, int | None] = {"euclidean": None, "haversine": 2, "absolute": 1}
#: Mean radius of the Earth in metres (Moritz, "Geodetic Reference System 1980", R1). Real
#: distances differ from those on the sphere by up to 0.56 %.
EARTH_RADIUS = 6_371_008.8
#: Squares of coordinates up to this size stay within double precision.
LARGEST_COORDINATE = 1e150
_LIMITS = {"haversine": (("latitude", 90.0), ("longitude", 180.0))}


class Places(NamedTuple):
    """Distinct places of people: ``points`` (g, d), ascending, and each person's ``place_of``."""

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
    """Return row, column and fault of the first unusable coordinate, or None."""
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
    """Check coordinates and return their distinct places, in the space of the metric.

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
    """Return the chord between points at this distance, in radii of the Earth; at most 2."""
    return 2.0 * math.sin(min(metres / (2.0 * EARTH_RADIUS), math.pi / 2.0))


def _unit_vectors(degrees: Floats) -> Floats:
    """Return points (n, 3) of the unit sphere from latitudes and longitudes (n, 2)."""
    latitude = np.radians(degrees[:, 0])
    # The same meridian by two names, which sines would separate by their rounding.
    longitude = np.radians(np.where(degrees[:, 1] == -180.0, 180.0, degrees[:, 1]))
    across = np.where(np.abs(degrees[:, 0]) == 90.0, 0.0, np.cos(latitude))
    vectors = (across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude))
    return np.stack(vectors, axis=1)


_REMEDY = "a smaller radius, groups of a stated size, group_size=..."
# Angles up to pi, rounded, converted to radians and to sines, put unit vectors at most 13 units
# of 2^-53 away from the exact ones. `_widened` allows for sqrt(3) times this, each: 40 nm on the
# ground, and a metre for radii of half the circumference, where chords hardly grow.
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
        return one_group(num_users, description)
    from shuffledp.groups.group_kernels import sort_rows

    place_starts = starts_of(np.bincount(places.place_of))
    people = np.argsort(places.place_of, kind="stable").astype(np.int32)
    gather = _gather_windows if places.points.shape[1] == 1 else _gather_by_tree
    starts, members = gather(places.points, reach, place_starts, people)
    sort_rows(starts, members)
    return distinct_rows(Rows(num_users, starts, members, places.place_of, description))


def _widened(reach: float, largest: float, num_columns: int) -> float:
    """Return a reach in which rounding errors exclude nobody at the distance or nearer.

    With u = 2^-53: two coordinates of size at most X, rounded from the numbers meant, change a
    distance by at most 2 u sqrt(d) X; subtracting, squaring and adding d of them changes it by a
    factor of at most 1 + (d + 4) u / 2, and forming a window in one column by 2 u (X + reach).
    All that is below 4 u (sqrt(d) X + d reach).
    """
    if reach == 0.0:
        return 0.0  # equal values are rounded equally
    slack = 2.0**-51 * (num_columns**0.5 * largest + num_columns * reach)
    return float(reach + slack)


def _gather_windows(
    points: Floats, reach: float, place_starts: Integers, people: NDArray[np.int32]
) -> tuple[Integers, NDArray[np.int32]]:
    """Return starts and members of the groups around the ascending places of one column."""
    values = points[:, 0]
    first = place_starts[np.searchsorted(values, values - reach, side="left")]
    end = place_starts[np.searchsorted(values, values + reach, side="right")]
    starts = starts_of(end - first)
    require_memberships(int(starts[-1]), remedy=_REMEDY)
    blocks = [people[ranges(first[rows], (end - first)[rows])] for rows in blocks_of(starts)]
    return starts, np.concatenate(blocks)


def _gather_by_tree(
    points: Floats, reach: float, place_starts: Integers, people: NDArray[np.int32]
) -> tuple[Integers, NDArray[np.int32]]:
    """Return starts and members of the groups around places of several columns."""
    from scipy.spatial import cKDTree

    tree = cKDTree(np.repeat(points, np.diff(place_starts), axis=0))
    expected = tree.query_ball_point(points, reach, return_length=True)
    require_memberships(int(expected.sum()), remedy=_REMEDY)
    sizes, blocks = [], []
    for rows in blocks_of(starts_of(expected)):
        block = cKDTree(points[rows])
        pairs = block.sparse_distance_matrix(tree, reach, output_type="ndarray")
        pairs = pairs[np.argsort(pairs["i"], kind="stable")]
        sizes.append(np.bincount(pairs["i"], minlength=rows.stop - rows.start))
        blocks.append(people[pairs["j"]])
    return starts_of(np.concatenate(sizes)), np.concatenate(blocks)


def groups_of_nearest(
    points: ArrayLike, group_size: SupportsIndex, *, metric: str = "euclidean"
) -> Rows:
    """Return the group of each person, the person and the nearest others.

    Others are taken by distance, as computed in double precision; the choice among equally distant
    people is arbitrary. People of one place share a group, unless there are more of them than
    ``group_size``: a person outside replaces another. Cost: O(n (log n + group_size)) in
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
        return one_group(num_users, description)
    # One group for each place, and one for each of its people who is not among the nearest.
    total = size * int((1 + np.maximum(np.bincount(place_of) - size, 0)).sum())
    require_memberships(total, remedy="a smaller group_size=...")
    tree, num_places = cKDTree(places.points[place_of]), len(places.points)
    nearest = np.empty((num_places, size), dtype=np.int32)
    step = max(1, BLOCK_MEMBERSHIPS // size)
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
    return distinct_rows(rows)
