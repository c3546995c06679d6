"""A stage that lets reports travel through a network and gives them back by holder."""

from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import NDArray

from shuffledp.collection.shuffling import InMemoryShuffle
from shuffledp.core.entropy import Entropy
from shuffledp.network.walk.shuffler import NetworkBatch, NetworkShuffler

OnBatch: TypeAlias = Callable[[NetworkBatch], None]
"""Is handed what holders hand in, once, before the first block of it is read."""


class NetworkShuffle(InMemoryShuffle):
    """Takes reports in the order of their users, and gives back what is handed in, in blocks.

    Parameters
    ----------
    shuffler : NetworkShuffler
        For as many reports as will be added.
    entropy : Entropy
        Where walks and orders come from.
    on_batch : callable, optional
        Learns who handed in what, which the blocks do not say.

    Notes
    -----
    Memory: all reports, three times for a moment.

    Examples
    --------
    >>> import numpy as np
    >>> from shuffledp.network.graphs.families import cycle_graph
    >>> from shuffledp.network.walk.random_walk import RandomWalk
    >>> shuffler = NetworkShuffler(walk=RandomWalk.on(cycle_graph(3)), rounds=1)
    >>> entropy = Entropy.from_operating_system()
    >>> with NetworkShuffle(shuffler, entropy) as shuffle:
    ...     shuffle.add(np.array([7, 8, 9]))
    ...     sorted(np.concatenate(list(shuffle)).tolist())
    [7, 8, 9]
    """

    def __init__(
        self, shuffler: NetworkShuffler, entropy: Entropy, *, on_batch: OnBatch | None = None
    ) -> None:
        super().__init__(_ByHolder(shuffler, on_batch), entropy)


class _ByHolder:
    """Makes a plain shuffler of a network: reports come out, holders go to whom they concern."""

    def __init__(self, shuffler: NetworkShuffler, on_batch: OnBatch | None) -> None:
        self._shuffler = shuffler
        self._on_batch = on_batch

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the reports that are handed in, by rising number of their holder."""
        batch = self._shuffler.shuffle(reports, entropy)
        if self._on_batch is not None:
            self._on_batch(batch)
        return batch.reports
