"""Any blanket law with finitely many atoms, and its delta at any number of users.

The right-hand side of (B) of docs/results/kernel.md,

    delta(epsilon) = (1/n) E[(G_1 + ... + G_n)_+],   G = r0 - e^epsilon r1,

for arbitrary pairs of likelihood ratios (r0, r1): several pairs, asymmetric ones, neutral reports
of any number of weights, at a cost that does not depend on n.

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.arrays import Floats
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics import positive_part
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import BlanketAtom

# Relative error of a ratio, or a product of two, that has gone through a few roundings.
_ROUND_OFF = 1e-15

# No double below this keeps its relative accuracy; an upper bound is never reported below it.
SMALLEST_DELTA = positive_part.SMALLEST_UPPER

# Default width of enclosures, relative to epsilon; and the width from which few nodes of a contour
# are enough, for one of many points.
NARROWEST, WIDE_WIDTH = 1e-8, 3e-5

# Deviations of the loss that are as good as infinitely many; their square is a float.
MANY_DEVIATIONS = 1e100

# Relative width of a first inversion, whose result is only a guess.
_COARSE_WIDTH, _COARSE_TOLERANCE = 1e-4, 2e-5

# A lower end of epsilon below this part of the Gaussian one is not worth computing: it is 0.
_NEXT_TO_NOTHING = 1e-4

# Approximate relative error of the Gaussian epsilon.
_GAUSSIAN_SPREAD = 0.2

# The base has at least this share of the heaviest mass, so that its mass keeps its digits.
_HEAVY = 0.1

# Largest excess of the sum of masses over 1: the round-off of a few hundred of them.
_MASS_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, init=False, eq=False)
class AtomLaw:
    """One user's law of two likelihood ratios, without epsilon.

    Parameters
    ----------
    masses : (m,) array
        Probabilities; the mass missing from 1 lies outside the blanket, where both ratios count as
        0. Atoms of equal ratios become one, in ascending order.
    ratios0, ratios1 : (m,) array
        ``R_x1 / omega`` and ``R_x1' / omega``, finite and >= 0.
    differences : (m,) array, optional
        ``ratios0 - ratios1``, where known more accurately than by subtraction. Then the masses are
        those of all outcomes, and none is missing.
    accuracy : float
        Relative error that the ratios may have, and the differences if they are given. They are
        moved by that much in the safe direction: at the upper end r0 up and r1 down, at the lower
        end the other way round.

    Raises
    ------
    ParameterError
        If masses or ratios are not as above.

    Examples
    --------
    >>> law = AtomLaw([0.25, 0.25], [3.0, 1.0], [1.0, 3.0])
    >>> round(atom_delta(law, 1, 0.0).upper, 9)  # half of the reports hide nothing
    0.5
    """

    masses: Floats
    ratios0: Floats
    ratios1: Floats
    accuracy: float
    _differences: Floats
    _doubts: Floats  # sizes that errors of differences are relative to

    def __init__(
        self,
        masses: ArrayLike,
        ratios0: ArrayLike,
        ratios1: ArrayLike,
        *,
        differences: ArrayLike | None = None,
        accuracy: float = _ROUND_OFF,
    ) -> None:
        arrays = [np.array(each, np.float64) for each in (masses, ratios0, ratios1)]
        if not all(each.shape == arrays[0].shape and each.ndim == 1 for each in arrays):
            raise ParameterError("masses, ratios0 and ratios1 must be arrays of one length")
        if not all(np.all((each >= 0.0) & (each < math.inf)) for each in arrays):
            raise ParameterError("masses and likelihood ratios must be finite and >= 0")
        total = math.fsum(arrays[0])
        if total > 1.0 + _MASS_TOLERANCE:
            raise ParameterError(f"masses add up to {total:.12g}, which is more than 1")
        if differences is None:
            merged = _merged(*arrays, missing=max(1.0 - total, 0.0))
            merged = np.vstack([merged, merged[1] - merged[2], merged[1] + merged[2]])
        else:
            exact = np.array(differences, np.float64)
            merged = np.vstack([*arrays, exact, np.abs(exact)])[:, arrays[0] > 0.0]
        merged[0] /= max(total, 1.0)
        names = ("masses", "ratios0", "ratios1", "_differences", "_doubts")
        for name, each in zip(names, merged, strict=True):
            each.flags.writeable = False
            object.__setattr__(self, name, each)
        object.__setattr__(self, "accuracy", accuracy)

    @classmethod
    def from_atoms(cls, atoms: Iterable[BlanketAtom], *, accuracy: float = _ROUND_OFF) -> "AtomLaw":
        """Return the law of atoms as a profile states them."""
        listed = [(atom.mass, atom.ratio0, atom.ratio1) for atom in atoms]
        masses, ratios0, ratios1 = zip(*listed, strict=True)
        return cls(masses, ratios0, ratios1, accuracy=accuracy)

    def gains(self, epsilon: float, *, up: bool) -> Floats:
        """Return r0 - e^epsilon r1 for each atom, rounded up or down by the stated accuracy."""
        slack = (self.accuracy + 4.0 * _ROUND_OFF) * (1.0 if up else -1.0)
        taken = math.expm1(epsilon) * self.ratios1
        return self._differences - taken + slack * (self._doubts + taken)


def mirrored(atoms: Iterable[BlanketAtom]) -> tuple[BlanketAtom, ...]:
    """Return the same atoms with the two inputs of the pair exchanged."""
    return tuple(
        BlanketAtom(mass=atom.mass, ratio0=atom.ratio1, ratio1=atom.ratio0) for atom in atoms
    )


def _merged(masses: Floats, ratios0: Floats, ratios1: Floats, *, missing: float) -> Floats:
    """Return the atoms sorted, equal ratios merged, and the missing mass as (0, 0)."""
    groups: dict[tuple[float, float], list[float]] = {(0.0, 0.0): [missing]}
    for mass, *ratios in zip(masses.tolist(), ratios0.tolist(), ratios1.tolist(), strict=True):
        groups.setdefault((ratios[0], ratios[1]), []).append(mass)
    totals = {ratios: math.fsum(group) for ratios, group in groups.items()}
    kept = sorted((ratios, mass) for ratios, mass in totals.items() if mass > 0.0)
    return np.array([[mass, *ratios] for ratios, mass in kept]).T.copy()


def _end(law: AtomLaw, num_users: int, epsilon: float, *, up: bool, width: float) -> float:
    """Return the upper, or lower, end of delta."""
    gains = law.gains(epsilon, up=up)
    # The heavy value nearest to 0: differences to a large base are rounded by more than
    # a small gain.
    heavy = np.flatnonzero(law.masses >= _HEAVY * law.masses.max())
    chosen = int(heavy[np.argmin(np.abs(gains[heavy]))])
    base = float(gains[chosen])
    others = np.delete(np.arange(gains.size), chosen)
    differences = gains[others] - base
    slack = 2.0**-52 * (np.abs(differences) if up else -np.abs(differences))

    nodes = positive_part.MOST_NODES
    if width >= WIDE_WIDTH:
        nodes = positive_part.few_nodes(others.size)
    found = positive_part.mean_positive_part(
        num_users,
        base,
        law.masses[others],
        differences + slack,
        width=width,
        most_nodes=nodes,
    )
    return found.upper if up else found.lower


def atom_delta(
    law: AtomLaw, num_users: int, epsilon: float, *, width: float = NARROWEST
) -> Enclosure:
    """Enclose delta of an atom law at one epsilon in [0, 700] (nats).

    Exactly 0 where no outcome is possible; otherwise ``upper`` is at least 1e-300. ``width`` is
    the width aimed at, relative to epsilon.
    """
    lower = _end(law, num_users, epsilon, up=False, width=width)
    upper = atom_delta_above(law, num_users, epsilon, width=width)
    return Enclosure(min(lower, upper), upper)


def atom_delta_above(
    law: AtomLaw, num_users: int, epsilon: float, *, width: float = NARROWEST
) -> float:
    """Return the upper end of `atom_delta` alone, at half the cost."""
    return min(_end(law, num_users, epsilon, up=True, width=width), 1.0)


def atom_epsilon_above(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, width: float = NARROWEST
) -> float:
    """Return an upper end of the least epsilon in [0, highest] with delta at most ``delta``."""
    if delta < positive_part.SMALLEST_UPPER:
        return highest  # no upper end of delta is below that before ``highest``
    return _inverted(law, num_users, delta, highest, up=True, width=width)[1]


def atom_epsilon_below(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, width: float = NARROWEST
) -> float:
    """Return a lower end of the least epsilon in [0, highest] with delta at most ``delta``."""
    return _inverted(law, num_users, delta, highest, up=False, width=width)[0]


def _inverted(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, up: bool, width: float
) -> tuple[float, float]:
    """Return two epsilons between which the upper, or lower, end of delta passes ``delta``."""
    guess, spread = _gaussian_epsilon(law, num_users, delta), _GAUSSIAN_SPREAD
    least = 0.0 if up else _NEXT_TO_NOTHING * min(guess, highest)

    def invert(guess: float, width: float, tolerance: float, spread: float) -> tuple[float, float]:
        @functools.cache
        def end(epsilon: float) -> float:
            return _end(law, num_users, epsilon, up=up, width=width)

        return last_above_first_below(
            end, delta, least, highest, guess=guess, spread=spread, relative_tolerance=tolerance
        )

    if width < _COARSE_WIDTH:
        # A wide enclosure costs a small part of a narrow one, and its root is a better guess.
        guess = invert(guess, _COARSE_WIDTH, _COARSE_TOLERANCE, spread)[0 if up else 1]
        spread = _COARSE_WIDTH
    above, below = invert(guess, width, max(2.0 * min(width, NARROWEST), width), spread)
    return (0.0, least) if above == below else (above, below)


def _gaussian_epsilon(law: AtomLaw, num_users: int, delta: float) -> float:
    """Return roughly the epsilon of a large crowd: sd(r0 - r1) sqrt((2 ln(1/delta) - 4)/n)."""
    difference = law.ratios0 - law.ratios1
    variance = float(law.masses @ (difference * difference))
    return math.sqrt(variance * max(2.0 * -math.log(delta) - 4.0, 0.5) / num_users)
