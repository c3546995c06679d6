"""No amplification at all: the shuffled release is post-processing of epsilon0-LDP reports.

The floor under every other result: epsilon <= epsilon0 with delta = 0, and at a smaller epsilon the
delta of one report, (e^epsilon0 - e^epsilon)/(e^epsilon0 + 1), which binary randomized response
attains (Kairouz, Oh, Viswanath 2015, arXiv:1407.1338v4, Theorem 2). The only result that holds at
delta = 0.
"""

import math

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.rounding import round_up
from shuffledp.privacy.amplification.method import Method


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


LOCAL = Method(
    name="local",
    source=(
        "post-processing; Kairouz, Oh, Viswanath 2015, arXiv:1407.1338v4, Theorem 2, for epsilon "
        "below epsilon0"
    ),
    statement="eps <= eps0, and delta(eps) <= (e^eps0 - e^eps)/(e^eps0 + 1)",
    violated_hypothesis=lambda _profile, _num_users, _delta: None,
    epsilon=lambda profile, _n, delta: Enclosure(
        0.0, single_report_epsilon(profile.epsilon0, delta)
    ),
    delta=lambda profile, _n, epsilon: Enclosure(
        0.0, single_report_delta(profile.epsilon0, epsilon)
    ),
)
