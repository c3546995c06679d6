"""Columns of values as a stream: what each kind of question makes of the rows of a table.

There are two passes over the data. The first counts the users and checks every value; the second
hands the values out to be randomized, each exactly once. Memory is bounded by the size of a block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.collection.source.tables import Source, rows_text
from shuffledp.core import labels as spelt
from shuffledp.core.checks import require_positive
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError, ShuffledpError
from shuffledp.core.labels import label_expression, place_expression
from shuffledp.core.lazy_polars import pl
from shuffledp.core.progress import Progress, no_progress
from shuffledp.randomizers.answer_sets import NO_ANSWER
from shuffledp.randomizers.number_randomizer import Span

MAX_DISCOVERED = 10_000
"""With more distinct values than this a column is an identifier or a measurement."""

OTHER_LABEL = "other"
MISSING_LABEL = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The checked values of all users, one row a user, as a stream that can be read once more.

    It holds no tally of the values, so printing it gives nothing away beyond the domain and the
    number of users. ``checked_for`` is compared with that of a question; ``cautions`` is what the
    way of reading adds to the assumptions, one sentence each.
    """

    num_users: int
    num_missing: int
    checked_for: tuple[object, ...]
    domain: tuple[str, ...]
    cautions: tuple[str, ...]
    _read: Callable[[], Iterator[Any]] = field(repr=False)

    def blocks(self) -> Iterator[Any]:
        """Yield the values in file order, in blocks as the randomizer takes them.

        `DataError` unless there are as many as in the first pass.
        """
        return self._read()


