"""Decisions about one uniform real number, exact: bits are drawn until they settle the question.

A Mallows model asks such questions as "is U below 1 / (1 + e^theta)?" of a uniform U in [0, 1).
Compiled loops answer nearly all of them from 32 or 64 bits of U with floats, and stop where the
answer lies within the floats' error. This module settles those: it encloses logarithms with
`decimal`, whose ln is correctly rounded, and draws 64 more bits of the same U as long as the
enclosure does not decide. So the probability of each answer is the real number meant, however
small: it is not rounded to a multiple of 2^-64, which would spoil likelihood ratios in the tails.

Every question here ends with probability 1: the logarithm of a rational is never rational but for
ln 1 = 0, and U itself falls on a given boundary with probability 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
)
from fractions import Fraction

from shuffledp.core.entropy import Entropy

WORD_BITS = 64

_INFINITY = Decimal("Infinity")


@dataclass(slots=True, kw_only=True)
class LazyUniform:
    """A uniform number U in [0, 1), of which more and more bits become known.

    Parameters
    ----------
    prefix : int
        The bits drawn so far: U lies in [prefix, prefix + 1) / 2^num_bits.
    num_bits : int
        How many bits that are, at least 0.
    entropy : Entropy
        Where further bits come from.

    Examples
    --------
    >>> uniform = LazyUniform(prefix=1, num_bits=1, entropy=Entropy.from_seed(0))
    >>> uniform.refine()
    >>> uniform.num_bits, uniform.prefix >> 64
    (65, 1)
    """

    prefix: int
    num_bits: int
    entropy: Entropy

    def refine(self) -> None:
        """Draw 64 further bits."""
        self.prefix = (self.prefix << WORD_BITS) | int(self.entropy.words(1)[0])
        self.num_bits += WORD_BITS


def draw_exponential_above(uniform: LazyUniform, threshold: Fraction) -> bool:
    """Return whether the exponential variate -ln U is above a threshold.

    Parameters
    ----------
    uniform : LazyUniform
        U; refined as far as needed.
    threshold : Fraction
        A real number t >= 0.

    Returns
    -------
    bool
        True with probability exactly e^-t.

    Notes
    -----
    Source: this module. Cost: some 50 microseconds.

    Examples
    --------
    >>> uniform = LazyUniform(prefix=1, num_bits=1, entropy=Entropy.from_seed(0))
    >>> draw_exponential_above(uniform, Fraction(1)), uniform.num_bits  # U >= 1/2 > 1/e
    (False, 1)
    """

    def enclosed(digits: int) -> tuple[Decimal, Decimal]:
        numerator, denominator = threshold.numerator, threshold.denominator
        return (
            _quotient(numerator, denominator, digits, ROUND_FLOOR),
            _quotient(numerator, denominator, digits, ROUND_CEILING),
        )

    return _draw_exponential_above(uniform, enclosed)


def draw_norm_acceptance(
    uniform: LazyUniform, theta: float, rate: float, point: Sequence[int]
) -> bool:
    """Return whether -ln U is above theta l2 - rate l1, for a point of a lattice.

    Parameters
    ----------
    uniform : LazyUniform
        U; refined as far as needed.
    theta, rate : float
        Positive, and so that the threshold is at least 0 for every point.
    point : sequence of int
        In any number of dimensions; l2 is its Euclidean norm, l1 the sum of its magnitudes.

    Returns
    -------
    bool
        True with probability exactly e^(rate l1 - theta l2).

    Notes
    -----
    Source: this module; `decimal` rounds square roots correctly. Cost: some 50 microseconds.

    Examples
    --------
    >>> uniform = LazyUniform(prefix=1, num_bits=1, entropy=Entropy.from_seed(0))
    >>> draw_norm_acceptance(uniform, 1.0, 0.5, [3, -4])  # 5 - 7/2; U >= 1/2 > e^-1.5
    False
    """
    square, total = sum(each * each for each in point), sum(abs(each) for each in point)

    def enclosed(digits: int) -> tuple[Decimal, Decimal]:
        down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
        root = _context(digits, ROUND_HALF_EVEN).sqrt(Decimal(square))
        low, high = root.next_minus(down), root.next_plus(up)
        taken_high = up.multiply(Decimal(rate), Decimal(total))
        taken_low = down.multiply(Decimal(rate), Decimal(total))
        return (
            down.subtract(down.multiply(Decimal(theta), low), taken_high),
            up.subtract(up.multiply(Decimal(theta), high), taken_low),
        )

    return square == 0 or _draw_exponential_above(uniform, enclosed)


def _draw_exponential_above(
    uniform: LazyUniform, enclosed: Callable[[int], tuple[Decimal, Decimal]]
) -> bool:
    """Return whether -ln U is above a number that is enclosed as narrowly as digits are asked."""
    while True:
        digits = _digits(uniform)
        lower, upper = _exponential_bounds(uniform, digits)
        least, most = enclosed(digits)
        if lower > most:
            return True
        if upper < least:
            return False
        uniform.refine()


def draw_geometric(uniform: LazyUniform, theta: float) -> int:
    """Return floor(-ln U / theta), a geometric variate.

    Parameters
    ----------
    uniform : LazyUniform
        U; refined as far as needed.
    theta : float
        In (0, inf).

    Returns
    -------
    int
        At least j with probability exactly e^(-theta j).

    Notes
    -----
    Source: this module. Cost: some 50 microseconds.

    Examples
    --------
    >>> uniform = LazyUniform(prefix=1, num_bits=2, entropy=Entropy.from_seed(0))
    >>> draw_geometric(uniform, 0.7), uniform.num_bits  # -ln U is in (0.693, 1.386]
    (1, 66)
    """
    step = Decimal(theta)
    while True:
        digits = _digits(uniform)
        lower, upper = _exponential_bounds(uniform, digits)
        if upper.is_finite():
            smallest = _context(digits, ROUND_FLOOR).divide(lower, step)
            largest = _context(digits, ROUND_CEILING).divide(upper, step)
            if int(smallest) == int(largest):
                return int(smallest)
        uniform.refine()


def draw_against_odds(uniform: LazyUniform, weight: int, theta: float) -> bool:
    """Return whether U < weight / (weight + e^theta).

    Parameters
    ----------
    uniform : LazyUniform
        U; refined as far as needed.
    weight : int
        At least 1.
    theta : float
        In [0, inf).

    Returns
    -------
    bool
        True with probability exactly weight / (weight + e^theta).

    Notes
    -----
    Source: this module; U < w / (w + e^theta) means theta < ln(w (1 - U) / U). Cost: some 50
    microseconds.

    Examples
    --------
    >>> uniform = LazyUniform(prefix=1, num_bits=1, entropy=Entropy.from_seed(0))
    >>> draw_against_odds(uniform, 1, 0.5), uniform.num_bits  # U >= 1/2 > 1 / (1 + e^0.5)
    (False, 1)
    """
    exact_theta = Decimal(theta)
    while True:
        digits = _digits(uniform)
        above = (1 << uniform.num_bits) - uniform.prefix
        lower, _ = _log_bounds(weight * (above - 1), uniform.prefix + 1, digits)
        _, upper = _log_bounds(weight * above, uniform.prefix, digits)
        if lower > exact_theta:
            return True
        if upper < exact_theta:
            return False
        uniform.refine()


def _digits(uniform: LazyUniform) -> int:
    """Return decimal digits enough to tell neighbouring prefixes apart, with 40 to spare."""
    return uniform.num_bits // 3 + 40


def _context(digits: int, rounding: str) -> Context:
    """Return decimals of so many digits and of any exponent; 1/0 and 0 - 1/0 do not occur."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)


