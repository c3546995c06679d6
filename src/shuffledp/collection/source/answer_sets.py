"""``AnswerSetColumn``: several answers per person, as a text with separators or as lists."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    Column,
    Source,
    changed,
    checked_domain,
    counted,
    dropped_caution,
    is_gap,
    no_answers,
    open_source,
    require_missing,
    require_sequence,
    require_two_answers,
    require_users,
    rows_text,
)
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.randomizers.answer_sets import NO_ANSWER, require_set_size


def open_answer_sets(
    path: str | PathLike[str],
    column: str,
    *,
    domain: Iterable[object],
    max_answers: int,
    separator: str = ";",
    truncate: bool = False,
    csv_separator: str | None = None,
    header: bool = True,
    on_progress: Progress | None = None,
) -> Column:
    """Open a column in which each row holds the answers of one user, none to ``max_answers``.

    Parameters
    ----------
    path : str or path-like
        As for `open_table`.
    column : str
        Name of the column: text with separators, or in Parquet also lists of text.
    domain : iterable
        The possible answers.
    max_answers : int
        The most answers a user may give, in [1, k]; known without looking at the data.
    separator : str
        What stands between two answers of one user, not empty; spaces around it do not matter.
    truncate : bool
        Keep the first ``max_answers`` different ones of users with more, instead of refusing.
    csv_separator, header, on_progress
        As for `open_table`.

    Returns
    -------
    Column
        Checked, and ready to be read once more. Repeated answers of one user count once.

    Raises
    ------
    DataError
        If the file or the column cannot be used, or there are fewer than two users.
    DomainError
        If an answer lies outside the domain, or a user has too many.
    ParameterError
        If the separator is empty, or ``max_answers`` is not in [1, k].
    """
    import polars as pl

    if not separator:
        raise ParameterError("separator is empty: give what stands between two answers, such as ;")
    source = open_source(path, column, csv_separator=csv_separator, header=header)
    dtype = source.dtypes[0]
    if isinstance(dtype, pl.List) and dtype.inner == pl.String:
        lists = pl.col(column).fill_null([])
    elif dtype == pl.String:
        lists = pl.col(column).fill_null("").str.split(separator)
    else:
        raise DataError(
            f"column {column!r} of {source.origin} is of type {dtype}: give text with "
            "separators, or lists of text"
        )
    return _survey_sets(
        replace(source, frame=source.frame.with_columns(lists.alias("answers of a user"))),
        domain=checked_domain(domain),
        max_answers=max_answers,
        truncate=truncate,
        report=on_progress or no_progress,
    )


def answer_sets_from_values(
    values: Iterable[Iterable[str]],
    *,
    domain: Iterable[object],
    max_answers: int,
    missing: str = "error",
) -> Column:
    """Check sets of answers in memory, one list of text a user."""
    import polars as pl

    require_missing(missing, unless="sets of answers")
    require_sequence("values", values)
    rows = list(values)
    gaps = [place for place, value in enumerate(rows) if is_gap(value)]
    if gaps and missing == "error":
        raise no_answers("values", len(gaps), gaps[0] + 1, category=False)
    try:
        lists = [listed(value) for value in rows if not is_gap(value)]
        frame = pl.DataFrame({"answers of a user": pl.Series(lists, dtype=pl.List(pl.String))})
    except (TypeError, pl.exceptions.PolarsError):
        raise DataError("values are not lists of text: give one list of answers a user") from None
    return _survey_sets(
        Source(frame=frame.lazy(), names=("answers",), origin="values"),
        domain=checked_domain(domain),
        max_answers=max_answers,
        truncate=False,
        report=no_progress,
        num_missing=len(gaps),
    )


def listed(value: Iterable[str | None]) -> list[str | None]:
    """Return the answers of one user."""
    if isinstance(value, str | bytes):
        raise TypeError
    return list(value)


def _survey_sets(
    source: Source,
    *,
    domain: tuple[str, ...],
    max_answers: int,
    truncate: bool,
    report: Progress,
    num_missing: int = 0,
) -> Column:
    """Make the first pass: count the users and check every set."""
    require_two_answers(domain, "domain")
    _, most = require_set_size(len(domain), max_answers)
    num_rows = 0
    for start, batch in counted(_batches(source, domain, check=True), report):
        if batch.first_outside is not None:
            row, answer = batch.first_outside
            raise DomainError(
                f"row {start + row + 1:,} of {source.where} holds an "
                f"answer{value_note(answer)} outside the domain: add it to domain=[...]"
            )
        if batch.largest > most and not truncate:
            row = int(np.argmax(batch.sizes > most))
            raise DomainError(
                f"row {start + row + 1:,} of {source.where} has {batch.sizes[row]} answers, "
                f"and max_answers = {most}: raise it, or pass truncate=True to keep the first "
                f"{most} of each user"
            )
        num_rows += len(batch)
    require_users(num_rows, f"{source.where} has {rows_text(num_rows)}")

    def sets() -> Iterator[NDArray[np.int32]]:
        """Yield codes in [0, k), then -1, of shape (m, max_answers)."""
        for batch in _batches(source, domain):
            too_many = not truncate and batch.largest > most
            if batch.first_outside is not None or too_many:
                raise changed(source.origin)
            yield batch.padded(most)

    return Column(
        names=source.names,
        origin=source.origin,
        num_users=num_rows,
        num_missing=num_missing,
        cautions=dropped_caution(num_missing, num_rows),
        checked_for=("sets", domain, most),
        domain=domain,
        _read=sets,
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some users: whose answer each is, its code, and how many each user gave."""

    owners: NDArray[np.int64]
    codes: NDArray[np.int32]
    sizes: NDArray[np.int64]
    first_outside: tuple[int, str] | None

    def __len__(self) -> int:
        return self.sizes.size

    @property
    def largest(self) -> int:
        """Largest number of answers of a user."""
        return int(self.sizes.max(initial=0))

    def padded(self, max_answers: int) -> NDArray[np.int32]:
        """Return the first ``max_answers`` codes of each user, then -1."""
        places = np.arange(self.owners.size) - (np.cumsum(self.sizes) - self.sizes)[self.owners]
        kept = places < max_answers
        table = np.full((len(self), max_answers), NO_ANSWER, dtype=np.int32)
        table[self.owners[kept], places[kept]] = self.codes[kept]
        return table


def _batches(source: Source, domain: tuple[str, ...], *, check: bool = False) -> Iterator[_Batch]:
    """Yield the users of a frame with the different answers of each, in their order."""
    import polars as pl

    for batch in source.batches(source.frame.select("answers of a user"), check=check):
        num_rows = batch.height
        flat = (
            batch.with_row_index("owner")
            .explode("answers of a user")
            .with_columns(pl.col("answers of a user").str.strip_chars().alias("answer"))
            .filter(pl.col("answer").is_not_null() & (pl.col("answer") != ""))
            .unique(["owner", "answer"], keep="first", maintain_order=True)
            .with_columns(
                pl.col("answer")
                .cast(pl.Enum(list(domain)), strict=False)
                .to_physical()
                .alias("code")
            )
        )
        is_outside = flat["code"].is_null()
        first_outside = None
        if is_outside.any():
            first = flat.filter(is_outside).row(0, named=True)
            first_outside = (int(first["owner"]), str(first["answer"]))
        owners = flat["owner"].to_numpy().astype(np.int64)
        yield _Batch(
            owners,
            flat["code"].fill_null(0).to_numpy().astype(np.int32),
            np.bincount(owners, minlength=num_rows),
            first_outside,
        )
