"""A relay over HTTP: its clock, its endpoints, a socket and the operator's keyboard.

All bodies are bytes as the protocol makes them; errors are one line of JSON, ``{"error": ...}``.
Requests are handled one after the other, each change on disk before it is acknowledged, and each
may be repeated without harm. Paths say who a request is about, and must name the user and the round
of the signed body.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError, ShuffledpError
from shuffledp.deploy.peers.preparing import most_envelopes
from shuffledp.deploy.peers.protocol.relay import RelayCore
from shuffledp.deploy.peers.protocol.terms import CODE_BYTES, REGISTRATION_BYTES, Terms
from shuffledp.deploy.peers.stores import SqliteStore
from shuffledp.deploy.servers.http_server import (
    application,
    body_of,
    data_of,
    listen,
    make_server,
    token_of,
    url_of,
)
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, join_messages
from shuffledp.network.graph import Graph

CLOCK_MODES = ("interval", "all", "manual")

# Seal, signature, digests and numbers around the messages of a batch or hand-in.
_MOST_HEAD_BYTES = 1024
_TICK_SECONDS = 0.05


@dataclass(slots=True, kw_only=True)
class RoundClock:
    """Says when the present phase is over; whoever asks says what time it is.

    A relay that was stopped and started anew begins the phase that it was in from its start: who
    could not reach it meanwhile has the whole time again.
    """

    # How rounds end: after ``round_seconds``, so that nothing but the clock decides; as soon as
    # every registered user has sent, at the latest after ``round_seconds``; or when told.
    mode: str = "interval"
    # Length of a round, > 0.
    round_seconds: float = 5.0
    # Registration ends when all users have registered, at the latest after this time; without it,
    # all are waited for.
    register_seconds: float | None = None
    # Handing in ends when all registered users have handed in, at the latest after this time; by
    # default ten rounds.
    hand_in_seconds: float | None = None
    _since: float = field(default=0.0, init=False)
    _is_told: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.mode not in CLOCK_MODES:
            raise ParameterError(f"clock = {self.mode!r} is not one of {', '.join(CLOCK_MODES)}")
        require_positive("round_seconds", self.round_seconds)
        for name in ("register_seconds", "hand_in_seconds"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))

    def begin(self, now: float) -> None:
        """Begin a phase at ``now``, in seconds of any clock that never goes back."""
        self._since = now
        self._is_told = False

    def tell(self) -> None:
        """End the present phase, whatever the time."""
        self._is_told = True

    def is_over(self, phase: str, *, now: float, is_complete: bool) -> bool:
        """Return whether the present phase is over."""
        if self._is_told:
            return True
        if phase == "round" and self.mode == "interval":
            is_complete = False  # the pace must say nothing about who was how fast
        elif phase == "round" and self.mode == "manual":
            return False
        limit = self._limit(phase)
        return is_complete or (limit is not None and now - self._since >= limit)

    def seconds_left(self, phase: str, *, now: float) -> float | None:
        """Return after how many seconds the phase ends at the latest; None if nobody knows."""
        limit = self._limit(phase)
        return None if limit is None else max(0.0, self._since + limit - now)

    def _limit(self, phase: str) -> float | None:
        """Return the longest time that the phase lasts."""
        if phase == "registration":
            return self.register_seconds
        if self.mode == "manual":
            return None
        if phase == "hand-in":
            return self.hand_in_seconds or 10.0 * self.round_seconds
        return self.round_seconds


class RelayService:
    """A `RelayCore` with a clock: it opens and closes rounds as time goes by."""

    def __init__(
        self,
        *,
        core: RelayCore,
        terms: Terms,
        graph: Graph,
        store: SqliteStore,
        clock: RoundClock,
        now: Callable[[], float],
    ) -> None:
        self.core, self.terms = core, terms
        self._graph, self._store, self._clock, self._now = graph, store, clock, now
        self.was_collected = False
        clock.begin(now())

    @property
    def phase(self) -> str:
        """One of ``"registration"``, ``"round"``, ``"hand-in"``, ``"over"``."""
        number = self._store.round_number()
        if number == 0:
            return "registration"
        if number <= self.terms.rounds:
            return "round"
        return "over" if self._store.is_over else "hand-in"

    def status(self) -> dict[str, object]:
        """Return what anybody may know, as JSON values."""
        phase, number = self.phase, self._store.round_number()
        return {
            "phase": phase,
            "round": min(number, self.terms.rounds),
            "rounds": self.terms.rounds,
            "num_users": self.terms.num_users,
            "num_registered": self._store.num_registered(),
            "num_sent": self._store.num_sent(number),
            "num_handed_in": self._store.num_handed_in(),
            "terms_digest": self.terms.digest().hex(),
            "seconds_left": (
                None if phase == "over" else self._clock.seconds_left(phase, now=self._now())
            ),
        }

    def tell(self) -> None:
        """End the present phase at the next `advance`."""
        self._clock.tell()

    def advance(self) -> bool:
        """Move on to the next phase if the present one is over; return whether it was.

        Registration does not end before as many have registered as the terms ask for.
        """
        phase = self.phase
        if phase == "over" or not self._clock.is_over(
            phase, now=self._now(), is_complete=self._is_complete(phase)
        ):
            return False
        if phase == "registration":
            if self._store.num_registered() < self.terms.least_registered:
                return False
            self.core.start()
        elif phase == "round":
            self.core.close_round(self._store.round_number())
            self._store.wipe_log()  # the mail before that round is deleted but for absent users
        else:
            self._store.finish()
        self._clock.begin(self._now())
        return True

    def most_batch_bytes(self, node: int) -> int:
        """Return a size that no batch of a node exceeds."""
        envelopes = int(most_envelopes(self.terms, self._graph)[node])
        codes = int(self._graph.degrees[node]) * CODE_BYTES
        return envelopes * (self.terms.envelope_bytes + 4) + codes + _MOST_HEAD_BYTES

    def most_hand_in_bytes(self, node: int) -> int:
        """Return a size that nothing handed in by a node exceeds."""
        return self.terms.slots[node] * (self.terms.inner_bytes + 1) + _MOST_HEAD_BYTES

    def mail(self, node: int, round_number: int, token: bytes) -> bytes:
        """Return a user's mail of a round, until the collection is over."""
        if self._store.is_over:
            raise ProtocolError(
                "the collection is over, and its mail was deleted",
                fault=Fault.PEER,
                reason=Reason.LATE,
            )
        return self.core.mail(node, round_number, token)

    def accept_hand_in(self, data: bytes, *, node: int) -> None:
        """Take what a user hands in, until handing in has ended."""
        if self._store.is_over:
            raise ProtocolError(
                "handing in has ended: this user's reports are lost, and counted as missing",
                fault=Fault.PEER,
                reason=Reason.LATE,
            )
        self.core.accept_hand_in(data, node=node)

    def hand_ins(self, token: bytes) -> tuple[bytes, ...]:
        """Return all that was handed in, to the analyzer, once it is final."""
        self._require_over()
        return self.core.hand_ins(token)

    def record(self, token: bytes) -> dict[str, object]:
        """Return who was absent in which round, to the analyzer, once it is final.

        Users who never registered are absent in all rounds.
        """
        self.hand_ins(token)  # the same right
        away = self.core.absences()
        return {"absent": [np.flatnonzero(each).tolist() for each in away]}

    def forget_hand_ins(self, token: bytes) -> None:
        """Forget what was handed in: the analyzer has it, and the record, in a file."""
        self._require_over()
        self.core.forget_hand_ins(token)
        self.was_collected = True

    def _require_over(self) -> None:
        """Raise while something may still be handed in."""
        if self.phase != "over":
            raise ProtocolError(
                f"the collection is in its {self.phase} phase: ask again when it is over",
                fault=Fault.ANALYZER,
                reason=Reason.EARLY,
            )

    def _is_complete(self, phase: str) -> bool:
        """Return whether everybody did what the present phase is for."""
        num_registered = self._store.num_registered()
        if phase == "registration":
            return num_registered == self.terms.num_users
        if phase == "round":
            return self._store.num_sent(self._store.round_number()) == num_registered
        return self._store.num_handed_in() == num_registered


