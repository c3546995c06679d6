"""Numbers as they are handed in: doubles, or fractions where every entry is rational."""

import math
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError

# A Fraction takes some 100 bytes: an array of this size about half a gigabyte.
LARGEST_EXACT_CELLS = 4_000_000

# How far a sum of doubles may be from one. A law that is off by t changes what is computed from it,
# where gains are non-negative, by a factor within 1 - t and 1 + t.
SUM_TOLERANCE = 1e-9


def is_exact_array(values: object) -> bool:
    """Whether ``values`` is an array of fractions, as `as_numbers` makes them."""
    return isinstance(values, np.ndarray) and values.dtype == np.object_


def _fraction(value: Rational) -> Fraction:
    """Return ``value`` with Python's own integers: NumPy's would overflow without a word."""
    if type(value) is Fraction:
        return value
    return Fraction(int(value.numerator), int(value.denominator))


def _from_objects(name: str, array: NDArray[np.object_]) -> NDArray[Any]:
    """Return fractions if all entries are rational, else doubles."""
    entries = array.ravel().tolist()
    if all(isinstance(entry, Rational) for entry in entries):
        exact = np.empty(len(entries), dtype=np.object_)
        exact[:] = [_fraction(entry) for entry in entries]
        return exact.reshape(array.shape)
    if any(isinstance(entry, (str, bytes, complex)) for entry in entries):
        raise ParameterError(f"{name} has an entry that is not a number: give real numbers")
    try:
        return np.array([float(entry) for entry in entries]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} has an entry that is not a number: give real numbers in rows of one length"
        ) from None


def as_numbers(name: str, values: object, num_dimensions: int) -> NDArray[Any]:
    """Return ``values`` as an array of doubles, or of fractions where all entries are rational.

    Parameters
    ----------
    name : str
        What they are called in error messages.
    values : array_like
        Numbers, as nested sequences or an array. Integers and fractions stay exact; one float
        among them makes all of them floats.
    num_dimensions : int
        How many axes they must have.

    Returns
    -------
    numpy.ndarray
        float64, not copied if it was that already; or object, of `fractions.Fraction`.

    Raises
    ------
    ParameterError
        If entries are no real numbers, rows differ in length, there are none, the number of axes
        is wrong, or more than 4e6 of them are exact.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(f"{name} has rows of different lengths: give a full table") from None
    if array.ndim != num_dimensions:
        raise ParameterError(
            f"{name} has {array.ndim} dimensions, not {num_dimensions}: give "
            + ("a flat list of numbers" if num_dimensions == 1 else "a list of rows")
        )
    if array.size == 0:
        raise ParameterError(f"{name} is empty, of shape {array.shape}: give at least one number")
    if array.dtype.kind == "f":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind not in "biuO":
        raise ParameterError(
            f"{name} holds {array.dtype}, which are no real numbers: give floats or fractions"
        )
    if array.size > LARGEST_EXACT_CELLS:
        raise ParameterError(
            f"{name} would hold {array.size} exact fractions, above {LARGEST_EXACT_CELLS}: "
            "give float64"
        )
    return _from_objects(name, array.astype(np.object_))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return ``array``, which nobody else may hold, after closing it for writing."""
    array.setflags(write=False)
    return array


def to_floats(exact: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return fractions, each rounded once to the nearest double."""
    flat = np.array([float(entry) for entry in exact.ravel().tolist()], dtype=np.float64)
    return flat.reshape(exact.shape)


def to_fractions(floats: NDArray[np.float64]) -> NDArray[np.object_]:
    """Return the exact binary value of each double."""
    exact = np.empty(floats.size, dtype=np.object_)
    exact[:] = [Fraction(entry) for entry in floats.ravel().tolist()]
    return exact.reshape(floats.shape)


def scaled_rows(exact: NDArray[np.object_]) -> tuple[NDArray[np.object_], list[int]]:
    """Return integers and one scale per row: row i of ``exact`` is row i of these over its scale.

    Integer arithmetic is several times faster than that of fractions, which reduce every step.
    """
    rows, scales = [], []
    for row in exact.tolist():
        scale = math.lcm(*(entry.denominator for entry in row))
        rows.append([entry.numerator * (scale // entry.denominator) for entry in row])
        scales.append(scale)
    integers = np.empty(exact.shape, dtype=np.object_)
    integers[...] = rows
    return integers, scales
