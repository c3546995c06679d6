"""The expected number of balls in the fullest of k bins, at any size.

With m0 = n / k rounded up, no maximum is below m0, and

    E[max] - n / k = (m0 - n / k) + sum over m >= m0 of Pr[max > m].

Every term is non-negative, so the excess over n / k is as accurate as they are, however small it is
beside n / k. The chances come from one of two methods that share nothing but the law of the loads
that matter: the recurrence (few bins) and the characteristic function (many bins, or few balls).
Where above 512 loads matter (768 for more than three bins, 1280 for more than six), the chance is a
smooth function of the load, and some 100 (240) of them are enough: see `lattice_sum`.

*Error budget.* Round-off and truncation of every chance (from the method) times how much the sum
amplifies it; loads left out above (Chernoff) and below (at most their number times the chance at
the lowest load); truncation of the sum over loads. All but the last is proved to first order in the
round-off; the last is read off the decay of the Chebyshev coefficients, 16-fold.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.loads.characteristic_function import (
    characteristic_seconds,
    characteristic_tails,
)
from shuffledp.leakage.loads.lattice_sum import lattice_rule, num_panels
from shuffledp.leakage.loads.load_window import least_load, load_window
from shuffledp.leakage.loads.recurrence import (
    MOST_BINS,
    recurrence_seconds,
    recurrence_tails,
)

METHODS = ("auto", "closed-form", "recurrence", "characteristic-function")

LARGEST_NUM_BALLS = 10**15

# What is estimated to take longer is refused.
_MOST_SECONDS = 60.0

# Relative error of the closed form for two bins: some ulps of a binomial probability at its mode.
_CLOSED_FORM_ERROR = 1e-13

# Rounding of the last additions, in units of the answer.
_LAST_ROUNDINGS = 4.0 * math.ulp(1.0)


def _checked_sizes(num_balls: int, num_bins: int) -> tuple[int, int]:
    """Return both as plain whole numbers in range."""
    balls = require_at_least("num_balls", num_balls, 1)
    bins = require_at_least("num_bins", num_bins, 2)
    for name, number in (("num_balls", balls), ("num_bins", bins)):
        if number > LARGEST_NUM_BALLS:
            raise ParameterError(f"{name} = {number} is above 1e15, where doubles skip numbers")
    return balls, bins


def _closed_form_excess(num_balls: int, num_bins: int) -> Enclosure:
    """Return the excess for two bins: (n / 2) Pr[Bin(n - 1, 1/2) = floor((n - 1) / 2)]."""
    from shuffledp.core.numerics.binomial_kernels import binomial_pmf

    if num_bins != 2:
        raise OutOfRegimeError(
            f'method = "closed-form" needs num_bins = 2, not {num_bins}: use "auto"'
        )
    others = float(num_balls - 1)
    value = 0.5 * num_balls * binomial_pmf(others, math.floor(0.5 * others), 0.5, 0.5)
    slack = value * _CLOSED_FORM_ERROR
    return Enclosure(value - slack, value + slack)


def _tails(
    num_balls: int, num_bins: int, loads: NDArray[np.int64], method: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr[max > load] and bounds on the errors by the named method, or by the faster."""
    seconds = {
        "recurrence": recurrence_seconds(num_balls, num_bins, loads),
        "characteristic-function": characteristic_seconds(num_balls, num_bins, loads),
    }
    chosen = method
    if method == "auto":
        many = num_bins > MOST_BINS or seconds["recurrence"] > seconds["characteristic-function"]
        chosen = "characteristic-function" if many else "recurrence"
    if seconds[chosen] > _MOST_SECONDS:
        raise OutOfRegimeError(
            f"num_balls = {num_balls} and num_bins = {num_bins} would take about "
            f"{seconds[chosen]:.0f} s by the {chosen.replace('-', ' ')}, above "
            f'{_MOST_SECONDS:.0f}: use method = "auto" or fewer balls'
        )
    by = recurrence_tails if chosen == "recurrence" else characteristic_tails
    return by(num_balls, num_bins, loads)


