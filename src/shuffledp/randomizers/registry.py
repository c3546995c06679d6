"""All local randomizers by name, for each kind of value; those of sets stand in `answer_sets`."""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.randomizers.base import CategoryRandomizer, MeanRandomizer
from shuffledp.randomizers.duchi import Duchi
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.local_hashing import HadamardResponse, OptimizedLocalHashing
from shuffledp.randomizers.piecewise import Piecewise
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.sketches import CountMeanSketch
from shuffledp.randomizers.subset_selection import SubsetSelection
from shuffledp.randomizers.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding

#: Randomizers of one category out of k by name; each takes ``k`` and ``epsilon0``.
RANDOMIZERS: Mapping[str, Callable[..., CategoryRandomizer]] = MappingProxyType(
    {
        each.name: each
        for each in (
            KRandomizedResponse,
            SymmetricUnaryEncoding,
            OptimizedUnaryEncoding,
            OptimizedLocalHashing,
            HadamardResponse,
            SubsetSelection,
        )
    }
)

#: Randomizers of a number by name; each takes ``low``, ``high`` and ``epsilon0``.
NUMBER_RANDOMIZERS: Mapping[str, Callable[..., MeanRandomizer]] = MappingProxyType(
    {each.name: each for each in (Duchi, Piecewise)}
)

#: Randomizers of a vector by name; each takes ``dimension``, ``norm_bound`` and ``epsilon0``.
VECTOR_RANDOMIZERS: Mapping[str, Callable[..., MeanRandomizer]] = MappingProxyType(
    {PrivUnit.name: PrivUnit}
)

#: Randomizers of a text by name; each takes ``key`` and ``epsilon0``.
STRING_RANDOMIZERS: Mapping[str, Callable[..., CountMeanSketch]] = MappingProxyType(
    {CountMeanSketch.name: CountMeanSketch}
)


def make_randomizer(
    name: str, *, domain_size: SupportsIndex, epsilon0: float
) -> CategoryRandomizer:
    """Return the randomizer of a name of ``RANDOMIZERS``, for k categories.

    Its ``epsilon0`` is at most the one asked for, in nats. `ParameterError` if no randomizer has
    that name, or k or epsilon0 is out of range.

    Examples
    --------
    >>> make_randomizer("k-rr", domain_size=3, epsilon0=1.0)
    KRandomizedResponse(domain_size=3, epsilon0=1.0)
    """
    if name not in RANDOMIZERS:
        nearest = difflib.get_close_matches(name.lower(), RANDOMIZERS, n=1, cutoff=0.0)[0]
        raise ParameterError(
            f"randomizer {name!r} is not one of {', '.join(RANDOMIZERS)}: did you mean {nearest!r}?"
        )
    return RANDOMIZERS[name](
        domain_size=require_at_least("domain_size", domain_size, 2), epsilon0=epsilon0
    )
