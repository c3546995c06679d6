"""k-ary randomized response: its own blanket above, explicit data of the others below.

With a = 1/(e^epsilon0 + k - 1), the blanket is uniform on the k answers with mass k a. Reports of
the two answers in question are the pair (mass a each, ratios e^epsilon0 and 1), reports of the
k - 2 others dilute (mass (k-2) a, weight 1), reports outside the blanket say nothing.

From below: if every other user holds one third answer, the others' reports are i.i.d. and the
divergence is exactly of the same form, with weight e^-epsilon0 for reports of that third answer.

Source: Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3. The
"variation-ratio" reduction (arXiv:2304.05007) is *not* an upper bound here and is not used.
"""

import math

from shuffledp.accounting.amplification.hypotheses import pure_violation
from shuffledp.accounting.amplification.method import Method
from shuffledp.accounting.amplification.symmetric_blanket import (
    SymmetricBlanket,
    SymmetricLaw,
    upper_delta,
)
from shuffledp.core.profile import LocalProfile, RandomizerFamily


def blanket_law(epsilon0: float, num_answers: int) -> SymmetricLaw:
    """Return one user's law under the blanket of k-RR, k >= 2.

    Examples
    --------
    >>> round(blanket_law(math.log(3.0), 4).rest_mass, 12)
    0.333333333333
    """
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
