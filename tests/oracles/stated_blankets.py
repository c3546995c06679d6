"""Blankets by definition: channels of Fractions, their infima, and (B) over unmerged atoms.

Nothing here knows closed forms of masses: atoms are read off a channel, report by report.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf
from scipy.stats import binom

from oracles.enumeration import Channel
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Mass and the two likelihood ratios, exact or rounded.
Atom = tuple[Fraction, Fraction, Fraction] | tuple[float, float, float]


def subset_selection(k: int, size: int, p: Fraction) -> Channel:
    """A subset of ``size`` answers is p times as likely if it holds the truth."""
    subsets = list(itertools.combinations(range(k), size))
    rows = [[p if x in subset else Fraction(1) for subset in subsets] for x in range(k)]
    return [[chance / sum(row) for chance in row] for row in rows]


def linear_hashing(g: int, k: int, p: Fraction) -> Channel:
    """A uniform seed a in Z_g^m and g-ary randomized response on <a, x> mod g."""
    num_digits = 1
    while g**num_digits < k:
        num_digits += 1
    seeds = list(itertools.product(range(g), repeat=num_digits))
    keep, lie = p / (p + g - 1), 1 / (p + g - 1)
    rows = []
    for x in range(k):
        digits = [x // g**i % g for i in range(num_digits)]
        hashes = [sum(a * d for a, d in zip(seed, digits, strict=True)) % g for seed in seeds]
        rows.append([(keep if y == h else lie) / len(seeds) for h in hashes for y in range(g)])
    return rows


def atoms_of(channel: Channel, pair: tuple[int, int] = (0, 1)) -> list[Atom]:
    """Atoms of inf_x R_x, one a report: (mass, R_x1 / omega, R_x1' / omega)."""
    atoms = []
    for column in zip(*channel, strict=True):
        mass = min(column)
        atoms.append((mass, column[pair[0]] / mass, column[pair[1]] / mass))
    return atoms


def k_rr_atoms(p: float, k: int) -> list[Atom]:
    """k-RR: its two answers, and the k - 2 others as one."""
    mass = 1.0 / (p + k - 1.0)
    return [(mass, p, 1.0), (mass, 1.0, p), ((k - 2) * mass, 1.0, 1.0)]


def hashing_atoms(p: float, g: int, num_seeds: float = math.inf) -> list[Atom]:
    """Two inputs whose digits differ, seeds with equal and unequal hashes counted."""
    lie, meet = 1.0 / (p + g - 1.0), 1.0 / g
    return [
        (lie * (1.0 - meet), p, 1.0),
        (lie * (1.0 - meet), 1.0, p),
        (lie * (meet - 1.0 / num_seeds), p, p),
        (lie * ((g - 2) * (1.0 - meet) + (g - 1) * (meet - 1.0 / num_seeds)), 1.0, 1.0),
        (1.0 / num_seeds, 1.0, 1.0),
    ]


def stated(epsilon0: float, atoms: Sequence[Atom], domain_size: int | None = None) -> LocalProfile:
    """A particular randomizer that states these atoms, rounded to the nearest floats."""
    return LocalProfile(
        epsilon0=epsilon0,
        family=RandomizerFamily.OTHER,
        domain_size=domain_size,
        blanket=tuple(
            BlanketAtom(mass=float(mass), ratio0=float(ratio0), ratio1=float(ratio1))
            for mass, ratio0, ratio1 in atoms
        ),
    )


def epsilon0_of(p: Fraction) -> float:
    """ln p, rounded up by a little as a randomizer's is."""
    return math.nextafter(math.log(p), math.inf)


def merged(atoms: Sequence[Atom]) -> list[tuple[mpf, mpf, mpf]]:
    """The same atoms with equal ratios added up, for sums over numbers of reports."""
    masses: dict[tuple[mpf, mpf], mpf] = {}
    for mass, *ratios in atoms:
        key = tuple(_exact(ratio) for ratio in ratios)
        masses[key] = masses.get(key, mpf(0)) + _exact(mass)
    return [(mass, *ratios) for ratios, mass in masses.items()]


def _exact(number: Fraction | float) -> mpf:
    if isinstance(number, Fraction):
        return mpf(number.numerator) / mpf(number.denominator)
    return mp.mpf(number)


class ThreeWeights:
    """(B) for a pair (p, 1), (1, p) and neutral weights p, 1 and 0; n up to a few hundred.

    A plain sum over the numbers of reports of each kind; outcomes below 1e-24 are left out, so it
    errs downwards, by less than 1e-18.
    """

    def __init__(
        self, p: float, half_pair_mass: float, heavy_mass: float, light_mass: float, num_users: int
    ) -> None:
        self._p, self._num_users = p, num_users
        counts = np.arange(num_users + 1)
        pair_law = binom.pmf(counts, num_users, 2.0 * half_pair_mass)
        left = 1.0 - 2.0 * half_pair_mass
        kept = []
        for pairs in np.flatnonzero(pair_law > 1e-24):
            heavy_law = binom.pmf(counts, num_users - pairs, heavy_mass / left)
            for heavy in np.flatnonzero(pair_law[pairs] * heavy_law > 1e-24):
                light_law = binom.pmf(
                    counts, num_users - pairs - heavy, light_mass / (left - heavy_mass)
                )
                masses = pair_law[pairs] * heavy_law[heavy] * light_law
                light = np.flatnonzero(masses > 1e-24)
                kept.append(
                    np.stack([np.full(light.size, pairs), heavy * p + light, masses[light]])
                )
        table = np.concatenate(kept, axis=1)
        self._pairs, self._neutral, self._masses = table[0].astype(int), table[1], table[2]
        points = binom.pmf(counts[None, :], counts[:, None], 0.5)
        tails = np.cumsum(points[:, ::-1], axis=1)[:, ::-1]
        padding = np.zeros((num_users + 1, 2))
        self._tails = np.concatenate([tails, padding], axis=1)
        beyond = np.cumsum(tails[:, ::-1], axis=1)[:, ::-1]  # sum of tails from m on
        self._beyond = np.concatenate([beyond, padding], axis=1)

    def delta(self, epsilon: float) -> float:
        """Sum of masses * E[(gain A - loss (B - A) - slope W)_+] / n, in positive terms."""
        e, p = math.exp(epsilon), self._p
        gain, loss = p - e, e * p - 1.0
        # (gain + loss) E[(A - y)_+]
        y = (loss * self._pairs + (e - 1.0) * self._neutral) / (gain + loss)
        inside = y < self._pairs
        pairs, y = self._pairs[inside], y[inside]
        heads = np.floor(y).astype(int) + 1
        excess = (heads - y) * self._tails[pairs, heads] + self._beyond[pairs, heads + 1]
        return float((self._masses[inside] * excess).sum()) * (gain + loss) / self._num_users

    def epsilon(self, delta: float, highest: float) -> float:
        """Least epsilon whose delta is at most ``delta``, by bisection."""
        low, high = 0.0, highest
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high
