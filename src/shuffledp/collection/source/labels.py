"""Labels: every answer, whatever its type, becomes one text, and the domain is a list of these.

`label_of` does it for one Python value, `label_expression` for a whole column; they agree.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from shuffledp.core.errors import DataError, DomainError

if TYPE_CHECKING:
    import polars as pl

MISSING_TEXTS = ("", "nan", "NaN", "NAN", "null", "Null", "NULL")
"""Texts that stand for "no answer", unless the domain lists them."""


def label_of(value: object) -> str:
    """Return the label of one answer.

    Parameters
    ----------
    value : object
        Text, boolean, whole number, float, date or time.

    Returns
    -------
    str
        Text as it is; ``"true"`` and ``"false"``; whole floats without ``".0"``, so that a
        column of whole numbers keeps its labels when a missing value turned it into floats;
        dates in ISO form.

    Examples
    --------
    >>> [label_of(value) for value in ("yes", True, 3, 3.0, 0.5)]
    ['yes', 'true', '3', '3', '0.5']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value + 0.0).removesuffix(".0")  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value)


def checked_domain(values: Iterable[object]) -> tuple[str, ...]:
    """Return the labels of a declared domain.

    Parameters
    ----------
    values : iterable
        The possible answers, in the order in which they will be reported.

    Returns
    -------
    tuple of str
        One label an answer.

    Raises
    ------
    DomainError
        If an answer is listed twice, is empty, or is no text.

    Examples
    --------
    >>> checked_domain([1, 2, 3])
    ('1', '2', '3')
    """
    labels = tuple(label_of(value) for value in values)
    if "" in labels:
        raise DomainError(
            f"domain has an empty answer at position {labels.index('') + 1}: name every answer, "
            "and say with missing= (--missing) what is to be done with empty rows"
        )
    if not all(map(_is_text, labels)):
        raise DomainError(
            "domain holds bytes that are no text here: run with a UTF-8 locale, such as "
            "LC_ALL=C.UTF-8, or list the answers in a file (--domain-file)"
        )
    if len(set(labels)) < len(labels):
        repeated, _ = Counter(labels).most_common(1)[0]
        raise DomainError(f"domain lists {repeated!r} more than once: list each answer once")
    return labels


def _is_text(label: str) -> bool:
    """Tell whether a label can be written; what the system could not decode are surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in label)


def require_two_answers(labels: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return ``labels`` if there are at least two, else raise `DomainError` about ``what``."""
    if len(labels) >= 2:
        return labels
    found = f"only {labels[0]!r}" if labels else "no answer"
    raise DomainError(
        f"{what} has {found}: a question needs at least two possible answers; list all that a "
        "user could have given with domain= (--domain yes,no)"
    )


def label_expression(name: str, dtype: "pl.DataType") -> "pl.Expr":
    """Return the polars expression that turns a column into its labels.

    Parameters
    ----------
    name : str
        Name of the column.
    dtype : polars.DataType
        Its type.

    Returns
    -------
    polars.Expr
        A column of text with the same name; missing values stay null, NaN becomes ``"NaN"``.

    Raises
    ------
    DataError
        If the column holds lists, records or other things that are no single answer.
    """
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


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return labels in one fixed order: as numbers if all of them are, else as text."""
    labels = list(labels)
    try:
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(labels))
