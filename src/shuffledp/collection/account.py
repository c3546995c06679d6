"""The guarantee of shuffled collections as asked for, and the one number that is missing."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from typing import Any, Generic, SupportsIndex, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.registry import BEST, account_delta, account_epsilon
from shuffledp.accounting.calibration import largest_local_epsilon, largest_rounds, least_users
from shuffledp.accounting.composed import Composition
from shuffledp.accounting.release import ShuffledRelease, honest_users
from shuffledp.collection.profiles import named_profile, read_schedule
from shuffledp.collection.results import Guarantee
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.frames import Frames
from shuffledp.core.profile import LocalProfile
from shuffledp.core.shown import Shown

# The arguments of `account` that may be arrays.
_WHOLE = frozenset({"num_users", "domain_size", "dimension", "rounds", "sampled"})
_REAL = frozenset({"epsilon0", "epsilon", "delta", "participation", "honest_fraction"})

Path = str | PathLike[str]
Numbers = float | Collection[Any] | NDArray[Any]
NumberT = TypeVar("NumberT")
WholeT = TypeVar("WholeT")


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

    Exactly one of epsilon and delta is given; the other is bounded. Without its lower end it is
    cheaper.
    """
    how: Any = {"num_users": num_users, "method": method, "with_lower": with_lower}
    return _bounding(
        partial(account_epsilon, profile, **how),
        partial(account_delta, profile, **how),
        epsilon,
        delta,
        num_users=num_users,
    )


