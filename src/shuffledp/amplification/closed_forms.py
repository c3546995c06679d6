"""Published bounds that are formulas, each with its regime; all functions round up.

Write p = e^epsilon0, n for the number of users, e1 for the epsilon of a single step.

- Erlingsson et al. 2019, arXiv:1811.12469v2, "Amplification by Shuffling: From Local to Central
  Differential Privacy via Anonymity", Theorem 7 and the two special cases in its statement. Valid
  for *any* epsilon0-LDP randomizers, chosen adaptively, applied to shuffled data.
- Feldman, McMillan, Talwar 2021, "Hiding Among the Clones", arXiv:2012.12803, Theorem 3.1. The
  paper prints ln(2/delta) in the regime and the authors' code has ln(4/delta); the stricter one is
  required here. Its pair of laws is in `clones_and_families`.
- Feldman, McMillan, Talwar 2023, arXiv:2208.04591. Its erratum withdraws the proof for general
  randomizers. The bound follows all the same, because the law of "clones" dominates every
  epsilon0-LDP randomizer.
- Balle, Bell, Gascon, Nissim 2019, "The Privacy Blanket of the Shuffle Model",
  arXiv:1903.02837v2, Section 5, with Hoeffding's and with Bennett's inequality. The constants of
  paper and code could not be reconciled, so the bound evaluated is the one that the proof gives.

Proofs that are ours, for e = e^epsilon:

*Feldman et al. 2021* is never below 2023: the first terms have the ratio sqrt(2 p/(p + 1)) >= 1,
the second 2 p/(p + 1) >= 1, and the regime is contained in that one's.

*Feldman et al. 2023.* Write r = 1/(p + 1), L = ln(2/delta) and m = r n >= 8 L. In the clone pair
let N - 1 = C ~ Bin(n - 1, 2 r), D the difference of the two counts, and x = (p - 1) r D/N. Then
P/Q = (1 + x)/(1 - x).

1. Few clones: m - 1 <= mu/2 with mu = 2 r (n - 1), and Pr[C < mu/2] <= e^(-mu/8) <= e^(-2 L + r/4)
   <= delta/2, since L >= ln 2 > r/4.
2. A long walk: given C, under P, D <= Z + 1 with Z a fair walk of C steps, and
   Pr[Z > sqrt(2 C L)] <= e^-L = delta/2 (Hoeffding).
3. Otherwise x <= (p - 1) r u, u = (sqrt(2 L (N - 1)) + 1)/N, which falls in N, so take N = m. With
   t = sqrt(2 L/m) <= 1/2 and w = 1/m, u <= t + (1 - t/2) w < 1. Then P/Q - 1 = 2 x/(1 - x) <=
   (p - 1) r 2 u/(1 - u). It remains that u/(1 - u) <= 2 y for y = sqrt(t^2 + 2 w ln 2) + w =
   sqrt(2 ln(4/delta)/m) + 1/m. From L >= ln 2, 2 w ln 2 <= t^2; by concavity y >= t + 2.148 w. So
   2 y (1 - u) - u >= 2 t (1 - t) - t + w (4.296 (1 - t) - (1 - t/2)(1 + 2 t) - 4.296 (1 - t/2) w).
   The first part is >= 0; the bracket is least at t = 1/2, w = t^2/(2 ln 2) = 0.181, where it is
   0.06.

So outside an event of probability delta under P, P/Q <= 1 + 4 (p - 1) r y, the closed form.

*Balle et al. 2019.* Let L = g' (r0 - e r1) under the normalised blanket of mass g', g <= g' the
mass counted (the blanket is shrunk), a = e - 1. By (B) of docs/results/kernel.md delta is at most
E[(L_1 + ... + L_M)_+]/(g n), M ~ Bin(n, g), and E[L] = -a.

- Hoeffding, L in an interval of length b: Pr[L_1 + ... + L_m > t] <= exp(-2 (m a + t)^2/(m b^2)) <=
  exp(-2 m a^2/b^2 - 4 a t/b^2); integrate over t > 0.
- Bennett, L <= b and E[L^2] <= c: E e^(s L) <= 1 - s a + (c/b^2)(e^(s b) - 1 - s b), because
  (e^x - 1 - x)/x^2 increases. Chernoff at the best s gives Pr[L_1 + ... + L_m > t] <=
  exp(-m (c/b^2) phi(u)), u = b (m a + t)/(m c), phi(u) = (1 + u) ln(1 + u) - u; by convexity of phi
  the integral is at most b/ln(1 + B) exp(-m (c/b^2) phi(B)), B = a b/c.

Last, E[e^(-M k)] = (1 - g (1 - e^-k))^n, so that delta is at most, by Hoeffding and by Bennett,

    b^2/(4 a g n) (1 - g (1 - e^(-2 a^2/b^2)))^n,
    b/(g n ln(1 + a b/c)) (1 - g (1 - e^(-(c/b^2) phi(a b/c))))^n.

k-RR: g = k/(p + k - 1), L takes g (p - e), g (1 - p e), g (1 - e), and E[L^2] = (1 - g)^2 k (1 +
e^2) + g (2 - g) a^2. Any randomizer: g = 1/p, L in g' [1 - p e, p - e], E[L^2] <= p (1 + e^2) -
2 e.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from shuffledp.amplification.atom_law import SMALLEST_DELTA
from shuffledp.amplification.method import HAIR, Method, pure_violation
from shuffledp.core.numerics.enclosure import (
    Enclosure,
    exp_difference,
    exp_minus_one_upper,
    round_up,
)
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily

_UNIT = math.ulp(1.0)

# Rounding up must not end at zero.
_SMALLEST = 5e-324


def _falling(exponent: float) -> float:
    """Return e^-exponent, rounded up; its relative error is the exponent's absolute one."""
    return min(round_up(math.exp(-exponent * (1.0 - 40.0 * _UNIT))) + _SMALLEST, 1.0)


