"""Hoeffding's and Bennett's inequality for the privacy blanket.

Source: Balle, Bell, Gascon, Nissim 2019, "The Privacy Blanket of the Shuffle Model",
arXiv:1903.02837v2, Section 5, and the code published with it. What is evaluated here is proved
here, because the constants of paper and code could not be reconciled: the prefactor of the code's
Bennett bound is smaller than the proof below gives.

*Setting.* (B) of docs/results/kernel.md with a blanket of mass at least ``gamma``: with
L = gamma' (r0 - e r1) under the normalised blanket, gamma' its true mass,

    delta(epsilon) <= (1 / (gamma n)) E[(L_1 + ... + L_M)_+],  M ~ Bin(n, gamma).

For gamma < gamma' this is (B) for the blanket shrunk by gamma / gamma': shrinking multiplies the
ratios by what it takes from the mass, so L stays. Always E[L] = -a with a = e - 1.

*Hoeffding.* If L lies in an interval of length b, Pr[L_1 + ... + L_m > t] <= exp(-2 (ma + t)^2 /
(m b^2)) <= exp(-2 m a^2/b^2 - 4 a t/b^2), hence E[(...)_+] <= (b^2 / (4a)) exp(-2 m a^2/b^2).

*Bennett.* If L <= b and E[L^2] <= c, then E exp(s L) <= 1 - s a + (c/b^2)(e^(sb) - 1 - sb),
because (e^x - 1 - x)/x^2 increases. Chernoff's bound at the best s gives Pr[L_1 + ... + L_m > t] <=
exp(-m (c/b^2) phi(u)) with u = b (ma + t)/(m c) and phi(u) = (1 + u) ln(1 + u) - u. By convexity of
phi, E[(...)_+] <= (b / ln(1 + B)) exp(-m (c/b^2) phi(B)), B = a b/c. L need not be centred.

In both cases E over M of exp(-M k) is (1 - gamma (1 - e^-k))^n.

*Parameters.* For k-RR all is known: gamma = k/(p+k-1), L takes gamma (p - e), gamma (1 - p e) and
gamma (1 - e), so E[L^2] = (1 - gamma)^2 k (1 + e^2) + gamma (2 - gamma) a^2. For any epsilon0-LDP
randomizer take the largest blanket; then gamma' is in [1/p, 1] and both ratios lie in [1, p], so L
lies in gamma' [1 - p e, p - e], and E[L^2], which is gamma' times the sum of R_x r0 - 2e R_x r1 +
e^2 R_x' r1 over all reports, is at most gamma' (p (1 + e^2) - 2e). With gamma = 1/p for the number
of terms and gamma' <= 1 for their size these are the generic parameters of the paper, but for the
smallest ratio, where it has 1/p for 1. (The law of `clones` would allow 2/(p+1) for both; use that
method for sharp numbers.)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from shuffledp.accounting.amplification.atom_law import SMALLEST_DELTA
from shuffledp.accounting.amplification.method import Method, pure_violation
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# From here on squares of likelihood ratios overflow, and no crowd hides anybody.
_NO_AMPLIFICATION = 200.0

# Below it the series of phi is exact to 1e-13, and the formula is not.
_SERIES_LIMIT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class AmplificationVariable:
    """What the inequalities need to know of L at one epsilon.

    Parameters
    ----------
    gamma : float
        Mass of the blanket that is counted, in (0, 1].
    drift : float
        a = e^epsilon - 1 = -E[L], positive.
    width : float
        Length of an interval that contains L.
    largest : float
        Upper end of that interval.
    second_moment : float
        Upper bound on E[L^2].
    """

    gamma: float
    drift: float
    width: float
    largest: float
    second_moment: float


def amplification_variable(profile: LocalProfile, epsilon: float) -> AmplificationVariable:
    """Return gamma and the bounds on L of a profile, for 0 <= epsilon < epsilon0 <= 200."""
    e, ratio, drift = math.exp(epsilon), math.expm1(profile.epsilon0), math.expm1(epsilon)
    gap = e * math.expm1(profile.epsilon0 - epsilon)  # p - e without cancellation
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        k = profile.domain_size or 2
        gamma, complement = k / (ratio + k), ratio / (ratio + k)
        second = complement * complement * k * (1.0 + e * e) + gamma * (2.0 - gamma) * drift**2
        size = gamma
    else:
        gamma = math.exp(-profile.epsilon0)
        second = ratio * (1.0 + e * e) + drift * drift  # p (1 + e^2) - 2e
        size = 1.0
    return AmplificationVariable(
        gamma=gamma,
        drift=drift,
        width=round_up(size * ratio * (1.0 + e), operations=16),
        largest=round_up(size * gap, operations=16),
        second_moment=round_up(second, operations=32),
    )


def hoeffding_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return Hoeffding's bound on delta at one epsilon, rounded up; 0 from epsilon0 on."""

    def bound(law: AmplificationVariable) -> tuple[float, float]:
        exponent = 2.0 * (law.drift / law.width) ** 2
        return law.width * (law.width / (4.0 * law.drift)), exponent

    return _delta(profile, num_users, epsilon, bound)


