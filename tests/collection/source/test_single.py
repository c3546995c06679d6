"""The value of one user is what a column of it would hold, and is refused where that is."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from shuffledp import AnswerSets, Categories, Mean, VectorMean
from shuffledp.core.errors import DataError, DomainError

MISSING = (None, math.nan, np.float64("nan"), pd.NA, pd.NaT)
LABELS = ("yes", "7", 7, 7.0, 2.5, -0.0, True, np.bool_(True), np.int16(7), np.str_("yes"))
LABELS += (Decimal("2.5"), dt.date(2026, 1, 2), np.float32(2.5), "nan", "", "NULL", " yes", "no")
NUMBERS = (0, 1, 1.5, True, np.bool_(False), np.int8(1), np.float32(0.5), Decimal("1.25"))
NUMBERS += ("1.5", " 2 ", "1e-1", "two", "", "1_0", "nan", "inf", "-1", 2.0000001, -1, 10**400)
CASES = [
    (Categories(["yes", "no", "7", "2.5", "0", "true", "2026-01-02"]), (*LABELS, b"yes", ["yes"])),
    (Categories(["yes", "nan", "NULL"]), ("yes", "nan", "NULL", "null", "")),
    (Mean(0, 2), (*NUMBERS, b"1", [1.0], 1j)),
    (
        VectorMean(["x", "y"], norm_bound=1.0),
        (
            *([0.6, 0.8], (1, 0), np.zeros(2), ["0.5", "0"], [0.9, 0.9], [0.1], [0.1, math.nan]),
            *([0.1, None], [True, False], [math.inf, 0], "ab", [1.0, "x"]),
        ),
    ),
    (
        AnswerSets(["a", "b", "c"], max_answers=2),
        (
            *(["b", "a"], ["c"], [], ("a", "a", "b"), [" a", ""], [None, "b"], ["a", "b", "c"]),
            *(["d"], "a", b"a", ["a", 1], 5),
        ),
    ),
]


def found(call):
    """Return values as a list, or the kind of error."""
    try:
        values = call()
    except DomainError:
        return DomainError
    except DataError:
        return DataError
    return [row.tolist() if isinstance(row, np.ndarray) else row for row in values]


@pytest.mark.parametrize(
    ("question", "answer"),
    [(question, each) for question, some in CASES for each in some + MISSING],
)
def test_one_value_is_that_of_a_column(question, answer):
    in_a_column = found(lambda: next(question.column([answer, answer]).blocks())[:1])
    alone = found(lambda: question.value_of_one(answer))
    assert alone == in_a_column
    if isinstance(alone, list):
        expected = next(question.column([answer, answer]).blocks())
        assert question.value_of_one(answer).dtype == expected.dtype
        assert question.value_of_one(answer).shape == (1, *expected.shape[1:])


def test_errors_say_what_to_give():
    for question, answer, message in (
        (Categories(["yes", "no"]), "maybe", r"outside the domain \(yes, no\): give one"),
        (Categories(map(str, range(30))), "x", r"8, 9, \.\.\.\)"),
        (Mean(0, 2), 3, r"outside \[0, 2\]"),
        (Mean(0, 2), "two", "not a number: write it like 12.5"),
        (AnswerSets(["abc", "b"], max_answers=1), ["abc", "b"], "give at most max_answers = 1"),
        (Categories(["yes", "no"]), None, "there is no answer"),
    ):
        with pytest.raises(DataError, match=message):
            question.value_of_one(answer)
