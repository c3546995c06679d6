"""Sets of answers as arrays: one row a user, padded with -1."""

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.randomizers.checks import plain_array

#: Stands for no answer in a row of answers.
NO_ANSWER = -1


def pad_answers(
    codes: NDArray[np.integer[Any]],
    offsets: NDArray[np.integer[Any]],
    *,
    max_answers: SupportsIndex,
) -> NDArray[np.int64]:
    """Return ragged lists of answers as one padded array.

    Parameters
    ----------
    codes : ndarray of integers
        All users' answers, one user after the other.
    offsets : ndarray of integers, shape (n + 1,)
        User i holds ``codes[offsets[i]:offsets[i + 1]]``, as in Arrow's lists. From 0 to the
        number of codes, never falling.
    max_answers : int
        The most answers that a user may hold, at least 1.

    Returns
    -------
    ndarray of int64, shape (n, max_answers)
        Each user's answers, then -1. Codes are not checked here; randomizers do.

    Raises
    ------
    DomainError
        If a user holds more than ``max_answers`` answers; the message names the first.
    ParameterError
        If ``codes`` or ``offsets`` is no such array.

    Examples
    --------
    >>> pad_answers(np.array([4, 1, 3]), np.array([0, 2, 2, 3]), max_answers=2).tolist()
    [[4, 1], [-1, -1], [3, -1]]
    """
    width = require_at_least("max_answers", max_answers, 1)
    flat, ends = plain_array(codes), plain_array(offsets)
    for name, array in (("codes", flat), ("offsets", ends)):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ParameterError(
                f"{name} has shape {array.shape} and dtype {array.dtype}: give one row of integers"
            )
    # A type with a sign, so that offsets that fall have negative differences.
    ends = ends.astype(np.int64)
    lengths = np.diff(ends)
    if ends.size == 0 or ends[0] != 0 or ends[-1] != flat.size or (lengths < 0).any():
        raise ParameterError(
            f"offsets do not rise from 0 to the number of codes, {flat.size}: give the place where "
            "each user's answers start, and at last where they end"
        )
    _require_at_most(lengths, width)
    out = np.full((lengths.size, width), NO_ANSWER, dtype=np.int64)
    out[np.arange(width) < lengths[:, None]] = flat
    return out


def require_answers(
    values: NDArray[np.integer[Any]], *, k: int, max_answers: int
) -> NDArray[np.int64]:
    """Return rows of answers in one canonical order and width, else raise.

    Parameters
    ----------
    values : ndarray of integers, shape (n, any width)
        Answers in [0, k), or -1 for none, anywhere in the row; no answer twice.
    k : int
        Number of categories.
    max_answers : int
        The most answers that a user may hold.

    Returns
    -------
    ndarray of int64, shape (n, max_answers)
        Answers in falling order, then -1: the order in which a user gave them is gone.

    Raises
    ------
    DomainError
        If an answer is outside [-1, k), a user holds one twice, or holds too many; the message
        names the first such row.
    ParameterError
        If ``values`` is no two-dimensional array of integers.
    """
    array = plain_array(values)
    if array.ndim != 2 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError(
            f"values has shape {array.shape} and dtype {array.dtype}: give one row of integers a "
            f"user, answers in [0, {k}) padded with {NO_ANSWER}; pad_answers makes one from lists"
        )
    if array.size and (int(array.min()) < NO_ANSWER or int(array.max()) >= k):
        row, place = np.argwhere((array < NO_ANSWER) | (array >= k))[0].tolist()
        raise DomainError(
            f"values[{row}, {place}] = {array[row, place]} is not in [0, {k}), nor {NO_ANSWER} for "
            "no answer: declare the value in the domain, or map it to a category for all others"
        )
    ordered = np.sort(array.astype(np.int64), axis=1)[:, ::-1]
    is_twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_ANSWER)).any(axis=1)
    if is_twice.any():
        raise DomainError(
            f"row {int(np.argmax(is_twice))} of values holds an answer twice: a set has each "
            "answer once, so drop the repetition"
        )
    _require_at_most((ordered != NO_ANSWER).sum(axis=1), max_answers)
    out = np.full((ordered.shape[0], max_answers), NO_ANSWER, dtype=np.int64)
    width = min(max_answers, ordered.shape[1])
    out[:, :width] = ordered[:, :width]
    return out


def _require_at_most(num_answers: NDArray[np.integer[Any]], max_answers: int) -> None:
    """Raise `DomainError` if a user holds more answers than declared."""
    if num_answers.size and int(num_answers.max()) > max_answers:
        row = int(np.argmax(num_answers > max_answers))
        raise DomainError(
            f"row {row} of values holds {num_answers[row]} answers, more than max_answers = "
            f"{max_answers}: keep a random {max_answers} of them, or raise max_answers to "
            f"{num_answers.max()} if that many are known to be possible without looking at the data"
        )
