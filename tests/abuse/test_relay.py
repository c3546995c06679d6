"""A malicious relay against the real peers."""

import gzip
import math
import socket
import threading
import tracemalloc
import zlib
from dataclasses import replace

import httpx
import pytest

from graph_families import complete_graph
from peers.link import ANY_SIZE, new_folder, quick_relay, simple_terms
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy import remote
from shuffledp.deploy.remote import NoAnswerError, RefusedError, cautions_about
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.peers import relay_client
from shuffledp.peers.keys import PrivateKeys, Roster
from shuffledp.peers.peer import Peer
from shuffledp.peers.relay_client import RelayClient, answer_sizes
from shuffledp.peers.terms import Limits

NUM_USERS, ROUNDS, VICTIM = 6, 4, 3
GRAPH = complete_graph(NUM_USERS)
ANY = Limits(most_epsilon0=math.inf, least_users=1)


class Collection:
    """Peers with their roster, and a relay that refuses every batch of one of them."""

    def __init__(self, *, even_traffic=False, **limits) -> None:
        keys = PrivateKeys.generate()
        self.terms = simple_terms(
            GRAPH, keys, rounds=ROUNDS, report_bytes=4, even_traffic=even_traffic
        )
        self.entropy = Entropy.from_seed(5)
        self.relay = quick_relay(self.terms, GRAPH, new_folder())
        self.peers = [
            Peer.create(
                self.terms, GRAPH, node, bytes(4), self.entropy, limits=replace(ANY, **limits)
            )
            for node in range(NUM_USERS)
        ]
        for peer in self.peers:
            self.relay.register(peer.state.registration)
        self.relay.go_on()
        self.roster = Roster.from_bytes(self.relay.roster.to_bytes(), self.terms)

    def run(self, refused_rounds):
        """Run all rounds; return the sizes of mail by recipient."""
        sizes = []
        for peer in self.peers:
            peer.begin(self.roster)
        for number in range(1, ROUNDS + 1):
            for peer in self.peers:
                batch = peer.outgoing(number)
                if peer.node == VICTIM and number in refused_rounds:
                    peer.take_back(number)  # the answer was 410
                else:
                    self.relay.accept_batch(batch)
            self.relay.go_on()
            for peer in self.peers:
                packet = self.relay.mail(peer.node, number, peer.mail_token(number))
                sizes.append((peer.node, len(packet)))
                peer.receive(number, packet)
        return sizes


def test_a_report_that_never_moved_is_not_handed_in():
    collection = Collection()
    collection.run(range(1, ROUNDS + 1))
    victim = collection.peers[VICTIM]
    assert victim.state.counts["absent"] == ROUNDS
    assert victim.withholds
    with pytest.raises(ProtocolError, match="absent in 4 of 4 rounds") as found:
        victim.hand_in()
    assert (found.value.fault, found.value.reason) == (Fault.RELAY, Reason.LIMIT)
    assert all(not peer.withholds for peer in collection.peers if peer is not victim)


@pytest.mark.parametrize(("most", "missed", "hands_in"), [(None, 1, True), (None, 2, False),
                                                          (2, 2, True), (0, 1, False)])  # fmt: skip
def test_absences_are_counted_across_restarts(most, missed, hands_in):
    collection = Collection(most_absences=most)
    collection.run(range(1, missed + 1))
    peer = Peer.from_bytes(
        collection.peers[VICTIM].state.to_bytes(), collection.terms, GRAPH, collection.entropy,
        limits=replace(ANY, most_absences=most),
    )  # fmt: skip
    peer.begin(collection.roster)
    assert peer.withholds is not hands_in
    if hands_in:
        assert collection.relay.accept_hand_in(peer.hand_in())


def test_fewer_than_no_absences_are_refused():
    with pytest.raises(ParameterError, match="most_absences"):
        Limits(most_absences=-1)


def test_another_roster_than_the_one_required_is_refused():
    collection = Collection(roster_digest=bytes(32))
    with pytest.raises(ProtocolError, match="roster with the digest") as found:
        collection.peers[0].begin(collection.roster)
    assert (found.value.fault, found.value.reason) == (Fault.RELAY, Reason.MISMATCH)
    digest = collection.roster.digest()
    peer = Peer.from_bytes(
        collection.peers[0].state.to_bytes(), collection.terms, GRAPH, collection.entropy,
        limits=replace(ANY, roster_digest=digest),
    )  # fmt: skip
    peer.begin(collection.roster)


# ---------------------------------------------------------------- answers without end
@pytest.fixture
def relay_saying():
    """Return what makes a relay that sends given bytes on one connection, over and over."""
    listening = socket.create_server(("127.0.0.1", 0))
    over, threads = threading.Event(), []

    def make(head, piece=b"", *, patience=0.0, sizes=None):
        def serve():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                try:
                    connection.sendall(head)
                    while piece and not over.wait(0.001):
                        connection.sendall(piece)
                    over.wait()
                except OSError:
                    pass  # the client has had enough

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        return RelayClient(url, sizes or ANY_SIZE, patience_seconds=patience)

    yield make
    over.set()
    listening.close()
    for thread in threads:
        thread.join(30.0)


