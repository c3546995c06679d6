"""Ctrl-C between two steps, never within one."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def waiting_interrupts(*, enabled: bool = True) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C wait; a second one interrupts at once.

    Parameters
    ----------
    enabled : bool
        Whether to do so; otherwise nothing is changed.

    Yields
    ------
    callable
        Says whether an interrupt waits. Whoever asks should finish and raise `KeyboardInterrupt`.

    Notes
    -----
    Only the main thread of a program gets Ctrl-C; in others this changes nothing. An interrupt
    that still waits at the end is raised then.
    """
    is_waiting = False

    def wait(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_waiting
        if is_waiting:
            raise KeyboardInterrupt
        is_waiting = True

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    # Where a program ignores Ctrl-C or handles it in its own way, that remains.
    if not enabled or not is_main or before is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, wait)
    try:
        yield lambda: is_waiting
    finally:
        signal.signal(signal.SIGINT, before)
    if is_waiting:
        raise KeyboardInterrupt
