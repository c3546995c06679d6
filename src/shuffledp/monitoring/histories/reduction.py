"""From rows of a table to changes: what is kept of a history, whatever the number of its rows."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress
from shuffledp.monitoring.histories.history_tables import HistoryBlock, HistoryTable

# A table whose rows have to be sorted is held in memory, at 20 bytes a row and 8 to sort.
_MOST_ROWS_TO_SORT = 50_000_000

_NO_TIME = np.iinfo(np.int64).min

_Number = TypeVar("_Number", bound=np.generic)
_Columns: TypeAlias = tuple[NDArray[np.int32], NDArray[np.integer[Any]], NDArray[np.int64]]


def changes_of(table: HistoryTable, report: Progress) -> _Columns:
    """Return all changes in a table, sorted by period and then by user.

    Parameters
    ----------
    table : HistoryTable
        Read once; twice if the rows of a user are not in order of time.
    report : callable
        Called with the stage, the rows done and the rows in total.

    Returns
    -------
    users : ndarray of int32, shape (m,)
        Who changes; at most once a period.
    periods : ndarray of int, shape (m,)
        When.
    values : ndarray of int64, shape (m,)
        To what.

    Raises
    ------
    DataError
        If a user has two values at one time, or too many rows would have to be sorted.
    """
    reduced = _reduction(table, report)
    users, periods = np.concatenate(reduced.users), np.concatenate(reduced.periods)
    values = np.concatenate(reduced.values)
    num_users = table.user_ids.len()
    order = np.argsort(periods * num_users + users, kind="stable")
    users, periods, values = users[order], periods[order], values[order]
    if table.axis.is_exact:
        return users, periods, values
    before = np.full(num_users, table.coding.before, dtype=np.int64)
    return last_of_each_period(users, periods, values, before=before)


def last_of_each_period(
    users: NDArray[np.int32],
    periods: NDArray[np.integer[Any]],
    values: NDArray[np.int64],
    *,
    before: NDArray[np.int64],
) -> _Columns:
    """Return what is left where several changes of a user fall into one period.

    Parameters
    ----------
    users, periods, values : ndarray, shape (m,)
        Changes sorted by period, then user, then time.
    before : ndarray of int64, shape (n,)
        What each user had before the first; overwritten.

    Returns
    -------
    users, periods, values : ndarray
        The last change of each user and period, if it is one.
    """
    from shuffledp.monitoring.histories.history_kernels import changing_periods

    is_last = np.ones(users.size, dtype=np.bool_)
    is_last[:-1] = (users[1:] != users[:-1]) | (periods[1:] != periods[:-1])
    users, periods, values = users[is_last], periods[is_last], values[is_last]
    keep = np.empty(users.size, dtype=np.bool_)
    changing_periods(users, values, before, keep)
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
        from shuffledp.monitoring.histories.history_kernels import (
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
