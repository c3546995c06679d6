"""Columns of labels: `AnswerColumn`, an answer out of a list a user, and `WordColumn`, any text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    MISSING_TEXTS,
    MissingPolicy,
    Source,
    as_checked,
    changed,
    checked_domain,
    dropped_caution,
    open_source,
    require_two_answers,
    require_users,
    rows_text,
    sorted_labels,
    source_of_values,
)
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
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
class AnswerColumn:
    """A checked column of answers: who could have said what, and a stream of codes.

    It holds no tally of the true answers, so printing it gives nothing away beyond the domain and
    the number of users. ``domain_is_discovered`` if the domain was read from the data.
    """

    name: str
    origin: str
    domain: tuple[str, ...]
    num_users: int
    num_missing: int
    domain_is_discovered: bool
    _source: Source = field(repr=False)
    _coding: "_Coding" = field(repr=False)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading the column adds to the assumptions, one sentence each."""
        remedy = "--missing category hides it"
        dropped = dropped_caution(self.num_missing, self.num_users, remedy)
        if not self.domain_is_discovered:
            return dropped
        return (
            "The list of answers was read from the data, and the guarantee holds for a list "
            "fixed beforehand: pass --domain (domain= in Python).",
            *dropped,
        )

    def blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the codes of all users in file order; a second call reads the data again."""
        return as_checked(self._codes(), self.origin, self.num_users)

    def _codes(self) -> Iterator[NDArray[np.int32]]:
        """Yield codes in [0, k) of those who take part."""
        for raw in raw_codes(self._source, self._coding.categories):
            codes = self._coding.code_of[raw]
            if self.num_missing:
                codes = codes[codes != _DROPPED]
            if codes.size and codes.min() < 0:
                raise changed(self.origin)
            yield codes


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
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> AnswerColumn:
    """Open a column of a file in which each row is one user, and check every value of it.

    Parameters
    ----------
    path : str or path-like
        A ``.csv`` (comma), ``.tsv`` (tab) or ``.parquet`` file; CSV in UTF-8 with a header.
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
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    AnswerColumn
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
        open_source(path, column),
        domain=None if domain is None else checked_domain(domain),
        other=other,
        missing=missing,
        on_progress=on_progress,
    )


def answers_from_values(
    values: Iterable[object],
    *,
    domain: Iterable[object] | None = None,
    other: bool = False,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    name: str = "answer",
) -> AnswerColumn:
    """Check answers in memory: a list, NumPy array, or polars or pandas series, one a user."""
    return survey_column(
        source_of_values(name, values),
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
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> AnswerColumn:
    """Make the first pass: count the users, check every value, and settle the domain."""
    policy = MissingPolicy.named(missing)
    if other and domain is None:
        raise ParameterError("other = True needs a domain: pass domain= (--domain yes,no)")
    report = on_progress or no_progress
    listed = discovered_domain(source, report) if domain is None else domain
    coding = _coding(listed, other=other, policy=policy)
    if domain is not None:
        require_two_answers(coding.domain, "domain")
    tally = np.zeros(len(coding.code_of), dtype=np.int64)
    for raw in raw_codes(source, coding.categories, check=True):
        tally += np.bincount(raw, minlength=len(tally))
        report("checking", int(tally.sum()), None)
    report("checking", int(tally.sum()), int(tally.sum()))
    _require_every_row_coded(source, coding, tally)
    num_missing = int(tally[coding.code_of == _DROPPED].sum())
    num_users = int(tally.sum()) - num_missing
    left = f" with an answer ({rows_text(num_missing)} without)" if num_missing else ""
    require_users(num_users, f"{source.where} has {rows_text(num_users)}{left}")
    require_two_answers(coding.domain, source.where)
    return AnswerColumn(
        name=source.names[0],
        origin=source.origin,
        domain=coding.domain,
        num_users=num_users,
        num_missing=num_missing,
        domain_is_discovered=domain is None,
        _source=source,
        _coding=coding,
    )


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
                "list of answers: choose another column, or list the answers with --domain and "
                "put the rest into one with --other"
            )
        report("reading the answers", num_rows, None)
    report("reading the answers", num_rows, num_rows)
    return sorted_labels(found)


