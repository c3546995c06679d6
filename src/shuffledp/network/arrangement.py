"""Reports that walk through a network: an arrangement of a run, with its guarantee."""

from dataclasses import dataclass
from os import PathLike
from typing import ClassVar

from numpy.typing import DTypeLike

from shuffledp.collection.arrangements import Stage
from shuffledp.collection.results import Guarantee
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.profile import LocalProfile
from shuffledp.network.hiding import ReportingProtocol
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.walk.network_shuffle import NetworkShuffle, OnBatch
from shuffledp.network.walk.shuffler import NetworkShuffler


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

    mixing: NetworkMixing
    rounds: int
    protocol: ReportingProtocol = "all"
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
