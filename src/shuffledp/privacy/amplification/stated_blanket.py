"""A particular randomizer that states its own blanket: local hashing, subset selection, a user's.

The profile lists atoms (mass; r0, r1) of omega = inf_x R_x for the worst pair of inputs: a *pair*,
(a; h, l) and (a; l, h) with h > l, and *neutral* atoms (m; w, w). What is missing from mass one is
outside omega, of weight 0. Write c = (h + l)/2 for the weight of the pair, p = e^epsilon0,
e = e^epsilon >= 1, and B for the right-hand side of (B) in docs/explanation/amplification.md.

`SymmetricBlanket` knows two weights beside the pair's. Four steps change the law of one report into
one that it knows. None of them lowers B, so B stays an upper bound:

1. *Scale*: all ratios times s >= 1. G becomes s G, hence B becomes s B >= B.
2. *Lower*: a neutral weight w becomes w' < w. Its G = -(e - 1) w rises, and so does every sum.
3. *Spread*: (m; r0, r1) becomes (m r; r0 / r, r1 / r), 0 < r < 1, and mass m (1 - r) of weight 0.
   The mean stays, so this goes up in convex order, and convex order survives sums of i.i.d. terms.
4. *Widen*: pair atoms of one weight c have G = (e + 1) d - (e - 1) c, where d = (r0 - r1)/2 has
   mean 0, as both ratios have mean 1 and neutral atoms add nothing to the difference. By LDP
   d is within c (p - 1)/(p + 1) of 0. A law on an interval, with its mean in the middle, is
   dominated in convex order by the fair law on the two ends. So h / l may be taken to be
   e^epsilon0 itself, with c kept.

*To two weights.* Pick a weight v among the neutral ones: lower all that are above v to v (step 2),
spread all that are below v onto v and 0 (step 3, r = w / v). Lowering costs the fraction
sum m (w - v) of the mean weight, hence of epsilon; spreading adds the variance sum m w (v - w),
which costs epsilon the fraction t^2 / (2 n) of that, where t^2 is about 20. The v that seems to
lose least is evaluated, and so is the second unless the first loses next to nothing; the smaller
result counts.

*Rounding.* Let the stated masses and ratios be right to the relative error u = 1e-10, and let the
neutral atoms truly be neutral. True values have a star. With V = sum of mass times weight and
c = the largest weight, both over the pair atoms, the law evaluated has

    pair mass A' = (1 - 4 u) V / c, weight c' = (1 + 8 u) c; neutral m' = (1 - 4 u) m, w' = w.

It dominates the true law: scale by s = A' c' / V*; spread each pair atom to weight c' and widen it;
spread each neutral atom to mass m' and lower it to w'. That is allowed, since

    s >= 1,  that is A' c' >= V*:        (1 - 4 u) (1 + 8 u) >= (1 + u)^2,
    c' >= s c*,  that is A' c* <= V*:    (1 - 4 u) (1 + u) <= (1 - u)^2,
    m' <= m*  and  m' w' <= m* w*:       1 - 4 u <= (1 - u)^2,

each with room of u at least, where the dozen roundings of this file take 1e-15. It raises epsilon
by about 1e-9 of itself. To this `SymmetricBlanket` adds its own error budget.

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3; the steps are proved above.
"""

import math
from dataclasses import dataclass

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.privacy.amplification.method import Method
from shuffledp.privacy.amplification.symmetric_blanket import SymmetricLaw, least_enclosure

# Relative error u that stated masses and ratios may have, and how far off their sums may then be.
ACCURACY = 1e-10
_MEAN_TOLERANCE = 1e-9
_THINNER, _HEAVIER = 1.0 - 4.0 * ACCURACY, 1.0 + 8.0 * ACCURACY

# Smaller masses lose their relative accuracy to underflow.
_SMALLEST_PAIR_MASS = 1e-290

# The second candidate is evaluated too, unless the first seems to lose less than this fraction of
# epsilon and the second this many times as much. Far out in the tails losses are larger than they
# seem; an early choice could then make epsilon grow with the number of users.
_NEGLIGIBLE, _FAR_BEHIND = 1e-3, 100.0


