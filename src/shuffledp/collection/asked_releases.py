"""Releases from the words in which people ask about them: names, files, counts and shares."""

from os import PathLike
from typing import SupportsFloat, SupportsIndex

from shuffledp.accounting.composed import Composition
from shuffledp.accounting.release import ShuffledRelease, honest_users
from shuffledp.collection.named_profiles import named_profile
from shuffledp.collection.source.schedules import read_schedule
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile

Path = str | PathLike[str]


def asked_releases(  # noqa: PLR0913  # one keyword an option
    *,
    epsilon0: SupportsFloat | None = None,
    num_users: SupportsIndex | None = None,
    randomizer: str | None = None,
    k: SupportsIndex | None = None,
    dimension: SupportsIndex | None = None,
    channel: Path | None = None,
    rounds: SupportsIndex = 1,
    schedule: Path | None = None,
    sampled: SupportsIndex | None = None,
    participation: float = 1.0,
    honest_fraction: float = 1.0,
) -> Composition:
    """Return everything that is published, as `account` was asked about it.

    Parameters
    ----------
    epsilon0, num_users, randomizer, k, dimension, channel, rounds, schedule, sampled, \
participation, honest_fraction
        As for `shuffledp.collection.guarantees.account`.

    Returns
    -------
    Composition
        At least one release.

    Raises
    ------
    ParameterError
        If something is missing, or contradicts something else.

    Examples
    --------
    >>> asked_releases(epsilon0=1.0, num_users=1000, honest_fraction=0.9)
    Composition(1 x ShuffledRelease(epsilon0=1, num_users=900))
    """
    times = require_at_least("rounds", rounds, 1)
    if schedule is not None:
        others = (epsilon0, num_users, randomizer, k, dimension, channel, sampled)
        if any(each is not None for each in others) or participation != 1.0:
            raise ParameterError(
                "schedule says all there is about each round: leave out epsilon0, num_users, "
                "randomizer, k, dimension, channel, sampled and participation"
            )
        if honest_fraction != 1.0:
            raise ParameterError(
                "honest_fraction does not go with a schedule: write the honest users of each "
                "round into the schedule"
            )
        return read_schedule(schedule) * times
    if num_users is None:
        raise ParameterError("num_users is missing: give the number of users in a shuffled batch")
    profile = _profile(epsilon0, randomizer, k, dimension, channel)
    honest = honest_users(require_at_least("num_users", num_users, 1), honest_fraction)
    if sampled is None:
        release = ShuffledRelease(profile=profile, num_users=honest, participation=participation)
        return release * times
    # Whoever draws does not know who is honest, so a batch holds about that share of them. Only
    # batches of honest users have a size that is certain.
    if honest_fraction != 1.0:
        raise ParameterError(
            "sampled does not go with honest_fraction: how many of those drawn are honest is left "
            "to chance; give the honest users as num_users and the fewest of them that a batch "
            "holds as sampled"
        )
    batch = require_at_least("sampled", sampled, 1)
    return ShuffledRelease(profile=profile, num_users=batch, sampled_from=honest) * times


def _profile(
    epsilon0: SupportsFloat | None,
    randomizer: str | None,
    k: SupportsIndex | None,
    dimension: SupportsIndex | None,
    channel: Path | None,
) -> LocalProfile:
    """Return the law of one report."""
    if channel is None:
        if epsilon0 is None:
            raise ParameterError("epsilon0 is missing: give the local loss of each report, in nats")
        return named_profile(randomizer, epsilon0=epsilon0, k=k, dimension=dimension)
    if randomizer is not None or k is not None or dimension is not None:
        raise ParameterError(
            "channel says all there is about the randomizer: leave out randomizer, k and dimension"
        )
    from shuffledp.collection.source.channel_files import open_channel

    return open_channel(channel).profile(claimed_epsilon0=epsilon0)
