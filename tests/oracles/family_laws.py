"""Atom laws of families, with both ends of what is computed from them, and in the oracles' form."""

from dataclasses import dataclass

from oracles import sums
from shuffledp.amplification import atom_law, stated_blanket
from shuffledp.amplification import clones_and_families as families
from shuffledp.amplification.atom_law import AtomLaw, atom_delta
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import RandomizerFamily


def atom_epsilon(law, num_users, delta, highest, **width):
    """Both ends of the least epsilon in [0, highest] where a law's delta is at most ``delta``."""
    upper = atom_law.atom_epsilon_above(law, num_users, delta, highest, **width)
    lower = atom_law.atom_epsilon_below(law, num_users, delta, highest, **width)
    return Enclosure(min(lower, upper), upper)


@dataclass(frozen=True)
class Blanket:
    """A law for so many users."""

    law: AtomLaw
    num_users: int

    def enclose(self, epsilon):
        return atom_delta(self.law, self.num_users, epsilon)

    def enclose_epsilon(self, delta, highest):
        return atom_epsilon(self.law, self.num_users, delta, highest)


def both_ends(profile, num_users, epsilon, laws=None):
    """Both ends of the delta of the laws that a profile's own result evaluates, or of others."""
    if laws is None and profile.family is RandomizerFamily.OTHER:
        laws = stated_blanket.dominating_laws(profile)
    found = [atom_delta(law, num_users, epsilon) for law in laws or [families.family_law(profile)]]
    return Enclosure(max(each.lower for each in found), max(each.upper for each in found))


def neutral_atoms(law):
    """Masses and weights of the neutral atoms, the heaviest weight first."""
    found = [
        (float(mass), float(ratio0))
        for mass, ratio0, ratio1 in zip(law.masses, law.ratios0, law.ratios1, strict=True)
        if ratio0 == ratio1
    ]
    return sorted(found, key=lambda atom: -atom[1])


def pair_of(law):
    """The mass of both atoms of the pair, and their larger and smaller ratio."""
    mass = sum(
        float(m) for m, a, b in zip(law.masses, law.ratios0, law.ratios1, strict=True) if a != b
    )
    return mass, float(law.ratios0[0]), float(law.ratios1[0])


def mean_weight(law):
    """The mean of both likelihood ratios, which is one."""
    return float(law.masses @ (0.5 * (law.ratios0 + law.ratios1)))


def weights_of(law):
    """A law of one pair and at most two kinds of other reports, in the form of `sums`."""
    mass, high, low = pair_of(law)
    neutral = [*neutral_atoms(law), (0.0, 0.0)]
    rest, base = (neutral[0], neutral[1]) if len(neutral) == 3 else ((0.0, 1.0), neutral[0])
    return sums.Weights(
        pair_mass=mass,
        low=low,
        high=high,
        rest_mass=rest[0],
        rest_weight=rest[1],
        base_weight=base[1],
    )
