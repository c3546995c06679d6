"""Argument checks shared by every module; each returns a plain Python number, and NaN fails."""

import operator
from math import inf, nan
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from shuffledp.core.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def _is_boolean(value: object) -> bool:
    """Return True for booleans of Python and NumPy, which are not numbers."""
    return isinstance(value, bool) or type(value).__name__ == "bool"


def _as_float(name: str, value: SupportsFloat) -> float:
    """Return ``value`` in double precision; text, booleans and complex numbers are refused."""
    if not (isinstance(value, str | bytes | complex) or _is_boolean(value)):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
        except OverflowError:  # a whole number beyond all floats
            return inf if value > 0 else -inf  # type: ignore[operator]  # it is an int
    raise ParameterError(f"{name} = {value!r} is not a number: give a finite number")


def _between(
    name: str, value: SupportsFloat, low: float, high: float, *, said: str, closed: bool = False
) -> float:
    """Return a number between two others, the lower one included where ``closed``, or raise."""
    number = _as_float(name, value)
    if not (low < number < high or (closed and number == low)):
        raise ParameterError(f"{name} = {value} is not {said}")
    return number


def require_finite(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is a finite number, else raise `ParameterError`."""
    return _between(name, value, -inf, inf, said="finite: give a finite number")


def require_non_negative(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is a finite number >= 0, else raise `ParameterError`."""
    said = "in [0, inf): give a finite number >= 0"
    return _between(name, value, 0.0, inf, said=said, closed=True)


def require_extended(name: str, value: SupportsFloat, hint: str) -> float:
    """Return ``value`` as a float if it is in [0, inf], else raise; ``hint`` says what to give."""
    try:
        number = _as_float(name, value)
    except ParameterError:
        number = nan
    if not number >= 0.0:
        raise ParameterError(f"{name} = {value!r} is not in [0, inf]: {hint}")
    return number + 0.0  # minus zero becomes zero


def require_positive(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is a finite number > 0, else raise `ParameterError`."""
    return _between(name, value, 0.0, inf, said="in (0, inf): give a finite number > 0")


def require_delta(value: SupportsFloat, *, name: str = "delta") -> float:
    """Return ``value`` as a float if it lies in [0, 1), else raise `ParameterError`."""
    said = "in [0, 1): it is added to every probability, so take it far below 1/num_users; try 1e-8"
    return _between(name, value, 0.0, 1.0, said=said, closed=True)


def require_open_unit(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a float if it lies in (0, 1), else raise `ParameterError`."""
    return _between(name, value, 0.0, 1.0, said="in (0, 1): give a number between the two")


def require_at_least(
    name: str,
    value: SupportsIndex,
    minimum: int,
    most: int | None = None,
    remedy: str = "give at most that",
) -> int:
    """Return ``value`` as an int if it is a whole number from ``minimum`` to ``most``, or raise."""
    try:
        # A truth value is refused as a text is, though Python takes it for 0 or 1.
        number = operator.index("" if _is_boolean(value) else value)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(
            f"{name} = {value!r} is not a whole number: give an integer >= {minimum}"
        ) from None
    if number < minimum:
        raise ParameterError(f"{name} = {number} is below {minimum}: give an integer >= {minimum}")
    if most is not None and number > most:
        raise ParameterError(f"{name} = {number} is above {most:,}: {remedy}")
    return number


def set_fields(frozen: object, **fields: object) -> None:
    """Set attributes of a frozen dataclass while it is made."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def require_edges(edges: "ArrayLike", num_users: int | None) -> "tuple[NDArray[Any], int]":
    """Return the edges as an array (m, 2), and the number of users, by default up to the last.

    Raises `ParameterError` unless all are pairs of whole numbers in [0, num_users).
    """
    import numpy as np

    try:
        array = np.asarray(edges)
    except (ValueError, OverflowError):
        raise ParameterError("edges are not all pairs: give integers, two users an edge") from None
    if array.size == 0:
        if num_users is None:
            raise ParameterError("there are no edges, so num_users cannot be told: give it")
        array = np.empty((0, 2), dtype=np.int64)
    elif array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ParameterError(
            f"edges has shape {array.shape} and dtype {array.dtype}: give integers, two an edge"
        )
    lowest, highest = int(array.min(initial=0)), int(array.max(initial=0))
    number = highest + 1 if num_users is None else num_users
    if array.size and (lowest < 0 or highest >= number):
        row, column = np.argwhere((array < 0) | (array >= number))[0]
        raise ParameterError(
            f"edges[{row}, {column}] = {array[row, column]} is not in [0, num_users = {number})"
        )
    return array, number
