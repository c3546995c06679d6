"""Any blanket law with finitely many atoms, and its delta at any number of users.

The right-hand side of (B) of docs/results/kernel.md,

    delta(epsilon) = (1/n) E[(G_1 + ... + G_n)_+],   G = r0 - e^epsilon r1,

for arbitrary pairs of likelihood ratios (r0, r1): several pairs, asymmetric ones, neutral reports
of any number of weights. `symmetric_blanket` is the sharper instrument where the law is as simple
as it wants; this one takes everything, at a cost that does not depend on n.

Blankets and explicit data of the known families, as lists of atoms.

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

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.numerics.positive_part import (
    MOST_NODES,
    SMALLEST_UPPER,
    few_nodes,
    mean_positive_part,
)
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Relative error of a ratio, or a product of two, that has gone through a few roundings.
_ROUND_OFF = 1e-15

# Width of enclosures unless another is asked for, relative to epsilon.
NARROWEST = 1e-7

# Of a first inversion, whose result is only a guess.
_COARSE_WIDTH, _COARSE_TOLERANCE = 1e-4, 2e-5

# About how far off the Gaussian epsilon is, relatively.
_GAUSSIAN_SPREAD = 0.2

# By how much masses may add up to more than one: the round-off of a few hundred of them.
_MASS_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, init=False, eq=False)
class AtomLaw:
    """One user's law of two likelihood ratios, without epsilon.

    Parameters
    ----------
    masses : (m,) array
        Probabilities; what is missing from 1 lies outside the blanket, where both ratios count as
        0. Atoms of equal ratios become one, in ascending order.
    ratios0, ratios1 : (m,) array
        ``R_x1 / omega`` and ``R_x1' / omega``, finite and >= 0.
    accuracy : float
        Relative error that the ratios may have. They are moved by that much in the safe direction:
        at the upper end r0 up and r1 down, at the lower end the other way round.

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

    masses: NDArray[np.float64]
    ratios0: NDArray[np.float64]
    ratios1: NDArray[np.float64]
    accuracy: float

    def __init__(
        self,
        masses: ArrayLike,
        ratios0: ArrayLike,
        ratios1: ArrayLike,
        *,
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
        merged = _merged(*arrays, missing=max(1.0 - total, 0.0))
        merged[0] /= max(total, 1.0)
        for name, each in zip(("masses", "ratios0", "ratios1"), merged, strict=True):
            each.flags.writeable = False
            object.__setattr__(self, name, each)
        object.__setattr__(self, "accuracy", accuracy)

    @classmethod
    def from_atoms(cls, atoms: Iterable[BlanketAtom], *, accuracy: float = _ROUND_OFF) -> "AtomLaw":
        """Return the law of atoms as a profile states them."""
        listed = [(atom.mass, atom.ratio0, atom.ratio1) for atom in atoms]
        masses, ratios0, ratios1 = zip(*listed, strict=True)
        return cls(masses, ratios0, ratios1, accuracy=accuracy)

    @property
    def reversed(self) -> "AtomLaw":
        """The law of the same pair in the other order."""
        return AtomLaw(self.masses, self.ratios1, self.ratios0, accuracy=self.accuracy)

    def gains(self, epsilon: float, *, up: bool) -> NDArray[np.float64]:
        """Return r0 - e^epsilon r1 for each atom, rounded up or down by the stated accuracy."""
        slack = (self.accuracy + 4.0 * _ROUND_OFF) * (1.0 if up else -1.0)
        return self.ratios0 * (1.0 + slack) - math.exp(epsilon) * (1.0 - slack) * self.ratios1


def mirrored(atoms: Iterable[BlanketAtom]) -> tuple[BlanketAtom, ...]:
    """Return the same atoms with the two inputs of the pair exchanged."""
    return tuple(
        BlanketAtom(mass=atom.mass, ratio0=atom.ratio1, ratio1=atom.ratio0) for atom in atoms
    )


def _merged(
    masses: NDArray[np.float64],
    ratios0: NDArray[np.float64],
    ratios1: NDArray[np.float64],
    *,
    missing: float,
) -> NDArray[np.float64]:
    """Return the atoms sorted, those of equal ratios as one, and what is missing as (0, 0)."""
    groups: dict[tuple[float, float], list[float]] = {(0.0, 0.0): [missing]}
    for mass, *ratios in zip(masses.tolist(), ratios0.tolist(), ratios1.tolist(), strict=True):
        groups.setdefault((ratios[0], ratios[1]), []).append(mass)
    totals = {ratios: math.fsum(group) for ratios, group in groups.items()}
    kept = sorted((ratios, mass) for ratios, mass in totals.items() if mass > 0.0)
    return np.array([[mass, *ratios] for ratios, mass in kept]).T.copy()


def _end(
    law: AtomLaw, num_users: int, epsilon: float, *, up: bool, width: float, rough: bool = False
) -> Enclosure:
    """Return the enclosure whose upper, or lower, end errs on the safe side."""
    gains = law.gains(epsilon, up=up)
    heaviest = int(np.argmax(law.masses))
    base = float(gains[heaviest])
    others = np.delete(np.arange(gains.size), heaviest)
    differences = gains[others] - base
    # Where the base is large, that rounding may be larger than a small gain.
    slack = 2.0**-52 * (np.abs(differences) if up else -np.abs(differences))
    return mean_positive_part(
        num_users,
        base,
        law.masses[others],
        differences + slack,
        width=width,
        most_nodes=few_nodes(others.size) if rough else MOST_NODES,
    )


def atom_delta(
    law: AtomLaw,
    num_users: int,
    epsilon: float,
    *,
    width: float = NARROWEST,
    rough: bool = False,
) -> Enclosure:
    """Enclose delta of an atom law at one epsilon in [0, 700] (nats).

    Exactly 0 where no outcome is possible; otherwise ``upper`` is at least 1e-300. ``width`` is
    that aimed at, relative to epsilon; ``rough``: few nodes are enough for one of many points.
    """
    lower = _end(law, num_users, epsilon, up=False, width=width, rough=rough).lower
    upper = atom_delta_above(law, num_users, epsilon, width=width, rough=rough)
    return Enclosure(min(lower, upper), upper)


def atom_delta_above(
    law: AtomLaw,
    num_users: int,
    epsilon: float,
    *,
    width: float = NARROWEST,
    rough: bool = False,
) -> float:
    """Return the upper end of `atom_delta` alone, at half the cost."""
    return min(_end(law, num_users, epsilon, up=True, width=width, rough=rough).upper, 1.0)


def atom_epsilon(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, width: float = NARROWEST
) -> Enclosure:
    """Enclose the least epsilon in [0, highest] where an atom law's delta is at most ``delta``."""
    upper = atom_epsilon_above(law, num_users, delta, highest, width=width)
    lower = atom_epsilon_below(law, num_users, delta, highest, width=width)
    return Enclosure(min(lower, upper), upper)


def atom_epsilon_above(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, width: float = NARROWEST
) -> float:
    """Return the upper end of `atom_epsilon` alone, at half the cost."""
    if delta < SMALLEST_UPPER:
        return highest  # no upper end of delta is below that before
    _, upper = _inverted(law, num_users, delta, highest, up=True, width=width)
    return upper


def atom_epsilon_below(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, width: float = NARROWEST
) -> float:
    """Return the lower end of `atom_epsilon` alone, at half the cost."""
    lower, _ = _inverted(law, num_users, delta, highest, up=False, width=width)
    return lower


def _inverted(
    law: AtomLaw, num_users: int, delta: float, highest: float, *, up: bool, width: float
) -> tuple[float, float]:
    """Return where the upper, or lower, end of delta is above ``delta``, and next to it not."""

    def invert(guess: float, width: float, tolerance: float, spread: float) -> tuple[float, float]:
        @functools.cache
        def end(epsilon: float) -> float:
            found = _end(law, num_users, epsilon, up=up, width=width)
            return found.upper if up else found.lower

        return last_above_first_below(
            end, delta, 0.0, highest, guess=guess, spread=spread, relative_tolerance=tolerance
        )

    guess, spread = _gaussian_epsilon(law, num_users, delta), _GAUSSIAN_SPREAD
    if width < _COARSE_WIDTH:
        # A wide enclosure costs a small part of a narrow one, and its root is a better guess.
        guess = invert(guess, _COARSE_WIDTH, _COARSE_TOLERANCE, spread)[0 if up else 1]
        spread = _COARSE_WIDTH
    return invert(guess, width, max(2e-8, width), spread)


def _gaussian_epsilon(law: AtomLaw, num_users: int, delta: float) -> float:
    """Return roughly the epsilon of a large crowd: sd(r0 - r1) sqrt(2 ln(1/delta) / n)."""
    difference = law.ratios0 - law.ratios1
    variance = float(law.masses @ (difference * difference))
    return math.sqrt(variance * max(2.0 * -math.log(delta) - 4.0, 0.5) / num_users)


# Beyond this p overflows; the accountant stops amplifying long before.
LARGEST_EPSILON0 = 700.0


def blanket_atoms(profile: LocalProfile) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a blanket that (B) may be evaluated with."""
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
    """Return the atoms of explicit data: ratios to the law of the value that all others hold."""
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
