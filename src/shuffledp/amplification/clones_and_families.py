"""Any epsilon0-LDP randomizer: the stronger clone, evaluated from both sides.

Each other user sends, with probability 2r, r = 1/(e^epsilon0 + 1), a report that is as likely to
come from one input of the pair as from the other: pair reports of mass 2r with ratios (e^epsilon0,
1), nothing else. docs/results/clones.md proves that this dominates *every* epsilon0-LDP randomizer,
from the blanket omega = max(R_x1, R_x1') / e^epsilon0 and convex order; the proof published with
the bound (arXiv:2208.04591) was withdrawn.

k-ary randomized response: its own blanket above, explicit data of the others below.

With a = 1/(e^epsilon0 + k - 1), the blanket is uniform on the k answers with mass k a. Reports of
the two answers in question are the pair (mass a each, ratios e^epsilon0 and 1), reports of the
k - 2 others dilute (mass (k-2) a, weight 1), reports outside the blanket say nothing.

From below: if every other user holds one third answer, the others' reports are i.i.d. and the
divergence is exactly of the same form, with weight e^-epsilon0 for reports of that third answer.

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3. The
"variation-ratio" reduction (arXiv:2304.05007) is *not* an upper bound here and is not used.

The pair of Feldman, McMillan, Talwar 2021 (arXiv:2012.12803, Theorem 3.1) is a law of (B), too:
pair mass 1/p and ratios (h, l), h = 2p^2/(p+1), l = 2p/(p+1). It comes from the clone law by
spreading each atom, so its bound is never below "clones" (docs/results/clones.md).

Unary encodings (basic RAPPOR and OUE): blankets above, explicit data of the others below.

Write noise for the law of k bits each set with probability q. A report b of input x has
probability noise(b) times h if b_x = 1 and times l if b_x = 0:

    symmetric: q = 1/(1 + sqrt(p)), h = sqrt(p), l = 1/sqrt(p);
    optimized: q = 1/(p + 1),       h = (p + 1)/2, l = (p + 1)/(2p);      p = e^epsilon0 = h / l.

*Above.* omega = l * noise lies below every input's law. With ratios to omega, a report with the
pair's bits (1,0) or (0,1) has (p, 1) or (1, p); (1,1) has weight p; (0,0) has weight 1; the mass
outside omega has weight 0.

*Below.* Data where all others hold a third value, post-processed in either of two ways. Through the
pair's two bits only, which are pure noise for the others, so that ratios are h and l themselves. Or
through the third bit, too: where it is not set, which is rare for the others and not for the
victim, the pair's bits have ratios (p, 1) and (1, p), and everything else is merged into one
outcome. The second is nearly the blanket's own law from moderate epsilon0 on.

Source: Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3; docs/results/blankets.md.

*Lists of atoms* state the same laws for changes common to all, such as random participation. The
floats of a listed blanket are moved outward by more than their round-off, at most 8 units in the
last place: masses down, the ratio p of the pair up by as much and more, weights p of neutral atoms
down. None of it lowers a bound (docs/results/blankets.md, "Exact laws").
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shuffledp.amplification.atom_law import (
    NARROWEST,
    AtomLaw,
    atom_delta_above,
    atom_epsilon_above,
)
from shuffledp.amplification.method import Method, pure_violation
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.core.profile import LARGEST_EPSILON0, BlanketAtom, LocalProfile, RandomizerFamily

_K_RR = RandomizerFamily.K_RANDOMIZED_RESPONSE
_UNARY = (RandomizerFamily.SYMMETRIC_UNARY, RandomizerFamily.OPTIMIZED_UNARY)

# No end of delta is wider than this, relative to epsilon.
_WIDEST = 1e-2


def symmetric_law(
    epsilon0: float, *, low: float, pair_mass: float, others: Sequence[tuple[float, float]]
) -> AtomLaw:
    """Return a law of reports (h, l) and (l, h), h / l = e^epsilon0, each of half the pair's mass.

    ``others`` are the masses and weights of all other reports, and with the pair's add up to 1.
    """
    half, difference = 0.5 * pair_mass, low * math.expm1(epsilon0)
    kept = [(mass, weight) for mass, weight in others if mass > 0.0]
    masses, weights = [mass for mass, _ in kept], [weight for _, weight in kept]
    return AtomLaw(
        [half, half, *masses],
        [low + difference, low, *weights],
        [low, low + difference, *weights],
        differences=[difference, -difference, *(0.0 for _ in kept)],
    )


def k_rr_law(epsilon0: float, num_answers: int) -> AtomLaw:
    """Return one user's law under the blanket of k-RR, k >= 2; for k = 2 the clone law."""
    growth = math.expm1(epsilon0)
    symbol = 1.0 / (growth + num_answers)
    others = [((num_answers - 2) * symbol, 1.0), (growth * symbol, 0.0)]
    return symmetric_law(epsilon0, low=1.0, pair_mass=2.0 * symbol, others=others)


