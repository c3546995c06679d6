"""Reports as tables: Parquet files, and frames that any reader of Arrow understands.

A table has one column ``report``. k-RR's holds labels of the domain; other integers and vectors
stand as they are, and packed bits as lists of bytes, bit ``i`` (little-endian within a byte)
standing for answer ``i``. The law that made the reports is named in the file, so that counting
them with another is refused.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp._version import __version__
from shuffledp.collection.output import writing
from shuffledp.collection.plan import Plan
from shuffledp.collection.source import tables
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.labels import present
from shuffledp.core.lazy_polars import pl
from shuffledp.core.reports import Reports
from shuffledp.randomizers.base import LocalRandomizer

COLUMN = "report"
_METADATA_KEY = "shuffledp"
_ROWS_A_BLOCK = 1 << 18


def to_frame(reports: Reports, *, labels: tuple[str, ...] | None = None) -> "pl.DataFrame":
    """Return reports as a frame with one column, ``report``; codes by their ``labels`` if given."""
    data = np.asarray(reports.data)
    if labels is not None and data.ndim == 1:
        names = pl.Series(COLUMN, list(labels), dtype=pl.Enum(list(labels)))
        return names.gather(data).to_frame()
    if data.ndim == 1:
        return pl.Series(COLUMN, data).to_frame()
    inner = pl.Series(data[:0].reshape(-1)).dtype
    return pl.Series(COLUMN, data, dtype=pl.Array(inner, data.shape[1])).to_frame()


def from_frame(frame: Any, *, fingerprint: str) -> Reports:
    """Return the reports in a frame that `to_frame` made, or in any Arrow table like it."""
    table = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    if COLUMN not in table.columns:
        raise DataError(
            f"the table has no column {COLUMN!r} (its columns: {', '.join(table.columns)})"
        )
    column = table.get_column(COLUMN)
    if count := column.null_count():
        raise DataError(
            f"column {COLUMN!r} has {count} rows without a report, or with one that the plan's "
            "randomizer never makes: pass missing='drop' to leave empty rows out"
        )
    if isinstance(column.dtype, pl.Enum):
        codes = column.to_physical().to_numpy()
        smallest = np.min_scalar_type(max(len(column.dtype.categories) - 1, 0))
        return Reports(data=codes.astype(smallest), fingerprint=fingerprint)
    return Reports(data=np.ascontiguousarray(column.to_numpy()), fingerprint=fingerprint)


def write_reports(
    path: str | PathLike[str],
    stream: Iterable[Reports],
    randomizer: LocalRandomizer,
    *,
    labels: tuple[str, ...] | None = None,
    beside: Callable[[int, int], "pl.DataFrame"] | None = None,
    collected_by: str = "devices",
    num_users: int | None = None,
) -> None:
    """Write a stream of reports to a Parquet file, in memory bounded by a block.

    Parameters
    ----------
    path : path
        The file; replaced if it exists.
    stream : iterable of Reports
        At least one block.
    randomizer : LocalRandomizer
        What made them; its fingerprint is written, too.
    labels : tuple of str, optional
        Names of the codes, for randomizers whose report is a code (k-RR).
    beside : callable, optional
        Given the numbers of a first row and of the row after the last, the columns to put before
        the reports there; asked once the first block has been read.
    collected_by : {"devices", "table", "simulation"}
        Where true answers were randomized, for who reads the file.
    num_users : int, optional
        How many of the reports are users', where there are dummies among them.

    Raises
    ------
    DataError
        If there is no block.
    OutputError
        If the file cannot be written.
    """
    from polars.io.plugins import register_io_source

    def frames() -> "Iterator[pl.DataFrame]":
        row = 0
        for reports in stream:
            frame = to_frame(reports, labels=labels)
            yield frame if beside is None else beside(row, row + frame.height).hstack(frame)
            row += frame.height

    made = frames()
    first = next(made, None)
    if first is None:
        raise DataError("there are no reports to write: randomize at least one value")
    facts = {
        "fingerprint": randomizer.fingerprint,
        "randomizer": randomizer.name,
        "law": repr(randomizer),
        "collected_by": collected_by,
        "shuffledp_version": __version__,
        **({} if num_users is None else {"num_users": num_users}),
    }
    with writing(Path(path)):
        source = register_io_source(lambda *_: chain([first], made), schema=first.schema)
        source.sink_parquet(Path(path), metadata={_METADATA_KEY: json.dumps(facts)})


def reports_writer(path: Path, plan: Plan, **how: Any) -> Callable[[Iterator[Reports]], None]:
    """Return a sink of shuffled reports that writes them to a Parquet file."""
    randomizer = plan.randomizer
    labels = plan.question.labels if randomizer.name == "k-rr" else None

    return lambda stream: write_reports(path, stream, randomizer, labels=labels, **how)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFile:
    """A Parquet file of reports, and the law that made them. Made by `open_reports`."""

    path: Path
    fingerprint: str
    collected_by: str = "devices"
    #: How many of the reports are users', where the file tells since there are dummies.
    num_users: int | None = None
    _frame: "pl.LazyFrame" = field(repr=False)

    def blocks(self) -> Iterator[Reports]:
        """Yield the reports in the file's order, block by block."""
        with tables.reading(self.path.name):
            for batch in self._frame.collect_batches(chunk_size=_ROWS_A_BLOCK):
                yield from_frame(batch, fingerprint=self.fingerprint)