OK = b"HTTP/1.1 200 OK\r\n"
BOMB = gzip.compress(bytes(50_000_000))


@pytest.mark.parametrize("name", ["gzip", "GZIP", "deflate", "gzip, gzip"])
@pytest.mark.parametrize("ask", [RelayClient.status, RelayClient.roster])
def test_a_compressed_answer_takes_no_memory(relay_saying, name, ask):
    bomb = BOMB if name.lower().startswith("gzip") else zlib.compress(bytes(50_000_000))
    head = f"Content-Encoding: {name}\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    with relay_saying(OK + head + bomb) as client:
        tracemalloc.start()
        try:
            with pytest.raises(DataError, match="compressed"):
                ask(client)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(bomb) < 100_000
    assert peak < 4_000_000  # 50 MB if it is read, several times over if it is parsed


@pytest.mark.parametrize("line", [OK, b"HTTP/1.1 500 No\r\n", b"HTTP/1.1 404 No\r\n"])
def test_an_answer_without_end_is_given_up(relay_saying, line):
    client = relay_saying(line + b"\r\n", b"x" * 4096)
    with client, pytest.raises(DataError, match="larger than 16,384 bytes"):
        client.status()


def test_no_answer_is_larger_than_the_terms_allow(relay_saying):
    terms = simple_terms(GRAPH, PrivateKeys.generate(), rounds=ROUNDS, report_bytes=4)
    sizes = answer_sizes(terms, GRAPH)
    client = relay_saying(OK + b"\r\n", b"x" * 4096, sizes=sizes)
    with client, pytest.raises(DataError, match="answer to /rounds/1/mail/2 is larger"):
        client.mail(1, 2, b"token")


@pytest.mark.parametrize("even_traffic", [False, True])
def test_the_sizes_hold_what_honest_relays_send(even_traffic):
    collection = Collection(even_traffic=even_traffic)
    sizes = answer_sizes(collection.terms, GRAPH)
    for _, size in collection.run(()):
        assert size <= sizes["mail"]
    assert len(collection.relay.roster.to_bytes()) <= sizes["roster"]
    assert sum(len(peer.hand_in()) + 4 for peer in collection.peers) <= sizes["hand-ins"]


@pytest.mark.parametrize("head", [OK + b"X-Slow: ", OK + b"Content-Length: 9000\r\n\r\n"])
def test_an_answer_that_never_comes_to_its_end_is_cut_off(relay_saying, monkeypatch, head):
    # Every byte comes before a timeout of the socket could fire; heads are limited, but slow.
    monkeypatch.setattr(remote, "_SHORTEST_SECONDS", 0.2)
    with relay_saying(head, b"x") as client, pytest.raises(NoAnswerError, match="no answer"):
        client.status()


@pytest.mark.parametrize("status", [301, 302, 304])
def test_nothing_but_success_is_taken_for_success(status):
    http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(status)))
    client = RelayClient("http://127.0.0.1:1", ANY_SIZE, patience_seconds=0.0, client=http)
    with client, pytest.raises(RefusedError, match=f"HTTP {status}"):
        client.hand_in(0, b"")


@pytest.mark.parametrize("body", [b"[" * 10_000, b"[]", b"{}", b'{"phase": "x"}', b"\xff"])
def test_a_status_that_is_none_is_refused(body):
    http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, content=body)))
    client = RelayClient("http://127.0.0.1:1", ANY_SIZE, patience_seconds=0.0, client=http)
    with client, pytest.raises(DataError, match="not one of a shuffledp relay"):
        client.status()


def test_numbers_of_a_status_are_numbers():
    sound = {"phase": "round", "round": 1, "rounds": 2, "num_users": 3, "num_registered": 3,
             "num_sent": 0, "num_handed_in": 0, "terms_digest": "",
             "seconds_left": None}  # fmt: skip
    assert relay_client.RelayStatus.from_json(sound).round == 1
    for change in ({"round": "1"}, {"rounds": -1}, {"rounds": 2.0}, {"phase": ["round"]}):
        with pytest.raises(DataError, match="not one of a shuffledp relay"):
            relay_client.RelayStatus.from_json(sound | change)


@pytest.mark.parametrize(("url", "warns"), [("http://relay.example", True),
                                            ("http://[::1]:80", False),
                                            ("https://relay.example", False),
                                            ("http://127.0.0.1:80", False)])  # fmt: skip
def test_plain_http_to_another_machine_is_warned_of(url, warns):
    assert bool(cautions_about(url, "relay")) is warns
