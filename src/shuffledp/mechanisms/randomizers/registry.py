"""All local randomizers by name."""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.mechanisms.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.mechanisms.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.mechanisms.randomizers.optimized_unary import OptimizedUnaryEncoding
from shuffledp.mechanisms.randomizers.symmetric_unary import SymmetricUnaryEncoding

#: Name of each randomizer, and its class.
RANDOMIZERS: Mapping[str, Callable[..., CategoryRandomizer]] = MappingProxyType(
    {
        KRandomizedResponse.name: KRandomizedResponse,
        SymmetricUnaryEncoding.name: SymmetricUnaryEncoding,
        OptimizedUnaryEncoding.name: OptimizedUnaryEncoding,
    }
)


def make_randomizer(name: str, *, k: SupportsIndex, epsilon0: float) -> CategoryRandomizer:
    """Return the randomizer of that name.

    Parameters
    ----------
    name : str
        One of ``RANDOMIZERS``.
    k : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss in nats, in [0, inf).

    Returns
    -------
    CategoryRandomizer
        Its ``epsilon0`` is at most the one asked for.

    Raises
    ------
    ParameterError
        If no randomizer has that name, or k or epsilon0 is out of range.

    Examples
    --------
    >>> make_randomizer("k-rr", k=3, epsilon0=1.0)
    KRandomizedResponse(k=3, epsilon0=1.0)
    """
    if name not in RANDOMIZERS:
        nearest = difflib.get_close_matches(name.lower(), RANDOMIZERS, n=1, cutoff=0.0)[0]
        raise ParameterError(
            f"randomizer {name!r} is not one of {', '.join(RANDOMIZERS)}: did you mean {nearest!r}?"
        )
    return RANDOMIZERS[name](k=require_at_least("k", k, 2), epsilon0=epsilon0)
