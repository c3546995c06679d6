"""``AnswerColumn``: one column of answers, one row a user, read as a stream of integer codes.

Two passes over the data. The first counts the users and checks every value (`survey_column`);
the second, `AnswerColumn.blocks`, hands out codes to be randomized, each exactly once. Memory is
bounded by the size of a block, whatever the number of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.column import (
    BLOCK_ROWS,
    MissingPolicy,
    changed,
    dropped_caution,
    policy_of,
    rows_text,
    too_few_users,
)
from shuffledp.collection.source.labels import (
    MISSING_TEXTS,
    label_expression,
    require_two_answers,
    sorted_labels,
)
from shuffledp.collection.source.reading import reading
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """A checked column of answers: who could have said what, and a stream of codes.

    Made by `open_table` and `answers_from_values`. It holds no tally of the true answers, so
    printing it gives nothing away beyond the domain and the number of users.

    Parameters
    ----------
    name : str
        Name of the column.
    origin : str
        Where it comes from, for messages and ``privacy.json``.
    domain : tuple of str
        The ``k`` possible answers; a code is an index into it.
    num_users : int
        Number of rows that take part.
    num_missing : int
        Number of rows without an answer that were dropped.
    domain_is_discovered : bool
        True if the domain was read from the data, hence depends on them.
    """

    name: str
    origin: str
    domain: tuple[str, ...]
    num_users: int
    num_missing: int
    domain_is_discovered: bool
    _frame: "pl.LazyFrame" = field(repr=False)
    _coding: "_Coding" = field(repr=False)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading the column adds to the assumptions, one sentence each."""
        cautions: list[str] = []
        if self.domain_is_discovered:
            cautions.append(
                "The list of answers was read from the data, and the guarantee holds for a list "
                "fixed beforehand: pass --domain (domain= in Python)."
            )
        if self.num_missing:
            cautions.append(
                dropped_caution(self.num_missing, self.num_users, "--missing category hides it")
            )
        return tuple(cautions)

    def blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the codes of all users in file order; a second call reads the data again.

        Yields
        ------
        ndarray of int32, shape (m,)
            Codes in ``[0, k)``, at most `BLOCK_ROWS` a block, `num_users` in total.

        Raises
        ------
        DataError
            If the data are no longer those that were checked.
        """
        num_seen = 0
        with reading(self.origin):
            for raw in raw_codes(self._frame, self._coding.categories):
                codes = self._coding.code_of[raw]
                if self.num_missing:
                    codes = codes[codes != _DROPPED]
                num_seen += codes.size
                if num_seen > self.num_users or (codes.size and codes.min() < 0):
                    raise changed(self.origin)
                yield codes
        if num_seen != self.num_users:
            raise changed(self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coding:
    """The domain, the texts that are recognised, and the code of each of them, null, outside."""

    domain: tuple[str, ...]
    categories: tuple[str, ...]
    code_of: NDArray[np.int32]


def raw_codes(
    frame: "pl.LazyFrame", categories: tuple[str, ...], *, check_all_columns: bool = False
) -> Iterator[NDArray[np.uint32]]:
    """Yield for each row its index into ``categories``; then one code for null, one for outside.

    ``frame`` has a column ``label`` of text. Null is ``len(categories)``, a label outside is one
    more. The cast to an Enum is a hash look-up inside polars' streaming engine.
    """
    import polars as pl

    label = pl.col("label")
    null, outside = (pl.lit(len(categories) + i, pl.UInt32) for i in (0, 1))
    code = pl.coalesce(
        label.cast(pl.Enum(list(categories)), strict=False).to_physical().cast(pl.UInt32),
        pl.when(label.is_null()).then(null).otherwise(outside),
    )
    batches = frame.select(code.alias("code")).collect_batches(
        chunk_size=BLOCK_ROWS,
        optimizations=pl.QueryOptFlags(projection_pushdown=not check_all_columns),
    )
    for batch in batches:
        yield batch.to_series().to_numpy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A column before its first pass: a lazy frame, and how to speak about it.

    ``check_all_columns`` makes the first pass parse whole rows, so that a CSV row with a stray
    comma is an error rather than a shifted answer.
    """

    frame: "pl.LazyFrame"
    name: str
    dtype: "pl.DataType"
    origin: str
    check_all_columns: bool = False

    @property
    def where(self) -> str:
        """The column and its origin, for messages."""
        return f"column {self.name!r} of {self.origin}"

    def labels(self) -> "pl.LazyFrame":
        """Return the frame with one column ``label``."""
        return self.frame.select(label_expression(self.name, self.dtype).alias("label"))


