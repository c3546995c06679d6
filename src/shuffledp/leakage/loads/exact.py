"""The expected maximum load as a fraction, by the recurrence in whole numbers."""

import math
from fractions import Fraction

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError

_MOST_BALLS = 1000
_MOST_DIGITS = 6.0e6


def _ways(num_balls: int, num_bins: int, load: int) -> int:
    """Return in how many of k^n ways n balls leave no bin above ``load`` >= 1.

    W_j(s + 1) = j W_j(s) - j C(s, m) W_{j-1}(s - m), where the ball after the first s is the first
    to overfill a bin. Each level has m + 1 balls fewer, so there are at most n / (m + 1).
    """
    depth = min(num_balls // (load + 1), num_bins)
    below: list[int] = []
    for level in range(depth, -1, -1):
        bins = num_bins - level
        ways = 1
        row = [1]
        choices = 1  # C(s, m), from s = m on
        for s in range(num_balls - level * (load + 1)):
            ways *= bins
            if s >= load:
                ways -= bins * choices * below[s - load]
                choices = choices * (s + 1) // (s + 1 - load)
            row.append(ways)
        below = row
    return below[num_balls]


def exact_maximum_load(num_balls: int, num_bins: int) -> Fraction:
    """Return E[max load] of n balls thrown uniformly into k bins, as a fraction.

    Parameters
    ----------
    num_balls : int
        n, 1 to 1000.
    num_bins : int
        k >= 1.

    Returns
    -------
    Fraction
        Exact.

    Raises
    ------
    ParameterError
        If a number is not whole, or below its minimum.
    OutOfRegimeError
        If n is above 1000, or n log10(k) n (the digits to be written) above 6e6.

    Notes
    -----
    About n^2 ln(n) / 2 operations on whole numbers of n log(k) digits: a second at n = 500, some
    seconds at 1000.

    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Eq. (13); the recurrence is ours.

    Examples
    --------
    >>> exact_maximum_load(3, 3)
    Fraction(17, 9)
    """
    balls = require_at_least("num_balls", num_balls, 1)
    bins = require_at_least("num_bins", num_bins, 1)
    digits = balls * balls * math.log10(bins)
    if balls > _MOST_BALLS or digits > _MOST_DIGITS:
        raise OutOfRegimeError(
            f"num_balls = {balls} and num_bins = {bins} need whole numbers of "
            f"{digits / balls:.0f} digits for every one of {balls} loads, above what is exact in "
            f"seconds ({_MOST_BALLS} balls, n^2 log10(k) <= {_MOST_DIGITS:.0e}): "
            "use maximum_load, which encloses it"
        )
    everything = bins**balls
    least = -(-balls // bins)
    above = sum(everything - _ways(balls, bins, load) for load in range(least, balls))
    return least + Fraction(above, everything)
