"""Randomizers that state their own blanket: local hashing, subset selection, user-defined ones.

The profile lists atoms (mass; r0, r1) of omega = inf_x R_x for the worst pair of inputs. The mass
missing from one is outside omega, of weight 0. Write p = e^epsilon0, e = e^epsilon >= 1, and B
for the right-hand side of (B) in docs/results/kernel.md. `atom_law` evaluates B for any atoms; this
module makes up for the digits that stated numbers lack. Four steps change the law of one report,
and none of them lowers B:

1. *Scale*: all ratios times s >= 1. G becomes s G, hence B becomes s B >= B.
2. *Favour*: r0 grows or r1 falls. G rises, and so does every sum.
3. *Spread*: (m; r0, r1) becomes (m r; r0 / r, r1 / r), 0 < r < 1, and mass m (1 - r) of weight 0.
   The mean stays, so this goes up in convex order, and convex order survives sums of i.i.d. terms.
4. *Widen*: pair atoms of one weight c = (r0 + r1)/2 have G = (e + 1) d - (e - 1) c, where
   d = (r0 - r1)/2 has mean 0 if both ratios have mean 1 and all other atoms are neutral, r0 = r1.
   By LDP d is within c (p - 1)/(p + 1) of 0. A law on an interval, with its mean in the middle, is
   dominated in convex order by the fair law on the two ends. So h / l may be taken to be e^epsilon0
   itself, with c kept.

Let the stated masses and ratios be right to the relative error u = 1e-10. True values have a star.

*One symmetric pair* (a; h, l), (a; l, h) beside neutral atoms (m; w, w), truly neutral. With V the
sum of mass times weight and c the largest weight, both over the pair atoms, the law evaluated has

    pair mass A' = (1 - 4 u) V / c, weight c' = (1 + 8 u) c; neutral m' = (1 - 4 u) m, w' = w.

It dominates the true law: scale by s = A' c' / V*; spread each pair atom to weight c' and widen it;
spread each neutral atom to mass m', which leaves it a weight of at least w. That is allowed, since

    s >= 1,  that is A' c' >= V*:        (1 - 4 u) (1 + 8 u) >= (1 + u)^2,
    c' >= s c*,  that is A' c* <= V*:    (1 - 4 u) (1 + u) <= (1 - u)^2,
    m' <= m*  and  m' w' <= m* w*:       1 - 4 u <= (1 - u)^2,

each with room of u at least, where the dozen roundings of this file take 1e-15. It raises epsilon
by about 1e-9 of itself.

*Any other atoms.* Spread each true atom to mass m' = (1 - 2 u) m, which leaves it the ratios
r0* m* / m' <= (1 + 5 u) r0 and r1* m* / m' >= r1; favour it up to these. So the law evaluated has
masses (1 - 2 u) m and ratios (1 + 5 u) r0 and r1. That raises epsilon by about 5 u, in nats: more
than above where epsilon is tiny, and nothing that matters elsewhere. Both orders of the pair count.

A symmetric pair whose stated h / l is below p is widened to (1 + 4 u) h / l only, which its true
ratio does not exceed either.

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3; the steps are proved above.
"""

import math
from functools import partial

import numpy as np

from shuffledp.amplification.atom_law import AtomLaw, mirrored
from shuffledp.amplification.clones_and_families import blanket_method
from shuffledp.amplification.method import pure_violation
from shuffledp.core.profile import LARGEST_EPSILON0, BlanketAtom, LocalProfile, RandomizerFamily

# Relative error u that stated masses and ratios may have, and the tolerance of their sums.
ACCURACY = 1e-10
_MEAN_TOLERANCE = 1e-9

# Smaller masses lose their relative accuracy to underflow.
_SMALLEST_PAIR_MASS = 1e-290


def violated_hypothesis(profile: LocalProfile, *_: object) -> str | None:
    """Return the hypothesis that the profile does not meet, or None."""
    if profile.family is not RandomizerFamily.OTHER or not profile.blanket:
        return "a randomizer that states its blanket"
    return _nonsense(profile) or pure_violation(profile)


