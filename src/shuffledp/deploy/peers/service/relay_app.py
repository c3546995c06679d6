"""The relay's endpoints over HTTP.

All bodies are bytes as the protocol makes them; errors are one line of JSON, ``{"error": ...}``.
Requests are handled one after the other, each change on disk before it is acknowledged, and each
may be repeated without harm. Paths say who a request is about, and must name the user and the round
of the signed body.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy.peers.protocol.errors import ProtocolError, Reason
from shuffledp.deploy.peers.protocol.keys import registration_bytes
from shuffledp.deploy.peers.service.framing import join_messages
from shuffledp.deploy.peers.service.relay_service import RelayService


class _NumberConvertor(IntegerConvertor):
    """Numbers of the paths: no more digits than are read, or Python refuses to."""

    regex = "[0-9]{1,10}"


register_url_convertor("number", _NumberConvertor())

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

STATUS_OF = {
    Reason.MALFORMED: 400,
    Reason.FORGED: 403,
    Reason.LIMIT: 403,
    Reason.UNKNOWN: 404,
    Reason.CONFLICT: 409,
    Reason.LATE: 410,
    Reason.MISMATCH: 412,
    Reason.EARLY: 425,
}

_TICK_SECONDS = 0.05
_TOKEN_SCHEME = "signature "  # noqa: S105  # the name of a scheme, no secret


def make_app(
    service: RelayService, *, until_collected: Callable[[], None] | None = None
) -> Starlette:
    """Return the application.

    Parameters
    ----------
    service : RelayService
        What it is about.
    until_collected : callable, optional
        Called once the analyzer has everything in a file.

    Returns
    -------
    starlette.applications.Starlette
        Its lifespan runs the round clock.
    """
    endpoints = _Endpoints(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        clock = asyncio.create_task(_run_clock(service, until_collected))
        try:
            yield
        finally:
            clock.cancel()
            with suppress(asyncio.CancelledError):
                await clock

    return Starlette(
        routes=[
            Route("/status", _told(endpoints.status), methods=["GET"]),
            Route("/roster", _told(endpoints.roster), methods=["GET"]),
            Route("/registration/{node:number}", _told(endpoints.register), methods=["PUT"]),
            Route(
                "/rounds/{round:number}/batches/{node:number}",
                _told(endpoints.send),
                methods=["PUT"],
            ),
            Route(
                "/rounds/{round:number}/mail/{node:number}", _told(endpoints.mail), methods=["GET"]
            ),
            Route("/hand-in/{node:number}", _told(endpoints.hand_in), methods=["PUT"]),
            Route("/hand-ins", _told(endpoints.hand_ins), methods=["GET"]),
            Route("/hand-ins", _told(endpoints.forget_hand_ins), methods=["DELETE"]),
            Route("/record", _told(endpoints.record), methods=["GET"]),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )


class _Endpoints:
    """One method an endpoint."""

    def __init__(self, service: RelayService) -> None:
        self._service = service

    async def status(self, _: Request) -> Response:
        """Say what the relay is doing."""
        return JSONResponse(self._service.status())

    async def roster(self, _: Request) -> Response:
        """Return all registrations, once registration has ended."""
        return _data(self._service.core.roster.to_bytes())

    async def register(self, request: Request) -> Response:
        """Take a user's registration."""
        node = self._node(request)
        body = await _body(request, registration_bytes(self._service.terms))
        self._service.core.register(body, node=node)
        self._service.advance()
        return Response(status_code=204)

    async def send(self, request: Request) -> Response:
        """Take what a user sends in a round."""
        node, number = self._node(request), request.path_params["round"]
        body = await _body(request, self._service.most_batch_bytes(node))
        self._service.core.accept_batch(body, round_number=number, node=node)
        self._service.advance()
        return Response(status_code=204)

    async def mail(self, request: Request) -> Response:
        """Return what came for a user in a round that is over."""
        node, number = self._node(request), request.path_params["round"]
        return _data(self._service.mail(node, number, _token(request)))

    async def hand_in(self, request: Request) -> Response:
        """Take what a user hands in."""
        node = self._node(request)
        body = await _body(request, self._service.most_hand_in_bytes(node))
        self._service.accept_hand_in(body, node=node)
        self._service.advance()
        return Response(status_code=204)

    async def hand_ins(self, request: Request) -> Response:
        """Return all that was handed in, to the analyzer."""
        return _data(join_messages(self._service.hand_ins(_token(request))))

    async def forget_hand_ins(self, request: Request) -> Response:
        """Forget all that was handed in, when the analyzer has stored it."""
        self._service.forget_hand_ins(_token(request))
        return Response(status_code=204)

    async def record(self, request: Request) -> Response:
        """Return who was absent in which round, to the analyzer."""
        return JSONResponse(self._service.record(_token(request)))

    def _node(self, request: Request) -> int:
        """Return the node of the path."""
        node = int(request.path_params["node"])
        if node >= self._service.terms.num_users:
            raise HTTPException(404, f"node {node} is not in [0, {self._service.terms.num_users})")
        return node


async def _run_clock(service: RelayService, until_collected: Callable[[], None] | None) -> None:
    """Move on whenever it is time, until cancelled."""
    while True:
        try:
            service.advance()
        except ShuffledpError as error:  # a full disk, for example, which may get room again
            print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201
            await asyncio.sleep(1.0)
        if service.was_collected and until_collected is not None:
            until_collected()
        await asyncio.sleep(_TICK_SECONDS)


async def _body(request: Request, most: int) -> bytes:
    """Return the body of a request; one that is too large is not read to its end."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise HTTPException(413, f"a body of more than {most:,} bytes, the most here")
        pieces.append(piece)
    return b"".join(pieces)


def _token(request: Request) -> bytes:
    """Return the signature in the head of a request."""
    given = request.headers.get("authorization", "")
    try:
        if given[: len(_TOKEN_SCHEME)].lower() == _TOKEN_SCHEME:
            return bytes.fromhex(given[len(_TOKEN_SCHEME) :])
    except ValueError:
        pass
    raise HTTPException(401, "this needs a header Authorization: Signature HEX")


def _data(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _error(status: int, message: str) -> Response:
    """Return an error as one line of JSON."""
    return JSONResponse({"error": " ".join(message.split())}, status_code=status)


def _told(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose errors say whose fault they are."""

    async def handle(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ProtocolError as error:
            return _error(STATUS_OF[error.reason], str(error))
        except ShuffledpError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201
            return _error(503, "the relay cannot save anything just now: try again")
        except ClientDisconnect:
            return _error(400, "the request was cut short")

    return handle


async def _refused(_: Request, error: Exception) -> Response:
    """Answer what no endpoint is for."""
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    return _error(error.status_code if isinstance(error, HTTPException) else 500, detail)


async def _failed(_: Request, _error_seen: Exception) -> Response:
    """Answer what should not happen; the server prints the traceback."""
    return _error(500, "the relay made a mistake, which its log shows")
