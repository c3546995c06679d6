"""Reports that stay near their users: arrangements of a run, each with its guarantee."""

from dataclasses import dataclass, field
from os import PathLike
from typing import ClassVar

from numpy.typing import DTypeLike

from shuffledp.collection.arrangements import Stage
from shuffledp.collection.results import Guarantee
from shuffledp.collection.shuffling import InMemoryShuffle
from shuffledp.core.arrays import Floats
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.profile import LocalProfile
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.privacy.displaced import displaced_epsilon
from shuffledp.groups.privacy.grouped import grouped_epsilon
from shuffledp.groups.shuffler import MallowsShuffler


class _InMemory:
    """How reports are shuffled by who knows whose report is whose."""

    __slots__ = ()
    shuffler: MallowsShuffler | DisplacementShuffler

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return a shuffle in memory, which knows whose report is whose."""
        del dtype, row_shape, directory  # reports are kept as they come
        return InMemoryShuffle(self.shuffler, entropy)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupArrangement(_InMemory):
    """Reports stay near their users: a Mallows permutation of a public reference order."""

    name: ClassVar[str] = "mallows"
    remedy: ClassVar[str] = "lower alpha (which mixes reports more)"

    shuffler: MallowsShuffler

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee of the release."""
        _require_people(num_users, self.shuffler.num_users)
        bound = grouped_epsilon(
            profile,
            num_users=num_users,
            theta=self.shuffler.theta,
            distance=self.shuffler.reference.distance,
            delta=delta,
            with_lower=with_lower,
        )
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisplacementArrangement(_InMemory):
    """Reports stay near their users: each lies at its user's public place plus noise."""

    name: ClassVar[str] = "displacement"
    remedy: ClassVar[str] = "lower alpha (which adds more noise to places)"

    shuffler: DisplacementShuffler
    crowds: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowds", self.shuffler.crowds_lower())

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee of the release, for the user whom the fewest hide."""
        _require_people(num_users, self.shuffler.num_users)
        bound = displaced_epsilon(
            profile,
            num_users=num_users,
            expected_crowd=float(self.crowds.min()),
            delta=delta,
            with_lower=with_lower,
        )
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)


def _require_people(num_users: int, people: int) -> None:
    """Raise unless there are as many reports as people in the groups."""
    if num_users != people:
        raise DataError(
            f"{num_users:,} people answered and groups were formed of {people:,}: give every "
            "row an answer, or form groups of those who answered only"
        )
