"""Decisions about one uniform real number, exact: bits are drawn until they settle the question.

A Mallows model asks such questions as "is U below 1 / (1 + e^theta)?" of a uniform U in [0, 1).
Compiled loops answer nearly all of them from 32 or 64 bits of U with floats, and stop where the
answer lies within the floats' error. This module settles those: it encloses logarithms with
`decimal`, whose ln is correctly rounded, and draws 64 more bits of the same U as long as the
enclosure does not decide. So the probability of each answer is the real number meant, however
small: it is not rounded to a multiple of 2^-64, which would spoil likelihood ratios in the tails.

Every question here ends with probability 1: the logarithm of a rational is never rational but for
ln 1 = 0, and U itself falls on a given boundary with probability 0.

*Truncated Poisson.* An exact draw of s in {0, ..., n} with P(s) proportional to lambda^s / s!,
lambda = e^theta - 1.

It is the least s with U W < C(s), for a uniform U in [0, 1), the cumulative weights C and their
total W. The weights are whole numbers of units, 2^-160 below the precision of U, worked out from
the mode outwards; every sum is known up to `ERROR_UNITS`. If that and the bits of U drawn so far do
not settle s, more bits are drawn and the weights are worked out to as many. So each s has exactly
its probability, however small.

*Noise on a lattice.* Noise on a lattice of whole-number points: mass proportional to exp(-theta
norm), exactly.

In one dimension that is the discrete Laplace law. The normalising constant is the same around
every point. So for the noisy places of two people, at c and c', the likelihood ratio is
exp(theta d(p, c') - theta d(p, c)) <= exp(theta d(c, c')) at every point p, however far away.

Drawn by rejection. Coordinates are proposed independently, with masses proportional to
exp(-rate abs(k_j)), rate <= theta / sqrt(d): a geometric magnitude, and a sign; -0 is refused. With
l1 for the sum of abs(k_j) and l2 for the Euclidean norm, the point is accepted with probability
exp(rate l1 - theta l2), which is at most 1 because l1 <= sqrt(d) l2. In one dimension rate = theta,
and all but -0 is accepted. Nearly all draws are decided by floats with a bound on their error; the
rest by decimals, with more bits of the same uniform numbers. So the masses are those of the
real numbers meant, tails included.

Source: ours; inversion of geometric variates and rejection are standard.
"""

import math
from bisect import bisect_left
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
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from shuffledp.core.arrays import Booleans, Floats, Integers, Words
from shuffledp.core.entropy import Entropy
from shuffledp.groups.permutations import LIBRARY_MARGIN

WORD_BITS = 64
_INFINITY = Decimal("Infinity")


@dataclass(slots=True, kw_only=True)
class LazyUniform:
    """A uniform U in [prefix, prefix + 1) / 2^num_bits, of which more bits become known."""

    prefix: int
    num_bits: int
    entropy: Entropy

    def refine(self) -> None:
        """Draw 64 further bits."""
        self.prefix = (self.prefix << WORD_BITS) | int(self.entropy.words(1)[0])
        self.num_bits += WORD_BITS


