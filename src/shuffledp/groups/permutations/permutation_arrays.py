"""Permutations as arrays: checked, and inverted."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only


def require_permutation(
    name: str, values: ArrayLike, num_users: int | None = None
) -> NDArray[np.int64]:
    """Return a permutation of 0, ..., n - 1 as a contiguous read-only array, else raise.

    Parameters
    ----------
    name : str
        What to call it in messages.
    values : array-like of int, shape (n,)
        n >= 1; each number from 0 to n - 1 once.
    num_users : int, optional
        The n that is wanted.

    Raises
    ------
    ParameterError
        If it is something else; a wrong reference order would make the sensitivity wrong, too.

    Examples
    --------
    >>> require_permutation("order", [2, 0, 1]).tolist()
    [2, 0, 1]
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: "
            "give a flat, non-empty array of integers"
        )
    if num_users is not None and array.size != num_users:
        raise ParameterError(
            f"{name} has {array.size:,} entries for {num_users:,} people: give one for each"
        )
    inside = (array >= 0) & (array < array.size)
    if not inside.all():
        raise ParameterError(
            f"{name} has the entry {array[~inside][0]}, which is not in [0, {array.size}): "
            "people and places are numbered from 0"
        )
    permutation = np.ascontiguousarray(array, dtype=np.int64)
    seen = np.zeros(array.size, dtype=np.bool_)
    seen[permutation] = True
    if not seen.all():
        raise ParameterError(
            f"{name} misses {int(np.argmin(seen))} and repeats another number: "
            f"give each of 0, ..., {array.size - 1} once"
        )
    return read_only(permutation)


def inverse(permutation: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the inverse of a permutation of 0, ..., n - 1, read-only.

    Examples
    --------
    >>> inverse(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    places = np.empty_like(permutation)
    places[permutation] = np.arange(permutation.size)
    return read_only(places)
