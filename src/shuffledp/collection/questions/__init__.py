"""Kinds of questions, one file each, and opening a file that answers one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, SupportsIndex

from shuffledp.collection.source import tables
from shuffledp.collection.source.columns import Column
from shuffledp.collection.source.weights import Weights, drawn
from shuffledp.core.errors import ParameterError
from shuffledp.core.progress import Progress, no_progress

if TYPE_CHECKING:
    from shuffledp.collection.questions.question import Question

KINDS = {
    "frequencies": "shuffledp.collection.questions.categories:Categories",
    "answer-sets": "shuffledp.collection.questions.answer_sets:AnswerSets",
    "distribution": "shuffledp.collection.questions.distribution:Distribution",
    "mean": "shuffledp.collection.questions.mean:Mean",
    "vector-mean": "shuffledp.collection.questions.vector_mean:VectorMean",
    "heavy-hitters": "shuffledp.collection.questions.heavy_hitters:HeavyHitters",
    "columns": "shuffledp.collection.questions.columns:Columns",
    "mean-by-group": "shuffledp.collection.questions.mean_by_group:MeanByGroup",
}
"""Home of each kind, loaded at first use."""

# Reads a column of answers, listed or not.
_ANSWERS = "shuffledp.collection.questions.categories:answers"


def question_from_json(particulars: Any, labels: Iterable[str]) -> "Question":
    """Return the question of ``to_json_dict`` and ``labels``; `KeyError` for an unknown kind."""
    question: Question = resolve_name(KINDS[particulars["kind"]]).from_json(particulars, labels)
    return question


def open_column(  # noqa: PLR0913  # one keyword an option
    path: str | PathLike[str],
    column: str | None,
    question: Any = None,
    *,
    csv_separator: str | None = None,
    header: bool = True,
    decimal: str | None = None,
    missing_texts: Sequence[str] = (),
    weight: str | None = None,
    most_weight: float | None = None,
    seed: SupportsIndex | None = None,
    on_progress: Progress | None = None,
    **reading: Any,
) -> Column:
    r"""Open the columns of a file that answer a question, and check every value of them.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file in which each row is one user; ``"-"`` is text on
        standard input. Text is UTF-8 or, with its mark, UTF-16, and may be packed (``.csv.gz``).
    column : str or None
        Name of the column with the values; None for vectors, whose question names the columns. For
        means by group the column of numbers, if it is not ``question.name``.
        Sets of answers are texts with separators, or in Parquet also lists of texts.
    question : Categories, Mean, MeanByGroup, VectorMean or AnswerSets, optional
        The question. Without it a list of answers is read from the file: then the list depends on
        the data, as the ``cautions`` of the column state.
    csv_separator : str, optional
        Separator of the fields of text, one character; by default the one of comma, semicolon, tab
        and bar that fits the first two rows.
    header : bool
        True if the first row of text names the columns; otherwise they are column_1, column_2, ...
    decimal : {".", ","}, optional
        The decimal mark of all numbers in text; the other one then groups thousands. By default a
        point, and between semicolons the one that the file's numbers show.
    missing_texts : sequence of str
        Texts that stand for no value, such as ``"NA"`` or ``"-99"``, beside empty, nan and null.
    weight : str, optional
        Name of a column of public weights, positive and finite, by which users with a value are
        drawn, as in ``shuffledp.Weights``. Takes 8 bytes a user.
    most_weight : float, optional
        Weights above this count as this; by default the largest.
    seed : int, optional
        Seed of the draw, for a reproducible simulation.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).
    missing : {"error", "drop", "category"}
        Treatment of rows without a value: stop, leave them out, or, for answers, count them as one
        more answer ``"missing"``.
    other : bool
        For answers: count answers outside the domain as one more, ``"other"``.
    clip : bool
        For numbers and vectors: move values outside the limits to the nearest value inside.
    separator : str
        For sets: separator of two answers of one user, by default ``";"``.
    truncate : bool
        For sets: keep the first different answers of users with too many.

    Returns
    -------
    Column
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or the column cannot be used, a row has no value, or there are fewer than two
        users.
    DomainError
        If a value lies outside the domain or the limits, or fewer than two answers are possible;
        the message counts such values and names the row of the first.
    ParameterError
        If a way of reading does not fit the question, or the weight is one of its columns.

    Examples
    --------
    >>> import tempfile, shuffledp as sdp
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "answers.csv")
    ...     _ = path.write_text("answer\nyes\nno\nno\n")
    ...     column = open_column(path, "answer", sdp.Categories(["yes", "no"]))
    ...     next(column.blocks()).tolist()
    [0, 1, 1]
    """
    reads = ("missing", "other") if question is None else question.reads
    if unfit := [name for name in reading if name not in reads]:
        raise ParameterError(f"{unfit[0]}=... makes no sense for this question: leave it out")
    if question is not None and question.table_columns:
        names = question.table_columns
        if column is not None and hasattr(question, "by"):
            names = question.by, column
    elif column is None:
        raise ParameterError("column is missing: name the column with the values, column=...")
    else:
        names = (column,)
    if weight in names or (weight is None and most_weight is not None):
        raise ParameterError(
            f"weight = {weight!r}, most_weight = {most_weight}: name a column of public weights, "
            "which is none of those asked about, or leave both out"
        )
    beside = () if weight is None else (weight,)
    source = tables.open_source(
        path,
        *names,
        *beside,
        csv_separator=csv_separator,
        header=header,
        decimal=decimal,
        missing_texts=missing_texts,
    )
    read = partial(resolve_name(_ANSWERS), domain=None) if question is None else question.read
    found: Column = read(
        replace(
            source,
            names=names,
            weight=weight,
            reading=tables.Reading(**reading),
            report=on_progress or no_progress,
        )
    )
    if found.weights is not None:
        found = drawn(found, Weights(found.weights.weights, most_weight), seed)
    return found
