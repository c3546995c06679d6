"""Columns of values as a stream, read from the rows of a table for each kind of question.

There are two passes over the data. The first counts the users and checks every value; the second
yields the values to the randomizer, each exactly once. Memory is bounded by the size of a block.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.collection.source.tables import WEIGHT, Source, rows_text
from shuffledp.collection.source.weights import Weights
from shuffledp.core.checks import require_positive, set_fields
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ShuffledpError
from shuffledp.core.lazy import pl
from shuffledp.randomizers.number_randomizer import Span

MISSING_LABEL = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Checked values of all users, one row a user, as a stream that can be read once more.

    It holds no tally of the values, so that printing it reveals only the question and the number of
    users. ``question`` is what they were checked for, whose answers reading may have added to or
    found; ``cautions`` are sentences that the way of reading adds to the assumptions.
    """

    num_users: int
    num_missing: int
    question: Any
    cautions: tuple[str, ...]
    # Yields the values in file order, in blocks for the randomizer; `DataError` unless their number
    # is the same as in the first pass.
    blocks: Callable[[], Iterator[Any]] = field(repr=False)
    weights: Weights | None = None  # public, of all users with a value


# --------------------------------------------------------------------- the first pass
class Fault(NamedTuple):
    """A possible fault of a value, its remedy, and the error that states it."""

    what: str
    remedy: str
    error: type[ShuffledpError] = DomainError


def survey(
    source: Source,
    read: "Mapping[str, pl.Expr]",
    decode: "Callable[[pl.DataFrame], tuple[Any, ...]]",
    *faults: Fault,
    question: Any,
    unless: str = "",
) -> Column:
    """Make the first pass: count the users and check every value.

    A batch of the ``read`` expressions is decoded to values for the randomizer, a mask of missing
    ones, and a mask for each fault. ``unless`` names values for which missing is not a category.
    """
    missing, report = source.reading.missing, source.report
    tables.require_missing(missing, unless=unless)
    weights: list[NDArray[np.float64]] = []

    def decoded(*, check: bool = False) -> Iterator[tuple[Any, ...]]:
        wanted = {**read, **(source.weights() if check else {})}
        frame = source.frame.select(each.alias(name) for name, each in wanted.items())
        how = decode if not check or source.weight is None else partial(_weighed, decode, weights)
        return map(how, source.batches(frame, check=check))

    if source.weight is not None:
        what = f"whose weight, in column {source.weight!r}, is no finite number above 0"
        faults = (*faults, Fault(what, "leave such rows out"))
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
    if not source.is_part:
        tables.require_users(num_users, f"{where} has {rows_text(num_users)} with a value{without}")
    return Column(
        num_users=num_users,
        num_missing=num_missing,
        question=question,
        cautions=cautions_of_missing(num_missing, num_users, has_category=not unless),
        blocks=lambda: _values(source.origin, decoded(), num_users),
        weights=Weights(np.concatenate(weights)) if weights else None,
    )


def _weighed(
    decode: "Callable[[pl.DataFrame], tuple[Any, ...]]",
    weights: list[NDArray[np.float64]],
    batch: "pl.DataFrame",
) -> tuple[Any, ...]:
    """Decode a batch, keep the weights of users with a value, and mask invalid weights."""
    own = batch[WEIGHT].to_numpy()
    block, is_missing, *masks = decode(batch.drop(WEIGHT))
    weights.append(own[~is_missing])
    return block, is_missing, *masks, ~(np.isfinite(own) & (own > 0.0)) & ~is_missing


def cautions_of_missing(num_missing: int, num_users: int, *, has_category: bool) -> tuple[str, ...]:
    """Return the caution about rows that were left out, if any."""
    hidden = "; missing='category' counts them as one more answer, which hides it" * has_category
    dropped = (
        f"Dropped: {rows_text(num_missing)} without an answer. The guarantee covers the other "
        f"{num_users:,} users, and how many were dropped is not protected{hidden}."
    )
    return (dropped,) * bool(num_missing)


def _values(origin: str, rows: Iterator[tuple[Any, ...]], num_users: int) -> Iterator[Any]:
    """Yield the values of the participants, whose number is checked against the first pass."""
    num_seen = 0
    for block, is_missing, *masks in rows:
        kept = block[~is_missing]
        num_seen += len(kept)
        if num_seen > num_users or any(mask.any() for mask in masks):
            raise tables.changed(origin)
        yield kept
    if num_seen != num_users:
        raise tables.changed(origin)


# --------------------------------------------------------------------- numbers and vectors
def numbers(
    source: Source,
    question: Any,
    *,
    is_vector: bool = False,
    groups: Any = None,
) -> Column:
    """Check columns of numbers within a question's limits; shape (m,) or, of vectors, (m, d).

    With the coding of a column of groups: the code and the number of each user, shape (m, 2).
    """
    limits, clip = question.limits, source.reading.clip
    read = {str(place): each for place, each in enumerate(source.numbers())}
    extra = {} if groups is None else {"group": groups.place}

    def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
        found = decode_numbers(batch.drop(extra))
        if groups is None:
            return found
        values, is_missing, *faults = found
        codes, is_gap, is_stray = groups.decode(batch["group"].to_numpy())
        return np.column_stack([codes, values]), is_missing | is_gap, *faults, is_stray

    def decode_numbers(batch: "pl.DataFrame") -> tuple[Any, ...]:
        values = np.ascontiguousarray(batch.to_numpy(), dtype=np.float64)
        is_null = batch.select(pl.all().is_null()).to_numpy()
        is_missing = np.asarray((np.isnan(values) & ~is_null).any(axis=1))
        is_bad = np.asarray(is_null.any(axis=1)) & ~is_missing
        is_outside = limits.outside(values) & ~(is_missing | is_bad)
        if clip and is_outside.any():
            values = values.copy()
            values[is_outside] = limits.clip(values[is_outside])
        return values if is_vector else values[:, 0], is_missing, is_bad, is_outside & (not clip)

    remedy = "write numbers like 12.5, and name texts for unknown ones with missing_texts=[...]"
    wider = "state wider limits, or pass clip=True to move them to the nearest value inside"
    return survey(
        source,
        read | extra,
        decode,
        Fault("that is no number", remedy, DataError),
        Fault(f"outside {limits}", wider),
        *([] if groups is None else [groups.fault]),
        question=question,
        unless="numbers",
    )


# --------------------------------------------------------------------- limits
# They are stated beforehand: limits read from the data would depend on the values of the users
# whom they must protect.
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True)
class Range(Span):
    """Numbers between two limits, low < high; both belong to the range."""

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask of the rows of values, shape (m, d), that lie outside."""
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
        set_fields(self, norm_bound=require_positive("norm_bound", self.norm_bound))

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask of the rows of values, shape (m, d), that lie outside."""
        with np.errstate(over="ignore"):  # overflow counts as outside
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