def guarantee_of(
    releases: Composition,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str = BEST,
) -> Guarantee:
    """Return what holds for everything that is published about the same people.

    Exactly one of epsilon and delta is given; the number of users is that of the smallest batch. A
    method that is named is for a single batch.
    """
    if not releases.parts:
        raise ParameterError("releases is empty: give at least one")
    if method != BEST:
        law, users = single_batch(releases, f"method = {method!r}")
        return guarantee_for(law, users, epsilon=epsilon, delta=delta, method=method)
    sizes = [part.num_users for part, _ in releases.parts if isinstance(part, ShuffledRelease)]
    facts = {"num_users": min(sizes, default=1), "rounds": releases.rounds}
    return _bounding(releases.epsilon, releases.delta, epsilon, delta, **facts)


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
    """Return the guarantee with the one that is not given bounded."""
    require_one(epsilon, delta)
    if delta is not None:
        return Guarantee(epsilon=epsilon_at(delta=delta), delta=float(delta), **facts)
    asked = float(epsilon or 0.0)
    return Guarantee(epsilon=asked, delta=delta_at(epsilon=asked), **facts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guarantees(Frames):
    """Guarantees at many settings, one a row: what `account` returns where it is given arrays.

    Parameters
    ----------
    settings : dict of list
        The arguments that were arrays, after broadcasting, by name.
    rows : tuple of Guarantee
        One for each of their elements.
    """

    settings: dict[str, list[Any]]
    rows: tuple[Guarantee, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return the settings, both ends of what was bounded, and the method, by name."""
        asked = "epsilon" if isinstance(self.rows[0].epsilon, Bound) else "delta"
        return {
            **self.settings,
            f"{asked}_lower": [each.lower for each in self.rows],
            f"{asked}_upper": [each.upper for each in self.rows],
            "method": [each.bound.method for each in self.rows],
        }


class _Settings(TypedDict, Generic[NumberT, WholeT], total=False):
    """What `account` takes by name: numbers, or arrays of them."""

    epsilon0: NumberT | None
    num_users: WholeT | None
    epsilon: NumberT | None
    delta: NumberT | None
    randomizer: str | None
    domain_size: WholeT | None
    dimension: WholeT | None
    channel: Path | None
    rounds: WholeT
    schedule: Path | None
    sampled: WholeT | None
    participation: NumberT
    honest_fraction: NumberT
    method: str


@overload
def account(
    profile: LocalProfile | None = None, **settings: Unpack[_Settings[float, int]]
) -> Guarantee: ...


@overload
def account(
    profile: LocalProfile | None = None, **settings: Unpack[_Settings[Numbers, Numbers]]
) -> Guarantees: ...


def account(  # noqa: PLR0913  # one keyword an option
    profile: LocalProfile | None = None,
    *,
    epsilon0: Any = None,
    num_users: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    randomizer: str | None = None,
    domain_size: Any = None,
    dimension: Any = None,
    channel: Path | None = None,
    rounds: Any = 1,
    schedule: Path | None = None,
    sampled: Any = None,
    participation: Any = 1.0,
    honest_fraction: Any = 1.0,
    method: str = BEST,
) -> Guarantee | Guarantees:
    """Tell how private shuffled collections are; what ``shuffledp account`` prints.

    Parameters
    ----------
    profile : LocalProfile, optional
        Law of one report, such as ``randomizer.profile``; instead of ``epsilon0``, ``randomizer``,
        ``domain_size``, ``dimension`` and ``channel``.
    epsilon0 : float, optional
        Local privacy loss of each report in nats, >= 0. Needed unless ``profile``, ``channel`` or
        ``schedule`` says it.
    num_users : int, optional
        Number of users in one shuffled batch, at least 1. Needed unless ``schedule`` says it.
    epsilon, delta : float, optional
        Exactly one of them; the other is bounded.
    randomizer : str, optional
        A randomizer of this library, such as ``"k-rr"``. By default the answer holds for any
        epsilon0-LDP randomizer; naming it gives a smaller one.
    domain_size, dimension : int, optional
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

    Each number may also be an array: all arrays are broadcast together as NumPy's are.

    Returns
    -------
    Guarantee, or Guarantees
        The computed one of the two as a `Bound`, whose upper end is proved. With arrays one for
        each of their elements after broadcasting, in C order, as a table that has ``to_dict()``,
        ``to_polars()`` and ``to_pandas()``.

    Raises
    ------
    ParameterError
        If a parameter is out of range, missing, or contradicts another; if arrays are empty, or
        of shapes that do not go together.
    OutOfRegimeError, PrecisionError
        As for `account_epsilon`; with arrays if one element raises.
    DataError
        If a file cannot be used.

    Examples
    --------
    >>> guarantee = account(epsilon0=1.0, num_users=10_000, delta=1e-6)
    >>> round(guarantee.epsilon_upper, 4)
    0.0432
    >>> table = account(epsilon0=[1.0, 2.0], num_users=[[1_000], [10_000]], delta=1e-6)
    >>> table.to_dict()["num_users"], [round(each, 3) for each in table.to_dict()["epsilon_upper"]]
    ([1000, 1000, 10000, 10000], [0.149, 0.397, 0.043, 0.114])
    """
    given = {**locals()}  # each argument by its name
    settings = _settings({name: given[name] for name in given if name in _REAL | _WHOLE})
    if not settings:
        return _account(**given)
    rows = (dict(zip(settings, row, strict=True)) for row in zip(*settings.values(), strict=True))
    return Guarantees(settings=settings, rows=tuple(_account(**{**given, **row}) for row in rows))


def _settings(numbers: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the elements of those that are arrays, once they are broadcast together."""
    try:
        arrays = {name: np.asarray(each) for name, each in numbers.items() if np.ndim(each)}
        together = np.broadcast_arrays(*arrays.values())
    except ValueError as error:
        raise ParameterError(
            f"arrays that do not go together ({error}): give arrays of one length, or shapes that "
            "NumPy broadcasts, such as (3, 1) and (4,)"
        ) from None
    if together and not together[0].size:
        raise ParameterError(f"{', '.join(arrays)}: arrays that hold nothing; give some numbers")
    found = {name: each.ravel().tolist() for name, each in zip(arrays, together, strict=True)}
    for name in _WHOLE & set(found):  # np.logspace makes floats
        found[name] = [
            int(x) if isinstance(x, float) and x.is_integer() else x for x in found[name]
        ]
    return found


def _account(*, epsilon: Any, delta: Any, method: str, **asked: Any) -> Guarantee:
    """Return the guarantee at one setting."""
    return guarantee_of(asked_releases(**asked), epsilon=epsilon, delta=delta, method=method)


def single_batch(releases: Composition, what: str) -> tuple[LocalProfile, int]:
    """Return profile and size of the only release; refused unless it is one plain batch."""
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


def asked_releases(
    profile: LocalProfile | None = None,
    *,
    num_users: SupportsIndex | None = None,
    rounds: SupportsIndex = 1,
    schedule: Path | None = None,
    sampled: SupportsIndex | None = None,
    participation: float = 1.0,
    honest_fraction: float = 1.0,
    **law: Any,
) -> Composition:
    """Return everything that is published, as `account` was asked about it."""
    times = require_at_least("rounds", rounds, 1)
    if schedule is not None:
        others = (profile, num_users, sampled, *law.values())
        if any(each is not None for each in others) or participation != 1.0:
            raise ParameterError(
                "schedule says all there is about each round: leave out all but rounds"
            )
        if honest_fraction != 1.0:
            raise ParameterError(
                "honest_fraction does not go with a schedule: write honest users into that"
            )
        return read_schedule(schedule) * times
    if num_users is None:
        raise ParameterError("num_users is missing: give the number of users in a shuffled batch")
    profile = _law(profile, **law)
    honest = honest_users(require_at_least("num_users", num_users, 1), honest_fraction)
    if sampled is None:
        release = ShuffledRelease(profile=profile, num_users=honest, participation=participation)
        return release * times
    # Whoever draws does not know who is honest, so a batch holds about that share of them. Only
    # batches of honest users have a size that is certain.
    if honest_fraction != 1.0:
        raise ParameterError(
            "sampled does not go with honest_fraction: give the honest users as num_users, and as "
            "sampled the fewest of them that a batch holds, which else is left to chance"
        )
    batch = require_at_least("sampled", sampled, 1)
    return ShuffledRelease(profile=profile, num_users=batch, sampled_from=honest) * times


def _law(
    profile: LocalProfile | None, *, channel: Path | None = None, epsilon0: Any = None, **about: Any
) -> LocalProfile:
    """Return the law of one report, which only one of them tells."""
    if profile is not None:
        if any(each is not None for each in (epsilon0, channel, *about.values())):
            raise ParameterError(
                "profile says all there is about the randomizer: leave out what else does"
            )
        return profile
    if channel is None:
        if epsilon0 is None:
            raise ParameterError("epsilon0 is missing: give the local loss of each report, in nats")
        return named_profile(epsilon0=epsilon0, **about)
    if any(each is not None for each in about.values()):
        raise ParameterError(
            "channel says all there is about the randomizer: leave out what else does"
        )
    from shuffledp.collection.source.channel_files import open_channel

    return open_channel(channel).profile(claimed_epsilon0=epsilon0)


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
