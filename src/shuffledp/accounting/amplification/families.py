"""Any epsilon0-LDP randomizer: the stronger clone, evaluated from both sides.

Each other user sends, with probability 2r, r = 1/(e^epsilon0 + 1), a report that is as likely to
come from one input of the pair as from the other. In the form of `symmetric_blanket`: pair reports
of mass 2r with ratios (e^epsilon0, 1), nothing else. docs/results/clones.md proves that
this dominates *every* epsilon0-LDP randomizer, from the blanket omega = max(R_x1, R_x1') /
e^epsilon0 and convex order; the proof published with the bound (arXiv:2208.04591) was withdrawn.

k-ary randomized response: its own blanket above, explicit data of the others below.

With a = 1/(e^epsilon0 + k - 1), the blanket is uniform on the k answers with mass k a. Reports of
the two answers in question are the pair (mass a each, ratios e^epsilon0 and 1), reports of the
k - 2 others dilute (mass (k-2) a, weight 1), reports outside the blanket say nothing.

From below: if every other user holds one third answer, the others' reports are i.i.d. and the
divergence is exactly of the same form, with weight e^-epsilon0 for reports of that third answer.

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3. The
"variation-ratio" reduction (arXiv:2304.05007) is *not* an upper bound here and is not used.

Unary encodings (basic RAPPOR and OUE): blankets above, explicit data of the others below.

Write noise for the law of k bits each set with probability q. A report b of input x has
probability noise(b) times h if b_x = 1 and times l if b_x = 0:

    symmetric: q = 1/(1 + sqrt(p)), h = sqrt(p), l = 1/sqrt(p);
    optimized: q = 1/(p + 1),       h = (p + 1)/2, l = (p + 1)/(2p);      p = e^epsilon0 = h / l.

*Above.* omega = l * noise lies below every input's law. With ratios to omega, a report with the
pair's bits (1,0) or (0,1) has (p, 1) or (1, p); (1,1) has weight p; (0,0) has weight 1; the mass
outside omega has weight 0. To leave two weights instead of three, either weights 1 are spread onto
p and 0 with the same mean, which raises every convex expectation; or the rare weight p is lowered
to 1, which raises every sum. (B) stays an upper bound either way.

*Below.* Data where all others hold a third value, post-processed in either of two ways. Through the
pair's two bits only, which are pure noise for the others, so that ratios are h and l themselves. Or
through the third bit, too: where it is not set, which is rare for the others and not for the
victim, the pair's bits have ratios (p, 1) and (1, p), and everything else is merged into one
outcome. The second is nearly the blanket's own law from moderate epsilon0 on.

Source: Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3; docs/results/unary-blanket.md.
"""

import math
from dataclasses import dataclass

from shuffledp.accounting.amplification.method import Method, pure_violation
from shuffledp.accounting.amplification.symmetric_blanket import (
    SymmetricBlanket,
    SymmetricLaw,
    least_enclosure,
    upper_delta,
)
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile, RandomizerFamily


def clone_law(epsilon0: float) -> SymmetricLaw:
    """Return the law of one user's report in the stronger clone pair."""
    ratio_minus_one = math.expm1(epsilon0)
    return SymmetricLaw(
        epsilon0=epsilon0,
        low=1.0,
        pair_mass=2.0 / (ratio_minus_one + 2.0),
        rest_mass=0.0,
        base_mass=ratio_minus_one / (ratio_minus_one + 2.0),
    )


def _epsilon(profile: LocalProfile, num_users: int, delta: float) -> Enclosure:
    blanket = SymmetricBlanket(clone_law(profile.epsilon0), num_users)
    return blanket.enclose_epsilon(delta, profile.epsilon0)


def _epsilon_above(profile: LocalProfile, num_users: int, delta: float) -> float:
    blanket = SymmetricBlanket(clone_law(profile.epsilon0), num_users)
    return blanket.epsilon_above(delta, profile.epsilon0)


def _delta(profile: LocalProfile, num_users: int, epsilon: float) -> Enclosure:
    return SymmetricBlanket(clone_law(profile.epsilon0), num_users).enclose(epsilon)


