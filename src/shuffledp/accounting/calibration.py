"""Calibration: the extremal epsilon0, number of users or of rounds that meets a central target.

Four numbers decide over a collection, once or repeated: epsilon0, the number of users, the number
of rounds, and the target (epsilon, delta). Given all but one, each function here finds the last.
Every answer has been checked with the accountant before it is returned: the target is met *at* the
number given, not near it.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any, SupportsIndex

from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.accounting.profiles import named_profile
from shuffledp.amplification.registry import account_delta
from shuffledp.composition.composition import MOST_ROUNDS, Composable
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.checks import (
    require_at_least,
    require_non_negative,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import (
    InfeasibleTargetError,
    OutOfRegimeError,
    ParameterError,
    PrecisionError,
)
from shuffledp.core.guarantee import Guarantee
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile
from shuffledp.core.shown import Shown

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

# Numbers up to this are found exactly, larger ones to this fraction of themselves; the second where
# each try is a composition at another number of users.
_EXACT_BELOW, _EXACT_USERS_BELOW = 10_000, 1_000

# Width of epsilon0.
_EPSILON0_WIDTH = 5e-4

# Looks at about where epsilon0 is, at most, fewer where so little is missing; and how far off the
# last one usually is.
_GUESSES, _NEAR_ENOUGH, _LOCAL_SPREAD = 8, 0.01, 4e-4

# By this power of the strength epsilon grows at least, where there is hardly any amplification.
_LEAST_POWER = 0.1

# Where one round is at its share of epsilon with at most this probability, it tells where all are.
_RARE = 0.05

# Steps by a power law in a row that may leave the bracket wider than half of it.
_PATIENCE = 4

# The longest step in the logarithm, and how far beyond the target the first one goes.
_LONGEST_STEP, _FIRST_BEYOND = math.log(1e4), 0.05


def _checked_target(epsilon: float, delta: float) -> tuple[float, float]:
    return require_positive("epsilon", epsilon), require_open_unit("delta", delta)


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
    target, allowed = _checked_target(epsilon, delta)
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
        place = math.log(_strength(epsilon0))
        excess = math.log(-math.log(found) / aimed)
        if before is not None:
            power = min(max((excess - before[1]) / (before[0] - place), 0.5), 8.0)
        before = (place, excess)
        last, epsilon0 = epsilon0, epsilon0_of_strength(math.exp(place + excess / power), epsilon)
        if abs(epsilon0 - last) <= _COARSE_STEP * last:
            break
    return epsilon0


def _strength(epsilon0: float) -> float:
    """Return 2 sinh(epsilon0 / 2), which epsilon is about in proportion to in a large crowd."""
    return 2.0 * math.sinh(0.5 * min(epsilon0, 100.0))


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
    target, allowed = _checked_target(epsilon, delta)
    least = -math.log(allowed)
    met = math.nextafter(least, math.inf)

    def exponent(num_users: int) -> float:
        """Return -ln delta, about in proportion to the users; above that asked where it is met."""
        found = account_delta(profile, num_users=num_users, epsilon=target, with_lower=False).upper
        if found > allowed:
            return -math.log(found)
        return max(-math.log(found), met) if found > 0.0 else math.inf

    strength = _strength(profile.epsilon0) / target
    guess = 4.0 * least * strength * strength
    _, enough = _bracket(exponent, least, power=1.0, most=_MOST_USERS, guess=guess)
    if enough > _MOST_USERS:
        raise InfeasibleTargetError(
            f"epsilon = {epsilon}, delta = {delta} at epsilon0 = {profile.epsilon0} needs more "
            f"than {_MOST_USERS:.0e} users: lower epsilon0"
        )
    return enough


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
    >>> from shuffledp.composition.release import StatedRelease
    >>> largest_rounds(StatedRelease(epsilon=0.5), epsilon=1.0, delta=1e-9)
    2
    """
    target, allowed = _checked_target(epsilon, delta)
    per_round = sum(times for _, times in releases.parts)
    if per_round == 0:
        return MOST_ROUNDS

    most = MOST_ROUNDS // per_round
    return last_within(lambda rounds: epsilon_upper(releases * rounds, allowed), target, most=most)


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
        Errs upwards, by less than one part in a thousand and not at all below 1,000; the target
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
    target, allowed = _checked_target(epsilon, delta)

    release = ShuffledRelease(
        num_users=1, epsilon0=epsilon0, profile=profile, participation=participation
    )
    law = release.law

    def cost(num_users: int) -> float:
        of_these = replace(release, num_users=num_users, epsilon0=None)
        return epsilon_upper(of_these * times, allowed)

    strength = _strength(law.epsilon0) / target
    guess = 4.0 * times * math.log(1.0 / allowed) * strength * strength
    level = _level_of_one(times, allowed)
    if level is not None and participation == 1.0 and law.delta0 == 0.0:
        with suppress(InfeasibleTargetError):
            guess = smallest_num_users(law, epsilon=target / times, delta=level)
    _, enough = _bracket(
        cost, target, power=-0.5, most=_MOST_USERS, guess=guess, exact_below=_EXACT_USERS_BELOW
    )
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
        In nats, at most 40. Errs downwards, by less than one part in a thousand; the target holds
        at the value returned.

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
    target, allowed = _checked_target(epsilon, delta)
    make = profile_for or (lambda epsilon0: LocalProfile(epsilon0=epsilon0))

    @cache
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
    # To begin with: that of one round at its share, or by the central limit.
    level = _level_of_one(times, allowed)
    if level is None or participation < 1.0 or sampled_from is not None:
        strength = certain * math.sqrt(num_users * times / (-4.0 * math.log(allowed)))
        guess = epsilon0_of_strength(strength, certain)
    else:
        one = {"epsilon": certain, "delta": level, "relative_tolerance": _EPSILON0_WIDTH}
        found = largest_epsilon0(make, num_users=num_users, **one)
        guess = min(max(found, certain), LARGEST_EPSILON0)
    before, power, meets, fails = (0.0, 0.0), 1.0, certain, LARGEST_EPSILON0
    for _ in range(_GUESSES):  # epsilon is about in proportion to a power of the strength
        found, strength = cost(1.0 / guess), _strength(guess)
        met = found <= target
        meets, fails = (max(meets, guess), fails) if met else (meets, min(fails, guess))
        if not 0.0 < found < math.inf:
            break
        if 0.0 < before[0] != strength and before[1] != found:
            power = math.log(found / before[1]) / math.log(strength / before[0])
        before = strength, found
        step = math.log(target / found) / max(power, _LEAST_POWER)
        guess = epsilon0_of_strength(strength * math.exp(min(max(step, -20.0), 20.0)), certain)
        if not meets <= guess <= fails:
            guess = 0.5 * (meets + fails)
        elif abs(step) < _NEAR_ENOUGH:
            break
    least = certain * (1.0 + _EPSILON0_WIDTH)
    if guess <= least < LARGEST_EPSILON0 and cost(1.0 / least) > target:
        return certain
    _, inverse = last_above_first_below(
        cost,
        target,
        1.0 / fails,
        1.0 / meets,
        guess=1.0 / guess,
        spread=_LOCAL_SPREAD,
        relative_tolerance=_EPSILON0_WIDTH,
    )
    return max(1.0 / inverse, certain)


