"""The cells of a file that holds a channel matrix: labels and entries, as the file has them.

What the first row and the first column of a text file are is told by rules that never take
probabilities for labels: a row that were left out as a header would make the channel look more
private than it is.
"""

import csv
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.channel_rows import MOST_CELLS, MOST_INPUTS, SUM_TOLERANCE
from shuffledp.collection.source.labels import label_of
from shuffledp.collection.source.reading import reading
from shuffledp.core.errors import DataError

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_KEYS = ("inputs", "outputs", "matrix")

# A whole number is kept apart, since it may be a label too. Bounded, so that no text is dear to
# read: exponents of up to three digits, and no entry of more than 400 characters.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?|[+-]?\d+\s*/\s*\d+")
_LIKE_A_NUMBER = re.compile(r"|[+-]?(nan|inf|infinity)|[+-]?[\d.].*", re.IGNORECASE)
_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """What a file holds, not checked yet.

    Parameters
    ----------
    inputs, outputs : tuple of str, or None
        Labels of rows and columns, where the file has them.
    rows : sequence of lists of str, or (k, m) array of doubles
        Entries; text as it stands in the file. At least one row, all of one length >= 1.
    """

    inputs: tuple[str, ...] | None
    outputs: tuple[str, ...] | None
    rows: Sequence[list[str]] | NDArray[np.float64]


def read_cells(path: Path) -> Cells:
    """Read a file by the end of its name; see `open_channel`.

    Raises
    ------
    DataError
        If it cannot be read, is empty, ragged or too large.
    """
    if not path.is_file():
        reason = "it is a folder" if path.is_dir() else "there is no such file"
        raise DataError(f"cannot read {path}: {reason}")
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _from_json(path)
    if suffix == ".npy":
        return _from_npy(path)
    if suffix in _PARQUET:
        return _from_parquet(path)
    if suffix in _SEPARATORS:
        return _from_table(path, _SEPARATORS[suffix])
    known = ", ".join((*_SEPARATORS, ".json", ".npy", *_PARQUET))
    raise DataError(f"cannot read {path}: its name ends in none of {known}; convert or rename it")


def parse_entry(text: object) -> Fraction | None:
    """Return the exact number that a cell holds, or None if it holds none.

    Examples
    --------
    >>> parse_entry("1/3"), parse_entry("2.5e-1"), parse_entry("nan")
    (Fraction(1, 3), Fraction(1, 4), None)
    """
    if not isinstance(text, str) or len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    with suppress(ZeroDivisionError):
        return Fraction(text.replace(" ", ""))
    return None


def require_size(num_inputs: int, num_outputs: int, origin: str) -> None:
    """Raise unless there is a matrix, and it is not too large."""
    if num_inputs == 0 or num_outputs == 0:
        raise DataError(f"{origin} is empty: give a row for each input, a column for each output")
    if num_inputs > MOST_INPUTS or num_inputs * num_outputs > MOST_CELLS:
        raise DataError(
            f"{origin} holds {num_inputs} by {num_outputs} entries, which is too large: at most "
            f"{MOST_INPUTS} inputs and {MOST_CELLS:.0e} entries"
        )


