"""Composition of mechanisms of which only (epsilon, delta) is known: the named theorems.

They are what `shuffledp.accounting.composition` improves on when more is known. All round
up, and all allow each mechanism to be chosen with knowledge of earlier outputs.
"""

import math
from collections.abc import Iterable

import numpy as np

from shuffledp.accounting.composition import compose
from shuffledp.accounting.divergences.privacy_loss import PrivacyLoss, no_loss
from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_non_negative,
    require_open_unit,
)
from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.numerics.rounding import exp_minus_one_upper, round_up


def basic_composition(parts: Iterable[tuple[float, float, int]]) -> tuple[float, float]:
    """Return (sum of epsilons, sum of deltas), each times its count, rounded up.

    Parameters
    ----------
    parts : iterable of (epsilon, delta, count)
        Guarantees (epsilon >= 0 in nats, delta in [0, 1)) and how often each is spent.

    Examples
    --------
    >>> epsilon, delta = basic_composition([(0.5, 0.0, 2), (1.0, 0.25, 1)])
    >>> round(epsilon, 12), round(delta, 12)
    (2.0, 0.25)
    """
    checked = [
        (
            require_non_negative("epsilon", epsilon),
            require_delta(delta),
            require_at_least("count", count, 0),
        )
        for epsilon, delta, count in parts
    ]
    epsilon = math.fsum(part[0] * part[2] for part in checked)
    delta = math.fsum(part[1] * part[2] for part in checked)
    return round_up(epsilon), min(round_up(delta), 1.0)


def advanced_composition(epsilon: float, delta: float, count: int, *, total_delta: float) -> float:
    """Return epsilon sqrt(2 k ln(1/d)) + k epsilon (e^epsilon - 1), rounded up.

    Here k = count and d = total_delta - k delta.

    Parameters
    ----------
    epsilon, delta : float
        What each mechanism satisfies: epsilon >= 0 in nats, delta in [0, 1).
    count : int
        Number k of mechanisms, at least 1.
    total_delta : float
        In (0, 1).

    Raises
    ------
    OutOfRegimeError
        If total_delta <= k delta.

    Notes
    -----
    Source: Dwork, Rothblum, Vadhan 2010, as stated by Erlingsson et al. 2019, arXiv:1811.12469v2,
    Theorem 2.

    Examples
    --------
    >>> round(advanced_composition(0.0, 0.0, 5, total_delta=1e-6), 12)
    0.0
    """
    loss = require_non_negative("epsilon", epsilon)
    number = require_at_least("count", count, 1)
    total = require_open_unit("total_delta", total_delta)
    spent = round_up(require_delta(delta) * number)
    rest = (total - spent) * (1.0 - 4.0 * math.ulp(1.0))
    if not rest > 0.0:
        raise OutOfRegimeError(
            f"advanced composition needs total_delta > count * delta = {spent:.3g}, and "
            f"total_delta = {total_delta}: use optimal_composition or a larger total_delta"
        )
    if loss > 700.0:
        return math.inf
    spread = loss * math.sqrt(2.0 * number * -math.log(rest))
    return round_up(spread + number * loss * exp_minus_one_upper(loss), operations=16)


def stated_loss(epsilon: float, delta: float) -> PrivacyLoss:
    """Return the privacy loss that dominates every (epsilon, delta)-DP mechanism.

    With probability delta infinite, else epsilon or -epsilon with odds e^epsilon. Exact on its own
    lattice, up to rounding up.

    Notes
    -----
    Source: Kairouz, Oh, Viswanath 2017, "The Composition Theorem for Differential Privacy",
    arXiv:1311.0776v4: the mechanism in the proof of Theorem 3.3.

    Examples
    --------
    >>> round(stated_loss(math.log(3.0), 0.0).delta(0.0), 12)
    0.5
    """
    loss, failure = require_non_negative("epsilon", epsilon), require_delta(delta)
    if loss == 0.0:
        model = no_loss(1.0, "upper")
        return PrivacyLoss(
            interval=model.interval,
            first=0,
            masses=model.masses * (1.0 - failure) * (1.0 + math.ulp(1.0)),
            infinite_mass=failure,
            error=0.0,
            direction="upper",
        )
    ratio = math.exp(-loss)
    finite = (1.0 - failure) * (1.0 + 8.0 * math.ulp(1.0)) / (1.0 + ratio)
    return PrivacyLoss(
        interval=loss,
        first=-1,
        masses=np.array([finite * ratio, 0.0, finite]),
        infinite_mass=failure,
        error=0.0,
        direction="upper",
    )


def optimal_composition(epsilon: float, delta: float, count: int, *, total_delta: float) -> float:
    """Return the least epsilon that count (epsilon, delta)-DP mechanisms satisfy, rounded up.

    Parameters as in `advanced_composition`, but total_delta may be 0 and count up to 1e9.

    Returns
    -------
    float
        At most count * epsilon; ``inf`` if total_delta < 1 - (1 - delta)^count, since then no
        epsilon will do.

    Notes
    -----
    Source: Kairouz, Oh, Viswanath 2017, arXiv:1311.0776v4, Theorem 3.3, evaluated at every real
    epsilon rather than at k epsilon, (k - 2) epsilon, ... only: the law is composed exactly on the
    lattice of multiples of epsilon. Time O(sqrt(count)).

    Examples
    --------
    >>> round(optimal_composition(1.0, 0.0, 3, total_delta=0.0), 12)
    3.0
    """
    number = require_at_least("count", count, 1)
    total = require_delta(total_delta, name="total_delta")
    each = stated_loss(epsilon, delta)
    highest = round_up(number * float(epsilon))
    failure = round_up(-math.expm1(number * math.log1p(-each.infinite_mass)))
    if failure > total:
        return math.inf
    if total == 0.0:
        return highest
    try:
        return min(compose([(each, number)], total).epsilon(total), highest)
    except PrecisionError:  # what may be cut off does not fit between the failure and the total
        return highest
