"""Reports of Apache Spark are counted where they lie, and partial counts add up."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from shuffledp.collection.counting import Batches, added_up
from shuffledp.collection.plan import Plan
from shuffledp.collection.report_files import COLUMN, as_encoded, from_frame
from shuffledp.collection.source.tables import Source, require_users
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.lazy_polars import pl
from shuffledp.core.reports import Counts, Reports, Sums
from shuffledp.engines.spark_sessions import session_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# Rows that are counted at a time; Spark hands out fewer.
_ROWS_COUNTED: Final = 1 << 20

# Reports of at most so many bytes are 65,536 different ones or fewer.
_FEW_BYTES: Final = 2


def counted(frame: "DataFrame", plan: Plan[Any]) -> Any:
    """Return the aggregate of the reports in a frame."""
    from pyspark.sql import functions as F  # noqa: N812  # as Spark's own pages call it

    context = session_of(frame).sparkContext
    if COLUMN not in frame.columns:
        shown = ", ".join(frame.columns)
        raise DataError(f"the frame has no column {COLUMN!r} (its columns: {shown}): rename one")
    terms = context.broadcast((plan.question, plan.randomizer))
    reports = frame.select(COLUMN)
    if plan.randomizer.num_report_bytes <= _FEW_BYTES:  # Spark counts equal ones
        reports = reports.groupBy(COLUMN).count()
    parts = reports.mapInArrow(partial(_count, terms), _COUNTS)
    sums = [F.sum(name).alias(name) for name in ("support", "total", "squares")]
    found = parts.groupBy("place").agg(*sums).toArrow()
    place, support, total, squares = (column.to_numpy() for column in found.columns)
    law = plan.randomizer
    empty: Any = law.aggregate(law.randomize(plan.question.no_values, Entropy.from_seed(0)))
    num_reports = int(support[place < 0].sum())
    require_users(num_reports, f"there are {num_reports} reports")
    held, place = place >= 0, place[place >= 0]
    whole = Counts if isinstance(empty, Counts) else Sums

    def filled(like: Any, values: Any) -> Any:
        out = np.zeros_like(like)
        out[place] = values[held]
        return out

    how: Any = {"num_reports": num_reports, "fingerprint": law.fingerprint}
    if whole is Counts:
        slots = empty.supports_per_report
        return Counts(support=filled(empty.support, support), supports_per_report=slots, **how)
    sums_of = {"total": filled(empty.total, total)}
    return Sums(**sums_of, total_of_squares=filled(empty.total, squares), **how)


_COUNTS: Final = "place bigint, support bigint, total double, squares double"


def _count(terms: Any, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Yield the counts of a task's reports that are not 0, and in place -1 how many there are."""
    import pyarrow as pa

    question, law = terms.value

    def blocks() -> Iterator[Reports]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= _ROWS_COUNTED:
                yield from _repeated(pa.Table.from_batches(held), question, law)
                held = []
        if held:
            yield from _repeated(pa.Table.from_batches(held), question, law)

    found = added_up(map(law.aggregate, Batches(law).of(blocks())))
    if found is None:
        return
    if isinstance(found, Counts):
        place = np.flatnonzero(found.support)
        columns = [found.support[place], np.zeros(place.size), np.zeros(place.size)]
    else:
        place = np.arange(found.total.size)
        columns = [np.zeros(place.size, np.int64), found.total, found.total_of_squares]
    number: list[Any] = [[found.num_reports], [0.0], [0.0]]
    rows = [np.append(column, extra) for column, extra in zip(columns, number, strict=True)]
    names = ["place", "support", "total", "squares"]
    yield pa.RecordBatch.from_arrays(
        [pa.array(each) for each in (np.append(place, -1), *rows)], names
    )


def _repeated(table: "pa.Table", question: Any, law: Any) -> Iterator[Reports]:
    """Yield the reports of rows, each as often as a column of counts says if there is one."""
    found = _reports_of(table.select([COLUMN]), question, law)
    if table.num_columns == 1:
        yield found
        return
    left: Any = table.column(1).to_numpy().copy()
    while left.any():
        most: Any = max(1, _ROWS_COUNTED // np.count_nonzero(left))
        now = np.minimum(left, most)
        yield Reports(data=np.repeat(found.data, now, axis=0), fingerprint=law.fingerprint)
        left -= now


def _reports_of(table: "pa.Table", question: Any, law: Any) -> Reports:
    """Return the reports of rows of Spark, in whichever of its types they came."""
    frame: Any = pl.from_arrow(table)
    encoded = as_encoded(Source(frame.lazy(), (COLUMN,), "the frame"), question, law)
    return from_frame(frame.select(encoded), fingerprint=law.fingerprint)