def _from_table(path: Path, separator: str) -> Cells:
    """Read CSV or TSV."""
    grid: list[list[str]] = []
    num_cells = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file, delimiter=separator, strict=True):
                if row:  # csv gives an empty list for an empty line
                    grid.append([cell.strip() for cell in row])
                    num_cells += len(row)
                if len(grid) > MOST_INPUTS + 1 or num_cells > 2 * MOST_CELLS:
                    require_size(len(grid), max(num_cells // len(grid), 1), path.name)
    except UnicodeDecodeError:
        raise DataError(f"cannot read {path.name}: it is not text in UTF-8") from None
    except (csv.Error, OSError) as error:
        raise DataError(f"cannot read {path.name}: {error}") from None
    if not grid:
        raise DataError(f"{path.name} is empty: give a row for each input")
    return _cells_of(grid, path.name)


def _cells_of(grid: list[list[str]], origin: str) -> Cells:
    """Tell labels from entries."""
    header = grid[0] if _is_header(grid[0]) else None
    body = grid[1:] if header is not None else grid
    _require_rectangle(body, origin)
    has_labels = _has_labels(header, body)
    inputs = tuple(row[0] for row in body) if has_labels else None
    rows = [row[1:] for row in body] if has_labels else body
    require_size(len(rows), len(rows[0]), origin)
    outputs = None
    if header is not None:
        # The corner above the labels may be left out altogether.
        outputs = tuple(header[1:] if has_labels and len(header) > len(rows[0]) else header)
        if len(outputs) != len(rows[0]):
            raise DataError(
                f"{origin} names {len(outputs)} outputs and has {len(rows[0])} columns of entries: "
                "one name for each"
            )
    return Cells(inputs=inputs, outputs=outputs, rows=rows)


def _is_header(row: list[str]) -> bool:
    """Tell whether the first row names outputs: it does if it cannot be one of probabilities."""
    if all(not _LIKE_A_NUMBER.fullmatch(cell) for cell in row[1:] or row):
        return True
    named = row[1:] if parse_entry(row[0]) is None else row
    if not all(cell.isdecimal() for cell in named) or len(set(named)) < len(named):
        return False
    return row[0] == "" or sum(int(cell) for cell in named) != 1


def _has_labels(header: list[str] | None, body: list[list[str]]) -> bool:
    """Tell whether the first column names inputs."""
    if any(not _LIKE_A_NUMBER.fullmatch(row[0]) for row in body):
        return True
    if header is not None and (header[0] == "" or len(header) == len(body[0]) - 1):
        return True
    return _sum_to_one([row[1:] for row in body]) and not _sum_to_one(body)


def _sum_to_one(rows: list[list[str]]) -> bool:
    """Tell whether all rows are numbers with a sum of 1."""
    for row in rows:
        entries = [parse_entry(cell) for cell in row]
        if None in entries or not entries:
            return False
        total = sum((entry for entry in entries if entry is not None), Fraction(0))
        if abs(float(total - 1)) > SUM_TOLERANCE:
            return False
    return True


def _require_rectangle(rows: Sequence[Sequence[object]], origin: str) -> None:
    """Raise unless all rows are of one length, and there are any."""
    require_size(len(rows), len(rows[0]) if rows else 0, origin)
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                f"row {number + 1} of the matrix in {origin} has {len(row)} cells and the first "
                f"has {len(rows[0])}: give every row one cell for each output"
            )


def _from_json(path: Path) -> Cells:
    """Read JSON; numbers keep their digits."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            content = json.load(file, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"cannot read {path.name}: it is no JSON ({reason})") from None
    if not isinstance(content, dict):
        content = {"matrix": content}
    unknown = [key for key in content if key not in _KEYS]
    if unknown or "matrix" not in content:
        found = f"has {unknown[0]!r}" if unknown else "has no matrix"
        raise DataError(f'{path.name} {found}: give {{"matrix": [[...]]}}, "inputs" and "outputs"')
    rows = content["matrix"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise DataError(f"the matrix in {path.name} is no list of rows: give [[...], [...]]")
    _require_rectangle(rows, path.name)
    labels = [_json_labels(content.get(key), key, path.name) for key in ("inputs", "outputs")]
    return Cells(inputs=labels[0], outputs=labels[1], rows=rows)


def _json_labels(values: object, key: str, origin: str) -> tuple[str, ...] | None:
    """Return the labels of a JSON file."""
    if values is None:
        return None
    if not isinstance(values, list):
        raise DataError(f"{key} of {origin} is no list: name each")
    return tuple(label_of(value) for value in values)


def _from_npy(path: Path) -> Cells:
    """Read a NumPy array, mapped so that its size is known before it is read."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise DataError(f"cannot read {path.name}: it is no array as NumPy saves them") from None
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(
            f"{path.name} is an array of shape {array.shape} and type {array.dtype}: give a "
            "two-dimensional one of floats"
        )
    require_size(array.shape[0], array.shape[1], path.name)
    return Cells(inputs=None, outputs=None, rows=np.array(array, dtype=np.float64))


def _from_parquet(path: Path) -> Cells:
    """Read Parquet: a column for each output, and before them one of labels if it is text."""
    import polars as pl

    with reading(path.name):
        lazy = pl.scan_parquet(path, glob=False)
        schema = lazy.collect_schema()
        num_rows = int(lazy.select(pl.len()).collect().item())
        require_size(num_rows, len(schema), path.name)
        frame = lazy.collect()
    inputs = None
    if schema.dtypes()[0] == pl.String:
        inputs = tuple(str(label) for label in frame.to_series(0).to_list())
        frame = frame[:, 1:]
        require_size(num_rows, frame.width, path.name)
    for name, dtype in frame.schema.items():
        if not dtype.is_numeric():
            raise DataError(
                f"column {name!r} of {path.name} is of type {dtype}: give numbers, and labels of "
                "inputs in the first column only"
            )
    rows = frame.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Cells(inputs=inputs, outputs=tuple(frame.columns), rows=rows)
