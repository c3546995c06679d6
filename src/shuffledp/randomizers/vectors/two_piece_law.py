"""The law that PrivUnit and PrivUnitG share: inside a half-space more often than outside.

Both draw the report V from a fixed spherical law of base measure, reweighted: with probability P
from the part where <V, x> >= gamma, of base measure q, else from the rest. The densities for two
inputs differ by at most the factor (P / q) / ((1 - P) / (1 - q)), and reach it where one input's
part is met and the other's is not; so the exact local loss is

    epsilon0 = ln(P / (1 - P)) + ln((1 - q) / q).

P = 1 - T / 2^64 is exact. q depends on gamma through a special function in floating point, whose
error is covered by a stated margin.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.enclosure import float_above, float_below
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    k_randomized_response_threshold,
    log_ratio_upper,
)
from shuffledp.randomizers.vectors.normals import uniforms

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
    """Where the half-space begins and how often it is missed.

    Parameters
    ----------
    cut : float
        Where it begins, on the scale that the caller uses.
    threshold : int
        T: the report lies outside with probability exactly T / 2^64 <= 1/2.
    loss : float
        Local privacy loss in nats, rounded up.
    """

    cut: float
    threshold: int
    loss: float


UNIFORM = TwoPieceLaw(cut=0.0, threshold=WORD_VALUES // 2, loss=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The base measure q of the part inside, in (0, 1/2].

    Parameters
    ----------
    inside : float
        q; good where it is small.
    below_half : float
        1/2 - q, computed on its own; good where it is small.
    """

    inside: float
    below_half: float

    @property
    def outside(self) -> float:
        """1 - q."""
        return 0.5 + self.below_half


def log_odds_upper(measure: Measure) -> float:
    """Return ln((1 - q) / q), rounded up by at most 1e-9 of it.

    Parameters
    ----------
    measure : Measure
        Its small member with a relative error of at most 3e-10.

    Returns
    -------
    float
        An upper bound, with 32 significant bits; exactly 0 for q = 1/2.

    Examples
    --------
    >>> log_odds_upper(Measure(inside=0.5, below_half=0.0))
    0.0
    >>> bound = log_odds_upper(Measure(inside=0.25, below_half=0.25))
    >>> 0.0 < bound / math.log(3) - 1.0 < 1e-9
    True
    """
    if measure.below_half < 0.25:
        log_odds = 2.0 * math.atanh(2.0 * measure.below_half)
    else:
        log_odds = math.log1p(-measure.inside) - math.log(measure.inside)
    mantissa, exponent = math.frexp(log_odds * (1.0 + _RELATIVE_MARGIN))
    return math.ldexp(math.ceil(math.ldexp(mantissa, _LOG_ODDS_BITS)), exponent - _LOG_ODDS_BITS)


def on_grid(cut: float) -> float:
    """Return the nearest float with 16 significant bits.

    Examples
    --------
    >>> on_grid(0.5), on_grid(0.1) == 0.1, abs(on_grid(0.1) - 0.1) < 1e-6
    (0.5, False, True)
    """
    mantissa, exponent = math.frexp(cut)
    return math.ldexp(round(math.ldexp(mantissa, _GAMMA_BITS)), exponent - _GAMMA_BITS)


def cosine_on_grid(gamma: float) -> float:
    """Return the nearest cosine on a grid that is fine towards 0 and towards 1.

    Up to 1/2 gamma has 16 significant bits, and above 1 - gamma has; at most 1 - 2^-37.

    Examples
    --------
    >>> cosine_on_grid(1.0) == 1.0 - 2.0**-37
    True
    """
    if gamma <= 0.5:
        return on_grid(max(gamma, 0.0))
    return min(1.0 - on_grid(1.0 - gamma), _LARGEST_GAMMA)


def settle_law(
    epsilon0: float, *, best_cut: Callable[[float], float], measure_of: Callable[[float], Measure]
) -> TwoPieceLaw:
    """Return the law for the ``epsilon0`` asked for; it costs at most that.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss asked for, in nats, at least 0.
    best_cut : callable
        Cut that is best for a loss, on a grid.
    measure_of : callable
        Base measure of the part inside, given the cut.

    Returns
    -------
    TwoPieceLaw
        A fixed point: a law settled for its own ``loss`` is the same law.

    Notes
    -----
    Each round asks for the loss of the law before, which is never larger. As a rule the second
    round changes nothing; where the cut moves to its neighbour on the grid, one more is needed.
    """
    law = _law_for(epsilon0, best_cut, measure_of)
    while (again := _law_for(law.loss, best_cut, measure_of)) != law:
        law = again
    return law


def _law_for(
    epsilon0: float, best_cut: Callable[[float], float], measure_of: Callable[[float], Measure]
) -> TwoPieceLaw:
    """Return the law that spends on P all that the best cut leaves of ``epsilon0``."""
    if epsilon0 < LEAST_EPSILON0:
        return UNIFORM
    limit = min(epsilon0, MOST_EPSILON0)
    cut = best_cut(limit)
    log_odds = log_odds_upper(measure_of(cut))
    budget = Fraction(limit) - Fraction(log_odds)
    if budget < 0:
        return UNIFORM  # P would be below 1/2: the best cut leaves more, and nothing costs less
    threshold = k_randomized_response_threshold(2, float_below(budget))
    odds = Fraction(WORD_VALUES - threshold, threshold)
    loss = Fraction(log_ratio_upper(odds)) + Fraction(log_odds)
    return TwoPieceLaw(cut=cut, threshold=threshold, loss=float_above(loss))


def weight_difference(threshold: int, measure: Measure) -> float:
    """Return P / q - (1 - P) / (1 - q), the jump of the density at the cut; 0 if there is none.

    Parameters
    ----------
    threshold : int
        T, 1 - P = T / 2^64.
    measure : Measure
        Of the part inside.
    """
    # P - q from what each is away from 1/2, so that nothing cancels.
    above_half = (WORD_VALUES // 2 - threshold) / WORD_VALUES
    return (above_half + measure.below_half) / (measure.inside * measure.outside)


def draw_tail_probabilities(
    count: int, threshold: int, measure: Measure, entropy: Entropy
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which reports lie outside, and where in their part, as base measure from its far end.

    Parameters
    ----------
    count : int
        Number of reports.
    threshold : int
        T: a report lies outside with probability exactly T / 2^64.
    measure : Measure
        Of the part inside.
    entropy : Entropy
        Source of randomness; two words a report.

    Returns
    -------
    is_outside : ndarray of bool, shape (count,)
    tails : ndarray of float64, shape (count,)
        Uniform on (0, q) inside and on (0, 1 - q) outside: the measure of what lies beyond the
        report, towards x inside and away from it outside.
    """
    is_outside = entropy.words(count) < np.uint64(threshold)
    part = np.where(is_outside, measure.outside, measure.inside)
    return is_outside, uniforms(entropy.words(count)) * part
