"""``Histories``: what every user's value is in every period, kept as the changes alone."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.monitoring.history_tables import (
    HistoryBlock,
    HistoryTable,
    ValueCoding,
    open_history_table,
    require_periods,
)
from shuffledp.monitoring.times import TimeAxis

if TYPE_CHECKING:
    import polars as pl


# A table whose rows have to be sorted is held in memory, at 20 bytes a row and 8 to sort.
_MOST_ROWS_TO_SORT = 50_000_000

_NO_TIME = np.iinfo(np.int64).min

_Number = TypeVar("_Number", bound=np.generic)
_Columns: TypeAlias = tuple[NDArray[np.int32], NDArray[np.integer[Any]], NDArray[np.int64]]


def changes_of(table: HistoryTable, report: Progress) -> _Columns:
    """Return users, periods and values of all changes, sorted by period and then by user.

    The table is read once; twice if the rows of a user are not in order of time.
    """
    reduced = _reduction(table, report)
    users, periods = np.concatenate(reduced.users), np.concatenate(reduced.periods)
    values = np.concatenate(reduced.values)
    num_users = table.user_ids.len()
    order = np.argsort(periods * num_users + users, kind="stable")
    users, periods, values = users[order], periods[order], values[order]
    if table.axis.is_exact:
        return users, periods, values
    return last_of_each_period(users, periods, values, before=table.coding.before)


def last_of_each_period(
    users: NDArray[np.int32],
    periods: NDArray[np.integer[Any]],
    values: NDArray[np.int64],
    *,
    before: int,
) -> _Columns:
    """Return what is left where several changes of a user fall into one period."""
    is_last = np.ones(users.size, dtype=np.bool_)
    is_last[:-1] = (users[1:] != users[:-1]) | (periods[1:] != periods[:-1])
    users, periods, values = users[is_last], periods[is_last], values[is_last]
    order = np.argsort(users, kind="stable")  # the changes of a user side by side
    again = users[order][1:] == users[order][:-1]
    earlier = np.full(users.size, before, dtype=np.int64)
    earlier[order[1:][again]] = values[order[:-1][again]]
    keep = values != earlier
    return users[keep], periods[keep], values[keep]


def _reduction(table: HistoryTable, report: Progress) -> "_Reduction":
    """Read a table block by block, or as a whole if it has to be sorted."""
    reduced = _Reduction(table)
    num_rows = 0
    for block in table.blocks():
        if not reduced.add(block):
            return _sorted_reduction(table, report)
        num_rows += block.users.size
        report("reading histories", num_rows, table.num_rows)
    return reduced


class _Reduction:
    """Changes so far, and what every user had last."""

    def __init__(self, table: HistoryTable) -> None:
        num_users = table.user_ids.len()
        self._table = table
        self._last_times = np.full(num_users, _NO_TIME)
        self._last_values = np.full(num_users, table.coding.before, dtype=np.int64)
        self._rows = np.empty(0, dtype=np.int64)
        self.users: list[NDArray[np.int32]] = []
        self.periods: list[NDArray[np.int64]] = []
        self.values: list[NDArray[np.int64]] = []

    def add(self, block: HistoryBlock) -> bool:
        """Take in some rows; return False if a user's rows are not in order of time."""
        from shuffledp.monitoring.history_kernels import (
            CONTRADICTION,
            OUT_OF_ORDER,
            changing_rows,
        )

        if self._rows.size < block.users.size:
            self._rows = np.empty(block.users.size, dtype=np.int64)
        # Writable, as all arrays of one compiled version of a kernel must be.
        users, times, values = (
            _writable(block.users),
            _writable(block.times),
            _writable(block.values),
        )
        count, problem, row = changing_rows(
            users, times, values, self._last_times, self._last_values, self._rows
        )
        if problem == OUT_OF_ORDER:
            return False
        if problem == CONTRADICTION:
            raise DataError(
                f"{self._table.describe(int(users[row]), int(times[row]))} has two different "
                f"values in {self._table.origin}: leave one of these rows out"
            )
        rows = self._rows[:count]
        self.users.append(users[rows])
        self.periods.append(self._table.axis.periods(times[rows]))
        self.values.append(values[rows])
        return True


def _writable(array: NDArray[_Number]) -> NDArray[_Number]:
    """Return an array, or a copy of one that is read-only."""
    return np.require(array, requirements=["C", "W"])


