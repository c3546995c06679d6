"""Tables and their columns: common parts of the readers of all kinds of values.

A CSV file is read as text throughout, so that a label is exactly the text in the file ("01" stays
"01") and no guess from the first rows can fail on a later one.
"""

import csv
import difflib
import gzip
import io
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial, reduce
from itertools import islice
from operator import and_
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core import labels as spelt
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, EmptyRowsWarning, ParameterError
from shuffledp.core.files import require_file
from shuffledp.core.lazy import pl
from shuffledp.core.progress import Progress, no_progress

BLOCK_ROWS = 1 << 18
"""Rows of a block: fixed, so that a seeded simulation does not depend on the storage of a file."""

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
STANDARD_INPUT = "-"

# Possible separators of the fields of a text table, the most usual first.
_SEPARATORS = ",;\t|"

# Number of bytes from which text and its encoding are recognised.
_SAMPLE_BYTES = 1 << 16

#: Name of the column of weights when it is read with others.
WEIGHT = " weight"

MISSING_POLICIES = ("error", "drop", "category")


def require_missing(missing: str, *, unless: str = "") -> None:
    """Raise unless ``missing`` is a known policy; ``unless`` names values without a category."""
    if missing not in MISSING_POLICIES:
        raise ParameterError(f"missing = {missing!r} is not one of {', '.join(MISSING_POLICIES)}")
    if unless and missing == "category":
        raise ParameterError(
            f"missing = 'category' makes no sense for {unless}: choose error or drop"
        )


# ---------------------------------------------------------------- sources
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Treatment of values that are missing or do not fit; `open_column` documents each option."""

    missing: str = "error"
    other: bool = False
    clip: bool = False
    separator: str = ";"
    truncate: bool = False

    def __post_init__(self) -> None:
        require_missing(self.missing)


@dataclass(frozen=True, slots=True)
class Source:
    """Columns before their first pass: a lazy frame, names for messages, and the way of reading."""

    frame: "pl.LazyFrame"
    names: tuple[str, ...]
    origin: str
    separator: str | None = None  # None unless it is text
    decimal: str | None = None  # the decimal mark, if it was stated
    declared: tuple[str, ...] = ()  # further texts for "no answer"
    weight: str | None = None  # a column of public weights, one a row
    is_part: bool = False  # of more rows, so that it may be empty
    reading: Reading = Reading()
    report: Progress = no_progress

    @property
    def where(self) -> str:
        """Columns and their origin, for messages; only the origin for values without a name."""
        if self.names == (self.origin,):
            return self.origin
        names = ", ".join(map(repr, self.names))
        return f"column{'s' * (len(self.names) > 1)} {names} of {self.origin}"

    @property
    def dtypes(self) -> "tuple[pl.DataType, ...]":
        """The types of the columns."""
        schema = self.frame.collect_schema()
        return tuple(schema[name] for name in self.names)

    def missing_texts(self, listed: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the texts for "no answer", without texts that a domain lists."""
        if both := [text for text in self.declared if text in listed]:
            raise ParameterError(f"missing_texts has {both[0]!r}, which the domain lists: drop one")
        usual = (text for text in spelt.MISSING_TEXTS if text not in listed)
        return tuple(dict.fromkeys((*self.declared, *usual)))

    def numbers(self) -> "list[pl.Expr]":
        """Return the columns as numbers: NaN for a missing value, null for text that is no number.

        `DataError` for a file with an ambiguous decimal mark.
        """
        for name, dtype in zip(self.names, self.dtypes, strict=True):
            if not spelt.holds_numbers(dtype):
                what = "number: give 0 and 1" if dtype == pl.Boolean else "column of numbers"
                raise DataError(f"column {name!r} is of type {dtype}, which is no {what}")
        read = self.read_number()
        return [
            pl.col(name).map_batches(read, return_dtype=pl.Float64, is_elementwise=True)
            for name in self.names
        ]

    def weights(self) -> "dict[str, pl.Expr]":
        """Return the column of weights, if there is one, by the name of `WEIGHT`."""
        if self.weight is None:
            return {}
        return {WEIGHT: replace(self, names=(self.weight,)).numbers()[0]}

    def read_number(self) -> "Callable[[pl.Series], pl.Series]":
        """Return the function that reads one of the columns as numbers."""
        mark = self.decimal
        if mark is None and self.separator == ";":
            with reading(self.origin):
                mark = spelt.decimal_mark(self.frame, self.names, self.origin)
        missing, is_declared = self.missing_texts(), bool(self.declared)
        return partial(spelt.number_series, mark=mark, missing=missing, is_declared=is_declared)

    def label(self) -> "pl.Expr":
        """Return the only column, as labels."""
        return spelt.label_expression(self.names[0], self.dtypes[0])

    def batches(self, frame: "pl.LazyFrame", *, check: bool = False) -> "Iterator[pl.DataFrame]":
        """Yield the rows of a frame derived from this one; ``check`` parses whole rows.

        With it a CSV row with a stray comma is an error rather than a shifted answer.
        """
        pushdown = not (check and self.separator)
        with reading(self.origin):
            yield from frame.collect_batches(
                chunk_size=BLOCK_ROWS, optimizations=pl.QueryOptFlags(projection_pushdown=pushdown)
            )


