"""Unary encodings (basic RAPPOR and OUE): blankets above, explicit data of the others below.

Write noise for the law of k bits each set with probability q. A report b of input x has
probability noise(b) times h if b_x = 1 and times l if b_x = 0:

    symmetric: q = 1/(1 + sqrt(p)), h = sqrt(p), l = 1/sqrt(p);
    optimized: q = 1/(p + 1),       h = (p + 1)/2, l = (p + 1)/(2p);      p = e^epsilon0 = h / l.

*Above.* omega = l * noise lies below every input's law. With ratios to omega, a report with the
pair's bits (1,0) or (0,1) has (p, 1) or (1, p); (1,1) has weight p; (0,0) has weight 1; the mass
outside omega has weight 0. Weights 1 are spread onto p and 0 with the same mean, which raises
every convex expectation, so (B) stays an upper bound; the loss is of order 1/n.

*Below.* Data where all others hold a third value, post-processed in either of two ways. Through the
pair's two bits only, which are pure noise for the others, so that ratios are h and l themselves. Or
through the third bit, too: where it is not set, which is rare for the others and not for the victim,
the pair's bits have ratios (p, 1) and (1, p), and everything else is merged into one outcome. The
second is nearly the blanket's own law from moderate epsilon0 on.

Source: Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3; docs/explanation/amplification.md.
"""

import math

from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.privacy.amplification.method import Method
from shuffledp.privacy.amplification.symmetric_blanket import SymmetricBlanket, SymmetricLaw

_UNARY = (RandomizerFamily.SYMMETRIC_UNARY, RandomizerFamily.OPTIMIZED_UNARY)


def _noise_and_low_ratio(profile: LocalProfile) -> tuple[float, float]:
    """Return q and l for the profile's family."""
    if profile.family is RandomizerFamily.SYMMETRIC_UNARY:
        root = math.exp(0.5 * profile.epsilon0)
        return 1.0 / (1.0 + root), 1.0 / root
    ratio = math.exp(profile.epsilon0)
    return 1.0 / (ratio + 1.0), (ratio + 1.0) / (2.0 * ratio)


def blanket_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law under the blanket omega = l * noise, for any domain size."""
    noise, low = _noise_and_low_ratio(profile)
    ratio_minus_one = math.expm1(profile.epsilon0)
    ratio = 1.0 + ratio_minus_one
    both_set = low * noise * noise
    none_set = low * (1.0 - noise) * (1.0 - noise)
    return SymmetricLaw(
        pair_mass=2.0 * low * noise * (1.0 - noise),
        low=1.0,
        difference=ratio_minus_one,
        rest_mass=both_set + none_set / ratio,
        rest_weight=ratio,
    )


def third_value_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law where all others hold a third value, seen through the pair's bits."""
    noise, low = _noise_and_low_ratio(profile)
    difference = low * math.expm1(profile.epsilon0)
    return SymmetricLaw(
        pair_mass=2.0 * noise * (1.0 - noise),
        low=low,
        difference=difference,
        rest_mass=noise * noise,
        rest_weight=low + difference,
        base_weight=low,
    )


def third_bit_law(profile: LocalProfile) -> SymmetricLaw:
    """Return one user's law for the same data, seen through the pair's bits and the third one."""
    noise, _ = _noise_and_low_ratio(profile)
    third_unset = noise if profile.family is RandomizerFamily.SYMMETRIC_UNARY else 0.5
    ratio_minus_one = math.expm1(profile.epsilon0)
    pair_mass = 2.0 * noise * (1.0 - noise) * third_unset
    weight_left = 1.0 - pair_mass * (1.0 + 0.5 * ratio_minus_one)
    return SymmetricLaw(
        pair_mass=pair_mass,
        low=1.0,
        difference=ratio_minus_one,
        base_weight=weight_left / (1.0 - pair_mass),
    )


def _violation(profile: LocalProfile, _num_users: int, _delta: float | None) -> str | None:
    return None if profile.family in _UNARY else "the randomizer is a unary encoding"


UNARY_BLANKET = Method(
    name="unary-blanket",
    source="Balle et al. 2019, arXiv:1903.02837v2, Lemma 5.3, for unary encodings",
    statement="delta(eps) <= (1/n) E[(G_1 + ... + G_n)_+] with blanket min_x R_x >= l * noise",
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: SymmetricBlanket(blanket_law(profile), n).enclose_epsilon(
        delta, profile.epsilon0
    ),
    delta=lambda profile, n, epsilon: SymmetricBlanket(blanket_law(profile), n).enclose(epsilon),
)