def _quotient(numerator: int, denominator: int, digits: int, rounding: str) -> Decimal:
    """Return a quotient of whole numbers, rounded once."""
    return _context(digits, rounding).divide(Decimal(numerator), Decimal(denominator))


def _exponential_bounds(uniform: LazyUniform, digits: int) -> tuple[Decimal, Decimal]:
    """Return bounds on -ln U, which lies strictly between them."""
    lower, _ = _log_bounds(1 << uniform.num_bits, uniform.prefix + 1, digits)
    _, upper = _log_bounds(1 << uniform.num_bits, uniform.prefix, digits)
    return max(lower, Decimal(0)), upper


def _log_bounds(numerator: int, denominator: int, digits: int) -> tuple[Decimal, Decimal]:
    """Return bounds strictly around ln(numerator / denominator); one of the two may be zero."""
    if denominator == 0:
        return _INFINITY, _INFINITY
    if numerator == 0:
        return -_INFINITY, -_INFINITY
    down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    # `ln` rounds to nearest, so the next decimal on either side encloses the true value.
    lower = down.ln(_quotient(numerator, denominator, digits, ROUND_FLOOR)).next_minus(down)
    upper = up.ln(_quotient(numerator, denominator, digits, ROUND_CEILING)).next_plus(up)
    return lower, upper
