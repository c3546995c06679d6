"""Blocks of users on two threads: the laws of their reports, or rows of one application."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

#: Called with a stage's name, what is done and the total.
Progress = Callable[[str, int, int], None]

# Compiled loops run outside the interpreter's lock. More threads would share the cache that the
# laws of a block are meant to fill.
_NUM_THREADS = 2

# So many rows are worth another thread.
_ROWS_AT_A_TIME = 1 << 16

_Result = TypeVar("_Result")


def over_rows(num_users: int, work: Callable[[int, int], _Result]) -> list[_Result]:
    """Return work(first, last) of fixed blocks of rows, on two threads if there are several.

    The blocks depend on ``num_users`` alone, so that sums which are made block by block do not
    depend on how many threads there are.
    """
    if num_users <= _ROWS_AT_A_TIME:
        return [work(0, num_users)]
    bounds = [*range(0, num_users, _ROWS_AT_A_TIME), num_users]
    with ThreadPoolExecutor(_NUM_THREADS) as pool:
        return list(pool.map(work, bounds[:-1], bounds[1:]))


def over_start_blocks(
    num_users: int,
    width: int,
    work: Callable[[int, int], _Result],
    on_progress: Progress | None = None,
) -> Iterator[_Result]:
    """Yield the results of work(first, last) on consecutive blocks of starts, in order.

    The results do not depend on how many threads there are. At most three blocks are under way
    or wait at a time.
    """
    pending: deque[tuple[int, Future[_Result]]] = deque()
    with ThreadPoolExecutor(_NUM_THREADS) as pool:
        try:
            for first in range(0, num_users, width):
                last = min(first + width, num_users)
                pending.append((last, pool.submit(work, first, last)))
                if len(pending) > _NUM_THREADS:
                    yield _next_result(pending, num_users, on_progress)
            while pending:
                yield _next_result(pending, num_users, on_progress)
        finally:
            for _, future in pending:  # after an error or an interrupt
                future.cancel()


def _next_result(
    pending: deque[tuple[int, Future[_Result]]], num_users: int, on_progress: Progress | None
) -> _Result:
    """Wait for the oldest block, and report it."""
    done, future = pending.popleft()
    result = future.result()
    if on_progress is not None:
        on_progress("position laws", done, num_users)
    return result