def bennett_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return Bennett's bound on delta at one epsilon, rounded up; 0 from epsilon0 on.

    Parameters as for `hoeffding_delta`. It is the smaller of the two for larger epsilon0, where L
    is nearly always far from the ends of its interval.
    """

    def bound(law: AmplificationVariable) -> tuple[float, float]:
        excess = law.drift * law.largest / law.second_moment
        exponent = law.second_moment / law.largest**2 * _phi_lower(excess)
        return law.largest / math.log1p(excess), exponent

    return _delta(profile, num_users, epsilon, bound)


def _phi_lower(u: float) -> float:
    """Return (1 + u) ln(1 + u) - u for u > 0, rounded down by at most 1e-11 of itself."""
    if u < _SERIES_LIMIT:
        # The terms alternate and fall, so ending with a negative one errs downwards.
        return u * u * (0.5 - u * (1.0 / 6.0 - u * (1.0 / 12.0 - u / 20.0))) * (1.0 - 1e-14)
    return ((1.0 + u) * math.log1p(u) - u) * (1.0 - 1e-12)


def _delta(
    profile: LocalProfile,
    num_users: int,
    epsilon: float,
    bound: Callable[[AmplificationVariable], tuple[float, float]],
) -> float:
    """Return the bound from E[(L_1 + ... + L_m)_+] <= factor * exp(-m * exponent), rounded up."""
    if epsilon >= profile.epsilon0:
        return 0.0
    # A smaller epsilon than this would make factors overflow, and the bound is 1 long before.
    if profile.epsilon0 > _NO_AMPLIFICATION or epsilon < 1e-100:
        return 1.0
    law = amplification_variable(profile, epsilon)
    # The exponent is at most 1/2: 2a <= b for Hoeffding; phi(u) <= u^2/2 and a^2 <= c for Bennett.
    factor, exponent = bound(law)
    per_user = -math.log1p(law.gamma * math.expm1(-exponent))
    log_delta = math.log(factor / (law.gamma * num_users)) - num_users * per_user * (1.0 - 1e-12)
    if log_delta >= 0.0:
        return 1.0
    # ln(factor) and the exponent may cancel; each carries a few ulps of its own size.
    slack = 1e-15 * (abs(log_delta) + num_users * per_user + abs(math.log(factor)) + 64.0)
    return min(math.exp(log_delta + slack) + SMALLEST_DELTA, 1.0)


def _epsilon(
    delta_at: Callable[[LocalProfile, int, float], float],
    profile: LocalProfile,
    num_users: int,
    delta: float,
) -> Enclosure:
    """Return the least epsilon whose bound was seen to be at most ``delta``, at most epsilon0."""
    _, upper = last_above_first_below(
        lambda epsilon: delta_at(profile, num_users, epsilon), delta, 0.0, profile.epsilon0
    )
    return Enclosure(0.0, upper)


def _violation(profile: LocalProfile, _num_users: int, delta: float | None) -> str | None:
    return pure_violation(profile) or ("delta > 0" if delta == 0.0 else None)


BLANKET_HOEFFDING = Method(
    name="blanket-hoeffding",
    source="Balle et al. 2019, arXiv:1903.02837v2, Section 5, with Hoeffding's inequality",
    statement=(
        "delta(eps) <= b^2/(4 a gamma n) (1 - gamma (1 - exp(-2a^2/b^2)))^n, a = e^eps - 1, "
        "b the range of L"
    ),
    automatic=False,
    proved_here=True,
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: _epsilon(hoeffding_delta, profile, n, delta),
    delta=lambda profile, n, epsilon: Enclosure(0.0, hoeffding_delta(profile, n, epsilon)),
)

BLANKET_BENNETT = Method(
    name="blanket-bennett",
    source="Balle et al. 2019, arXiv:1903.02837v2, Section 5, with Bennett's inequality",
    statement=(
        "delta(eps) <= b/(gamma n ln(1 + ab/c)) (1 - gamma (1 - exp(-(c/b^2) phi(ab/c))))^n, "
        "L <= b, E[L^2] <= c"
    ),
    automatic=False,
    proved_here=True,
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: _epsilon(bennett_delta, profile, n, delta),
    delta=lambda profile, n, epsilon: Enclosure(0.0, bennett_delta(profile, n, epsilon)),
)
