"""A small collection, and a relay in this process that talks HTTP without a socket."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest

from graph_families import complete_graph
from peers.link import no_limits
from shuffledp import Categories
from shuffledp.core.entropy import Entropy
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.network.graph import Graph
from shuffledp.peers.collecting import prepare_terms
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.peer_runner import PeerRunner, PeerStore
from shuffledp.peers.relay import Relay, RelayService, make_app
from shuffledp.peers.relay_client import RelayClient, answer_sizes
from shuffledp.peers.terms import Terms

URL = "http://127.0.0.1"


class InProcess(httpx.BaseTransport):
    """Hands requests to an application in this process."""

    def __init__(self, app) -> None:
        self._inner = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self._runner = asyncio.Runner()

    def handle_request(self, request):
        return self._runner.run(self._handle(request))

    async def _handle(self, request):
        response = await self._inner.handle_async_request(request)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)

    def close(self):
        self._runner.close()


def client_of(collection, http) -> RelayClient:
    """Return a client of a relay in this process."""
    sizes = answer_sizes(collection.terms, collection.graph)
    return RelayClient(URL, sizes, patience_seconds=0.0, client=http)


@dataclass
class Collection:
    """Terms with all that a test needs, and relays and peers on files in one folder."""

    folder: Path
    graph: Graph
    asked: AskedTerms
    keys: PrivateKeys
    terms: Terms
    stack: ExitStack = field(default_factory=ExitStack)
    now: float = 0.0

    def relay(self, name: str = "relay.db", **clock) -> tuple[RelayService, httpx.Client]:
        """Start a relay; its clock shows ``now``."""
        relay = self.stack.enter_context(Relay(self.folder / name, self.terms, self.graph))
        service = RelayService(relay, now=lambda: self.now, **{"is_eager": True, **clock})
        http = httpx.Client(transport=InProcess(make_app(service)), base_url=URL)
        return service, self.stack.enter_context(http)

    def runner(
        self, http: httpx.Client, nodes, name: str = "peers.db", value: int = 1, **limits
    ) -> PeerRunner:
        """Start the peers of some nodes, who all have the same answer."""
        store = self.stack.enter_context(PeerStore(self.folder / name, self.terms))
        runner = PeerRunner(
            terms=self.terms,
            graph=self.graph,
            store=store,
            names={node: str(node) for node in nodes},
            client=client_of(self, http),
            entropy=Entropy.from_operating_system(),
            limits=replace(no_limits(self.terms), **limits),
        )
        runner.draw(lambda: dict.fromkeys(nodes, value))
        return runner


@pytest.fixture
def make_collection(tmp_path) -> Iterator:
    """Return what makes collections: on a complete graph of six users unless told otherwise."""
    with ExitStack() as stack:

        def make(graph=None, *, rounds=3, epsilon0=8.0, **options) -> Collection:
            graph = complete_graph(6) if graph is None else graph
            question = Categories(domain=("no", "yes"))
            asked = AskedTerms.of(question, "k-rr", epsilon0)
            keys = PrivateKeys.generate()
            terms = prepare_terms(graph, asked, keys, rounds=rounds, **options)
            return Collection(tmp_path, graph, asked, keys, terms, stack)

        yield make


@pytest.fixture
def collection(make_collection) -> Collection:
    return make_collection()