CLONES = Method(
    name="clones",
    source=(
        "Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, with the stronger clone law of Feldman, "
        "McMillan, Talwar 2023, arXiv:2208.04591; domination of every epsilon0-LDP randomizer "
        "proved in the shuffledp documentation"
    ),
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], G = p - e or 1 - p e, each w.p. 1/(p+1)",
    proved_here=True,
    violated_hypothesis=lambda profile, _num_users, _delta: pure_violation(profile),
    epsilon=_epsilon,
    delta=_delta,
    epsilon_above=_epsilon_above,
    delta_above=lambda profile, n, epsilon, width: upper_delta(
        (clone_law(profile.epsilon0),), n, epsilon, width
    ),
)


def blanket_law(epsilon0: float, num_answers: int) -> SymmetricLaw:
    """Return one user's law under the blanket of k-RR, k >= 2."""
    ratio_minus_one = math.expm1(epsilon0)
    symbol_mass = 1.0 / (ratio_minus_one + num_answers)
    return SymmetricLaw(
        epsilon0=epsilon0,
        low=1.0,
        pair_mass=2.0 * symbol_mass,
        rest_mass=(num_answers - 2) * symbol_mass,
        base_mass=ratio_minus_one * symbol_mass,
    )


def third_answer_law(epsilon0: float, num_answers: int) -> SymmetricLaw:
    """Return one user's law where all others hold the same third answer, k >= 3."""
    ratio_minus_one = math.expm1(epsilon0)
    symbol_mass = 1.0 / (ratio_minus_one + num_answers)
    return SymmetricLaw(
        epsilon0=epsilon0,
        low=1.0,
        pair_mass=2.0 * symbol_mass,
        rest_mass=(num_answers - 3) * symbol_mass,
        base_mass=(1.0 + ratio_minus_one) * symbol_mass,
        base_weight=math.exp(-epsilon0),
    )


def _violation(profile: LocalProfile, _num_users: int, _delta: float | None) -> str | None:
    if profile.family is not RandomizerFamily.K_RANDOMIZED_RESPONSE:
        return "k-ary randomized response"
    return pure_violation(profile)


def _blanket(profile: LocalProfile, num_users: int) -> SymmetricBlanket:
    return SymmetricBlanket(blanket_law(profile.epsilon0, profile.domain_size or 2), num_users)


K_RR_BLANKET = Method(
    name="k-rr-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, evaluated exactly for k-RR",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+], uniform blanket of mass k/(p+k-1)",
    proved_here=True,
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: _blanket(profile, n).enclose_epsilon(delta, profile.epsilon0),
    delta=lambda profile, n, epsilon: _blanket(profile, n).enclose(epsilon),
    epsilon_above=lambda profile, n, delta: _blanket(profile, n).epsilon_above(
        delta, profile.epsilon0
    ),
    delta_above=lambda profile, n, epsilon, width: upper_delta(
        (blanket_law(profile.epsilon0, profile.domain_size or 2),), n, epsilon, width
    ),
)


_UNARY = (RandomizerFamily.SYMMETRIC_UNARY, RandomizerFamily.OPTIMIZED_UNARY)


@dataclass(frozen=True, slots=True)
class _Noise:
    """The noise of a unary encoding: probability q of a bit, 1 - q, the ratio l, and 1 - l."""

    set_bit: float
    unset_bit: float
    low: float
    one_minus_low: float


def _noise(profile: LocalProfile) -> _Noise:
    """Return the noise of the profile's family, each number to full accuracy."""
    if profile.family is RandomizerFamily.SYMMETRIC_UNARY:
        shrink = math.exp(-0.5 * profile.epsilon0)
        return _Noise(
            shrink / (1.0 + shrink),
            1.0 / (1.0 + shrink),
            shrink,
            -math.expm1(-0.5 * profile.epsilon0),
        )
    shrink = math.exp(-profile.epsilon0)
    return _Noise(
        shrink / (1.0 + shrink),
        1.0 / (1.0 + shrink),
        0.5 * (1.0 + shrink),
        -0.5 * math.expm1(-profile.epsilon0),
    )


