"""Coordinates of people, and distances between them, in spaces where trees can search.

Distances along the surface of the Earth, taken as a sphere, increase with the straight line
through it, the chord. So all three metrics become straight lines between points:

===========  ==========================================================================
metric       measured between
===========  ==========================================================================
euclidean    the points as they are
absolute     numbers, as points of one coordinate
haversine    unit vectors from the middle of the Earth; see `chord_of`
===========  ==========================================================================
"""

import math
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

#: Largest number of people: their numbers must fit 32 bits, with a sign.
MOST_USERS = 2**31 - 1
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


def require_users(num_users: SupportsIndex) -> int:
    """Return the number of people if it is in [1, 2^31 - 1], else raise `ParameterError`."""
    return require_at_least("num_users", num_users, 1, MOST_USERS, "shuffle in several batches")


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