def open_column(
    path: str | PathLike[str],
    column: str | None,
    question: Any = None,
    *,
    csv_separator: str | None = None,
    header: bool = True,
    decimal: str | None = None,
    missing_texts: Sequence[str] = (),
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
        Name of the column with the values; None for vectors, whose question names the columns.
        Sets of answers are texts with separators, or in Parquet also lists of texts.
    question : Categories, Mean, VectorMean, Words or AnswerSets, optional
        What is asked. Without it a list of answers is read from the file: then the list depends on
        the data, which the ``cautions`` of the column say.
    csv_separator : str, optional
        What stands between the fields of text, one character; by default that of comma, semicolon,
        tab and bar which the first two rows tell.
    header : bool
        Whether the first row of text names the columns; without they are column_1, column_2, ...
    decimal : {".", ","}, optional
        The decimal mark of all numbers in text; the other one then groups thousands. By default a
        point, and between semicolons the one that the file's numbers show.
    missing_texts : sequence of str
        Texts that stand for no value, such as ``"NA"`` or ``"-99"``, beside empty, nan and null.
    on_progress : callable, optional
        Called with the stage, the rows done, and the rows in total (None while unknown).
    missing : {"error", "drop", "category"}
        What to do with rows without a value: stop, leave them out, or, of answers, count them as
        one more answer ``"missing"``.
    other : bool
        Of answers: count those outside the domain as one more, ``"other"``.
    clip : bool
        Of numbers and vectors: move those outside the limits to the nearest value inside.
    separator : str
        Of sets: what stands between two answers of one user, by default ``";"``.
    truncate : bool
        Of sets: keep the first different answers of users with too many.

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
        If a way of reading does not go with the question.

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
    report = on_progress or no_progress
    reads = ("missing", "other") if question is None else question.reads
    if unfit := [name for name in reading if name not in reads]:
        raise ParameterError(f"{unfit[0]}=... makes no sense for this question: leave it out")
    if question is not None and question.kind == "vector-mean":
        names = question.names
    elif column is None:
        raise ParameterError("column is missing: name the column with the values")
    else:
        names = (column,)
    source = tables.open_source(
        path,
        *names,
        csv_separator=csv_separator,
        header=header,
        decimal=decimal,
        missing_texts=missing_texts,
    )
    if question is None:
        return answers(source, None, report, **reading)
    found: Column = question.read(source, report, **reading)
    return found


# --------------------------------------------------------------------- the first pass
class Fault(NamedTuple):
    """What can be wrong with a value, the next thing to try, and the error that says so."""

    what: str
    remedy: str
    error: type[ShuffledpError] = DomainError


def survey(
    source: Source,
    read: "Mapping[str, pl.Expr]",
    decode: "Callable[[pl.DataFrame], tuple[Any, ...]]",
    *faults: Fault,
    missing: str,
    report: Progress,
    checked_for: tuple[object, ...],
    domain: tuple[str, ...] = (),
    unless: str = "",
) -> Column:
    """Make the first pass: count the users and check every value.

    A batch of what is ``read`` is decoded to what the randomizer takes, who has no value, and for
    each of the faults who has it. ``unless`` names values among which missing ones are no category.
    """
    tables.require_missing(missing, unless=unless)

    def decoded(*, check: bool = False) -> Iterator[tuple[Any, ...]]:
        frame = source.frame.select(each.alias(name) for name, each in read.items())
        return map(decode, source.batches(frame, check=check))

    num_rows, where = 0, source.where
    counts = firsts = np.zeros(1 + len(faults), dtype=np.int64)
    for _, *masks in decoded(check=True):
        found = np.stack(masks)
        if found.any():
            is_first = (counts == 0) & found.any(axis=1)
            firsts = np.where(is_first, num_rows + found.argmax(axis=1) + 1, firsts)
            counts = counts + found.sum(axis=1)
        num_rows += found.shape[1]
        report("checking", num_rows, None)
    report("checking", num_rows, num_rows)
    num_missing = int(counts[0])
    num_users = num_rows - num_missing
    for kind in (DataError, DomainError):
        if kind is DomainError and missing == "error" and num_missing:
            remedy = ", or missing='category' to count them as 'missing'" * (not unless)
            raise DataError(
                f"{where} has {rows_text(num_missing)} without an answer (null, NaN or empty), the "
                f"first is row {firsts[0]:,}: pass missing='drop' to leave them out{remedy}"
            )
        for fault, count, first in zip(
            faults, counts[1:].tolist(), firsts[1:].tolist(), strict=True
        ):
            if count and fault.error is kind:
                row = source.frame.select(source.names).slice(first - 1, 1).collect().row(0)
                raise kind(
                    f"row {first:,} of {where} holds a value"
                    f"{value_note(row[0] if len(row) == 1 else row)} {fault.what}; "
                    f"{rows_text(count)} of {num_rows:,} hold such values: {fault.remedy}"
                )
    without = f" ({rows_text(num_missing)} without)" if num_missing else ""
    tables.require_users(num_users, f"{where} has {rows_text(num_users)} with a value{without}")
    hidden = "; to count them as one more answer (missing = category) hides it" * (not unless)
    dropped = (
        f"Dropped: {rows_text(num_missing)} without an answer. The guarantee covers the other "
        f"{num_users:,} users, and how many were dropped is not protected{hidden}."
    )
    return Column(
        num_users=num_users,
        num_missing=num_missing,
        checked_for=checked_for,
        domain=domain,
        cautions=(dropped,) * bool(num_missing),
        _read=lambda: _values(source.origin, decoded(), num_users),
    )


def _values(origin: str, rows: Iterator[tuple[Any, ...]], num_users: int) -> Iterator[Any]:
    """Yield the values of those who take part, as many as the first pass saw."""
    num_seen = 0
    for block, is_missing, *masks in rows:
        # Anything but an array is a series of texts.
        kept = block[~is_missing] if isinstance(block, np.ndarray) else block.drop_nulls()
        num_seen += len(kept)
        if num_seen > num_users or any(mask.any() for mask in masks):
            raise tables.changed(origin)
        yield kept
    if num_seen != num_users:
        raise tables.changed(origin)


# --------------------------------------------------------------------- answers and words
def answers(
    source: Source,
    domain: tuple[str, ...] | None,
    report: Progress = no_progress,
    *,
    missing: str = "error",
    other: bool = False,
) -> Column:
    """Check a column of single answers; codes in [0, k), int32. Their list may be discovered."""
    tables.require_missing(missing)  # before the list of answers is read
    if other and domain is None:
        raise ParameterError("other=True needs a domain: pass domain=[...]")
    listed = _discovered(source, report) if domain is None else domain
    extra = (OTHER_LABEL,) * other + (MISSING_LABEL,) * (missing == "category")
    labels = listed + tuple(label for label in extra if label not in listed)
    if domain is not None:
        spelt.require_two_answers(labels, "domain")
    # What is recognised: the answers, texts for "no answer", nothing at all, and all else.
    texts = listed + source.missing_texts(listed)
    nothing, outside = len(texts), len(texts) + 1
    code_of = np.arange(outside + 1, dtype=np.int32)
    code_of[len(listed) : outside] = labels.index(extra[-1]) if extra else 0
    code_of[outside] = labels.index(OTHER_LABEL) if other else 0
    (name,), (dtype,) = source.names, source.dtypes
    gap = pl.col(name).is_null() | (pl.col(name).is_nan() if dtype.is_float() else False)
    other_place = pl.when(gap).then(nothing).otherwise(outside).cast(pl.UInt32)
    place = pl.coalesce(place_expression(name, dtype, texts), other_place)

    def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
        places = batch["place"].to_numpy()
        is_outside = places == outside
        is_missing = (places >= len(listed)) & ~is_outside & (missing != "category")
        return code_of[places], is_missing, is_outside & (not other)

    shown = ", ".join(labels[:10]) + ", ..." * (len(labels) > 10)
    remedy = f"add it to domain=[...], or pass other=True to count such values as {OTHER_LABEL!r}"
    column = survey(
        source,
        {"place": place},
        decode,
        Fault(f"outside the domain ({shown})", remedy),
        missing=missing,
        report=report,
        checked_for=("answers", labels),
        domain=labels,
    )
    if domain is not None:
        return column
    spelt.require_two_answers(labels, source.where)
    caution = (
        "The list of answers was read from the data, and the guarantee holds for a list fixed "
        "beforehand: state the possible answers as the domain."
    )
    return replace(column, cautions=(caution, *column.cautions))


def _discovered(source: Source, report: Progress) -> tuple[str, ...]:
    """Return the distinct labels of a column in a fixed order, without those for "no answer"."""
    found: set[str] = set()
    num_rows, missing = 0, source.missing_texts()
    for batch in source.batches(source.frame.select(source.label().alias("label"))):
        num_rows += batch.height
        found.update(batch["label"].drop_nulls().unique().to_list())
        found.difference_update(missing)
        if len(found) > MAX_DISCOVERED:
            raise DomainError(
                f"{source.where} has more than {MAX_DISCOVERED:,} distinct values, so it is no "
                "list of answers: choose another column, or list the answers with domain=[...] and "
                "put the rest into one with other=True"
            )
        report("reading the answers", num_rows, None)
    report("reading the answers", num_rows, num_rows)
    return spelt.checked_domain(spelt.sorted_labels(found), source.where)


def words(
    source: Source,
    dictionary: tuple[str, ...],
    report: Progress = no_progress,
    *,
    missing: str = "error",
) -> Column:
    """Check a column of any texts; series of polars."""
    read = {"text": spelt.present(source.label(), source.missing_texts(dictionary))}

    def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
        return batch["text"], batch["text"].is_null().to_numpy()

    return survey(
        source,
        read,
        decode,
        missing=missing,
        report=report,
        checked_for=texts_checked_for(dictionary),
        unless="words",
    )


def texts_checked_for(dictionary: tuple[str, ...]) -> tuple[object, ...]:
    """Return what a column of texts is checked for: which usual texts for none are words."""
    return ("texts", tuple(text for text in spelt.MISSING_TEXTS if text in dictionary))


# --------------------------------------------------------------------- numbers and vectors
def numbers(
    source: Source,
    limits: "Limits",
    report: Progress = no_progress,
    *,
    is_vector: bool = False,
    missing: str = "error",
    clip: bool = False,
) -> Column:
    """Check columns of numbers; shape (m,), or (m, d) for vectors, float64."""
    read = {str(place): each for place, each in enumerate(source.numbers())}

    def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
        values = np.ascontiguousarray(batch.to_numpy(), dtype=np.float64)
        is_null = batch.select(pl.all().is_null()).to_numpy()
        is_missing = np.asarray((np.isnan(values) & ~is_null).any(axis=1))
        is_bad = np.asarray(is_null.any(axis=1)) & ~is_missing
        is_outside = limits.outside(values) & ~(is_missing | is_bad)
        if clip and is_outside.any():
            values = values.copy()
            values[is_outside] = limits.clip(values[is_outside])
        return values if is_vector else values[:, 0], is_missing, is_bad, is_outside & (not clip)

    remedy = "write numbers like 12.5, and leave unknown ones empty"
    wider = "state wider limits, or pass clip=True to move them to the nearest value inside"
    return survey(
        source,
        read,
        decode,
        Fault("that is no number", remedy, DataError),
        Fault(f"outside {limits}", wider),
        missing=missing,
        report=report,
        checked_for=("vectors", source.names, limits) if is_vector else ("numbers", limits),
        unless="numbers",
    )


# --------------------------------------------------------------------- sets of answers
def answer_sets(
    source: Source,
    domain: tuple[str, ...],
    most: int,
    report: Progress = no_progress,
    *,
    missing: str = "error",
    separator: str = ";",
    truncate: bool = False,
) -> Column:
    """Check a column of sets; codes in [0, k), then -1, shape (m, most), int32.

    An empty text is an empty set; in a column of lists null is a missing one.
    """
    if not separator:
        raise ParameterError("separator is empty: give what stands between two answers, such as ;")
    (name,), (dtype,) = source.names, source.dtypes
    is_text = dtype == pl.String
    if not is_text and not (isinstance(dtype, pl.List) and dtype.inner == pl.String):
        raise DataError(
            f"column {name!r} is of type {dtype}: give text with separators, or lists of text"
        )
    lists = pl.col(name)
    if is_text:
        label, absent = source.label(), [*filter(None, source.missing_texts(domain))]
        held = pl.when(~label.is_in(absent).fill_null(value=False)).then(lists.fill_null(""))
        lists = held.str.split(separator)
    code = pl.col("answer").cast(pl.Enum(list(domain)), strict=False).to_physical()

    def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
        flat = (
            batch.with_row_index("owner")
            .explode("answer")
            .with_columns(label_expression("answer", pl.String()))
            .filter(pl.col("answer").is_not_null() & (pl.col("answer") != ""))
            .unique(["owner", "answer"], keep="first", maintain_order=True)
            .with_columns(code.alias("code"))
        )
        owners = flat["owner"].to_numpy().astype(np.int64)
        codes = flat["code"].fill_null(0).to_numpy().astype(np.int32)
        sizes = np.bincount(owners, minlength=batch.height)
        strays = owners[flat["code"].is_null().to_numpy()]
        is_outside = np.bincount(strays, minlength=batch.height) > 0
        places = np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners]
        kept = places < most
        table = np.full((batch.height, most), NO_ANSWER, dtype=np.int32)
        table[owners[kept], places[kept]] = codes[kept]
        is_missing = batch["answer"].is_null().to_numpy()
        return table, is_missing, is_outside, (sizes > most) & (not truncate)

    fewer = f"raise it, or pass truncate=True to keep the first {most} of each user"
    return survey(
        source,
        {"answer": lists},
        decode,
        Fault("with an answer outside the domain", "add it to domain=[...]"),
        Fault(f"of more than max_answers = {most} answers", fewer),
        missing=missing,
        report=report,
        checked_for=("sets", domain, most),
        domain=domain,
        unless="sets of answers",
    )


