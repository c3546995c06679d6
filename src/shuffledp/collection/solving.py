"""The one number that is missing: epsilon0, users, rounds, epsilon or delta from the others."""

from dataclasses import dataclass
from functools import partial
from typing import SupportsIndex

from shuffledp.accounting.calibration import (
    largest_local_epsilon,
    largest_rounds,
    least_users,
)
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.collection.guarantees import guarantee_of
from shuffledp.collection.named_profiles import named_profile
from shuffledp.collection.results import Guarantee
from shuffledp.core.checks import (
    require_at_least,
    require_non_negative,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A repeated collection of which one number was missing.

    Parameters
    ----------
    found : str
        Name of the number that was missing: ``"epsilon0"``, ``"num_users"``, ``"rounds"``,
        ``"epsilon"`` or ``"delta"``.
    epsilon0 : float
        Local privacy loss in nats.
    num_users, rounds : int
        Users in each batch, and batches about the same people.
    guarantee : Guarantee
        What holds for all rounds together, checked at the number found.
    """

    found: str
    epsilon0: float
    num_users: int
    rounds: int
    guarantee: Guarantee

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return {
            "found": self.found,
            "epsilon0": self.epsilon0,
            "num_users": self.num_users,
            "rounds": self.rounds,
            "guarantee": self.guarantee.to_json_dict(),
        }


def solve(
    *,
    epsilon0: float | None = None,
    num_users: SupportsIndex | None = None,
    rounds: SupportsIndex | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    randomizer: str | None = None,
    k: SupportsIndex | None = None,
    dimension: SupportsIndex | None = None,
) -> Solution:
    """Find the one number that is missing: the largest epsilon0, epsilon, and so on.

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
        As for `named_profile`; by default any randomizer.

    Returns
    -------
    Solution
        The target holds at the number found.

    Raises
    ------
    ParameterError
        If not exactly one number is missing, or one is out of range.
    InfeasibleTargetError
        If nothing meets the target.

    Examples
    --------
    >>> solve(epsilon0=0.5, epsilon=1.0, delta=1e-6, rounds=2).num_users
    1
    """
    given = {"epsilon0": epsilon0, "num_users": num_users, "epsilon": epsilon, "delta": delta}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) > 1 or (not missing and rounds is not None):
        raise ParameterError(
            "give all but one of epsilon0, num_users, rounds, epsilon and delta (rounds is 1 where "
            f"another is missing): {', '.join(missing) or 'none'} missing"
        )
    found = missing[0] if missing else "rounds"
    profile_for = partial(_profile, randomizer, k, dimension)
    times = 1 if rounds is None else require_at_least("rounds", rounds, 1)
    users = None if num_users is None else require_at_least("num_users", num_users, 1)
    if found == "epsilon0":
        epsilon0 = largest_local_epsilon(
            num_users=users or 1,
            rounds=times,
            epsilon=require_positive("epsilon", epsilon or 0.0),
            delta=require_open_unit("delta", delta or 0.0),
            profile_for=profile_for,
        )
    profile = profile_for(require_non_negative("epsilon0", epsilon0 or 0.0))
    if found == "num_users":
        users = least_users(
            rounds=times,
            epsilon=require_positive("epsilon", epsilon or 0.0),
            delta=require_open_unit("delta", delta or 0.0),
            profile=profile,
        )
    release = ShuffledRelease(profile=profile, num_users=users or 1)
    if found == "rounds":
        times = largest_rounds(release, epsilon=epsilon or 0.0, delta=delta or 0.0)
        if times == 0:
            raise InfeasibleTargetError(
                f"not even one round with epsilon0 = {epsilon0:g} and {users} users meets epsilon "
                f"= {epsilon:g} at delta = {delta:g}: lower epsilon0, or leave it out to find the "
                "largest"
            )
    if found == "delta":
        guarantee = guarantee_of(release * times, epsilon=epsilon)
    else:
        guarantee = guarantee_of(release * times, delta=delta)
    return Solution(
        found=found,
        epsilon0=profile.epsilon0,
        num_users=release.num_users,
        rounds=times,
        guarantee=guarantee,
    )


def _profile(
    randomizer: str | None,
    k: SupportsIndex | None,
    dimension: SupportsIndex | None,
    epsilon0: float,
) -> LocalProfile:
    """Return the law of one report at an epsilon0."""
    return named_profile(randomizer, epsilon0=epsilon0, k=k, dimension=dimension)
