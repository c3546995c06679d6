"""What no analysis can go below: exact divergences of explicit neighbouring data.

For a concrete randomizer the data are worst or nearly worst for it. For "any epsilon0-LDP
randomizer" the attack may choose the randomizer too: binary and ternary randomized response are
members of the class (the ternary one is the worse above epsilon0 = ln 2).

In all of them every other user holds one and the same value x2, so that the others' reports are
i.i.d. Relative to their law R_x2 the pair has likelihood ratios of mean 1, and by symmetry among
the n reports the divergence is *exactly* the right-hand side of (B), R_x2 in place of the blanket.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.privacy.amplification import (
    channel_attacks,
    k_randomized_response,
    unary_encoding,
)
from shuffledp.privacy.amplification.atom_law import AtomLaw, atom_delta, atom_epsilon
from shuffledp.privacy.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.privacy.amplification.symmetric_blanket import SymmetricBlanket, SymmetricLaw
from shuffledp.privacy.divergences.hockey_stick_curve import HockeyStickCurve

# With fewer blocks the lower end errs a little further down, which is the safe side here.
_MAX_BLOCKS = 2000

# Users from which on binary randomized response is evaluated as an atom law, at a constant cost.
_MANY_USERS = 10**6

# Relative width of what is computed here from atoms: ten times as wide takes a third of the time.
_WIDTH = 1e-6

# Relative error that the explicit data of a profile may have.
ATTACK_ACCURACY = 1e-9


def dominated_law(attack: Sequence[BlanketAtom]) -> AtomLaw:
    """Return a law that the stated explicit data dominate, whatever digits they lack.

    Masses shrink by 2 u, ratios r0 by u, ratios r1 grow by u, where u is `ATTACK_ACCURACY`; what is
    taken off the masses goes to the ratios (0, largest r1), the worst there are for the attacker.

    Examples
    --------
    >>> law = dominated_law([BlanketAtom(mass=0.5, ratio0=1.5, ratio1=0.5)] * 2)
    >>> law.masses.round(8).tolist()
    [0.0, 1.0]
    """
    masses = [(1.0 - 2.0 * ATTACK_ACCURACY) * atom.mass for atom in attack]
    remaining = max(1.0 - math.fsum(masses), 0.0)
    ratios0 = [(1.0 - ATTACK_ACCURACY) * atom.ratio0 for atom in attack]
    ratios1 = [(1.0 + ATTACK_ACCURACY) * atom.ratio1 for atom in attack]
    return AtomLaw([*masses, remaining], [*ratios0, 0.0], [*ratios1, max(ratios1)])


def _mirrored(attack: Sequence[BlanketAtom]) -> list[BlanketAtom]:
    """Return the same data with the two inputs of the pair exchanged."""
    return [BlanketAtom(mass=atom.mass, ratio0=atom.ratio1, ratio1=atom.ratio0) for atom in attack]


def _symmetric_laws(profile: LocalProfile) -> list[SymmetricLaw]:
    """Return the laws of explicit data in which the two inputs play symmetric roles."""
    epsilon0, size = profile.epsilon0, profile.domain_size
    if profile.family is RandomizerFamily.ANY:
        return [] if size == 2 else [k_randomized_response.third_answer_law(epsilon0, 3)]
    if profile.family is RandomizerFamily.OTHER or size is None or size < 3:
        return []
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        return [k_randomized_response.third_answer_law(epsilon0, size)]
    return [unary_encoding.third_value_law(profile), unary_encoding.third_bit_law(profile)]


def _binary_is_a_member(profile: LocalProfile) -> bool:
    """Tell whether binary randomized response is among the randomizers the profile allows."""
    return profile.family is RandomizerFamily.ANY or (
        profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and profile.domain_size == 2
    )


def _is_a_matrix(profile: LocalProfile) -> bool:
    """Tell whether all that is known of a randomizer is its channel matrix."""
    only_matrix = not profile.blanket and not profile.attack
    is_other = profile.family is RandomizerFamily.OTHER
    return is_other and only_matrix and profile.channel is not None


def _atom_attacks(profile: LocalProfile, num_users: int) -> Iterator[tuple[AtomLaw, AtomLaw]]:
    """Yield explicit data as atom laws, in both orders of the pair."""
    if profile.attack:
        yield dominated_law(profile.attack), dominated_law(_mirrored(profile.attack))
    if num_users >= _MANY_USERS and _binary_is_a_member(profile):
        # All others hold what the victim holds before the change.
        shrink = math.exp(-profile.epsilon0)
        masses = [1.0 / (1.0 + shrink), shrink / (1.0 + shrink)]
        law = AtomLaw(masses, [1.0, 1.0], [shrink, 1.0 / shrink])
        yield law, law.reversed


def attack_curves(profile: LocalProfile, num_users: int) -> list[HockeyStickCurve]:
    """Return the divergences of explicit neighbouring data, as far as any are known.

    Parameters
    ----------
    profile : LocalProfile
        With delta0 = 0 and 0 < epsilon0 <= 200.
    num_users : int
        Number n of users, 1 to 1e15.

    Returns
    -------
    list of HockeyStickCurve
        One for each set of data. Their lower ends are divergences that some data have.

    Notes
    -----
    Cost of a value: a tenth of a millisecond to some milliseconds.
    """
    curves = []
    for law in _symmetric_laws(profile):
        blanket = SymmetricBlanket(law, num_users, max_blocks=_MAX_BLOCKS)
        curves.append(_curve(blanket.enclose, blanket.enclose, profile))
    if num_users < _MANY_USERS and _binary_is_a_member(profile):
        binary = BinaryRandomizedResponse(profile.epsilon0, num_users)
        curves.append(
            _curve(
                lambda epsilon: binary.enclose_extreme(epsilon, others_hold_one=False),
                lambda epsilon: binary.enclose_extreme(epsilon, others_hold_one=True),
                profile,
            )
        )
    for forward, backward in _atom_attacks(profile, num_users):
        curves.append(_atom_curve(forward, backward, num_users, profile))
    return curves


def _curve(
    forward: Callable[[float], Enclosure],
    backward: Callable[[float], Enclosure],
    profile: LocalProfile,
) -> HockeyStickCurve:
    return HockeyStickCurve(forward=forward, backward=backward, highest=profile.epsilon0)


def _atom_curve(
    forward: AtomLaw, backward: AtomLaw, num_users: int, profile: LocalProfile
) -> HockeyStickCurve:
    return _curve(
        lambda epsilon: atom_delta(forward, num_users, epsilon),
        lambda epsilon: atom_delta(backward, num_users, epsilon),
        profile,
    )


def unavoidable_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float | None:
    """Return an epsilon that some data prove unavoidable, rounded down; None if none is known."""
    highest = profile.epsilon0
    attacks: list[Callable[[], float]] = []
    for law in _symmetric_laws(profile):
        blanket = SymmetricBlanket(law, num_users, max_blocks=_MAX_BLOCKS)
        attacks.append(partial(_lower_end, blanket.enclose_epsilon, delta, highest))
    if num_users < _MANY_USERS and _binary_is_a_member(profile):
        binary = BinaryRandomizedResponse(profile.epsilon0, num_users)
        attacks.append(lambda: binary.lower_epsilon(delta, highest))
    attacks += [
        partial(_lower_end, _attacked_epsilon, each, num_users, delta, highest)
        for pair in _atom_attacks(profile, num_users)
        for each in pair
    ]
    if _is_a_matrix(profile):
        attacks.append(partial(channel_attacks.attack_epsilon, profile, num_users, delta))
    return _strongest(attacks)


def unavoidable_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float | None:
    """Return a delta that some data prove unavoidable, rounded down; None if none is known."""
    attacks: list[Callable[[], float]] = [
        partial(_lower_end, one_way, epsilon)
        for curve in attack_curves(profile, num_users)
        for one_way in (curve.forward, curve.backward)
    ]
    if _is_a_matrix(profile):
        attacks.append(partial(channel_attacks.attack_delta, profile, num_users, epsilon))
    return _strongest(attacks)


def _attacked_epsilon(law: AtomLaw, num_users: int, delta: float, highest: float) -> Enclosure:
    return atom_epsilon(law, num_users, delta, highest, width=_WIDTH)


def _lower_end(enclose: Callable[..., Enclosure], *arguments: Any) -> float:
    """Return the lower end of an enclosure that is only computed when it is asked for."""
    return enclose(*arguments).lower


def _strongest(attacks: Sequence[Callable[[], float]]) -> float | None:
    """Return the most that the attacks prove; one lost in round-off proves nothing."""
    found = []
    for attack in attacks:
        with suppress(PrecisionError):
            found.append(attack())
    return max(found, default=None)
