"""Conversion of text and other values to labels: answers, words, names and numbers alike.

`label_of` takes a Python value and `label_series` a column; they agree. docs/guides/running.md
states the rule for users.
"""

import math
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from os import PathLike
from pathlib import Path

import numpy as np

from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.files import text_file
from shuffledp.core.lazy import pl

MISSING_TEXTS = ("", "nan", "NaN", "NAN", "null", "Null", "NULL")
"""Texts that stand for "no answer", unless the domain lists them."""

NOBODY = (*MISSING_TEXTS, "NA", "N/A", "n/a", "#N/A", "<NA>", "None", "none")
"""Texts that name nobody: many rows with one of them are many people, or unknown ones."""

# Invisible characters go, white space becomes spaces; joiners stay, for they shape letters.
_INVISIBLE = "\xad\u200b\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff" + "".join(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_TRANSLATED = str.maketrans(dict.fromkeys(_INVISIBLE) | dict.fromkeys(_SPACES, " "))
# Texts that may not be labels as they are.
_UNUSUAL = r"^ | $|[^ -~]"


def formed(text: str) -> str:
    """Return a text in the canonical form of labels, in which texts that look alike are equal."""
    return unicodedata.normalize("NFC", text.translate(_TRANSLATED)).strip(" ")


def label_of(value: object) -> str:
    """Return the label of one answer, ``""`` for none.

    Whole floats lose their ``".0"``, so that a column of whole numbers keeps its labels when a
    missing value turned it into floats.
    """
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return formed(value)
    if is_gap(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return str(value + 0.0).removesuffix(".0")  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, np.datetime64) and value.dtype != "M8[D]":  # a day is a date
        value, given = value.astype("M8[us]"), value
        _require_microseconds(is_exact=bool(value == given))
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = value.item()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def label_series(column: "pl.Series") -> "pl.Series":
    """Return a column as its labels, each distinct value labelled once; null for missing values.

    Texts for "no answer" stay: the domain may list them.
    """
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    dtype = column.dtype
    if dtype == pl.String:
        # Where texts repeat, looking at each once is quicker.
        repeats = len(column) > 1000 and column.head(1000).n_unique() < 100
        if not (column.unique() if repeats else column).str.contains(_UNUSUAL).any():
            return column
        unusual = column.str.contains(_UNUSUAL).fill_null(value=False)
        distinct = column.filter(unusual).unique()
        return column.replace(distinct, pl.Series(map(formed, distinct), dtype=pl.String))
    if dtype.is_integer() or dtype in (pl.Boolean, pl.Null):
        return column.cast(pl.String)
    distinct = column.drop_nulls().unique()
    if getattr(dtype, "time_unit", None) == "ns":
        _require_microseconds(is_exact=bool((distinct.dt.nanosecond() % 1000 == 0).all()))
    values = distinct.to_numpy() if dtype.is_float() else distinct
    labels = pl.Series([label_of(value) or None for value in values], dtype=pl.String)
    pairs = pl.DataFrame({"value": distinct, "label": labels})
    given = column.rename("value").to_frame()
    return given.join(pairs, on="value", how="left", maintain_order="left")["label"]


def _require_microseconds(*, is_exact: bool) -> None:
    """Raise unless times are whole microseconds, the finest that Python has."""
    if not is_exact:
        raise DataError("times are finer than microseconds, as labels are: round them")


def label_expression(name: str, dtype: "pl.DataType") -> "pl.Expr":
    """Return the expression of `label_series` for a column; refuse types that hold no answers."""
    kinds = (pl.String, pl.Null, pl.Boolean, pl.Date, pl.Datetime, pl.Time, pl.Categorical, pl.Enum)
    if dtype in kinds or dtype.is_numeric():
        return pl.col(name).map_batches(label_series, return_dtype=pl.String, is_elementwise=True)
    raise DataError(
        f"column {name!r} is of type {dtype}, which is no list of answers: convert it to text"
    )


def place_expression(name: str, dtype: "pl.DataType", labels: Iterable[str]) -> "pl.Expr":
    """Return the place of each value's label among ``labels``, UInt32; null for others."""
    known = pl.Enum(list(labels))

    def places(column: "pl.Series") -> "pl.Series":  # pragma: no cover  # in a thread of polars
        texts = column if dtype == pl.String else label_series(column)
        found = texts.cast(known, strict=False).to_physical().cast(pl.UInt32)
        # Most texts are labels as they are; the others are few, or few different ones.
        others = (found.is_null() & texts.is_not_null()).arg_true()
        if dtype == pl.String and len(others):
            rest = label_series(texts.gather(others)).cast(known, strict=False)
            found = found.scatter(others, rest.to_physical().cast(pl.UInt32))
        return found

    label_expression(name, dtype)  # refuses types that hold no answers
    return pl.col(name).map_batches(places, return_dtype=pl.UInt32, is_elementwise=True)


def present(label: "pl.Expr", missing: Iterable[str] = MISSING_TEXTS) -> "pl.Expr":
    """Return labels with null for those that stand for a missing answer."""
    return pl.when(~label.is_in(list(missing))).then(label)


# ---------------------------------------------------------------- numbers
# Texts whose mark may group thousands, and texts that show which mark is the decimal one.
_UNCLEAR = r"^[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}$"
_TELLING = (
    r"^[+-]?([0-9]*DECIMAL[0-9]+([eE][+-]?[0-9]+)?|[0-9]{1,3}(GROUP[0-9]{3})+DECIMAL[0-9]+"
    r"|[0-9]{1,3}GROUP[0-9]{3}(GROUP[0-9]{3})+)$"
)
_GROUPED = r"^[+-]?[1-9][0-9]{0,2}(GROUP[0-9]{3})+(DECIMAL[0-9]*)?$"


def _marked(pattern: str, decimal: str) -> str:
    """Return a pattern for a decimal mark, with the other one between groups."""
    marks = (r"\.", ",") if decimal == "." else (",", r"\.")
    return pattern.replace("DECIMAL", marks[0]).replace("GROUP", marks[1])


def decimal_mark(frame: "pl.LazyFrame", names: Iterable[str], origin: str) -> str | None:
    """Return the decimal mark of all numbers of a text file; None for a point.

    It is ambiguous only in files with semicolons, and matters only if a column in ``names`` has it.
    """
    text = pl.all().str.strip_chars()
    is_clear = ~text.str.contains(_UNCLEAR)
    comma, point = (text.str.contains(_marked(_TELLING, mark)) & is_clear for mark in ",.")
    asked = pl.col(list(names)).str.strip_chars()
    queries = (comma, point, asked.str.contains(r"[.,]"), asked.str.contains(_UNCLEAR))
    found = [frame.select(pl.any_horizontal(each).any()) for each in queries]
    has_comma, has_point, has_mark, has_unclear = (f.item() for f in pl.collect_all(found))
    if not has_mark:
        return None
    if has_comma == has_point and (has_comma or has_unclear):
        shown = "both marks" if has_comma else "numbers like 1.234 alone"
        raise DataError(
            f"{origin} has {shown}, so that its decimal mark could be either: say which it is with "
            "decimal='.' or decimal=','"
        )
    return "," if has_comma else "."


def holds_numbers(dtype: "pl.DataType") -> bool:
    """Return True if values of a type may be numbers."""
    return dtype == pl.String or dtype.is_numeric() or dtype == pl.Null


def number_series(
    column: "pl.Series", mark: str | None, missing: Iterable[str], *, is_declared: bool
) -> "pl.Series":
    """Return a column as numbers: NaN for missing values, null for other texts.

    A text that is a number stands for a missing value only where that was declared.
    """
    has_mark = mark is not None and column.dtype == pl.String
    texts = _with_points(label_series(column), mark or "") if has_mark else column
    found = texts.cast(pl.Float64, strict=False)
    others = found.is_null() & texts.is_not_null()
    if others.any():  # few, as a rule
        found = found.scatter(
            others.arg_true(), label_series(texts.filter(others)).cast(pl.Float64, strict=False)
        )
    unsure = column.is_not_null() if is_declared else others
    labels = label_series(column.filter(unsure))
    absent = unsure.arg_true().filter(labels.is_in(list(missing)))
    return found.scatter(absent, math.nan).set(column.is_null(), math.nan)


def _with_points(texts: "pl.Series", mark: str) -> "pl.Series":
    """Return numbers with decimal points and no groups; texts in another form are no numbers."""
    other, pattern = "." if mark == "," else ",", _marked(_GROUPED, mark)
    is_grouped = texts.str.contains(pattern).fill_null(value=False)
    plain = texts.zip_with(~is_grouped, texts.str.replace_all(other, "", literal=True))
    if mark == ",":
        plain = plain.str.replace(".", "?", literal=True).str.replace(",", ".", literal=True)
    return plain


def is_gap(value: object) -> bool:
    """Return True if a Python object is a missing value: None, NaN, or one of pandas."""
    is_nan = isinstance(value, float | np.floating) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}