def open_source(
    path: str | PathLike[str],
    *names: str,
    csv_separator: str | None = None,
    header: bool = True,
    decimal: str | None = None,
    missing_texts: Sequence[str] = (),
) -> Source:
    """Return columns of a file, of which only the header has been read."""
    if decimal not in (None, ".", ","):
        raise ParameterError(f"decimal = {decimal!r} is neither '.' nor ','")
    spelt.require_list("missing_texts", missing_texts)
    location, separator = Path(path), None
    origin = origin_of(location)
    with reading(origin):
        if is_text_table(location):
            frame, separator = open_text(location, csv_separator, header=header)
        else:
            frame = scan(location)
        for name in names:
            require_column(name, frame.collect_schema().names(), Path(origin))
    return Source(frame, names, origin, separator, decimal, tuple(map(spelt.formed, missing_texts)))


def source_of_values(name: str, values: Iterable[object]) -> Source:
    """Return values in memory as a column, named like the series if it has a name."""
    own = getattr(values, "name", None)
    name = own if isinstance(own, str) and own else name
    return Source(series_of(name, values).to_frame().lazy(), (name,), "values")


def source_of_vectors(values: Any, names: Sequence[str]) -> Source:
    """Return vectors in memory as columns; of a table whose columns have these names, by name."""
    own: Any = ()
    if hasattr(values, "shape"):  # lazy frames have none, and warn if they are asked for columns
        own = getattr(values, "column_names", getattr(values, "columns", ()))
    if not {*names}.isdisjoint(own):
        return source_of_columns(values, names)
    array = rows_of_numbers(values, names)
    frame = pl.DataFrame({name: array[:, place] for place, name in enumerate(names)}).lazy()
    return Source(frame, tuple(names), "values")


def source_of_columns(values: Any, names: Sequence[str]) -> Source:
    """Return columns in memory, by name in a mapping or a data frame."""
    found = {}
    for name in names:
        try:
            found[name] = series_of(name, values[name])
        except (KeyError, IndexError, TypeError, pl.exceptions.ColumnNotFoundError):
            raise DataError(
                f"values has no column {name!r}: give a data frame, or a dict with the values of "
                f"each of {', '.join(names)}"
            ) from None
    if len(lengths := {len(each) for each in found.values()}) > 1:
        raise DataError(f"the columns of values have {lengths} rows: give one row a user")
    return Source(pl.DataFrame(found).lazy(), tuple(names), "values")


# By kind of a NumPy type that would be converted in silence.
_NO_NUMBERS = {
    "b": "booleans, which are no numbers: give 0 and 1",
    "c": "complex: give the parts as components",
    **dict.fromkeys("mM", "times, which are no numbers: give them in a unit"),
}


# Types of NumPy and pandas that hold times, but no type of polars does.
_COARSE_TIMES = ("datetime64[s]", "datetime64[m]", "datetime64[h]")


