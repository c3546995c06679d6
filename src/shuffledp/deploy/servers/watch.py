"""A server watches itself: a time that it can trust, events, metrics for Prometheus, readiness.

Closing an epoch, answering that a report is late and destroying a key are irreversible. So the
system clock is compared with a clock that nobody sets, and with the time that was stored last.

Events go to the error stream, one JSON object a line. Events, names of fields and metrics are
closed lists, so that nothing about a report or a client can slip in: no id, no address, no time
except the line's own.
"""

import asyncio
import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

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


# --------------------------------------------------------------------- events and metrics
_LONGEST_REASON: Final = 300
# Seconds without a sign of life after which a server is said to hang.
_LONGEST_SILENCE: Final = 15.0
_MOST_FRAMES: Final = 6

#: Largest number of lines a second that requests can cause, so that an error cannot fill the disk.
MOST_LINES: Final = 5

#: Events, with their levels.
EVENTS: Final = {
    "started": "info",
    "batch_closed": "info",
    "batch_sealed": "info",
    "batch_short": "warning",
    "batch_dropped": "warning",
    "batch_fetched": "info",
    "key_destroyed": "info",
    "clock_jumped": "error",
    "clock_back": "info",
    "published": "info",
    "batch_kept": "warning",
    "batch_refused": "error",
    "budget_refused": "error",
    "shuffler_away": "warning",
    "shuffler_back": "info",
    "store_failed": "error",
    "store_works": "info",
    "server_failed": "error",
    "reloaded": "info",
    "reload_failed": "error",
    "stopped": "info",
}


# Fields that an event may have besides time, level, role and event: ``reports`` is the number in a
# batch, ``reason`` one line for people.
FIELDS: Final = (
    "time", "level", "role", "event", "url", "task", "epoch", "batch", "reports", "reason",
)  # fmt: skip

# Metrics of either role.
_OF_BOTH: Final = {
    "requests_total": ("counter", "endpoint status", "Requests, by endpoint and status."),
    "request_seconds": ("summary", "endpoint", "Time to answer, by endpoint."),
    "suppressed_lines_total": ("counter", "", "Log lines left out: too many in a second."),
}

# By role and name: kind, names of its labels if any, and description.
_LISTED: Final = {
    "shuffler": {
        **_OF_BOTH,
        "reports_total": ("counter", "outcome", "Reports by what became of them."),
        "queue_reports": ("gauge", "", "Reports that wait to be stored."),
        "commit_seconds": ("summary", "", "Time to store what came together."),
        "waiting_reports": ("gauge", "", "Reports stored and not released."),
        "least_batch_reports": ("gauge", "", "Fewest reports in a batch."),
        "short_epochs": ("gauge", "", "Closed epochs whose reports wait for more."),
        "batches": ("gauge", "state", "Batches by state."),
        "sealed_age_seconds": ("gauge", "", "Time since the oldest batch to be fetched was due."),
        "oldest_key_age_seconds": ("gauge", "", "Time since the first epoch with a key began."),
        "keys_left_seconds": ("gauge", "", "Time until the last epoch ends that has a key."),
        "task_left_seconds": ("gauge", "", "Time until the task's last epoch ends."),
        "key_present": ("gauge", "", "Whether the present epoch has a key."),
        "clock_believed": ("gauge", "", "Whether the clock is where it should be."),
    },
    "analyzer": {
        **_OF_BOTH,
        "batches": ("gauge", "state", "Batches published, and refused."),
        "shuffler_answers": ("gauge", "", "Whether the shuffler answered last."),
        "shuffler_answered_timestamp_seconds": ("gauge", "", "When it did, in seconds since 1970."),
        "newest_batch_reports": ("gauge", "", "Reports in the newest batch."),
        "budget_epsilon": ("gauge", "", "Budget of the ledger."),
        "budget_left_epsilon": ("gauge", "", "What is left of it."),
    },
}

#: The same metrics by full name.
METRICS: Final[Mapping[str, tuple[str, str, str]]] = {
    f"shuffledp_{role}_{name}": row for role, rows in _LISTED.items() for name, row in rows.items()
}