def _nonsense(profile: LocalProfile) -> str | None:
    """Return the property of every epsilon0-LDP blanket that this one lacks, or None."""
    for atom in profile.blanket:
        if not 0.0 <= atom.mass <= 1.0:  # written so that NaN fails
            return f"stated masses in [0, 1] (one is {atom.mass})"
        for ratio in (atom.ratio0, atom.ratio1):
            if not ratio >= 1.0 - ACCURACY or not math.log(ratio) <= profile.epsilon0 + ACCURACY:
                return f"stated likelihood ratios in [1, e^epsilon0] (one is {ratio})"
    telling = math.fsum(atom.mass for atom in profile.blanket if atom.ratio0 != atom.ratio1)
    if telling < _SMALLEST_PAIR_MASS:
        return "stated atoms that tell the two inputs apart"
    total = math.fsum(atom.mass for atom in profile.blanket)
    if total > 1.0 + ACCURACY:
        return f"stated masses that add up to at most 1 (here {total:.12g})"
    mean0 = math.fsum(atom.mass * atom.ratio0 for atom in profile.blanket)
    mean1 = math.fsum(atom.mass * atom.ratio1 for atom in profile.blanket)
    if max(abs(mean0 - 1.0), abs(mean1 - 1.0)) > _MEAN_TOLERANCE:
        return (
            "likelihood ratios of mean 1 over the stated blanket "
            f"(here {mean0:.12g} and {mean1:.12g})"
        )
    return None


def _has_one_symmetric_pair(blanket: tuple[BlanketAtom, ...]) -> bool:
    """Return True if all atoms but one pair, (h, l) and (l, h) of equal mass, are neutral."""
    gaining = [atom for atom in blanket if atom.ratio0 > atom.ratio1]
    losing = list(mirrored(atom for atom in blanket if atom.ratio0 < atom.ratio1))
    if not gaining or not losing:
        return False
    alike = partial(math.isclose, rel_tol=_MEAN_TOLERANCE)
    masses = [math.fsum(atom.mass for atom in side) for side in (gaining, losing)]
    first = gaining[0]
    return alike(*masses) and all(
        alike(atom.ratio0, first.ratio0) and alike(atom.ratio1, first.ratio1)
        for atom in gaining + losing
    )


def _symmetric_law(profile: LocalProfile) -> AtomLaw:
    """Return a law that dominates one symmetric pair beside neutral atoms.

    The pair is widened to the largest ratio that the loss and the stated digits allow.
    """
    pair = [atom for atom in profile.blanket if atom.ratio0 != atom.ratio1]
    weights = [0.5 * (atom.ratio0 + atom.ratio1) for atom in pair]
    weight = max(weights)
    share = math.fsum(atom.mass * own for atom, own in zip(pair, weights, strict=True))
    pair_mass = (1.0 - 4.0 * ACCURACY) * share / weight
    widest = max(max(atom.ratio0 / atom.ratio1, atom.ratio1 / atom.ratio0) for atom in pair)
    ratio = min(math.exp(profile.epsilon0), (1.0 + 4.0 * ACCURACY) * widest)
    low = (1.0 + 8.0 * ACCURACY) * weight * 2.0 / (ratio + 1.0)
    high, half = low * ratio, 0.5 * pair_mass
    neutral = [atom for atom in profile.blanket if atom.ratio0 == atom.ratio1]
    masses = [(1.0 - 4.0 * ACCURACY) * atom.mass for atom in neutral]
    equal = [atom.ratio0 for atom in neutral]
    return AtomLaw([half, half, *masses], [high, low, *equal], [low, high, *equal])


def dominating_laws(profile: LocalProfile) -> list[AtomLaw]:
    """Return laws the larger of which dominates a profile's stated blanket, for both orders."""
    if _has_one_symmetric_pair(profile.blanket) and profile.epsilon0 <= LARGEST_EPSILON0:
        return [_symmetric_law(profile)]
    orders = dict.fromkeys(
        tuple(sorted((atom.ratio0, atom.ratio1, atom.mass) for atom in atoms))
        for atoms in (profile.blanket, mirrored(profile.blanket))
    )
    laws = []
    for atoms in orders:
        ratios0, ratios1, masses = np.array(atoms).T
        masses, ratios0 = (1.0 - 2.0 * ACCURACY) * masses, (1.0 + 5.0 * ACCURACY) * ratios0
        laws.append(AtomLaw(masses, ratios0, ratios1))
    return laws


STATED_BLANKET = blanket_method(
    name="stated-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, for the blanket that the randomizer "
    "states",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], G = r0 - e r1 over the stated atoms",
    assumptions=(
        "The blanket that the randomizer states is that of its worst pair of inputs: every mass "
        "and likelihood ratio right to ten digits, equal ratios exactly equal.",
    ),
    laws=dominating_laws,
    violated_hypothesis=violated_hypothesis,
)
