"""Published bounds that are formulas, each with its regime; all functions round up.

Write p = e^epsilon0, n for the number of users, e1 for the epsilon of a single step.

- Erlingsson et al. 2019, arXiv:1811.12469v2, "Amplification by Shuffling: From Local to Central
  Differential Privacy via Anonymity", Theorem 7 and the two special cases in its statement. Valid
  for *any* epsilon0-LDP randomizers, chosen adaptively, applied to shuffled data.
- Feldman, McMillan, Talwar 2021, "Hiding Among the Clones", arXiv:2012.12803, Theorem 3.1. The
  paper prints ln(2/delta) in the regime and the authors' code has ln(4/delta); the stricter one is
  required here. The pair of laws behind it is in `families`.
- Feldman, McMillan, Talwar 2023, arXiv:2208.04591. Its erratum withdraws the proof for general
  randomizers. The bound follows all the same, because the law of `clones` dominates every
  epsilon0-LDP randomizer.

The proofs are in docs/results/published-bounds.md.
"""

import math
from collections.abc import Callable
from typing import Any

from shuffledp.amplification.atom_law import SMALLEST_DELTA
from shuffledp.amplification.method import HAIR, Method, pure_violation
from shuffledp.core.numerics.enclosure import (
    Enclosure,
    exp_minus_one_upper,
    round_up,
)
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile

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
    automatic=False,
)
ERLINGSSON_SMALL = _theorem_7(
    _small,
    _small_regime,
    largest_delta=0.01,
    name="erlingsson-small",
    case=", special case n >= 1000, epsilon0 < 1/2, delta < 1/100",
    statement="eps <= 12 eps0 sqrt(ln(1/delta)/n)",
    automatic=False,
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

    It falls with delta, so at an epsilon where it leaves its regime the edge of that will do.
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

    return _method(regime, epsilon, delta, automatic=False, proved_here=True, **about)


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
