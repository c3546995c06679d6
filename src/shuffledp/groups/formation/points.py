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
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.groups.formation.rows import require_users

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

    points: NDArray[np.float64]
    place_of: NDArray[np.int64]


def require_metric(metric: str, num_columns: int) -> str:
    """Return the name of a metric if it exists and takes so many columns, else raise.

    Raises
    ------
    ParameterError
        In one line that lists the metrics, or says how many columns to give.
    """
    if metric not in METRICS:
        raise ParameterError(f"metric = {metric!r} is not one of {', '.join(METRICS)}")
    wanted = METRICS[metric]
    if num_columns < 1 or (wanted is not None and num_columns != wanted):
        columns = {None: "one column or more", 1: "one column", 2: "latitude and longitude"}
        raise ParameterError(
            f"metric = {metric!r} takes {columns[wanted]}, not {num_columns} columns"
        )
    return metric


def first_fault(points: NDArray[np.float64], metric: str) -> tuple[int, int, str] | None:
    """Return row, column and what is wrong there with the first unusable coordinate, or None.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d)
        With as many columns as the metric takes.
    metric : str
        One of `METRICS`.
    """
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
    """Check coordinates and return the distinct places among them.

    Parameters
    ----------
    points : array-like of float, shape (n, d) or (n,)
        With n >= 1. See `METRICS` for d.
    metric : str
        One of `METRICS`.

    Returns
    -------
    Places
        In the space that the metric is measured in. For ``"haversine"`` these are unit vectors: a
        pole is one place whatever the longitude, and the date line is one line.

    Raises
    ------
    ParameterError
        If the metric does not exist, the shape does not fit it, or a coordinate is not finite or
        out of range.
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
    return _distinct(_unit_vectors(array) if metric == "haversine" else array + 0.0)


def chord_of(metres: float) -> float:
    """Return the straight line, in radii of the Earth, between points so far apart on its surface.

    Parameters
    ----------
    metres : float
        At least 0; from half the circumference on the result is 2.

    Examples
    --------
    >>> chord_of(math.pi * EARTH_RADIUS)
    2.0
    """
    return 2.0 * math.sin(min(metres / (2.0 * EARTH_RADIUS), math.pi / 2.0))


def _unit_vectors(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points (n, 3) of the unit sphere from latitudes and longitudes (n, 2)."""
    latitude = np.radians(degrees[:, 0])
    # The same meridian by two names, which sines would tell apart by their rounding.
    longitude = np.radians(np.where(degrees[:, 1] == -180.0, 180.0, degrees[:, 1]))
    across = np.where(np.abs(degrees[:, 0]) == 90.0, 0.0, np.cos(latitude))
    vectors = (across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude))
    return np.stack(vectors, axis=1) + 0.0


def _distinct(points: NDArray[np.float64]) -> Places:
    """Return the distinct rows, by the first column, then the second and so on."""
    # Adding 0.0 has made -0.0 the same as 0.0.
    order = np.lexsort(points.T[::-1])
    by_value = points[order]
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (by_value[1:] != by_value[:-1]).any(axis=1)
    place_of = np.empty(order.size, dtype=np.int64)
    place_of[order] = np.cumsum(is_new) - 1
    return Places(by_value[is_new], place_of)
