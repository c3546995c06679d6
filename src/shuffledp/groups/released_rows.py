"""The released table: public columns as they were, and beside them reports in their new places."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.collection.output import ROWS_STEM, harmless_text, writing
from shuffledp.collection.plan import Plan
from shuffledp.collection.report_files import COLUMN, to_frame
from shuffledp.collection.source.tables import reading, require_column, scan
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import Reports

if TYPE_CHECKING:
    import polars as pl


def rows_writer(
    table: str | PathLike[str],
    folder: Path,
    *,
    column: str,
    public: tuple[str, ...],
    setting: Plan,
) -> Callable[[Iterator[Reports]], None]:
    """Return a function that writes reports beside the public columns of their rows.

    Parameters
    ----------
    table : path
        The survey that was read.
    folder : Path
        Where to write ``rows.csv`` or ``rows.parquet``: the table's own format, but Parquet where
        a report is a list.
    column : str
        Name of the answers' column, which the reports take.
    public : tuple of str
        Columns to keep. Nothing else of the table is written.
    setting : Plan
        What was run.

    Returns
    -------
    callable
        Takes an iterable of `Reports`, in the order of the rows, and consumes it.

    Raises
    ------
    ParameterError
        If ``public`` names the answers' column, which would publish them as they are.
    DataError
        If the table lacks a column.
    """
    import polars as pl

    path = Path(table)
    if column in public:
        raise ParameterError(
            f"keep = {column!r} is the column of answers, which is private: name public columns "
            "only"
        )
    with reading(path.name):
        frame = scan(path)
        names = frame.collect_schema().names()
        for name in public:
            require_column(name, names, path)
    labels = setting.question.labels if setting.randomizer.name == "k-rr" else None

    def write(stream: Iterator[Reports]) -> None:
        reports = pl.concat([to_frame(each, labels=labels) for each in stream])
        rows = reports.rename({COLUMN: column})
        if public:
            with reading(path.name):
                kept = frame.select(public).collect()
            if kept.height != rows.height:
                raise DataError(
                    f"{path.name} changed while it was being read: run again when nothing writes "
                    "to it"
                )
            rows = kept.hstack(rows)
        _write(rows, folder, path)

    return write


def _write(frame: "pl.DataFrame", folder: Path, table: Path) -> None:
    """Write a frame in the format of the table that it comes from, if that can hold it."""
    import polars as pl

    is_parquet = table.suffix.lower() in {".parquet", ".pq"} or frame.dtypes[-1].is_nested()
    with writing(folder):
        if is_parquet:
            frame.write_parquet(folder / f"{ROWS_STEM}.parquet")
        else:
            texts = pl.selectors.string() | pl.selectors.enum()
            frame.with_columns(harmless_text(texts)).write_csv(folder / f"{ROWS_STEM}.csv")
