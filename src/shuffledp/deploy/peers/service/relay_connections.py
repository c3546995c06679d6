"""Room for connections: how many a relay holds, and how long one may take over a request.

A connection waits while its request is not there in full, or between requests. Where there is no
room for a new one, the one that has waited longest makes room; if none waits, the new one is told
to come back. Without this the relay runs out of descriptors: uvicorn's own ``limit_concurrency``
counts connections but closes none, and its time limits do not run while a request is being read.
"""

import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Where the operating system does not say how many descriptors there are.
_FEW_DESCRIPTORS: Final = 512
_MOST_CONNECTIONS: Final = 10_000
_PHRASES: Final = {408: "Request Timeout", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections, and how long they may take.

    Parameters
    ----------
    most : int
        Connections in all.
    most_from_one : int
        Connections from one address.
    accepted_at_once : int
        Connections that are accepted before the first of them is counted.
    read_seconds : float
        For sending a request, from its first byte or the connection on to its last.
    answer_seconds : float
        For making and fetching the answer.
    """

    most: int
    most_from_one: int
    accepted_at_once: int = 64
    read_seconds: float = 20.0
    answer_seconds: float = 300.0

    @classmethod
    def of_descriptors(cls, number: int) -> "Limits":
        """Return limits that leave descriptors for files, and for what is accepted or closed.

        Examples
        --------
        >>> limits = Limits.of_descriptors(1024)
        >>> limits.most, limits.most_from_one, limits.accepted_at_once
        (682, 341, 64)
        """
        most = max(2, min(2 * number // 3, _MOST_CONNECTIONS))
        return cls(
            most=most, most_from_one=most // 2, accepted_at_once=max(1, min(64, number // 16))
        )


def num_descriptors() -> int:
    """Return how many descriptors this process may have."""
    try:
        import resource
    except ImportError:  # pragma: no cover  # there is none on Windows
        return _FEW_DESCRIPTORS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 <= soft < _MOST_CONNECTIONS * 2 else _MOST_CONNECTIONS * 2


class Room:
    """Who is connected, and who makes room.

    Parameters
    ----------
    limits : Limits
        How many.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._addresses: dict[Connection, str] = {}
        self._number: Counter[str] = Counter()
        # By address, those who have waited longest first.
        self._waiting: defaultdict[str, dict[Connection, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._addresses)

    def has_room(self, address: str) -> bool:
        """Return whether one more connection from an address is let in, if need be for another."""
        if self._number[address] >= self.limits.most_from_one:
            return self._make_room(address)
        if len(self) >= self.limits.most:
            waiting = [each for each, connections in self._waiting.items() if connections]
            return self._make_room(max(waiting, key=self._number.__getitem__, default=address))
        return True

    def _make_room(self, address: str) -> bool:
        """Close what has waited longest from an address, if anything."""
        longest = next(iter(self._waiting[address]), None)
        if longest is not None:
            self.leave(longest)
            longest.refuse(503, "too many connections wait: try again")
        return longest is not None

    def enter(self, connection: "Connection", address: str) -> None:
        """Count a connection, which waits."""
        self._addresses[connection] = address
        self._number[address] += 1
        self.wait(connection)

    def wait(self, connection: "Connection") -> None:
        """Put a connection last among those who wait."""
        if connection in self._addresses:
            self.serve(connection)
            self._waiting[self._addresses[connection]][connection] = None

    def serve(self, connection: "Connection") -> None:
        """Take a connection from those who wait: all of a request is there."""
        if connection in self._addresses:
            self._waiting[self._addresses[connection]].pop(connection, None)

    def leave(self, connection: "Connection") -> None:
        """Count a connection no more; nothing happens if it is not counted."""
        self.serve(connection)
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._number[address] -= 1
        if not self._number[address]:
            del self._number[address], self._waiting[address]


class _Stage(Enum):
    """What a connection waits for: a request, an answer, or the next request."""

    READING = 0
    ANSWERING = 1
    IDLE = 2


class Connection(H11Protocol):
    """A connection of uvicorn that keeps to limits.

    Parameters
    ----------
    room : Room
        Of the server.
    **options
        As uvicorn gives them.
    """

    def __init__(self, *, room: Room, **options: Any) -> None:
        super().__init__(**options)
        self._room = room
        self._stage = _Stage.READING
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the client in, or tell it to come back."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not self._room.has_room(address):
            self.refuse(503, "too many connections: try again")
            return
        self._room.enter(self, address)
        self._set_deadline(self._room.limits.read_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._set_deadline(None)
        self._room.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for what is left of one that was answered early."""
        super().on_response_complete()
        self._look()

    def resume_writing(self) -> None:
        """Note that an answer has been fetched."""
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """Find out what the connection waits for now, and since when."""
        is_between = self.conn.their_state is h11.IDLE
        if self.conn.their_state is h11.SEND_BODY or (is_between and self.conn.trailing_data[0]):
            stage = _Stage.READING
        else:
            is_fetched = is_between and not self.flow.write_paused
            stage = _Stage.IDLE if is_fetched else _Stage.ANSWERING
        if stage is self._stage:
            return
        self._stage = stage
        if stage is _Stage.ANSWERING:
            self._room.serve(self)
            self._set_deadline(self._room.limits.answer_seconds)
        else:
            self._room.wait(self)
            # Between requests uvicorn's own limit runs.
            is_reading = stage is _Stage.READING
            self._set_deadline(self._room.limits.read_seconds if is_reading else None)

    def _set_deadline(self, seconds: float | None) -> None:
        """Begin to count the time of a stage, or stop."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        """End a connection that took too long."""
        if self._stage is _Stage.READING:
            self.refuse(408, "the request did not come in time: send it again")
        else:
            self.transport.abort()

    def refuse(self, status: int, message: str) -> None:
        """Close the connection, saying why if a request was to come and has no answer yet."""
        is_answered = self.conn.their_state is h11.SEND_BODY and self.cycle.response_started
        if self._stage is _Stage.READING and not is_answered and not self.transport.is_closing():
            body = json.dumps({"error": message})
            self.transport.write(
                f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
                f"{body}".encode()
            )
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # it does not read