def make_app(
    service: RelayService, *, until_collected: Callable[[], None] | None = None
) -> Starlette:
    """Return the application."""
    endpoints = _Endpoints(service)
    return application(
        {
            ("GET", "/status"): endpoints.status,
            ("GET", "/roster"): endpoints.roster,
            ("PUT", "/registration/{node:number}"): endpoints.register,
            ("PUT", "/rounds/{round:number}/batches/{node:number}"): endpoints.send,
            ("GET", "/rounds/{round:number}/mail/{node:number}"): endpoints.mail,
            ("PUT", "/hand-in/{node:number}"): endpoints.hand_in,
            ("GET", "/hand-ins"): endpoints.hand_ins,
            ("DELETE", "/hand-ins"): endpoints.forget_hand_ins,
            ("GET", "/record"): endpoints.record,
        },
        [lambda: _run_clock(service, until_collected)],
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
        return data_of(self._service.core.roster.to_bytes())

    async def register(self, request: Request) -> Response:
        """Take a user's registration."""
        node = self._node(request)
        body = await body_of(request, REGISTRATION_BYTES)
        self._service.core.register(body, node=node)
        self._service.advance()
        return Response(status_code=204)

    async def send(self, request: Request) -> Response:
        """Take what a user sends in a round."""
        node, number = self._node(request), request.path_params["round"]
        body = await body_of(request, self._service.most_batch_bytes(node))
        self._service.core.accept_batch(body, round_number=number, node=node)
        self._service.advance()
        return Response(status_code=204)

    async def mail(self, request: Request) -> Response:
        """Return what came for a user in a round that is over."""
        node, number = self._node(request), request.path_params["round"]
        return data_of(self._service.mail(node, number, token_of(request)))

    async def hand_in(self, request: Request) -> Response:
        """Take what a user hands in."""
        node = self._node(request)
        body = await body_of(request, self._service.most_hand_in_bytes(node))
        self._service.accept_hand_in(body, node=node)
        self._service.advance()
        return Response(status_code=204)

    async def hand_ins(self, request: Request) -> Response:
        """Return all that was handed in, to the analyzer."""
        return data_of(join_messages(self._service.hand_ins(token_of(request))))

    async def forget_hand_ins(self, request: Request) -> Response:
        """Forget all that was handed in, when the analyzer has stored it."""
        self._service.forget_hand_ins(token_of(request))
        return Response(status_code=204)

    async def record(self, request: Request) -> Response:
        """Return who was absent in which round, to the analyzer."""
        return JSONResponse(self._service.record(token_of(request)))

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


def serve_relay(
    terms: Terms,
    graph: Graph,
    store_path: Path,
    clock: RoundClock,
    *,
    now: Callable[[], float],
    on_ready: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = 0,
    until_collected: bool = False,
) -> None:
    """Serve a relay until the process is told to stop, or, if asked, until all was collected.

    HTTP only: beyond one machine a reverse proxy has to add TLS, which hides from the network who
    talks to the relay, how often and with which signatures. It goes on from where the last relay
    with that file was; ``on_ready`` is told the URL once requests are taken.
    """
    terms.require_graph(graph)
    listening = listen(host, port)

    def stop() -> None:
        server.should_exit = True

    with listening, SqliteStore(store_path, terms) as store:
        service = RelayService(
            core=RelayCore(terms, graph, store),
            terms=terms,
            graph=graph,
            store=store,
            clock=clock,
            now=now,
        )
        app = make_app(service, until_collected=stop if until_collected else None)
        server = make_server(app)
        if clock.mode == "manual":
            _tell_on_lines(service)
        on_ready(url_of(listening))
        server.run(sockets=[listening])


def _tell_on_lines(service: RelayService) -> threading.Thread:
    """End the present phase with every line on standard input; return what reads them."""

    def read() -> None:
        for _ in sys.stdin:
            service.tell()  # one assignment, so no lock is needed

    thread = threading.Thread(target=read, name="round clock", daemon=True)
    thread.start()
    return thread