def maximum_load_excess(num_balls: int, num_bins: int, *, method: str = "auto") -> Enclosure:
    """Enclose E[max load] - n / k for n balls thrown uniformly and independently into k bins.

    Parameters
    ----------
    num_balls : int
        n, 1 to 1e15.
    num_bins : int
        k >= 2.
    method : {"auto", "closed-form", "recurrence", "characteristic-function"}
        ``"closed-form"`` is for two bins. ``"auto"`` takes it there, and else the faster of the
        other two.

    Returns
    -------
    Enclosure
        Half as wide as 1e-12 to 1e-11 of the excess, mostly, and 1e-10 at worst; 1e-13 for two
        bins. The error budget is the module's.

    Raises
    ------
    ParameterError
        If a number is not whole or out of range, or the method is unknown.
    OutOfRegimeError
        If the method would take above a minute, the recurrence is asked for k > 1000, or the closed
        form for k > 2.

    Notes
    -----
    Cost: below 0.1 s for n up to 1e9 and k up to 1e4, mostly milliseconds; hardly grows with n from
    n / k = 1e5 on.

    Examples
    --------
    Two balls in two bins meet half of the time: E[max] = 3/2.

    >>> found = maximum_load_excess(2, 2)
    >>> round(found.lower, 12), round(found.upper, 12)
    (0.5, 0.5)
    """
    balls, bins = _checked_sizes(num_balls, num_bins)
    if method not in METHODS:
        raise ParameterError(f"method = {method!r} is not one of {', '.join(METHODS)}")
    if method == "closed-form" or (method == "auto" and bins == 2):
        return _closed_form_excess(balls, bins)
    if balls == 1:
        value = (bins - 1) / bins  # the maximum is surely 1
        return Enclosure(math.nextafter(value, 0.0), math.nextafter(value, 1.0))
    window = load_window(balls, bins)
    rule = lattice_rule(window.last - window.first + 1, num_panels(bins))
    loads = window.first + rule.nodes
    tails, errors = _tails(balls, bins, loads, method)
    total, truncation = rule.total(tails)
    # Above the least possible load but below the window, a load's chance is at most the first's.
    skipped = (window.first - least_load(balls, bins)) * (1.0 - float(tails[0] - errors[0]))
    value = (window.first * bins - balls) / bins + total
    slack = truncation + rule.amplification * float(errors.max()) + _LAST_ROUNDINGS * value
    lowest = least_load(balls, bins) - balls / bins
    return Enclosure(
        max(value - slack - skipped, lowest * (1.0 - _LAST_ROUNDINGS), 0.0),
        value + slack + window.beyond,
    )


def maximum_load(num_balls: int, num_bins: int, *, method: str = "auto") -> Enclosure:
    """Enclose E[max load] of n balls thrown uniformly and independently into k bins.

    E[max load] / n is the chance to guess the value of one of n shuffled users right, where all
    values are uniform and nothing else is known.

    Parameters
    ----------
    num_balls, num_bins, method
        As in `maximum_load_excess`.

    Returns
    -------
    Enclosure
        Within a few parts in 1e13 of the answer, mostly closer; never below n / k or 1.

    Raises
    ------
    ParameterError, OutOfRegimeError
        As there.

    Notes
    -----
    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Eq. (13); methods of this module.

    Examples
    --------
    Three values and a hundred users, all of the collection's histogram known:

    >>> found = maximum_load(100, 3)
    >>> round(found.lower / 100, 4), round(found.upper / 100, 4)
    (0.3826, 0.3826)
    """
    excess = maximum_load_excess(num_balls, num_bins, method=method)
    mean = num_balls / num_bins
    lower, upper = mean + excess.lower, mean + excess.upper
    least = float(least_load(num_balls, num_bins))
    return Enclosure(
        max(lower * (1.0 - _LAST_ROUNDINGS), least),
        min(max(upper * (1.0 + _LAST_ROUNDINGS), least), float(num_balls)),
    )


def maximum_load_tail(
    num_balls: int, num_bins: int, load: int, *, method: str = "auto"
) -> Enclosure:
    """Enclose Pr[max load > ``load``].

    Parameters
    ----------
    num_balls, num_bins, method
        As in `maximum_load_excess`; the closed form gives no tail.
    load : int
        Any whole number >= 0.

    Returns
    -------
    Enclosure
        Absolute, not relative, accuracy: about 1e-13, at worst k 1e-14.

    Raises
    ------
    ParameterError, OutOfRegimeError
        As there.

    Examples
    --------
    Three balls in three bins: all apart in 6 of 27 cases.

    >>> found = maximum_load_tail(3, 3, 1)
    >>> round(27 * found.lower, 9), round(27 * found.upper, 9)
    (21.0, 21.0)
    """
    balls, bins = _checked_sizes(num_balls, num_bins)
    at = require_at_least("load", load, 0)
    if method not in METHODS or method == "closed-form":
        raise ParameterError(
            f"method = {method!r} gives no tail: use auto, recurrence or characteristic-function"
        )
    if at < least_load(balls, bins):
        return Enclosure(1.0, 1.0)
    if at >= balls:
        return Enclosure(0.0, 0.0)
    window = load_window(balls, bins)
    if at > window.last:
        return Enclosure(0.0, min(window.beyond, 1.0))
    tails, errors = _tails(balls, bins, np.array([at]), method)
    tail, error = float(tails[0]), float(errors[0])
    return Enclosure(max(tail - error, 0.0), min(tail + error, 1.0))
