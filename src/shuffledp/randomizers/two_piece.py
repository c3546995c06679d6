"""The law of PrivUnit: inside a half-space more often than outside.

The report V is drawn from a fixed spherical law of base measure, reweighted: with probability P
from the part where <V, x> >= gamma, of base measure q, else from the rest. The densities for two
inputs differ by at most the factor (P / q) / ((1 - P) / (1 - q)), and reach it where one input's
part is met and the other's is not; so the exact local loss is

    epsilon0 = ln(P / (1 - P)) + ln((1 - q) / q).

P = 1 - T / 2^64 is exact. q depends on gamma through a special function in floating point, whose
error is covered by a stated margin.

Blanket and explicit data, as atoms: docs/results/worst-pairs.md proves that opposite points are the
worst pair. p = e^epsilon0 and b = (1 - 2 q) (1 - P) / (1 - q), the mass of ratios (1, 1), depend on
q, a floating-point number with a relative error of at most 3e-10; what is stated has b smaller by
1e-9 of itself and p rounded up, and dominates the true law.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shuffledp.core.arrays import Booleans, Floats
from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.enclosure import float_above, float_below, round_down, round_up
from shuffledp.core.profile import BlanketAtom
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    k_randomized_response_threshold,
    log_ratio_upper,
)
from shuffledp.randomizers.vector_reports import uniforms

# Losses below this show in no float of a report: the law is then uniform, and its loss is 0.
LEAST_EPSILON0 = 1e-12
# Whatever is asked above gives the same law. There are no more than 44.4 nats in P anyway.
MOST_EPSILON0 = 100.0
# gamma is kept to this many significant bits, and so is 1 - gamma where gamma > 1/2. The variance
# is flat at its minimum, so that this costs less than 1e-8 of it; and libraries that differ in the
# last bits of a special function still give the same law and the same fingerprint.
_GAMMA_BITS = 16
_LARGEST_GAMMA = 1.0 - 2.0**-37
# ln((1 - q) / q) is computed from q or 1/2 - q with a relative error of at most 3e-10, of which it
# takes at most 4/3. (It is far less: the tests compare with 50 digits.) Rounding up to 32 bits then
# adds at most 4.7e-10, so the margin is 1e-9 of that term in all.
_RELATIVE_MARGIN = 5e-10
_LOG_ODDS_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPieceLaw:
    """Where the cap begins, and how often it is missed.

    The report lies outside with probability exactly T / 2^64 <= 1/2; the loss in nats is rounded
    up.
    """

    gamma: float
    threshold: int
    loss: float


UNIFORM = TwoPieceLaw(gamma=0.0, threshold=WORD_VALUES // 2, loss=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The base measure q of the part inside, in (0, 1/2], and 1/2 - q, computed on its own.

    Each is good where it is small.
    """

    inside: float
    below_half: float

    @property
    def outside(self) -> float:
        """1 - q."""
        return 0.5 + self.below_half


def log_odds_upper(measure: Measure) -> float:
    """Return ln((1 - q) / q) rounded up by at most 1e-9 of it; exactly 0 for q = 1/2."""
    if measure.below_half < 0.25:
        log_odds = 2.0 * math.atanh(2.0 * measure.below_half)
    else:
        log_odds = math.log1p(-measure.inside) - math.log(measure.inside)
    mantissa, exponent = math.frexp(log_odds * (1.0 + _RELATIVE_MARGIN))
    return math.ldexp(math.ceil(math.ldexp(mantissa, _LOG_ODDS_BITS)), exponent - _LOG_ODDS_BITS)


def _on_grid(cosine: float) -> float:
    """Return the nearest float with 16 significant bits."""
    mantissa, exponent = math.frexp(cosine)
    return math.ldexp(round(math.ldexp(mantissa, _GAMMA_BITS)), exponent - _GAMMA_BITS)


def cosine_on_grid(gamma: float) -> float:
    """Return the nearest cosine on a grid that is fine towards 0 and towards 1.

    Up to 1/2 gamma has 16 significant bits, and above 1 - gamma has; at most 1 - 2^-37.
    """
    if gamma <= 0.5:
        return _on_grid(max(gamma, 0.0))
    return min(1.0 - _on_grid(1.0 - gamma), _LARGEST_GAMMA)


