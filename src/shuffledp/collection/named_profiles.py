"""The privacy law of a randomizer by name, without the rest of it."""

from typing import SupportsFloat, SupportsIndex

from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
    make_randomizer,
)

# Of these the accountant needs no more than epsilon0, and of k-RR the number of answers.
_NAMED_FAMILIES = tuple(
    family
    for family in RandomizerFamily
    if family not in (RandomizerFamily.ANY, RandomizerFamily.OTHER)
)

#: Randomizers that can be accounted for by name.
ACCOUNTED_RANDOMIZERS = (*RANDOMIZERS, *NUMBER_RANDOMIZERS, *VECTOR_RANDOMIZERS)


def named_profile(
    randomizer: str | None,
    *,
    epsilon0: SupportsFloat,
    k: SupportsIndex | None = None,
    dimension: SupportsIndex | None = None,
) -> LocalProfile:
    """Return the profile of a randomizer of this library.

    Parameters
    ----------
    randomizer : str or None
        One of `ACCOUNTED_RANDOMIZERS`; ``None`` for any epsilon0-LDP randomizer.
    epsilon0 : float
        Local privacy loss in nats, >= 0.
    k : int, optional
        Number of possible answers, at least 2; for randomizers of categories, and needed for all
        but the unary encodings.
    dimension : int, optional
        Length of the vectors; for randomizers of vectors, and needed there.

    Returns
    -------
    LocalProfile
        Of the law that is drawn, whose epsilon0 is at most the one given.

    Raises
    ------
    ParameterError
        If the name is unknown, or k or the dimension is missing or makes no difference.

    Examples
    --------
    >>> named_profile("duchi", epsilon0=1.0).epsilon0 <= 1.0
    True
    """
    if randomizer is None:
        _require_none(k=k, dimension=dimension, why="without a randomizer")
        return LocalProfile(epsilon0=epsilon0)  # type: ignore[arg-type]  # checked there
    if randomizer not in ACCOUNTED_RANDOMIZERS:
        raise ParameterError(
            f"randomizer = {randomizer!r} is not one of {', '.join(ACCOUNTED_RANDOMIZERS)}; for "
            "any other one leave it out, which is safe"
        )
    if randomizer in NUMBER_RANDOMIZERS:
        _require_none(k=k, dimension=dimension, why=f"for {randomizer}")
        # The law depends on the value's place within its limits, not on the limits.
        return NUMBER_RANDOMIZERS[randomizer](low=-1.0, high=1.0, epsilon0=epsilon0).profile
    if randomizer in VECTOR_RANDOMIZERS:
        _require_none(k=k, why=f"for {randomizer}")
        if dimension is None:
            raise ParameterError(
                f"dimension is needed for {randomizer}: pass the length of the vectors"
            )
        return VECTOR_RANDOMIZERS[randomizer](
            dimension=dimension, norm_bound=1.0, epsilon0=epsilon0
        ).profile
    _require_none(dimension=dimension, why=f"for {randomizer}")
    if randomizer in _NAMED_FAMILIES:
        return LocalProfile(
            epsilon0=epsilon0,  # type: ignore[arg-type]  # checked there
            family=RandomizerFamily(randomizer),
            domain_size=k,  # type: ignore[arg-type]  # checked there
        )
    if k is None:
        raise ParameterError(f"k is needed for {randomizer}: pass the number of answers")
    return make_randomizer(randomizer, k=k, epsilon0=float(epsilon0)).profile


def _require_none(*, why: str, **given: object) -> None:
    """Raise if something is given that makes no difference."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"{name} = {value} makes no difference {why}: leave it out")
