"""Many connections that say nothing: who else talks to the relay is answered all the same."""

import asyncio
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import h11
import httpx
import pytest

from graph_families import complete_graph
from shuffledp import Categories
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.servers import http_server
from shuffledp.deploy.servers.http_server import ConnectionLimits, Room
from shuffledp.peers.collecting import prepare_terms
from shuffledp.peers.keys import PrivateKeys

# None of these is waited for where things go well.
PATIENCE_SECONDS = 120.0
HALF = b"PUT /registration/0 HTTP/1.1\r\nHost: relay\r\nContent-Length: 136\r\n\r\nabc"
WHOLE = b"GET /status HTTP/1.1\r\nHost: relay\r\n\r\n"


async def app(scope, receive, send):
    """Answer with the size of the body; a path /early is answered before the body is read."""
    if scope["type"] != "http":
        raise RuntimeError
    size, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    content = bytes(1 << 24) if scope["path"] == "/large" else str(size).encode()
    head = [(b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": content})


class Served:
    """A server in a thread, and connections to it."""

    def __init__(self, limits) -> None:
        self.room = Room(limits)
        self.address = None
        self._stack = ExitStack()

    def __enter__(self):
        listening = self._stack.enter_context(http_server.listen("127.0.0.1", 0))
        self.address = listening.getsockname()
        server = http_server.make_server(app, self.room)
        server.config.lifespan = "off"
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True
        )
        thread.start()

        def stop():
            server.should_exit = server.force_exit = True
            thread.join(PATIENCE_SECONDS)

        self._stack.callback(stop)
        return self

    def __exit__(self, *error):
        self._stack.close()

    def connect(self, data=b"", source="127.0.0.1"):
        made = socket.create_connection(
            self.address, timeout=PATIENCE_SECONDS, source_address=(source, 0)
        )
        self._stack.enter_context(made)
        made.sendall(data)
        return made

    def half(self, source="127.0.0.1"):
        """Send half a request, and wait until the server has read it."""
        made = self.connect(HALF, source)
        wanted = made.getsockname()
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not any(
            each.client == wanted and each.conn.their_state is h11.SEND_BODY
            for each in list(self.room._addresses)
        ):
            assert time.monotonic() < give_up
            time.sleep(0.005)
        return made

    def answer(self, data=WHOLE, source="127.0.0.1"):
        return answer(self.connect(data, source))


def answer(connection):
    """Return the first line of what comes."""
    return connection.recv(65536).split(b"\r\n")[0]


def rest(connection):
    """Return all that comes until the other side closes."""
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


OK, BUSY, LATE = (
    b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable", b"HTTP/1.1 408 Request Timeout"
)  # fmt: skip


def test_who_waits_longest_makes_room_within_one_address():
    with Served(ConnectionLimits(most=100, most_from_one=3)) as served:
        waiting = [served.half() for _ in range(3)]
        assert served.answer() == OK
        assert rest(waiting[0]).startswith(BUSY)
        waiting[1].sendall(bytes(133))  # the others go on
        assert answer(waiting[1]) == OK


@pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")
def test_who_waits_longest_of_the_busiest_address_makes_room_for_others():
    with Served(ConnectionLimits(most=4, most_from_one=3)) as served:
        lone = served.half("127.0.0.2")
        busy = [served.half() for _ in range(3)]
        assert served.answer(source="127.0.0.3") == OK
        assert rest(busy[0]).startswith(BUSY)
        lone.sendall(bytes(133))
        assert answer(lone) == OK


@pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")
def test_where_all_are_being_answered_a_new_one_is_told_to_come_back():
    with Served(ConnectionLimits(most=100, most_from_one=2)) as served:
        large = WHOLE.replace(b"/status", b"/large")
        slow = [served.connect(large) for _ in range(2)]
        for each in slow:
            assert each.recv(15) == OK  # and the rest is not fetched
        refused = rest(served.connect())
        assert refused.startswith(BUSY)
        assert b"retry-after: 1" in refused
        assert refused.endswith(b'{"error": "too many connections: try again"}')
        assert served.answer(source="127.0.0.2") == OK


def test_a_request_has_to_come_in_time():
    with Served(ConnectionLimits(most=100, most_from_one=100, read_seconds=0.02)) as served:
        for data in (b"", b"PUT /registration/0 HTTP/1.1\r\nHost:", HALF):
            assert rest(served.connect(data)).startswith(LATE)
        early = rest(served.connect(HALF.replace(b"/registration/0", b"/early")))
        assert early.startswith(OK)
        assert LATE not in early


def test_an_answer_has_to_be_fetched_in_time():
    with Served(ConnectionLimits(most=100, most_from_one=100, answer_seconds=0.02)) as served:
        slow = served.connect(WHOLE.replace(b"/status", b"/large"))
        assert slow.recv(15) == OK
        give_up = time.monotonic() + PATIENCE_SECONDS
        while len(served.room):
            assert time.monotonic() < give_up
            time.sleep(0.005)
        assert len(rest(slow)) < 1 << 24


def test_between_requests_nothing_hurries():
    with Served(ConnectionLimits(most=100, most_from_one=1)) as served:
        kept = served.connect(WHOLE)
        assert answer(kept) == OK
        kept.sendall(WHOLE[:9])
        kept.sendall(WHOLE[9:] + WHOLE)  # and one more behind it
        seen = b""
        while seen.count(OK) < 2 or not seen.endswith(b"\r\n\r\n0"):
            seen += kept.recv(65536)
        assert served.answer() == OK
        assert rest(kept) == b""  # closed without a word: there was no request


def test_limits_leave_descriptors(monkeypatch):
    for number in (4, 256, 1024, 20_000, 1 << 30):
        limits = ConnectionLimits.of_descriptors(number)
        assert 1 <= limits.most_from_one < limits.most <= 10_000
        assert limits.most + 4 * limits.accepted_at_once <= max(number - 16, 6)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, -1))
    assert http_server.num_descriptors() == 20_000


