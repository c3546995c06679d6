"""Tables, their columns and labels: what the readers of all kinds of values share.

A CSV file is read as text throughout, so that a label is what the file says ("01" stays "01")
and no guess from the first rows can fail on a later one. Every answer, whatever its type, becomes
one text: `label_of` does it for a Python value, `label_expression` for a column; they agree.

There are two passes over the data. The first counts the users and checks every value; the second
hands the values out to be randomized, each exactly once. Memory is bounded by the size of a block.
"""

import datetime as dt
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shuffledp.core.errors import DataError, DomainError, ParameterError

if TYPE_CHECKING:
    import polars as pl

BLOCK_ROWS = 1 << 18
"""Rows a block: fixed, so that a seeded simulation does not depend on how a file is stored."""

MISSING_TEXTS = ("", "nan", "NaN", "NAN", "null", "Null", "NULL")
"""Texts that stand for "no answer", unless the domain lists them."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")


class MissingPolicy(StrEnum):
    """What to do with users who gave no answer (null, NaN, empty text)."""

    ERROR = "error"
    DROP = "drop"
    CATEGORY = "category"

    @classmethod
    def named(cls, missing: "MissingPolicy | str", *, unless: str = "") -> "MissingPolicy":
        """Return the policy of that name; of things named by ``unless`` there is no category."""
        try:
            policy = cls(missing)
        except ValueError:
            names = ", ".join(cls)
            raise ParameterError(f"missing = {missing!r} is not one of {names}") from None
        if unless and policy is cls.CATEGORY:
            raise ParameterError(
                f"missing = 'category' makes no sense for {unless}: choose error or drop"
            )
        return policy


# ---------------------------------------------------------------- columns
class Column(Protocol):
    """The checked values of all users, one row a user, as a stream that can be read once more."""

    @property
    def origin(self) -> str:
        """Where the values come from, for messages."""
        ...

    @property
    def num_users(self) -> int:
        """Number of rows that take part."""
        ...

    @property
    def num_missing(self) -> int:
        """Number of rows without a value that were left out."""
        ...

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading adds to the assumptions, one sentence each."""
        ...

    def blocks(self) -> Iterator[Any]:
        """Yield the values in file order, in blocks as the randomizer takes them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Columns before their first pass: a lazy frame, and how to speak about them."""

    frame: "pl.LazyFrame"
    names: tuple[str, ...]
    origin: str
    is_text: bool = False

    @property
    def where(self) -> str:
        """The columns and their origin, for messages."""
        names = ", ".join(map(repr, self.names))
        return f"column{'s' * (len(self.names) > 1)} {names} of {self.origin}"

    @property
    def dtypes(self) -> "tuple[pl.DataType, ...]":
        """The types of the columns."""
        schema = self.frame.collect_schema()
        return tuple(schema[name] for name in self.names)

    def labels(self) -> "pl.LazyFrame":
        """Return a frame with one column ``label``, of the only column."""
        return self.frame.select(label_expression(self.names[0], self.dtypes[0]).alias("label"))

    def batches(self, frame: "pl.LazyFrame", *, check: bool = False) -> "Iterator[pl.DataFrame]":
        """Yield the rows of a frame made of this one; a check parses whole rows.

        Then a CSV row with a stray comma is an error rather than a shifted answer.
        """
        import polars as pl

        pushdown = not (check and self.is_text)
        with reading(self.origin):
            yield from frame.collect_batches(
                chunk_size=BLOCK_ROWS, optimizations=pl.QueryOptFlags(projection_pushdown=pushdown)
            )


def open_source(path: str | PathLike[str], *names: str) -> Source:
    """Return columns of a file; nothing but its header is read yet."""
    location = Path(path)
    with reading(location.name):
        frame = scan(location)
        for name in names:
            require_column(name, frame.collect_schema().names(), location)
    return Source(
        frame=frame,
        names=names,
        origin=location.name,
        is_text=is_text_table(location),
    )


