"""A shuffle that keeps all reports in memory, for shufflers that know whose report is whose."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError

# Rows handed on at a time.
_BLOCK_ROWS = 1 << 18


class Shuffler(Protocol):
    """Puts reports into another order."""

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the rows in a new order."""
        ...


class InMemoryShuffle:
    """Takes reports in the order of their users, then gives them back shuffled, in blocks.

    The same in use as `ExternalShuffle`, but the shuffler sees who is who: row i of what comes
    out lies in the place of user i.

    Parameters
    ----------
    shuffler : Shuffler
        For as many reports as will be added.
    entropy : Entropy
        Where the permutation comes from.

    Notes
    -----
    Memory: all reports, three times for a moment.

    Examples
    --------
    >>> from shuffledp.collection.uniform import UniformShuffler
    >>> entropy = Entropy.from_operating_system()
    >>> with InMemoryShuffle(UniformShuffler(), entropy) as shuffle:
    ...     shuffle.add(np.array([2, 1]))
    ...     sorted(np.concatenate(list(shuffle)).tolist())
    [1, 2]
    """

    def __init__(self, shuffler: Shuffler, entropy: Entropy) -> None:
        self._shuffler = shuffler
        self._entropy = entropy
        self._pieces: list[NDArray[Any]] = []

    def add(self, reports: NDArray[Any]) -> None:
        """Take the reports of the next users."""
        self._pieces.append(np.array(reports))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pieces.clear()

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the shuffled reports, once: a second permutation of the same would tell more."""
        if not self._pieces:
            raise ParameterError("there are no reports to shuffle: add some, and read them once")
        reports = np.concatenate(self._pieces)
        self._pieces.clear()
        shuffled = self._shuffler.shuffle(reports, self._entropy)
        for start in range(0, len(shuffled), _BLOCK_ROWS):
            yield shuffled[start : start + _BLOCK_ROWS]