def _method(
    regime: Callable[..., str | None],
    epsilon: Callable[[LocalProfile, int, float], float],
    delta: Callable[[LocalProfile, int, float], float],
    **about: Any,
) -> Method:
    """Return the method of two functions, for pure randomizers in a regime."""
    return Method(
        violated_hypothesis=lambda profile, n, given: (
            pure_violation(profile) or regime(profile.epsilon0, n, given)
        ),
        epsilon=lambda *given: Enclosure(0.0, epsilon(*given)),
        delta=lambda profile, n, given, _=0.0: Enclosure(0.0, delta(profile, n, given)),
        automatic=False,  # another method is always smaller
        **about,
    )


# ------------------------------------------------------------ Erlingsson et al. 2019, Theorem 7
def _general(epsilon0: float, num_users: int) -> tuple[float, float]:
    """Return e1 sqrt(2 n) and n e1 (e^e1 - 1), e1 = 2 p^2 (p - 1) / n."""
    finite = min(epsilon0, LARGEST_EPSILON0)  # from where on the step is far above 700
    growth = math.exp(2.0 * finite) * exp_minus_one_upper(finite)
    step = max(round_up(2.0 * growth / num_users), _SMALLEST)
    if step > 700.0:
        return math.inf, math.inf
    return step * math.sqrt(2.0 * num_users), num_users * step * exp_minus_one_upper(step)


def _moderate(epsilon0: float, num_users: int) -> tuple[float, float]:
    """Return p^2 (p - 1) sqrt(8 / n) and 6 p^4 (p - 1)^2 / n."""
    growth = round_up(math.exp(2.0 * epsilon0) * exp_minus_one_upper(epsilon0))
    return growth * math.sqrt(8.0 / num_users), 6.0 * growth * growth / num_users


def _small(epsilon0: float, num_users: int) -> tuple[float, float]:
    """Return 12 epsilon0 / sqrt(n) and 0."""
    return 12.0 * epsilon0 / math.sqrt(num_users), 0.0


def _theorem_7(
    terms: Callable[[float, int], tuple[float, float]],
    regime: Callable[..., str | None],
    largest_delta: float = 1.0,
    **about: Any,
) -> Method:
    """Return the method eps <= a sqrt(ln(1/delta)) + b, for delta below some largest."""

    def epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
        slope, drift = terms(profile.epsilon0, num_users)
        return round_up(slope * math.sqrt(-math.log(delta)) + drift, operations=16)

    def delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
        slope, drift = (round_up(term) for term in terms(profile.epsilon0, num_users))
        root = (epsilon - drift) / max(slope, _SMALLEST) if epsilon > drift else 0.0
        found = _falling(root * root)
        return found if found < largest_delta else 1.0

    source = "Erlingsson et al. 2019, arXiv:1811.12469v2, Theorem 7" + about.pop("case", "")
    return _method(regime, epsilon, delta, source=source, **about)


def _small_regime(epsilon0: float, num_users: int, delta: float | None) -> str | None:
    if num_users < 1000:
        return "num_users >= 1000"
    if not epsilon0 < 0.5:
        return "epsilon0 < 1/2"
    return "delta < 1/100" if delta is not None and not delta < 0.01 else None


def _moderate_regime(epsilon0: float, num_users: int, _delta: float | None) -> str | None:
    holds = num_users > 1 and epsilon0 <= math.log(num_users / 4.0) / 3.0
    return None if holds else "epsilon0 <= ln(num_users / 4) / 3"


