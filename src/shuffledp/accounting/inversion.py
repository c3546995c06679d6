"""The extremal number of rounds, of users, or local epsilon that meets a central target.

Four numbers decide over a repeated collection: epsilon0, the number of users, the number of rounds,
and the target (epsilon, delta). Given all but one of them, each function here finds the last one.
Every answer has been checked with the accountant: the target is met *at* the number returned.
"""

import math
from collections.abc import Callable

from shuffledp.accounting.calibration import LARGEST_EPSILON0, epsilon0_of_strength
from shuffledp.accounting.composed import MOST_ROUNDS, Composable
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import InfeasibleTargetError, OutOfRegimeError
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

# Batches larger than this are not sought; nobody has so many users.
_MOST_USERS = 10**13

# Numbers up to this are found exactly, larger ones to this fraction of themselves.
_EXACT_BELOW = 10_000

# Looks at about where epsilon0 is, at most, fewer where so little is missing; and how far off the
# last one usually is.
_GUESSES, _NEAR_ENOUGH, _GUESS_SPREAD = 4, 0.01, 4e-5

# At most so much further at a time, while nothing beyond is known.
_LONGEST_STEP = 1e4


def largest_rounds(releases: Composable, *, epsilon: float, delta: float) -> int:
    """Return how many times something can be published about the same people.

    Parameters
    ----------
    releases : release or composition
        What is published in each round.
    epsilon, delta : float
        Central target for all rounds together, epsilon > 0 in nats and 0 < delta < 1.

    Returns
    -------
    int
        At least 0; so many that there are at most a million releases. Errs downwards, by less
        than one part in ten thousand and not at all below 10,000; the target holds at the value
        returned.

    Notes
    -----
    About five compositions, which share the values of their curves.

    Examples
    --------
    >>> from shuffledp.accounting.stated_release import StatedRelease
    >>> largest_rounds(StatedRelease(epsilon=0.5), epsilon=1.0, delta=1e-9)
    2
    """
    target = require_positive("epsilon", epsilon)
    allowed = require_open_unit("delta", delta)
    per_round = sum(times for _, times in releases.parts)
    if per_round == 0:
        return MOST_ROUNDS

    def cost(rounds: int) -> float:
        return epsilon_upper(releases * rounds, allowed)

    return last_within(cost, target, most=MOST_ROUNDS // per_round)


def least_users(
    *,
    rounds: int,
    epsilon: float,
    delta: float,
    epsilon0: float | None = None,
    profile: LocalProfile | None = None,
    participation: float = 1.0,
) -> int:
    """Return the fewest users with whom a randomizer can be run so many times.

    Parameters
    ----------
    rounds : int
        How often the same users report, at least 1.
    epsilon, delta : float
        Central target for all rounds together, epsilon > 0 in nats and 0 < delta < 1.
    epsilon0, profile, participation
        As for `ShuffledRelease`.

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
    >>> least_users(rounds=2, epsilon=1.0, delta=1e-6, epsilon0=0.5)
    1
    """
    times = require_at_least("rounds", rounds, 1)
    target = require_positive("epsilon", epsilon)
    allowed = require_open_unit("delta", delta)

    def cost(num_users: int) -> float:
        release = ShuffledRelease(
            num_users=num_users, epsilon0=epsilon0, profile=profile, participation=participation
        )
        return epsilon_upper(release * times, allowed)

    local = profile.epsilon0 if profile is not None else (epsilon0 or 0.0)
    strength = 2.0 * math.sinh(0.5 * min(local, 100.0)) / target
    guess = 4.0 * times * math.log(1.0 / allowed) * strength * strength
    _, enough = _bracket(cost, target, power=-0.5, most=_MOST_USERS, guess=guess)
    if enough > _MOST_USERS:
        raise InfeasibleTargetError(
            f"epsilon = {target:.6g}, delta = {allowed:.3g} for {times} rounds needs more than "
            f"{_MOST_USERS:.0e} users: lower epsilon0 or the number of rounds"
        )
    return enough


def largest_local_epsilon(
    *,
    num_users: int,
    rounds: int,
    epsilon: float,
    delta: float,
    profile_for: Callable[[float], LocalProfile] | None = None,
    sampled_from: int | None = None,
    participation: float = 1.0,
) -> float:
    """Return the largest epsilon0 with which users can report so many times.

    Parameters
    ----------
    num_users : int
        Honest users in each round.
    rounds : int
        How often the same users report, at least 1.
    epsilon, delta : float
        Central target for all rounds together, epsilon > 0 in nats and 0 < delta < 1.
    profile_for : callable, optional
        Maps epsilon0 to the randomizer's `LocalProfile`; by default any randomizer's.
    sampled_from, participation
        As for `ShuffledRelease`.

    Returns
    -------
    float
        In nats, at most 40. Errs downwards, by less than one part in ten thousand; the target
        holds at the value returned.

    Notes
    -----
    About five compositions, each at another epsilon0: up to some seconds for binary randomized
    response at a tiny delta.

    Examples
    --------
    >>> round(largest_local_epsilon(num_users=1, rounds=2, epsilon=1.0, delta=1e-12), 6)
    0.5
    """
    times = require_at_least("rounds", rounds, 1)
    target = require_positive("epsilon", epsilon)
    allowed = require_open_unit("delta", delta)
    make = profile_for or (lambda epsilon0: LocalProfile(epsilon0=epsilon0))

    def cost(inverse: float) -> float:
        release = ShuffledRelease(
            num_users=num_users,
            profile=make(1.0 / inverse),
            sampled_from=sampled_from,
            participation=participation,
        )
        return epsilon_upper(release * times, allowed)

    # Without any amplification the target is met at epsilon / rounds, but for some roundings.
    certain = target / times * (1.0 - 1e-12)
    if certain >= LARGEST_EPSILON0:
        return LARGEST_EPSILON0
    strength = target / math.sqrt(4.0 * times * math.log(1.0 / allowed) / num_users)
    guess = epsilon0_of_strength(strength, certain)
    before, power = (0.0, 0.0), 1.0
    for _ in range(_GUESSES):  # epsilon is about in proportion to a power of the strength
        found, strength = cost(1.0 / guess), 2.0 * math.sinh(0.5 * guess)
        if not 0.0 < found < math.inf:
            break
        if 0.0 < before[0] != strength and before[1] != found:
            power = math.log(found / before[1]) / math.log(strength / before[0])
        before = strength, found
        step = math.log(target / found) / max(power, 0.5)
        guess = epsilon0_of_strength(strength * math.exp(min(max(step, -20.0), 20.0)), certain)
        if abs(step) < _NEAR_ENOUGH:
            break
    _, inverse = last_above_first_below(
        cost,
        target,
        1.0 / LARGEST_EPSILON0,
        1.0 / certain,
        guess=1.0 / guess,
        spread=_GUESS_SPREAD,
        relative_tolerance=5e-5,
    )
    return max(1.0 / inverse, certain)


def smallest_delta(releases: Composable, *, epsilon: float) -> float:
    """Return the smallest delta that is proved at a given epsilon, rounded up.

    Parameters
    ----------
    releases : release or composition
        What is published.
    epsilon : float
        In nats, >= 0.

    Returns
    -------
    float
        ``releases.delta(epsilon).upper``.

    Examples
    --------
    >>> from shuffledp.accounting.stated_release import StatedRelease
    >>> smallest_delta(StatedRelease(epsilon=0.5) * 2, epsilon=1.0)
    0.0
    """
    return releases.delta(epsilon, with_lower=False).upper


def epsilon_upper(releases: Composable, delta: float) -> float:
    """Return the epsilon that is safe to publish; ``inf`` where none is known.

    Parameters
    ----------
    releases : release or composition
        What is published.
    delta : float
        In (0, 1).
    """
    try:
        return releases.epsilon(delta, with_lower=False).upper
    except OutOfRegimeError:
        return math.inf


def last_within(cost: Callable[[int], float], target: float, *, most: int) -> int:
    """Return the largest number, at most ``most``, whose cost is within the target.

    Parameters
    ----------
    cost : callable
        Maps a number, at least 1, to a cost that grows with it, about like its root.
    target : float
        Largest cost allowed, > 0.
    most : int
        Where the search ends.

    Returns
    -------
    int
        0 if not even 1 is within. Its cost has been computed. Exact below 10,000, otherwise less
        than one part in ten thousand too small.

    Examples
    --------
    >>> last_within(lambda number: number**0.5, 10.0, most=1000)
    100
    """
    if most < 1:
        return 0
    enough, _ = _bracket(cost, target, power=0.5, most=most)
    return enough


def _bracket(
    cost: Callable[[int], float], target: float, *, power: float, most: int, guess: float = 1.0
) -> tuple[int, int]:
    """Return two neighbouring numbers, low and high, between which the cost crosses the target.

    The cost is taken to be about in proportion to a power of the number, positive or negative.
    ``low`` is 0, and ``high`` is ``most`` + 1, where it was never evaluated. Bisection follows
    any two steps in a row that do not halve the bracket, in its logarithm.
    """
    low, high = (0, 0.0), (most + 1, 0.0)
    point, slow = int(min(max(guess, 1.0), most)), 0
    while True:
        width = math.log(high[0] / max(low[0], 0.5))
        found = cost(point)
        if (found <= target) == (power > 0.0):
            low = point, found
        else:
            high = point, found
        if high[0] - low[0] <= max(1, low[0] // _EXACT_BELOW):
            return low[0], high[0]
        halved = math.log(high[0] / max(low[0], 0.5)) <= 0.5 * width
        slow = 0 if halved or slow == 2 else slow + 1
        point = _next_point(low, high, target, power, bisect=slow == 2)
        point = min(max(point, low[0] + 1), high[0] - 1)


def _next_point(
    low: tuple[int, float], high: tuple[int, float], target: float, power: float, *, bisect: bool
) -> int:
    """Return where to look next: a little beyond where a power law through what is known is."""
    known = [(place, found) for place, found in (low, high) if 0.0 < found < math.inf]
    if low[0] > 0 and low[1] == high[1] == 0.0:
        return high[0] - 1  # free so far, and perhaps to the end
    if bisect or not known:
        return math.isqrt(max(low[0], 1) * high[0])
    if len(known) == 2 and low[1] != high[1]:
        slope = math.log(high[1] / low[1]) / math.log(high[0] / low[0])
        place = low[0] * math.pow(target / low[1], 1.0 / slope)
        # Towards the farther end, so that it closes in as well.
        beyond = max(0.4 * place / _EXACT_BELOW, 0.01 * min(place - low[0], high[0] - place))
        if place - low[0] < high[0] - place:
            return math.ceil(min(place + beyond, 1e18))
        return math.floor(place - beyond)
    ratio = (target / known[0][1]) ** (1.0 / power)
    ratio = min(max(ratio, 1.0 / _LONGEST_STEP), _LONGEST_STEP)
    # So far beyond that the other side becomes known as well.
    return int(min(known[0][0] * ratio * (1.05 if ratio > 1.0 else 0.95), 1e18))
