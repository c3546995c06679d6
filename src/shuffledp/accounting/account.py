"""``account``: central guarantees of shuffled collections, for numbers or arrays of numbers."""

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Generic, TypedDict, TypeVar, Unpack, overload

from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.accounting.profiles import named_profile, read_schedule
from shuffledp.amplification.registry import BEST
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease, honest_users
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.checks import require_at_least
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.shown import Frames, Numbers, Real, Whole, broadcast, rows_of

# The arguments of `account` that may be arrays, in their order.
_NUMBERS = (
    "epsilon0", "num_users", "epsilon", "delta", "domain_size", "dimension", "rounds", "sampled",
    "participation", "honest_fraction",
)  # fmt: skip

# Arguments about the randomizer: its name and sizes, and all of them.
_NAMED = ("randomizer", "domain_size", "dimension")
_LAW = ("epsilon0", "channel", *_NAMED)

Path = str | PathLike[str]
NumberT = TypeVar("NumberT")
WholeT = TypeVar("WholeT")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guarantees(Frames):
    """Guarantees at many settings, one per row: the result of `account` for arrays.

    Parameters
    ----------
    settings : dict of list
        The arguments that were arrays, after broadcasting, by name.
    rows : tuple of Guarantee
        One for each element of the arrays.
    """

    settings: dict[str, list[Any]]
    rows: tuple[Guarantee, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return the settings, both ends of the computed parameter, and the method, by name."""
        asked = "epsilon" if isinstance(self.rows[0].epsilon, Bound) else "delta"
        return {
            **self.settings,
            f"{asked}_lower": [each.lower for each in self.rows],
            f"{asked}_upper": [each.upper for each in self.rows],
            "method": [each.bound.method for each in self.rows],
        }


class _Settings(TypedDict, Generic[NumberT, WholeT], total=False):
    """Keyword arguments of `account`: numbers, or arrays of numbers."""

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
    dummies: DummyLaw | str | None
    method: str


@overload
def account(
    profile: LocalProfile | None = None, **settings: Unpack[_Settings[Real, Whole]]
) -> Guarantee: ...


@overload
def account(
    profile: LocalProfile | None = None, **settings: Unpack[_Settings[Numbers, Numbers]]
) -> Guarantees: ...


def account(profile: LocalProfile | None = None, **settings: Any) -> Guarantee | Guarantees:
    """Bound the central (epsilon, delta) of shuffled collections, as ``shuffledp account`` does.

    Parameters
    ----------
    profile : LocalProfile, optional
        Law of one report, such as ``randomizer.profile``; instead of ``epsilon0``, ``randomizer``,
        ``domain_size``, ``dimension`` and ``channel``.
    epsilon0 : float, optional
        Local privacy loss of each report in nats, >= 0. Needed unless ``profile``, ``channel`` or
        ``schedule`` states it.
    num_users : int, optional
        Number of users in one shuffled batch, at least 1. Needed unless ``schedule`` states it.
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
        Number of times that the collection takes place about the same people.
    schedule : path, optional
        A file with all rounds, which may differ, instead of the arguments above.
    sampled : int, optional
        Number of users drawn uniformly and in secret for each round, whose reports are shuffled;
        all ``num_users`` are honest.
    participation : float
        Chance that each user takes part, by a secret coin of their own.
    honest_fraction : float
        Share of the users that is honest for certain; only these count.
    dummies : DummyLaw or str, optional
        Law of the reports that belong to nobody, such as ``"laplace:2.025:27"``. Where the shuffler
        adds them, ``num_users`` is 1 by default: the other users are not trusted. With
        ``epsilon0=math.inf`` reports are the values.
    method : str
        Name of a method of the accountant; the smallest sound one by default. For single rounds.

    Each number may also be an array: all arrays are broadcast together as NumPy's are.

    Returns
    -------
    Guarantee, or Guarantees
        The computed parameter is a `Bound`, whose upper end is proved. With arrays, one guarantee
        for each element after broadcasting, in C order, as a table that has ``to_dict()``,
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
    >>> bare = account(epsilon0=float("inf"), dummies="laplace:2:27", epsilon=1.0)
    >>> f"{bare.delta_upper:.5g}"
    '6.7155e-07'
    """
    terms = Terms(profile=profile, **settings)
    arrays = broadcast({name: getattr(terms, name) for name in _NUMBERS})
    if not arrays:
        return terms.guarantee()
    found = tuple(replace(terms, **row).guarantee() for row in rows_of(arrays))
    return Guarantees(settings=arrays, rows=found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """Arguments of `account`, by name."""

    profile: LocalProfile | None = None
    epsilon0: Any = None
    num_users: Any = None
    epsilon: Any = None
    delta: Any = None
    randomizer: str | None = None
    domain_size: Any = None
    dimension: Any = None
    channel: Path | None = None
    rounds: Any = 1
    schedule: Path | None = None
    sampled: Any = None
    participation: Any = 1.0
    honest_fraction: Any = 1.0
    dummies: DummyLaw | str | None = None
    method: str = BEST

    def guarantee(self) -> Guarantee:
        """Return the guarantee of everything that is published."""
        return guarantee_of(
            self.releases(), epsilon=self.epsilon, delta=self.delta, method=self.method
        )

    def releases(self) -> Composition:
        """Return everything that is published."""
        times = require_at_least("rounds", self.rounds, 1)
        law = self.dummies
        dummies = DummyLaw.from_text(law) if isinstance(law, str) else law
        if self.schedule is not None:
            if (
                self._given("profile", "num_users", "sampled", "dummies", *_LAW)
                or self.participation != 1.0
            ):
                raise ParameterError(
                    "schedule says all there is about each round: leave out all but rounds"
                )
            if self.honest_fraction != 1.0:
                raise ParameterError(
                    "honest_fraction does not go with a schedule: write honest users into that"
                )
            return read_schedule(self.schedule) * times
        alone = isinstance(dummies, DummyLaw) and dummies.sender == "shuffler"
        if self.num_users is None and not alone:
            raise ParameterError(
                "num_users is missing: give the number of users in a shuffled batch"
            )
        profile = self.law()
        users = require_at_least("num_users", 1 if self.num_users is None else self.num_users, 1)
        honest = honest_users(users, self.honest_fraction)
        how: Any = {"profile": profile, "dummies": dummies, "participation": self.participation}
        if self.sampled is None:
            return ShuffledRelease(num_users=honest, **how) * times
        # Users are drawn without regard to honesty, so a batch holds about that share of honest
        # ones. Their number in a batch is certain only if all users are honest.
        if self.honest_fraction != 1.0:
            raise ParameterError(
                "sampled does not go with honest_fraction: if h of all users are honest, and at "
                "least j of the m drawn, give sampled = j and num_users = j h / m, rounded down"
            )
        batch = require_at_least("sampled", self.sampled, 1)
        if batch > honest:
            raise ParameterError(
                f"sampled = {batch} is above num_users = {honest}: give at most that"
            )
        return ShuffledRelease(num_users=batch, sampled_from=honest, **how) * times

    def law(self) -> LocalProfile:
        """Return the law of one report, from the one argument that states it."""
        if self.profile is not None:
            if self._given(*_LAW):
                raise ParameterError(
                    "profile says all there is about the randomizer: leave out what else does"
                )
            return self.profile
        if self.channel is None:
            if self.epsilon0 is None:
                raise ParameterError(
                    "epsilon0 is missing: give the local loss of each report, in nats"
                )
            about = {name: getattr(self, name) for name in _NAMED}
            return named_profile(epsilon0=self.epsilon0, **about)
        if self._given(*_NAMED):
            raise ParameterError(
                "channel says all there is about the randomizer: leave out what else does"
            )
        from shuffledp.accounting.channel_files import open_channel

        return open_channel(self.channel).profile(claimed_epsilon0=self.epsilon0)

    def _given(self, *names: str) -> bool:
        """Return True if any of these arguments is given."""
        return any(getattr(self, name) is not None for name in names)
