"""Counting reports: piece by piece, in this process or in the workers of an engine.

Partial aggregates add up, so that a result does not depend on which worker counted which piece.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.progress import Progress
from shuffledp.core.reports import Aggregate, Reports
from shuffledp.randomizers.base import LocalRandomizer

Engine: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""An ordered `map`: the builtin, ``Processes.map``, or ``shuffledp.spark.Workers.map``.

Functions and items are picklable, so that they can go to another process.
"""

# Reports are aggregated in batches of about this size: with hashed reports each batch costs a
# transform as long as the domain, too much for a handful of reports.
BATCH_BYTES = 1 << 23


def require_of_law(randomizer: LocalRandomizer, reports: Any) -> Reports:
    """Return reports; raise unless the randomizer of the plan made them."""
    if not isinstance(reports, Reports):
        raise DataError(f"reports holds a {type(reports).__name__}: give a file, or Reports")
    if reports.fingerprint != randomizer.fingerprint:
        raise ParameterError(
            f"another law than the plan's made these reports: {reports.fingerprint!r}"
        )
    return reports


def in_batches(randomizer: LocalRandomizer, blocks: Iterable[Any]) -> Iterator[Reports]:
    """Yield blocks of reports joined to batches that are large enough to be counted."""

    def joined() -> Reports:
        data = held[0] if len(held) == 1 else np.concatenate(held)
        return Reports(data=data, fingerprint=randomizer.fingerprint)

    held: list[NDArray[Any]] = []
    for block in blocks:
        held.append(require_of_law(randomizer, block).data)
        if sum(each.nbytes for each in held) >= BATCH_BYTES:
            yield joined()
            held = []
    if held:
        yield joined()


def count_piece(randomizer: LocalRandomizer, piece: Any) -> Aggregate | None:
    """Return the aggregate of a piece, `Reports` or a file of them; None if it is empty."""
    if isinstance(piece, Reports):
        return randomizer.aggregate(piece)
    found: Aggregate | None = added_up(
        map(randomizer.aggregate, in_batches(randomizer, piece.blocks()))
    )
    return found


def added_up(parts: Iterable[Any], on_part: Callable[[Any], None] = lambda _: None) -> Any:
    """Return the sum of partial aggregates, None if nothing was reported."""
    found: Any = None
    for part in parts:
        if part is not None and part.num_reports:
            found = part if found is None else found + part
            on_part(found)
    return found


def count_all(
    randomizer: LocalRandomizer,
    reports: Any,
    engine: Engine = map,
    *,
    report: Progress,
    num_users: int,
) -> Any:
    """Return the aggregate of `Reports`, files, or a stream of blocks; None if there are none."""
    if hasattr(reports, "pieces"):
        pieces = reports.pieces()
    else:
        is_stream = np.iterable(reports) and not isinstance(reports, Reports)
        pieces = in_batches(randomizer, reports if is_stream else [reports])

    def tell(found: Any) -> None:
        report("counting", found.num_reports, num_users)

    return added_up(engine(partial(count_piece, randomizer), pieces), tell)


class Tally:
    """Counts reports on their way to a file."""

    def __init__(self, randomizer: LocalRandomizer, report: Progress, num_users: int) -> None:
        self._randomizer, self._report, self._num_users = randomizer, report, num_users
        #: The aggregate of all reports, once all have passed.
        self.found: Any = None

    def of(self, stream: Iterable[Reports]) -> Iterator[Reports]:
        """Yield the reports in batches, once they are counted."""
        for batch in in_batches(self._randomizer, stream):
            part: Any = self._randomizer.aggregate(batch)
            self.found = part if self.found is None else self.found + part
            self._report("counting", self.found.num_reports, self._num_users)
            yield batch
