"""The guarantee of shuffled collections, for whichever of epsilon and delta is not given."""

from os import PathLike

from shuffledp.accounting.amplification.registry import BEST, account_delta, account_epsilon
from shuffledp.accounting.composed import Composition
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.collection.asked_releases import asked_releases
from shuffledp.collection.results import Guarantee
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
) -> Guarantee:
    """Return what holds for ``num_users`` shuffled reports of one randomizer.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law, or ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    num_users : int
        Number of honest users, at least 1.
    epsilon, delta : float, optional
        Exactly one of them: central epsilon in nats, or failure probability. The other is bounded.
    method : str
        Name of a method of the accountant; the smallest sound one by default.
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Guarantee
        The computed one of the two as a `Bound`, whose upper end is safe to publish.

    Raises
    ------
    ParameterError
        If not exactly one of epsilon and delta is given, or a parameter is out of range.
    OutOfRegimeError, PrecisionError
        As for `account_epsilon`.

    Examples
    --------
    >>> guarantee_for(LocalProfile(epsilon0=1.0), 100, epsilon=1.0).delta_upper
    0.0
    """
    if delta is not None and epsilon is None:
        bound = account_epsilon(
            profile, num_users=num_users, delta=delta, method=method, with_lower=with_lower
        )
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)
    if epsilon is not None and delta is None:
        bound = account_delta(
            profile, num_users=num_users, epsilon=epsilon, method=method, with_lower=with_lower
        )
        return Guarantee(epsilon=float(epsilon), delta=bound, num_users=num_users)
    raise ParameterError(
        f"epsilon = {epsilon} and delta = {delta}: give exactly one of them; the other is computed"
    )


def guarantee_of(
    releases: Composition, *, epsilon: float | None = None, delta: float | None = None
) -> Guarantee:
    """Return what holds for everything that is published about the same people.

    Parameters
    ----------
    releases : Composition
        At least one release.
    epsilon, delta : float, optional
        Exactly one of them; the other is bounded.

    Returns
    -------
    Guarantee
        Its number of users is that of the smallest batch.

    Raises
    ------
    ParameterError
        If not exactly one of epsilon and delta is given, or nothing is published.

    Examples
    --------
    >>> year = Composition([(ShuffledRelease(epsilon0=0.5, num_users=1000), 365)])
    >>> guarantee_of(year, delta=1e-6).rounds
    365
    """
    sizes = [part.num_users for part, _ in releases.parts if isinstance(part, ShuffledRelease)]
    if not releases.parts:
        raise ParameterError("releases is empty: give at least one")
    num_users = min(sizes, default=1)
    if (epsilon is None) == (delta is None):
        raise ParameterError(
            f"epsilon = {epsilon} and delta = {delta}: give exactly one of them; the other is "
            "computed"
        )
    if epsilon is None:
        asked = float(delta or 0.0)
        return Guarantee(
            epsilon=releases.epsilon(asked),
            delta=asked,
            num_users=num_users,
            rounds=releases.rounds,
        )
    return Guarantee(
        epsilon=float(epsilon),
        delta=releases.delta(epsilon),
        num_users=num_users,
        rounds=releases.rounds,
    )


def account(  # noqa: PLR0913  # one keyword an option
    *,
    epsilon0: float | None = None,
    num_users: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    randomizer: str | None = None,
    k: int | None = None,
    dimension: int | None = None,
    channel: str | PathLike[str] | None = None,
    rounds: int = 1,
    schedule: str | PathLike[str] | None = None,
    sampled: int | None = None,
    participation: float = 1.0,
    honest_fraction: float = 1.0,
    method: str = BEST,
) -> Guarantee:
    """Tell how private shuffled collections are; what ``shuffledp account`` prints.

    Parameters
    ----------
    epsilon0 : float, optional
        Local privacy loss of each report in nats, >= 0. Needed unless ``channel`` or ``schedule``
        says it.
    num_users : int, optional
        Number of users in one shuffled batch, at least 1. Needed unless ``schedule`` says it.
    epsilon, delta : float, optional
        Exactly one of them; the other is bounded.
    randomizer : str, optional
        A randomizer of this library, such as ``"k-rr"``. By default the answer holds for any
        epsilon0-LDP randomizer; naming it gives a smaller one.
    k, dimension : int, optional
        Number of possible answers, or length of the vectors, where the randomizer needs it.
    channel : path, optional
        A file with the channel matrix of a randomizer of your own.
    rounds : int
        How often the collection is repeated about the same people.
    schedule : path, optional
        A file with all rounds, which may differ, instead of the arguments above.
    sampled : int, optional
        Only so many of the users, drawn uniformly and in secret for each round, are shuffled.
    participation : float
        Chance that each user takes part, by a secret coin of their own.
    honest_fraction : float
        Share of the users that is honest for certain; only these count.
    method : str
        Name of a method of the accountant; the smallest sound one by default. For single rounds.

    Returns
    -------
    Guarantee
        The computed one of the two as a `Bound`, whose upper end is safe to publish.

    Raises
    ------
    ParameterError
        If a parameter is out of range, missing, or contradicts another.
    OutOfRegimeError, PrecisionError
        As for `account_epsilon`.
    DataError
        If a file cannot be used.

    Examples
    --------
    >>> guarantee = account(epsilon0=1.0, num_users=10_000, delta=1e-6)
    >>> round(guarantee.epsilon_upper, 4)
    0.0432
    """
    releases = asked_releases(
        epsilon0=epsilon0,
        num_users=num_users,
        randomizer=randomizer,
        k=k,
        dimension=dimension,
        channel=channel,
        rounds=rounds,
        schedule=schedule,
        sampled=sampled,
        participation=participation,
        honest_fraction=honest_fraction,
    )
    if method == BEST:
        return guarantee_of(releases, epsilon=epsilon, delta=delta)
    profile, users = single_batch(releases, f"method = {method!r}")
    return guarantee_for(profile, users, epsilon=epsilon, delta=delta, method=method)


def single_batch(releases: Composition, what: str) -> tuple[LocalProfile, int]:
    """Return profile and number of users of the only release, if it is one plain batch.

    Raises
    ------
    ParameterError
        If it is not; ``what`` is what needs it to be.
    """
    release, _ = releases.parts[0]
    if (
        releases.rounds == 1
        and isinstance(release, ShuffledRelease)
        and release.sampled_from is None
        and release.participation == 1.0
    ):
        return release.law, release.num_users
    raise ParameterError(
        f"{what} is for one batch in which everybody takes part: leave it out, or leave out "
        "rounds, schedule, sampled and participation"
    )
