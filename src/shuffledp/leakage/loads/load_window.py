"""Loads between which the maximum lies, save with negligible probability.

*Above.* Pr[max > m] <= k Pr[Bin(n, 1/k) > m] (union). Chernoff bounds that by k e^-d(m + 1), with
d(x) = x ln(x k / n) + (n - x) ln((n - x) / (n - n/k)). d is convex, so from one m to the next the
bound falls at least by the factor e^-d'(m + 1), and the sum over all further loads is geometric.

*Below.* The chance that no bin has more than m is at most the k-th power of the chance for one bin
(negative association of the loads: Joag-Dev and Proschan 1983, "Negative association of random
variables, with applications"), so a load with k Pr[Po(n/k) > m] above 46 is below the maximum save
with about 1e-20. This only says where to look: whoever sums checks the chance at the lower end.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

# Natural logarithms of what is neglected on either side.
_LOG_NEGLIGIBLE_ABOVE = 48.0
_EXPECTED_ABOVE = 46.0


class LoadWindow(NamedTuple):
    """Loads ``first`` to ``last`` (inclusive), and a bound on what is left out above.

    ``beyond`` bounds the sum of Pr[max > m] over all m > last.
    """

    first: int
    last: int
    beyond: float


def least_load(num_balls: int, num_bins: int) -> int:
    """Return the least possible maximum load, n / k rounded up."""
    return -(-num_balls // num_bins)


def _relative_entropy(num_balls: int, num_bins: int, load: int) -> float:
    """Return n times the relative entropy of load / n to 1 / k, load >= n / k; rounded down."""
    mean = num_balls / num_bins
    excess = (load * num_bins - num_balls) / num_bins
    if load >= num_balls:
        return num_balls * math.log(num_bins) * (1.0 - 1e-12)
    inside = load * math.log1p(excess / mean)
    outside = (num_balls - load) * math.log1p(-excess / (num_balls - mean))
    return max((inside + outside) - 1e-12 * (inside - outside), 0.0)


def _smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number in low..high where a monotone statement holds; high if none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def load_window(num_balls: int, num_bins: int) -> LoadWindow:
    """Return the loads that matter to the maximum of ``num_balls`` in ``num_bins`` bins.

    Examples
    --------
    >>> load_window(5, 10_000)
    LoadWindow(first=1, last=4, beyond=0.0)
    """
    from scipy.special import gammainc

    least = least_load(num_balls, num_bins)
    mean = num_balls / num_bins
    log_bins = math.log(num_bins)

    def rare(load: int) -> bool:
        return _relative_entropy(num_balls, num_bins, load + 1) >= log_bins + _LOG_NEGLIGIBLE_ABOVE

    def often_below(load: int) -> bool:
        return num_bins * float(gammainc(load + 2.0, mean)) < _EXPECTED_ABOVE

    last = _smallest(least, max(num_balls - 1, least), rare)
    first = _smallest(least, last, often_below)
    return LoadWindow(first, last, _beyond(num_balls, num_bins, last))


def _beyond(num_balls: int, num_bins: int, last: int) -> float:
    """Bound the sum of Pr[max > m] over m > last, rounded up."""
    if last + 1 >= num_balls:  # the maximum is never above n
        return 0.0
    load = last + 2
    log_first = math.log(num_bins) - _relative_entropy(num_balls, num_bins, load)
    ratio = (num_balls - load) / (load * (num_bins - 1.0))
    geometric = 1.0 / (1.0 - ratio) if ratio < 1.0 else math.inf
    # There are no more than n - last terms, each at most the first.
    return math.exp(log_first) * min(geometric, float(num_balls - last)) * (1.0 + 1e-9)