@dataclass(frozen=True, slots=True)
class _Stated:
    """A sound blanket, merged: mass and weight of the pair, then of each kind of neutral report."""

    pair_mass: float
    pair_weight: float
    neutrals: tuple[tuple[float, float], ...]  # (mass, weight), weights ascending


def violated_hypothesis(
    profile: LocalProfile, _num_users: int, _delta: float | None = None
) -> str | None:
    """Return what the profile's blanket lacks to be evaluated here, or None.

    Examples
    --------
    >>> half = BlanketAtom(mass=0.5, ratio0=1.0, ratio1=1.0)
    >>> other = LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, blanket=(half,))
    >>> violated_hypothesis(other, 1)
    'likelihood ratios of mean 1 over the stated blanket (here 0.5 and 0.5)'
    """
    if profile.family is not RandomizerFamily.OTHER or not profile.blanket:
        return f"a profile of the family {RandomizerFamily.OTHER.value!r} that states its blanket"
    return _nonsense(profile) or _asymmetry(profile)


def _nonsense(profile: LocalProfile) -> str | None:
    """Return what no blanket of an epsilon0-LDP randomizer can have and this one has, or None."""
    for atom in profile.blanket:
        if not 0.0 <= atom.mass <= 1.0:  # written so that NaN fails
            return f"stated masses in [0, 1] (one is {atom.mass})"
        for ratio in (atom.ratio0, atom.ratio1):
            if not ratio >= 1.0 - ACCURACY or not math.log(ratio) <= profile.epsilon0 + ACCURACY:
                return f"stated likelihood ratios in [1, e^epsilon0] (one is {ratio})"
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


def _asymmetry(profile: LocalProfile) -> str | None:
    """Return how the pair atoms fail to be one symmetric pair, or None.

    The bound does not rest on this, as step 4 shows: it keeps out atoms that step 4 serves badly,
    and such as were meant to be something else.
    """
    gaining = [atom for atom in profile.blanket if atom.ratio0 > atom.ratio1]
    losing = [atom for atom in profile.blanket if atom.ratio0 < atom.ratio1]
    mass = math.fsum(atom.mass for atom in gaining)
    mirrored = math.fsum(atom.mass for atom in losing)
    if min(mass, mirrored) < _SMALLEST_PAIR_MASS:
        return "a stated pair of atoms that tell the two inputs apart, one in favour of each"
    if not math.isclose(mass, mirrored, rel_tol=_MEAN_TOLERANCE):
        return (
            f"a symmetric pair of stated atoms (its masses are {mass:.12g} and {mirrored:.12g}; "
            "ratios of neutral atoms must be equal to the last digit)"
        )
    high, low = gaining[0].ratio0, gaining[0].ratio1
    ratios = [(atom.ratio0, atom.ratio1) for atom in gaining]
    ratios += [(atom.ratio1, atom.ratio0) for atom in losing]
    for ratio_pair in ratios:
        if not all(
            math.isclose(found, wanted, rel_tol=_MEAN_TOLERANCE)
            for found, wanted in zip(ratio_pair, (high, low), strict=True)
        ):
            return (
                "one symmetric pair of stated atoms, (h, l) and (l, h) "
                f"(here {(high, low)} and {ratio_pair})"
            )
    return None


def _merge(blanket: tuple[BlanketAtom, ...]) -> _Stated:
    """Return a sound blanket's pair and its neutral atoms, those of equal weight as one.

    Equal to within `ACCURACY`: the smallest of such weights stands for all, which is step 2.
    """
    pair = [
        (atom.mass, 0.5 * (atom.ratio0 + atom.ratio1))
        for atom in blanket
        if atom.ratio0 != atom.ratio1
    ]
    heaviest = max(weight for _, weight in pair)
    share = math.fsum(mass * weight for mass, weight in pair)
    masses: dict[float, list[float]] = {}
    current = -math.inf
    neutrals = (
        (atom.ratio0, atom.mass)
        for atom in blanket
        if atom.ratio0 == atom.ratio1 and atom.mass > 0.0
    )
    for weight, mass in sorted(neutrals):
        if weight > current * (1.0 + ACCURACY):
            current = weight
            masses[current] = []
        masses[current].append(mass)
    return _Stated(
        pair_mass=share / heaviest,
        pair_weight=heaviest,
        neutrals=tuple((math.fsum(group), weight) for weight, group in masses.items()),
    )


