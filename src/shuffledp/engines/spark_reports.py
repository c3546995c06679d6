"""Reports as columns of Spark, and back: its integers have signs, and packed bits are bytes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.report_files import COLUMN, as_encoded, from_frame, to_frame
from shuffledp.collection.source.tables import Source
from shuffledp.core.errors import DataError
from shuffledp.core.lazy_polars import pl
from shuffledp.core.reports import Reports

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that are counted at a time; Spark hands out fewer.
ROWS_COUNTED: Final = 1 << 20

_WIDER: Final = {"UInt8": "Int16", "UInt16": "Int32", "UInt32": "Int64"}


def as_column(data: NDArray[Any], law: Any, labels: tuple[str, ...]) -> "pa.Array":
    """Return reports as a column of a type that Spark has: packed bits are bytes."""
    import pyarrow as pa

    if data.ndim == 2 and data.dtype == np.uint8:
        width = pa.binary(data.shape[1])
        packed = [None, pa.py_buffer(np.ascontiguousarray(data))]
        return pa.FixedSizeBinaryArray.from_buffers(width, len(data), packed).cast(pa.binary())
    reports = Reports(data=data, fingerprint=law.fingerprint)
    series = to_frame(reports, labels=labels if law.name == "k-rr" else None)[COLUMN]
    if isinstance(series.dtype, pl.Enum):
        series = series.cast(pl.String)
    elif series.dtype == pl.UInt64:
        series = series.cast(pl.Decimal(20, 0))
    elif name := _WIDER.get(str(series.dtype)):
        series = series.cast(getattr(pl, name))
    found = series.to_arrow()
    if isinstance(series.dtype, pl.Array):
        return found.cast(pa.list_(found.type.value_type))
    return found.cast(pa.string()) if series.dtype == pl.String else found


def repeated(table: "pa.Table", question: Any, law: Any) -> Iterator[Reports]:
    """Yield the reports of rows, each as often as a column of counts says if there is one."""
    found = reports_of(table.select([COLUMN]), question, law)
    if table.num_columns == 1:
        yield found
        return
    left: Any = table.column(1).to_numpy().copy()
    while left.any():
        most: Any = max(1, ROWS_COUNTED // np.count_nonzero(left))
        now = np.minimum(left, most)
        yield Reports(data=np.repeat(found.data, now, axis=0), fingerprint=law.fingerprint)
        left -= now


def reports_of(table: "pa.Table", question: Any, law: Any) -> Reports:
    """Return the reports of rows of Spark, in whichever of its types they came."""
    frame: Any = pl.from_arrow(table)
    (dtype,) = frame.dtypes
    fingerprint = law.fingerprint
    if dtype == pl.Binary:
        width = law.num_report_bytes
        rows = frame[COLUMN]
        if rows.null_count() or not (rows.bin.size() == width).all():
            raise DataError(
                f"column {COLUMN!r} has rows that are no {width} bytes, as the plan's randomizer "
                "makes them: was another domain planned?"
            )
        data = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width)
        return Reports(data=data, fingerprint=fingerprint)
    encoded = as_encoded(Source(frame.lazy(), (COLUMN,), "the frame"), question, law)
    return from_frame(frame.select(encoded), fingerprint=fingerprint)
