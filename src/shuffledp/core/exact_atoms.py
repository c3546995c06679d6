"""Conversion of exact probabilities and likelihood ratios to the atoms of a profile.

A blanket is rounded so that the bound (B) of its atoms, taken as exact numbers, is at least that of
the exact law, at every number of users and epsilon >= 0. The error is a few units in the last place
of each mass and ratio. Write p = e^epsilon0, e = e^epsilon; *spread*, *favour* and *widen* are the
steps of `shuffledp.amplification.stated_blanket`, none of which lowers (B).

*One pair* (a; p, 1), (a; 1, p) beside neutral atoms (m; w, w) is rounded to floats a' <= a,
p' a' >= p a, m' <= m and w' <= w. *Proof.* Spread and favour neutral atoms. Spread the pair to
(a'; h, l), h = p a/a', l = a/a'. It remains that lowering l to 1 and raising h to p' do not lower
(B). Given B pair reports and the weight Z >= 0 of all others, let H of the former favour the first
input: S = H (h - e l) - (B - H)(e h - l) - (e - 1) Z > 0 just if H >= m. With T = Pr[H >= m] and
b = Pr[Bin(B, 1/2) = m],

    0 <= E[S_+ | B, Z] = (h - l)(1 + e) m b / 2 - (e - 1) ((h + l) B / 2 + Z) T,

hence (1 + e) m b >= (e - 1) B T, so that the derivative ((1 + e) m b - (e - 1) B T)/2 of E[S_+] in
h is >= 0, and -((1 + e) m b + (e - 1) B T)/2, the one in l, is <= 0.

Pairs (a_j; p_j, 1) that differ by rounding only first become one of ratio p = max p_j and mass
sum a_j (p_j + 1)/(p + 1), by spreading and widening.

*Several pairs* (a_j; h_j, l_j), (a_j; l_j, h_j). Take floats H_j >= h_j and L_j <= l_j with
H_j + L_j >= h_j + l_j, and a_j' >= a_j (h_j + l_j)/(H_j + L_j); for each pair lower the mass of a
neutral atom of weight w <= (H_j + L_j)/2 by (a_j' (H_j + L_j) - a_j (h_j + l_j))/w; round neutral
masses and weights down. *Proof.* Spread the pair, and the mass taken, to the weight (H_j + L_j)/2
and widen both; the rest is favour.

*Users who stay away* add (1 - q; 1, 1) and multiply masses by q, exactly.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from shuffledp.core.numerics.enclosure import float_above, float_below
from shuffledp.core.profile import BlanketAtom

LONGEST_POWER = 64
"""Largest power in masses: the exact number takes that many words."""

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

    Atoms (mass; ratio, 1) that distinguish the inputs of the pair must have mirror images of the
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
    """Return atoms rounded so that no bound falls, where several pairs distinguish the inputs.

    Every (mass; high, low) must have a mirror image of the same mass. The weight that a pair gains
    is taken from a neutral atom no heavier; if none has enough, no atoms are returned.
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
