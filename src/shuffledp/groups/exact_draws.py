"""Exact decisions about one uniform real number: bits are drawn until they settle the question.

A Mallows model asks such questions as "is U below 1 / (1 + e^theta)?" of a uniform U in [0, 1).
Compiled loops answer nearly all of them from 32 or 64 bits of U with floats, and stop if the
answer lies within the floats' error. This module settles those: it encloses logarithms with
`decimal`, whose ln is correctly rounded, and draws 64 more bits of the same U as long as the
enclosure does not decide. So each answer has exactly its real-valued probability, however small: it
is not rounded to a multiple of 2^-64, which would spoil likelihood ratios in the tails.

Every question here ends with probability 1: the logarithm of a rational other than 1 is never
rational, and U itself falls on a given boundary with probability 0.

*Truncated Poisson.* An exact draw of s in {0, ..., n} with P(s) proportional to lambda^s / s!,
lambda = e^theta - 1.

It is the least s with U W < C(s), for a uniform U in [0, 1), the cumulative weights C and their
total W. The weights are whole numbers of units, 2^-160 below the precision of U, worked out from
the mode outwards; every sum is known up to `ERROR_UNITS`. If that and the bits of U drawn so far do
not settle s, more bits are drawn and the weights computed as finely. So each s has exactly its
probability, however small.

*Noise on a lattice* of whole-number points, of mass proportional to exp(-theta norm), exactly. In
one dimension that is the discrete Laplace law. The normalising constant is the same around every
point. So for the noisy places of two people, at c and c', the likelihood ratio is
exp(theta d(p, c') - theta d(p, c)) <= exp(theta d(c, c')) at every point p, however far away.

Drawn by rejection. Coordinates are proposed independently, with masses proportional to
exp(-rate abs(k_j)), rate <= theta / sqrt(d): a geometric magnitude, and a sign; -0 is refused. With
l1 for the sum of abs(k_j) and l2 for the Euclidean norm, the point is accepted with probability
exp(rate l1 - theta l2), which is at most 1 because l1 <= sqrt(d) l2. In one dimension rate = theta,
and all but -0 is accepted. Nearly all draws are decided by floats with a bound on their error; the
rest by decimals, with more bits of the same uniform numbers. So the masses are exactly the real
numbers of the law, tails included.

Source: ours; inversion of geometric variates and rejection are standard.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from itertools import accumulate

import numpy as np

from shuffledp.core.arrays import Booleans, Floats, Integers, Words
from shuffledp.core.entropy import Entropy

#: Relative error allowed for exp and log of the C library: 32 units in the last place, where the
#: usual libraries stay below one. Draws within it are settled with decimals.
LIBRARY_MARGIN = 2.0**-48

WORD_BITS = 64
_INFINITY = Decimal("Infinity")


# Maps a number of decimal digits to a lower and an upper bound computed with them.
_Enclosed = Callable[[int], tuple[Decimal, Decimal]]


@dataclass(slots=True, kw_only=True)
class LazyUniform:
    """A uniform U in [prefix, prefix + 1) / 2^num_bits, of which more bits can be drawn."""

    prefix: int
    num_bits: int = WORD_BITS
    entropy: Entropy

    def refine(self) -> None:
        """Draw 64 further bits."""
        self.prefix = (self.prefix << WORD_BITS) | int(self.entropy.words(1)[0])
        self.num_bits += WORD_BITS

    @property
    def digits(self) -> int:
        """Number of decimal digits that separate neighbouring prefixes, with 40 to spare."""
        return self.num_bits // 3 + 40

    def exponential(self, digits: int) -> tuple[Decimal, Decimal]:
        """Return bounds on -ln U, which lies strictly between them."""
        one = 1 << self.num_bits
        lower, upper = _logs((one, self.prefix + 1), (one, self.prefix), digits)
        return max(lower, Decimal(0)), upper

    def tells_above(self, left: _Enclosed, right: _Enclosed) -> bool:
        """Compare a number made from U with another, drawing further bits until settled."""
        while True:
            (lower, upper), (least, most) = left(self.digits), right(self.digits)
            if lower > most or upper < least:
                return lower > most
            self.refine()


def draw_norm_acceptance(
    uniform: LazyUniform, theta: float, rate: float, point: Sequence[int]
) -> bool:
    """Draw the event -ln U > theta l2 - rate l1, for a point of a lattice.

    l2 is its Euclidean norm, l1 the sum of its magnitudes. True with probability exactly
    e^(rate l1 - theta l2); `decimal` rounds square roots correctly.
    """
    square, total = sum(each * each for each in point), sum(abs(each) for each in point)

    def enclosed(digits: int) -> tuple[Decimal, Decimal]:
        down, up = _rounding(digits)
        # Rounded to nearest under any context, so the next decimal on either side encloses it.
        root = down.sqrt(Decimal(square))
        taken = [each.multiply(Decimal(rate), Decimal(total)) for each in (up, down)]
        least = down.multiply(Decimal(theta), root.next_minus(down))
        most = up.multiply(Decimal(theta), root.next_plus(up))
        return down.subtract(least, taken[0]), up.subtract(most, taken[1])

    return square == 0 or uniform.tells_above(uniform.exponential, enclosed)


def draw_geometric(uniform: LazyUniform, theta: float) -> int:
    """Return floor(-ln U / theta): at least j with probability exactly e^(-theta j)."""
    step = Decimal(theta)
    while True:
        down, up = _rounding(uniform.digits)
        lower, upper = uniform.exponential(uniform.digits)
        if upper.is_finite():
            smallest = int(down.divide(lower, step))
            if smallest == int(up.divide(upper, step)):
                return smallest
        uniform.refine()


def draw_against_odds(uniform: LazyUniform, weight: int, theta: float) -> bool:
    """Draw the event U < weight / (weight + e^theta), with exactly that probability.

    That means ln(weight (1 - U) / U) > theta.
    """

    def log_odds(digits: int) -> tuple[Decimal, Decimal]:
        above = (1 << uniform.num_bits) - uniform.prefix
        low, high = (weight * (above - 1), uniform.prefix + 1), (weight * above, uniform.prefix)
        return _logs(low, high, digits)

    return uniform.tells_above(log_odds, lambda _: (Decimal(theta), Decimal(theta)))


def _rounding(digits: int) -> tuple[Context, Context]:
    """Return contexts for decimals of any exponent, rounding down and up; 1/0 does not occur."""
    down, up = (
        Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return down, up


def _logs(low: tuple[int, int], high: tuple[int, int], digits: int) -> tuple[Decimal, Decimal]:
    """Return bounds strictly around the logarithms of two quotients and all between, also 1/0."""
    down, up = _rounding(digits)
    lower, upper = -_INFINITY, _INFINITY
    # `ln` rounds to nearest, so the next decimal on either side encloses the true value.
    if low[0]:
        lower = down.ln(down.divide(*map(Decimal, low))).next_minus(down)
    if high[1]:
        upper = up.ln(up.divide(*map(Decimal, high))).next_plus(up)
    return lower, upper


# Proof. A weight is at most 2^P units and the one before it times at most 1; a step multiplies by
# the ratio (known to 2^-P), divides, and drops the fraction, so that it adds at most 3 units to
# the error: fewer than 2^34 after 2^32 steps, and 2^66 in the sum of 2^32 weights. The walk
# stops where the weight comes out as 0, is thus below 2^34 + 1 units, and the rest of that side is
# at most that times 1 / (1 - ratio) <= 2^33. Both sides together: below 2^70.
ERROR_UNITS = 1 << 70
_GUARD_BITS = 160
# Number of laws kept for further draws. One of 1e7 items has up to 1e5 weights of 60 bytes.
_LAWS_KEPT = 8


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
            value = _look_up(*_weights(num_items, theta, uniform.num_bits), uniform)
            if value is not None:
                return value
        uniform.refine()


def _look_up(
    first: int, sums: tuple[int, ...], is_complete: bool, uniform: LazyUniform
) -> int | None:
    """Return the value of a uniform number, or None if its bits do not determine it."""
    bits = uniform.num_bits
    # U W lies in [a (W - error), (a + 1) (W + error)) / 2^bits, and must be below C(s) ...
    upper = -((-(uniform.prefix + 1) * (sums[-1] + ERROR_UNITS)) >> bits)
    index = bisect_left(sums, upper + ERROR_UNITS)
    if index == len(sums):
        if not is_complete:
            return None
        index -= 1
    # ... but not below C(s - 1).
    if index or first:
        before = (sums[index - 1] if index else 0) + ERROR_UNITS
        if uniform.prefix * (sums[-1] - ERROR_UNITS) < before << bits:
            return None
    return first + index


@lru_cache(maxsize=_LAWS_KEPT)
def _weights(num_items: int, theta: float, num_bits: int) -> tuple[int, tuple[int, ...], bool]:
    """Return the cumulative weights C(first), C(first + 1), ... in units, each with its error.

    Units are 2^-P of the mode's weight, P = num_bits + 160. The errors are below `ERROR_UNITS`, and
    so are the weights before ``first``, the first result. The last is True if no weight lies above.
    """
    precision = num_bits + _GUARD_BITS
    context = Context(prec=int(0.302 * (precision + 1.45 * theta)) + 20)
    growth = context.subtract(context.exp(Decimal(theta)), Decimal(1))
    rate = int(context.multiply(growth, Decimal(1 << precision)))  # within 1
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
    return mode - len(below), tuple(sums), mode + len(above) - 1 == num_items


#: For a smaller theta geometric numbers do not safely fit 64 bits.
SMALLEST_THETA = 2.0**-40
#: In more dimensions too few proposals are accepted.
MOST_DIMENSIONS = 8
# Absolute error of -ln U: rounding U to a float, 2^-53, with room.
_ABSOLUTE_MARGIN = 2.0**-50
_UNIT = 2.0**-64
# Number of proposals at a time.
_BLOCK = 1 << 17


def draw_geometrics(
    count: int, theta: float, entropy: Entropy, *, margin: float = LIBRARY_MARGIN
) -> Integers:
    """Draw independent numbers, each at least j with probability exactly e^(-theta j).

    For theta in [2^-40, inf), up to the roundings of a rate. ``margin`` bounds the error of floats;
    a larger one is slower and gives the same numbers, with ``inf`` every one is settled with
    decimals.
    """
    words = entropy.words(count)
    values, errors = _exponentials(words, margin)
    quotients, spreads = values / theta, errors / theta
    spreads += quotients * 2.0**-50
    low = np.floor(np.maximum(quotients - spreads, 0.0))
    is_undecided = ~(quotients + spreads < low + 1.0)
    found: Integers = np.where(is_undecided, 0.0, low).astype(np.int64)
    for index in np.flatnonzero(is_undecided):
        uniform = LazyUniform(prefix=int(words[index]), entropy=entropy)
        found[index] = draw_geometric(uniform, theta)
    return found


def draw_lattice_noise(
    num_points: int,
    dimensions: int,
    theta: float,
    entropy: Entropy,
    *,
    margin: float = LIBRARY_MARGIN,
) -> Integers:
    """Draw independent points, each of a mass proportional to e^(-theta norm).

    For theta in [2^-40, inf) and up to 8 dimensions. ``margin`` bounds the error of floats; a
    larger one is slower and gives the same points, with ``inf`` every draw is settled with
    decimals. Cost: some 100 to 300 ns a point in one to three dimensions.
    """
    # At most theta / sqrt(d) in exact arithmetic.
    rate = theta if dimensions == 1 else theta / math.sqrt(dimensions) * (1.0 - 2.0**-50)
    bits = np.arange(dimensions, dtype=np.uint64)
    found, missing = [np.empty((0, dimensions), dtype=np.int64)], num_points
    while missing > 0:
        count = min(missing, _BLOCK)
        magnitudes = draw_geometrics(count * dimensions, rate, entropy, margin=margin)
        magnitudes = magnitudes.reshape(count, dimensions)
        is_negative = (entropy.words(count)[:, None] >> bits) & np.uint64(1) == 1
        kept = ~(is_negative & (magnitudes == 0)).any(axis=1)
        points: Integers = np.where(is_negative, -magnitudes, magnitudes)[kept]
        if dimensions > 1:
            points = points[_passes(points, theta, rate, entropy, margin)]
        found.append(points)
        missing -= len(points)
    return np.concatenate(found)


def _passes(
    points: Integers, theta: float, rate: float, entropy: Entropy, margin: float
) -> Booleans:
    """Return the mask of accepted proposals: -ln U above theta l2 - rate l1."""
    words = entropy.words(len(points))
    sizes = np.abs(points).astype(np.float64)
    norms, totals = theta * np.sqrt((sizes * sizes).sum(axis=1)), rate * sizes.sum(axis=1)
    values, errors = _exponentials(words, margin)
    errors += (norms + totals) * 2.0**-46
    gaps = values - (norms - totals)
    passes: Booleans = gaps > 0.0
    for index in np.flatnonzero(~(np.abs(gaps) > errors)):
        uniform = LazyUniform(prefix=int(words[index]), entropy=entropy)
        passes[index] = draw_norm_acceptance(uniform, theta, rate, points[index].tolist())
    return passes


def _exponentials(words: Words, margin: float) -> tuple[Floats, Floats]:
    """Return -ln U for the U that begin with these bits, and bounds on the errors."""
    sizes = np.maximum(words.astype(np.float64), 1.0)
    values = -np.log(sizes * _UNIT)
    errors = values * margin + _ABSOLUTE_MARGIN + 2.0 / sizes
    return values, np.where(words == 0, np.inf, errors)
