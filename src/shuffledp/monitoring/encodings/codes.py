"""Checks that encodings share: codes of users, columns, labels, and arrays of sums."""

import hashlib
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.encodings.encoding import NOTHING, Encoding

_FINGERPRINT_DIGITS = 32  # 128 bits

# Labels named in a message.
_MOST_NAMED = 8


def fingerprint_of(name: str, labels: tuple[Hashable, ...]) -> str:
    """Return a prefix of SHA-256 of an encoding's name and its labels, as hexadecimal digits."""
    stated = "/".join([name, *(f"{type(label).__name__}={label!r}" for label in labels)])
    text = f"shuffledp monitoring encoding/{stated}"
    return hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def require_labels(labels: Iterable[Any], *, what: str, fewest: int) -> dict[Hashable, int]:
    """Return the number of each label, from 0, or raise.

    Parameters
    ----------
    labels : iterable
        Hashable, none of them ``None``, NaN or given twice.
    what : str
        The name of the argument.
    fewest : int
        How many are needed.

    Raises
    ------
    DomainError
        If there are too few, one is ``None`` or NaN, cannot be hashed, or comes twice.
    """
    numbers: dict[Hashable, int] = {}
    for label in labels:
        # Only NaN differs from itself: it would be found among the labels or not, by chance.
        if label is None or not isinstance(label, Hashable) or label != label:  # noqa: PLR0124
            raise DomainError(
                f"{what} holds {label!r}: give texts, numbers or other constants; None stands for "
                "a user without a value, and needs no label"
            )
        if label in numbers:
            raise DomainError(f"{what} holds {label!r} twice: give each value once")
        numbers[label] = len(numbers)
    if len(numbers) < fewest:
        raise DomainError(
            f"{what} holds {len(numbers)} values, fewer than {fewest}: for states that are on or "
            "off leave the domain out"
        )
    return numbers


def code_of_label(value: Any, numbers: dict[Hashable, int]) -> int:
    """Return the number of a label, -1 for ``None``, or raise `DomainError`."""
    if value is None:
        return NOTHING
    if isinstance(value, Hashable) and value in numbers:
        return numbers[value]
    named = ", ".join(map(repr, list(numbers)[:_MOST_NAMED]))
    more = ", ..." if len(numbers) > _MOST_NAMED else ""
    raise DomainError(
        f"value = {value!r} is not among the {len(numbers)} values of the domain ({named}{more}): "
        "declare it when the collection is set up, map it to one of these, or give None for none"
    )


def require_codes(codes: ArrayLike, encoding: Encoding) -> NDArray[np.int64]:
    """Return codes as int64, with ``encoding.nothing`` in place of -1, or raise.

    Parameters
    ----------
    codes : array-like of int or bool, shape (n,)
        In [-1, ``encoding.largest_code``].
    encoding : Encoding
        Whose codes they are.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    DomainError
        If a code is out of range; the message names the first.
    ParameterError
        If this is no such array.
    """
    array = np.asarray(codes)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise ParameterError(
            f"values has shape {array.shape} and dtype {array.dtype}: give one integer code a "
            "user, in the order of users"
        )
    if array.size and not NOTHING <= int(array.min()) <= int(array.max()) <= encoding.largest_code:
        outside = (array < NOTHING) | (array > encoding.largest_code)
        place = int(np.argmax(outside))
        raise DomainError(
            f"values[{place}] = {array[place]} is not in [-1, {encoding.largest_code}]: give codes "
            f"of the encoding {encoding.name!r}, -1 for a user without a value"
        )
    # Never a view: the caller may write to his array afterwards.
    integers: NDArray[np.int64] = array.astype(np.int64)
    if encoding.nothing != NOTHING:
        integers[integers == NOTHING] = encoding.nothing
    return integers


def per_column(array: ArrayLike, num_columns: int, name: str) -> NDArray[Any]:
    """Return an array whose last axis is the columns: float64, or objects such as fractions."""
    numbers = np.asarray(array)
    if numbers.ndim == 0 or numbers.shape[-1] != num_columns:
        raise ParameterError(
            f"{name} has shape {numbers.shape}: its last axis has to be the {num_columns} columns"
        )
    return numbers if numbers.dtype == object else numbers.astype(np.float64)


def require_column(column: int, num_columns: int) -> int:
    """Return a column in [0, num_columns), or raise `ParameterError`."""
    if not 0 <= column < num_columns:
        raise ParameterError(
            f"column = {column} is not in [0, {num_columns}): give a column of this encoding"
        )
    return column