def clone_law(epsilon0: float) -> AtomLaw:
    """Return the law of one user's report in the stronger clone pair."""
    return k_rr_law(epsilon0, 2)


def weak_clone_law(epsilon0: float) -> AtomLaw:
    """Return the law of one user's report in the pair of 2021."""
    shrink = math.exp(-epsilon0)
    others = [(-math.expm1(-epsilon0), 0.0)]
    return symmetric_law(epsilon0, low=2.0 / (1.0 + shrink), pair_mass=shrink, others=others)


def third_answer_law(epsilon0: float, num_answers: int) -> AtomLaw:
    """Return one user's law where all others hold the same third answer, k >= 3."""
    growth = math.expm1(epsilon0)
    symbol = 1.0 / (growth + num_answers)
    others = [((num_answers - 3) * symbol, 1.0), ((1.0 + growth) * symbol, math.exp(-epsilon0))]
    return symmetric_law(epsilon0, low=1.0, pair_mass=2.0 * symbol, others=others)


def same_answer_laws(epsilon0: float) -> tuple[AtomLaw, AtomLaw]:
    """Return the laws of 2-RR where all others hold the victim's first, or its second, input."""
    shrink = math.exp(-epsilon0)
    masses = [1.0 / (1.0 + shrink), shrink / (1.0 + shrink)]
    ones, ratios = [1.0, 1.0], [shrink, math.exp(epsilon0)]
    gaps = [math.expm1(-epsilon0), math.expm1(epsilon0)]
    return (
        AtomLaw(masses, ones, ratios, differences=[-gap for gap in gaps]),
        AtomLaw(masses, ratios, ones, differences=gaps),
    )


def _noise(profile: LocalProfile) -> tuple[float, float, float, float]:
    """Return q, 1 - q, l and 1 - l of a unary encoding, each to full accuracy."""
    symmetric = profile.family is RandomizerFamily.SYMMETRIC_UNARY
    loss = 0.5 * profile.epsilon0 if symmetric else profile.epsilon0
    shrink, missing = math.exp(-loss), -math.expm1(-loss)
    low, rest = (shrink, missing) if symmetric else (0.5 * (1.0 + shrink), 0.5 * missing)
    return shrink / (1.0 + shrink), 1.0 / (1.0 + shrink), low, rest


def unary_law(profile: LocalProfile) -> AtomLaw:
    """Return one user's law under the blanket l * noise, seen through the pair's bits."""
    set_bit, unset_bit, low, outside = _noise(profile)
    both, neither = low * set_bit * set_bit, low * unset_bit * unset_bit
    return symmetric_law(
        profile.epsilon0,
        low=1.0,
        pair_mass=2.0 * low * set_bit * unset_bit,
        others=[(both, math.exp(profile.epsilon0)), (neither, 1.0), (outside, 0.0)],
    )


def third_value_law(profile: LocalProfile) -> AtomLaw:
    """Return one user's law where all others hold a third value, seen through the pair's bits."""
    set_bit, unset_bit, low, _ = _noise(profile)
    return symmetric_law(
        profile.epsilon0,
        low=low,
        pair_mass=2.0 * set_bit * unset_bit,
        others=[
            (set_bit * set_bit, low * math.exp(profile.epsilon0)),
            (unset_bit * unset_bit, low),
        ],
    )


