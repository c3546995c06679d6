"""Serving a relay: a socket, a server and the operator's keyboard."""

import asyncio
import ipaddress
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, cast

import uvicorn

from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.deploy.peers.protocol.relay import RelayCore
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.relay_app import make_app
from shuffledp.deploy.peers.service.relay_connections import (
    Connection,
    Limits,
    Room,
    num_descriptors,
)
from shuffledp.deploy.peers.service.relay_service import RelayService
from shuffledp.deploy.peers.service.relay_store import SqliteStore
from shuffledp.deploy.peers.service.round_clock import RoundClock
from shuffledp.network.graph import Graph

# Connections that the operating system keeps until they are accepted.
_MOST_PENDING: Final = 1024


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
    """Serve a relay until the process is told to stop.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    store_path : Path
        The SQLite file; a relay goes on from where the last one with that file was.
    clock : RoundClock
        When rounds end; with the mode "manual" whenever a line is read from standard input.
    now : callable
        The time in seconds, by a clock that never goes back.
    on_ready : callable
        Is told the URL once requests are taken.
    host : str
        Address to listen at. HTTP only: beyond one machine a reverse proxy has to add TLS, which
        hides from the network who talks to the relay, how often and with which signatures.
    port : int
        0 for any free one.
    until_collected : bool
        Stop once the analyzer has everything in a file.

    Raises
    ------
    ProtocolError
        If the graph is not the one of the terms.
    DataError
        If the store belongs to another collection or is in use.
    OutputError
        If the store cannot be written, or the address is taken.
    """
    terms.require_graph(graph)
    listening = _listen(host, port)
    with listening, SqliteStore(store_path, terms) as store:
        service = RelayService(
            core=RelayCore(terms, graph, store),
            terms=terms,
            graph=graph,
            store=store,
            clock=clock,
            now=now,
        )
        limits = Limits.of_descriptors(num_descriptors())
        server = _Server(
            uvicorn.Config(
                make_app(
                    service, until_collected=_stopper(lambda: server) if until_collected else None
                ),
                log_level="warning",
                access_log=False,  # who asked when is nobody's business
                server_header=False,
                timeout_keep_alive=60,
                http=_connections(Room(limits)),
                ws="none",
                loop="asyncio",
                backlog=limits.accepted_at_once,
            )
        )
        if clock.mode == "manual":
            _tell_on_lines(service)
        on_ready(_url(listening))
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that lets many connections wait to be accepted, and accepts few at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(_MOST_PENDING)


def _connections(room: Room) -> type[asyncio.Protocol]:
    """Return what makes the connections of a server; it is called like a class."""
    return cast("type[asyncio.Protocol]", partial(Connection, room=room))


def _stopper(server: Callable[[], uvicorn.Server]) -> Callable[[], None]:
    """Return what asks a server to stop."""

    def stop() -> None:
        server().should_exit = True

    return stop


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; connections wait until they are served."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        raise ParameterError(
            f"host = {host!r} is no IP address: give one, or leave it out"
        ) from None
    # Told the protocol, asyncio sends small answers at once; else each would wait 40 ms for more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # A relay that was killed must be able to come back to the same port at once.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_MOST_PENDING)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot listen at {host}, port {port}: {reason}") from error
    return listening


def _url(listening: socket.socket) -> str:
    """Return where a socket listens."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tell_on_lines(service: RelayService) -> threading.Thread:
    """End the present phase with every line on standard input; return what reads them."""

    def read() -> None:
        for _ in sys.stdin:
            service.tell()  # one assignment, so no lock is needed

    thread = threading.Thread(target=read, name="round clock", daemon=True)
    thread.start()
    return thread
