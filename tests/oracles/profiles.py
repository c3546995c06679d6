"""Profiles by short names, for tests."""

from shuffledp.core.profile import LocalProfile, RandomizerFamily


def any_randomizer(epsilon0: float) -> LocalProfile:
    """Any epsilon0-LDP randomizer."""
    return LocalProfile(epsilon0=epsilon0)


def k_rr(epsilon0: float, k: int) -> LocalProfile:
    """k-ary randomized response."""
    return LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=k
    )


def symmetric_unary(epsilon0: float, k: int | None = None) -> LocalProfile:
    """Basic RAPPOR."""
    return LocalProfile(epsilon0=epsilon0, family=RandomizerFamily.SYMMETRIC_UNARY, domain_size=k)


def optimized_unary(epsilon0: float, k: int | None = None) -> LocalProfile:
    """OUE."""
    return LocalProfile(epsilon0=epsilon0, family=RandomizerFamily.OPTIMIZED_UNARY, domain_size=k)


def every_family(epsilon0: float) -> list[LocalProfile]:
    """One profile of each kind that is accounted differently."""
    return [
        any_randomizer(epsilon0),
        k_rr(epsilon0, 2),
        k_rr(epsilon0, 3),
        k_rr(epsilon0, 16),
        symmetric_unary(epsilon0, 2),
        symmetric_unary(epsilon0, 8),
        optimized_unary(epsilon0, 2),
        optimized_unary(epsilon0, 8),
    ]
