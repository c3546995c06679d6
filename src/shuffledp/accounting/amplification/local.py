"""No amplification: the shuffled release is post-processing of (epsilon0, delta0)-LDP reports.

The floor under every other result: the guarantee of one report. At delta0 = 0 that is epsilon0 with
delta = 0, and at a smaller epsilon delta = (e^epsilon0 - e^epsilon)/(e^epsilon0 + 1), which binary
randomized response attains. With delta0, everything is revealed with that probability at worst:
delta = delta0 + (1 - delta0) (e^epsilon0 - e^epsilon)_+ / (e^epsilon0 + 1) (Kairouz, Oh, Viswanath
2015, arXiv:1311.0776v4, the proof of Theorem 3.3). The only result that holds at delta = delta0.

A report that is sent with probability q only, by a coin that ignores the value, has laws
(1 - q) O + q P and (1 - q) O + q P'. Since e^epsilon >= 1 the divergence is at most q times that of
P and P': total variation is at most q. In terms of the delta0 of all this, which is q times that of
a report sent, delta = delta0 + (q - delta0) (e^epsilon0 - e^epsilon)_+ / (e^epsilon0 + 1).
"""

import math

from shuffledp.accounting.amplification.method import Method
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.rounding import round_up
from shuffledp.core.profile import LocalProfile


def single_report_delta(epsilon0: float, epsilon: float) -> float:
    """Return (e^epsilon0 - e^epsilon)_+ / (e^epsilon0 + 1), rounded up.

    Examples
    --------
    >>> single_report_delta(1.0, 1.0)
    0.0
    >>> round(single_report_delta(math.log(3.0), 0.0), 12)
    0.5
    """
    if epsilon >= epsilon0:
        return 0.0
    # Divided by e^epsilon0, so that no epsilon0 overflows.
    shrink = math.exp(-epsilon0)
    delta = round_up(-math.expm1(epsilon - epsilon0) / (1.0 + shrink), operations=16)
    return min(max(delta, 5e-324), 1.0)  # rounding up must not end at zero


def single_report_epsilon(epsilon0: float, delta: float) -> float:
    """Return ln(e^epsilon0 - delta (e^epsilon0 + 1))_+, rounded up: the inverse of the above.

    Examples
    --------
    >>> single_report_epsilon(1.0, 0.0)
    1.0
    """
    if delta == 0.0:
        return epsilon0
    shrink = -delta * (1.0 + math.exp(-epsilon0))
    if shrink <= -1.0:
        return 0.0
    epsilon = epsilon0 + math.log1p(shrink)
    return min(max(epsilon + 8.0 * math.ulp(epsilon0), 0.0), epsilon0)


def _epsilon(profile: LocalProfile, _num_users: int, delta: float) -> Enclosure:
    if delta < profile.delta0:
        return Enclosure(0.0, math.inf)
    room, spent = profile.participation - profile.delta0, delta - profile.delta0
    left = spent / room if spent < room else 1.0
    if profile.delta0 > 0.0 or profile.participation < 1.0:
        left *= 1.0 - 8.0 * math.ulp(1.0)
        if delta >= profile.participation:
            return Enclosure(0.0, 0.0)
    return Enclosure(0.0, single_report_epsilon(profile.epsilon0, left))


def _delta(profile: LocalProfile, _num_users: int, epsilon: float) -> Enclosure:
    single = single_report_delta(profile.epsilon0, epsilon)
    if profile.delta0 == 0.0 and profile.participation == 1.0:
        return Enclosure(0.0, single)
    sent = (profile.participation - profile.delta0) * single
    return Enclosure(0.0, min(round_up(profile.delta0 + sent, operations=8), profile.participation))


LOCAL = Method(
    name="local",
    source=(
        "post-processing; Kairouz, Oh, Viswanath 2015, arXiv:1311.0776v4, proof of Theorem 3.3, "
        "for epsilon below epsilon0"
    ),
    statement="delta(eps) <= delta0 + (q - delta0) (e^eps0 - e^eps)_+ / (e^eps0 + 1), q the "
    "probability of a report",
    proved_here=True,
    violated_hypothesis=lambda _profile, _num_users, _delta: None,
    epsilon=_epsilon,
    delta=_delta,
)
