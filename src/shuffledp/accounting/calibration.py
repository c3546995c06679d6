"""Calibration: the largest epsilon0, or the fewest users, that meet a central (epsilon, delta).

Every answer has been checked with the accountant before it is returned: the target is met *at* the
number given, not near it.
"""

import math
from collections.abc import Callable
from functools import partial

from shuffledp.accounting.amplification.registry import account_delta
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import InfeasibleTargetError, PrecisionError
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

# Reports are all but exact beyond this: e^-40 is below the 2^-64 that randomizers draw with.
LARGEST_EPSILON0 = 40.0

# The neighbourhood of an answer is looked for at so wide an end, until so short a step or so often.
_COARSE_WIDTH = 1e-4
_COARSE_STEP = 1e-3
_MOST_GUESSES = 6

# About how far off that ends, relatively.
_GUESS_SPREAD = 2e-5

# Below this a target is met with as much local noise; shuffling is not worth its round-off.
_SMALLEST_EPSILON = 1e-12

# Batches larger than this are not sought; nobody has so many users.
_MOST_USERS = 10**13


def largest_epsilon0(
    profile_for: Callable[[float], LocalProfile],
    *,
    num_users: int,
    epsilon: float,
    delta: float,
    relative_tolerance: float = 1e-6,
) -> float:
    """Return the largest epsilon0 whose shuffled reports meet a central target.

    Parameters
    ----------
    profile_for : callable
        Maps epsilon0 (nats) to the randomizer's `LocalProfile`; its privacy must not improve with
        epsilon0.
    num_users : int
        Number n of honest users, at least 1.
    epsilon, delta : float
        Central target, epsilon > 0 in nats and 0 < delta < 1.
    relative_tolerance : float
        The answer is within this of the true supremum, below it.

    Returns
    -------
    float
        At least ``epsilon`` (without any amplification the target is met there), at most 40.
        Errs downwards; the target holds at the value returned.

    Notes
    -----
    About eight calls of the accountant for one end, some of them at a wide one only, which finds
    the neighbourhood of the answer.

    Examples
    --------
    >>> alone = largest_epsilon0(
    ...     lambda epsilon0: LocalProfile(epsilon0=epsilon0), num_users=1, epsilon=1.0, delta=1e-9
    ... )
    >>> round(alone, 6)
    1.0
    """
    users = require_at_least("num_users", num_users, 1)
    target = require_positive("epsilon", epsilon)
    allowed = require_open_unit("delta", delta)
    if not _SMALLEST_EPSILON < target < LARGEST_EPSILON0:
        return min(target, LARGEST_EPSILON0)

    def delta_at(epsilon0: float, *, width: float) -> float:
        profile = profile_for(epsilon0)
        return account_delta(
            profile, num_users=users, epsilon=target, with_lower=False, width=width
        ).upper

    # Any upper end that meets the target proves it: half of the tolerance pays for a wider one.
    tolerance = 0.5 * relative_tolerance
    guess = _guess(partial(delta_at, width=_COARSE_WIDTH), users, target, allowed)
    # delta falls as 1/epsilon0 grows, and is 0 from epsilon0 = epsilon on.
    _, inverse = last_above_first_below(
        lambda inverse: delta_at(1.0 / inverse, width=tolerance),
        allowed,
        1.0 / LARGEST_EPSILON0,
        1.0 / target,
        guess=1.0 / guess,
        spread=_GUESS_SPREAD,
        relative_tolerance=tolerance,
    )
    return max(1.0 / inverse, target)


def _guess(
    delta_at: Callable[[float], float], num_users: int, epsilon: float, delta: float
) -> float:
    """Return an epsilon0 that about meets a target, from a few rough values of delta.

    In a large crowd epsilon = s sqrt(4 ln(1/delta) / n) with the strength s = 2 sinh(epsilon0 / 2)
    is roughly right: ln(1/delta) falls like a power of s, the second to begin with.
    """
    aimed = -math.log(delta)
    epsilon0 = epsilon0_of_strength(epsilon * math.sqrt(num_users / (4.0 * aimed)), epsilon)
    power, before = 2.0, None
    for _ in range(_MOST_GUESSES):
        try:
            found = delta_at(epsilon0)
        except PrecisionError:
            break
        if not 0.0 < found < 1.0:
            break
        place = math.log(2.0 * math.sinh(0.5 * epsilon0))
        excess = math.log(-math.log(found) / aimed)
        if before is not None:
            power = min(max((excess - before[1]) / (before[0] - place), 0.5), 8.0)
        before = (place, excess)
        last, epsilon0 = epsilon0, epsilon0_of_strength(math.exp(place + excess / power), epsilon)
        if abs(epsilon0 - last) <= _COARSE_STEP * last:
            break
    return epsilon0


def epsilon0_of_strength(strength: float, least: float) -> float:
    """Return the epsilon0 in [least, 40] at which 2 sinh(epsilon0 / 2) is a strength > 0."""
    return min(max(2.0 * math.asinh(0.5 * strength), least), LARGEST_EPSILON0)


def smallest_num_users(profile: LocalProfile, *, epsilon: float, delta: float) -> int:
    """Return the fewest users with whom a randomizer meets a central target.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law.
    epsilon, delta : float
        Central target, epsilon > 0 in nats and 0 < delta < 1.

    Returns
    -------
    int
        Errs upwards, by less than one part in ten thousand and not at all below 10,000; the target
        holds at the value returned.

    Raises
    ------
    InfeasibleTargetError
        If not even 1e13 users suffice.

    Examples
    --------
    >>> smallest_num_users(LocalProfile(epsilon0=1.0), epsilon=1.0, delta=1e-6)
    1
    """
    target = require_positive("epsilon", epsilon)
    allowed = require_open_unit("delta", delta)

    def suffices(num_users: int) -> bool:
        bound = account_delta(profile, num_users=num_users, epsilon=target, with_lower=False)
        return bound.upper <= allowed

    too_few, enough = 0, 1
    while not suffices(enough):
        too_few = enough
        if enough >= _MOST_USERS:
            raise InfeasibleTargetError(
                f"epsilon = {epsilon}, delta = {delta} at epsilon0 = {profile.epsilon0} needs more "
                f"than {_MOST_USERS:.0e} users: lower epsilon0"
            )
        enough *= 4
    while enough - too_few > max(1, enough // 10_000):
        middle = (too_few + enough) // 2
        if suffices(middle):
            enough = middle
        else:
            too_few = middle
    return enough
