"""Serving over HTTP: room for connections, bounded bodies, errors that name the party at fault.

A server of a task has a port for the others, and one for the operator alone. Nothing about a
request is logged, and no metric is about a report or a client.

A connection waits until its request is complete, and between requests. If there is no room for a
new one, the one that has waited longest is closed; if none waits, the new one is told to come
back. Without this a server runs out of descriptors: uvicorn's own ``limit_concurrency`` counts
connections but closes none, and its time limits do not run while a request is being read.

If incomplete requests take too many bytes, the largest of them is closed: so a request with less
than the mean is never refused, however many others wait. Requests that are not HTTP are answered,
and not logged.
"""

import asyncio
import gc
import ipaddress
import json
import logging
import resource
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias
from weakref import WeakSet

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from shuffledp.core.errors import OutputError, ParameterError, ShuffledpError
from shuffledp.deploy.messages import REQUEST_SECONDS, signed_request
from shuffledp.deploy.servers.settings import Settings, address_of
from shuffledp.deploy.servers.watch import EventHandler, Watch
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, is_signed

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

STATUS_OF: Final = {
    Reason.MALFORMED: 400,
    Reason.FORGED: 403,
    Reason.LIMIT: 403,
    Reason.UNKNOWN: 404,
    Reason.CONFLICT: 409,
    Reason.LATE: 410,
    Reason.MISMATCH: 412,
    Reason.EARLY: 425,
}

# Connections that the operating system keeps until they are accepted.
_MOST_PENDING: Final = 1024