def spread_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law under the blanket omega = l * noise, weights 1 spread onto p and 0."""
    noise = _noise(profile)
    both_set = noise.low * noise.set_bit**2
    none_set = noise.low * noise.unset_bit**2
    shrink = math.exp(-profile.epsilon0)
    return SymmetricLaw(
        epsilon0=profile.epsilon0,
        low=1.0,
        pair_mass=2.0 * noise.low * noise.set_bit * noise.unset_bit,
        rest_mass=both_set + none_set * shrink,
        base_mass=noise.one_minus_low - none_set * math.expm1(-profile.epsilon0),
        rest_weight=math.exp(profile.epsilon0),
    )


def lightened_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law under the same blanket, the weight p of bits (1,1) lowered to 1."""
    noise = _noise(profile)
    return SymmetricLaw(
        epsilon0=profile.epsilon0,
        low=1.0,
        pair_mass=2.0 * noise.low * noise.set_bit * noise.unset_bit,
        rest_mass=noise.low * (noise.set_bit**2 + noise.unset_bit**2),
        base_mass=noise.one_minus_low,
    )


def dominating_laws(profile: LocalProfile) -> tuple[SymmetricLaw, ...]:
    """Return both laws; either gives an upper bound, and neither always the smaller.

    Lowering loses (p - 1) Pr[(1,1)] of the mean weight, hence of epsilon. Spreading adds a variance
    of (p - 1) Pr[(0,0)] to the weight, which costs epsilon about t^2 / (2n) of that, t its distance
    from the mean in standard deviations.
    """
    return lightened_law(profile), spread_law(profile)


def third_value_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law where all others hold a third value, seen through the pair's bits."""
    noise = _noise(profile)
    return SymmetricLaw(
        epsilon0=profile.epsilon0,
        low=noise.low,
        pair_mass=2.0 * noise.set_bit * noise.unset_bit,
        rest_mass=noise.set_bit**2,
        base_mass=noise.unset_bit**2,
        rest_weight=noise.low * math.exp(profile.epsilon0),
        base_weight=noise.low,
    )


def third_bit_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law for the same data, seen through the pair's bits and the third one.

    The weight of what is merged is the victim's own chance of it over the others': 1 less the
    chance of one bit of the pair without the third, which is 1 - q times (1-q)^2 + q^2 for the
    symmetric encoding and times 1/2 for the optimized one. Written as sums of positive terms, since
    the chance is of the size of q.
    """
    noise = _noise(profile)
    symmetric = profile.family is RandomizerFamily.SYMMETRIC_UNARY
    third_unset = noise.set_bit if symmetric else 0.5
    pair_mass = 2.0 * noise.set_bit * noise.unset_bit * third_unset
    if symmetric:
        merged = noise.set_bit * (1.0 + 2.0 * noise.unset_bit**2)
    else:
        merged = 0.5 * (1.0 + noise.set_bit)
    return SymmetricLaw(
        epsilon0=profile.epsilon0,
        low=1.0,
        pair_mass=pair_mass,
        rest_mass=0.0,
        base_mass=1.0 - pair_mass,
        base_weight=merged / (1.0 - pair_mass),
    )


def _unary_violation(profile: LocalProfile, _num_users: int, _delta: float | None) -> str | None:
    if profile.family not in _UNARY:
        return "a unary encoding"
    return pure_violation(profile)


UNARY_BLANKET = Method(
    name="unary-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, for unary encodings",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+] with blanket min_x R_x >= l * noise",
    proved_here=True,
    violated_hypothesis=_unary_violation,
    epsilon=lambda profile, n, delta: least_enclosure(
        dominating_laws(profile),
        n,
        lambda blanket: blanket.enclose_epsilon(delta, profile.epsilon0),
    ),
    delta=lambda profile, n, epsilon: least_enclosure(
        dominating_laws(profile), n, lambda blanket: blanket.enclose(epsilon)
    ),
    epsilon_above=lambda profile, n, delta: (
        least_enclosure(
            dominating_laws(profile),
            n,
            lambda blanket: Enclosure(0.0, blanket.epsilon_above(delta, profile.epsilon0)),
        ).upper
    ),
    delta_above=lambda profile, n, epsilon, width: upper_delta(
        dominating_laws(profile), n, epsilon, width
    ),
)