def third_bit_law(profile: LocalProfile) -> AtomLaw:
    """Return one user's law for the same data, seen through the pair's bits and the third one.

    The weight of the merged outcome is the victim's probability of it over the others': 1 less the
    probability of one bit of the pair without the third, which is 1 - q times (1-q)^2 + q^2 for the
    symmetric encoding and times 1/2 for the optimized one. Written as sums of positive terms, since
    the probability is of the size of q.
    """
    set_bit, unset_bit, _, _ = _noise(profile)
    third_unset, merged = 0.5, 0.5 * (1.0 + set_bit)
    if profile.family is RandomizerFamily.SYMMETRIC_UNARY:
        third_unset, merged = set_bit, set_bit * (1.0 + 2.0 * unset_bit**2)
    pair_mass = 2.0 * set_bit * unset_bit * third_unset
    others = [(1.0 - pair_mass, merged / (1.0 - pair_mass))]
    return symmetric_law(profile.epsilon0, low=1.0, pair_mass=pair_mass, others=others)


def family_law(profile: LocalProfile) -> AtomLaw:
    """Return the law of (B) that a profile's family and epsilon0 alone allow."""
    if profile.family is _K_RR:
        return k_rr_law(profile.epsilon0, profile.domain_size or 2)
    return unary_law(profile) if profile.family in _UNARY else clone_law(profile.epsilon0)


def blanket_method(*, laws: Callable[[LocalProfile], Sequence[AtomLaw]], **about: Any) -> Method:
    """Return the method that evaluates (B) for the laws of a profile, from above."""

    def epsilon(profile: LocalProfile, n: int, delta: float) -> Enclosure:
        highest = profile.epsilon0
        found = (atom_epsilon_above(law, n, delta, highest) for law in laws(profile))
        return Enclosure(0.0, max(found))

    def delta(profile: LocalProfile, n: int, epsilon: float, width: float = 0.0) -> Enclosure:
        if epsilon >= profile.epsilon0:
            return Enclosure(0.0, 0.0)  # no report ever has a likelihood ratio above e
        width = min(max(width, NARROWEST), _WIDEST)
        found = (atom_delta_above(law, n, epsilon, width=width) for law in laws(profile))
        return Enclosure(0.0, max(found))

    return Method(proved_here=True, epsilon=epsilon, delta=delta, **about)


def _needs(*families: RandomizerFamily, hypothesis: str) -> Callable[..., str | None]:
    """Return a check that a profile belongs to one of the families."""
    return lambda profile, *_: pure_violation(profile) if profile.family in families else hypothesis


CLONES = blanket_method(
    name="clones",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, with the stronger clone law of "
    "Feldman, McMillan, Talwar 2023, arXiv:2208.04591; domination of every epsilon0-LDP randomizer "
    "proved in the shuffledp documentation",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], G = p - e or 1 - p e, each w.p. 1/(p+1)",
    laws=lambda profile: [clone_law(profile.epsilon0)],
)
FELDMAN_2021_NUMERICAL = blanket_method(
    name="feldman-2021-numerical",
    source="Feldman, McMillan, Talwar 2021, arXiv:2012.12803, Theorem 3.1, its pair of laws "
    "evaluated from both sides",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], G = s (p - e) or s (1 - p e), "
    "each w.p. 1/(2p), s = 2p/(p+1)",
    laws=lambda profile: [weak_clone_law(profile.epsilon0)],
    automatic=False,
)
K_RR_BLANKET = blanket_method(
    name="k-rr-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, evaluated exactly for k-RR",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], uniform blanket of mass k/(p+k-1)",
    laws=lambda profile: [family_law(profile)],
    violated_hypothesis=_needs(_K_RR, hypothesis="k-ary randomized response"),
)
UNARY_BLANKET = blanket_method(
    name="unary-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, for unary encodings",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+] with blanket min_x R_x >= l * noise",
    laws=lambda profile: [family_law(profile)],
    violated_hypothesis=_needs(*_UNARY, hypothesis="a unary encoding"),
)


def blanket_atoms(profile: LocalProfile) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a blanket that (B) may be evaluated with."""
    if profile.blanket:
        return profile.blanket
    if profile.delta0 > 0.0 or profile.epsilon0 > LARGEST_EPSILON0:
        return ()
    return _outward(listed_atoms(family_law(profile)))


def listed_atoms(law: AtomLaw) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a law but for the null report."""
    rows = zip(law.masses.tolist(), law.ratios0.tolist(), law.ratios1.tolist(), strict=True)
    return tuple(
        BlanketAtom(mass=mass, ratio0=one, ratio1=other) for mass, one, other in rows if one > 0.0
    )


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