_MOST_CONNECTIONS: Final = 10_000
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
# Largest size of all incomplete requests, unless a single one may take more than a quarter.
_MOST_BYTES: Final = 1 << 26
# Wrong requests are not logged, but failures are: uvicorn's log is the parent.
_REQUESTS: Final = logging.getLogger("uvicorn.error.requests")
_PHRASES: Final = {408: "Request Timeout", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits on the number of connections, and on their times."""

    # Connections in all.
    most: int
    # Connections from one address.
    most_from_one: int
    # Bytes of incomplete requests.
    most_bytes: int = _MOST_BYTES
    # Connections accepted before the first of them is counted.
    accepted_at_once: int = 64
    # For sending a request, from its first byte, or from the connection, to its last byte.
    read_seconds: float = 20.0
    # For making and fetching the answer.
    answer_seconds: float = 300.0

    @classmethod
    def of_descriptors(cls, number: int) -> "ConnectionLimits":
        """Return limits that leave descriptors for files, and for connections that begin or end."""
        most = max(2, min(2 * number // 3, _MOST_CONNECTIONS))
        at_once = max(1, min(64, number // 16))
        return cls(most=most, most_from_one=most // 2, accepted_at_once=at_once)


def num_descriptors() -> int:
    """Return the largest number of descriptors of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 <= soft < 2 * _MOST_CONNECTIONS else 2 * _MOST_CONNECTIONS


class Room:
    """Connections of a server, and the choice of those that must make room."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        # True while the server ends: it would wait for each new client until its last request.
        self.is_closed = False
        self._addresses: dict[Connection, str] = {}
        self._number: Counter[str] = Counter()
        # Connections that wait, longest first.
        self._waiting: dict[Connection, None] = {}
        self._bytes: Counter[Connection] = Counter()
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._addresses)

    def has_room(self, address: str) -> bool:
        """Return True if one more connection from an address is admitted, perhaps for another."""
        if self.is_closed:
            return False
        if self._number[address] >= self.limits.most_from_one:
            return self._make_room(address)
        if len(self) >= self.limits.most:
            waiting = {self._addresses[each] for each in self._waiting}
            return self._make_room(max(waiting, key=self._number.__getitem__, default=address))
        return True

    def _make_room(self, address: str) -> bool:
        """Close the connection that has waited longest from an address; False if none waits."""
        longest = next((each for each in self._waiting if self._addresses[each] == address), None)
        if longest is not None:
            self.leave(longest)
            longest.refuse(503, "too many connections wait: try again")
        return longest is not None

    def enter(self, connection: "Connection", address: str) -> None:
        """Count a new connection, which waits."""
        self._addresses[connection] = address
        self._number[address] += 1
        self.wait(connection)

    def wait(self, connection: "Connection") -> None:
        """Put a connection last among the waiting ones."""
        self._waiting.pop(connection, None)
        if connection in self._addresses:
            self._waiting[connection] = None

    def serve(self, connection: "Connection") -> None:
        """Remove a connection from the waiting ones: its request is complete."""
        self._waiting.pop(connection, None)
        self.num_bytes -= self._bytes.pop(connection, 0)

    def hold(self, connection: "Connection", number: int) -> None:
        """Count received bytes of a request; the largest requests make room for others."""
        self._bytes[connection] += number
        self.num_bytes += number
        while self.num_bytes > self.limits.most_bytes and self._waiting:
            largest = max(self._waiting, key=self._bytes.__getitem__)
            if not self._bytes[largest]:
                return  # the others are being answered
            self.leave(largest)
            largest.refuse(503, "too many bytes wait: try again")

    def leave(self, connection: "Connection") -> None:
        """Stop counting a connection; do nothing if it is not counted."""
        self.serve(connection)
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._number[address] -= 1
        if not self._number[address]:
            del self._number[address]


class Connection(H11Protocol):
    """A connection of uvicorn with limits."""

    def __init__(self, *, room: Room, **options: Any) -> None:
        super().__init__(**options)
        self._room, self.logger = room, _REQUESTS
        # Its state: "reading" a request, "answering", or "idle" between requests.
        self._stage = "reading"
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit the client, or tell it to come back."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not self._room.has_room(address):
            self.refuse(503, "too many connections: try again")
            return
        self._room.enter(self, address)
        self._set_deadline(self._room.limits.read_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another connection."""
        self._set_deadline(None)
        self._room.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take received bytes of a request."""
        self._room.hold(self, len(data))
        if not self.transport.is_closing():
            super().data_received(data)
            self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered early."""
        self._room.serve(self)
        self._room.hold(self, len(self.conn.trailing_data[0]))
        super().on_response_complete()
        self._look()

    def resume_writing(self) -> None:
        """Note that an answer has been read."""
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """Update the state of the connection, and its deadline."""
        is_between = self.conn.their_state is h11.IDLE
        if self.conn.their_state is h11.SEND_BODY or (is_between and self.conn.trailing_data[0]):
            stage = "reading"
        elif is_between and not self.flow.write_paused:
            stage = "idle"
        else:
            stage = "answering"
        if stage == self._stage:
            return
        self._stage, limits = stage, self._room.limits
        (self._room.serve if stage == "answering" else self._room.wait)(self)
        # Between requests uvicorn's own limit applies.
        seconds = {"reading": limits.read_seconds, "answering": limits.answer_seconds}
        self._set_deadline(seconds.get(stage))

    def _set_deadline(self, seconds: float | None) -> None:
        """Start the deadline of a state, or stop it."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        """End a connection that took too long."""
        if self._stage == "reading":
            self.refuse(408, "the request did not come in time: send it again")
        else:
            self.transport.abort()

    def refuse(self, status: int, message: str) -> None:
        """Close the connection, with an error if a request is expected and has no answer yet."""
        is_answered = self.conn.their_state is h11.SEND_BODY and self.cycle.response_started
        if self._stage == "reading" and not is_answered and not self.transport.is_closing():
            body = json.dumps({"error": message})
            self.transport.write(
                f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
                f"{body}".encode()
            )
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # the client does not read


class _Server(uvicorn.Server):
    """A server with a long queue of connections to accept, which accepts few at once."""

    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(_MOST_PENDING)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until the process is told to end; exit with 1 if background work failed."""
        app: Any = self.config.app
        try:
            super().run(sockets)
        except SystemExit:  # from the signal with which the application ends itself
            if not app.state.is_failed:
                raise
            raise SystemExit("work in the background failed") from None  # exit status 1

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer pending requests, and end."""
        self._room.is_closed = True
        await super().shutdown(sockets)


def make_server(app: Any, room: Room | None = None, *, most_body: int = 0) -> uvicorn.Server:
    """Return a server without an access log; ``most_body`` is in bytes."""
    if room is None:
        limits = ConnectionLimits.of_descriptors(num_descriptors())
        room = Room(replace(limits, most_bytes=max(_MOST_BYTES, 4 * most_body)))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=60,
        http=partial(Connection, room=room),  # type: ignore[arg-type]  # called like a class
        ws="none",
        loop="asyncio",
        backlog=room.limits.accepted_at_once,
    )
    _REQUESTS.setLevel(logging.ERROR)  # uvicorn has just reset it
    return _Server(config, room)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; connections wait until they are served."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        what = f"listen = '{host}:{port}' has no IP address: give one, such as 127.0.0.1:{port}"
        raise ParameterError(what) from None
    # With the protocol named, asyncio sends small answers at once; otherwise each waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # A server that was killed must be able to return to the same port at once.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_MOST_PENDING)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot listen at {host}, port {port}: {reason}") from error
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the address of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _NumberConvertor(IntegerConvertor):
    """Numbers in paths: at most 10 digits, since Python refuses to convert very long ones."""

    regex = "[0-9]{1,10}"


register_url_convertor("number", _NumberConvertor())


async def body_of(request: Request, most: int) -> bytes:
    """Return the body of a request; a body that is too large is not read to its end."""
    body = bytearray()  # not a list: many small pieces take forty times the memory
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise HTTPException(413, f"a body of more than {most:,} bytes, the most here")
    return bytes(body)


def token_of(request: Request) -> bytes:
    """Return the signature in the head of a request."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "signature" and token:
        with suppress(ValueError):
            return bytes.fromhex(token)
    raise HTTPException(401, "this needs a header Authorization: Signature HEX")


def data_of(content: bytes) -> Response:
    """Return bytes as an answer."""
    return Response(content, media_type="application/octet-stream", headers=_ANY_PAGE)


def print_error(error: BaseException) -> None:
    """Print an error for the operator."""
    print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201


_COME_BACK: Final = (429, 503)

# Pages of other servers may read all public data. They cannot make signed requests, for which
# browsers ask permission first.
_ANY_PAGE: Final = {"access-control-allow-origin": "*"}

#: Errors that `refusal` answers without an entry in the log.
EXPECTED: Final = (HTTPException, ClientDisconnect, ShuffledpError)


def refusal(error: Exception, on_failure: Callable[[ShuffledpError], None]) -> Response:
    """Return an error as one line of JSON; an error of the server is also reported."""
    status, message = 500, "the server made a mistake, which its log shows"
    headers = dict(_ANY_PAGE)
    match error:
        case HTTPException():
            status, message = error.status_code, error.detail
            headers |= error.headers or {}
        case ClientDisconnect():
            status, message = 400, "the request was cut short"
        case ProtocolError():
            status, message = STATUS_OF[error.reason], str(error)
        case ShuffledpError():
            on_failure(error)
            status, message = 503, "the server cannot save anything just now: try again"
    if status in _COME_BACK:
        headers.setdefault("retry-after", "1")
    return JSONResponse({"error": " ".join(message.split())}, status_code=status, headers=headers)


def told(watch: Watch, name: str, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose answers and times are reported to the watch."""

    async def answer(request: Request) -> Response:
        begun = time.monotonic()
        try:
            response = await endpoint(request)
        except EXPECTED as error:
            response = refusal(error, watch.store_failed)
        watch.answered(name, response.status_code, time.monotonic() - begun)
        return response

    return answer


def application(
    endpoints: Mapping[tuple[str, str], Endpoint],
    work: Sequence[Callable[[], Awaitable[None]]] = (),
    *,
    base: str = "",
    watch: Watch | None = None,
) -> Starlette:
    """Return an application of endpoints by method and path, with work in the background.

    Paths are below ``base``. The watch, or by default the error stream, gets the server's failures.
    A server whose background work fails ends: its supervisor starts it again.
    """
    on_failure = print_error if watch is None else watch.store_failed
    on_end = print_error if watch is None else watch.background_failed

    async def refused(_: Request, error: Exception) -> Response:
        return refusal(error, on_failure)

    def look(done: "asyncio.Future[None]") -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            on_end(error)
            app.state.is_failed = True
            signal.raise_signal(signal.SIGTERM)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        running = [asyncio.ensure_future(each()) for each in work]
        for each in running:
            each.add_done_callback(look)
        try:
            yield
        finally:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    app = Starlette(
        routes=[
            Route(
                base + path,
                endpoint if watch is None else told(watch, f"{method} {path}", endpoint),
                methods=[method],
            )
            for (method, path), endpoint in endpoints.items()
        ],
        lifespan=lifespan,
        exception_handlers=dict.fromkeys((*EXPECTED, Exception), refused),
    )
    app.state.is_failed = False
    return app


def listed(known: Mapping[str, bytes], name: str) -> Endpoint:
    """Return an endpoint that answers with the bytes known under a name."""

    async def endpoint(_: Request) -> Response:
        return data_of(known[name])

    return endpoint


# Set on SIGHUP: one a server, of which a process may run several.
_HANGUPS: Final[WeakSet[asyncio.Event]] = WeakSet()


async def on_hangup(reload: Callable[[], Callable[[], None]], watch: Watch) -> None:
    """Read settings again on SIGHUP, in a thread, then apply them.

    Faulty settings change nothing. Needs the process's first thread.
    """
    _HANGUPS.add(hangup := asyncio.Event())
    on_signal = asyncio.get_running_loop().add_signal_handler  # replaces an earlier one
    on_signal(signal.SIGHUP, lambda: list(map(asyncio.Event.set, _HANGUPS)))
    while True:
        await hangup.wait()
        hangup.clear()
        try:
            (await asyncio.to_thread(reload))()
        except ShuffledpError as error:
            watch.say("reload_failed", reason=str(error))
        else:
            watch.say("reloaded")


def require_signed(request: Request, task: Task, key: bytes) -> None:
    """Raise unless the holder of a key has just signed the request."""
    # Not of `request.url`, into which some versions of Starlette take what the head Host says.
    query = request.scope["query_string"].decode("latin-1")
    path = request.scope["path"] + (f"?{query}" if query else "")
    token = token_of(request)
    at, signature = token[:8], token[8:]
    if not is_signed(signature, key, signed_request(task.task_id, request.method, path, at)):
        what = "the request is not signed by who may make it: check which key is used"
        raise Fault.CALLER.error(what, Reason.FORGED)
    ahead = int.from_bytes(at) - time.time()
    if abs(ahead) > REQUEST_SECONDS:
        what = f"the request is from {ahead:+.0f} seconds away, and {REQUEST_SECONDS} are allowed: "
        raise Fault.CALLER.error(what + "sign it anew, and compare the clocks", Reason.FORGED)


def inner_app(watch: Watch) -> Starlette:
    """Return the endpoints of health and metrics, in the format of Prometheus."""

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        reason = watch.reason()
        return PlainTextResponse((reason or "ok") + "\n", status_code=503 if reason else 200)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(watch.numbers(), media_type=_PROMETHEUS)

    endpoints = {"/healthz": healthy, "/readyz": ready, "/metrics": metrics}
    return application({("GET", path): each for path, each in endpoints.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A server of a task, ready to be served, alone or with others."""

    app: Starlette
    task: Task
    watch: Watch
    settings: Settings


def serve(service: Service, on_ready: Callable[[str], None]) -> None:
    """Serve until the process is told to end."""
    app, settings, watch = service.app, service.settings, service.watch
    outer, inner = (listen(*address_of(each)) for each in (settings.listen, settings.inner))
    watcher = make_server(inner_app(watch), Room(ConnectionLimits(most=16, most_from_one=16)))
    thread = threading.Thread(target=watcher.run, args=([inner],), daemon=True)
    thread.start()
    server = make_server(app)
    logging.getLogger("uvicorn").handlers[:] = [EventHandler(watch)]
    watch.say("started", url=url_of(outer), task=service.task.task_id.hex())
    on_ready(url_of(outer))
    gc.freeze()  # loaded objects stay: collecting them took a tenth of the time
    try:
        server.run([outer])
    finally:
        watch.say("stopped")
        watcher.should_exit = True
        thread.join()
