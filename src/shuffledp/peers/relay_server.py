"""A relay over HTTP: its clock, its endpoints and a socket.

All bodies are bytes as the protocol makes them; errors are one line of JSON, ``{"error": ...}``.
Requests are handled one after the other, each change on disk before it is acknowledged, and each
may be repeated without harm. Paths state the user of a request, and must name the user and the
round of the signed body.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.wire import opaque
from shuffledp.network.graph import Graph
from shuffledp.peers.relay import Relay
from shuffledp.peers.terms import CODE_BYTES, REGISTRATION_BYTES, Terms

# Size of seal, signature, digests and numbers around the messages of a batch or hand-in.
_MOST_HEAD_BYTES = 1024
_TICK_SECONDS = 0.05

# Time for handing in, in rounds.
_ROUNDS_OF_HAND_IN = 10.0


@dataclass
class RelayService:
    """A relay with a clock: it opens and closes rounds as time goes by.

    A relay that was stopped and started anew begins its phase from the start: users who could not
    reach it meanwhile have the whole time again.
    """

    relay: Relay
    _: KW_ONLY
    # True to end a round as soon as all have sent, not only on time.
    is_eager: bool = False
    round_seconds: float = 60.0
    # Without it the relay waits for all users.
    register_seconds: float | None = None
    now: Callable[[], float] = time.monotonic
    # Called when the analyzer has confirmed that it has stored everything.
    on_collected: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        require_positive("round_seconds", self.round_seconds)
        if self.register_seconds is not None:
            require_positive("register_seconds", self.register_seconds)
        self._since, self._is_halfway = self.now(), False

    def advance(self) -> bool:
        """Move on to the next phase if the present one is over; return True if it was.

        While a disk is so full that a phase began and the mail before it could not be wiped, its
        time does not run: hardly anybody can send then.
        """
        before = phase, _ = self.relay.phase, self.relay.round_number
        if phase == "over" or self._is_halfway:
            return False
        limits = {"registration": self.register_seconds, "round": self.round_seconds}
        limit = limits.get(phase, _ROUNDS_OF_HAND_IN * self.round_seconds)
        is_over = limit is not None and self.now() - self._since >= limit
        if phase != "round" or self.is_eager:  # otherwise the pace would reveal fast users
            is_over = is_over or self.relay.is_complete()
        try:
            if not is_over or not self.relay.go_on():
                return False
        except ShuffledpError:
            self._is_halfway = before != (self.relay.phase, self.relay.round_number)
            raise
        self._since = self.now()
        return True

    def catch_up(self) -> None:
        """Wipe what could not be wiped when the present phase began, which begins now."""
        if self._is_halfway:
            self.relay.rewrite()
            self._since, self._is_halfway = self.now(), False

    def most_batch_bytes(self, node: int) -> int:
        """Return an upper bound on the size of a batch of a node in bytes."""
        terms, degree = self.relay.terms, int(self.relay.graph.degrees[node])
        envelopes = terms.batch_size(node, degree) * (terms.envelope_bytes + 4)
        return envelopes + degree * CODE_BYTES + _MOST_HEAD_BYTES

    def most_hand_in_bytes(self, node: int) -> int:
        """Return an upper bound on the size of a hand-in of a node in bytes."""
        terms = self.relay.terms
        return terms.slots[node] * (terms.inner_bytes + 1) + _MOST_HEAD_BYTES

    def done(self) -> Response:
        """Move on if the phase waited for this request only; return an empty answer."""
        self.advance()
        return Response(status_code=204)

    def node_of(self, request: Request) -> int:
        """Return the node of a request."""
        node = int(request.path_params["node"])
        if node >= self.relay.terms.num_users:
            raise HTTPException(404, f"node {node} is not in [0, {self.relay.terms.num_users})")
        return node

    async def run(self) -> None:
        """Move on whenever a phase is over, until cancelled."""
        while True:
            try:
                self.catch_up()
                self.advance()
            except ShuffledpError as error:  # a full disk, for example, which may get room again
                http.print_error(error)
                await asyncio.sleep(1.0)
            await asyncio.sleep(_TICK_SECONDS)


def make_app(service: RelayService) -> Starlette:
    """Return the application: endpoints for peers, for the analyzer, and public ones."""
    relay = service.relay

    async def roster(_: Request) -> Response:
        return http.data_of(relay.roster.to_bytes())

    async def register(request: Request) -> Response:
        node = service.node_of(request)
        relay.register(await http.body_of(request, REGISTRATION_BYTES), node=node)
        return service.done()

    async def send(request: Request) -> Response:
        node, number = service.node_of(request), request.path_params["round"]
        body = await http.body_of(request, service.most_batch_bytes(node))
        relay.accept_batch(body, round_number=number, node=node)
        return service.done()

    async def mail(request: Request) -> Response:
        node, number = service.node_of(request), request.path_params["round"]
        return http.data_of(relay.mail(node, number, http.token_of(request)))

    async def hand_in(request: Request) -> Response:
        node = service.node_of(request)
        body = await http.body_of(request, service.most_hand_in_bytes(node))
        relay.accept_hand_in(body, node=node)
        return service.done()

    async def status(_: Request) -> Response:
        return JSONResponse(relay.status())

    async def hand_ins(request: Request) -> Response:
        return http.data_of(b"".join(map(opaque, relay.hand_ins(http.token_of(request)))))

    async def forget_hand_ins(request: Request) -> Response:
        relay.forget_hand_ins(http.token_of(request))
        service.on_collected()
        return service.done()

    async def record(request: Request) -> Response:
        return JSONResponse({"absent": relay.record(http.token_of(request))})

    endpoints: dict[tuple[str, str], http.Endpoint] = {
        ("GET", "/roster"): roster,
        ("PUT", "/registration/{node:number}"): register,
        ("PUT", "/rounds/{round:number}/batches/{node:number}"): send,
        ("GET", "/rounds/{round:number}/mail/{node:number}"): mail,
        ("PUT", "/hand-in/{node:number}"): hand_in,
        ("GET", "/status"): status,
        ("GET", "/hand-ins"): hand_ins,
        ("DELETE", "/hand-ins"): forget_hand_ins,
        ("GET", "/record"): record,
    }
    return http.application(endpoints, [service.run])


def serve_relay(
    terms: Terms,
    graph: Graph,
    store: Path,
    *,
    on_ready: Callable[[str], None],
    address: tuple[str, int] = ("127.0.0.1", 0),
    until_collected: bool = False,
    **clock: Any,
) -> None:
    """Serve a relay until the process is told to stop, or, if asked, until all was collected.

    HTTP only: beyond one machine a reverse proxy must add TLS, which hides from the network who
    sends requests to the relay, how often and with which signatures. It continues where the last
    relay with that file stopped; ``on_ready`` gets the URL once requests are taken. ``clock`` is as
    in `RelayService`.
    """

    def stop() -> None:
        server.should_exit = True

    with http.listen(*address) as listening, Relay(store, terms, graph) as relay:
        service = RelayService(relay, **clock)
        if until_collected:
            service.on_collected = stop
        nodes = range(terms.num_users)
        most = max(max(service.most_batch_bytes(n), service.most_hand_in_bytes(n)) for n in nodes)
        server = http.make_server(make_app(service), most_body=most)
        on_ready(http.url_of(listening))
        server.run(sockets=[listening])