def _two_weight_law(epsilon0: float, stated: _Stated, weight: float) -> SymmetricLaw:
    """Return one report's law with every neutral weight lowered to ``weight`` or spread onto it."""
    pair_mass = _THINNER * stated.pair_mass
    rest_mass = _THINNER * math.fsum(mass * min(own / weight, 1.0) for mass, own in stated.neutrals)
    return SymmetricLaw(
        epsilon0=epsilon0,
        low=_HEAVIER * stated.pair_weight * 2.0 / (math.expm1(epsilon0) + 2.0),
        pair_mass=pair_mass,
        rest_mass=rest_mass,
        base_mass=1.0 - pair_mass - rest_mass,  # at least 2 u after thinning
        rest_weight=weight,
    )


def _expected_loss(stated: _Stated, weight: float, num_users: int) -> float:
    """Return roughly which fraction of epsilon is lost to lowering and spreading; no bound."""
    lowered = math.fsum(mass * max(own - weight, 0.0) for mass, own in stated.neutrals)
    spread = math.fsum(mass * own * max(weight - own, 0.0) for mass, own in stated.neutrals)
    return lowered + 10.0 * spread / num_users


def candidate_laws(profile: LocalProfile, num_users: int) -> list[SymmetricLaw]:
    """Return one or two laws that dominate a profile's stated blanket; both are upper bounds.

    Parameters
    ----------
    profile : LocalProfile
        One without `violated_hypothesis`, epsilon0 at most 700.
    num_users : int
        Number n of users; decides which laws are worth a look, not whether they hold.

    Examples
    --------
    >>> atoms = [(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)]
    >>> blanket = tuple(BlanketAtom(mass=m, ratio0=r0, ratio1=r1) for m, r0, r1 in atoms)
    >>> binary = LocalProfile(
    ...     epsilon0=math.log(3.0), family=RandomizerFamily.OTHER, blanket=blanket
    ... )
    >>> [round(law.pair_mass, 8) for law in candidate_laws(binary, 1000)]
    [0.5]
    """
    stated = _merge(profile.blanket)
    if not stated.neutrals:
        return [_two_weight_law(profile.epsilon0, stated, 1.0)]
    losses = sorted(
        (_expected_loss(stated, weight, num_users), weight) for _, weight in stated.neutrals
    )
    least = losses[0][0]
    worthwhile = [
        weight for loss, weight in losses[:2] if loss <= _FAR_BEHIND * least or least > _NEGLIGIBLE
    ]
    return [_two_weight_law(profile.epsilon0, stated, weight) for weight in worthwhile]


def _epsilon(profile: LocalProfile, num_users: int, delta: float) -> Enclosure:
    laws = candidate_laws(profile, num_users)
    return least_enclosure(
        laws, num_users, lambda blanket: blanket.enclose_epsilon(delta, profile.epsilon0)
    )


def _delta(profile: LocalProfile, num_users: int, epsilon: float) -> Enclosure:
    laws = candidate_laws(profile, num_users)
    return least_enclosure(laws, num_users, lambda blanket: blanket.enclose(epsilon))


STATED_BLANKET = Method(
    name="stated-blanket",
    source=(
        "Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, for the blanket that the randomizer "
        "states, its neutral reports brought to two weights as proved in the shuffledp "
        "documentation"
    ),
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], G = r0 - e r1 over the stated atoms",
    assumptions=(
        "The blanket that the randomizer states is that of its worst pair of inputs: every mass "
        "and likelihood ratio right to ten digits, equal ratios exactly equal.",
    ),
    violated_hypothesis=violated_hypothesis,
    epsilon=_epsilon,
    delta=_delta,
)