def source_of_values(name: str, values: Iterable[object]) -> Source:
    """Return values that are in memory as a column."""
    return Source(frame=series_of(name, values).to_frame().lazy(), names=(name,), origin="values")


def as_checked(blocks: Iterable[Any], origin: str, num_users: int) -> Iterator[Any]:
    """Yield the blocks of a second pass; `DataError` unless it has as many rows as the first."""
    num_seen = 0
    for block in blocks:
        num_seen += len(block)
        if num_seen > num_users:
            raise changed(origin)
        yield block
    if num_seen != num_users:
        raise changed(origin)


def dropped_caution(num_missing: int, num_users: int, remedy: str = "") -> tuple[str, ...]:
    """Return what has to be said where rows without a value were left out."""
    if not num_missing:
        return ()
    return (
        f"Dropped: {rows_text(num_missing)} without an answer. The guarantee covers the other "
        f"{num_users:,} users, and how many were dropped is not protected"
        + (f"; {remedy}." if remedy else "."),
    )


def rows_text(count: int) -> str:
    """Return ``"1 row"`` or ``"2 rows"``."""
    return f"{count:,} row" + "s" * (count != 1)


def changed(origin: str) -> DataError:
    """Return the error for data that are not what the first pass saw."""
    return DataError(
        f"{origin} changed while it was being read, or reading was interrupted: run again when "
        "nothing writes to it"
    )


def require_users(num_users: int, found: str) -> None:
    """Raise for fewer than two users, since one alone has nobody to hide among."""
    if num_users < 2:
        raise DataError(
            f"{found}: a shuffled collection needs at least two users, and in practice thousands"
        )


# ---------------------------------------------------------------- labels
def label_of(value: object) -> str:
    """Return the label of one answer.

    Whole floats lose their ``".0"``, so that a column of whole numbers keeps its labels when a
    missing value turned it into floats.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value + 0.0).removesuffix(".0")  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value)


def label_expression(name: str, dtype: "pl.DataType") -> "pl.Expr":
    """Return a column as its labels; missing values stay null, NaN becomes ``"NaN"``."""
    import polars as pl

    column = pl.col(name)
    if dtype.is_float():
        unsigned = pl.when(column == 0.0).then(pl.lit(0.0, dtype)).otherwise(column)  # no -0.0
        return unsigned.cast(pl.String).str.strip_suffix(".0").alias(name)
    if dtype in (pl.String, pl.Null, pl.Boolean, pl.Date, pl.Datetime, pl.Time) or (
        dtype.is_integer() or dtype.is_decimal() or dtype in (pl.Categorical, pl.Enum)
    ):
        return column.cast(pl.String)
    raise DataError(
        f"column {name!r} is of type {dtype}, which is no list of answers: give a column of text, "
        "numbers, booleans, dates or categories"
    )


def checked_domain(values: Iterable[object]) -> tuple[str, ...]:
    """Return the labels of a declared domain; `DomainError` for empty, repeated or no text."""
    labels = tuple(label_of(value) for value in values)
    if "" in labels:
        raise DomainError(
            f"domain has an empty answer at position {labels.index('') + 1}: name every answer, "
            "and say with missing= (--missing) what is to be done with empty rows"
        )
    # What the system could not decode are surrogates, which cannot be written.
    if any("\ud800" <= character <= "\udfff" for label in labels for character in label):
        raise DomainError(
            "domain holds bytes that are no text here: run with a UTF-8 locale, such as "
            "LC_ALL=C.UTF-8, or list the answers in a file (--domain-file)"
        )
    if len(set(labels)) < len(labels):
        repeated, _ = Counter(labels).most_common(1)[0]
        raise DomainError(f"domain lists {repeated!r} more than once: list each answer once")
    return labels


def require_two_answers(labels: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return ``labels`` if there are at least two, else raise `DomainError` about ``what``."""
    if len(labels) >= 2:
        return labels
    found = f"only {labels[0]!r}" if labels else "no answer"
    raise DomainError(
        f"{what} has {found}: a question needs at least two possible answers; list all that a "
        "user could have given with domain= (--domain yes,no)"
    )


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return labels in one fixed order: as numbers if all of them are, else as text."""
    labels = list(labels)
    try:
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(labels))


def read_domain(path: str | PathLike[str]) -> tuple[str, ...]:
    """Return the domain written in a text file in UTF-8, one answer a line; empty ones skipped."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DataError(f"cannot read the domain from {path}: {reason}") from None
    return checked_domain(line.strip() for line in text.splitlines() if line.strip())


