"""Shuffles within groups: a run's reports stay near their users."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from shuffledp.collection.shuffling import Concealment, Stage
from shuffledp.collection.uniform_shuffler import InMemoryShuffle
from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.guarantee import Guarantee
from shuffledp.core.profile import LocalProfile
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.facts import GroupFacts, amplification_cautions
from shuffledp.groups.mallows import target_place_law
from shuffledp.groups.privacy.displaced import crowd_with_mean, displaced_epsilon
from shuffledp.groups.privacy.grouped import grouped_epsilon
from shuffledp.groups.shuffler import MallowsShuffler

# Guesses change little with crowds that are rarer than about this.
_RAREST_CROWD = 1e-6


class _InMemory(ABC):
    """Reports shuffled by a party that knows the owner of each report."""

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

    def facts(
        self, profile: LocalProfile, _: Guarantee, *, entropy: Entropy, **__: Any
    ) -> GroupFacts | None:
        """Return the facts of a shuffler that knows its groups."""
        from shuffledp.groups.run import group_facts

        if self.shuffler.groups is None:
            return None
        return group_facts(self.shuffler, profile=profile, entropy=entropy)

    def cautions(
        self, profile: LocalProfile, guarantee: Guarantee, facts: GroupFacts | None
    ) -> tuple[str, ...]:
        """Return warnings about the groups, and about a shuffle that hardly amplifies."""
        if self.shuffler.groups is None or facts is None:
            return ()
        hardly = amplification_cautions(guarantee, profile.epsilon0, facts)
        return (*self.shuffler.groups.cautions(), *hardly)

    def leakage(self) -> Concealment | None:
        """Concealment of the least hidden report; None if theta = 0, where all reports hide it."""
        return None if self.shuffler.theta == 0.0 else self._concealment()

    @abstractmethod
    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        """Return the bound of the shuffle."""

    @abstractmethod
    def _concealment(self) -> Concealment:
        """Concealment of the least hidden person's report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShuffling(_InMemory):
    """Reports stay near their users: a Mallows permutation of a public reference order."""

    name: ClassVar[str] = "mallows"
    remedy: ClassVar[str] = "lower alpha (which mixes reports more)"

    shuffler: MallowsShuffler

    def _epsilon(self, profile: LocalProfile, **asked: Any) -> Bound:
        theta, distance = self.shuffler.theta, self.shuffler.reference.distance
        return grouped_epsilon(profile, theta=theta, distance=distance, **asked)

    def _concealment(self) -> Concealment:
        # Places are alike under Hamming and Cayley; under Kendall the ends are the least spread
        # (docs/results/leakage-general.md).
        return Concealment(places=partial(target_place_law, self.shuffler.model, 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisplacementShuffling(_InMemory):
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

    def _concealment(self) -> Concealment:
        least = float(self.crowds.min())
        return Concealment(crowd=partial(crowd_with_mean, least, delta=_RAREST_CROWD))
