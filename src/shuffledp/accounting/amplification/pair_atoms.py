"""Blankets and explicit data of the known families, as lists of atoms.

A profile of the family OTHER states its atoms itself. Those of the families with an analysis of
their own are written out here, so that what changes every law in the same way, such as random
participation, can change the list. p = e^epsilon0 throughout.

- Any epsilon0-LDP randomizer: the clone law, (p, 1) and (1, p) of mass 1 / (p + 1) each.
  docs/results/clones.md proves that it dominates in convex order.
- k-RR, a = 1 / (p + k - 1): (p, 1) and (1, p) of mass a each, (1, 1) of mass (k - 2) a.
- Unary encodings, noise q, ratios h and l to the noise: the pair's two bits under l * noise.

The explicit data are those of `lower_bounds`: all others hold one third value (k-RR with k = 2: the
second value of the pair).

The floats of a blanket are moved outward by more than their round-off, at most 8 units in the last
place: masses down, the ratio p of the pair up by as much and more, weights p of neutral atoms down.
None of it lowers a bound (docs/results/stated-blanket.md, "Exact laws").

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3.
"""

import math
from collections.abc import Iterable

from shuffledp.core.numerics.rounding import round_down, round_up
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Beyond this p overflows; the accountant stops amplifying long before.
LARGEST_EPSILON0 = 700.0


def blanket_atoms(profile: LocalProfile) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a blanket that (B) may be evaluated with.

    Parameters
    ----------
    profile : LocalProfile
        Any. One with ``delta0 > 0`` has a blanket only if it states one.

    Returns
    -------
    tuple of BlanketAtom
        The mass missing from 1 is outside the blanket. Empty where none is known.

    Examples
    --------
    >>> round(blanket_atoms(LocalProfile(epsilon0=math.log(3.0)))[0].mass, 12)
    0.25
    """
    if profile.blanket:
        return profile.blanket
    if profile.delta0 > 0.0 or profile.epsilon0 > LARGEST_EPSILON0:
        return ()
    return _outward(_nearest_blanket(profile))


def _nearest_blanket(profile: LocalProfile) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a family to double precision, ratios 1 exactly."""
    ratio = math.exp(profile.epsilon0)
    match profile.family:
        case RandomizerFamily.K_RANDOMIZED_RESPONSE:
            return _k_rr_blanket(ratio, profile.domain_size or 2)
        case RandomizerFamily.SYMMETRIC_UNARY:
            return _unary_blanket(ratio, 1.0 / (1.0 + math.sqrt(ratio)), 1.0 / math.sqrt(ratio))
        case RandomizerFamily.OPTIMIZED_UNARY:
            return _unary_blanket(ratio, 1.0 / (1.0 + ratio), 0.5 * (1.0 + 1.0 / ratio))
        case _:
            return _pair(1.0 / (ratio + 1.0), ratio, 1.0)


def _outward(atoms: Iterable[BlanketAtom]) -> tuple[BlanketAtom, ...]:
    """Return one symmetric pair and neutral atoms, each moved to the side that raises bounds."""

    def ratio(value: float, other: float) -> float:
        if value == 1.0:
            return 1.0
        return round_down(value) if value == other else round_up(value, operations=32)

    return tuple(
        BlanketAtom(
            mass=round_down(atom.mass, operations=16),
            ratio0=ratio(atom.ratio0, atom.ratio1),
            ratio1=ratio(atom.ratio1, atom.ratio0),
        )
        for atom in atoms
    )


def attack_atoms(profile: LocalProfile) -> tuple[BlanketAtom, ...]:
    """Return the atoms of explicit data: ratios to the law of the value that all others hold.

    Parameters
    ----------
    profile : LocalProfile
        Any. For "any randomizer" the data are those of binary randomized response up to
        epsilon0 = ln 2, of ternary randomized response above.

    Returns
    -------
    tuple of BlanketAtom
        Masses sum to 1 and both ratios have mean 1. Empty where none is known.

    Examples
    --------
    >>> atoms = attack_atoms(LocalProfile(epsilon0=0.5))
    >>> round(sum(atom.mass * atom.ratio0 for atom in atoms), 12)
    1.0
    """
    if profile.attack or profile.delta0 > 0.0 or not 0.0 < profile.epsilon0 <= LARGEST_EPSILON0:
        return profile.attack
    ratio, size, family = math.exp(profile.epsilon0), profile.domain_size, profile.family
    if family is RandomizerFamily.ANY:
        return _k_rr_attack(ratio, 2 if size == 2 or ratio <= 2.0 else 3)
    if family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        return _k_rr_attack(ratio, size or 2)
    if family is RandomizerFamily.OTHER or size is None or size < 3:
        return ()
    if family is RandomizerFamily.SYMMETRIC_UNARY:
        root = math.sqrt(ratio)
        return _unary_attack(1.0 / (1.0 + root), high=root, low=1.0 / root)
    return _unary_attack(
        1.0 / (1.0 + ratio), high=0.5 * (1.0 + ratio), low=0.5 * (1.0 + 1.0 / ratio)
    )


def _pair(mass: float, high: float, low: float) -> tuple[BlanketAtom, ...]:
    """Return the two atoms that tell the pair apart, one in favour of each."""
    return (
        BlanketAtom(mass=mass, ratio0=high, ratio1=low),
        BlanketAtom(mass=mass, ratio0=low, ratio1=high),
    )


def _neutral(mass: float, weight: float) -> tuple[BlanketAtom, ...]:
    """Return the atom of reports that do not tell the pair apart; none without mass."""
    return (BlanketAtom(mass=mass, ratio0=weight, ratio1=weight),) if mass > 0.0 else ()


def _k_rr_blanket(ratio: float, size: int) -> tuple[BlanketAtom, ...]:
    own = 1.0 / (ratio + (size - 1.0))
    return _pair(own, ratio, 1.0) + _neutral((size - 2.0) * own, 1.0)


def _k_rr_attack(ratio: float, size: int) -> tuple[BlanketAtom, ...]:
    own = 1.0 / (ratio + (size - 1.0))
    if size == 2:
        return (
            BlanketAtom(mass=own, ratio0=ratio, ratio1=1.0),
            BlanketAtom(mass=ratio * own, ratio0=1.0 / ratio, ratio1=1.0),
        )
    return (
        *_pair(own, ratio, 1.0),
        *_neutral((size - 3.0) * own, 1.0),
        *_neutral(ratio * own, 1.0 / ratio),
    )


def _unary_blanket(ratio: float, noise: float, low: float) -> tuple[BlanketAtom, ...]:
    """Return the pair's two bits under low * noise: own bits have the ratio p, others 1."""
    unset = 1.0 - noise
    return (
        *_pair(low * noise * unset, ratio, 1.0),
        *_neutral(low * noise * noise, ratio),
        *_neutral(low * unset * unset, 1.0),
    )


def _unary_attack(noise: float, *, high: float, low: float) -> tuple[BlanketAtom, ...]:
    """Return the pair's two bits, pure noise for the others.

    The own bit has the ratio ``high`` where it is set and ``low`` where not.
    """
    unset = 1.0 - noise
    return (
        *_pair(noise * unset, high, low),
        *_neutral(noise * noise, high),
        *_neutral(unset * unset, low),
    )
