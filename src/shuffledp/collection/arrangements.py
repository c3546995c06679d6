"""Arrangements: in which order the analyst sees the reports, and what that guarantees.

One of them is chosen for a run; all else, the randomizer, the estimates and the report, is the
same for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.collection.guarantees import guarantee_for
from shuffledp.collection.in_memory_shuffle import InMemoryShuffle
from shuffledp.collection.results import Guarantee
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.profile import LocalProfile
from shuffledp.groups.displacement.shuffler import DisplacementShuffler
from shuffledp.groups.privacy.displaced import displaced_epsilon
from shuffledp.groups.privacy.grouped import grouped_epsilon
from shuffledp.groups.shuffler import MallowsShuffler
from shuffledp.network.walk.network_shuffle import NetworkShuffle, OnBatch
from shuffledp.network.walk.shuffler import NetworkShuffler

if TYPE_CHECKING:
    from shuffledp.network.hiding import ReportingProtocol
    from shuffledp.network.mixing import NetworkMixing


class Stage(Protocol):
    """Takes reports block by block, then yields them shuffled; a context manager."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(self, *error: Any) -> None:
        """Forget the reports."""
        ...

    def add(self, reports: NDArray[Any]) -> None:
        """Take the reports of the next users."""
        ...

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the shuffled reports in blocks."""
        ...


class Arrangement(Protocol):
    """An order of the reports, and its guarantee."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    @property
    def remedy(self) -> str:
        """What makes it hide more, as advice to who asked for too much."""
        ...

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee for so many users of one randomizer."""
        ...

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return what shuffles the reports of one run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformArrangement:
    """All reports in uniformly random order."""

    name: ClassVar[str] = "uniform"
    remedy: ClassVar[str] = ""  # nothing hides more

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the guarantee of uniform shuffling; see `guarantee_for`."""
        return guarantee_for(profile, num_users, delta=delta, with_lower=with_lower)

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return a shuffle that goes through a scratch file where memory is short."""
        return ExternalShuffle(
            dtype=dtype, row_shape=row_shape, entropy=entropy, directory=directory
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupArrangement:
    """Reports stay near their users: a Mallows permutation of a public reference order.

    Parameters
    ----------
    shuffler : MallowsShuffler
        Made for the people of one table, in the order of its rows.
    """

    name: ClassVar[str] = "mallows"
    remedy: ClassVar[str] = "lower alpha (which mixes reports more)"

    shuffler: MallowsShuffler

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee of the release.

        Raises
        ------
        DataError
            If ``num_users`` is not the number of people that the groups were formed of.
        """
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisplacementArrangement:
    """Reports stay near their users: each lies at its user's public place plus noise.

    Parameters
    ----------
    shuffler : DisplacementShuffler
        Made for the people of one table, in the order of its rows.
    """

    name: ClassVar[str] = "displacement"
    remedy: ClassVar[str] = "lower alpha (which adds more noise to places)"

    shuffler: DisplacementShuffler
    crowds: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowds", self.shuffler.crowds_lower())

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee of the release, for the user whom the fewest hide.

        Raises
        ------
        DataError
            If ``num_users`` is not the number of people that the groups were formed of.
        """
        _require_people(num_users, self.shuffler.num_users)
        bound = displaced_epsilon(
            profile,
            num_users=num_users,
            expected_crowd=float(self.crowds.min()),
            delta=delta,
            with_lower=with_lower,
        )
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)

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


def _require_people(num_users: int, people: int) -> None:
    """Raise unless there are as many reports as people in the groups."""
    if num_users != people:
        raise DataError(
            f"{num_users:,} people answered and groups were formed of {people:,}: give every "
            "row an answer, or form groups of those who answered only"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkArrangement:
    """Reports walk through a network, and lie where they were handed in.

    Parameters
    ----------
    mixing : NetworkMixing
        The graph, whose user i has row i of the table, and what its walk guarantees.
    rounds : int
        How often every report is passed on, >= 0.
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one.
    on_batch : callable, optional
        Is handed what holders hand in.
    """

    name: ClassVar[str] = "network"
    remedy: ClassVar[str] = "let reports travel more rounds"

    mixing: "NetworkMixing"
    rounds: int
    protocol: "ReportingProtocol" = "all"
    on_batch: OnBatch | None = None

    @property
    def shuffler(self) -> NetworkShuffler:
        """The walk of so many rounds."""
        return NetworkShuffler(walk=self.mixing.walk, rounds=self.rounds, protocol=self.protocol)

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> Guarantee:
        """Return the central guarantee of what is handed in.

        Raises
        ------
        DataError
            If ``num_users`` is not the number of users of the network.
        """
        users = self.mixing.walk.num_users
        if num_users != users:
            raise DataError(
                f"{num_users:,} people answered and the network has {users:,} users: give every "
                "user one row with an answer, and leave out of the graph whoever has none"
            )
        bound = self.mixing.epsilon(
            profile,
            rounds=self.rounds,
            delta=delta,
            protocol=self.protocol,
            with_lower=with_lower,
        )
        return Guarantee(epsilon=bound, delta=float(delta), num_users=num_users)

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return a shuffle in memory, which carries each report along its walk."""
        del dtype, row_shape, directory  # reports are kept as they come
        return NetworkShuffle(self.shuffler, entropy, on_batch=self.on_batch)


UNIFORM = UniformArrangement()
