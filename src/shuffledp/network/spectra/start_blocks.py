"""Blocks of users on two threads: the laws of their reports, or rows of one application."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from shuffledp.network.walk.random_walk import columns_at_a_time

#: Called with a stage's name, what is done and the total.
Progress = Callable[[str, int, int], None]

# Compiled loops run outside the interpreter's lock. More threads would share the cache that the
# laws of a block are meant to fill.
_NUM_THREADS = 2

# So many rows are worth another thread.
_ROWS_AT_A_TIME = 1 << 16

_Result = TypeVar("_Result")


def over_rows(num_users: int, work: Callable[[int, int, int], None]) -> None:
    """Call work(block, first, last) for fixed blocks of rows, on two threads if there are several.

    The blocks depend on ``num_users`` alone, so that sums which are made block by block do not
    depend on how many threads there are.
    """
    bounds = [*range(0, num_users, _ROWS_AT_A_TIME), num_users]
    count = len(bounds) - 1
    if count == 1:
        work(0, 0, num_users)
    else:
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            list(pool.map(work, range(count), bounds[:-1], bounds[1:]))


def over_start_blocks(
    num_users: int, work: Callable[[int, int], _Result], on_progress: Progress | None
) -> Iterator[_Result]:
    """Yield the results of work on consecutive blocks of starts, in order.

    Parameters
    ----------
    num_users : int
        The starts are 0, 1, ..., num_users - 1.
    work : callable
        Called with the first start of a block and the first after it, on one of two threads.
    on_progress : callable, optional
        Called on this thread, with the number of starts done.

    Notes
    -----
    The results do not depend on how many threads there are. At most three blocks are under way
    or wait at a time.
    """
    width = columns_at_a_time(num_users)
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
