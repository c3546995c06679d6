"""Ball arithmetic for certificates: exact doubles in, outward rounded doubles out, tails as balls.

A ball of Arb (through python-flint) is a midpoint and a radius that provably hold the exact number,
whatever is computed from it. Only certificates import this module: only they need the package.

Source: Johansson 2017, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic",
arXiv:1611.02831.
"""

import math

from flint import arb

from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure

ZERO = arb(0)

# Bits beyond those that a result should have: n = 1e15 times a logarithm of n takes 56 of them.
GUARD_BITS = 64


def outward(ball: arb) -> Enclosure:
    """Return the doubles around a ball that holds a number >= 0; exact zero stays zero.

    Raises
    ------
    PrecisionError
        If the ball is not finite.

    Examples
    --------
    >>> outward(arb(0)), outward(arb(1)).lower < 1.0 < outward(arb(1)).upper
    (Enclosure(lower=0.0, upper=0.0), True)
    """
    if ball.is_zero():
        return Enclosure(0.0, 0.0)
    if not ball.is_finite():
        raise PrecisionError("a ball is not finite: more bits are needed")
    lower = math.nextafter(float(ball.lower()), -math.inf)
    return Enclosure(max(lower, 0.0), math.nextafter(float(ball.upper()), math.inf))


def up_to(ball: arb) -> arb:
    """Return a ball that holds everything from 0 to the upper end of ``ball``, if that is > 0."""
    return ZERO.union(ball.upper()) if ball.upper() > 0 else ZERO


def floor_of_lower(ball: arb) -> int:
    """Return the largest whole number that is at most every number in ``ball``.

    Raises
    ------
    PrecisionError
        If the ball is not finite.

    Examples
    --------
    >>> floor_of_lower(arb(7) / 2), floor_of_lower(arb(-7) / 2)
    (3, -4)
    """
    if not ball.is_finite():
        raise PrecisionError("a ball is not finite: more bits are needed")
    return int(ball.lower().floor().fmpz())


def window(num_trials: int, probability: float, tail_exponent: float) -> tuple[int, int]:
    """Return first and last outcome outside which a binomial has about e^-tail_exponent of mass.

    By Bernstein's inequality in doubles: a choice, not a claim. What is left out is to be bounded
    by `outer_mass`.

    Examples
    --------
    >>> window(10**6, 0.5, 50.0)
    (494983, 505017)
    """
    mean = num_trials * probability
    variance = mean * max(1.0 - probability, 0.0)
    third = tail_exponent / 3.0
    reach = third + math.sqrt(third * third + 2.0 * tail_exponent * variance)
    return max(0, math.floor(mean - reach)), min(num_trials, math.ceil(mean + reach))


def outer_mass(num_trials: int, probability: arb, complement: arb, *, first: int, last: int) -> arb:
    """Return an upper bound, by Chernoff, of the mass of a binomial outside [first, last].

    ``complement`` is 1 - p, which may be known better than by subtraction.

    Examples
    --------
    >>> half = arb(1) / 2
    >>> float(outer_mass(10, half, half, first=0, last=10))
    0.0
    >>> 2.0**-10 <= float(outer_mass(10, half, half, first=0, last=9)) < 2.0**-9
    True
    """
    total = ZERO
    if first > 0:
        total += _chernoff(num_trials, probability, complement, first - 1, below=True)
    if last < num_trials:
        total += _chernoff(num_trials, probability, complement, last + 1, below=False)
    return total


def _chernoff(
    num_trials: int, probability: arb, complement: arb, outcome: int, *, below: bool
) -> arb:
    """Return exp(-n KL(k/n || p)) >= the mass from k = ``outcome`` outwards; 1 around the mean."""
    mean = num_trials * probability
    if not (outcome < mean if below else outcome > mean):
        return arb(1)
    exponent = ZERO
    if outcome > 0:
        exponent += outcome * (mean / outcome).log()
    if outcome < num_trials:
        rest = num_trials - outcome
        exponent += rest * (num_trials * complement / rest).log()
    return exponent.exp()


def binomial_point(num_trials: int, outcome: int, probability: arb, complement: arb) -> arb:
    """Return Pr[Bin(n, p) = k], 0 <= k <= n, for 0 < p < 1; ``complement`` is 1 - p.

    Examples
    --------
    >>> half = arb(1) / 2
    >>> round(float(binomial_point(4, 2, half, half)), 12)
    0.375
    """
    logarithm = (
        arb(num_trials + 1).lgamma()
        - arb(outcome + 1).lgamma()
        - arb(num_trials - outcome + 1).lgamma()
    )
    logarithm += outcome * probability.log() + (num_trials - outcome) * complement.log()
    return logarithm.exp()
