"""The Renyi divergence of one release, which the filter of an adaptive ledger adds up.

With w(x) = H(P, Q; x) - (1 - x)_+ >= 0, an f-divergence with f(1) = 0 is the integral of
f''(x) w(x) over x > 0. So for P against Q and an order alpha > 1

    D_alpha = ln(1 + alpha (alpha - 1) * integral of x^(alpha - 2) w(x) dx) / (alpha - 1).

Every term is positive, so nothing cancels, however small the divergence. Chords of upper ends are
above w, because w is convex on either side of 1 (see `shuffledp.composition.privacy_loss`); the
integral of a chord has a closed form.

The published closed forms of Girgis et al. (arXiv:2105.05180) and of arXiv:2208.04591 are left out:
their statements could not be checked word by word.
"""

import functools
import math
from collections.abc import Iterator

import numpy as np

from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition.composition import Release
from shuffledp.composition.privacy_loss import curve_values, value_at
from shuffledp.core.arrays import Floats
from shuffledp.core.errors import PrecisionError

# Delta for which a curve of upper ends is chosen, where none is given.
_TYPICAL_DELTA = 1e-6

# Part of the integral that is left out, relative to its size in the Gaussian case; and the accuracy
# of the divergence.
_TAIL, _ACCURACY = 1e-6, 1e-3

_SMALLEST = 1e-290

# Losses outside have squares or exponentials beyond the doubles.
_LEAST, _MOST = 1e-100, 700.0


def renyi_without_failure(release: Release, order: float) -> float:
    """Return a bound on the Renyi divergence of neighbours when no stated guarantee fails."""
    return _divergence(release.curve(_TYPICAL_DELTA), order)


@functools.lru_cache(maxsize=4096)
def _divergence(curve: HockeyStickCurve, order: float) -> float:
    """Return the Renyi divergence of a curve, at most the largest loss of the curve."""
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


def _log_integrals(epsilons: Floats, values: Floats, order: float) -> Floats:
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
    if not _LEAST < curve.highest < _MOST:  # no integral of doubles: the largest loss is a bound
        return curve.highest
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
    # The divergence of the curve made of chords; the first chord is from x = 0.
    logs = _log_integrals(epsilons, ends, order)
    if ends[0] > 0.0:
        logs = np.append(logs, (order - 1.0) * epsilons[0] + math.log(float(ends[0]) / order))
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    # K is a difference of two numbers that differ by the distance: digits cancel accordingly.
    lost = 1e-12 + 32.0 * math.ulp(1.0) / min(float(np.diff(epsilons).min()), 1.0)
    lost += 8.0 * math.ulp(1.0) * (order * float(np.abs(epsilons).max()) + abs(total))
    total += lost + math.log(order * (order - 1.0))
    return min(float(np.logaddexp(0.0, total)) / (order - 1.0) * (1.0 + 1e-14), curve.highest)
