"""Any epsilon0-LDP randomizer: the stronger clone, evaluated from both sides.

Each other user sends, with probability 2r, r = 1/(e^epsilon0 + 1), a report that is as likely to
come from one input of the pair as from the other. In the form of `symmetric_blanket`: pair reports
of mass 2r with ratios (e^epsilon0, 1), nothing else. docs/results/clones.md proves that
this dominates *every* epsilon0-LDP randomizer, from the blanket omega = max(R_x1, R_x1') /
e^epsilon0 and convex order; the proof published with the bound (arXiv:2208.04591) was withdrawn.
"""

import math

from shuffledp.accounting.amplification.hypotheses import pure_violation
from shuffledp.accounting.amplification.method import Method
from shuffledp.accounting.amplification.symmetric_blanket import (
    SymmetricBlanket,
    SymmetricLaw,
    upper_delta,
)
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile


def clone_law(epsilon0: float) -> SymmetricLaw:
    """Return the law of one user's report in the stronger clone pair.

    Examples
    --------
    >>> clone_law(math.log(3.0)).pair_mass
    0.5
    """
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
