"""Laws and variances of reports on numbers, and mechanisms whose whole law can be written out."""

import math
from fractions import Fraction
from functools import cache

from shuffledp.randomizers import Piecewise, PrivUnit


def report_variance(randomizer, value):
    """Return the variance of a decoded report given its user's number, or the norm of a vector.

    For vectors it is the mean over the coordinates.
    """
    if isinstance(randomizer, PrivUnit):
        # The decoded report has the length norm_bound / m, and its mean the length of the value.
        along = min(value / randomizer.norm_bound, 1.0) * randomizer.mean_along
        scale = randomizer.norm_bound / randomizer.mean_along
        return scale * scale * (1.0 - along) * (1.0 + along) / randomizer.dimension
    span = randomizer.span
    x = min(1.0, max(-1.0, (value - span.middle) / span.half_width))
    left_over = math.modf((x + 1.0) / 2.0 * randomizer.num_steps)[0]
    return randomizer.variance_at(x * x, rounding=4.0 * left_over * (1.0 - left_over))


def channel_of(randomizer):
    """Return the exact probability of each report (column) given each grid point (row).

    A value between grid points is a mixture of two rows.
    """
    law = randomizer.law
    low, high = (Fraction(each, 2**64) for each in (law.threshold, law.high_threshold))
    return tuple(
        tuple(high if 0 <= y - i < law.window else low for y in range(law.num_outputs))
        for i in range(law.num_steps + 1)
    )


@cache
def coarse(largest_window):
    """Return the piecewise mechanism with smaller windows, of a power of two of outputs."""
    return type("Coarse", (Piecewise,), {"__slots__": (), "largest_window": largest_window})
