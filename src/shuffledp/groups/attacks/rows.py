"""What all attacks check of the arrays they are given: values, neighbourhoods, lists of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbourhoods:
    """Checked neighbourhoods in compressed rows, as compiled loops take them.

    Parameters
    ----------
    starts, group_of : ndarray of int64
        Where neighbourhoods start, and each person's own.
    members : ndarray of int32
        Neighbourhood a is ``members[starts[a]:starts[a + 1]]``; person i's is ``group_of[i]``.
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    group_of: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each neighbourhood."""
        return np.diff(self.starts)


def require_neighbourhoods(
    starts: NDArray[np.integer[Any]],
    members: NDArray[np.integer[Any]],
    group_of: NDArray[np.integer[Any]],
) -> Neighbourhoods:
    """Return neighbourhoods that loops can trust.

    Parameters
    ----------
    starts : ndarray of integers, shape (g + 1,)
        From 0 to the number of members, never falling.
    members : ndarray of integers, shape (m,)
        Rows of people, in [0, n).
    group_of : ndarray of integers, shape (n,)
        Neighbourhood of each person, in [0, g).

    Returns
    -------
    Neighbourhoods
        Writable copies, so that compiled loops see one type only.

    Raises
    ------
    ParameterError
        If they do not fit together.
    """
    bounds, own = (np.array(array, dtype=np.int64, ndmin=1) for array in (starts, group_of))
    rows = np.array(members, dtype=np.int32, ndmin=1)
    if bounds.ndim != 1 or rows.ndim != 1 or own.ndim != 1:
        raise ParameterError("starts, members and group_of must each have one axis")
    if bounds.size < 2 or bounds[0] != 0 or bounds[-1] != rows.size or (np.diff(bounds) < 0).any():
        raise ParameterError(
            f"starts is no table of {rows.size} members: it must rise from 0 to {rows.size}"
        )
    for name, array, end in (("members", rows, own.size), ("group_of", own, bounds.size - 1)):
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < end:
            raise ParameterError(f"{name} holds numbers outside [0, {end})")
    return Neighbourhoods(starts=bounds, members=rows, group_of=own)


def require_codes_below(
    name: str, codes: NDArray[np.integer[Any]], num_values: int
) -> NDArray[np.int32]:
    """Return a writable copy of codes, or raise unless all lie in [0, num_values).

    Raises
    ------
    ParameterError
        If they are no one-dimensional array of such integers.
    """
    array = np.asarray(codes)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} is an array of {array.dtype} with {array.ndim} axes: give one whole number a "
            "person"
        )
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < num_values:
        raise ParameterError(f"{name} holds values outside [0, {num_values})")
    return np.array(array, dtype=np.int32)


def require_points(name: str, points: NDArray[Any], num_people: int | None) -> NDArray[np.float64]:
    """Return public values as a table of finite numbers, one row a person.

    Raises
    ------
    ParameterError
        If there are not as many rows as people, or a number is not finite.
    """
    table = np.array(points, dtype=np.float64, ndmin=1)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[1] == 0 or num_people not in (None, table.shape[0]):
        wanted = "one row a person" if num_people is None else f"{num_people} rows"
        raise ParameterError(f"{name} has shape {table.shape}: give {wanted}, one column or more")
    if not np.isfinite(table).all():
        raise ParameterError(f"{name} holds numbers that are not finite: fill or drop them first")
    return table