def _level_of_one(rounds: int, delta: float) -> float | None:
    """Return the delta at which one round has about its share of epsilon; None in many rounds.

    By Cramer's theorem a sum of losses is large where about each is at its own share.
    """
    level = math.exp(math.log(delta) / rounds)
    return level if level <= _RARE else None


def epsilon_upper(releases: Composable, delta: float) -> float:
    """Return the upper bound on epsilon; ``inf`` where none is known."""
    try:
        return releases.epsilon(delta, with_lower=False).upper
    except OutOfRegimeError:
        return math.inf


def last_within(cost: Callable[[int], float], target: float, *, most: int) -> int:
    """Return the largest number, at most ``most``, whose cost is within the target.

    Exact below 10,000, otherwise less than one part in ten thousand too small.
    """
    if most < 1:
        return 0
    enough, _ = _bracket(cost, target, power=0.5, most=most)
    return enough


def _bracket(
    cost: Callable[[int], float],
    target: float,
    *,
    power: float,
    most: int,
    guess: float = 1.0,
    exact_below: int = _EXACT_BELOW,
) -> tuple[int, int]:
    """Return two neighbouring numbers, low and high, between which the cost crosses the target.

    The cost is taken to be about in proportion to a power of the number, positive or negative.
    ``low`` is 0, and ``high`` is ``most`` + 1, where it was never evaluated. After four steps in a
    row that do not halve the bracket comes ``most``, or bisection in the logarithm.
    """
    low, high = 0, most + 1
    point, slow = int(min(max(guess, 1.0), most)), 0
    known: list[tuple[float, float]] = []
    while True:
        width, found = math.log(high / max(low, 0.5)), cost(point)
        if 0.0 < found < math.inf:
            known.append((math.log(point), math.log(found / target)))
        if (found <= target) == (power > 0.0):
            low = point
        else:
            high = point
        if high - low <= max(1, low // exact_below):
            return low, high
        slow = 0 if math.log(high / max(low, 0.5)) <= 0.5 * width else slow + 1
        if known and slow < _PATIENCE:
            point = min(max(_by_power_law(known, power, exact_below), low + 1), high - 1)
        else:  # where the cost hardly changes, perhaps to the end
            point = most if high > most else max(math.isqrt(max(low, 1) * high), low + 1)
            slow = 0


def _by_power_law(known: list[tuple[float, float]], power: float, exact_below: int) -> int:
    """Return a little beyond where the target is met; ``known`` are logarithms, at least one.

    The law is that through the two values nearest to the target, if its power is about the one
    stated. It goes so far beyond that the other end of the bracket closes in as well.
    """
    nearest = sorted(known, key=lambda each: abs(each[1]))[:2]
    (place, excess), slope, least = nearest[0], power, _FIRST_BEYOND
    if len(nearest) == 2:
        local = (nearest[1][1] - excess) / (nearest[1][0] - place)
        if 0.2 < local / power < 5.0:
            slope, least = local, 0.4 / exact_below
    step = min(max(-excess / slope, -_LONGEST_STEP), _LONGEST_STEP)
    return round(math.exp(place + step + math.copysign(max(least, 0.02 * abs(step)), step)))


@dataclass(frozen=True, slots=True)
class Calibration(Shown):
    """A repeated collection of which one number was missing, ``found``; see `calibrate`."""

    found: str
    epsilon0: float
    num_users: int
    rounds: int
    guarantee: Guarantee

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return {**asdict(self), "guarantee": self.guarantee.to_json_dict()}


def calibrate(
    *,
    epsilon0: float | None = None,
    num_users: SupportsIndex | None = None,
    rounds: SupportsIndex | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    randomizer: str | None = None,
    domain_size: SupportsIndex | None = None,
    dimension: SupportsIndex | None = None,
) -> Calibration:
    """Find the one number that is left out of a repeated collection and its target.

    Parameters
    ----------
    epsilon0 : float, optional
        Local privacy loss in nats, > 0; the largest is found.
    num_users : int, optional
        Users in each batch, at least 1; the fewest are found.
    rounds : int, optional
        Batches about the same people, at least 1; the most are found, if all else is given.
        Otherwise 1 by default.
    epsilon : float, optional
        Central epsilon of all rounds together, > 0; the smallest is found.
    delta : float, optional
        Central delta, in (0, 1); the smallest is found.
    randomizer, k, dimension
        As for `account`; by default any randomizer.

    Returns
    -------
    Calibration
        With ``epsilon0``, ``num_users``, ``rounds`` and the ``guarantee`` of all rounds together;
        the target holds at the number found, and ``found`` is its name.

    Raises
    ------
    ParameterError
        If not exactly one number is missing, or one is out of range.
    InfeasibleTargetError
        If nothing meets the target.

    Examples
    --------
    >>> calibrate(epsilon0=0.5, epsilon=1.0, delta=1e-6, rounds=2).num_users
    1
    """
    given: Any = {"epsilon0": epsilon0, "num_users": num_users, "epsilon": epsilon, "delta": delta}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) > 1 or (not missing and rounds is not None):
        raise ParameterError(
            "give all but one of epsilon0, num_users, rounds, epsilon and delta (rounds is 1 where "
            f"another is missing): {', '.join(missing) or 'none'} missing"
        )
    found = missing[0] if missing else "rounds"

    def profile_for(epsilon0: float) -> LocalProfile:
        return named_profile(
            randomizer, epsilon0=epsilon0, domain_size=domain_size, dimension=dimension
        )

    times = 1 if rounds is None else require_at_least("rounds", rounds, 1)
    users = 1 if num_users is None else require_at_least("num_users", num_users, 1)
    target = {"epsilon": given["epsilon"], "delta": given["delta"]}
    loss = given["epsilon0"]
    if found == "epsilon0":
        loss = largest_local_epsilon(
            num_users=users, rounds=times, profile_for=profile_for, **target
        )
    profile = profile_for(require_non_negative("epsilon0", loss))
    if found == "num_users":
        users = least_users(rounds=times, profile=profile, **target)
    release = ShuffledRelease(profile=profile, num_users=users)
    if found == "rounds" and not (times := largest_rounds(release, **target)):
        raise InfeasibleTargetError(
            f"not even one round with epsilon0 = {epsilon0:g} and {users} users meets epsilon "
            f"= {epsilon:g} at delta = {delta:g}: lower epsilon0, or leave it out to find the "
            "largest"
        )
    asked: Any = {"epsilon": epsilon} if found == "delta" else {"delta": delta}
    return Calibration(
        found, profile.epsilon0, users, times, guarantee_of(release * times, **asked)
    )
