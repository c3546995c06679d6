"""Tables of histories: rows (user, time, value), read in blocks of whole-number codes.

A row says that a user's value is this from that time on, until the user's next row. So a table
with a row for every user and period, and one with a row for every change, say the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source.tables import (
    changed,
    checked_domain,
    is_text_table,
    label_expression,
    reading,
    require_column,
    scan,
)
from shuffledp.core.checks import require_at_least
from shuffledp.core.display import value_note
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.times import (
    LARGEST_TIME,
    MOST_PERIODS,
    TimeAxis,
    time_axis,
    time_expression,
)

if TYPE_CHECKING:
    import polars as pl


# Numbers are looked up in an array that has a place for each between the least and the greatest,
# where that takes no more than 128 million places.
_WIDEST_SPAN: Final = 1 << 27
_MOST_USERS: Final = np.iinfo(np.int32).max
_NUM_SEEDS = 8


class UserCoder(Protocol):
    """From identifiers to numbers of users."""

    @property
    def ids(self) -> "pl.Series":
        """All identifiers, sorted: the number of a user is a place in it."""
        ...

    def codes(self, users: "pl.Series") -> NDArray[np.int32] | None:
        """Return the number of each, or None if there is one that is not in ``ids``."""
        ...


def user_coder(
    batches: "Callable[[], Iterator[pl.Series]]", limits: tuple[int, int] | None
) -> UserCoder:
    """Find all identifiers of a table and number them by their order."""
    if limits is not None and limits[1] - limits[0] < _WIDEST_SPAN:
        return _Span(batches(), *limits)
    for seed in range(_NUM_SEEDS):  # a second one is needed once in a million tables, or less
        coder = _Hashed(seed)
        if all(coder.add(batch) for batch in batches()):
            coder.sort()
            return coder
    raise DataError("users cannot be told apart by hashes: name them by numbers")


class _Span:
    """Numbers that are near each other."""

    def __init__(self, batches: "Iterator[pl.Series]", least: int, greatest: int) -> None:
        import polars as pl

        is_there = np.zeros(greatest - least + 1, dtype=np.bool_)
        for batch in batches:
            is_there[batch.to_numpy() - least] = True
        places = np.flatnonzero(is_there)
        self.ids = pl.Series("user", places + least)
        self._limits = least, greatest
        self._code_of = np.full(is_there.size, -1, dtype=np.int32)
        self._code_of[places] = np.arange(places.size, dtype=np.int32)

    def codes(self, users: "pl.Series") -> NDArray[np.int32] | None:
        numbers = users.to_numpy()
        if numbers.size and not (
            self._limits[0] <= numbers.min() and numbers.max() <= self._limits[1]
        ):
            return None
        codes: NDArray[np.int32] = self._code_of[numbers - self._limits[0]]
        return None if (codes < 0).any() else codes


class _Hashed:
    """Text, or numbers far from each other, found by hashes of 64 bits and then compared."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0
        self._known = np.empty(0, dtype=np.uint64)
        self._table = np.full(2, -1, dtype=np.int32)
        self._rank = np.empty(0, dtype=np.int32)
        self._ids: pl.Series | None = None  # in order of appearance, then sorted

    @property
    def ids(self) -> "pl.Series":
        import polars as pl

        return pl.Series("user", [], dtype=pl.String) if self._ids is None else self._ids

    def add(self, users: "pl.Series") -> bool:
        """Take in users, numbered in the order in which they come; False if hashes collide."""
        import polars as pl

        numbers, new_rows = self._numbers(users)
        new = users.gather(new_rows)
        if self._ids is None:
            self._ids = new
        elif new.len():
            self._ids = pl.concat([self._ids, new], rechunk=True)
        return bool((self._ids.gather(numbers) == users).all())

    def sort(self) -> None:
        """Go over to numbers by the order of identifiers."""
        order = self.ids.arg_sort().to_numpy()
        self._rank = np.empty(order.size, dtype=np.int32)
        self._rank[order] = np.arange(order.size, dtype=np.int32)
        self._ids = self.ids.gather(order).rename("user")

    def codes(self, users: "pl.Series") -> NDArray[np.int32] | None:
        numbers, _ = self._numbers(users)
        if numbers.size and int(numbers.max()) >= self._rank.size:
            return None
        codes: NDArray[np.int32] = self._rank[numbers]
        return codes if (self.ids.gather(codes) == users).all() else None

    def _numbers(self, users: "pl.Series") -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the number of each hash, in order of appearance, and the rows of new ones."""
        from shuffledp.monitoring.history_kernels import fill_table, number_hashes

        size = self._count + users.len()
        if size > _MOST_USERS:
            raise DataError(
                f"there are more than {self._count:,} users: at most {_MOST_USERS:,} rows and "
                "users can be told apart; leave some out"
            )
        if self._table.size < 2 * size:
            self._table = np.full(1 << (4 * size).bit_length(), -1, dtype=np.int32)
            fill_table(self._known, self._count, self._table)
        if self._known.size < size:
            self._known = np.concatenate([self._known, np.empty(size, dtype=np.uint64)])
        hashes = np.require(_hashes(users, self._seed), requirements=["C", "W"])
        numbers = np.empty(users.len(), dtype=np.int32)
        first_rows = np.empty(users.len(), dtype=np.int64)
        count = number_hashes(hashes, self._table, self._known, self._count, numbers, first_rows)
        num_new, self._count = count - self._count, count
        return numbers, first_rows[:num_new]


def _hashes(users: "pl.Series", seed: int) -> NDArray[np.uint64]:
    """Return hashes of 64 bits; those of another seed collide elsewhere."""
    return users.hash(seed).to_numpy()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCoding:
    """What values a history may have, and their codes. Made by `value_coding`."""

    column: str  # The column of the table
    # The categories, whose codes are their places; empty for booleans, whose codes are 0 and 1.
    labels: tuple[str, ...]

    @property
    def kind(self) -> str:
        """``"categories"`` or ``"boolean"``."""
        return "categories" if self.labels else "boolean"

    @property
    def before(self) -> int:
        """The code of "nothing yet": -1 for categories, otherwise 0, which is also a value."""
        return -1 if self.labels else 0

    def allowed(self) -> str:
        """Return what a value may be, for messages."""
        if not self.labels:
            return "neither 0/1 nor true/false: give categories (--categories) for other values"
        shown = ", ".join(self.labels[:10]) + ", ..." * (len(self.labels) > 10)
        return f"no category of the domain ({shown}): list all that can occur with --categories"

    def expression(self, schema: "pl.Schema", origin: str) -> "pl.Expr":
        """Return the expression for the codes, Int64; null where a value is none of the domain."""
        import polars as pl

        name, dtype = self.column, schema[self.column]
        if self.labels:
            labels = label_expression(name, dtype)
            return labels.cast(pl.Enum(self.labels), strict=False).to_physical().cast(pl.Int64)
        column = pl.col(name)
        if dtype == pl.Boolean:
            return column.cast(pl.Int64)
        if dtype.is_numeric():
            return pl.when((column == 0) | (column == 1)).then(column.cast(pl.Int64, strict=False))
        if dtype == pl.String:
            text = column.str.strip_chars().str.to_lowercase()
            is_true, is_false = text.is_in(["1", "true"]), text.is_in(["0", "false"])
            return pl.when(is_true | is_false).then(is_true.cast(pl.Int64))
        raise DataError(
            f"column {name!r} of {origin} is of type {dtype}, which is no boolean: give booleans "
            "or 0 and 1; or say which values there are with --categories"
        )


def value_coding(value: str, categories: Sequence[object] | None = None) -> ValueCoding:
    """Return what the values of a table are: one of the categories, or booleans without any."""
    if categories is None:
        return ValueCoding(column=value, labels=())
    labels = checked_domain(categories)
    if len(labels) < 2:
        raise DomainError(
            f"categories has {len(labels)}, fewer than two: list all the values that can occur "
            "(--categories a,b)"
        )
    return ValueCoding(column=value, labels=labels)


_ROWS_A_BLOCK = 1 << 19
_USER, _TIME, _VALUE = "user code", "time code", "value code"


class HistoryBlock(NamedTuple):
    """Some rows: users int32 (index into ``user_ids``), times int64, values int64."""

    users: NDArray[np.int32]
    times: NDArray[np.int64]
    values: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistoryTable:
    """A checked table of histories. Made by `open_history_table`."""

    origin: str  # Where it comes from, for messages
    user_ids: "pl.Series"  # Identifiers of all users, sorted; whole numbers or text
    coding: ValueCoding  # What values there are
    axis: TimeAxis  # How times become periods
    periods: int  # As many as were asked for; otherwise the last that a row falls into
    num_rows: int  # Number of rows
    _frame: "pl.LazyFrame" = field(repr=False)
    _coder: UserCoder = field(repr=False)
    _users: "pl.Expr" = field(repr=False)
    _times: "pl.Expr" = field(repr=False)
    _names: tuple[str, str, str] = field(repr=False)

    def blocks(self) -> Iterator[HistoryBlock]:
        """Yield all rows in order, up to 2^19 at a time; a second call reads the table again."""
        import polars as pl

        schema = self._frame.collect_schema()
        codes = self._frame.select(
            self._users,
            self._times.alias(_TIME),
            self.coding.expression(schema, self.origin).alias(_VALUE),
        )
        num_seen = 0
        with reading(self.origin):
            for batch in codes.collect_batches(chunk_size=_ROWS_A_BLOCK):
                if sum(batch.null_count().row(0)):
                    is_bad = batch.select(pl.any_horizontal(pl.all().is_null())).to_series()
                    self._refuse(num_seen + int(is_bad.arg_true()[0]))
                num_seen += batch.height
                users = self._coder.codes(batch[_USER])
                if users is None:
                    raise changed(self.origin)
                yield HistoryBlock(users, batch[_TIME].to_numpy(), batch[_VALUE].to_numpy())
        if num_seen != self.num_rows:
            raise changed(self.origin)

    def describe(self, user: int, time: int) -> str:
        """Return a user and a time as the table shows them, for messages."""
        return f"user {self.user_ids[user]!r} at time {self.axis.time_text(time)}"

    def _refuse(self, row: int) -> NoReturn:
        """Raise the error for a row that has no code."""
        raw = self._frame.select(self._names).slice(row, 1).collect().row(0)
        named = dict(zip(self._names, raw, strict=True))
        where = f"row {row + 1:,} of {self.origin}"
        for name, value in named.items():
            if value is None:
                raise DataError(
                    f"{where} has nothing in column {name!r}: fill it, or leave the row out if "
                    "the value goes on as it was"
                )
        user, time, given = raw
        if self._frame.slice(row, 1).select(self._times).collect().item() is None:
            raise DataError(
                f"{where} has time {time!r} in column {self._names[1]!r}, which is not written "
                "like the other times: write all of them in the same way"
            )
        if self._frame.slice(row, 1).select(self._users).collect().item() is None:
            raise DataError(
                f"{where} has user {user} in column {self._names[0]!r}, which is above 2^63 - 1: "
                "name users by smaller numbers, or by text"
            )
        raise DomainError(
            f"{where} holds a value{value_note(given)} that is {self.coding.allowed()}"
        )


def open_history_table(  # one keyword an option
    table: "str | PathLike[str] | pl.DataFrame | pl.LazyFrame",
    *,
    user: str,
    time: str,
    value: str,
    categories: Sequence[object] | None = None,
    periods: int | None = None,
    start: object = None,
    every: object = None,
    on_progress: Progress | None = None,
) -> HistoryTable:
    """Open a table of histories, and make a first pass over its users and times."""
    import polars as pl

    report = on_progress or no_progress
    coding = value_coding(value, categories)
    names = (user, time, value)
    _require_different(names)
    if isinstance(table, pl.DataFrame | pl.LazyFrame):
        path, frame = Path("the table"), table.lazy()
    else:
        path = Path(table)
        frame = scan(path)
    origin = path.name
    with reading(origin):
        schema = frame.collect_schema()
        for name in names:
            require_column(name, schema.names(), path)
        if is_text_table(path):  # whole rows are parsed once, so that a stray comma is an error
            frame.select(pl.len()).collect(
                optimizations=pl.QueryOptFlags(projection_pushdown=False), engine="streaming"
            )
        coding.expression(schema, origin)  # says now if the type does not fit
        first = frame.select(pl.col(time).drop_nulls().first()).collect().item()
        num_rows = int(frame.select(pl.len()).collect().item())
        if num_rows == 0 or first is None:
            raise DataError(f"{origin} has no row with a time: give a row for each user at least")
        report("reading users", 0, num_rows)
        kind, times = time_expression(time, schema[time], first, origin)
        earliest, latest = (
            frame.select(times.min().alias("earliest"), times.max().alias("latest"))
            .collect(engine="streaming")
            .row(0)
        )
        _require_near(earliest, latest, origin)
        axis = time_axis(kind, earliest=earliest, start=start, every=every)
        length = _checked_periods(axis, earliest, latest, periods, origin)
        coder, users = _user_coder(frame, user, schema[user], origin)
        report("reading users", num_rows, num_rows)
    return HistoryTable(
        origin=origin,
        user_ids=coder.ids,
        coding=coding,
        axis=axis,
        periods=length,
        num_rows=num_rows,
        _frame=frame,
        _coder=coder,
        _users=users,
        _times=times,
        _names=names,
    )


def _checked_periods(
    axis: TimeAxis, earliest: int, latest: int, periods: int | None, origin: str
) -> int:
    """Return how many periods there are; raise if a time lies outside them."""
    first, last = axis.periods(np.array([earliest, latest], dtype=np.int64)).tolist()
    if first < 1:
        raise DataError(
            f"time {axis.time_text(earliest)} of {origin} is before the first period, which begins "
            f"at {axis.label(1)}: pass an earlier start (--start), or leave such rows out"
        )
    if last > MOST_PERIODS:
        raise DataError(
            f"time {axis.time_text(latest)} of {origin} is in period {last:,}, beyond the "
            f"{MOST_PERIODS:,} that there may be: pass longer periods (--every), or a later start "
            "(--start)"
        )
    length = last if periods is None else require_periods(periods)
    if last > length:
        raise DataError(
            f"time {axis.time_text(latest)} of {origin} is in period {last:,}, beyond periods = "
            f"{length:,}: pass a larger number (--periods), or leave such rows out"
        )
    return int(length)


def require_periods(periods: SupportsIndex) -> int:
    """Return a number of periods that a table may have, or raise `ParameterError`."""
    length = require_at_least("periods", periods, 1)
    if length > MOST_PERIODS:
        raise ParameterError(
            f"periods = {length:,} is not in [1, {MOST_PERIODS:,}]: give fewer and longer ones"
        )
    return length


def _require_different(names: tuple[str, ...]) -> None:
    """Raise if a column is to be two things."""
    again = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if again is not None:
        raise ParameterError(
            f"user, time and value name the column {again!r} twice: give a column for each"
        )


def _require_near(earliest: int | None, latest: int | None, origin: str) -> None:
    """Raise for times whose differences may be no 64-bit integers."""
    for time in (earliest, latest):
        if time is None or not -LARGEST_TIME < time < LARGEST_TIME:
            raise DataError(
                f"{origin} has times that are not between -2^62 and 2^62: leave such rows out, or "
                "count from a later start"
            )


def _user_coder(
    frame: "pl.LazyFrame", name: str, dtype: "pl.DataType", origin: str
) -> tuple[UserCoder, "pl.Expr"]:
    """Return how users are numbered, and the expression for their identifiers."""
    import polars as pl

    if not (dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise DataError(
            f"column {name!r} of {origin} is of type {dtype}: name users by whole numbers or text"
        )
    kept = pl.Int64 if dtype.is_integer() else pl.String
    expression = pl.col(name).cast(kept, strict=False).alias(_USER)
    # A missing user is refused with the number of its row, when the rows are read.
    column = frame.select(expression).drop_nulls()
    limits = None
    if dtype.is_integer():
        user = pl.col(_USER)
        row = column.select(user.min().alias("least"), user.max().alias("greatest"))
        least, greatest = row.collect(engine="streaming").row(0)
        limits = None if least is None else (least, greatest)

    def batches() -> "Iterator[pl.Series]":
        for batch in column.collect_batches(chunk_size=_ROWS_A_BLOCK):
            yield batch.to_series()

    return user_coder(batches, limits), expression