def _coding(listed: tuple[str, ...], *, other: bool, policy: MissingPolicy) -> _Coding:
    """Settle the domain and what becomes of each listed, missing or outside value."""
    extra = (OTHER_LABEL,) * other + (MISSING_LABEL,) * (policy is MissingPolicy.CATEGORY)
    domain = listed + tuple(label for label in extra if label not in listed)
    categories = listed + tuple(text for text in MISSING_TEXTS if text not in listed)
    code_of = np.arange(len(categories) + 2, dtype=np.int32)
    code_of[len(listed) : -1] = {
        MissingPolicy.ERROR: _MISSING,
        MissingPolicy.DROP: _DROPPED,
        MissingPolicy.CATEGORY: domain.index(extra[-1]) if extra else _MISSING,
    }[policy]
    code_of[-1] = domain.index(OTHER_LABEL) if other else _OUTSIDE
    code_of.flags.writeable = False
    return _Coding(domain=domain, categories=categories, code_of=code_of)


def _require_every_row_coded(source: Source, coding: _Coding, tally: NDArray[np.int64]) -> None:
    """Raise for missing and outside values: how many there are, and the first."""
    num_missing = int(tally[coding.code_of == _MISSING].sum())
    if num_missing:
        row, _ = _first_row(source, coding, _MISSING)
        raise DataError(
            f"{source.where} has {rows_text(num_missing)} without an answer (null, NaN or empty), "
            f"the first is row {row:,}: pass --missing drop to leave them out, or --missing "
            f"category to count them as {MISSING_LABEL!r}"
        )
    num_outside = int(tally[coding.code_of == _OUTSIDE].sum())
    if num_outside:
        row, label = _first_row(source, coding, _OUTSIDE)
        shown = ", ".join(coding.domain[:10]) + ", ..." * (len(coding.domain) > 10)
        raise DomainError(
            f"row {row:,} of {source.where} holds a value{value_note(label)} outside the domain "
            f"({shown}); "
            f"{rows_text(num_outside)} of {int(tally.sum()):,} hold such values: add it to "
            f"--domain, or pass --other to count such values as {OTHER_LABEL!r}"
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
@dataclass(frozen=True, slots=True, kw_only=True)
class WordColumn:
    """Checked texts of all users, from an open domain."""

    name: str
    origin: str
    num_users: int
    num_missing: int
    _source: Source = field(repr=False)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading the column adds to the assumptions, one sentence each."""
        return dropped_caution(self.num_missing, self.num_users)

    def blocks(self) -> "Iterator[pl.Series]":
        """Yield the texts of all users in file order; a second call reads the data again."""
        present = (texts.drop_nulls() for texts in _texts(self._source))
        return as_checked(present, self.origin, self.num_users)


def open_words(
    path: str | PathLike[str],
    column: str,
    *,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> WordColumn:
    """Open a column of texts of a file in which each row is one user.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file.
    column : str
        Name of the column. What is no text is read as its label: 1 as ``"1"``.
    missing : {"error", "drop"}
        What to do with rows without a text.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    WordColumn
        Checked, and ready to be read once more.

    Raises
    ------
    DataError
        If the file or the column cannot be used, a row has no text, or there are fewer than two
        users.
    """
    return _survey_words(open_source(path, column), missing=missing, report=on_progress)


def words_from_values(values: Iterable[object], *, name: str = "word") -> WordColumn:
    """Check texts in memory: a list, NumPy array, or polars or pandas series, one a user."""
    return _survey_words(source_of_values(name, values))


def _survey_words(
    source: Source,
    *,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    report: Progress | None = None,
) -> WordColumn:
    """Make the first pass: count the users, and find rows without a text."""
    policy = MissingPolicy.named(missing, unless="words")
    report = report or no_progress
    num_rows = num_missing = 0
    for texts in _texts(source, check=True):
        is_missing = texts.is_null()
        if policy is MissingPolicy.ERROR and is_missing.any():
            row = num_rows + int(is_missing.arg_max() or 0) + 1
            raise DataError(
                f"row {row:,} of {source.where} has no text: pass --missing drop to leave such "
                "rows out"
            )
        num_missing += int(is_missing.sum())
        num_rows += len(texts)
        report("checking", num_rows, None)
    report("checking", num_rows, num_rows)
    num_users = num_rows - num_missing
    require_users(num_users, f"{source.where} has {num_users} texts")
    return WordColumn(
        name=source.names[0],
        origin=source.origin,
        num_users=num_users,
        num_missing=num_missing,
        _source=source,
    )


def _texts(source: Source, *, check: bool = False) -> "Iterator[pl.Series]":
    """Yield the texts of all rows, null where there is none."""
    import polars as pl

    label = pl.col("label")
    texts = pl.when(~label.is_in(list(MISSING_TEXTS))).then(label)
    for batch in source.batches(source.labels().select(texts.alias("text")), check=check):
        yield batch.to_series()
