"""Amplification by shuffling as first proved: Erlingsson et al. 2019, Theorem 7.

Source: "Amplification by Shuffling: From Local to Central Differential Privacy via Anonymity",
arXiv:1811.12469v2, Theorem 7 and the two special cases in its statement. Valid for *any*
epsilon0-LDP randomizers, chosen adaptively, applied to shuffled data. All functions round up.

Erlingsson et al. 2019, Theorem 7, with a sharper step and exact composition.

Source: "Amplification by Shuffling: From Local to Central Differential Privacy via Anonymity",
arXiv:1811.12469v2, proof of Theorem 8; optimal composition from Kairouz, Oh, Viswanath 2015,
"The Composition Theorem for Differential Privacy", arXiv:1311.0776. Like Theorem 7 it is valid for
*any* epsilon0-LDP randomizers, chosen adaptively, applied to shuffled data.

*The step.* Write p = e^epsilon0. The proof shows that step i of the swapping algorithm outputs a
draw from mu = (1 - s) mu0 + s mu1 on one dataset and from mu' = (1 - s') mu0 + s' mu1' on its
neighbour, where mu0 is the same law in both, mu0, mu1 and mu1' are pairwise epsilon0-close, and
s, s' <= t = min(p^2/n, 1). The paper goes from mu to mu' by way of mu0 and pays twice. Directly,
with a = mu1/mu0 and b = mu1'/mu0, both in [1/p, p], and a/b <= p,

    mu/mu' = (1 + s (a - 1)) / (1 + s' (b - 1)) <= 1 + t (p - 1).

*Proof.* If b >= 1, or if a <= 1, one of the two brackets is on the right side of 1: the ratio is at
most 1 + t(p-1) in the first case, and at most 1/(1 - t(1 - 1/p)) <= 1 + t(p-1) in the second, as
t <= 1. Otherwise b < 1 < a, b >= a/p, and the ratio increases in s and s', so it is at most
(1 + t(a-1)) / (1 - t(1 - a/p)), which increases in a; at a = p it is 1 + t(p-1).

So every step is (e1, 0)-DP with e1 = ln(1 + p^2 (p-1)/n), about half of Theorem 7's. Where
p^2 >= n a step loses as much as a report, and there is no bound.

*The composition.* n adaptive (e1, 0)-DP steps are dominated by n binary randomized responses of
that e1, whose number of ones is Bin(n, q) against Bin(n, 1 - q), q = 1/(1 + e^-e1). With m the
least number of ones whose loss (2m - n) e1 exceeds epsilon::

    delta = Pr[Bin(n, q) >= m] - e^epsilon Pr[Bin(n, 1 - q) >= m]
          = Pr[Bin(n, q) = m] m I,
    I = integral over y in [0, 1] of (1 - y)^(m-1) ((1 + T y)^(n-m) - s (1 + y/T)^(n-m)),

with T = e^e1 and s = e^(epsilon - (2m - n) e1) <= 1 (both tails are incomplete beta integrals, with
x = q (1 - y) and x = (1 - q)(1 - y)). The integrand is positive, so nothing cancels.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.method import Method, pure_violation
from shuffledp.core.numerics.binomial import binomial_pmf
from shuffledp.core.numerics.enclosure import Enclosure, exp_minus_one_upper, round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

# Rounding up must not end at zero.
_SMALLEST = 5e-324

_SOURCE = "Erlingsson et al. 2019, arXiv:1811.12469v2, Theorem 7"


def _step_epsilon(epsilon0: float, num_users: int) -> float:
    """Return epsilon_1 = 2 e^(2 epsilon0) (e^epsilon0 - 1) / n, rounded up; inf if too large."""
    if epsilon0 > 200.0:
        return math.inf
    step = round_up(2.0 * math.exp(2.0 * epsilon0) * exp_minus_one_upper(epsilon0) / num_users)
    return max(step, _SMALLEST)


def general_epsilon(epsilon0: float, num_users: int, delta: float) -> float:
    """Return epsilon_1 sqrt(2 n ln(1/delta)) + n epsilon_1 (e^epsilon_1 - 1), rounded up."""
    step = _step_epsilon(epsilon0, num_users)
    if step > 700.0:
        return math.inf
    spread = step * math.sqrt(2.0 * num_users * -math.log(delta))
    return round_up(spread + num_users * step * exp_minus_one_upper(step))


def general_delta(epsilon0: float, num_users: int, epsilon: float) -> float:
    """Return the least delta that Theorem 7 gives at ``epsilon``, rounded up; 1 if none.

    Solves the bound for ln(1/delta); the drift n epsilon_1 (e^epsilon_1 - 1) is subtracted first,
    so close to it the answer is rounded up to 1.
    """
    step = _step_epsilon(epsilon0, num_users)
    if step > 700.0:
        return 1.0
    drift = round_up(num_users * step * exp_minus_one_upper(step))
    spread = (epsilon - drift) / step * (1.0 - 8.0 * math.ulp(1.0))
    if not spread > 0.0:
        return 1.0
    # The absolute error of the exponent becomes a relative error of delta.
    exponent = spread * spread / (2.0 * num_users) * (1.0 - 16.0 * math.ulp(1.0))
    return min(round_up(math.exp(-exponent)) + _SMALLEST, 1.0)


def moderate_epsilon(epsilon0: float, num_users: int, delta: float) -> float:
    """Return the special case for epsilon0 <= ln(n/4)/3, rounded up.

    e^(2 epsilon0) (e^epsilon0 - 1) sqrt(8 ln(1/delta) / n)
    + 6 e^(4 epsilon0) (e^epsilon0 - 1)^2 / n.
    """
    growth = round_up(math.exp(2.0 * epsilon0) * exp_minus_one_upper(epsilon0))
    return round_up(
        growth * math.sqrt(8.0 * -math.log(delta) / num_users) + 6.0 * growth * growth / num_users
    )


def small_epsilon(epsilon0: float, num_users: int, delta: float) -> float:
    """Return 12 epsilon0 sqrt(ln(1/delta) / n), rounded up.

    For n >= 1000, epsilon0 < 1/2 and delta < 1/100.
    """
    return round_up(12.0 * epsilon0 * math.sqrt(-math.log(delta) / num_users))


def _general_violation(profile: LocalProfile, num_users: int, _delta: float | None) -> str | None:
    return pure_violation(profile) if num_users > 1 else "num_users > 1"


def _moderate_violation(profile: LocalProfile, num_users: int, _delta: float | None) -> str | None:
    if num_users > 1 and profile.epsilon0 <= math.log(num_users / 4.0) / 3.0:
        return pure_violation(profile)
    return "epsilon0 <= ln(num_users / 4) / 3"


def _small_violation(profile: LocalProfile, num_users: int, delta: float | None) -> str | None:
    if num_users < 1000:
        return "num_users >= 1000"
    if not profile.epsilon0 < 0.5:
        return "epsilon0 < 1/2"
    if delta is not None and not delta < 0.01:
        return "delta < 1/100"
    return pure_violation(profile)


def _moderate_delta(epsilon0: float, num_users: int, epsilon: float) -> float:
    """Return the special case solved for delta, rounded up; 1 if it gives none."""
    growth = round_up(math.exp(2.0 * epsilon0) * exp_minus_one_upper(epsilon0))
    spread = (epsilon - round_up(6.0 * growth * growth / num_users)) / max(growth, _SMALLEST)
    if not spread > 0.0:
        return 1.0
    exponent = spread * spread * num_users / 8.0 * (1.0 - 32.0 * math.ulp(1.0))
    return min(round_up(math.exp(-exponent)) + _SMALLEST, 1.0)


def _small_delta(epsilon0: float, num_users: int, epsilon: float) -> float:
    """Return the simple form solved for delta, rounded up; 1 where that leaves its regime."""
    exponent = (
        (epsilon / max(12.0 * epsilon0, _SMALLEST)) ** 2 * num_users * (1.0 - 32.0 * math.ulp(1.0))
    )
    delta = round_up(math.exp(-exponent)) + _SMALLEST
    return delta if delta < 0.01 else 1.0


ERLINGSSON = Method(
    name="erlingsson",
    source=_SOURCE,
    statement="eps <= e1 sqrt(2 n ln(1/delta)) + n e1 (e^e1 - 1), e1 = 2 e^(2 eps0)(e^eps0 - 1)/n",
    violated_hypothesis=_general_violation,
    epsilon=lambda profile, n, delta: Enclosure(0.0, general_epsilon(profile.epsilon0, n, delta)),
    delta=lambda profile, n, epsilon: Enclosure(0.0, general_delta(profile.epsilon0, n, epsilon)),
)

ERLINGSSON_MODERATE = Method(
    name="erlingsson-moderate",
    source=f"{_SOURCE}, special case epsilon0 <= ln(n/4)/3",
    statement=(
        "eps <= e^(2 eps0)(e^eps0 - 1) sqrt(8 ln(1/delta)/n) + 6 e^(4 eps0)(e^eps0 - 1)^2/n"
    ),
    automatic=False,
    violated_hypothesis=_moderate_violation,
    epsilon=lambda profile, n, delta: Enclosure(0.0, moderate_epsilon(profile.epsilon0, n, delta)),
    delta=lambda profile, n, epsilon: Enclosure(0.0, _moderate_delta(profile.epsilon0, n, epsilon)),
)

ERLINGSSON_SMALL = Method(
    name="erlingsson-small",
    source=f"{_SOURCE}, special case n >= 1000, epsilon0 < 1/2, delta < 1/100",
    statement="eps <= 12 eps0 sqrt(ln(1/delta)/n)",
    automatic=False,
    violated_hypothesis=_small_violation,
    epsilon=lambda profile, n, delta: Enclosure(0.0, small_epsilon(profile.epsilon0, n, delta)),
    delta=lambda profile, n, epsilon: Enclosure(0.0, _small_delta(profile.epsilon0, n, epsilon)),
)


# Two panels of 64 Gauss-Legendre nodes, one on either side of the integrand's peak.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)

# The integrand counts down to exp(-42) of its peak; its logarithm is concave.
_NEGLIGIBLE_EXPONENT = 42.0

# Binomial masses below it lose their accuracy.
_SMALLEST_MASS = 1e-290

# p^2 < n <= 1e15 ends here; it also keeps p^3 far from overflow.
_LARGEST_EPSILON0 = 20.0


def step_epsilon(epsilon0: float, num_users: int) -> float:
    """Return e1 = ln(1 + p^2 (p - 1)/n), p = e^epsilon0, rounded up; inf where p^2 >= n."""
    if epsilon0 > _LARGEST_EPSILON0 or round_up(math.exp(2.0 * epsilon0)) >= num_users:
        return math.inf
    growth = round_up(math.exp(2.0 * epsilon0) * exp_minus_one_upper(epsilon0) / num_users)
    return max(round_up(math.log1p(growth)), 5e-324)


def optimal_composition_delta(step: float, num_steps: int, epsilon: float) -> float:
    """Return delta of ``num_steps`` adaptive (step, 0)-DP mechanisms at one epsilon, rounded up."""
    n = float(num_steps)
    if epsilon >= n * step * (1.0 + 4.0 * math.ulp(1.0)):
        return 0.0
    # Wrong by one only where the loss equals epsilon up to rounding, and then it adds nothing.
    m = min(math.floor(0.5 * (n + epsilon / step)) + 1.0, n)
    log_scale = min(epsilon - (2.0 * m - n) * step, 0.0) - 4.0 * math.ulp(epsilon)
    log_peak, integral = _tail_integral(n, m, step, log_scale)
    chances = 1.0 / (1.0 + math.exp(-step)), 1.0 / (1.0 + math.exp(step))
    mass = float(binomial_pmf(n, m, *chances))
    if mass < _SMALLEST_MASS:
        # Too small to keep its accuracy. So far below the mean delta is 1 to all digits, and so far
        # above it at most n times the mass.
        return 1.0 if m < n / (1.0 + math.exp(-step)) else n * _SMALLEST_MASS
    log_delta = math.log(mass) + math.log(m) + log_peak + math.log(integral)
    delta = math.exp(min(log_delta, 0.0)) * (1.0 + 1e-10 + 1e-14 * math.sqrt(n))
    return min(max(delta, n * _SMALLEST_MASS), 1.0)


def optimal_composition_epsilon(step: float, num_steps: int, delta: float) -> float:
    """Return the least epsilon of ``num_steps`` adaptive (step, 0)-DP mechanisms, rounded up."""
    _, upper = last_above_first_below(
        lambda epsilon: optimal_composition_delta(step, num_steps, epsilon),
        delta,
        0.0,
        num_steps * step,
        guess=step * math.sqrt(2.0 * num_steps * -math.log(delta)),
    )
    return upper


def _tail_integral(n: float, m: float, step: float, log_scale: float) -> tuple[float, float]:
    """Return l and J with I = e^l J, for whole n/2 < m <= n."""
    theta, theta_minus_one = math.exp(step), math.expm1(step)
    rest = n - m

    # (1 - y)^(m-1) (1 + T y)^(n-m), its two nearly cancelling logarithms taken together
    def log_first(y: NDArray[np.float64]) -> NDArray[np.float64]:
        paired = np.log1p(y * (theta_minus_one - theta * y))
        return (2.0 * m - n - 1.0) * np.log1p(-y) + rest * paired

    def log_at(y: float) -> float:
        return float(log_first(np.array([y]))[0]) if y < 1.0 else -math.inf

    peak = max((rest * theta - (m - 1.0)) / (theta * (n - 1.0)), 0.0) if n > 1.0 else 0.0
    log_peak = log_at(peak)
    floor = log_peak - _NEGLIGIBLE_EXPONENT
    ends = [_first_below(log_at, floor, peak, 0.0), _first_below(log_at, floor, peak, 1.0)]
    total = 0.0
    for low, high in ((ends[0], peak), (peak, ends[1])):
        y = low + 0.5 * (high - low) * (_NODES + 1.0)
        excess = rest * np.log1p(y * 2.0 * math.sinh(step) / (1.0 + y / theta))
        values = np.exp(log_first(y) - log_peak) * -np.expm1(log_scale - excess)
        total += 0.5 * (high - low) * float(_WEIGHTS @ values)
    return log_peak, max(total, 5e-324)


def _first_below(log_at: Callable[[float], float], floor: float, peak: float, end: float) -> float:
    """Return where a log-concave function falls to ``floor`` between peak and end, or the end."""
    near, far = peak, end
    if end < 1.0 and log_at(end) >= floor:
        return end
    # At 1e15 steps the way is still 1e-8 wide, or starts at 0: doubles resolve it.
    while abs(far - near) > 1e-3 * abs(near - peak):
        middle = 0.5 * (near + far)
        near, far = (middle, far) if log_at(middle) >= floor else (near, middle)
    return far


def _violation(profile: LocalProfile, num_users: int, delta: float | None) -> str | None:
    if (impure := pure_violation(profile)) is not None:
        return impure
    if num_users <= 1:
        return "num_users > 1"
    if math.isinf(step_epsilon(profile.epsilon0, num_users)):
        return "e^(2 epsilon0) < num_users"
    return "delta > 0" if delta == 0.0 else None


def _epsilon(profile: LocalProfile, num_users: int, delta: float) -> Enclosure:
    step = step_epsilon(profile.epsilon0, num_users)
    return Enclosure(0.0, optimal_composition_epsilon(step, num_users, delta))


def _delta(profile: LocalProfile, num_users: int, epsilon: float) -> Enclosure:
    step = step_epsilon(profile.epsilon0, num_users)
    return Enclosure(0.0, optimal_composition_delta(step, num_users, epsilon))


ERLINGSSON_COMPOSED = Method(
    name="erlingsson-composed",
    source=(
        "Erlingsson et al. 2019, arXiv:1811.12469v2, proof of Theorem 8, its step sharpened in the "
        "shuffledp documentation; Kairouz, Oh, Viswanath 2015, arXiv:1311.0776"
    ),
    statement=(
        "n-fold optimal composition of (e1, 0)-DP, e1 = ln(1 + e^(2 eps0)(e^eps0 - 1)/n), "
        "e^(2 eps0) < n"
    ),
    automatic=False,
    proved_here=True,
    violated_hypothesis=_violation,
    epsilon=_epsilon,
    delta=_delta,
)
