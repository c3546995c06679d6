"""What is left of the best bound after a detour over Renyi divergences, as most libraries take it.

A method like the others for `compare_bounds`, but not among those that the accountant chooses from:
it starts from the accountant's choice, and can only lose by the detour.
"""

import math

from shuffledp.accounting.amplification.method import Method
from shuffledp.accounting.divergences.renyi import epsilon_from_renyi
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile

# Which curve to start from where delta is not given.
_TYPICAL_DELTA = 1e-6

# Orders that are tried, relative to the best one for Gaussian losses; others have heavier tails.
_SPREAD = (0.1, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 1.0)

# e^600 times the least delta that is told from 0 is still small.
_LARGEST_EXPONENT = 600.0

_SMALLEST = 1e-300


def _release(profile: LocalProfile, num_users: int) -> ShuffledRelease:
    return ShuffledRelease(profile=profile, num_users=num_users)


def _best_order(
    profile: LocalProfile, num_users: int, delta: float | None, epsilon: float | None
) -> float:
    """Return the order that is best for Gaussian losses of the same total variation."""
    curve = _release(profile, num_users).curve(delta or _TYPICAL_DELTA).curve
    deviation = max(curve.forward(0.0).upper, _SMALLEST) * math.sqrt(2.0 * math.pi)
    if epsilon is not None:
        return 1.0 + epsilon / deviation**2
    return 1.0 + math.sqrt(-2.0 * math.log(delta or _TYPICAL_DELTA)) / deviation


def _divergences(
    profile: LocalProfile, num_users: int, delta: float | None, epsilon: float | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the orders that are tried, and upper ends of their divergences."""
    largest = _best_order(profile, num_users, delta, epsilon)
    orders = [1.0 + share * (largest - 1.0) for share in _SPREAD]
    usable = [each for each in orders if (each - 1.0) * profile.epsilon0 <= _LARGEST_EXPONENT]
    if not usable:
        raise PrecisionError(
            f"Renyi divergences of order {orders[0]:.6g} are beyond double precision"
        )
    curve = _release(profile, num_users).renyi(usable, with_lower=False)
    return curve.orders, curve.upper


def converted_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
    """Return the least epsilon that some Renyi divergences imply, rounded up.

    Examples
    --------
    >>> 1.0 < converted_epsilon(LocalProfile(epsilon0=1.0), 10_000, 1e-6) / 0.0432062 < 1.2
    True
    """
    orders, values = _divergences(profile, num_users, delta, None)
    return epsilon_from_renyi(orders, values, delta)


def converted_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return the least delta that some Renyi divergences imply, rounded up, at most 1.

    The formula of `epsilon_from_renyi`, solved for delta: with
    m = (1 - 1/alpha)^(alpha - 1) / alpha, delta <= m e^((alpha - 1)(D - epsilon)).

    Examples
    --------
    >>> converted_delta(LocalProfile(epsilon0=1.0), 10_000, 0.0432062) < 5e-6
    True
    """
    least = 0.0
    for order, value in zip(*_divergences(profile, num_users, None, epsilon), strict=True):
        terms = (value, -epsilon, math.log1p(-1.0 / order))
        size = sum(map(abs, terms)) * (order - 1.0) + math.log(order) + 1.0
        exponent = (order - 1.0) * math.fsum(terms) - math.log(order)
        least = min(least, exponent + 16.0 * math.ulp(1.0) * size)
    return min(max(math.exp(least) * (1.0 + 1e-14), _SMALLEST), 1.0)


def _violation(profile: LocalProfile, num_users: int, delta: float | None) -> str | None:
    if profile.delta0 > 0.0 or not 0.0 < profile.epsilon0 <= 200.0:
        return "0 < epsilon0 <= 200 and delta0 = 0"
    if delta is None:
        return None
    # Where the best order is out of reach, what is left says more about floats than about Renyi.
    order = _best_order(profile, num_users, delta, None)
    if (order - 1.0) * profile.epsilon0 <= _LARGEST_EXPONENT:
        return None
    return "fewer users: its Renyi orders are beyond double precision"


RENYI_CONVERTED = Method(
    name="renyi-converted",
    source=(
        "Canonne, Kamath, Steinke 2020, arXiv:2004.00010v4, Proposition 12, from Renyi "
        "divergences of the best method's curve"
    ),
    statement="eps <= D_a + ln(1 - 1/a) - (ln(delta) + ln(a))/(a - 1), the least over orders a > 1",
    automatic=False,
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: Enclosure(0.0, converted_epsilon(profile, n, delta)),
    delta=lambda profile, n, epsilon: Enclosure(0.0, converted_delta(profile, n, epsilon)),
)