@contextmanager
def descriptors(number):
    """Let this process have so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        pytest.skip(f"this machine allows {hard} descriptors to a process, {number} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_comes_while_a_server_ends_is_sent_away():
    with Served(ConnectionLimits(most=4, most_from_one=4)) as served:
        served.room.is_closed = True
        with socket.create_connection(served.address, timeout=PATIENCE_SECONDS) as late:
            assert late.recv(1000).startswith(b"HTTP/1.1 503")
            assert late.recv(1000) == b""
    with Served(ConnectionLimits(most=4, most_from_one=4)) as served:
        assert not served.room.is_closed
    assert served.room.is_closed


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_relay_with_1024_descriptors_and_1100_requests_that_never_end(tmp_path):
    folder, asked = tmp_path, AskedTerms.of(Categories(domain=("no", "yes")), "k-rr", 2.0)
    terms = prepare_terms(complete_graph(6), asked, PrivateKeys.generate(), rounds=3)
    (folder / "terms.json").write_text(terms.to_json())
    edges = [f"{a},{b}" for a in range(6) for b in range(a)]
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")
    program = Path(sys.executable).with_name("shuffledp")
    with ExitStack() as stack:
        stack.enter_context(descriptors(1300))
        log = stack.enter_context((folder / "log").open("w"))
        relay = subprocess.Popen(
            ["sh", "-c", 'ulimit -n 1024; exec "$0" "$@"', program, "network", "relay",
             "terms.json", "--graph", "edges.csv", "--store", "relay.db"],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        stack.callback(relay.wait)
        stack.callback(relay.kill)
        stack.callback(relay.stdin.close)
        url = stack.enter_context(relay.stdout).readline().strip()
        http = stack.enter_context(httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS))
        assert http.get(f"{url}/status").json()["phase"] == "registration"
        where = ("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(1100):
            half = stack.enter_context(socket.create_connection(where, timeout=PATIENCE_SECONDS))
            half.sendall(HALF)
        for _ in range(20):
            with httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS) as new:
                assert new.get(f"{url}/status").status_code == 200
        assert (folder / "log").read_text() == ""