# ---------------------------------------------------------------- files
@contextmanager
def reading(origin: str) -> Iterator[None]:
    """Turn what polars raises about a file into one `DataError` of one line."""
    import polars as pl

    try:
        yield
    except pl.exceptions.NoDataError:
        raise DataError(f"{origin} is empty: it has not even a header line") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(f"cannot read {origin}: {_reason(error)}") from None
    except PermissionError:
        raise DataError(f"cannot read {origin}: permission denied") from None


def _reason(error: BaseException) -> str:
    """Return one line that says what is wrong with a file."""
    text = str(error)
    if "end with PAR1" in text or "header and footer" in text:
        return "it is no complete Parquet file (truncated, or another format)"
    if "utf-8" in text.lower():
        return "it is not text in UTF-8; convert it (for example with iconv) and try again"
    if "more fields" in text:
        return "a row has more fields than the header; quote values that contain the separator"
    if "could not parse" in text:
        return "a row cannot be parsed; look for a quotation mark that is never closed"
    return (text.splitlines() or ["unknown error"])[0]


def scan(path: Path) -> "pl.LazyFrame":
    """Return a lazy frame over the file; nothing but its header is read yet."""
    import polars as pl

    suffix = path.suffix.lower()
    require_file(path)
    if suffix in PARQUET:
        return pl.scan_parquet(path, glob=False)
    if suffix in SEPARATORS:
        return pl.scan_csv(path, separator=SEPARATORS[suffix], infer_schema=False, glob=False)
    known = ", ".join((*SEPARATORS, *PARQUET))
    raise DataError(f"cannot read {path}: its name ends in none of {known}; convert or rename it")


def is_text_table(path: Path) -> bool:
    """Return whether the file's name is that of text, so that whole rows should be checked."""
    return path.suffix.lower() in SEPARATORS


def require_file(path: Path) -> None:
    """Raise `DataError` unless there is a file of that name."""
    if not path.is_file():
        reason = "it is a folder" if path.is_dir() else "there is no such file"
        raise DataError(f"cannot read {path}: {reason}")


def require_column(column: str, names: list[str], path: Path) -> None:
    """Raise unless the file has the column; suggest the nearest name and list them all."""
    if column in names:
        return
    by_lower = {name.lower(): name for name in names}
    nearest = difflib.get_close_matches(column.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; did you mean {by_lower[nearest[0]]!r}?" if nearest else ""
    shown = ", ".join(names[:20]) + ", ..." * (len(names) > 20)
    raise DataError(f"{path.name} has no column {column!r}{hint} (its columns: {shown})")


def series_of(name: str, values: Iterable[object]) -> "pl.Series":
    """Return the values as a polars series."""
    import polars as pl

    if hasattr(values, "to_numpy") and not isinstance(values, pl.Series):
        values = values.to_numpy()  # a pandas series, without the need for pyarrow
    if (num_axes := getattr(values, "ndim", 1)) != 1:
        raise DataError(f"{name} has {num_axes} dimensions: give one answer a user")
    if str(getattr(values, "dtype", "object")) == "object":  # no array, or one of Python objects
        values = list(values)
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{name} does not hold answers of one type ({reason}): convert them to text first"
        ) from None
