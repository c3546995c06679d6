"""``AnswerSetColumn``: several answers per person, as a text with separators or as lists."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.column import BLOCK_ROWS, changed, rows_text, too_few_users
from shuffledp.collection.source.labels import checked_domain, require_two_answers
from shuffledp.collection.source.reading import reading
from shuffledp.collection.source.tables import is_text_table, require_column, scan
from shuffledp.core.checks import require_at_least
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.randomizers.answer_sets import NO_ANSWER

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSetColumn:
    """Checked sets of answers of all users. Made by `open_answer_sets` and from values.

    Parameters
    ----------
    name : str
        Name of the column.
    origin : str
        Where it comes from, for messages and ``privacy.json``.
    domain : tuple of str
        The ``k`` possible answers; a code is an index into it.
    max_answers : int
        The most answers a user may give, s.
    num_users : int
        Number of rows; a row without any answer is an empty set, and takes part.
    """

    name: str
    origin: str
    domain: tuple[str, ...]
    max_answers: int
    num_users: int
    _frame: "pl.LazyFrame" = field(repr=False)
    _truncate: bool = field(repr=False)

    @property
    def num_missing(self) -> int:
        """Always 0: having no answer is an answer here."""
        return 0

    @property
    def cautions(self) -> tuple[str, ...]:
        """Nothing: every row takes part, and the domain is stated."""
        return ()

    def blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the sets of all users in file order; a second call reads the data again.

        Yields
        ------
        ndarray of int32, shape (m, s)
            Codes in ``[0, k)``, then -1; `num_users` rows in total.

        Raises
        ------
        DataError
            If the data are no longer those that were checked.
        """
        num_seen = 0
        with reading(self.origin):
            for batch in _batches(self._frame, self.domain):
                num_seen += batch.num_rows
                too_many = not self._truncate and batch.largest > self.max_answers
                if num_seen > self.num_users or batch.first_outside is not None or too_many:
                    raise changed(self.origin)
                yield batch.padded(self.max_answers)
        if num_seen != self.num_users:
            raise changed(self.origin)


def open_answer_sets(
    path: str | PathLike[str],
    column: str,
    *,
    domain: Iterable[object],
    max_answers: int,
    separator: str = ";",
    truncate: bool = False,
    on_progress: Progress | None = None,
) -> AnswerSetColumn:
    """Open a column in which each row holds the answers of one user, none to ``max_answers``.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.parquet`` file.
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
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).

    Returns
    -------
    AnswerSetColumn
        Checked, and ready to be read once more. Repeated answers of one user count once.

    Raises
    ------
    DataError
        If the file or the column cannot be used, or there are fewer than two users.
    DomainError
        If an answer lies outside the domain, or a user has too many.
    ParameterError
        If the separator is empty.
    """
    import polars as pl

    if not separator:
        raise ParameterError("separator is empty: give what stands between two answers, such as ;")
    location = Path(path)
    with reading(location.name):
        frame = scan(location)
        schema = frame.collect_schema()
        require_column(column, schema.names(), location)
        dtype = schema[column]
        if isinstance(dtype, pl.List) and dtype.inner == pl.String:
            lists = pl.col(column).fill_null([])
        elif dtype == pl.String:
            lists = pl.col(column).fill_null("").str.split(separator)
        else:
            raise DataError(
                f"column {column!r} of {location.name} is of type {dtype}: give text with "
                "separators, or lists of text"
            )
        return _survey_sets(
            frame.with_columns(lists.alias("answers of a user")),
            name=column,
            origin=location.name,
            domain=checked_domain(domain),
            max_answers=max_answers,
            truncate=truncate,
            report=on_progress or no_progress,
            check_all_columns=is_text_table(location),
        )


