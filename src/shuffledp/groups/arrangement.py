"""Reports that stay near their users: arrangements of a run, each with its guarantee."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shuffledp.collection.arrangements import Description, Stage
from shuffledp.collection.shuffling import InMemoryShuffle
from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.guarantee import Guarantee
from shuffledp.core.profile import LocalProfile
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.facts import amplification_cautions
from shuffledp.groups.privacy.displaced import displaced_epsilon
from shuffledp.groups.privacy.grouped import grouped_epsilon
from shuffledp.groups.shuffler import MallowsShuffler


class _InMemory(ABC):
    """Reports that are shuffled by who knows whose report is whose."""

    __slots__ = ()
    shuffler: MallowsShuffler | DisplacementShuffler

    def stage(self, *, entropy: Entropy, **_: Any) -> Stage:
        """Return a shuffle in memory, which keeps reports as they come."""
        return InMemoryShuffle(self.shuffler, entropy)

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, **asked: Any
    ) -> Guarantee:
        """Return the central guarantee of the release."""
        if num_users != self.shuffler.num_users:
            raise DataError(
                f"{num_users:,} people answered and groups were formed of "
                f"{self.shuffler.num_users:,}: give every row an answer, or form groups of those "
                "who answered only"
            )
        bound = self._epsilon(profile, num_users=num_users, delta=delta, **asked)
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)

    def described(
        self, profile: LocalProfile, guarantee: Guarantee, *, entropy: Entropy, **_: Any
    ) -> Description:
        """Return facts and cautions of a shuffler that knows its groups."""
        from shuffledp.groups.run import group_facts

        if (groups := self.shuffler.groups) is None:
            return {}, ()
        facts = group_facts(self.shuffler, profile=profile, entropy=entropy)
        hardly = amplification_cautions(guarantee, profile.epsilon0, facts)
        return {"groups": facts}, (*groups.cautions(), *hardly)

    @abstractmethod
    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        """Return the bound of the shuffle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupArrangement(_InMemory):
    """Reports stay near their users: a Mallows permutation of a public reference order."""

    name: ClassVar[str] = "mallows"
    remedy: ClassVar[str] = "lower alpha (which mixes reports more)"

    shuffler: MallowsShuffler

    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        theta, distance = self.shuffler.theta, self.shuffler.reference.distance
        return grouped_epsilon(profile, theta=theta, distance=distance, **asked)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisplacementArrangement(_InMemory):
    """Reports stay near their users: each lies at its user's public place plus noise."""

    name: ClassVar[str] = "displacement"
    remedy: ClassVar[str] = "lower alpha (which adds more noise to places)"

    shuffler: DisplacementShuffler
    crowds: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowds", self.shuffler.crowds_lower())

    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        # For the user whom the fewest hide.
        return displaced_epsilon(profile, expected_crowd=float(self.crowds.min()), **asked)
