"""What both servers are over HTTP: a port for the others, and one for the operator alone.

Nothing is logged of a request, and no number is about a report or a client.
"""

import gc
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from shuffledp.deploy.messages import signed_request
from shuffledp.deploy.sealing import is_signed
from shuffledp.deploy.servers.http_server import (
    ConnectionLimits,
    Endpoint,
    Room,
    application,
    data_of,
    listen,
    make_server,
    token_of,
    url_of,
)
from shuffledp.deploy.servers.settings import Settings, address_of
from shuffledp.deploy.servers.watch import EventHandler, Watch
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def task_app(
    task: Task,
    endpoints: Mapping[tuple[str, str], Endpoint],
    work: list[Callable[[], Any]],
    watch: Watch,
) -> Starlette:
    """Return an application below /tasks/ID, with what runs as long as it does.

    A server whose work in the background fails ends: whoever watches it starts it again.
    """
    base = f"/tasks/{task.task_id.hex()}"
    return application(
        {(method, base + path): endpoint for (method, path), endpoint in endpoints.items()},
        work,
        on_failure=watch.store_failed,
        on_end=watch.background_failed,
    )


def constant(data: bytes) -> Endpoint:
    """Return an endpoint that always says the same."""

    async def endpoint(_: Request) -> Response:
        return data_of(data)

    return endpoint


def require_signed(request: Request, task: Task, key: bytes) -> None:
    """Raise unless the holder of a key has signed the request."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if not is_signed(token_of(request), key, signed_request(task.task_id, request.method, path)):
        raise ProtocolError(
            "the request is not signed by who may make it: check which key is used",
            fault=Fault.CALLER,
            reason=Reason.FORGED,
        )


def inner_app(watch: Watch) -> Starlette:
    """Return what tells the operator of health and numbers, as Prometheus reads them."""

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        reason = watch.reason()
        return PlainTextResponse((reason or "ok") + "\n", status_code=503 if reason else 200)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(watch.numbers(), media_type=_PROMETHEUS)

    return application(
        {("GET", "/healthz"): healthy, ("GET", "/readyz"): ready, ("GET", "/metrics"): metrics}
    )


def serve(
    app: Any, task: Task, watch: Watch, settings: Settings, on_ready: Callable[[str], None]
) -> None:
    """Serve until the process is told to end."""
    outer_socket = listen(*address_of(settings.listen))
    inner_socket = listen(*address_of(settings.inner))
    watcher = make_server(inner_app(watch), Room(ConnectionLimits(most=16, most_from_one=16)))
    thread = threading.Thread(target=watcher.run, args=([inner_socket],), daemon=True)
    thread.start()
    server = make_server(app)
    logging.getLogger("uvicorn").handlers[:] = [EventHandler(watch)]
    watch.say("started", url=url_of(outer_socket), task=task.task_id.hex())
    on_ready(url_of(outer_socket))
    gc.freeze()  # what is loaded stays: looking through it took a tenth of the time
    try:
        server.run([outer_socket])
    finally:
        watch.say("stopped")
        watcher.should_exit = True
        thread.join()