def draw_exponential_above(uniform: LazyUniform, threshold: Fraction) -> bool:
    """Return whether -ln U is above a threshold t >= 0: with probability exactly e^-t."""

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

    l2 is its Euclidean norm, l1 the sum of its magnitudes. True with probability exactly
    e^(rate l1 - theta l2); `decimal` rounds square roots correctly.
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
    """Return floor(-ln U / theta): at least j with probability exactly e^(-theta j)."""
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
    """Return whether U < weight / (weight + e^theta): with exactly that probability.

    That means theta < ln(weight (1 - U) / U).
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


# Proof. A weight is at most 2^P units and the one before it times at most 1; a step multiplies by
# the ratio (known to 2^-P), divides, and drops the fraction, so that it adds at most 3 units to
# the error: fewer than 2^34 after 2^32 steps, and 2^66 in the sum of as many weights. The walk
# stops where the weight comes out as 0, is thus below 2^34 + 1 units, and the rest of that side is
# at most that times 1 / (1 - ratio) <= 2^33. Both sides together: below 2^70.
ERROR_UNITS = 1 << 70
_GUARD_BITS = 160
# Laws kept for further draws. One of 1e7 items has up to 1e5 weights of 60 bytes.
_LAWS_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeWeights:
    """The sums C(first), C(first + 1), ... in units, each within `ERROR_UNITS` of the true one.

    Those below ``first`` have less than `ERROR_UNITS`; ``is_complete`` says that nothing lies
    above.
    """

    first: int
    sums: tuple[int, ...]
    is_complete: bool


def draw_truncated_poisson(num_items: int, theta: float, uniform: LazyUniform) -> int:
    """Return s in [0, n] with probability proportional to (e^theta - 1)^s / s!, exactly.

    Cost: O(sqrt(min(n, e^theta))) whole numbers of 224 bits, at most 0.1 s for n = 1e7, and a
    binary search when the same law is drawn from again.
    """
    while True:
        # From here on P(s < n) is below n / lambda + (n / lambda)^2 + ... < 2^-num_bits.
        if theta > math.log(2.0) * (uniform.num_bits + 2) + math.log(num_items) + 1.0:
            if uniform.prefix > 0:
                return num_items
        else:
            value = _look_up(_weights(num_items, theta, uniform.num_bits), uniform)
            if value is not None:
                return value
        uniform.refine()


def _look_up(weights: CumulativeWeights, uniform: LazyUniform) -> int | None:
    """Return the value that a uniform number gives, None if its bits do not tell."""
    sums, bits = weights.sums, uniform.num_bits
    # U W lies in [a (W - error), (a + 1) (W + error)) / 2^bits, and must be below C(s) ...
    upper = -((-(uniform.prefix + 1) * (sums[-1] + ERROR_UNITS)) >> bits)
    index = bisect_left(sums, upper + ERROR_UNITS)
    if index == len(sums):
        if not weights.is_complete:
            return None
        index -= 1
    # ... but not below C(s - 1).
    if index or weights.first:
        before = (sums[index - 1] if index else 0) + ERROR_UNITS
        if uniform.prefix * (sums[-1] - ERROR_UNITS) < before << bits:
            return None
    return weights.first + index


@lru_cache(maxsize=_LAWS_KEPT)
def _weights(num_items: int, theta: float, num_bits: int) -> CumulativeWeights:
    """Return the cumulative weights in units of 2^-P of the mode's weight, P = num_bits + 160."""
    precision = num_bits + _GUARD_BITS
    rate = _scaled_rate(theta, precision)
    mode = min(num_items, rate >> precision)
    above = [1 << precision]
    value = mode
    while above[-1] and value < num_items:
        value += 1
        above.append((above[-1] * rate >> precision) // value)
    below = []
    weight, value = 1 << precision, mode
    while weight and value > 0:
        weight = (weight * value << precision) // rate
        below.append(weight)
        value -= 1
    sums = accumulate([*reversed(below), *above])
    return CumulativeWeights(
        first=mode - len(below), sums=tuple(sums), is_complete=mode + len(above) - 1 == num_items
    )


def _scaled_rate(theta: float, precision: int) -> int:
    """Return 2^precision (e^theta - 1), within 1."""
    digits = int(0.302 * (precision + 1.45 * theta)) + 20
    context = Context(prec=digits)
    growth = context.subtract(context.exp(Decimal(theta)), Decimal(1))
    return int(context.multiply(growth, Decimal(1 << precision)))


#: Smaller theta means noise that whole numbers of 64 bits do not hold comfortably.
SMALLEST_THETA = 2.0**-40
#: In more dimensions too few proposals are accepted.
MOST_DIMENSIONS = 8
# Of -ln U: rounding U to a float, 2^-53, with room.
_ABSOLUTE_MARGIN = 2.0**-50
_UNIT = 2.0**-64
# Proposals at a time.
_BLOCK = 1 << 17


def draw_lattice_noise(
    num_points: int,
    dimensions: int,
    theta: float,
    entropy: Entropy,
    *,
    margin: float = LIBRARY_MARGIN,
) -> Integers:
    """Draw independent points, each of a mass proportional to e^(-theta norm).

    For theta in [2^-40, inf) and up to 8 dimensions. ``margin`` is the error that floats may have;
    larger is slower and gives the same points, with ``inf`` every draw is settled with decimals.
    Cost: some 100 to 300 ns a point in one to three dimensions.
    """
    # At most theta / sqrt(d) in exact arithmetic.
    rate = theta if dimensions == 1 else theta / math.sqrt(dimensions) * (1.0 - 2.0**-50)
    sampler = _Sampler(dimensions, theta, rate, entropy, margin)
    found = [np.empty((0, dimensions), dtype=np.int64)]
    missing = num_points
    while missing > 0:
        block = sampler.accepted(min(missing, _BLOCK))
        found.append(block)
        missing -= len(block)
    return np.concatenate(found)


class _Sampler(NamedTuple):
    """The law of the noise, that of its proposals, and where the words come from."""

    dimensions: int
    theta: float
    rate: float
    entropy: Entropy
    margin: float

    def accepted(self, count: int) -> Integers:
        """Return those of some proposals that are accepted."""
        shape = (count, self.dimensions)
        magnitudes = self.magnitudes(self.entropy.words(count * self.dimensions)).reshape(shape)
        bits = np.arange(self.dimensions, dtype=np.uint64)
        is_negative = (self.entropy.words(count)[:, None] >> bits) & np.uint64(1) == 1
        kept = ~(is_negative & (magnitudes == 0)).any(axis=1)
        points: Integers = np.where(is_negative, -magnitudes, magnitudes)[kept]
        return points if self.dimensions == 1 else points[self.passes(points)]

    def magnitudes(self, words: Words) -> Integers:
        """Return floor(-ln U / rate) for the U that begin with these bits."""
        values, errors = self.exponentials(words)
        quotients, spreads = values / self.rate, errors / self.rate
        spreads += quotients * 2.0**-50
        low = np.floor(np.maximum(quotients - spreads, 0.0))
        is_undecided = ~(quotients + spreads < low + 1.0)
        found = np.where(is_undecided, 0.0, low).astype(np.int64)
        for index in np.flatnonzero(is_undecided):
            found[index] = draw_geometric(self.uniform(words[index]), self.rate)
        return found

    def passes(self, points: Integers) -> Booleans:
        """Return which proposals pass: those with -ln U above theta l2 - rate l1."""
        words = self.entropy.words(len(points))
        sizes = np.abs(points).astype(np.float64)
        norms = self.theta * np.sqrt((sizes * sizes).sum(axis=1))
        totals = self.rate * sizes.sum(axis=1)
        values, errors = self.exponentials(words)
        errors += (norms + totals) * 2.0**-46
        gaps = values - (norms - totals)
        passes: Booleans = gaps > 0.0
        for index in np.flatnonzero(~(np.abs(gaps) > errors)):
            uniform = self.uniform(words[index])
            passes[index] = draw_norm_acceptance(
                uniform, self.theta, self.rate, points[index].tolist()
            )
        return passes

    def exponentials(self, words: Words) -> tuple[Floats, Floats]:
        """Return -ln U for the U that begin with these bits, and bounds on the errors."""
        sizes = np.maximum(words.astype(np.float64), 1.0)
        values = -np.log(sizes * _UNIT)
        errors = values * self.margin + _ABSOLUTE_MARGIN + 2.0 / sizes
        return values, np.where(words == 0, np.inf, errors)

    def uniform(self, word: np.uint64) -> LazyUniform:
        """Return the U that begins with these bits."""
        return LazyUniform(prefix=int(word), num_bits=WORD_BITS, entropy=self.entropy)
