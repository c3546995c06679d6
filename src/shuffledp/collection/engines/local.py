"""The local engine: one machine plays all users, the shuffler and the analyst, as a stream.

The three are kept apart as they would be in a deployment: codes are randomized block by block,
each once; the reports are shuffled as a whole; the analyst sees shuffled reports only.
"""

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.datasets.columns import Progress, no_progress
from shuffledp.collection.engines.external_shuffle import ExternalShuffle
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.mechanisms.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.mechanisms.reports import Counts, Reports

ReportSink: TypeAlias = Callable[[Iterator[Reports]], None]
"""Consumes a stream of shuffled reports, for example to store them."""


def collect(
    randomizer: CategoryRandomizer,
    blocks: Iterable[NDArray[np.integer[Any]]],
    *,
    num_users: int,
    entropy: Entropy,
    sink: ReportSink | None = None,
    scratch: str | PathLike[str] | None = None,
    on_progress: Progress | None = None,
) -> Counts:
    """Randomize every code once, shuffle all reports uniformly, and count them.

    Parameters
    ----------
    randomizer : CategoryRandomizer
        What each user runs.
    blocks : iterable of integer ndarray, shape (m,)
        Codes in ``[0, k)``; read once, ``num_users`` in total.
    num_users : int
        Number of codes, at least 1.
    entropy : Entropy
        Source of all randomness; the shuffler gets a stream of its own.
    sink : callable, optional
        Is handed the shuffled reports, and has to consume them all.
    scratch : str or path-like, optional
        Folder for scratch files, which hold randomized reports only and vanish with the process.
    on_progress : callable, optional
        Called with the stage, the users done and ``num_users``.

    Returns
    -------
    Counts
        Of the shuffled reports.

    Raises
    ------
    DataError
        If there are not ``num_users`` codes.

    Notes
    -----
    Cost: one pass over the codes and one over the reports; memory bounded by the shuffler's.
    """
    require_at_least("num_users", num_users, 1)
    report = on_progress or no_progress
    layout = randomizer.randomize(np.empty(0, dtype=np.int32), entropy).data
    with ExternalShuffle(
        dtype=layout.dtype,
        row_shape=layout.shape[1:],
        entropy=entropy.spawn(),
        directory=scratch,
    ) as shuffle:
        num_randomized = 0
        for codes in blocks:
            shuffle.add(randomizer.randomize(codes, entropy).data)
            num_randomized += codes.size
            report("randomizing", num_randomized, num_users)
        if num_randomized != num_users:
            raise DataError(
                f"blocks held {num_randomized:,} codes where num_users = {num_users:,} were "
                "expected: pass the number of users that there are"
            )
        analyst = _Analyst(randomizer, report, num_users)
        (sink or _drain)(analyst.read(shuffle))
        return analyst.counts


class _Analyst:
    """Counts shuffled reports as they go by, block by block."""

    def __init__(self, randomizer: CategoryRandomizer, report: Progress, num_users: int) -> None:
        self._randomizer = randomizer
        self._report = report
        self._num_users = num_users
        self.counts = Counts(
            support=np.zeros(randomizer.k, dtype=np.int64),
            num_reports=0,
            fingerprint=randomizer.fingerprint,
        )

    def read(self, shuffled: Iterable[NDArray[Any]]) -> Iterator[Reports]:
        """Yield the blocks again as `Reports`, each of them counted."""
        for data in shuffled:
            reports = Reports(data=data, fingerprint=self._randomizer.fingerprint)
            self.counts += self._randomizer.aggregate(reports)
            self._report("counting", self.counts.num_reports, self._num_users)
            yield reports


def _drain(reports: Iterator[Reports]) -> None:
    """Consume a stream, keeping nothing."""
    for _ in reports:
        pass
