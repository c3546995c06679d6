"""Variances of single reports, and piecewise mechanisms whose whole law can be written out."""

import math
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


@cache
def coarse(largest_window):
    """Return the piecewise mechanism with smaller windows, of a power of two of outputs."""
    return type("Coarse", (Piecewise,), {"__slots__": (), "largest_window": largest_window})
