"""Argument checks, and the probability of a permutation, shared by the Mallows models."""

from collections.abc import Callable
from typing import Protocol, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.checks import require_at_least, require_extended
from shuffledp.core.errors import ParameterError

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