def _sorted_reduction(table: HistoryTable, report: Progress) -> _Reduction:
    """Read all rows into memory, sort them by time, and reduce them."""
    if table.num_rows > _MOST_ROWS_TO_SORT:
        raise DataError(
            f"rows of {table.origin} are not in order of time and there are {table.num_rows:,}, "
            f"more than the {_MOST_ROWS_TO_SORT:,} that are sorted in memory: sort the table by "
            "time first"
        )
    users = np.empty(table.num_rows, dtype=np.int32)
    times, values = (np.empty(table.num_rows, dtype=np.int64) for _ in range(2))
    done = 0
    for block in table.blocks():
        piece = slice(done, done + block.users.size)
        users[piece], times[piece], values[piece] = block
        done += block.users.size
        report("sorting histories", done, table.num_rows)
    order = np.argsort(times, kind="stable")
    reduced = _Reduction(table)
    reduced.add(HistoryBlock(users[order], times[order], values[order]))
    return reduced


class Changes(NamedTuple):
    """Changes of value: users int32 and the codes they change to, int64."""

    users: NDArray[np.int32]
    values: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histories:
    """Histories of all users. Made by `open_histories`.

    Before their first row users have nothing, which for booleans is false and for sets empty.

    Parameters
    ----------
    origin : str
        Where they come from, for messages.
    user_ids : polars.Series
        Identifiers; a user is an index into it.
    coding : ValueCoding
        What values there are.
    axis : TimeAxis
        What the periods are.
    periods : int
        Number of periods, d.
    num_rows : int
        Number of rows that were read.
    users : ndarray of int32, shape (m,)
        Who changes, sorted by period and then by user; at most once a period.
    values : ndarray of int64, shape (m,)
        The code changed to.
    offsets : ndarray of int64, shape (d + 1,)
        Changes of period t are those from ``offsets[t - 1]`` to ``offsets[t]``.
    """

    origin: str
    user_ids: "pl.Series"
    coding: ValueCoding
    axis: TimeAxis
    periods: int
    num_rows: int
    users: NDArray[np.int32]
    values: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.users, self.values, self.offsets):
            array.setflags(write=False)

    @property
    def num_users(self) -> int:
        """Number of users; each has at least one row."""
        return int(self.user_ids.len())

    @property
    def num_changes(self) -> int:
        """Number of changes of all users together."""
        return int(self.users.size)

    def changes_at(self, period: int) -> Changes:
        """Return who changes at a period, and to what.

        Parameters
        ----------
        period : int
            In [1, periods].
        """
        piece = slice(int(self.offsets[period - 1]), int(self.offsets[period]))
        return Changes(self.users[piece], self.values[piece])

    def true_counts(self) -> NDArray[np.int64]:
        """Return how many users really have each value, in each period.

        Returns
        -------
        ndarray of int64, shape (periods, domain_size)
            Known in a simulation only. One column for booleans: those who are true.
        """
        steps = np.zeros((self.periods + 1, max(len(self.coding.labels), 1)), dtype=np.int64)
        now = np.full(self.num_users, self.coding.before, dtype=np.int64)
        for period in range(1, self.periods + 1):
            users, values = self.changes_at(period)
            if users.size:
                steps[period] = self._tally(values) - self._tally(now[users])
                now[users] = values
        return np.cumsum(steps, axis=0)[1:]

    def digest(self, through: int) -> bytes:
        """Return the digest of all changes up to a period; empty for period 0.

        Parameters
        ----------
        through : int
            In [0, periods].
        """
        digest = b""
        for period in range(1, through + 1):
            digest = period_digest(digest, period, self.changes_at(period))
        return digest

    def begun(self, groups: Sequence[tuple[int, int]]) -> "Histories":
        """Return the same histories with later groups of users beginning late.

        Parameters
        ----------
        groups : sequence of (int, int)
            Number of the first user of a group, and the period in which the group begins; by
            rising numbers, the first being user 0.

        Returns
        -------
        Histories
            In which a user has nothing before he begins, and what he had by then from then on.
        """
        firsts, starts = np.array(groups, dtype=np.int64).T
        if (starts <= 1).all():
            return self
        start_of = np.repeat(starts, np.diff(firsts, append=self.num_users))
        periods = np.maximum(self._periods(), start_of[self.users])
        order = np.lexsort((self.users, periods))  # stable: earlier changes stay first
        users, periods, values = last_of_each_period(
            self.users[order],
            periods[order],
            self.values[order],
            before=self.coding.before,
        )
        return replace(self, users=users, values=values, offsets=_offsets(periods, self.periods))

    def numbered_like(self, earlier: "pl.Series") -> "Histories":
        """Return the same histories with users numbered as earlier, and new ones after them.

        Parameters
        ----------
        earlier : polars.Series
            Identifiers of users, by their number.

        Raises
        ------
        DataError
            If identifiers were text and are numbers now, or the reverse.
        """
        import polars as pl

        if earlier.equals(self.user_ids):
            return self
        if earlier.dtype != self.user_ids.dtype:
            raise DataError(
                f"users of {self.origin} are named by {self.user_ids.dtype}, and were named by "
                f"{earlier.dtype} before: give the same column of users"
            )
        is_new = ~self.user_ids.is_in(earlier.implode())
        ids = pl.concat([earlier.rename("user"), self.user_ids.filter(is_new).rename("user")])
        numbers = pl.DataFrame({"user": ids, "number": np.arange(ids.len(), dtype=np.int32)})
        number_of = (
            self.user_ids.rename("user")
            .to_frame()
            .join(numbers, on="user", how="left", maintain_order="left")["number"]
            .to_numpy()
        )
        users = number_of[self.users]
        order = np.lexsort((users, self._periods()))
        return replace(self, user_ids=ids, users=users[order], values=self.values[order])

    def with_periods(self, periods: int) -> "Histories":
        """Return the same histories with that many periods; the last values go on.

        Parameters
        ----------
        periods : int
            At least as many as there are changes in, at most 2^20.

        Raises
        ------
        ParameterError
            If a change would be left out, or there are too many.
        """
        length = require_periods(periods)
        if length <= self.periods:
            if self.offsets[length] < self.num_changes:
                last = int(np.searchsorted(self.offsets, self.num_changes))
                raise ParameterError(
                    f"periods = {length:,} leaves out changes of {self.origin} up to period "
                    f"{last:,}: give at least that many, or stop earlier with stop_after"
                )
            return replace(self, periods=length, offsets=self.offsets[: length + 1].copy())
        more = np.full(length - self.periods, self.num_changes, dtype=np.int64)
        return replace(self, periods=length, offsets=np.concatenate([self.offsets, more]))

    def _periods(self) -> NDArray[np.int64]:
        """Return the period of each change."""
        return np.repeat(np.arange(1, self.periods + 1), np.diff(self.offsets))

    def _tally(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of these codes have each value."""
        if not self.coding.labels:
            return np.array([values.sum()])
        return np.bincount(values[values >= 0], minlength=len(self.coding.labels))


def open_histories(  # one keyword an option
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
) -> Histories:
    """Read who has which value from which time on.

    Parameters
    ----------
    table : path or polars.DataFrame or polars.LazyFrame
        A ``.parquet``, ``.csv`` or ``.tsv`` file, or a frame. A row says that the value is this
        from that time on, until the user's next row; rows that change nothing do no harm.
    user, time : str
        Names of the columns with users (whole numbers or text) and times (whole numbers, dates or
        times of day).
    value : str
        Name of the column with values.
    categories : sequence, optional
        The possible values, where they are not booleans.
    periods : int, optional
        How many periods there are, at most 2^20; by default up to the last row.
    start : optional
        Where period 1 begins: by default at 1 for numbers, otherwise on the day (hour, month) of
        the earliest row.
    every : optional
        Length of a period: how many numbers (1), otherwise ``"1h"``, ``"1d"`` (the default),
        ``"1w"``, ``"1mo"``. The value at the end of a period counts.
    on_progress : callable, optional
        Called with the stage, the rows done and the rows in total.

    Returns
    -------
    Histories
        The changes, in memory.

    Raises
    ------
    DataError
        If the table cannot be used; the message names the row, or user and time.
    DomainError
        If a value lies outside the domain.
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Rows are read in blocks. If each user's rows are in order of time, as in a table sorted by
    time, or by user and then time, memory is 20 bytes a user and 16 a change, whatever the number
    of rows. Otherwise all rows are sorted in memory, if there are at most 50 million.

    Cost: about 10 seconds for a table of 3.65e8 rows, 0.2 for one of 2.6 million changes.

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"id": ["a", "b", "a"], "day": [1, 2, 3], "on": [True, True, False]}
    >>> histories = open_histories(pl.DataFrame(rows), user="id", time="day", value="on")
    >>> histories.true_counts()[:, 0].tolist()
    [1, 2, 1]
    """
    opened = open_history_table(
        table,
        user=user,
        time=time,
        value=value,
        categories=categories,
        periods=periods,
        start=start,
        every=every,
        on_progress=on_progress,
    )
    users, when, values = changes_of(opened, on_progress or no_progress)
    return Histories(
        origin=opened.origin,
        user_ids=opened.user_ids,
        coding=opened.coding,
        axis=opened.axis,
        periods=opened.periods,
        num_rows=opened.num_rows,
        users=users,
        values=values,
        offsets=_offsets(when, opened.periods),
    )


def period_digest(before: bytes, period: int, changes: Changes) -> bytes:
    """Return the digest of everything up to a period, from the one before it."""
    state = hashlib.sha256(before + period.to_bytes(8, "little"))
    state.update(changes.users.astype("<i4").tobytes())
    state.update(changes.values.astype("<i8").tobytes())
    return state.digest()


def _offsets(periods: NDArray[np.integer[Any]], length: int) -> NDArray[np.int64]:
    """Return where the changes of each period end, after a 0."""
    return np.searchsorted(periods, np.arange(1, length + 2)).astype(np.int64)
