"""All laws of the signs by name."""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.sign_laws.law import SignLaw
from shuffledp.monitoring.sign_laws.predrawn_signs import PredrawnSigns
from shuffledp.monitoring.sign_laws.sampled_change import SampledChange

#: Laws of the signs by name, the default first; each takes ``max_changes`` and ``epsilon0``.
SIGN_LAWS: Mapping[str, Callable[..., SignLaw]] = MappingProxyType(
    {each.name: each for each in (PredrawnSigns, SampledChange)}
)


def sign_law(name: str, *, max_changes: SupportsIndex, epsilon0: float) -> SignLaw:
    """Return the law of the signs of that name.

    Parameters
    ----------
    name : str
        One of ``SIGN_LAWS``.
    max_changes : int
        k: changes of a value that are followed, at least 1; at most 62 for pre-drawn signs.
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports, in [0, inf).

    Returns
    -------
    SignLaw
        Its ``epsilon0`` is at most the one asked for.

    Raises
    ------
    ParameterError
        If no law has that name, or a number is out of range.

    Examples
    --------
    >>> sign_law("sampled-change", max_changes=4, epsilon0=1.0)
    SampledChange(max_changes=4, epsilon0=1.0)
    """
    if name not in SIGN_LAWS:
        nearest = difflib.get_close_matches(str(name).lower(), SIGN_LAWS, n=1, cutoff=0.0)[0]
        raise ParameterError(
            f"protocol = {name!r} is not one of {', '.join(SIGN_LAWS)}: did you mean {nearest!r}?"
        )
    return SIGN_LAWS[name](
        max_changes=require_at_least("max_changes", max_changes, 1), epsilon0=epsilon0
    )
