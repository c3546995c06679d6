"""The local engine: one machine plays all users, the shuffler and the analyst, as a stream.

The three are kept apart as they would be in a deployment: values are randomized block by block,
each once; the reports are shuffled as a whole, in the arrangement chosen; the analyst sees shuffled
reports only.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.arrangements import UNIFORM, Arrangement, Stage
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.core.reports import Aggregate, Reports
from shuffledp.randomizers.base import LocalRandomizer

ReportSink: TypeAlias = Callable[[Iterator[Reports]], None]
"""Consumes a stream of shuffled reports, for example to store them."""

# Reports are aggregated in batches of about this size: with hashed reports each batch costs a
# transform as long as the domain, which should not be paid for a handful of them.
_BATCH_BYTES = 1 << 23


def collect(
    randomizer: LocalRandomizer,
    blocks: Iterable[Any],
    *,
    num_users: int,
    entropy: Entropy,
    arrangement: Arrangement = UNIFORM,
    sink: ReportSink | None = None,
    scratch: str | PathLike[str] | None = None,
    on_progress: Progress | None = None,
) -> Aggregate:
    """Randomize every value once, shuffle all reports, and aggregate them.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What each user runs.
    blocks : iterable
        Values as the randomizer takes them, for example codes of shape (m,); read once,
        ``num_users`` in total.
    num_users : int
        Number of values, at least 1.
    entropy : Entropy
        Source of all randomness; the shuffler gets a stream of its own.
    arrangement : Arrangement
        How reports are shuffled; uniformly by default.
    sink : callable, optional
        Is handed the shuffled reports, and has to consume them all.
    scratch : str or path-like, optional
        Folder for scratch files, which hold randomized reports only and vanish with the process.
    on_progress : callable, optional
        Called with the stage, the users done and ``num_users``.

    Returns
    -------
    Counts or Sums
        Of the shuffled reports.

    Raises
    ------
    DataError
        If there are not ``num_users`` values.

    Notes
    -----
    Cost: one pass over the values and one over the reports; memory bounded by the shuffler's.
    """
    require_at_least("num_users", num_users, 1)
    report = on_progress or no_progress
    with ExitStack() as stack:
        shuffle: Stage | None = None
        num_randomized = 0
        for values in blocks:
            data = randomizer.randomize(values, entropy).data
            if shuffle is None:
                shuffle = stack.enter_context(
                    arrangement.stage(
                        dtype=data.dtype,
                        row_shape=data.shape[1:],
                        entropy=entropy.spawn(),
                        directory=scratch,
                    )
                )
            shuffle.add(data)
            num_randomized += len(data)
            report("randomizing", num_randomized, num_users)
        if shuffle is None or num_randomized != num_users:
            raise DataError(
                f"blocks held {num_randomized:,} values where num_users = {num_users:,} were "
                "expected: pass the number of users that there are"
            )
        analyst = _Analyst(randomizer, report, num_users)
        (sink or _drain)(analyst.read(shuffle))
        return analyst.aggregate()


class _Analyst:
    """Aggregates shuffled reports as they go by."""

    def __init__(self, randomizer: LocalRandomizer, report: Progress, num_users: int) -> None:
        self._randomizer = randomizer
        self._report = report
        self._num_users = num_users
        self._held: list[NDArray[Any]] = []
        self._held_bytes = 0
        self._aggregate: Aggregate | None = None

    def read(self, shuffled: Iterable[NDArray[Any]]) -> Iterator[Reports]:
        """Yield the blocks again as `Reports`, each of them aggregated once."""
        for data in shuffled:
            self._held.append(data)
            self._held_bytes += data.nbytes
            if self._held_bytes >= _BATCH_BYTES:
                self._take()
            yield Reports(data=data, fingerprint=self._randomizer.fingerprint)

    def aggregate(self) -> Aggregate:
        """Return the aggregate of all reports; there is at least one."""
        return self._take()

    def _take(self) -> Aggregate:
        """Add the reports that are held to the aggregate."""
        if self._held or self._aggregate is None:
            reports = Reports(
                data=self._held[0] if len(self._held) == 1 else np.concatenate(self._held),
                fingerprint=self._randomizer.fingerprint,
            )
            part: Any = self._randomizer.aggregate(reports)
            self._aggregate = part if self._aggregate is None else self._aggregate + part
            self._held, self._held_bytes = [], 0
            self._report("counting", self._aggregate.num_reports, self._num_users)
        return self._aggregate


def _drain(reports: Iterator[Reports]) -> None:
    """Consume a stream, keeping nothing."""
    for _ in reports:
        pass
