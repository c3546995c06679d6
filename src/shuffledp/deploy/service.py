"""Shuffler and analyzer over HTTP: bodies are bytes as `messages` makes them, errors one line JSON.

Reports that arrive together are stored in one transaction, and each is acknowledged when it is on
disk. Nothing is logged of a request. Health and numbers are at a port of their own, for the
operator: no number of them is about a report or a client.
"""

import asyncio
import gc
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from shuffledp.core.errors import BudgetError, OutputError, ShuffledpError
from shuffledp.deploy.events import EventHandler
from shuffledp.deploy.http_server import (
    ConnectionLimits,
    Endpoint,
    Room,
    body_of,
    failed,
    listen,
    make_server,
    num_descriptors,
    refused,
    token_of,
    told,
    url_of,
)
from shuffledp.deploy.messages import (
    MOST_REPORTS,
    Answer,
    Report,
    report_size,
    signed_request,
)
from shuffledp.deploy.opening import opened_in, workers
from shuffledp.deploy.sealing import is_signed
from shuffledp.deploy.settings import Settings, address_of
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.watch import ShufflerWatch, Watch
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

#: Most reports that wait to be stored; beyond them clients are told to come back.
MOST_WAITING: Final = 20_000

_MOST_AT_ONCE = 2_000
_TICK_SECONDS = 1.0
_BYTES = "application/octet-stream"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Intake:
    """Stores what arrives, many uploads in one transaction."""

    def __init__(self, shuffler: Shuffler, now: Callable[[], float], watch: ShufflerWatch) -> None:
        self._shuffler, self._now, self._watch = shuffler, now, watch
        self._waiting: list[tuple[list[Report], asyncio.Future[list[Answer]]]] = []
        self._num_waiting = 0
        self._woken = asyncio.Event()

    async def take(self, body: bytes) -> list[Answer]:
        """Return what became of each report of an upload, once it is on disk."""
        reports = self._shuffler.reports_in(body)
        if self._num_waiting + len(reports) > MOST_WAITING:
            raise HTTPException(503, "too many reports wait to be stored: try again")
        stored: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append((reports, stored))
        self._num_waiting += len(reports)
        self._woken.set()
        return await stored

    async def run(self) -> None:
        """Store what waits, until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                self._store_some()
                await asyncio.sleep(0)  # lets others in

    def _store_some(self) -> None:
        """Store the uploads that have waited longest."""
        some: list[tuple[list[Report], asyncio.Future[list[Answer]]]] = []
        number = 0
        while self._waiting and (not some or number + len(self._waiting[0][0]) <= _MOST_AT_ONCE):
            some.append(self._waiting.pop(0))
            number += len(some[-1][0])
        self._num_waiting -= number
        begun = time.monotonic()
        try:
            reports = [report for each, _ in some for report in each]
            answers = iter(self._shuffler.take_reports(reports, self._now()))
        except ShuffledpError as error:
            for _, stored in some:
                if not stored.done():
                    stored.set_exception(error)
            return
        self._watch.stored(time.monotonic() - begun, self._num_waiting)
        for each, stored in some:
            found = [next(answers) for _ in each]
            if not stored.done():
                stored.set_result(found)


def shuffler_app(
    shuffler: Shuffler,
    *,
    public_keys: bytes,
    analyzer_keys: bytes,
    analyzer_key: bytes,
    watch: ShufflerWatch,
    now: Callable[[], float] = time.time,
    tick_seconds: float = _TICK_SECONDS,
) -> "Shortcut":
    """Return the shuffler's application, with its clock."""
    task = shuffler.task
    intake = Intake(shuffler, now, watch)
    size = MOST_REPORTS * report_size(task.asked.codec.num_report_bytes)

    async def reports(request: Request) -> Response:
        answers = await intake.take(await body_of(request, size))
        return Response(bytes(answers), media_type=_BYTES)

    async def batches(request: Request) -> Response:
        _require_signed(request, task.task_id, analyzer_key)
        after = request.query_params.get("after", "0")
        if not after.isdecimal():
            raise HTTPException(400, f"after = {after!r} is not a number of a batch")
        return JSONResponse({"sealed": shuffler.sealed_after(int(after))})

    async def batch(request: Request) -> Response:
        _require_signed(request, task.task_id, analyzer_key)
        number = request.path_params["number"]
        if request.method == "DELETE":
            shuffler.forget(number)
            watch.watch.log.say("batch_fetched", batch=number)
            return Response(status_code=204)
        shuffler.require_sealed(number)
        return Response(await asyncio.to_thread(shuffler.read, number), media_type=_BYTES)

    app = _app(
        task.task_id,
        {
            "": (_constant(task.encode()), ["GET"]),
            "/keys": (_constant(public_keys), ["GET"]),
            "/analyzer_keys": (_constant(analyzer_keys), ["GET"]),
            "/reports": (reports, ["POST"]),
            "/batches": (batches, ["GET"]),
            "/batches/{number:number}": (batch, ["GET", "DELETE"]),
        },
        [intake.run, partial(_release_batches, shuffler, watch, now, tick_seconds)],
        watch.watch,
    )
    path = f"/tasks/{task.task_id.hex()}/reports"
    return Shortcut(app, path, told(reports, watch.watch.store_failed))


@dataclass(frozen=True, slots=True)
class Shortcut:
    """An application whose uploads go round routes and layers, which took a third of their time."""

    app: Starlette
    path: str
    reports: Endpoint

    @property
    def state(self) -> State:
        """What the application knows of itself."""
        return self.app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self.path:
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self.reports(request)
        except HTTPException as error:
            response = await refused(request, error)
        await response(scope, receive, send)


