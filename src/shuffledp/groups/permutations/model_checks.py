"""Argument checks, and what theta and alpha have to do with each other, for all models."""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.checks import require_at_least, require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import float_above, float_below

#: Places are drawn from halves of 64-bit words.
MAX_ITEMS = 2**32 - 1

#: Relative error that exp and log of the C library may have: 32 units in the last place, where
#: the usual libraries stay below one. What lies within it is settled with decimals.
LIBRARY_MARGIN = 2.0**-48


class _Law(Protocol):
    """What of a model its probabilities depend on."""

    @property
    def num_items(self) -> int:
        """Number of items."""
        ...

    @property
    def theta(self) -> float:
        """Concentration."""
        ...

    def log_partition(self) -> float:
        """Return ln psi."""
        ...


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


def log_probability(law: _Law, pi: ArrayLike, distance: Callable[[ArrayLike], int]) -> float:
    """Return -theta d(pi) - ln psi.

    Parameters
    ----------
    law : MallowsModel
        The model.
    pi : array_like
        The permutation.
    distance : callable
        Its distance from the identity; refuses what is no permutation.

    Returns
    -------
    float
        At most 0, to nearest.

    Raises
    ------
    ParameterError
        If ``pi`` is not a permutation of ``law.num_items`` items.
    """
    steps = distance(pi)
    size = np.size(pi)
    if size != law.num_items:
        raise ParameterError(
            f"pi has {size} items and the model {law.num_items}: give a permutation of that size"
        )
    exponent = law.theta * steps if steps else 0.0  # inf times 0 is 0 here
    return -exponent - law.log_partition()


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
