"""The Renyi divergence of one release, which the filter of an adaptive ledger adds up.

With w(x) = H(P, Q; x) - (1 - x)_+ >= 0, an f-divergence with f(1) = 0 is the integral of
f''(x) w(x) over x > 0. So for P against Q and an order alpha > 1

    D_alpha = ln(1 + alpha (alpha - 1) * integral of x^(alpha - 2) w(x) dx) / (alpha - 1).

Every term is positive, so nothing cancels, however small the divergence. Chords of upper ends are
above w, because w is convex on either side of 1 (see `shuffledp.accounting.discretization`); the
integral of a chord has a closed form.
"""

import functools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.renyi_closed_forms import blanket_renyi_upper
from shuffledp.accounting.composed import Release
from shuffledp.accounting.discretization import curve_values, value_at
from shuffledp.accounting.privacy_loss import HockeyStickCurve
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.core.errors import PrecisionError

# Which delta a curve of upper ends is chosen for, where none is asked about.
_TYPICAL_DELTA = 1e-6

# What is left out of the integral, relative to its size in the Gaussian case; and how far the
# result may be above the divergence.
_TAIL, _ACCURACY = 1e-6, 1e-3

_SMALLEST = 1e-290


def renyi_without_failure(release: Release, order: float) -> float:
    """Return a Renyi divergence that no neighbours exceed when no stated guarantee fails.

    Rounded up.
    """
    found = _divergence(release.curve(_TYPICAL_DELTA), order)
    if (
        isinstance(release, ShuffledRelease)
        and release.sampled_from is None
        and release.law.delta0 == 0.0
    ):
        # At high orders the curve's doubles end before its integral does.
        found = min(found, blanket_renyi_upper(order, release.law.epsilon0, release.num_users))
    return found


@functools.lru_cache(maxsize=4096)
def _divergence(curve: HockeyStickCurve, order: float) -> float:
    """Return the divergence of the curve, at most that of its end."""
    try:
        return renyi_divergence(curve, order)
    except PrecisionError:
        return curve.highest


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
    """Return ln of the integral of x^(order - 2) times each chord.

    With d the distance in epsilon and everything divided by the power at the right end,
    E(b) = (1 - e^(-b d)) / b, the chord contributes values (E - K, K) at its two ends, where
    E = E(order - 1) and K = (e^d E(order) - E(order - 1)) / (e^d - 1), 0 < K < E.
    """
    gaps = np.diff(epsilons)
    power = order - 1.0
    whole = -np.expm1(-power * gaps) / power
    right = (np.exp(gaps) * -np.expm1(-order * gaps) / order - whole) / np.expm1(gaps)
    right = np.clip(right, 0.0, whole)
    integrals = values[:-1] * (whole - right) + values[1:] * right
    with np.errstate(divide="ignore"):
        return power * epsilons[1:] + np.log(integrals)


def renyi_divergence(curve: HockeyStickCurve, order: float) -> float:
    """Return the Renyi divergence, of an order > 1, of the curve's upper ends; rounded up."""
    deviation = value_at(curve.forward, 0.0).upper * math.sqrt(2.0 * math.pi)
    if deviation == 0.0 or curve.highest == 0.0:
        return 0.0
    if math.isinf(curve.highest):
        return math.inf
    # Where the integrand has fallen by e^-72, were the loss Gaussian.
    dense = min(curve.highest, (order * deviation + 12.0) * deviation)
    # Chords add d^2 / 6 to the variance.
    distance = min(deviation, curve.highest) * math.sqrt(6.0 * _ACCURACY)
    if dense == curve.highest:  # then a loss of exactly the highest, which counts, is a knot
        distance = min(distance, 2.0 * _ACCURACY * dense)
        distance = dense / math.ceil(dense / distance)
    size = _TAIL * min(order * deviation * deviation, 1.0)
    tail = max(size * math.exp(-min((order - 1.0) * curve.highest, 690.0)), _SMALLEST)
    values = curve_values(
        curve,
        lambda: _steps(distance, order, dense),
        tail=min(tail, 1e-3 * deviation),
        left_tail=min(size, 1e-3 * deviation),
        upper=True,
    )
    epsilons, ends = values.epsilons, values.upper
    if ends[-1] > 0.0:
        epsilons, ends = np.append(epsilons, curve.highest), np.append(ends, 0.0)
    return _from_chords(epsilons, ends, order, curve.highest)


def _from_chords(
    epsilons: NDArray[np.float64], values: NDArray[np.float64], order: float, highest: float
) -> float:
    """Return the divergence of the curve made of chords, rounded up; the first is from x = 0."""
    logs = _log_integrals(epsilons, values, order)
    if values[0] > 0.0:
        first = (order - 1.0) * epsilons[0] + math.log(float(values[0]) / order)
        logs = np.append(logs, first)
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    # K is a difference of two numbers that differ by the distance, hence loses so many digits.
    lost = 1e-12 + 32.0 * math.ulp(1.0) / min(float(np.diff(epsilons).min()), 1.0)
    lost += 8.0 * math.ulp(1.0) * (order * float(np.abs(epsilons).max()) + abs(total))
    total += lost
    result = float(np.logaddexp(0.0, total + math.log(order * (order - 1.0)))) / (order - 1.0)
    return min(result * (1.0 + 1e-14), highest)