def law_for_cap(limit: float, gamma: float, measure: Measure) -> TwoPieceLaw:
    """Return the law that spends on P all that a cap leaves of a loss in [1e-12, 100]."""
    log_odds = log_odds_upper(measure)
    budget = Fraction(limit) - Fraction(log_odds)
    if budget < 0:
        return UNIFORM  # P would be below 1/2: the best cap leaves more, and nothing costs less
    threshold = k_randomized_response_threshold(2, float_below(budget))
    odds = Fraction(WORD_VALUES - threshold, threshold)
    loss = Fraction(log_ratio_upper(odds)) + Fraction(log_odds)
    return TwoPieceLaw(gamma=gamma, threshold=threshold, loss=float_above(loss))


def weight_difference(threshold: int, measure: Measure) -> float:
    """Return P / q - (1 - P) / (1 - q), the jump of the density at the cut; 0 if there is none."""
    # P - q from what each is away from 1/2, so that nothing cancels.
    above_half = (WORD_VALUES // 2 - threshold) / WORD_VALUES
    return (above_half + measure.below_half) / (measure.inside * measure.outside)


def draw_tail_probabilities(
    count: int, threshold: int, measure: Measure, entropy: Entropy
) -> tuple[Booleans, Floats]:
    """Return which reports lie outside, and where in their part, as base measure from its far end.

    Uniform on (0, q) inside and on (0, 1 - q) outside: the measure of what lies beyond the report,
    towards x inside and away from it outside. Two words a report.
    """
    is_outside = entropy.words(count) < np.uint64(threshold)
    part = np.where(is_outside, measure.outside, measure.inside)
    return is_outside, uniforms(entropy.words(count)) * part


# b takes the errors of 1/2 - q and 1 - q: less than twice 3e-10. e^epsilon0 has its own margin.
_THINNER = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RightAngle:
    """Base measures of the parts of x, -x and z at a right angle, 2 (shared + own) + ... = 1.

    v of what is ``shared`` by the parts of x and z, as much by those of -x and z; q - v in the part
    of x only, its ``own``, and as much in that of -x; q - 2 v in the ``third``, of z, only; 1 - 3 q
    + 2 v in ``none`` of them.
    """

    shared: float
    own: float
    third: float
    none: float


def two_piece_blanket(epsilon0: float, threshold: int, measure: Measure) -> tuple[BlanketAtom, ...]:
    """Return a blanket that dominates that of every pair."""
    ratio = math.exp(epsilon0)
    outside = threshold / WORD_VALUES
    neither = _THINNER * 2.0 * measure.below_half * outside / measure.outside
    one = round_down((1.0 - neither) / (ratio + 1.0))
    ratio = round_up(ratio, operations=16) if epsilon0 > 0.0 else 1.0
    return _some((one, ratio, 1.0), (one, 1.0, ratio), (neither, 1.0, 1.0))


def two_piece_attack(
    threshold: int, measure: Measure, right_angle: RightAngle
) -> tuple[BlanketAtom, ...]:
    """Return an attack, right to ten digits for measures with relative errors below 1e-10."""
    inside = (WORD_VALUES - threshold) / WORD_VALUES / measure.inside
    outside = threshold / WORD_VALUES / measure.outside
    high, low = inside / outside, outside / inside
    shared, own = right_angle.shared, right_angle.own
    return _some(
        (outside * own, high, 1.0),
        (outside * own, 1.0, high),
        (outside * right_angle.none, 1.0, 1.0),
        (inside * right_angle.third, low, low),
        (inside * shared, 1.0, low),
        (inside * shared, low, 1.0),
    )


def _some(*atoms: tuple[float, float, float]) -> tuple[BlanketAtom, ...]:
    """Return the atoms that have a mass."""
    return tuple(
        BlanketAtom(mass=mass, ratio0=ratio0, ratio1=ratio1)
        for mass, ratio0, ratio1 in atoms
        if mass > 0.0
    )
