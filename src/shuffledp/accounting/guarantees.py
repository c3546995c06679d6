"""Guarantees of one shuffled batch and of everything that is released about the same people."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from shuffledp.amplification.registry import BEST, account_delta, account_epsilon
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.checks import require_non_negative
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile


def guarantee_for(
    profile: LocalProfile,
    num_users: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str = BEST,
    with_lower: bool = True,
    dummies: DummyLaw | None = None,
) -> Guarantee:
    """Return the guarantee of ``num_users`` shuffled reports of one randomizer.

    Exactly one of epsilon and delta is given; the other is bounded. Without its lower end it is
    cheaper. With a shuffler's ``dummies`` one user is enough: the other users are not trusted.
    """
    how: Any = {"num_users": num_users, "method": method, "with_lower": with_lower}
    how["dummies"] = dummies
    return _bounding(
        partial(account_epsilon, profile, **how),
        partial(account_delta, profile, **how),
        epsilon,
        delta,
        num_users=num_users,
    )


def guarantee_of_crowd(
    profile: LocalProfile, num_users: int, *, delta: float, rounds: int = 1
) -> Guarantee:
    """Return the guarantee of n honest users without dummies: infinite without local noise.

    At epsilon0 = inf no finite epsilon holds below delta = 1, however many users there are.
    """
    if not math.isinf(profile.epsilon0):
        if rounds == 1:
            return guarantee_for(profile, num_users, delta=delta)
        release = ShuffledRelease(profile=profile, num_users=num_users)
        return guarantee_of(release * rounds, delta=delta)
    bound = Bound(
        lower=None,
        upper=math.inf,
        method="none",
        source="without local noise and without dummies the adversary sees every report",
        assumptions=(),
    )
    return Guarantee(epsilon=bound, delta=delta, num_users=num_users)


def guarantee_of(
    releases: Composition,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str = BEST,
) -> Guarantee:
    """Return the guarantee of all releases about the same people together.

    Exactly one of epsilon and delta is given; the number of users is that of the smallest batch. A
    method that is named is for a single batch.
    """
    if not releases.parts:
        raise ParameterError("releases is empty: give at least one")
    if method != BEST:
        law, users = single_batch(releases, f"method = {method!r}")
        return guarantee_for(law, users, epsilon=epsilon, delta=delta, method=method)
    sizes = [part.num_users for part, _ in releases.parts if isinstance(part, ShuffledRelease)]
    return _bounding(
        releases.epsilon,
        releases.delta,
        epsilon,
        delta,
        num_users=min(sizes, default=1),
        rounds=releases.rounds,
    )


def require_one(epsilon: float | None, delta: float | None) -> None:
    """Raise `ParameterError` unless exactly one of the two is given."""
    if (epsilon is None) == (delta is None):
        raise ParameterError(
            f"epsilon = {epsilon} and delta = {delta}: give exactly one of them; the other is "
            "computed"
        )


def _bounding(
    epsilon_at: Callable[..., Bound],
    delta_at: Callable[..., Bound],
    epsilon: float | None,
    delta: float | None,
    **facts: int,
) -> Guarantee:
    """Return the guarantee, with a bound on the parameter that is not given."""
    require_one(epsilon, delta)
    if delta is not None:
        return Guarantee(epsilon=epsilon_at(delta=delta), delta=float(delta), **facts)
    asked = require_non_negative("epsilon", 0.0 if epsilon is None else epsilon)
    return Guarantee(epsilon=asked, delta=delta_at(epsilon=asked), **facts)


def single_batch(releases: Composition, what: str) -> tuple[LocalProfile, int]:
    """Return profile and size of the only release; refused unless it is one plain batch."""
    release, _ = releases.parts[0]
    if (
        releases.rounds == 1
        and isinstance(release, ShuffledRelease)
        and release.sampled_from is None
        and release.participation == 1.0
        and release.dummies is None
    ):
        return release.law, release.num_users
    raise ParameterError(
        f"{what} is for one batch in which everybody takes part: leave it out, or leave out "
        "rounds, schedule, sampled, participation and dummies"
    )
