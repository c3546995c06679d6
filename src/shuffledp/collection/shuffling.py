"""``Shuffling``: the shuffle of the reports of a run, and all that depends on it.

Randomizers, estimates and the report are the same for all shuffles. A new shuffle is a class with
this protocol, its words in ``shuffledp.report``, and a line in the table there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from numpy.typing import DTypeLike

from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.collection.uniform_shuffler import InMemoryShuffle
from shuffledp.composition.composition import Composable
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Guarantee
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile

if TYPE_CHECKING:
    from shuffledp.amplification.random_crowd import CrowdLaw

Stage: TypeAlias = ExternalShuffle | InMemoryShuffle
"""Takes reports block by block, then yields them shuffled; a context manager."""


class ShuffleFacts(Protocol):
    """Facts about one shuffle, a dataclass; ``kind`` is their key in JSON."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concealment:
    """Laws that hide a report in a release that is not uniformly shuffled, for leakage accounts.

    Both laws are computed on demand; None if a shuffle has none.
    """

    #: Law of the place at which the report of the least hidden user is released.
    places: Callable[[], Floats] | None = None
    #: Law of the number of users who hide that report, or the probability that each of them does,
    #: rounded down.
    crowd: Callable[[], "CrowdLaw | Floats | None"] | None = None
    #: Upper bound on the probability that the crowd's law does not hold.
    failure: float = 0.0
    #: True if all reports are released: the leakage is then at least a uniform shuffle's.
    is_complete: bool = True


class Shuffling(Protocol):
    """A shuffle of the reports of a run, with its guarantee, facts, cautions and leakage.

    A shuffle whose guarantee accounts for dummies takes their law as ``dummies``, and lists their
    possible senders in ``dummy_senders``. A shuffle that releases a sample of the reports states
    their expected number as ``expected_released``, which plans read.
    """

    @property
    def name(self) -> str:
        """Name in results."""

    @property
    def remedy(self) -> str:
        """Advice on hiding reports better, for targets that cannot be met."""

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee for ``num_users`` reports of one randomizer."""

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return the stage that shuffles the reports of one run."""

    def facts(self, profile: LocalProfile, guarantee: Guarantee, **run: Any) -> ShuffleFacts | None:
        """Return facts about the shuffle of one run, for its report.

        Given are ``num_released`` (reports), ``on_progress``, and ``entropy`` for simulated
        shuffles, none of which is released.
        """

    def cautions(self, profile: LocalProfile, guarantee: Guarantee, facts: Any) -> tuple[str, ...]:
        """Return warnings about this shuffle, one sentence each."""

    def leakage(self) -> Concealment | None:
        """Return the laws that hide a report, or None for a uniform shuffle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformShuffling:
    """All reports in uniformly random order."""

    name: ClassVar[str] = "uniform"
    remedy: ClassVar[str] = ""  # no other shuffle hides more
    dummy_senders: ClassVar[tuple[str, ...]] = ("shuffler", "users")

    guarantee = staticmethod(guarantee_for)

    def stage(self, **how: Any) -> Stage:
        """Return a stage that uses a scratch file if memory is short."""
        return ExternalShuffle(**how)

    def facts(self, *_: Any, **__: Any) -> None:
        """Return None: a uniform shuffle has no particulars."""

    def cautions(self, *_: Any) -> tuple[str, ...]:
        """Return no warnings."""
        return ()

    def leakage(self) -> None:
        """Return None: the leakage of a uniform shuffle is known exactly."""


UNIFORM = UniformShuffling()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FinishedShuffling:
    """A shuffle that took place elsewhere: its reports can be estimated, but not shuffled again.

    ``account`` maps a profile and delta to the guarantee of the reports that arrived;
    ``most_records`` limits the records counted for one user, if users send dummies.
    """

    name: str = "uniform"
    remedy: ClassVar[str] = ""
    dummy_senders: ClassVar[tuple[str, ...]] = ("shuffler", "users")
    account: Callable[[LocalProfile, float], Guarantee]
    concealment: Concealment | None = None
    most_records: float | None = None

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, **_: Any
    ) -> Guarantee:
        """Return the guarantee of the reports that arrived, whatever ``num_users`` is."""
        del num_users
        return self.account(profile, delta)

    def stage(self, **_: Any) -> Stage:
        """Raise: the reports are shuffled already."""
        raise ParameterError(
            "shuffling = a shuffle that took place elsewhere cannot be run: give its reports to "
            "shuffledp.estimate"
        )

    facts = UniformShuffling.facts
    cautions = UniformShuffling.cautions

    def leakage(self) -> Concealment | None:
        """Return the laws that hide a report, or None if the shuffle was uniform."""
        return self.concealment


class Releasing:
    """A plan or a result, as a release that composes with others."""

    __slots__ = ()

    def release(self: Any) -> Composable:
        """Return the release, for ``+``, ``*`` and ledgers.

        A uniform shuffle keeps its law, and so composes better than by epsilon and delta; rounds
        and other shuffles are represented by their stated guarantee.

        Examples
        --------
        >>> import shuffledp as sdp
        >>> asked = sdp.Categories(["yes", "no"])
        >>> weekly = sdp.plan(asked, num_users=1000, epsilon=0.5, delta=1e-8).release()
        >>> 0.5 < (weekly * 4).epsilon(delta=1e-6).upper < 2.0
        True
        """
        guarantee, dummies = self.guarantee, self.dummies
        if self.shuffling != UNIFORM or len(dummies) > 1 or guarantee.rounds != 1:
            return StatedRelease(epsilon=guarantee.epsilon_upper, delta=guarantee.delta_upper)
        how: Any = {"dummies": dummies[0]} if dummies else {}
        return ShuffledRelease(
            profile=self.randomizer.profile, num_users=guarantee.num_users, **how
        )
