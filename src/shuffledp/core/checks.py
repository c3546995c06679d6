"""Argument checks shared by every module; each is written so that NaN fails."""

import math
import operator
from typing import SupportsIndex

from shuffledp.core.errors import ParameterError


def require_non_negative(name: str, value: float) -> float:
    """Return ``value`` if it is a finite number >= 0, else raise `ParameterError`."""
    if not 0.0 <= value < math.inf:
        raise ParameterError(f"{name} = {value} is not in [0, inf): give a finite number >= 0")
    return float(value)


def require_positive(name: str, value: float) -> float:
    """Return ``value`` if it is a finite number > 0, else raise `ParameterError`."""
    if not 0.0 < value < math.inf:
        raise ParameterError(f"{name} = {value} is not in (0, inf): give a finite number > 0")
    return float(value)


def require_delta(value: float, *, name: str = "delta") -> float:
    """Return ``value`` if it lies in [0, 1), else raise `ParameterError`."""
    if not 0.0 <= value < 1.0:
        raise ParameterError(
            f"{name} = {value} is not in [0, 1): it is a failure probability, usually far "
            "below 1/num_users; try 1e-8"
        )
    return float(value)


def require_open_unit(name: str, value: float) -> float:
    """Return ``value`` if it lies in (0, 1), else raise `ParameterError`."""
    if not 0.0 < value < 1.0:
        raise ParameterError(f"{name} = {value} is not in (0, 1)")
    return float(value)


def require_at_least(name: str, value: SupportsIndex, minimum: int) -> int:
    """Return ``value`` as an int if it is a whole number >= ``minimum``, else raise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(
            f"{name} = {value!r} is not a whole number: give an integer >= {minimum}"
        ) from None
    if number < minimum:
        raise ParameterError(f"{name} = {number} is below {minimum}: give an integer >= {minimum}")
    return number