# --------------------------------------------------------------------- limits
# They are stated beforehand: limits that were read from the data would depend on the users that
# they are to protect.
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True)
class Range(Span):
    """Numbers between two limits, low < high; both belong to the range."""

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        is_inside = (values >= self.low) & (values <= self.high)
        return np.logical_not(is_inside.all(axis=1))

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values from outside, each moved to the nearest one inside."""
        return np.clip(values, self.low, self.high)

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class Ball:
    """Vectors up to a Euclidean norm, finite and positive."""

    norm_bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm_bound", require_positive("norm_bound", self.norm_bound))

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        with np.errstate(over="ignore"):  # what overflows is outside
            lengths = np.linalg.norm(values / self.norm_bound, axis=1)
        return np.asarray(~(lengths <= 1.0 + 1e-12))  # NaN is outside

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows from outside, each shortened to the bound.

        An infinite coordinate counts as the largest float.
        """
        finite = np.clip(values, -_LARGEST, _LARGEST)
        # Divided by the largest coordinate, so that no square overflows or vanishes.
        directions = finite / np.abs(finite).max(axis=1, keepdims=True)
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        return np.asarray(directions * (self.norm_bound / lengths))

    def __str__(self) -> str:
        return f"the ball of norm {self.norm_bound:g}"


Limits: TypeAlias = Range | Ball
