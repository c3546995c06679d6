"""The guarantee of shuffled collections as asked for, and the one number that is missing."""

from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, SupportsIndex, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.accounting.profiles import named_profile, read_schedule
from shuffledp.amplification.registry import BEST
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease, honest_users
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.frames import Frames
from shuffledp.core.guarantee import Guarantee
from shuffledp.core.profile import LocalProfile

# The arguments of `account` that may be arrays.
_WHOLE = frozenset({"num_users", "domain_size", "dimension", "rounds", "sampled"})
_REAL = frozenset({"epsilon0", "epsilon", "delta", "participation", "honest_fraction"})

Path = str | PathLike[str]
Numbers = float | Collection[Any] | NDArray[Any]
NumberT = TypeVar("NumberT")
WholeT = TypeVar("WholeT")


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
    from shuffledp.accounting.channel_files import open_channel

    return open_channel(channel).profile(claimed_epsilon0=epsilon0)
