"""The value of one user, as a device has it: what a column would hold, without any table.

A column of one row is refused, for one user alone has nobody to hide among. On a device the others
are elsewhere, and a library that reads tables is a heavy thing to install there.
"""

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.collection.source.columns import Limits
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError
from shuffledp.core.labels import MISSING_TEXTS, formed, is_gap, label_of
from shuffledp.randomizers.answer_sets import NO_ANSWER

_LABELLED = (str, bool, int, float, np.floating, Decimal, dt.date, dt.time)
_NUMBERS = (int, float, Decimal)


def code_of(answer: object, domain: tuple[str, ...]) -> NDArray[np.int32]:
    """Return the code of one answer, shape (1,)."""
    return np.array([_place(_label(answer, domain), domain)], dtype=np.int32)


def text_of(answer: object, dictionary: tuple[str, ...]) -> NDArray[np.object_]:
    """Return one text, shape (1,)."""
    return np.array([_label(answer, dictionary)], dtype=object)


def codes_of(
    answers: Iterable[str | None], domain: tuple[str, ...], max_answers: int
) -> NDArray[np.int32]:
    """Return the codes of one user's different answers, then -1, shape (1, max_answers)."""
    if is_gap(answers):
        raise _no_answer()
    try:
        labels = [formed(each) for each in tables.listed(answers) if each is not None]
    except (TypeError, AttributeError):
        raise DataError("the answers are no list of text: give a list, [] for none") from None
    codes = [_place(label, domain) for label in dict.fromkeys(labels) if label]
    if len(codes) > max_answers:
        raise DomainError(
            f"there are {len(codes)} answers: give at most max_answers = {max_answers}"
        )
    row = np.full((1, max_answers), NO_ANSWER, dtype=np.int32)
    row[0, : len(codes)] = codes
    return row


def number_of(value: Any, limits: Limits) -> NDArray[np.float64]:
    """Return one number within limits, shape (1,); a text such as ``12.5`` is one."""
    value = formed(value) if isinstance(value, str) else _plain(value)
    if is_gap(value) or value in MISSING_TEXTS:
        raise _no_answer()
    is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
    is_text = isinstance(value, str) and value.isascii() and "_" not in value
    try:
        number = float(value) if is_number or is_text else None
    except (ValueError, OverflowError):
        number = None
    if number is None:
        raise DataError(f"the value{value_note(value)} is not a number: write it like 12.5")
    return _within(np.array([[number]]), limits)[:, 0]


def vector_of(value: Any, names: tuple[str, ...], limits: Limits) -> NDArray[np.float64]:
    """Return one vector within limits, shape (1, d)."""
    if is_gap(value):
        raise _no_answer()
    return _within(tables.rows_of_numbers([value], names), limits)


def _within(row: NDArray[np.float64], limits: Limits) -> NDArray[np.float64]:
    """Return a row of numbers, if all are there and lie within the limits."""
    if np.isnan(row).any():
        raise _no_answer()
    if limits.outside(row).any():
        raise DomainError(
            f"the value{value_note(row[0].tolist())} lies outside {limits}: give one inside"
        )
    return row


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy, or a member of an enumeration, as Python has it."""
    value = value.value if isinstance(value, Enum) else value
    return value.item() if isinstance(value, np.generic) else value


def _label(answer: object, domain: tuple[str, ...]) -> str:
    """Return the label of one answer, if it is one."""
    answer = answer if isinstance(answer, np.floating) else _plain(answer)
    if not (is_gap(answer) or isinstance(answer, _LABELLED)):
        raise DataError(
            f"the answer is of type {type(answer).__name__}: give text, a number, truth or a date"
        )
    label = label_of(answer)
    if not label or (label in MISSING_TEXTS and label not in domain):
        raise _no_answer()
    return label


def _place(label: str, domain: tuple[str, ...]) -> int:
    """Return where a label stands in the domain."""
    if label not in domain:
        shown = ", ".join(domain[:10]) + ", ..." * (len(domain) > 10)
        raise DomainError(
            f"the answer{value_note(label)} lies outside the domain ({shown}): give one of them"
        )
    return domain.index(label)


def _no_answer() -> DataError:
    """Return the error where there is no value."""
    return DataError("there is no answer (null, NaN or empty): give one, or report nothing")