def floats_in(what: str, values: Any) -> NDArray[np.float64]:
    """Return numbers in memory as an array, NaN where they are masked; raise for any others."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        given = np.asarray(values)
        refused = _NO_NUMBERS.get(given.dtype.kind)
        array = given if refused else given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{what} are not all numbers{value_note(str(error))}: convert them"
        ) from None
    if refused:
        raise DataError(f"{what} are {refused}")
    return array


def rows_of_numbers(values: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """Return vectors in memory as an array, one row a user."""
    array = floats_in("values", values)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DataError(
            f"values have shape {array.shape}: give one row of {len(names)} numbers a user"
        )
    return array


def source_of_sets(values: Iterable[Iterable[str | None] | None]) -> Source:
    """Return sets of answers in memory as a column, one list of text a user."""
    require_sequence("values", values)
    try:
        lists = [None if spelt.is_gap(value) else listed(value) for value in values]
        frame = pl.DataFrame({"answers": pl.Series(lists, dtype=pl.List(pl.String))})
    except (TypeError, pl.exceptions.PolarsError):
        raise DataError("values are not lists of text: give one list of answers a user") from None
    return Source(frame.lazy(), ("answers",), "values")


def listed(value: Any) -> list[str | None]:
    """Return the answers of one user."""
    if isinstance(value, str | bytes | Mapping):
        raise TypeError
    return list(value)


def rows_text(count: int) -> str:
    """Return ``"1 row"`` or ``"2 rows"``."""
    return f"{count:,} row" + "s" * (count != 1)


def changed(origin: str) -> DataError:
    """Return the error for data that differ from the first pass."""
    return DataError(
        f"{origin} changed while it was being read, or reading was interrupted: run again when "
        "nothing writes to it"
    )


def require_users(num_users: int, found: str) -> None:
    """Raise for fewer than two users, since one alone has no anonymity set."""
    if num_users < 2:
        raise DataError(
            f"{found}: a shuffled collection needs at least two users, and in practice thousands"
        )


# ---------------------------------------------------------------- files
# Texts in messages of polars, in lower case, and their meaning.
_NO_PARQUET = "it is no complete Parquet file (truncated, or another format)"
_READING_ERRORS = {
    "end with par1": _NO_PARQUET,
    "header and footer": _NO_PARQUET,
    "utf-8": "it is not text in UTF-8; save it as CSV in UTF-8, or convert it with iconv",
    "more fields": "a row has more fields than the header; quote values that contain the separator",
    "could not parse": (_UNCLOSED := "a row cannot be parsed; look for a lone quotation mark"),
    "csv malformed": _UNCLOSED,
}


@contextmanager
def reading(origin: str) -> Iterator[None]:
    """Turn errors of polars about a file into one `DataError` of one line."""
    try:
        yield
    except DataError as error:  # of ours, to which polars adds where it arose
        raise type(error)(str(error).splitlines()[0]) from None
    except pl.exceptions.NoDataError:
        raise DataError(f"{origin} is empty: it has not even a header line") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        text = str(error)
        known = (reason for mark, reason in _READING_ERRORS.items() if mark in text.lower())
        reason = next(known, (text.splitlines() or ["unknown error"])[0])
        raise DataError(f"cannot read {origin}: {reason}") from None
    except PermissionError:
        raise DataError(f"cannot read {origin}: permission denied") from None


def origin_of(path: Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if str(path) == STANDARD_INPUT else path.name


def scan(path: Path) -> "pl.LazyFrame":
    """Return a lazy frame over a Parquet file, of which only the header has been read."""
    require_file(path)
    if path.suffix.lower() in PARQUET:
        return pl.scan_parquet(path, glob=False)
    known = ", ".join((*TEXT, *PARQUET))
    raise DataError(f"cannot read {path}: its name ends in none of {known}; save it as one")


def open_text(
    path: Path, separator: str | None = None, *, header: bool = True
) -> "tuple[pl.LazyFrame, str]":
    """Return a CSV file as a lazy frame of text, and the separator of its fields.

    Without a header the columns are column_1, ...

    Files in UTF-16, compressed files and standard input are held in memory: their text is never
    written to a disk.
    """
    is_known = separator is None or (len(separator) == 1 and separator.isascii())
    if not is_known or separator in ('"', "\r", "\n"):
        raise ParameterError(f"csv_separator = {separator!r} is not one ASCII character, such as ;")
    origin, content = origin_of(path), text_bytes(path)
    if separator is None:
        is_tsv = path.name.lower().endswith((".tsv", ".tsv.gz"))
        separator = "\t" if is_tsv else max(_SEPARATORS, key=partial(_num_fields, path, content))
    names = next(_records(path, content, separator), [])
    if names and names[0].lower().startswith("sep="):
        raise DataError(f"{origin} begins with 'sep=', a line for spreadsheets alone: delete it")
    if _ends_empty(path, content, separator.encode()):
        warnings.warn(
            f"{origin} ends in a row of separators alone, as spreadsheets write them below a "
            "table: each such row counts as a user without an answer; delete it unless it is one",
            EmptyRowsWarning,
            stacklevel=2,
        )
    if header and (repeated := [name for name in names if names.count(name) > 1]):
        what = f"{origin} has two columns called {repeated[0]!r}"
        raise DataError(f"{what}: name each of them in the first line, above the values")
    frame = pl.scan_csv(
        path if content is None else io.BytesIO(content),
        separator=separator,
        has_header=header,
        with_column_names=None if header else _numbered,
        infer_schema=False,
        glob=False,
    )
    # In a single column an empty line is a user without an answer, in several it is no user.
    if len(names) > 1 and _has_empty_line(path, content):
        # Not as an expression: polars takes minutes for some thousand columns.
        frame = frame.map_batches(
            lambda rows: rows.filter(~reduce(and_, (column.is_null() for column in rows))),
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
            streamable=True,
        )
    return frame, separator


def _numbered(names: list[str]) -> list[str]:
    """Return names for the columns of a table without a header."""
    return [f"column_{number}" for number in range(1, len(names) + 1)]


def text_bytes(path: Path) -> bytes | None:
    """Return text in UTF-8 that must be held in memory, since it was compressed or in UTF-16.

    None for a file that can be read directly. `DataError` for files that are not text.
    """
    origin, content = origin_of(path), _unpacked(path)
    if content is None:
        with path.open("rb") as file:
            start = file.read(_SAMPLE_BYTES)
    else:
        start = content[:_SAMPLE_BYTES]
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return (path.read_bytes() if content is None else content).decode("utf-16").encode()
        except UnicodeDecodeError:
            raise DataError(f"cannot read {origin}: it is no complete text in UTF-16") from None
    if b"\0" in start:
        hint = "a spreadsheet: save it as CSV" if start.startswith(b"PK") else "not text"
        raise DataError(f"cannot read {origin}: it is {hint}, whatever its name says")
    return content


def _unpacked(path: Path) -> bytes | None:
    """Return the bytes of a compressed file or of standard input; None for any other file."""
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    require_file(path)
    if path.suffix.lower() != ".gz":
        return None
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, ValueError):
        raise DataError(f"cannot read {path.name}: it is no complete gzip file") from None


def _records(path: Path, content: bytes | None, separator: str) -> Iterator[list[str]]:
    """Yield the records of a text table, whatever their lengths and the line breaks in them."""
    with path.open("rb") if content is None else io.BytesIO(content) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
        try:
            yield from csv.reader(text, delimiter=separator)
        except csv.Error:  # a field of more than 131,072 characters
            return


def _has_empty_line(path: Path, content: bytes | None) -> bool:
    """Return True if a line of the text is empty, even within quotation marks."""
    data = np.memmap(path, mode="r") if content is None else np.frombuffer(content, dtype=np.uint8)
    for start in range(0, data.size, 1 << 20):
        piece = np.asarray(data[start : start + (1 << 20) + 2])
        is_end, is_return = piece == ord("\n"), piece[1:-1] == ord("\r")
        if (is_end[1:] & is_end[:-1]).any() or (is_end[2:] & is_return & is_end[:-2]).any():
            return True
    return False


def _ends_empty(path: Path, content: bytes | None, separator: bytes) -> bool:
    """Return True if the last line of the text is made of separators alone."""
    with path.open("rb") if content is None else io.BytesIO(content) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _SAMPLE_BYTES))
        last = file.read().rstrip(b"\r\n").rpartition(b"\n")[2]
    return bool(last) and not last.strip(separator)


def _num_fields(path: Path, content: bytes | None, separator: str) -> int:
    """Return the number of fields of the first two rows; 0 unless both have the same number."""
    rows = [len(row) for row in islice(_records(path, content, separator), 2)]
    return rows[0] if len(set(rows)) == 1 else 0


def is_text_table(path: Path) -> bool:
    """Return True for the name of a text file, whose rows should be checked."""
    return str(path) == STANDARD_INPUT or path.name.lower().endswith(TEXT)


def require_column(column: str, names: list[str], path: Path) -> None:
    """Raise unless the file has the column; suggest the nearest name and list them all."""
    if column in names:
        return
    by_lower = {name.lower(): name for name in names}
    nearest = difflib.get_close_matches(column.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; did you mean {by_lower[nearest[0]]!r}?" if nearest else ""
    shown = ", ".join(names[:20]) + ", ..." * (len(names) > 20)
    raise DataError(f"{path.name} has no column {column!r}{hint} (its columns: {shown})")


def series_of(name: str, values: Any) -> "pl.Series":
    """Return the values as a polars series."""
    require_sequence("values", values)
    is_arrow = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    if hasattr(values, "iloc") or type(values).__module__.split(".")[0] == "pandas":
        array = np.asarray(values)  # a series, index or array of pandas: without pyarrow
        is_cast = array.dtype == "f8" and getattr(values, "dtype", "f8") != "f8"  # it has gaps
        is_rounded = is_cast and bool((np.abs(array) >= 2.0**53).any())
        values = np.asarray(values, dtype=object) if is_rounded else array
    elif is_arrow:
        with reading("values"):
            values = pl.Series(name, values)
    if str(getattr(values, "dtype", "")) in _COARSE_TIMES:  # unknown to polars
        values = values.astype("M8[ms]")
    if (num_axes := getattr(values, "ndim", 1)) != 1:
        raise DataError(f"{name} has {num_axes} dimensions: give one answer a user")
    if str(getattr(values, "dtype", "object")) == "object":  # not an array, or one of objects
        values = _of_one_type(name, values)
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{name} does not hold answers of one type{value_note(str(error))}: convert them to "
            "text"
        ) from None


def _of_one_type(name: str, values: Iterable[Any]) -> Any:
    """Return Python objects as polars reads them right; refuse those that it would change."""
    values = [value.value if isinstance(value, Enum) else value for value in values]
    values = [None if spelt.is_gap(value) else value for value in values]
    kinds = {type(value).__name__ for value in values} - {"NoneType"}
    if "bool" in kinds and len(kinds) > 1:
        raise DataError(
            f"{name} holds booleans among {', '.join(kinds - {'bool'})}: convert them first"
        )
    if kinds == {"datetime64"}:  # polars takes a list of them for something else
        times = np.array(values, dtype="M8")
        return times.astype("M8[ms]") if str(times.dtype) in _COARSE_TIMES else times
    if kinds == {"int", "float"}:
        if any(isinstance(value, int) and abs(value) > 2**53 for value in values):
            raise DataError(
                f"{name} holds whole numbers above 2^53 among floats, which would round them: "
                "convert all to floats, or to text"
            )
        return pl.Series(name, values, dtype=pl.Float64)
    return values


def require_sequence(name: str, values: object) -> None:
    """Raise `DataError` for unordered values, or values that hold equal answers only once."""
    is_one = isinstance(values, str | bytes | set | frozenset | dict)
    if is_one or not hasattr(values, "__iter__"):
        raise DataError(
            f"{name} is a {type(values).__name__}, which does not hold one answer a user"
        )
