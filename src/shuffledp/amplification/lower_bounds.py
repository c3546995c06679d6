"""Lower ends that no analysis can go below: exact divergences of explicit neighbouring data.

For a concrete randomizer the data are worst or nearly worst for it. For "any epsilon0-LDP
randomizer" the attack may choose the randomizer too: binary and ternary randomized response are
members of the class (the ternary one is the worse above epsilon0 = ln 2).

In all of them every other user holds one and the same value x2, so that the others' reports are
i.i.d. Relative to their law R_x2 the pair has likelihood ratios of mean 1, and by symmetry among
the n reports the divergence is *exactly* the right-hand side of (B), R_x2 in place of the blanket.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from shuffledp.amplification import atom_law, channel_rows
from shuffledp.amplification import clones_and_families as families
from shuffledp.amplification.atom_law import AtomLaw, mirrored
from shuffledp.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.amplification.curve import HockeyStickCurve
from shuffledp.core.bound import warn_of_lower_end
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Users from which on binary randomized response is evaluated as an atom law, at a constant cost.
_MANY_USERS = 10**6

# Relative width of lower ends from atoms: ten times as wide takes a third of the time.
_WIDTH = 1e-6

# Relative error that the explicit data of a profile may have.
ATTACK_ACCURACY = 1e-9


def dominated_law(attack: Sequence[BlanketAtom]) -> AtomLaw:
    """Return a law that the stated explicit data dominate, whatever digits they lack.

    Masses shrink by 2 u, ratios r0 by u, ratios r1 grow by u, where u is `ATTACK_ACCURACY`; the
    mass removed goes to the ratios (0, largest r1), the worst for the attacker.
    """
    masses = [(1.0 - 2.0 * ATTACK_ACCURACY) * atom.mass for atom in attack]
    remaining = max(1.0 - math.fsum(masses), 0.0)
    ratios0 = [(1.0 - ATTACK_ACCURACY) * atom.ratio0 for atom in attack]
    ratios1 = [(1.0 + ATTACK_ACCURACY) * atom.ratio1 for atom in attack]
    return AtomLaw([*masses, remaining], [*ratios0, 0.0], [*ratios1, max(ratios1)])


def _data(
    profile: LocalProfile, num_users: int
) -> tuple[list[tuple[AtomLaw, AtomLaw]], list[BinaryRandomizedResponse]]:
    """Return explicit data as atom laws, in both orders, and as binary randomized response."""
    laws, binary = [], []
    if profile.attack:
        laws.append((dominated_law(profile.attack), dominated_law(mirrored(profile.attack))))
    if profile.participation < 1.0:  # the families' data are of reports that are always sent
        return laws, []
    if profile.family is RandomizerFamily.ANY or (
        profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and profile.domain_size == 2
    ):  # binary randomized response is among the randomizers that the profile allows
        if num_users < _MANY_USERS:
            binary.append(BinaryRandomizedResponse(profile.epsilon0, num_users))
        else:
            laws.append(families.same_answer_laws(profile.epsilon0))
    return laws + [(law, law) for law in _symmetric_laws(profile)], binary


def _symmetric_laws(profile: LocalProfile) -> list[AtomLaw]:
    """Return the laws of the family's explicit data in which all others hold one third value."""
    epsilon0, size = profile.epsilon0, profile.domain_size
    if profile.family is RandomizerFamily.ANY:
        return [] if size == 2 else [families.third_answer_law(epsilon0, 3)]
    if profile.family is RandomizerFamily.OTHER or size is None or size < 3:
        return []
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        return [families.third_answer_law(epsilon0, size)]
    return [families.third_value_law(profile), families.third_bit_law(profile)]


def attack_curves(
    profile: LocalProfile, num_users: int, *, width: float = 0.0
) -> list[HockeyStickCurve]:
    """Return the divergences of explicit neighbouring data, as far as any are known."""
    laws, binary = _data(profile, num_users)
    finest, highest = max(width, atom_law.NARROWEST), profile.epsilon0
    orders = [
        [partial(atom_law.atom_delta, law, num_users, width=finest) for law in pair]
        for pair in laws
    ]
    orders += [
        [partial(each.enclose_extreme, others_hold_one=one) for one in (False, True)]
        for each in binary
    ]
    return [HockeyStickCurve(forward, backward, highest) for forward, backward in orders]


def unavoidable_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float | None:
    """Return an epsilon that some data prove unavoidable, rounded down; None if none is known."""
    laws, binary = _data(profile, num_users)
    highest = profile.epsilon0
    attacks: list[Callable[[], float]] = [
        partial(atom_law.atom_epsilon_below, law, num_users, delta, highest, width=_WIDTH)
        for law in dict.fromkeys(law for pair in laws for law in pair)
    ]
    attacks += [partial(each.lower_epsilon, delta, highest) for each in binary]
    by_channel = partial(channel_rows.attack_epsilon, profile, num_users, delta)
    return _strongest(attacks, profile, by_channel)


def unavoidable_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float | None:
    """Return a delta that some data prove unavoidable, rounded down; None if none is known."""
    attacks: list[Callable[[], float]] = [
        partial(curve.strength, epsilon) for curve in attack_curves(profile, num_users)
    ]
    by_channel = partial(channel_rows.attack_delta, profile, num_users, epsilon)
    return _strongest(attacks, profile, by_channel)


def _strongest(
    attacks: list[Callable[[], float]], profile: LocalProfile, by_channel: Callable[[], float]
) -> float | None:
    """Return the largest lower end of the attacks; an attack that fails proves nothing."""
    is_other = profile.family is RandomizerFamily.OTHER and profile.channel is not None
    if is_other and not profile.blanket and not profile.attack:  # the matrix is all that is known
        attacks = [*attacks, by_channel]
    found, failed = [], None
    for attack in attacks:
        try:
            found.append(attack())
        except ArithmeticError as error:  # round-off dominates, or a float overflows
            failed = error
    if failed is not None and not found:
        warn_of_lower_end(f"no lower end could be computed ({failed}); the upper end still holds")
    return max(found, default=None)
