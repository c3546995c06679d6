"""All cores of one machine: pieces of work in separate processes, results in order."""

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

# Above the cores of any machine; far more processes cannot be started, and fail with raw errors.
_MOST_PROCESSES: Final = 1024

# Number of pieces under way for each process: one being worked on, and one waiting.
_PIECES_EACH: Final = 2

# Work of up to this time is done in this process: starting others would take longer.
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
    """Set up a process: one core, Ctrl-C is left to the parent, and it ends with its parent."""
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
        Number of processes, from 1 to 1,024. By default the number of cores that this process may
        use, and no other process before a second of work has been done here.

    Raises
    ------
    ParameterError
        If ``number`` is not a whole number in this range.

    Notes
    -----
    Memory: two pieces for each process, beside the memory of a single process. Python starts each
    process anew, so that a script must call this below ``if __name__ == "__main__":``.

    Examples
    --------
    >>> with Processes(1) as processes:
    ...     list(processes.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, number: SupportsIndex | None = None) -> None:
        self._patience = _PATIENCE_SECONDS if number is None else 0.0
        given = usable_cores() if number is None else number
        #: Number of processes, once they are started.
        self.number = require_at_least("processes", given, 1, _MOST_PROCESSES)
        self._executor: Executor | None = None

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of the function for each item, in order, with few items under way.

        The function and the items must be picklable, so that they can be sent to another process.
        """
        waiting = iter(items)
        first = list(islice(waiting, 2))
        waiting = chain(first, waiting)
        if self.number == 1 or len(first) < 2:
            yield from map(function, waiting)
            return
        if self._patience:
            until = time.perf_counter() + self._patience
            for item in waiting:
                yield function(item)
                if time.perf_counter() > until:
                    break
        yield from self._elsewhere(function, waiting)

    def _elsewhere(self, function: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
        """Yield the results of the processes, which are started for the first item."""
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
