"""The expected maximum load by listing integer partitions, as the literature computes it."""

import math
from collections.abc import Iterator
from fractions import Fraction

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError

_MOST_PARTITIONS = 10**7

# Counting the partitions costs balls times bins operations; beyond this there are too many anyhow.
_MOST_BALLS_TO_COUNT = 10**6


def num_partitions(num_balls: int, most_parts: int) -> int:
    """Return how many partitions of n have at most ``most_parts`` parts; stops above 1e7.

    Beyond 1e7 (or n = 1e6) the number returned is only some lower bound above 1e7.

    Examples
    --------
    >>> num_partitions(6, 3)
    7
    """
    if most_parts == 1:
        return 1
    if num_balls > _MOST_BALLS_TO_COUNT:
        # There are n // 2 + 1 with at most two parts, and at least n^2 / 12 with at most three.
        return num_balls // 2 + 1 if most_parts == 2 else num_balls * num_balls // 12
    counts = [1] * (num_balls + 1)  # parts of size 1 only
    for part in range(2, min(most_parts, num_balls) + 1):
        for total in range(part, num_balls + 1):
            counts[total] += counts[total - part]
        if counts[num_balls] > _MOST_PARTITIONS:
            break
    return counts[num_balls]


def _partitions(total: int, most_parts: int, largest: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the partitions as lists of (part, multiplicity), parts decreasing."""
    if total == 0:
        yield []
        return
    for part in range(min(largest, total), -(-total // most_parts) - 1, -1):
        for times in range(1, min(total // part, most_parts) + 1):
            rest = total - times * part
            if rest == 0 or (part > 1 and times < most_parts):
                for others in _partitions(rest, most_parts - times, part - 1):
                    yield [(part, times), *others]


def maximum_load_by_partitions(num_balls: int, num_bins: int) -> Fraction:
    """Return E[max load] of n balls in k bins by integer partitions with at most k parts.

    Parameters
    ----------
    num_balls, num_bins : int
        n >= 1 and k >= 1.

    Returns
    -------
    Fraction
        Exact.

    Raises
    ------
    ParameterError
        If a number is not whole, or below 1.
    OutOfRegimeError
        If there are above 1e7 partitions; the message says how many.

    Notes
    -----
    O(number of partitions), some microseconds each. For comparison: `exact_maximum_load` costs
    a power of n.

    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Appendix B, Eq. (22), over partitions
    into at most k parts (its example of 20 = 8 + 8 + 1 + 1 + 1 + 1 with k = 4 has too many).

    Examples
    --------
    >>> maximum_load_by_partitions(3, 3)
    Fraction(17, 9)
    """
    balls = require_at_least("num_balls", num_balls, 1)
    bins = require_at_least("num_bins", num_bins, 1)
    number = num_partitions(balls, bins)
    if number > _MOST_PARTITIONS:
        raise OutOfRegimeError(
            f"num_balls = {balls} has at least {number} partitions into num_bins = {bins} parts, "
            f"above {_MOST_PARTITIONS}: use maximum_load"
        )
    factorials = [1]
    for i in range(1, balls + 1):
        factorials.append(factorials[-1] * i)
    total = 0
    for partition in _partitions(balls, bins, balls):
        orders, places, length = 1, 1, 0
        for part, times in partition:
            orders *= factorials[part] ** times
            places *= factorials[times]
            length += times
        ways = factorials[balls] // orders * (math.perm(bins, length) // places)
        total += ways * partition[0][0]
    return Fraction(total, bins**balls)