ERLINGSSON = _theorem_7(
    _general,
    lambda _epsilon0, num_users, _delta: None if num_users > 1 else "num_users > 1",
    name="erlingsson",
    statement="eps <= e1 sqrt(2 n ln(1/delta)) + n e1 (e^e1 - 1), e1 = 2 e^(2 eps0)(e^eps0 - 1)/n",
)
ERLINGSSON_MODERATE = _theorem_7(
    _moderate,
    _moderate_regime,
    name="erlingsson-moderate",
    case=", special case epsilon0 <= ln(n/4)/3",
    statement="eps <= e^(2 eps0)(e^eps0 - 1) sqrt(8 ln(1/delta)/n) + 6 e^(4 eps0)(e^eps0 - 1)^2/n",
)
ERLINGSSON_SMALL = _theorem_7(
    _small,
    _small_regime,
    largest_delta=0.01,
    name="erlingsson-small",
    case=", special case n >= 1000, epsilon0 < 1/2, delta < 1/100",
    statement="eps <= 12 eps0 sqrt(ln(1/delta)/n)",
)


# ------------------------------------------------------------ Feldman, McMillan, Talwar
def _feldman_2021(epsilon0: float, num_users: int) -> tuple[float, ...]:
    """Return (p-1)/(p+1), 8 sqrt(p/n), 8p/n, and n/(16 p)."""
    p = math.exp(epsilon0)
    size, factor = p / num_users, exp_minus_one_upper(epsilon0) / (p + 1.0)
    return factor, 8.0 * math.sqrt(size), 8.0 * size, 1.0 / (16.0 * size)


def _feldman_2023(epsilon0: float, num_users: int) -> tuple[float, ...]:
    """Return p - 1, 4 sqrt(2/((p+1) n)), 4/n, and n/(8 (p+1))."""
    growth = exp_minus_one_upper(epsilon0)
    shared = growth + 2.0
    slope = 4.0 * math.sqrt(2.0 / (shared * num_users))
    return growth, slope, 4.0 / num_users, num_users / (8.0 * shared)


def _closed_clones(
    terms: Callable[[float, int], tuple[float, ...]], least: float, hypothesis: str, **about: Any
) -> Method:
    """Return the method eps <= ln(1 + c (a sqrt(ln(4/delta)) + b)), where ln(least/delta) <= d.

    It falls with delta, so at an epsilon where it leaves its regime the edge of the regime is used.
    """

    def regime(epsilon0: float, num_users: int, delta: float | None) -> str | None:
        if delta == 0.0:
            return "delta > 0"
        # Where epsilon is given, some delta below 1 must be in the regime.
        log_term = math.log(least) - (math.log(delta) if delta is not None else 0.0)
        holds = epsilon0 < 100.0 and log_term * HAIR <= terms(epsilon0, num_users)[3]
        return None if holds else hypothesis

    def epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
        factor, slope, offset, _ = terms(profile.epsilon0, num_users)
        spread = slope * math.sqrt(math.log(4.0) - math.log(delta)) + offset
        return round_up(math.log1p(factor * spread), operations=32)

    def delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
        factor, slope, offset, edge = terms(profile.epsilon0, num_users)
        root = (math.expm1(epsilon) / max(factor, SMALLEST_DELTA) - offset * HAIR) / slope
        if not root > 0.0:
            return 1.0
        by_formula = 4.0 * _falling(root * root * (1.0 - 1e-13))
        by_regime = least * _falling(edge * (1.0 - 1e-13))
        return min(max(by_formula, by_regime) + SMALLEST_DELTA, 1.0)

    return _method(regime, epsilon, delta, proved_here=True, **about)


FELDMAN_2021_CLOSED = _closed_clones(
    _feldman_2021,
    4.0,
    "epsilon0 <= ln(num_users / (16 ln(4/delta)))",
    name="feldman-2021-closed",
    source="Feldman, McMillan, Talwar 2021, arXiv:2012.12803, Theorem 3.1, closed form; proved "
    "from the clone pair in the shuffledp documentation",
    statement="eps <= ln(1 + (p-1)/(p+1) (8 sqrt(p ln(4/delta)/n) + 8p/n)), "
    "eps0 <= ln(n/(16 ln(4/delta)))",
)
FELDMAN_2023_CLOSED = _closed_clones(
    _feldman_2023,
    2.0,
    "epsilon0 <= ln(num_users / (8 ln(2/delta)) - 1)",
    name="feldman-2023-closed",
    source="Feldman, McMillan, Talwar 2023, arXiv:2208.04591, closed form; its proof was withdrawn "
    "for general randomizers, and replaced in the shuffledp documentation",
    statement="eps <= ln(1 + (p-1) (4 sqrt(2 ln(4/delta)/((p+1) n)) + 4/n)), "
    "eps0 <= ln(n/(8 ln(2/delta)) - 1)",
)


