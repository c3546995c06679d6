"""The Renyi divergence of one release, which the filter of an adaptive ledger adds up.

With w(x) = H(P, Q; x) - (1 - x)_+ >= 0, an f-divergence with f(1) = 0 is the integral of
f''(x) w(x) over x > 0. So for P against Q and an order alpha > 1

    D_alpha = ln(1 + alpha (alpha - 1) * integral of x^(alpha - 2) w(x) dx) / (alpha - 1).

Every term is positive, so nothing cancels, however small the divergence. Chords of upper ends are
above w, because w is convex on either side of 1 (see `shuffledp.composition.privacy_loss`); the
integral of a chord has a closed form.

Beside it a closed form, for one shuffled release of any epsilon0-LDP randomizer.

*Proof.* Write p = e^epsilon0, r = 1/(p+1), k = (p-1)/(p+1) = tanh(epsilon0/2). The
clone pair dominates at every epsilon (docs/results/clones.md), hence in every
f-divergence. Let M be the mean of its two laws, N - 1 ~ Bin(n - 1, 2r) and D the difference of the
two counts: under M, D is a sum of N fair signs, and the laws are (1 + x) M and (1 - x) M with
x = k D/N. For order a > 1 and b = 2a - 1, with x = tanh u and since D is symmetric,

    exp((a-1) D_a) = E h(x^2),  h = (1/2) ((1+x)^a (1-x)^(1-a) + (1-x)^a (1+x)^(1-a))
                                  = cosh(bu) / cosh(u).

1. *Chord.* h is convex in z = x^2, because 2 dh/dz = b sinh(bu)/sinh(u) + (b sinh(bu) sinh(u) -
   cosh(bu) cosh(u)) increases in u: the first part does for b >= 1, and the derivative of the
   second is (b^2 - 1) cosh(bu) sinh(u). So h <= 1 + (h(k^2) - 1) x^2/k^2, and E[x^2/k^2] = E[1/N]:

       exp((a-1) D_a) - 1 <= E[1/N] (h(k^2) - 1),   E[1/N] = (1 - (1 - 2r)^n) / (2 r n),

   where h(k^2) = exp((a-1) D_a(RR)) is that of one binary randomized response.
2. *Tail.* cosh(bu) <= cosh(u) cosh(c u), c^2 = b^2 - 1 = 4a(a-1), coefficient by coefficient: with
   fair signs s, s' it says (E (s + c s')^2)^j <= E (s + c s')^(2j). While abs(x) <= y, abs(u) is at
   most (artanh(y)/y) abs(x), since artanh is convex; and E cosh(v D/N) = cosh(v/N)^N <=
   exp(v^2/(2N)) given N. Elsewhere h <= h(k^2). So for every m and every y in (0, k],

       exp((a-1) D_a) <= exp(2a(a-1) (k artanh(y)/y)^2 / m)
                         + h(k^2) (Pr[N < m] + Pr[abs(x) > y given N >= m]),

   the last at most 2 exp(-y^2 m / (2 k^2)) (Hoeffding), and 0 for y = k.

The published closed forms of Girgis et al. (arXiv:2105.05180) and of arXiv:2208.04591 are left out:
their statements could not be checked word by word, and these are of the same order.
"""

import functools
import math
from collections.abc import Iterator

import numpy as np

from shuffledp.amplification.curve import HockeyStickCurve
from shuffledp.composition.composition import Release
from shuffledp.composition.privacy_loss import curve_values, value_at
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.arrays import Floats
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import round_up

# Delta for which a curve of upper ends is chosen, where none is given.
_TYPICAL_DELTA = 1e-6

# Part of the integral that is left out, relative to its size in the Gaussian case; and the accuracy
# of the divergence.
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


# Beyond it p and p + 1 are one double.
_LARGEST_EPSILON0 = 600.0

# Shares of the mean of N - 1, and of the largest x, at which the tail is cut; any are valid.
_CUTS = 1.0 - 2.0 ** (-0.5 * np.arange(1, 40)[:, None])
_SHARES = 2.0 ** (-0.5 * np.arange(30)[None, :])


def blanket_renyi_upper(order: float, epsilon0: float, num_users: int) -> float:
    """Return a bound on the Renyi divergence of any shuffled randomizer, rounded up."""
    # ln(h - 1) at x = k, h - 1 = (p^(a-1) - 1)(1 - p^-a) p/(p+1)
    growth, shrunk = (order - 1.0) * epsilon0, -math.expm1(-order * epsilon0)
    if growth <= 0.0 or shrunk <= 0.0:
        return 0.0
    log_growth = growth if growth > 50.0 else math.log(math.expm1(growth))
    log_excess = log_growth + math.log(shrunk) - math.log1p(math.exp(-epsilon0))
    log_excess += 1e-14 * (abs(log_growth) + abs(math.log(shrunk)) + 1.0)
    log_inverse = math.log(_mean_inverse_upper(epsilon0, float(num_users)))
    local, chord = (
        round_up(float(np.logaddexp(0.0, factor + log_excess)), operations=16) + 1e-200
        for factor in (0.0, log_inverse)
    )
    least = min(chord, local, _tail(order, epsilon0, float(num_users), local))
    return min(round_up(least / (order - 1.0)), epsilon0)


def _mean_inverse_upper(epsilon0: float, n: float) -> float:
    """Return E[1/N] = (1 - (1 - 2r)^n) / (2 r n), rounded up, at most 1."""
    double = 2.0 / (math.exp(min(epsilon0, _LARGEST_EPSILON0)) + 1.0)
    if double * n < 1e-9:
        return 1.0
    # 1 - (1 - 2r)^n, at most 1
    hit = -math.expm1(n * math.log1p(-double)) if double < 0.5 else 1.0
    return min(round_up(hit / (double * n), operations=64) * (1.0 + 1e-13), 1.0)


def _tail(order: float, epsilon0: float, n: float, local: float) -> float:
    """Return the smallest of the second part's bounds on (a-1) D_a over some m and y, rounded up.

    ``local`` is ln h(k^2), rounded up.
    """
    mean = 2.0 * (n - 1.0) / (math.exp(min(epsilon0, _LARGEST_EPSILON0)) + 1.0)
    # C >= cut * mean but for exp(-mean (1 - cut)^2 / 2), so N >= cut * mean + 1
    least = _CUTS * mean + 1.0
    few = np.exp(-0.5 * mean * (1.0 - _CUTS) ** 2)
    far = np.where(_SHARES < 1.0, 2.0 * np.exp(-0.5 * _SHARES * _SHARES * least), 0.0)
    with np.errstate(divide="ignore"):
        slope = np.arctanh(_SHARES * math.tanh(0.5 * epsilon0)) / _SHARES
    slope[0, 0] = 0.5 * epsilon0
    inside = 2.0 * order * (order - 1.0) * slope * slope / least * (1.0 + 1e-13)
    missed = np.log(few + far + 1e-300)
    outside = local + missed * (1.0 - 1e-14) + 1e-13 * (local + 1.0)
    return float(np.logaddexp(inside, outside).min())
