"""Time for a server's irreversible steps: not one reading of a clock alone.

Closing an epoch, answering that a report is late and destroying a key are irreversible. So the
system clock is compared with a clock that nobody sets, and with the time that was stored last.
"""

import time
from collections.abc import Callable
from typing import Final

from shuffledp.deploy.task import Task

#: Seconds of a jump (or an epoch, if longer) that is followed without a person's consent.
_LEAST_JUMP_SECONDS: Final = 600.0


def steady_seconds() -> float:
    """Return seconds of a clock that runs while the machine sleeps, and that nobody can set."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def clock_of(task: Task, last: float | None, *, is_accepted: bool = False) -> "Clock":
    """Return a server's clock, compared with its last run, or at first the task's first epoch.

    ``is_accepted`` if a person confirms that the system clock is right.
    """
    known = task.start if last is None else last
    most_jump = max(_LEAST_JUMP_SECONDS, task.epoch_seconds)
    return Clock(most_jump, None if is_accepted else known)


class Clock:
    """Seconds since 1970, or None while the system clock cannot be trusted.

    A jump by at most ``most_jump`` seconds is followed at the rate of one second a second, so that
    a jump reverted after four seconds has moved the time by four. After a larger jump the time is
    None until the clock is back, or a server is started with the clock accepted.
    """

    def __init__(
        self,
        most_jump: float,
        last: float | None = None,
        *,
        day: Callable[[], float] | None = None,
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        """``last`` is the time of the server's last run; None to trust the system clock."""
        self._most_jump, self._day, self._steady = most_jump, day or time.time, steady
        now, self._read_at = self._day(), steady()
        is_near = last is None or abs(now - last) <= most_jump
        self._expected = now if is_near or last is None else last

    def __call__(self) -> float | None:
        """Return the time: the earlier of the system clock and its expected value."""
        now, read_at = self._day(), self._steady()
        passed, self._read_at = max(0.0, read_at - self._read_at), read_at
        if abs(now - self._expected - passed) > self._most_jump:
            self._expected += passed
            return None
        self._expected = min(max(now, self._expected), self._expected + 2.0 * passed)
        return min(now, self._expected)
