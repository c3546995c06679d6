"""All local randomizers by name, for each kind of value; answer sets are in `answer_sets`."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.randomizers.base import CategoryRandomizer


class _Makers(Mapping[str, Callable[..., Any]]):
    """Classes of randomizers by name; each is loaded when it is first asked for."""

    def __init__(self, **homes: str) -> None:
        self._homes = {name.replace("_", "-"): home for name, home in homes.items()}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        make: Callable[..., Any] = resolve_name(f"shuffledp.randomizers.{self._homes[name]}")
        return make

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


#: Randomizers of one category out of k by name; each takes ``domain_size`` and ``epsilon0``.
RANDOMIZERS = _Makers(
    k_rr="k_randomized_response:KRandomizedResponse",
    symmetric_unary="unary_encoding:SymmetricUnaryEncoding",
    optimized_unary="unary_encoding:OptimizedUnaryEncoding",
    optimized_local_hashing="local_hashing:OptimizedLocalHashing",
    hadamard_response="local_hashing:HadamardResponse",
    subset_selection="subset_selection:SubsetSelection",
)

#: Randomizers of a number by name; each takes ``low``, ``high`` and ``epsilon0``.
NUMBER_RANDOMIZERS = _Makers(
    duchi="number_randomizer:Duchi", piecewise="number_randomizer:Piecewise"
)

#: Randomizers of a vector by name; each takes ``dimension``, ``norm_bound`` and ``epsilon0``.
VECTOR_RANDOMIZERS = _Makers(privunit="privunit:PrivUnit")


def require_name(name: object, makers: Mapping[str, object], whose: str = "") -> None:
    """Raise `ParameterError`, with the nearest name, unless it is one of the names."""
    if not isinstance(name, str) or name not in makers:
        nearest = difflib.get_close_matches(str(name).lower(), makers, n=1, cutoff=0.0)[0]
        raise ParameterError(
            f"randomizer {name!r} is not one of {', '.join(makers)}{whose}: "
            f"did you mean {nearest!r}?"
        )


def make_randomizer(
    name: str, *, domain_size: SupportsIndex, epsilon0: float
) -> "CategoryRandomizer":
    """Return the randomizer of a name of ``RANDOMIZERS``, for k categories.

    Its ``epsilon0`` is at most the one asked for, in nats. `ParameterError` if no randomizer has
    that name, or k or epsilon0 is out of range.

    Examples
    --------
    >>> make_randomizer("k-rr", domain_size=3, epsilon0=1.0)
    KRandomizedResponse(domain_size=3, epsilon0=1.0)
    """
    require_name(name, RANDOMIZERS)
    made: CategoryRandomizer = RANDOMIZERS[name](
        domain_size=require_at_least("domain_size", domain_size, 2), epsilon0=epsilon0
    )
    return made