def survey_column(
    source: Source,
    *,
    domain: tuple[str, ...] | None = None,
    other: bool = False,
    missing: MissingPolicy | str = MissingPolicy.ERROR,
    on_progress: Progress | None = None,
) -> AnswerColumn:
    """Make the first pass: count the users, check every value, and settle the domain.

    Parameters
    ----------
    source : Source
        The column.
    domain : tuple of str, optional
        The possible answers. Without it they are read from the data, which the result says.
    other : bool
        Put every value outside the domain into one more answer, ``"other"``.
    missing : {"error", "drop", "category"}
        What to do with rows without an answer: stop, leave them out, or one more answer
        ``"missing"``.
    on_progress : callable, optional
        See `Progress`.

    Returns
    -------
    AnswerColumn
        Ready for the second pass.

    Raises
    ------
    DataError
        If there are fewer than two users, or missing values under ``missing="error"``.
    DomainError
        If a value lies outside the domain, or the domain has fewer than two answers.
    """
    policy = policy_of(missing)
    if other and domain is None:
        raise ParameterError("other = True needs a domain: pass domain= (--domain yes,no)")
    report = on_progress or no_progress
    listed = discovered_domain(source, report) if domain is None else domain
    coding = _coding(listed, other=other, policy=policy)
    if domain is not None:
        require_two_answers(coding.domain, "domain")
    frame = source.labels()
    tally = np.zeros(len(coding.code_of), dtype=np.int64)
    for raw in raw_codes(frame, coding.categories, check_all_columns=source.check_all_columns):
        tally += np.bincount(raw, minlength=len(tally))
        report("checking", int(tally.sum()), None)
    report("checking", int(tally.sum()), int(tally.sum()))
    _require_every_row_coded(source, coding, tally)
    num_missing = int(tally[coding.code_of == _DROPPED].sum())
    num_users = int(tally.sum()) - num_missing
    _require_users(source, num_users, num_missing)
    require_two_answers(coding.domain, source.where)
    return AnswerColumn(
        name=source.name,
        origin=source.origin,
        domain=coding.domain,
        num_users=num_users,
        num_missing=num_missing,
        domain_is_discovered=domain is None,
        _frame=frame,
        _coding=coding,
    )


def discovered_domain(source: Source, report: Progress) -> tuple[str, ...]:
    """Return the distinct labels of a column in a fixed order, without those for "no answer"."""
    found: set[str] = set()
    num_rows = 0
    distinct = source.labels().collect_batches(chunk_size=BLOCK_ROWS)
    for batch in distinct:
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
    for raw in raw_codes(source.labels(), coding.categories):
        hits = np.flatnonzero(coding.code_of[raw] == code)
        if hits.size:
            row = start + int(hits[0])
            return row + 1, source.labels().slice(row, 1).collect().item()
        start += raw.size
    raise changed(source.origin)


def _require_users(source: Source, num_users: int, num_missing: int) -> None:
    """Raise unless at least two users remain."""
    if num_users >= 2:
        return
    left = f" with an answer ({rows_text(num_missing)} without)" if num_missing else ""
    raise too_few_users(f"{source.where} has {rows_text(num_users)}{left}")
