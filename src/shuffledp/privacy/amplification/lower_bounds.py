"""What no analysis can go below: exact divergences of explicit neighbouring data.

For a concrete randomizer the data are worst or nearly worst for it. For "any epsilon0-LDP
randomizer" the attack may choose the randomizer too: binary and ternary randomized response are
members of the class (the ternary one is the worse above epsilon0 = ln 2).
"""

from collections.abc import Callable
from contextlib import suppress

from shuffledp.core.errors import PrecisionError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.privacy.amplification import k_randomized_response, unary_encoding
from shuffledp.privacy.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.privacy.amplification.symmetric_blanket import SymmetricBlanket, SymmetricLaw

# With fewer blocks the lower end errs a little further down, which is the safe side here.
_MAX_BLOCKS = 2000


def _attack_laws(profile: LocalProfile) -> list[SymmetricLaw]:
    """Return the laws of explicit data, one each, that bound this profile from below."""
    epsilon0, size = profile.epsilon0, profile.domain_size
    if profile.family is RandomizerFamily.ANY:
        return [] if size == 2 else [k_randomized_response.third_answer_law(epsilon0, 3)]
    if profile.family is RandomizerFamily.OTHER or size is None or size < 3:
        return []  # a stated blanket is a bound from above: no data go with it
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        return [k_randomized_response.third_answer_law(epsilon0, size)]
    return [unary_encoding.third_value_law(profile), unary_encoding.third_bit_law(profile)]


def _binary_is_a_member(profile: LocalProfile) -> bool:
    """Tell whether binary randomized response is among the randomizers the profile allows."""
    return profile.family is RandomizerFamily.ANY or (
        profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and profile.domain_size == 2
    )


def unavoidable_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float | None:
    """Return an epsilon that some data prove unavoidable, rounded down; None if none is known."""

    def attack(law: SymmetricLaw) -> float:
        blanket = SymmetricBlanket(law, num_users, max_blocks=_MAX_BLOCKS)
        return blanket.enclose_epsilon(delta, profile.epsilon0).lower

    found = _successes(attack, profile)
    if _binary_is_a_member(profile):
        binary = BinaryRandomizedResponse(profile.epsilon0, num_users)
        found.append(binary.lower_epsilon(delta, profile.epsilon0))
    return max(found, default=None)


def unavoidable_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float | None:
    """Return a delta that some data prove unavoidable, rounded down; None if none is known."""

    def attack(law: SymmetricLaw) -> float:
        return SymmetricBlanket(law, num_users, max_blocks=_MAX_BLOCKS).enclose(epsilon).lower

    found = _successes(attack, profile)
    if _binary_is_a_member(profile):
        found.append(BinaryRandomizedResponse(profile.epsilon0, num_users).lower_delta(epsilon))
    return max(found, default=None)


def _successes(attack: Callable[[SymmetricLaw], float], profile: LocalProfile) -> list[float]:
    """Return what the attacks prove; one lost in round-off proves nothing."""
    found = []
    for law in _attack_laws(profile):
        with suppress(PrecisionError):
            found.append(attack(law))
    return found