async def _release_batches(
    shuffler: Shuffler,
    watch: ShufflerWatch,
    now: Callable[[], float],
    tick_seconds: float,
) -> None:
    """Release batches as epochs end; others come in while their reports are opened."""
    while True:
        try:
            for number in shuffler.closed(now()):
                watch.closed(number)
                state = shuffler.batch(number)
                with workers(shuffler.size(number)) as executor:
                    opened = await opened_in(executor, shuffler.pages(number))
                try:
                    written = await asyncio.to_thread(shuffler.write, state, opened)
                except BudgetError as error:
                    written = None
                    watch.watch.log.say("budget_refused", batch=number, reason=str(error))
                watch.released(shuffler.settle(state, written))
            watch.tick(now())
        except OutputError as error:  # a full disk: each step can be done again
            watch.watch.store_failed(error)
        await asyncio.sleep(tick_seconds)


def analyzer_app(
    task_id: bytes,
    *,
    public_keys: bytes,
    operator_key: bytes,
    results: Path,
    refusals: Mapping[int, str],
    work: Callable[[], Awaitable[None]],
    watch: Watch,
) -> Starlette:
    """Return the analyzer's application: results lie in folders named by their batch's number."""

    async def index(request: Request) -> Response:
        _require_signed(request, task_id, operator_key)
        said = {str(number): why for number, why in refusals.items()}
        return JSONResponse({"batches": batches_in(results), "refused": said})

    async def file(request: Request) -> Response:
        _require_signed(request, task_id, operator_key)
        number, name = request.path_params["number"], request.path_params["name"]
        path = results / str(number) / name
        if number not in batches_in(results) or path.parent != results / str(number):
            raise HTTPException(404, f"there is no result of batch {number}")
        if not path.is_file():
            raise HTTPException(404, f"there is no file {name!r} of batch {number}")
        return Response(path.read_bytes(), media_type=_BYTES)

    return _app(
        task_id,
        {
            "/keys": (_constant(public_keys), ["GET"]),
            "/results": (index, ["GET"]),
            "/results/{number:number}/{name}": (file, ["GET"]),
        },
        [work],
        watch,
    )


def batches_in(results: Path) -> list[int]:
    """Return the numbers of batches with results."""
    return sorted(int(path.name) for path in results.glob("[0-9]*") if path.is_dir())


def _constant(data: bytes) -> Endpoint:
    """Return an endpoint that always says the same."""

    async def endpoint(_: Request) -> Response:
        return Response(data, media_type=_BYTES)

    return endpoint


def _require_signed(request: Request, task_id: bytes, key: bytes) -> None:
    """Raise unless the holder of a key has signed the request."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if not is_signed(token_of(request), key, signed_request(task_id, request.method, path)):
        raise ProtocolError(
            "the request is not signed by who may make it: check which key is used",
            fault=Fault.CALLER,
            reason=Reason.FORGED,
        )


def _app(
    task_id: bytes,
    endpoints: Mapping[str, tuple[Endpoint, list[str]]],
    background: list[Callable[[], Awaitable[None]]],
    watch: Watch,
) -> Starlette:
    """Return an application below /tasks/ID, with what runs as long as it does."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        running = [asyncio.ensure_future(each()) for each in background]
        for each in running:
            each.add_done_callback(partial(_end_on_failure, watch))
        try:
            yield
        finally:
            for each in running:
                each.cancel()
            for each in running:
                with suppress(asyncio.CancelledError):
                    await each

    base = f"/tasks/{task_id.hex()}"
    app = Starlette(
        routes=[
            Route(base + path, told(endpoint, watch.store_failed), methods=methods)
            for path, (endpoint, methods) in endpoints.items()
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: refused, Exception: failed},
    )
    app.state.task_id = task_id
    return app


def _end_on_failure(watch: Watch, done: "asyncio.Future[None]") -> None:
    """End a server whose work in the background failed: whoever watches it starts it again."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        watch.background_failed(error)
        signal.raise_signal(signal.SIGTERM)


def inner_app(watch: Watch) -> Starlette:
    """Return what tells the operator of health and numbers, as Prometheus reads them."""

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        reason = watch.reason()
        return PlainTextResponse((reason or "ok") + "\n", status_code=503 if reason else 200)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(watch.metrics.text(), media_type=_PROMETHEUS)

    return Starlette(
        routes=[
            Route("/healthz", healthy),
            Route("/readyz", ready),
            Route("/metrics", metrics),
        ]
    )


def serve(
    app: "Starlette | Shortcut", watch: Watch, settings: Settings, on_ready: Callable[[str], None]
) -> None:
    """Serve until the process is told to end."""
    outer_socket = listen(*address_of(settings.listen))
    inner_socket = listen(*address_of(settings.inner))
    limits = ConnectionLimits.of_descriptors(num_descriptors())
    watcher = make_server(inner_app(watch), Room(ConnectionLimits(most=16, most_from_one=16)))
    thread = threading.Thread(target=watcher.run, args=([inner_socket],), daemon=True)
    thread.start()
    server = make_server(app, Room(limits))
    logger = logging.getLogger("uvicorn")
    logger.handlers[:] = [EventHandler(watch.log)]
    watch.log.say("started", url=url_of(outer_socket), task=app.state.task_id.hex())
    on_ready(url_of(outer_socket))
    gc.freeze()  # what is loaded stays: looking through it took a tenth of the time
    try:
        server.run([outer_socket])
    finally:
        watch.log.say("stopped")
        watcher.should_exit = True
        thread.join()