class Watch:
    """Log and metrics of one server, and the reasons why it is not ready, by subject.

    Written by one thread, read by another.
    """

    def __init__(self, role: str) -> None:
        self._role, self._prefix = role, f"shuffledp_{role}_"
        self._values: dict[tuple[str, str], float] = {}
        self.problems: dict[str, str] = {}
        #: Fields of every event, such as the task where there are several.
        self.always: dict[str, str] = {}
        self._lived: float | None = None

    async def live(self) -> None:
        """Note that the thread that serves requests is alive, until cancelled."""
        while True:
            self._lived = time.monotonic()
            await asyncio.sleep(1.0)

    def say(self, event: str, **fields: Any) -> None:
        """Write an event; raise for an event or a name that is not listed."""
        unknown = set(fields) - set(FIELDS)
        if unknown or event not in EVENTS:
            raise ValueError(f"event {event!r} with {sorted(unknown)} is not listed in watch.py")
        if "reason" in fields:
            fields["reason"] = " ".join(fields["reason"].split())[:_LONGEST_REASON]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "level": EVENTS[event], "role": self._role, "event": event}
        line |= self.always | fields
        print(json.dumps(line), file=sys.stderr, flush=True)  # noqa: T201  # for the operator

    def set(self, name: str, value: float, label: str = "") -> None:
        """Set a metric; raise `KeyError` for a name that is not listed."""
        METRICS[self._prefix + name]
        self._values[name, label] = value

    def set_all(self, name: str, values: Mapping[str, float]) -> None:
        """Set a metric under these labels, and leave it out under all others."""
        METRICS[self._prefix + name]
        others = {key: each for key, each in self._values.items() if key[0] != name}
        self._values = others | {(name, label): each for label, each in values.items()}

    def observe(self, name: str, value: float, label: str = "") -> None:
        """Add one to the count of a summary, and a value to its sum."""
        METRICS[self._prefix + name]
        self._add(f"{name}_sum", value, label)
        self._add(f"{name}_count", 1, label)

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Note an answer to a request."""
        self._add("requests_total", 1, f"{endpoint}\0{status}")
        self.observe("request_seconds", seconds, endpoint)

    def _add(self, name: str, amount: float, label: str) -> None:
        """Add to a metric, whose labels are joined by a zero byte."""
        self._values[name, label] = self._values.get((name, label), 0) + amount

    def numbers(self) -> str:
        """Return all metrics with their descriptions, in the format of Prometheus."""
        values, lines = sorted(self._values.items()), []
        for full, (kind, label_names, explanation) in METRICS.items():
            name = full.removeprefix(self._prefix)
            parts = {f"{name}_sum", f"{name}_count"} if kind == "summary" else {name}
            found = [
                f"{self._prefix}{part}{_labelled(label_names, label)} {value}"
                for (part, label), value in values
                if part in parts
            ]
            if found:
                lines += [f"# HELP {full} {explanation}", f"# TYPE {full} {kind}", *found]
        return "".join(line + "\n" for line in lines)

    def reason(self) -> str:
        """Return the reason why the server is not ready, in one line; empty if it is ready."""
        found, lived = [*dict(self.problems).values()], self._lived
        if lived is not None and (silence := time.monotonic() - lived) > _LONGEST_SILENCE:
            what = f"it has served nobody for {silence:.0f} seconds: see whether its database or "
            found.append(f"{what}disk hangs")
        return " ".join("; ".join(dict.fromkeys(found)).split())

    def look(self, subject: str, reason: str, *, failed: str = "", works: str = "") -> None:
        """Store the reason why the server is not ready, or none; log an event if this changes."""
        before = self.problems.get(subject, "")
        if reason:
            self.problems[subject] = reason
        else:
            self.problems.pop(subject, None)
        event = failed if reason else works
        if event and bool(reason) != bool(before):
            self.say(event, **({"reason": reason} if reason else {}))

    def store_failed(self, error: Exception) -> None:
        """Note that a write failed."""
        self.look("store", str(error), failed="store_failed")

    def store_works(self) -> None:
        """Note that a write succeeded."""
        self.look("store", "", works="store_works")

    def background_failed(self, error: BaseException) -> None:
        """Note that background work ended, and that the server will."""
        self.problems["background"] = f"work in the background ended: {type(error).__name__}"
        self.say("server_failed", reason=self.problems["background"])


def _labelled(names: str, values: str) -> str:
    """Return labels in the format of Prometheus."""
    pairs = zip(names.split(), values.split("\0"), strict=True) if names else ()
    said = ",".join(f'{name}="{value}"' for name, value in pairs)
    return f"{{{said}}}" if said else ""


class EventHandler(logging.Handler):
    """Turns log entries of the HTTP library into events: an error's kind and place, no values."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(logging.WARNING)
        self._watch, self._second, self._num_left = watch, 0, MOST_LINES
        self._num_suppressed = 0
        watch.set("suppressed_lines_total", 0)

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry, or count it."""
        if int(record.created) != self._second:
            self._second, self._num_left = int(record.created), MOST_LINES
        self._num_left -= 1
        if self._num_left < 0:
            self._num_suppressed += 1
            self._watch.set("suppressed_lines_total", self._num_suppressed)
            return
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            reason = str(record.msg)  # without the values of its placeholders
        else:
            frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
            places = (f"{Path(each.filename).name}:{each.lineno}" for each in frames)
            reason = f"{type(error).__name__} at {' > '.join(places)}"
        self._watch.say("server_failed", reason=reason)
