"""An exact draw of s in {0, ..., n} with P(s) proportional to lambda^s / s!, lambda = e^theta - 1.

It is the least s with U W < C(s), for a uniform U in [0, 1), the cumulative weights C and their
total W. The weights are whole numbers of units, 2^-160 below the precision of U, worked out from
the mode outwards; every sum is known up to `ERROR_UNITS`. If that and the bits of U drawn so far do
not settle s, more bits are drawn and the weights are worked out to as many. So each s has exactly
its probability, however small.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from itertools import accumulate

from shuffledp.groups.permutations.exact_draws import LazyUniform

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

    Parameters
    ----------
    first : int
        The smallest s that has a weight of its own; those below have less than `ERROR_UNITS`.
    sums : tuple of int
        Non-decreasing, up to the largest s that has a weight of its own.
    is_complete : bool
        Whether that one is n, so that nothing lies above.
    """

    first: int
    sums: tuple[int, ...]
    is_complete: bool


def draw_truncated_poisson(num_items: int, theta: float, uniform: LazyUniform) -> int:
    """Return s in [0, n] with probability proportional to (e^theta - 1)^s / s!.

    Parameters
    ----------
    num_items : int
        The largest value n, in [1, 2^32 - 1].
    theta : float
        In [0, inf).
    uniform : LazyUniform
        Where the draw comes from; refined as far as needed, which is next to never from 64 bits.

    Returns
    -------
    int
        From exactly this law.

    Notes
    -----
    Source: this module's docstring. Cost: O(sqrt(min(n, e^theta))) whole numbers of 224 bits, at
    most 0.1 s for n = 1e7, and a binary search when the same law is drawn from again.

    Examples
    --------
    >>> from shuffledp.core.entropy import Entropy
    >>> uniform = LazyUniform(prefix=0, num_bits=8, entropy=Entropy.from_seed(0))
    >>> draw_truncated_poisson(2, math.log(2), uniform)  # 1 : 1 : 1/2, and U is next to 0
    0
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
        first=mode - len(below),
        sums=tuple(sums),
        is_complete=mode + len(above) - 1 == num_items,
    )


def _scaled_rate(theta: float, precision: int) -> int:
    """Return 2^precision (e^theta - 1), within 1."""
    digits = int(0.302 * (precision + 1.45 * theta)) + 20
    context = Context(prec=digits)
    growth = context.subtract(context.exp(Decimal(theta)), Decimal(1))
    return int(context.multiply(growth, Decimal(1 << precision)))
