"""Integer thresholds: from the epsilon0 asked for to the exact law that is drawn, and back.

A draw compares a uniform 64-bit word with an integer threshold T, so that every probability is
exactly T / 2^64 and nothing of the law is lost to floating point. The thresholds here are rounded
towards more noise: the law drawn never costs more than the epsilon0 asked for. Every step is done
with whole numbers, fractions or 100-digit decimals whose error is accounted for; never with floats.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeVar

WORD_VALUES = 2**64  # a uniform word takes each of these values with the same probability

# T = 1 is the smallest threshold of a law that is private at all. It is reached at epsilon0 =
# 64 ln 2 = 44.4 by k-RR and OUE and at 128 ln 2 = 88.8 by symmetric unary encoding, so any larger
# epsilon0 gives the same law, and exponentials stay small enough for decimals.
_SATURATED_EPSILON0 = 100.0

_DECIMAL = Context(prec=100)
_Law = TypeVar("_Law")


def response_threshold(epsilon0: float, k: int = 2) -> int:
    """Return T such that each *other* symbol of k-RR has probability T / 2^64.

    The smallest T that is proved to cost at most ``epsilon0`` >= 0, in [1, floor(2^64 / k)]. At the
    upper end the only law at most ``epsilon0`` is the one that ignores its input. Source:
    Kairouz, Bonawitz, Ramage 2016, q = 1 / (e^epsilon0 + k - 1).
    """
    return min(math.ceil(WORD_VALUES / (exp_lower(epsilon0) + (k - 1))), WORD_VALUES // k)


def response_ratio(threshold: int, k: int = 2) -> Fraction:
    """Return the exact ratio of the probabilities of the true and of another symbol of k-RR."""
    return Fraction(WORD_VALUES - (k - 1) * threshold, threshold)


def log_ratio_upper(ratio: Fraction) -> float:
    """Return ln(ratio) rounded up to a float, for a ratio of at least 1; exactly 0 for 1."""
    if ratio == 1:
        return 0.0
    quotient = _DECIMAL.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # One unit in the last place up at each step covers the half unit that the step may lose.
    logarithm = _DECIMAL.ln(quotient.next_plus(_DECIMAL)).next_plus(_DECIMAL)
    rounded = float(logarithm)
    return rounded if Decimal(rounded) >= logarithm else math.nextafter(rounded, math.inf)


def response_law(epsilon0: float, k: int = 2, *, num_flips: int = 1) -> tuple[int, float]:
    """Return T of `response_threshold`, and the loss over the given number of symbols, rounded up.

    At most ``epsilon0``, which is shared out evenly: two values differ in 1 or 2 flipped bits.
    """
    # Halving a float is exact, except below 1e-307, where its exponential is 1 to 100 digits.
    threshold = response_threshold(epsilon0 / num_flips, k)
    return threshold, log_ratio_upper(response_ratio(threshold, k) ** num_flips)


def settle(epsilon0: float, law_for: Callable[[float], tuple[_Law, float]]) -> tuple[_Law, float]:
    """Return the law for ``epsilon0``, and its exact loss rounded up, such that it is settled.

    That is, a randomizer rebuilt from the ``epsilon0`` that it printed is the same randomizer, with
    the same fingerprint. ``law_for`` returns a law that costs at most the loss it is given, and
    that loss; so losses fall until the law repeats, mostly at the second or third.
    """
    law, loss = law_for(epsilon0)
    while (again := law_for(loss)) != (law, loss):
        law, loss = again
    return law, loss


def exp_lower(exponent: float) -> Fraction:
    """Return a fraction at most e^exponent, relatively within 1e-98 of it below saturation."""
    rounded = _DECIMAL.exp(Decimal(min(exponent, _SATURATED_EPSILON0)))
    # `exp` rounds to nearest, so one unit in the last place down is below the true value.
    return Fraction(rounded.next_minus(_DECIMAL))
