"""Renyi divergences from hockey-stick curves, and epsilon from Renyi divergences.

With w(x) = H(P, Q; x) - (1 - x)_+ >= 0, an f-divergence with f(1) = 0 is the integral of
f''(x) w(x) over x > 0. So for P against Q

    D_alpha = ln(1 + alpha (alpha - 1) * integral of x^(alpha - 2) w(x) dx) / (alpha - 1),
    D_1 = integral of w(x) / x dx (Kullback-Leibler),   D_inf = the largest epsilon with w > 0.

Every term is positive, so nothing cancels, however small the divergence. Chords of upper ends are
above w, and those of `lowered_values` below it, because w is convex on either side of 1 (see
`shuffledp.accounting.discretization`); the integral of a chord has a closed form.

What is left of the best bound after a detour over Renyi divergences, as most libraries take it.

A method like the others for `compare_bounds`, but not among those that the accountant chooses from:
it starts from the accountant's choice, and can only lose by the detour.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.method import Method
from shuffledp.accounting.discretization import curve_values, lowered_values, value_at
from shuffledp.accounting.privacy_loss import HockeyStickCurve, PrivacyLoss
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.core.checks import require_open_unit, require_positive
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

# What is left out of the integral, relative to its size in the Gaussian case.
_TAIL = 1e-6

_SMALLEST = 1e-290

_LARGEST_LOSS = 600.0


def _require_order(order: float) -> float:
    if not order >= 1.0:
        raise ParameterError(f"order = {order} is not in [1, inf]: give a Renyi order, such as 2")
    return float(order)


def _steps(distance: float, order: float, dense: float) -> Iterator[float]:
    """Yield multiples of a distance as far as ``dense``, then ever larger steps.

    Out there the integrand is negligible, and stays so if it grows by e^20 along a step.
    """
    index = 1
    while index * distance < dense:
        yield index * distance
        index += 1
    reached = index * distance
    while True:
        yield reached
        reached += max(distance, min(0.1 * reached, 20.0 / max(order - 1.0, 1.0)))


def _log_integrals(
    epsilons: NDArray[np.float64], values: NDArray[np.float64], order: float
) -> NDArray[np.float64]:
    """Return ln of the integral of x^(order - 2) times each chord, order > 1 or = 1.

    With d the distance in epsilon and everything divided by the power at the right end,
    E(b) = (1 - e^(-b d)) / b, the chord contributes values (E - K, K) at its two ends, where
    E = E(order - 1) and K = (e^d E(order) - E(order - 1)) / (e^d - 1), 0 < K < E.
    """
    gaps = np.diff(epsilons)
    power = order - 1.0
    whole = gaps if power == 0.0 else -np.expm1(-power * gaps) / power
    right = (np.exp(gaps) * -np.expm1(-order * gaps) / order - whole) / np.expm1(gaps)
    right = np.clip(right, 0.0, whole)
    integrals = values[:-1] * (whole - right) + values[1:] * right
    with np.errstate(divide="ignore"):
        return power * epsilons[1:] + np.log(integrals)


def renyi_divergence(
    curve: HockeyStickCurve, order: float, *, upper: bool, accuracy: float = 1e-3
) -> float:
    """Return the Renyi divergence of P from Q whose curve is given."""
    alpha = _require_order(order)
    allowed = min(require_positive("accuracy", accuracy), 0.1)
    deviation = value_at(curve.forward, 0.0).upper * math.sqrt(2.0 * math.pi)
    if deviation == 0.0:
        return 0.0
    if math.isinf(alpha) or (upper and math.isinf(curve.highest)):
        return curve.highest if upper else _last_positive(curve)
    # Where the integrand has fallen by e^-72, were the loss Gaussian.
    dense = min(curve.highest, (alpha * deviation + 12.0) * deviation)
    # Chords of upper ends add d^2 / 6 to the variance, those below take off 5 d^2 / 6 at most.
    distance = min(deviation, curve.highest) * math.sqrt((6.0 if upper else 1.2) * allowed)
    if dense == curve.highest:  # then a loss of exactly the highest, which counts, is a knot
        distance = min(distance, 2.0 * allowed * dense)
        distance = dense / math.ceil(dense / distance)
    size = _TAIL * min(alpha * deviation * deviation, 1.0)
    farthest = curve.highest if upper else dense
    tail = max(size * math.exp(-min((alpha - 1.0) * farthest, 690.0)), _SMALLEST)
    values = curve_values(
        curve,
        lambda: _steps(distance, alpha, dense),
        tail=min(tail, 1e-3 * deviation),
        left_tail=min(size, 1e-3 * deviation),
        upper=upper,
    )
    ends = values.upper if upper else lowered_values(values)
    epsilons = values.epsilons
    if upper and ends[-1] > 0.0:
        epsilons, ends = np.append(epsilons, curve.highest), np.append(ends, 0.0)
    return _from_chords(epsilons, ends, alpha, curve.highest, upper=upper)


def _last_positive(curve: HockeyStickCurve) -> float:
    """Return an epsilon at which P surely has more than e^epsilon times the probability of Q."""
    above, _ = last_above_first_below(
        lambda epsilon: value_at(curve.forward, epsilon).lower,
        _SMALLEST,
        0.0,
        min(curve.highest, _LARGEST_LOSS),
        relative_tolerance=1e-3,
    )
    return above


def _from_chords(
    epsilons: NDArray[np.float64],
    values: NDArray[np.float64],
    order: float,
    highest: float,
    *,
    upper: bool,
) -> float:
    """Return the divergence of the curve made of chords, rounded in the direction asked."""
    logs = _log_integrals(epsilons, values, order)
    if values[0] > 0.0:  # the chord from x = 0, where w = 0
        first = (order - 1.0) * epsilons[0] + math.log(float(values[0]) / order)
        logs = np.append(logs, first)
    top = float(logs.max(initial=-math.inf))
    if math.isinf(top):
        return 0.0
    total = top + math.log(float(np.exp(logs - top).sum()))
    # K is a difference of two numbers that differ by the distance, hence loses so many digits.
    lost = 1e-12 + 32.0 * math.ulp(1.0) / min(float(np.diff(epsilons).min()), 1.0)
    lost += 8.0 * math.ulp(1.0) * (order * float(np.abs(epsilons).max()) + abs(total))
    total += lost if upper else -lost
    if order == 1.0:
        result = math.exp(total)
    else:
        result = float(np.logaddexp(0.0, total + math.log(order * (order - 1.0)))) / (order - 1.0)
    return min(result * (1.0 + 1e-14 if upper else 1.0 - 1e-14), highest)


def renyi_of_loss(loss: PrivacyLoss, order: float) -> float:
    """Return the Renyi divergence of order alpha > 1 of a privacy loss, in nats.

    ln(E[e^((alpha - 1) L)]) / (alpha - 1). Errs in the direction of the law; ``inf`` where an
    infinite loss has any probability, as in every composed upper law: there, add up
    `renyi_divergence` of the parts.
    """
    if not 1.0 < order < math.inf:
        raise ParameterError(
            f"order = {order} is not in (1, inf): for 1 and inf use renyi_divergence of the curve"
        )
    if loss.infinite_mass > 0.0:
        return math.inf
    positive = np.flatnonzero(loss.masses)
    if positive.size == 0:
        return 0.0
    exponents = (order - 1.0) * ((positive + loss.first) * loss.interval)
    top = float(exponents.max())
    total = math.log(float(loss.masses[positive] @ np.exp(exponents - top)))
    slack = 1e-13 + 4.0 * math.ulp(1.0) * (abs(top) + float(np.abs(exponents).max()))
    result = (top + total + (slack if loss.is_upper else -slack)) / (order - 1.0)
    return max(result, 0.0)


def epsilon_from_renyi(orders: Sequence[float], values: Sequence[float], delta: float) -> float:
    """Return the least epsilon that Renyi divergences imply at a delta, rounded up."""
    allowed = require_open_unit("delta", delta)
    if len(orders) != len(values):
        raise ParameterError(f"{len(orders)} orders but {len(values)} values: give one for each")
    best = math.inf
    for order, value in zip(orders, values, strict=True):
        alpha = _require_order(order)
        if not value >= 0.0:
            raise ParameterError(f"value = {value} of order {order} is not in [0, inf]")
        if alpha == 1.0:
            continue
        if math.isinf(alpha):
            best = min(best, value)
            continue
        gain = -(math.log(allowed) + math.log(alpha)) / (alpha - 1.0)
        shrink = math.log1p(-1.0 / alpha)
        slack = 8.0 * math.ulp(1.0) * (value + abs(gain) + abs(shrink))
        best = min(best, value + gain + shrink + slack)
    return max(best, 0.0)


# Which curve to start from where delta is not given.
_TYPICAL_DELTA = 1e-6

# Orders that are tried, relative to the best one for Gaussian losses; others have heavier tails.
_SPREAD = (0.1, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 1.0)

# e^600 times the least delta that is told from 0 is still small.
_LARGEST_EXPONENT = 600.0

_SMALLEST_DELTA = 1e-300


def _release(profile: LocalProfile, num_users: int) -> ShuffledRelease:
    return ShuffledRelease(profile=profile, num_users=num_users)


def _best_order(
    profile: LocalProfile, num_users: int, delta: float | None, epsilon: float | None
) -> float:
    """Return the order that is best for Gaussian losses of the same total variation."""
    curve = _release(profile, num_users).curve(delta or _TYPICAL_DELTA).curve
    deviation = max(curve.forward(0.0).upper, _SMALLEST_DELTA) * math.sqrt(2.0 * math.pi)
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
    """Return the least epsilon that some Renyi divergences imply, rounded up."""
    orders, values = _divergences(profile, num_users, delta, None)
    return epsilon_from_renyi(orders, values, delta)


def converted_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return the least delta that some Renyi divergences imply, rounded up, at most 1.

    The formula of `epsilon_from_renyi`, solved for delta: with m = (1 - 1/alpha)^(alpha - 1) /
    alpha, delta <= m e^((alpha - 1)(D - epsilon)).
    """
    least = 0.0
    for order, value in zip(*_divergences(profile, num_users, None, epsilon), strict=True):
        terms = (value, -epsilon, math.log1p(-1.0 / order))
        size = sum(map(abs, terms)) * (order - 1.0) + math.log(order) + 1.0
        exponent = (order - 1.0) * math.fsum(terms) - math.log(order)
        least = min(least, exponent + 16.0 * math.ulp(1.0) * size)
    return min(max(math.exp(least) * (1.0 + 1e-14), _SMALLEST_DELTA), 1.0)


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