def answer_sets_from_values(
    values: Iterable[Iterable[str]],
    *,
    domain: Iterable[object],
    max_answers: int,
    truncate: bool = False,
) -> AnswerSetColumn:
    """Check sets of answers that are in memory already, one element a user.

    Parameters
    ----------
    values : iterable of iterables of str
        The answers of each user; may be empty.
    domain, max_answers, truncate
        As for `open_answer_sets`.

    Returns
    -------
    AnswerSetColumn
        Checked, and ready to be read once more.

    Raises
    ------
    DataError, DomainError
        As for `open_answer_sets`.

    Examples
    --------
    >>> column = answer_sets_from_values([["a", "c"], []], domain="abc", max_answers=2)
    >>> [block.tolist() for block in column.blocks()]
    [[[0, 2], [-1, -1]]]
    """
    import polars as pl

    lists = [list(value) for value in values]
    try:
        frame = pl.DataFrame({"answers of a user": pl.Series(lists, dtype=pl.List(pl.String))})
    except (TypeError, pl.exceptions.PolarsError):
        raise DataError("values are not lists of text: give one list of answers a user") from None
    return _survey_sets(
        frame.lazy(),
        name="answers",
        origin="values",
        domain=checked_domain(domain),
        max_answers=max_answers,
        truncate=truncate,
        report=no_progress,
        check_all_columns=False,
    )


def _survey_sets(
    frame: "pl.LazyFrame",
    *,
    name: str,
    origin: str,
    domain: tuple[str, ...],
    max_answers: int,
    truncate: bool,
    report: Progress,
    check_all_columns: bool,
) -> AnswerSetColumn:
    """Make the first pass: count the users and check every set."""
    require_two_answers(domain, "domain")
    most = require_at_least("max_answers", max_answers, 1)
    if most > len(domain):
        raise DomainError(
            f"max_answers = {most} is above the {len(domain)} answers of the domain: nobody can "
            "give more different ones"
        )
    where = f"column {name!r} of {origin}"
    num_rows = 0
    for batch in _batches(frame, domain, check_all_columns=check_all_columns):
        if batch.first_outside is not None:
            row, answer = batch.first_outside
            raise DomainError(
                f"row {num_rows + row + 1:,} of {where} holds an answer{value_note(answer)} "
                "outside the domain: add it to --domain"
            )
        if batch.largest > most and not truncate:
            row = num_rows + int(np.argmax(batch.sizes > most)) + 1
            raise DomainError(
                f"row {row:,} of {where} has {batch.sizes[row - num_rows - 1]} answers, and "
                f"max_answers = {most}: raise it, or pass --truncate to keep the first {most} of "
                "each user"
            )
        num_rows += batch.num_rows
        report("checking", num_rows, None)
    report("checking", num_rows, num_rows)
    if num_rows < 2:
        raise too_few_users(f"{where} has {rows_text(num_rows)}")
    return AnswerSetColumn(
        name=name,
        origin=origin,
        domain=domain,
        max_answers=most,
        num_users=num_rows,
        _frame=frame,
        _truncate=truncate,
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some users: whose answer each is, its code, and how many each user gave."""

    owners: NDArray[np.int64]
    codes: NDArray[np.int32]
    sizes: NDArray[np.int64]
    first_outside: tuple[int, str] | None

    @property
    def num_rows(self) -> int:
        """Number of users."""
        return self.sizes.size

    @property
    def largest(self) -> int:
        """Largest number of answers of a user."""
        return int(self.sizes.max(initial=0))

    def padded(self, max_answers: int) -> NDArray[np.int32]:
        """Return the first ``max_answers`` codes of each user, then -1."""
        places = np.arange(self.owners.size) - (np.cumsum(self.sizes) - self.sizes)[self.owners]
        kept = places < max_answers
        table = np.full((self.num_rows, max_answers), NO_ANSWER, dtype=np.int32)
        table[self.owners[kept], places[kept]] = self.codes[kept]
        return table


def _batches(
    frame: "pl.LazyFrame", domain: tuple[str, ...], *, check_all_columns: bool = False
) -> Iterator[_Batch]:
    """Yield the users of a frame with the different answers of each, in their order."""
    import polars as pl

    batches = frame.select("answers of a user").collect_batches(
        chunk_size=BLOCK_ROWS,
        optimizations=pl.QueryOptFlags(projection_pushdown=not check_all_columns),
    )
    for batch in batches:
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
