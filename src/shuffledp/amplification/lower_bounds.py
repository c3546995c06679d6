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
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.core.bound import warn_of_lower_end
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LARGEST_EPSILON0, BlanketAtom, LocalProfile, RandomizerFamily

# Relative width of lower ends from atoms: ten times as wide takes a third of the time. Outcomes of
# two atoms are listed, as good as exactly, below this number of users.
_WIDTH, _LISTED_WIDTH, _MANY_USERS = 1e-6, 5e-10, 10**6

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


def _family_data(profile: LocalProfile) -> list[tuple[AtomLaw, AtomLaw]]:
    """Return the laws of the family's explicit data, each in both orders of the pair."""
    epsilon0, size, family = profile.epsilon0, profile.domain_size, profile.family
    is_k_rr, found = family is RandomizerFamily.K_RANDOMIZED_RESPONSE, []
    if family is RandomizerFamily.ANY or (is_k_rr and size == 2):
        # Binary randomized response is among the randomizers that the profile allows.
        found.append(families.same_answer_laws(epsilon0))
    # In all others, all other users hold one third value.
    if family is RandomizerFamily.ANY and size != 2:
        laws = [families.third_answer_law(epsilon0, 3)]
    elif family is RandomizerFamily.OTHER or size is None or size < 3:
        laws = []
    elif is_k_rr:
        laws = [families.third_answer_law(epsilon0, size)]
    else:
        laws = [families.third_value_law(profile), families.third_bit_law(profile)]
    return found + [(law, law) for law in laws]


def _data(profile: LocalProfile) -> list[tuple[AtomLaw, AtomLaw]]:
    """Return the laws of all explicit data, each in both orders of the pair."""
    found = []
    if profile.attack:
        found.append((dominated_law(profile.attack), dominated_law(mirrored(profile.attack))))
    # The families' data are of reports that are always sent.
    return found if profile.participation < 1.0 else found + _family_data(profile)


def attack_atoms(profile: LocalProfile) -> tuple[BlanketAtom, ...]:
    """Return the atoms of explicit data: ratios to the law of the value that all others hold."""
    if profile.attack or profile.delta0 > 0.0 or not 0.0 < profile.epsilon0 <= LARGEST_EPSILON0:
        return profile.attack
    data = [] if profile.participation < 1.0 else _family_data(profile)
    # For any randomizer, data of two answers give the larger divergence up to epsilon0 = ln 2,
    # and data of three beyond.
    is_ternary_worse = profile.family is RandomizerFamily.ANY and profile.epsilon0 > math.log(2.0)
    return families.listed_atoms(data[-1 if is_ternary_worse else 0][1]) if data else ()


def attack_curves(
    profile: LocalProfile, num_users: int, *, width: float = 0.0
) -> list[HockeyStickCurve]:
    """Return the divergences of explicit neighbouring data, as far as any are known."""

    def divergence(law: AtomLaw) -> Callable[[float], Enclosure]:
        finest = max(width, atom_law.NARROWEST)
        return partial(atom_law.atom_delta, law, num_users, width=finest)

    return [
        HockeyStickCurve(divergence(one), divergence(other), profile.epsilon0)
        for one, other in _data(profile)
    ]


def unavoidable_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float | None:
    """Return an epsilon that some data prove unavoidable, rounded down; None if none is known."""
    attacks: list[Callable[[], float]] = [
        partial(
            atom_law.atom_epsilon_below,
            law,
            num_users,
            delta,
            profile.epsilon0,
            width=_WIDTH if law.masses.size > 2 or num_users >= _MANY_USERS else _LISTED_WIDTH,
        )
        for law in dict.fromkeys(law for pair in _data(profile) for law in pair)
    ]
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
