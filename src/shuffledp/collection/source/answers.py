"""Columns of labels: an answer out of a list a user, or any text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    MISSING_TEXTS,
    Column,
    Source,
    changed,
    checked_domain,
    counted,
    dropped_caution,
    no_answers,
    open_source,
    require_missing,
    require_two_answers,
    require_users,
    rows_text,
    sorted_labels,
    source_of_values,
)
from shuffledp.core.display import value_note
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress

if TYPE_CHECKING:
    import polars as pl

MAX_DISCOVERED = 10_000
"""With more distinct values than this a column is an identifier or a measurement."""

OTHER_LABEL = "other"
MISSING_LABEL = "missing"

# Codes of rows that do not take part: one is left out, two stop the run.
_DROPPED, _MISSING, _OUTSIDE = -1, -2, -3


# ---------------------------------------------------------------- answers
@dataclass(frozen=True, slots=True, kw_only=True)
class _Coding:
    """The domain, the texts that are recognised, and the code of each of them, null, outside."""

    domain: tuple[str, ...]
    categories: tuple[str, ...]
    code_of: NDArray[np.int32]


def open_table(
    path: str | PathLike[str],
    column: str,
    *,
    domain: Iterable[object] | None = None,
    other: bool = False,
    missing: str = "error",
    csv_separator: str | None = None,
    header: bool = True,
    on_progress: Progress | None = None,
) -> Column:
    """Open a column of a file in which each row is one user, and check every value of it.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file. Text is UTF-8, or UTF-16 with its mark;
        ``.csv.gz`` is unpacked in memory, and ``"-"`` is text on standard input.
    column : str
        Name of the column with the answers.
    domain : iterable, optional
        The possible answers. Without it they are read from the file: then the list depends on
        the data, which the ``cautions`` of the column say.
    other : bool
        Count values outside the domain as one more answer, ``"other"``.
    missing : {"error", "drop", "category"}
        What to do with rows without an answer: stop, leave them out, or one more answer
        ``"missing"``.
    csv_separator : str, optional
        What stands between the fields of a text table; told from its first two rows by default.
    header : bool
        Whether the first row of a text table names its columns; otherwise they are called
        ``column_1``, ``column_2`` and so on.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    Column
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or the column cannot be used, a row has no answer, or there are fewer than two
        users.
    DomainError
        If a value lies outside the domain, or fewer than two answers are possible.
    """
    return survey_column(
        open_source(path, column, csv_separator=csv_separator, header=header),
        domain=None if domain is None else checked_domain(domain),
        other=other,
        missing=missing,
        report=on_progress or no_progress,
    )


def answers_from_values(
    values: Iterable[object],
    *,
    domain: Iterable[object] | None = None,
    other: bool = False,
    missing: str = "error",
) -> Column:
    """Check answers in memory: a list, or an array or series of any library, one a user."""
    return survey_column(
        source_of_values("answer", values),
        domain=None if domain is None else checked_domain(domain),
        other=other,
        missing=missing,
    )


def raw_codes(
    source: Source, categories: tuple[str, ...], *, check: bool = False
) -> Iterator[NDArray[np.uint32]]:
    """Yield for each row its index into ``categories``; then one code for null, one for outside.

    The cast to an Enum is a hash look-up inside polars' streaming engine.
    """
    import polars as pl

    label = pl.col("label")
    null, outside = (pl.lit(len(categories) + i, pl.UInt32) for i in (0, 1))
    code = pl.coalesce(
        label.cast(pl.Enum(list(categories)), strict=False).to_physical().cast(pl.UInt32),
        pl.when(label.is_null()).then(null).otherwise(outside),
    )
    for batch in source.batches(source.labels().select(code.alias("code")), check=check):
        yield batch.to_series().to_numpy()


def survey_column(
    source: Source,
    *,
    domain: tuple[str, ...] | None = None,
    other: bool = False,
    missing: str = "error",
    report: Progress = no_progress,
) -> Column:
    """Make the first pass: count the users, check every value, and settle the domain."""
    require_missing(missing)
    if other and domain is None:
        raise ParameterError("other=True needs a domain: pass domain=[...]")
    listed = discovered_domain(source, report) if domain is None else domain
    coding = _coding(listed, other=other, missing=missing)
    if domain is not None:
        require_two_answers(coding.domain, "domain")
    tally = np.zeros(len(coding.code_of), dtype=np.int64)
    for _, raw in counted(raw_codes(source, coding.categories, check=True), report):
        tally += np.bincount(raw, minlength=len(tally))
    _require_every_row_coded(source, coding, tally)
    num_missing = int(tally[coding.code_of == _DROPPED].sum())
    num_users = int(tally.sum()) - num_missing
    left = f" with an answer ({rows_text(num_missing)} without)" if num_missing else ""
    require_users(num_users, f"{source.where} has {rows_text(num_users)}{left}")
    require_two_answers(coding.domain, source.where)
    cautions = dropped_caution(
        num_missing, num_users, "to count them as one more answer (missing = category) hides it"
    )
    if domain is None:
        cautions = (
            "The list of answers was read from the data, and the guarantee holds for a list fixed "
            "beforehand: state the possible answers as the domain.",
            *cautions,
        )
    return Column(
        names=source.names,
        origin=source.origin,
        num_users=num_users,
        num_missing=num_missing,
        checked_for=("answers", coding.domain),
        domain=coding.domain,
        cautions=cautions,
        _read=partial(_codes, source, coding),
    )


def _codes(source: Source, coding: _Coding) -> Iterator[NDArray[np.int32]]:
    """Yield codes in [0, k) of those who take part."""
    for raw in raw_codes(source, coding.categories):
        codes = coding.code_of[raw]
        codes = codes[codes != _DROPPED]
        if codes.size and codes.min() < 0:
            raise changed(source.origin)
        yield codes


def discovered_domain(source: Source, report: Progress) -> tuple[str, ...]:
    """Return the distinct labels of a column in a fixed order, without those for "no answer"."""
    found: set[str] = set()
    num_rows = 0
    for batch in source.batches(source.labels()):
        num_rows += batch.height
        found.update(batch.get_column("label").drop_nulls().unique().to_list())
        found.difference_update(MISSING_TEXTS)
        if len(found) > MAX_DISCOVERED:
            raise DomainError(
                f"{source.where} has more than {MAX_DISCOVERED:,} distinct values, so it is no "
                "list of answers: choose another column, or list the answers with domain=[...] and "
                "put the rest into one with other=True"
            )
        report("reading the answers", num_rows, None)
    report("reading the answers", num_rows, num_rows)
    return checked_domain(sorted_labels(found), source.where)


def _coding(listed: tuple[str, ...], *, other: bool, missing: str) -> _Coding:
    """Settle the domain and what becomes of each listed, missing or outside value."""
    extra = (OTHER_LABEL,) * other + (MISSING_LABEL,) * (missing == "category")
    domain = listed + tuple(label for label in extra if label not in listed)
    categories = listed + tuple(text for text in MISSING_TEXTS if text not in listed)
    code_of = np.arange(len(categories) + 2, dtype=np.int32)
    code_of[len(listed) : -1] = {
        "error": _MISSING,
        "drop": _DROPPED,
        "category": domain.index(extra[-1]) if extra else _MISSING,
    }[missing]
    code_of[-1] = domain.index(OTHER_LABEL) if other else _OUTSIDE
    code_of.flags.writeable = False
    return _Coding(domain=domain, categories=categories, code_of=code_of)


def _require_every_row_coded(source: Source, coding: _Coding, tally: NDArray[np.int64]) -> None:
    """Raise for missing and outside values: how many there are, and the first."""
    num_missing = int(tally[coding.code_of == _MISSING].sum())
    if num_missing:
        row, _ = _first_row(source, coding, _MISSING)
        raise no_answers(source.where, num_missing, row, category=True)
    num_outside = int(tally[coding.code_of == _OUTSIDE].sum())
    if num_outside:
        row, label = _first_row(source, coding, _OUTSIDE)
        shown = ", ".join(coding.domain[:10]) + ", ..." * (len(coding.domain) > 10)
        raise DomainError(
            f"row {row:,} of {source.where} holds a value{value_note(label)} outside the domain "
            f"({shown}); "
            f"{rows_text(num_outside)} of {int(tally.sum()):,} hold such values: add it to "
            f"domain=[...], or pass other=True to count such values as {OTHER_LABEL!r}"
        )


def _first_row(source: Source, coding: _Coding, code: int) -> tuple[int, str | None]:
    """Return the number (from 1) and the label of the first row with this code."""
    start = 0
    for raw in raw_codes(source, coding.categories):
        hits = np.flatnonzero(coding.code_of[raw] == code)
        if hits.size:
            row = start + int(hits[0])
            return row + 1, source.labels().slice(row, 1).collect().item()
        start += raw.size
    raise changed(source.origin)


# ---------------------------------------------------------------- words
def open_words(
    path: str | PathLike[str],
    column: str,
    *,
    missing: str = "error",
    csv_separator: str | None = None,
    header: bool = True,
    on_progress: Progress | None = None,
) -> Column:
    """Open a column of texts of a file in which each row is one user.

    Parameters
    ----------
    path : str or path-like
        As for `open_table`.
    column : str
        Name of the column. What is no text is read as its label: 1 as ``"1"``.
    missing : {"error", "drop"}
        What to do with rows without a text.
    csv_separator, header, on_progress
        As for `open_table`.

    Returns
    -------
    Column
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or the column cannot be used, a row has no text, or there are fewer than two
        users.
    """
    source = open_source(path, column, csv_separator=csv_separator, header=header)
    return _survey_words(source, missing, on_progress or no_progress)


def words_from_values(values: Iterable[object], *, missing: str = "error") -> Column:
    """Check texts in memory: a list, or an array or series of any library, one a user."""
    return _survey_words(source_of_values("word", values), missing, no_progress)


def _survey_words(source: Source, missing: str, report: Progress) -> Column:
    """Make the first pass: count the users, and find rows without a text."""
    require_missing(missing, unless="words")
    num_rows = num_missing = first = 0
    for start, texts in counted(_texts(source, check=True), report):
        is_missing = texts.is_null()
        if not num_missing and is_missing.any():
            first = start + int(is_missing.arg_max() or 0) + 1
        num_missing += int(is_missing.sum())
        num_rows += len(texts)
    if missing == "error" and num_missing:
        raise no_answers(source.where, num_missing, first, category=False)
    num_users = num_rows - num_missing
    require_users(num_users, f"{source.where} has {num_users} texts")
    return Column(
        names=source.names,
        origin=source.origin,
        num_users=num_users,
        num_missing=num_missing,
        checked_for=("texts",),
        cautions=dropped_caution(num_missing, num_users),
        _read=lambda: (texts.drop_nulls() for texts in _texts(source)),
    )


def _texts(source: Source, *, check: bool = False) -> "Iterator[pl.Series]":
    """Yield the texts of all rows, null where there is none."""
    import polars as pl

    label = pl.col("label")
    texts = pl.when(~label.is_in(list(MISSING_TEXTS))).then(label)
    for batch in source.batches(source.labels().select(texts.alias("text")), check=check):
        yield batch.to_series()
