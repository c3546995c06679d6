"""All cores of one machine: pieces of work in processes of their own, results in order."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, Final, Self, SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ShuffledpError

# More than a machine has cores; far more cannot be started, and fail in Python's own words.
_MOST_PROCESSES: Final = 1024

# Pieces under way for each process: one that is worked on, and one that waits.
_PIECES_EACH: Final = 2

# What is done within that is done here: processes would take longer to start.
_PATIENCE_SECONDS: Final = 1.0


def usable_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_processes(number: int) -> Executor:
    """Return an executor of processes, each with one thread for its tables."""
    return ProcessPoolExecutor(
        number,
        mp_context=multiprocessing.get_context("spawn"),  # this process may have threads
        initializer=_begin,
    )


def _begin() -> None:
    """Set up a process: one core each, Ctrl-C is the parent's, and it ends with its parent."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


class Processes:
    """Processes that work on pieces of a collection; a context manager that ends them.

    Parameters
    ----------
    number : int, optional
        How many, from 1 to 1,024. By default as many as cores that this process may use, and none
        before a second of work has been done here.

    Raises
    ------
    ParameterError
        If ``number`` is not a whole number in this range.

    Notes
    -----
    Memory: two pieces for each process beside what a single process needs. Python starts each
    process anew, so a script that is run as a file calls this below ``if __name__ == "__main__":``.

    Examples
    --------
    >>> with Processes(1) as processes:
    ...     list(processes.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, number: SupportsIndex | None = None) -> None:
        self._patience = _PATIENCE_SECONDS if number is None else 0.0
        given = usable_cores() if number is None else number
        #: How many processes work, once they do.
        self.number = require_at_least("processes", given, 1, _MOST_PROCESSES)
        self._executor: Executor | None = None

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of the function for each item, in their order, with few under way.

        The function and the items have to be such that they can be sent to another process.
        """
        waiting = iter(items)
        done_here, first = 0.0, list(islice(waiting, 2))
        waiting = chain(first, waiting)
        if self.number == 1 or len(first) < 2:
            yield from map(function, waiting)
            return
        while done_here < self._patience:
            started = time.perf_counter()
            for item in islice(waiting, 1):
                yield function(item)
                break
            else:
                return
            done_here += time.perf_counter() - started
        yield from self._elsewhere(function, waiting)

    def _elsewhere(self, function: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
        """Yield the results of the processes, which start when there is an item for them."""
        under_way: deque[Future[Any]] = deque()
        try:
            for item in items:
                if self._executor is None:
                    self._executor = start_processes(self.number)
                under_way.append(self._executor.submit(function, item))
                if len(under_way) >= _PIECES_EACH * self.number:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        except BrokenProcessPool:
            raise ShuffledpError(
                "a process ended before its work was done: it was killed, perhaps for want of "
                "memory (try fewer processes), or started by a script that lacks the line "
                "if __name__ == '__main__'"
            ) from None
        finally:
            for each in under_way:
                each.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None