# ---------------------------------------------------------------- domains
def require_list(name: str, texts: Iterable[object]) -> None:
    """Raise `ParameterError` for a string, whose letters would be taken, a set, or no iterable."""
    if isinstance(texts, str | bytes | set | frozenset) or not np.iterable(texts):
        one = "single string" if isinstance(texts, str) else "single value"
        kind = "set, which has no order" if isinstance(texts, set | frozenset) else one
        raise ParameterError(f"{name} = {texts!r} is a {kind}: give a list, such as ['yes', 'no']")


def require_text(what: str, *texts: str) -> None:
    """Raise for what is no text, or bytes that could not be decoded (surrogates; not writable)."""
    for text in texts:
        if not isinstance(text, str):
            raise DomainError(f"{what} = {text!r} is no text: give a text")
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise DomainError(
            f"{what} holds bytes that are no text here: run with a UTF-8 locale, such as "
            "LC_ALL=C.UTF-8, or write them in UTF-8"
        )


def checked_domain(values: Iterable[object], what: str = "domain") -> tuple[str, ...]:
    """Return the labels of a list; refuse empty ones, undecoded bytes and pairs that look alike."""
    if str(getattr(values, "dtype", "")).lower() == "float32":
        values = np.asarray(values)  # else 0.1 would become the double nearest to a Float32
    given = tuple(values)
    labels = tuple(map(label_of, given))
    if "" in labels:
        raise DomainError(
            f"{what} has an empty answer at position {labels.index('') + 1}: name every answer, "
            "and say with missing='category' what is to be done with empty rows"
        )
    require_text(what, *labels)
    seen: dict[str, int] = {}
    for place, label in enumerate(labels):
        is_text = isinstance(given[place], str)
        form = label if is_text else {"true": "1", "false": "0"}.get(label, label)  # True == 1
        other = seen.setdefault(form, place)
        if other != place and labels[other] == label and given[other] == given[place]:
            raise DomainError(f"{what} lists {label!r} more than once: list each answer once")
        if other != place:
            raise DomainError(
                f"{what} lists {_shown(given[other])} and {_shown(given[place])}, which nobody can "
                "tell apart: list one of them"
            )
    return labels


def _shown(value: object) -> str:
    """Return a value as Python writes it, in ASCII where another could look the same."""
    shown = repr(value)
    return shown if unicodedata.is_normalized("NFC", shown) else ascii(value)


def require_two_answers(
    labels: tuple[str, ...], what: str, remedy: str = "domain=[...]"
) -> tuple[str, ...]:
    """Return ``labels`` if there are at least two, else raise `DomainError` about ``what``."""
    if len(labels) >= 2:
        return labels
    found = f"only {labels[0]!r}" if labels else "no answer"
    raise DomainError(
        f"{what} has {found}: a question needs at least two possible answers; list all that a "
        f"user could have given with {remedy}"
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
    with text_file(Path(path)) as file:
        return checked_domain(line for line in file.read().split("\n") if formed(line))
