"""Calibration: the extremal epsilon0, number of users or of rounds that meets a central target.

Five numbers describe a collection, once or repeated: epsilon0, the number of users, the number of
rounds, and epsilon and delta of the target. Given all but one, `calibrate` finds the last. Every
answer has been checked with the accountant before it is returned: the target is met *at* the number
returned, not near it.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, SupportsIndex

from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.accounting.profiles import named_profile
from shuffledp.amplification.registry import account_delta
from shuffledp.composition.composition import MOST_ROUNDS, Composable
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Guarantee
from shuffledp.core.checks import (
    require_at_least,
    require_finite,
    require_non_negative,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import (
    InfeasibleTargetError,
    OutOfRegimeError,
    ParameterError,
)
from shuffledp.core.numerics.inversion import last_above_first_below, last_within, neighbours
from shuffledp.core.profile import LocalProfile
from shuffledp.core.shown import Real, Shown

# Reports are all but exact beyond this: e^-40 is below the 2^-64 that randomizers draw with.
LARGEST_CALIBRATED = 40.0

# Width of the ends of a first search for an answer, and relative error of what that starts from.
_COARSE_WIDTH, _GAUSSIAN_SPREAD = 1e-4, 0.1

# Local noise alone meets targets below this; amplification would be lost in round-off.
_SMALLEST_EPSILON = 1e-12

# Largest batch that is sought.
_MOST_USERS = 10**13

# Where each try is a composition: numbers of users up to the first are found exactly, larger ones
# to one part in it; and the second is the number of steps in a strength without amplification.
_EXACT_USERS_BELOW, _PARTS = 1_000, 2_000


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
    """Return the largest epsilon0 with which one shuffled batch meets a central target.

    At least ``epsilon``, at most 40; errs downwards by the tolerance. The privacy of a profile must
    not improve with epsilon0. About ten calls of the accountant for an upper end, most of which ask
    for a wide one only, from which the answer is not far.
    """
    users = require_at_least("num_users", num_users, 1)
    target, allowed = _checked_target(epsilon, delta)
    if not _SMALLEST_EPSILON < target < LARGEST_CALIBRATED:
        return min(target, LARGEST_CALIBRATED)

    def least_inverse(guess: float, *, spread: float, tolerance: float) -> float:
        """Return the least 1 / epsilon0 that meets the target, by ends as wide as the tolerance.

        delta falls as it grows, and is 0 at 1 / epsilon.
        """

        def delta_at(inverse: float) -> float:
            return account_delta(
                profile_for(1.0 / inverse),
                epsilon=target,
                num_users=users,
                with_lower=False,
                width=tolerance,
            ).upper

        return last_above_first_below(
            delta_at,
            allowed,
            1.0 / LARGEST_CALIBRATED,
            1.0 / target,
            guess=guess,
            spread=spread,
            relative_tolerance=tolerance,
        )[1]

    # The central limit, then wide ends, which are quick.
    guess = 1.0 / epsilon0_of_strength(_limit_strength(target, users, allowed), target)
    guess = least_inverse(guess, spread=_GAUSSIAN_SPREAD, tolerance=_COARSE_WIDTH)
    # Any upper end that meets the target proves it: half of the tolerance pays for a wider one.
    inverse = least_inverse(guess, spread=_COARSE_WIDTH, tolerance=0.5 * relative_tolerance)
    return max(1.0 / inverse, target)


def _strength(epsilon0: float) -> float:
    """Return 2 sinh(epsilon0 / 2), to which epsilon is about proportional in a large crowd."""
    return 2.0 * math.sinh(0.5 * min(epsilon0, 100.0))


def _limit_strength(epsilon: float, num_users: int, delta: float, *, rounds: int = 1) -> float:
    """Return s with s sqrt(4 ln(1/delta) / (n rounds)) = epsilon of one round, at large n."""
    return epsilon * math.sqrt(min(num_users, _MOST_USERS) * rounds / (-4.0 * math.log(delta)))


def epsilon0_of_strength(strength: float, least: float) -> float:
    """Return the epsilon0 in [least, 40] at which 2 sinh(epsilon0 / 2) is a strength > 0."""
    return min(max(2.0 * math.asinh(0.5 * strength), least), LARGEST_CALIBRATED)


def largest_rounds(release: ShuffledRelease, *, epsilon: float, delta: float) -> int:
    """Return the largest number of equal releases within a target, at most 2^20.

    Errs downwards, by less than one part in ten thousand and not at all below 10,000. About five
    compositions, which share the values of their curves.
    """
    target, allowed = _checked_target(epsilon, delta)
    return last_within(
        lambda rounds: epsilon_upper(release * rounds, allowed), target, most=MOST_ROUNDS
    )


def least_users(
    *,
    rounds: int,
    epsilon: float,
    delta: float,
    profile: LocalProfile,
    participation: float = 1.0,
) -> int:
    """Return the fewest users for this number of rounds of a randomizer within a target.

    Errs upwards, by less than one part in a thousand and not at all below 1,000. Raises
    `InfeasibleTargetError` if not even 1e13 users suffice.
    """
    times = require_at_least("rounds", rounds, 1, MOST_ROUNDS)
    target, allowed = _checked_target(epsilon, delta)

    release = partial(ShuffledRelease, profile=profile, participation=participation)

    def cost(num_users: int) -> float:
        return epsilon_upper(release(num_users=num_users) * times, allowed)

    strength = _strength(profile.epsilon0) / target
    guess = 4.0 * times * math.log(1.0 / allowed) * strength * strength
    _, enough = neighbours(
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
    participation: float = 1.0,
) -> float:
    """Return the largest epsilon0 for this number of rounds within a target, at most 40.

    The default is any randomizer. Errs downwards, by less than one part in a thousand. About five
    compositions, each at another epsilon0: up to some seconds for binary randomized response at a
    tiny delta.
    """
    times = require_at_least("rounds", rounds, 1, MOST_ROUNDS)
    target, allowed = _checked_target(epsilon, delta)
    participation = require_finite("participation", participation)
    make = profile_for or (lambda epsilon0: LocalProfile(epsilon0=epsilon0))

    # Without any amplification the target is met at epsilon / rounds, up to rounding.
    certain = target / times * (1.0 - 1e-12)
    if not _SMALLEST_EPSILON < certain < LARGEST_CALIBRATED:
        return min(certain, LARGEST_CALIBRATED)
    # Epsilon is about proportional to the strength, which is counted in parts of a certain one.
    unit = _strength(certain) / _PARTS

    def at(parts: int) -> float:
        return epsilon0_of_strength(parts * unit, certain)

    def cost(parts: int) -> float:
        release = ShuffledRelease(
            num_users=num_users,
            profile=make(at(parts)),
            participation=participation,
        )
        return epsilon_upper(release * times, allowed)

    most = int(_strength(LARGEST_CALIBRATED) / unit)
    parts, _ = neighbours(
        cost,
        target,
        power=1.0,
        least=_PARTS,
        most=most,
        guess=_limit_strength(certain, num_users, allowed, rounds=times) / unit,
        exact_below=_PARTS,
    )
    return max(at(parts), certain)


def epsilon_upper(releases: Composable, delta: float) -> float:
    """Return the upper bound on epsilon; ``inf`` where none is known."""
    try:
        return releases.epsilon(delta, with_lower=False).upper
    except OutOfRegimeError:
        return math.inf


@dataclass(frozen=True, slots=True)
class Calibration(Shown):
    """A repeated collection whose number named ``found`` was computed; see `calibrate`."""

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
    epsilon0: Real | None = None,
    num_users: SupportsIndex | None = None,
    rounds: SupportsIndex | None = None,
    epsilon: Real | None = None,
    delta: Real | None = None,
    randomizer: str | None = None,
    domain_size: SupportsIndex | None = None,
    dimension: SupportsIndex | None = None,
    participation: float = 1.0,
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
    randomizer, domain_size, dimension, participation
        As for `account`; by default any randomizer, and everybody takes part.

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
            rounds=times,
            profile_for=profile_for,
            num_users=users,
            participation=participation,
            **target,
        )
    profile = profile_for(require_non_negative("epsilon0", loss))
    if found == "num_users":
        users = least_users(rounds=times, profile=profile, participation=participation, **target)
    release = ShuffledRelease(profile=profile, num_users=users, participation=participation)
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
