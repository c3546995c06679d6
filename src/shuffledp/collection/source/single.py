"""The value of one user, on a device, without any table.

A column of one row is refused, since one user alone has no anonymity set. On a device the others
are elsewhere, and a library that reads tables is too heavy to install there.
"""

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.columns import Limits
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError
from shuffledp.core.labels import MISSING_TEXTS, formed, is_gap, label_of

_LABELLED = (str, bool, int, float, np.floating, Decimal, dt.date, dt.time)
_NUMBERS = (int, float, Decimal)


def number_of(value: Any, limits: Limits) -> NDArray[np.float64]:
    """Return one number within limits, shape (1,), also from a text such as ``12.5``."""
    value = formed(value) if isinstance(value, str) else _plain(value)
    if is_gap(value) or value in MISSING_TEXTS:
        raise no_answer()
    is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
    is_text = isinstance(value, str) and value.isascii() and "_" not in value
    try:
        number = float(value) if is_number or is_text else None
    except (ValueError, OverflowError):
        number = None
    if number is None:
        raise DataError(f"the value{value_note(value)} is not a number: write it like 12.5")
    return within(np.array([[number]]), limits)[:, 0]


def within(row: NDArray[np.float64], limits: Limits) -> NDArray[np.float64]:
    """Return a row of numbers; raise unless all are present and within the limits."""
    if np.isnan(row).any():
        raise no_answer()
    if limits.outside(row).any():
        raise DomainError(
            f"the value{value_note(row[0].tolist())} lies outside {limits}: give one inside"
        )
    return row


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy, or a member of an enumeration, as a Python value."""
    value = value.value if isinstance(value, Enum) else value
    return value.item() if isinstance(value, np.generic) else value


def label_of_one(answer: object, domain: tuple[str, ...]) -> str:
    """Return the label of one answer; raise if it has none."""
    answer = answer if isinstance(answer, np.floating) else _plain(answer)
    if not (is_gap(answer) or isinstance(answer, _LABELLED)):
        raise DataError(
            f"the answer is of type {type(answer).__name__}: give text, a number, truth or a date"
        )
    label = label_of(answer)
    if not label or (label in MISSING_TEXTS and label not in domain):
        raise no_answer()
    return label


def place_of(label: str, domain: tuple[str, ...]) -> int:
    """Return the place of a label in the domain."""
    if label not in domain:
        shown = ", ".join(domain[:10]) + ", ..." * (len(domain) > 10)
        raise DomainError(
            f"the answer{value_note(label)} lies outside the domain ({shown}): give one of them"
        )
    return domain.index(label)


def no_answer() -> DataError:
    """Return the error for a missing value."""
    return DataError("there is no answer (null, NaN or empty): give one, or report nothing")
