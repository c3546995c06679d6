"""Permutations of n items, alpha and theta."""

import math
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.uniform_shuffler import require_plain_rows
from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least, require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import float_above, float_below
from shuffledp.core.reports import read_only

#: Places are drawn from halves of 64-bit words.
MAX_ITEMS = 2**32 - 1
#: Relative error that exp and log of the C library may have: 32 units in the last place, where
#: the usual libraries stay below one. What lies within it is settled with decimals.
LIBRARY_MARGIN = 2.0**-48


def require_num_items(value: SupportsIndex) -> int:
    """Return ``value`` as an int if it is in [1, 2^32 - 1], else raise `ParameterError`."""
    number = require_at_least("num_items", value, 1)
    if number > MAX_ITEMS:
        raise ParameterError(
            f"num_items = {number} is above 2^32 - 1: shuffle parts of that size, one by one"
        )
    return number


def require_theta(value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is in [0, inf], else raise `ParameterError`."""
    return require_extended("theta", value, "0 shuffles uniformly, inf leaves the order; try 0.1")


def require_alpha(value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is in [0, inf], else raise `ParameterError`."""
    hint = "0 shuffles everybody uniformly, and a larger number protects less; try 1"
    return require_extended("alpha", value, hint)


def theta_below(alpha: float, divisor: float) -> float:
    """Return the largest float theta with theta * divisor <= alpha in exact arithmetic."""
    if divisor == 0 or math.isinf(alpha):
        return math.inf
    return float_below(Fraction(alpha) / Fraction(divisor))


def alpha_above(theta: float, factor: float) -> float:
    """Return the smallest float that is at least theta * factor in exact arithmetic."""
    if factor == 0 or math.isinf(theta):
        return 0.0 if factor == 0 else math.inf
    try:
        return float_above(Fraction(theta) * Fraction(factor))
    except OverflowError:
        return math.inf


def inverse(permutation: Integers) -> Integers:
    """Return the inverse of a permutation of 0, ..., n - 1, read-only."""
    places = np.empty_like(permutation)
    places[permutation] = np.arange(permutation.size)
    return read_only(places)


def require_reports(reports: NDArray[Any], num_users: int) -> None:
    """Raise `ParameterError` unless these are rows of plain data, one a person."""
    require_plain_rows(reports)
    if reports.shape[0] != num_users:
        raise ParameterError(
            f"reports has {reports.shape[0]:,} rows for {num_users:,} people: give one report for "
            "each, in the same order"
        )