# ------------------------------------------------------------ Balle et al. 2019, Section 5
# Below it the series of phi is exact to 1e-13, and the formula is not.
_SERIES_LIMIT = 1e-3


def amplification_variable(
    profile: LocalProfile, epsilon: float
) -> tuple[float, float, float, float, float]:
    """Return the moments of L in the inequalities, for 0 <= epsilon < epsilon0 <= 200.

    The mass gamma of the blanket that is counted, -E[L] = e^epsilon - 1, the length of an interval
    that contains L, its upper end, and an upper bound on E[L^2].
    """
    e, ratio, drift = math.exp(epsilon), math.expm1(profile.epsilon0), math.expm1(epsilon)
    gap = exp_difference(profile.epsilon0, epsilon)
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        k = profile.domain_size or 2
        size = gamma = k / (ratio + k)
        complement = ratio / (ratio + k)
        second = complement * complement * k * (1.0 + e * e) + gamma * (2.0 - gamma) * drift**2
    else:
        size, gamma = 1.0, math.exp(-profile.epsilon0)
        second = ratio * (1.0 + e * e) + drift * drift  # p (1 + e^2) - 2e
    width = round_up(size * ratio * (1.0 + e), operations=16)
    return gamma, drift, width, round_up(size * gap, operations=16), round_up(second, operations=32)


def inequality_delta(
    profile: LocalProfile, num_users: int, epsilon: float, *, bennett: bool
) -> float:
    """Return Bennett's or Hoeffding's bound on delta at one epsilon; 0 from epsilon0 on.

    From E[(L_1 + ... + L_m)_+] <= factor * exp(-m * exponent). Bennett's is the smaller of the two
    for larger epsilon0, where L is nearly always far from the ends of its interval.
    """
    if epsilon >= profile.epsilon0:
        return 0.0
    # A smaller epsilon than this would make factors overflow, and the bound is 1 long before.
    if profile.epsilon0 > LARGEST_EPSILON0 or epsilon < 1e-100:
        return 1.0
    gamma, drift, width, largest, second_moment = amplification_variable(profile, epsilon)
    # The exponent is at most 1/2: 2a <= b for Hoeffding; phi(u) <= u^2/2 and a^2 <= c for Bennett.
    if bennett:
        excess = drift * largest / second_moment
        factor = largest / math.log1p(excess)
        exponent = second_moment / largest**2 * _phi_lower(excess)
    else:
        factor, exponent = width * (width / (4.0 * drift)), 2.0 * (drift / width) ** 2
    per_user = -math.log1p(gamma * math.expm1(-exponent))
    log_delta = math.log(factor / (gamma * num_users)) - num_users * per_user * (1.0 - 1e-12)
    if log_delta >= 0.0:
        return 1.0
    # ln(factor) and the exponent may cancel; each carries a few ulps of its own size.
    slack = 1e-15 * (abs(log_delta) + num_users * per_user + abs(math.log(factor)) + 64.0)
    return min(math.exp(log_delta + slack) + SMALLEST_DELTA, 1.0)


def _phi_lower(u: float) -> float:
    """Return (1 + u) ln(1 + u) - u for u > 0, rounded down by at most 1e-11 of itself."""
    if u < _SERIES_LIMIT:
        # The terms alternate and fall, so ending with a negative one errs downwards.
        return u * u * (0.5 - u * (1.0 / 6.0 - u * (1.0 / 12.0 - u / 20.0))) * (1.0 - 1e-14)
    return ((1.0 + u) * math.log1p(u) - u) * (1.0 - 1e-12)


def _inequality(name: str, statement: str, *, bennett: bool) -> Method:
    """Return the method of one of the two inequalities."""
    delta_at = partial(inequality_delta, bennett=bennett)

    def epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
        delta_of = partial(delta_at, profile, num_users)
        return last_above_first_below(delta_of, delta, 0.0, profile.epsilon0)[1]

    return _method(
        lambda _epsilon0, _num_users, delta: "delta > 0" if delta == 0.0 else None,
        epsilon,
        delta_at,
        name=f"blanket-{name.lower()}",
        source=f"Balle et al. 2019, arXiv:1903.02837v2, Section 5, with {name}'s inequality",
        statement=statement,
        proved_here=True,
    )


BLANKET_HOEFFDING = _inequality(
    "Hoeffding",
    "delta(eps) <= b^2/(4 a gamma n) (1 - gamma (1 - exp(-2a^2/b^2)))^n, a = e^eps - 1, "
    "b the range of L",
    bennett=False,
)
BLANKET_BENNETT = _inequality(
    "Bennett",
    "delta(eps) <= b/(gamma n ln(1 + ab/c)) (1 - gamma (1 - exp(-(c/b^2) phi(ab/c))))^n, "
    "L <= b, E[L^2] <= c",
    bennett=True,
)
