"""From exact probabilities and likelihood ratios to the atoms of a profile.

A blanket is rounded so that the bound (B) of its atoms, taken as exact numbers, is at least that of
the exact law, at every number of users and epsilon >= 0. docs/results/stated-blanket.md, section
"Exact laws", has the proof; the error is a few units in the last place of each mass and ratio.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from shuffledp.core.numerics.enclosure import float_above, float_below
from shuffledp.core.profile import BlanketAtom

LONGEST_POWER = 64
"""Powers in masses go no further: the exact number would take as many words."""

Number = Fraction | float
ExactAtom = tuple[Fraction, Fraction | int, Fraction | int]
"""Mass and two likelihood ratios."""


def mirrored(mass: Fraction, ratio0: Fraction | int, ratio1: Fraction | int) -> list[ExactAtom]:
    """Return an atom and its mirror image."""
    return [(mass, ratio0, ratio1), (mass, ratio1, ratio0)]


def rounded_atoms(atoms: Iterable[tuple[Number, Number, Number]]) -> tuple[BlanketAtom, ...]:
    """Return atoms of explicit data, if they have a mass, to the nearest floats."""
    return tuple(
        BlanketAtom(mass=float(mass), ratio0=float(ratio0), ratio1=float(ratio1))
        for mass, ratio0, ratio1 in atoms
        if mass > 0
    )


def outward_atoms(atoms: Iterable[ExactAtom]) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a blanket rounded so that no bound falls, leaving out those without mass.

    Atoms (mass; ratio, 1) that tell the inputs of the pair apart must have mirror images of the
    same mass. They become one pair of the largest ratio: give ratios that hardly differ.
    """
    listed = [(mass, ratio0, ratio1) for mass, ratio0, ratio1 in atoms if mass > 0]
    gaining = [(mass, Fraction(high)) for mass, high, low in listed if high > low]
    found = []
    if gaining:
        widest = max(high for _, high in gaining)
        exact = sum((m * (high + 1) for m, high in gaining), start=Fraction(0)) / (widest + 1)
        mass = float_below(exact)
        ratio = float_above(widest * exact / Fraction(mass))
        found = [(mass, ratio, 1.0), (mass, 1.0, ratio)]
    for share, ratio0, ratio1 in listed:
        if ratio0 == ratio1:
            weight = float_below(Fraction(ratio0))
            found.append((float_below(share), weight, weight))
    return rounded_atoms(found)


def outward_pairs(atoms: Iterable[ExactAtom]) -> tuple[BlanketAtom, ...]:
    """Return atoms rounded so that no bound falls, where several pairs tell the inputs apart.

    Every (mass; high, low) must have a mirror image of the same mass. What a pair gains in weight
    is taken from a neutral atom no heavier; where none has enough, nothing is returned.
    """
    listed = [(mass, Fraction(high), Fraction(low)) for mass, high, low in atoms if mass > 0]
    left: dict[Fraction, Fraction] = {}
    for mass, high, low in listed:
        if high == low:
            left[high] = left.get(high, Fraction(0)) + mass
    found = []
    for mass, high, low in listed:
        if high > low:
            ratio0, ratio1 = _wider(high, low)
            weight = Fraction(ratio0) + Fraction(ratio1)
            more = float_above(mass * (high + low) / weight)
            found += [(more, ratio0, ratio1), (more, ratio1, ratio0)]
            lender = max(
                (each for each in left if 2 * each <= weight),
                key=lambda each: each * left[each],
                default=None,
            )
            if lender is None:
                return ()
            left[lender] -= (Fraction(more) * weight - mass * (high + low)) / lender
    if any(mass < 0 for mass in left.values()):
        return ()
    found += [(float_below(m), float_below(w), float_below(w)) for w, m in left.items()]
    return rounded_atoms(found)


def _wider(high: Fraction, low: Fraction) -> tuple[float, float]:
    """Return floats around both ratios, whose mean is no smaller."""
    ratio0, ratio1 = float_above(high), float_below(low)
    while Fraction(ratio0) + Fraction(ratio1) < high + low:
        ratio0 = math.nextafter(ratio0, math.inf)
    return ratio0, ratio1
