"""Columns of a table that answer a question, of whichever kind.

What reads files is loaded when it is used: the command line loads this file for its options.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.core.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.collection.question import Question
    from shuffledp.collection.source.tables import Column
    from shuffledp.core.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a table; each kind of question knows some of it."""

    other: bool = False
    missing: str = "error"
    clip: bool = False
    separator: str | None = None
    truncate: bool = False
    csv_separator: str | None = None
    header: bool = True


def open_answers(
    table: Path,
    column: str | None,
    listed: tuple[str, ...] | None,
    reading: Reading,
    on_progress: "Progress | None",
) -> "tuple[Question, Column]":
    """Open a column of single answers; the question follows from it where none were listed."""
    from shuffledp.collection.questions import Categories
    from shuffledp.collection.source.answers import open_table

    answers = open_table(
        table,
        column or "",
        domain=listed,
        other=reading.other,
        missing=reading.missing,
        on_progress=on_progress,
        csv_separator=reading.csv_separator,
        header=reading.header,
    )
    return Categories(domain=answers.domain), answers


def open_column(
    question: Any,
    table: Path,
    column: str | None,
    reading: Reading,
    on_progress: "Progress | None" = None,
) -> "Column":
    """Open the columns that answer a question."""
    from shuffledp.collection.source.answer_sets import open_answer_sets
    from shuffledp.collection.source.answers import open_words
    from shuffledp.collection.source.numbers import Ball, Range, open_numbers

    if column is None and question.kind != "vector-mean":
        raise ParameterError("column is missing: name the column with the values")
    if question.kind == "frequencies":
        return open_answers(table, column, question.domain, reading, on_progress)[1]
    common: Any = {
        "on_progress": on_progress,
        "csv_separator": reading.csv_separator,
        "header": reading.header,
    }
    if question.kind == "words":
        return open_words(table, column or "", missing=reading.missing, **common)
    if question.kind == "answer-sets":
        return open_answer_sets(
            table,
            column or "",
            domain=question.domain,
            max_answers=question.max_answers,
            separator=";" if reading.separator is None else reading.separator,
            truncate=reading.truncate,
            **common,
        )
    is_mean = question.kind == "mean"
    limits = (
        Range(low=question.low, high=question.high)
        if is_mean
        else Ball(norm_bound=question.norm_bound)
    )
    return open_numbers(
        table,
        (column or "") if is_mean else question.names,
        limits=limits,
        clip=reading.clip,
        missing=reading.missing,
        **common,
    )
