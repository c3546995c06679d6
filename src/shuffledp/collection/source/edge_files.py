"""Files of two columns: edges between people, or groups and their members.

Text files have many dialects: commas, tabs, semicolons or spaces; with a header or without; with
comments that start with ``#`` or ``%``. All of them are converted to one form first.
"""

import io
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.labels import NOBODY, label_expression, label_of, label_series
from shuffledp.core.lazy import pl

_EMPTY_LINE = re.compile(rb"(?m)^[ \t]*([#%].*)?(\n|\Z)")


def read_two_columns(path: str | PathLike[str]) -> "pl.DataFrame":
    """Read a file of two columns as text, a header line included, without spaces around it."""
    location = Path(path)
    with tables.reading(location.name):
        if location.suffix.lower() in tables.PARQUET:
            frame = tables.scan(location)
            types = frame.collect_schema()
            table = frame.select(label_expression(name, types[name]) for name in types).collect()
        else:
            table = _texts(location).select(pl.all().map_batches(label_series))
    if table.width != 2:
        raise DataError(
            f"{location.name} has {table.width} column{'s' * (table.width != 1)}: keep the two "
            "that name the ends of an edge, or group and member"
        )
    table.columns = ["first", "second"]
    is_short = table.select(pl.any_horizontal(pl.all().fill_null("") == "")).to_series()
    if is_short.any():
        row = is_short.arg_true()[0] + 1
        raise DataError(
            f"line {row:,} of {location.name}, without comments, has only one field: give two"
        )
    return table


def _texts(location: Path) -> "pl.DataFrame":
    """Return all columns of a text file, which may be compressed, as text."""
    content = tables.text_bytes(location)
    data = location.read_bytes() if content is None else content
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    data = _EMPTY_LINE.sub(b"", data)
    if not data:
        raise DataError(f"{location.name} is empty: give two fields a line")
    first_line = data.partition(b"\n")[0]
    separator = next((mark for mark in (b",", b"\t", b";") if mark in first_line), b" ")
    if separator == b" ":
        data = b"\n".join(b" ".join(line.split()) for line in data.splitlines())
    return pl.read_csv(
        io.BytesIO(data), separator=separator.decode(), has_header=False, infer_schema=False
    )


def numbers_of(
    labels: "pl.Series", ids: Sequence[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the number for each label (-1 if there is none), and a mask of labels with one.

    Without ``ids`` labels are the numbers; 01 is refused, as it may differ from 1.
    """
    if ids is None:
        found = labels.cast(pl.Int64, strict=False)
        found = found.set(found.cast(pl.String) != labels, None)
    else:
        names = pl.Series([label_of(label) for label in ids], dtype=pl.String)
        if names.n_unique() < len(names):
            raise ParameterError("ids holds a label twice: give every person one of their own")
        found = labels.replace_strict(names, np.arange(len(names)), default=None)
    return found.fill_null(-1).to_numpy(), found.is_not_null().to_numpy()


def num_header_lines(table: "pl.DataFrame", origin: str, *, names_nobody: bool) -> int:
    """Return 1 if the first line is a header: it names nobody, and no field of it occurs again."""
    if not names_nobody or any((column == column[0]).sum() > 1 for column in table):
        return 0
    if table.height == 1:
        raise DataError(
            f"{origin} has one line, {table[0, 0]!r} and {table[0, 1]!r}: nothing follows it"
        )
    return 1


def require_named(labels: "pl.Series", origin: str) -> None:
    """Raise for texts that mean "no name": all people without a name would become one person."""
    nobody = labels.filter(labels.is_in(list(NOBODY)))
    if len(nobody):
        raise DataError(
            f"{len(nobody):,} of {len(labels):,} rows of {origin} have {nobody[0]!r} for a name, "
            "which usually stands for a missing one: leave such rows out, or spell the name out"
        )


def unknown_label(
    origin: str, label: str, *, num_rows: int, total: int, ids: Sequence[str] | None
) -> DataError:
    """Return the error for labels that stand for nobody, ``label`` being the first."""
    counted = f"{num_rows:,} of {total:,} rows of {origin}"
    if ids is None:
        return DataError(
            f"{counted} name somebody by what is no whole number, such as {label!r}: number people "
            "by their row, from 0, or say which column holds their identifiers, with id_column=..."
        )
    return DataError(
        f"{counted} name somebody who is not in the survey, such as {label!r}: look for another "
        "spelling, or leave such rows out"
    )


def read_edges(path: str | PathLike[str], ids: Sequence[str] | None = None) -> NDArray[np.int64]:
    """Read an edge list: the numbers of two people a line, shape (m, 2), in file order.

    Without ``ids`` people are named by their number from 0, and may be outside of the survey, which
    `Groups.from_graph` refuses. Memory: the file, and some 50 bytes an edge.
    """
    table = read_two_columns(path)
    columns = [numbers_of(table[name], ids) for name in ("first", "second")]
    edges = np.stack([numbers for numbers, _ in columns], axis=1)
    is_known = np.stack([known for _, known in columns], axis=1)
    origin = Path(path).name
    start = num_header_lines(table, origin, names_nobody=not is_known[0].any())
    is_whole = is_known[start:].all(axis=1)
    if not is_whole.all():
        row = start + int(np.argmin(is_whole))
        label = table[row, int(np.argmin(is_known[row]))]
        num_rows = int(np.count_nonzero(~is_whole))
        raise unknown_label(origin, label, num_rows=num_rows, total=is_whole.size, ids=ids)
    return edges[start:]


def read_ids(path: str | PathLike[str], column: str, **ways: Any) -> list[str]:
    """Read the name of each person in edge lists and groups: one label a row, all different.

    ``ways`` of reading: see `tables.open_source`.
    """
    source = tables.open_source(path, column, **ways)
    where = source.where
    with tables.reading(source.origin):
        labels = source.frame.select(source.label()).collect().to_series()
    if labels.is_empty():
        raise DataError(f"{where} has no rows: give one row a person")
    missing = (labels.is_null() | labels.is_in([*NOBODY, *source.declared])).arg_true()
    if len(missing):
        raise DataError(
            f"row {missing[0] + 1:,} of {where} has no identifier ({len(missing):,} rows lack "
            "one): fill it in, or leave the row out"
        )
    if labels.n_unique() < len(labels):
        twice = labels.filter(labels.is_duplicated())[0]
        rows = (labels == twice).arg_true()
        raise DataError(
            f"rows {rows[0] + 1:,} and {rows[1] + 1:,} of {where} hold one identifier {twice!r}: "
            "leave one row a person"
        )
    return [str(text) for text in labels]
