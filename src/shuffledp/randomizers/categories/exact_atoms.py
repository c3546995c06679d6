"""From exact probabilities and likelihood ratios to the atoms of a profile."""

from collections.abc import Iterable
from fractions import Fraction

from shuffledp.core.profile import BlanketAtom

ExactAtom = tuple[Fraction, Fraction | int, Fraction | int]
"""Mass and two likelihood ratios."""


def rounded_atoms(atoms: Iterable[ExactAtom]) -> tuple[BlanketAtom, ...]:
    """Return atoms rounded to the nearest floats, leaving out those without mass.

    Parameters
    ----------
    atoms : iterable of (mass, ratio0, ratio1)
        Fractions.

    Examples
    --------
    >>> rounded_atoms([(Fraction(1, 4), Fraction(3), 1), (Fraction(0), 1, 1)])
    (BlanketAtom(mass=0.25, ratio0=3.0, ratio1=1.0),)
    """
    return tuple(
        BlanketAtom(mass=float(mass), ratio0=float(ratio0), ratio1=float(ratio1))
        for mass, ratio0, ratio1 in atoms
        if mass > 0
    )
