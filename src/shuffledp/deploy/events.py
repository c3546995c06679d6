"""What a server says of itself on the error stream: one JSON object a line.

Events and the names of fields are closed lists, so that nothing about a report or a client can slip
in: no id, no address, no time but that of the line.
"""

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Final, TypedDict, Unpack

_LONGEST_REASON: Final = 300
_MOST_FRAMES: Final = 6

#: Each event and how grave it is.
EVENTS: Final = {
    "started": "info",
    "batch_closed": "info",
    "batch_sealed": "info",
    "batch_short": "warning",
    "batch_dropped": "warning",
    "batch_fetched": "info",
    "key_destroyed": "info",
    "published": "info",
    "batch_refused": "error",
    "budget_refused": "error",
    "shuffler_away": "warning",
    "shuffler_back": "info",
    "store_failed": "error",
    "store_works": "info",
    "server_failed": "error",
    "stopped": "info",
}


class Fields(TypedDict, total=False):
    """What an event may say besides time, level, role and event."""

    url: str
    task: str
    epoch: int
    batch: int
    #: How many reports a batch has.
    reports: int
    #: One line for people.
    reason: str


FIELDS: Final = ("time", "level", "role", "event", *Fields.__annotations__)


class EventLog:
    """Writes the events of one role."""

    def __init__(self, role: str) -> None:
        self._role = role

    def say(self, event: str, **fields: Unpack[Fields]) -> None:
        """Write an event; raise for an event or a name that is not listed."""
        unknown = set(fields) - set(FIELDS)
        if unknown or event not in EVENTS:
            raise ValueError(f"event {event!r} with {sorted(unknown)} is not listed in events.py")
        if "reason" in fields:
            fields["reason"] = " ".join(fields["reason"].split())[:_LONGEST_REASON]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "level": EVENTS[event], "role": self._role, "event": event, **fields}
        print(json.dumps(line), file=sys.stderr, flush=True)  # noqa: T201  # for the operator


class EventHandler(logging.Handler):
    """Turns what the HTTP library logs into events: of an error its kind and place, no values."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            reason = str(record.msg)  # without the values that are put into it
        else:
            frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
            places = (f"{Path(each.filename).name}:{each.lineno}" for each in frames)
            reason = f"{type(error).__name__} at {' > '.join(places)}"
        self._log.say("server_failed", reason=reason)