def open_reports(
    path: str | PathLike[str], *, plan: Plan | None = None, missing: str = "error", **ways: Any
) -> ReportFile:
    """Open a file of reports, to be aggregated block by block.

    Parameters
    ----------
    path : path
        A Parquet file of `write_reports` or ``shuffledp run --save-reports``. With a plan also one
        made elsewhere, or text (``.csv``, ``.tsv``), with a column ``report``: labels of the domain
        for k-RR, otherwise numbers as the randomizer encodes them; packed bits and vectors are
        lists, in Parquet only.
    plan : Plan, optional
        What the reports were made under, where the file does not say so.
    missing : {"error", "drop"}
        What to do with rows without a report.
    csv_separator, header, missing_texts : optional
        How text is read, as for `open_column`.

    Returns
    -------
    ReportFile
        Whose ``blocks()`` stream the reports.

    Raises
    ------
    DataError
        If it is no such file.
    """
    tables.require_missing(missing, unless="reports")
    location = Path(path)
    fingerprint, by, num_users = None, "devices", None
    source = tables.open_source(location, COLUMN, **ways)
    frame, labels = source.frame, () if plan is None else plan.question.labels
    with tables.reading(location.name):
        if not tables.is_text_table(location):
            facts = pl.read_parquet_metadata(location).get(_METADATA_KEY, "")
            with suppress(ValueError, KeyError, TypeError):
                fingerprint = str(json.loads(facts)["fingerprint"])
                by = str(json.loads(facts).get("collected_by", by))
                num_users = int(json.loads(facts)["num_users"])
        if missing == "drop":
            held = pl.col(COLUMN)
            if source.dtypes[0] == pl.String:
                held = present(source.label(), source.missing_texts(labels))
            frame = frame.filter(held.is_not_null())
    if fingerprint is None:
        if plan is None:
            raise DataError(
                f"{location.name} does not say which law made its reports: it was not written by "
                "shuffledp run --save-reports or write_reports; pass the plan"
            )
        frame = frame.with_columns(_as_encoded(source, plan))
        fingerprint = plan.randomizer.fingerprint
    how: Any = {"collected_by": by, "num_users": num_users}
    return ReportFile(path=location, fingerprint=fingerprint, _frame=frame, **how)


def _as_encoded(source: tables.Source, plan: Plan) -> "pl.Expr":
    """Return the reports of another program as this one encodes them; others become null."""
    if plan.randomizer.name == "k-rr":
        return source.label().cast(pl.Enum(list(plan.question.labels)), strict=False)
    nobody = plan.question.no_values
    drawn = to_frame(plan.randomizer.randomize(nobody, Entropy.from_seed(0)))
    column = source.label() if source.dtypes[0] == pl.String else pl.col(COLUMN)
    return column.cast(drawn.schema[COLUMN], strict=False)
