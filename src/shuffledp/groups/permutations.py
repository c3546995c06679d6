"""Permutations of n items, alpha and theta."""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.shuffling import UniformShuffler, require_plain_rows
from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least, require_extended
from shuffledp.core.entropy import Entropy
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
    """Return a number in [0, inf], else raise `ParameterError`."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    except OverflowError:
        # A whole number beyond all floats: the largest of them is below it, and so is safe.
        number = sys.float_info.max if value > 0 else math.nan  # type: ignore[operator]
    if not number >= 0.0:
        raise ParameterError(
            f"alpha = {value!r} is not in [0, inf]: 0 shuffles everybody uniformly, and a larger "
            "number protects less; try 1"
        )
    return number


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


def rearranged(reports: NDArray[Any], num_users: int, draw: Callable[[], Integers]) -> NDArray[Any]:
    """Return the rows of ``num_users`` reports by a permutation, else raise `ParameterError`."""
    require_plain_rows(reports)
    if reports.shape[0] != num_users:
        raise ParameterError(
            f"reports has {reports.shape[0]:,} rows for {num_users:,} people: give one report for "
            "each, in the same order"
        )
    return np.ascontiguousarray(reports[draw()])


def uniform_permutation(num_items: int, entropy: Entropy) -> Integers:
    """Draw a permutation of which all are equally likely."""
    return UniformShuffler().shuffle(np.arange(num_items, dtype=np.int64), entropy)
