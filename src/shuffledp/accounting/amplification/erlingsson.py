"""Amplification by shuffling as first proved: Erlingsson et al. 2019, Theorem 7.

Source: "Amplification by Shuffling: From Local to Central Differential Privacy via Anonymity",
arXiv:1811.12469v2, Theorem 7 and the two special cases in its statement. Valid for *any*
epsilon0-LDP randomizers, chosen adaptively, applied to shuffled data. All functions round up.
"""

import math

from shuffledp.accounting.amplification.method import Method, pure_violation
from shuffledp.core.numerics.enclosure import Enclosure, exp_minus_one_upper, round_up
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
