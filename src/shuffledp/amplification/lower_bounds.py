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

# Least mass of the merged base, which must not be a difference of nearly equal masses.
_LEAST_BASE_MASS = 1e-3


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


def reduced_laws(attack: Sequence[BlanketAtom]) -> list[AtomLaw]:
    """Return laws of one symmetric pair that stated data dominate, if these equal their mirror.

    The pair with the largest ratio h / l stays, the others are made neutral, and neutral atoms
    are merged: all of them, or all but the lightest. Sums of so few outcomes are
    narrow close to epsilon0, where the integral is not.

    *Margins.* Stated masses and ratios are right to a relative u = `ATTACK_ACCURACY`; true values
    have a star. Let w0 <= l be the weight of the base, the lightest outcome.

    1. Base reports are merged into the pair until each of its atoms has mass (1 + 2 u) m >= m*. As
       w0 <= l, the ratios stay at least (1 - 5 u) h and at most (1 + u) l: half a difference of at
       least d = ((1 - 5 u) h - (1 + u) l)/2, a weight of at most c = (1 + u)(h + l)/2.
    2. The walk of the pair is fair by exchange. A smaller step d is a contraction in convex order;
       a larger weight lowers every sum.
    3. The other merged outcome gets 1 + 2 u times its mass, at the cost of the lighter base; both
       get 1 + 4 u times their mean weight. Each lowers every sum.
    """
    atoms = [(atom.mass, atom.ratio0, atom.ratio1) for atom in attack]
    if sorted(atoms) != sorted((mass, other, one) for mass, one, other in atoms):
        return []
    telling = [(one / other, one, other) for _, one, other in atoms if one > other > 0.0]
    if not telling:
        return []
    _, high, low = max(telling)
    spread = 1.0 + 2.0 * ATTACK_ACCURACY
    pair_mass = spread * math.fsum(mass for mass, *pair in atoms if sorted(pair) == [low, high])
    above = 0.5 * (1.0 + ATTACK_ACCURACY) * (high + low)
    apart = 0.5 * ((1.0 - 5.0 * ATTACK_ACCURACY) * high - (1.0 + ATTACK_ACCURACY) * low)
    if apart <= 0.0:
        return []
    epsilon0 = math.log1p(2.0 * apart / (above - apart))
    neutral = sorted(
        (0.5 * (one + other), mass) for mass, one, other in atoms if {one, other} != {low, high}
    )
    laws = []
    for cut in {1, len(neutral)}:
        rest_mass = spread * math.fsum(mass for _, mass in neutral[cut:])
        base, base_mass = _mean_weight(neutral[:cut]), 1.0 - pair_mass - rest_mass
        if base_mass >= _LEAST_BASE_MASS and base <= low:
            others = [(rest_mass, max(_mean_weight(neutral[cut:]), base)), (base_mass, base)]
            laws.append(
                families.symmetric_law(
                    epsilon0, low=above - apart, pair_mass=pair_mass, others=others
                )
            )
    return laws


def _mean_weight(group: Sequence[tuple[float, float]]) -> float:
    """Return the mean weight of some outcomes, rounded up by the stated margin."""
    mass = math.fsum(mass for _, mass in group)
    share = math.fsum(weight * mass for weight, mass in group)
    return (1.0 + 4.0 * ATTACK_ACCURACY) * share / mass if mass > 0.0 else 0.0


def _data(
    profile: LocalProfile, num_users: int
) -> tuple[list[tuple[AtomLaw, AtomLaw]], list[BinaryRandomizedResponse]]:
    """Return explicit data as atom laws, in both orders, and as binary randomized response."""
    laws, binary = [], []
    if profile.attack:
        laws.append((dominated_law(profile.attack), dominated_law(mirrored(profile.attack))))
    if profile.family is RandomizerFamily.ANY or (
        profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and profile.domain_size == 2
    ):  # binary randomized response is among the randomizers that the profile allows
        if num_users < _MANY_USERS:
            binary.append(BinaryRandomizedResponse(profile.epsilon0, num_users))
        else:
            laws.append(families.same_answer_laws(profile.epsilon0))
    symmetric = _symmetric_laws(profile) + reduced_laws(profile.attack)
    return laws + [(law, law) for law in symmetric], binary


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
