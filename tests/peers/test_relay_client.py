"""A client's patience, and what it makes of answers that no relay gives."""

import httpx
import pytest

from peers.link import ANY_SIZE
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy import remote
from shuffledp.deploy.remote import NoAnswerError, RefusedError
from shuffledp.peers.relay_client import RelayClient

TOKEN = b"\1\2"


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(remote, "time", made)
    return made


def client(answer, patience=300.0):
    http = httpx.Client(transport=httpx.MockTransport(answer))
    return RelayClient("http://127.0.0.1:1/", ANY_SIZE, patience_seconds=patience, client=http)


@pytest.mark.parametrize(
    "trouble", [httpx.ConnectError("refused"), httpx.ReadTimeout(""), 503, 408]
)
def test_what_fails_on_the_way_is_tried_again(clock, trouble):
    requests = []

    def answer(request):
        requests.append(request)
        if len(requests) > 8:
            return httpx.Response(200, content=b"mail")
        if isinstance(trouble, int):
            return httpx.Response(trouble)
        raise trouble

    with client(answer) as relay:
        assert relay.mail(2, 7, TOKEN) == b"mail"
    assert {str(request.url) for request in requests} == {"http://127.0.0.1:1/rounds/2/mail/7"}
    assert requests[0].headers["authorization"] == "Signature 0102"
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert len(clock.waits) == len(longest)
    for wait, most in zip(clock.waits, longest, strict=True):
        assert most / 2 <= wait <= most


def test_patience_ends(clock):
    def answer(request):
        raise httpx.ConnectError("refused")

    with client(answer, patience=10.0) as relay, pytest.raises(NoAnswerError, match="refused"):
        relay.status()
    assert 5.0 <= clock.now <= 10.0


def test_a_refusal_is_not_tried_again(clock):
    def answer(request):
        return httpx.Response(409, json={"error": "another batch was accepted"})

    with client(answer) as relay, pytest.raises(RefusedError, match="another batch") as found:
        relay.send(1, 2, b"")
    assert found.value.status == 409
    assert clock.waits == []


@pytest.mark.parametrize("content", [b"", b"[]", b'"x"', b"{}", b'{"error": 3}', b"\xff"])
def test_answers_of_something_else_make_one_line(clock, content):
    def refuse(request):
        return httpx.Response(404, content=content)

    with client(refuse) as relay, pytest.raises(RefusedError) as found:
        relay.roster()
    assert "\n" not in str(found.value)

    def answer(request):
        return httpx.Response(200, content=content)

    with client(answer) as relay:
        with pytest.raises(DataError, match="not one of a shuffledp relay"):
            relay.status()
        assert relay.absences(TOKEN) is None


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://", ""])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ParameterError, match="no URL"):
        RelayClient(url, ANY_SIZE)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    with (
        RelayClient("http://localhost:1", ANY_SIZE) as near,
        RelayClient("http://relay.invalid", ANY_SIZE) as far,
    ):
        assert not near._client.trust_env
        assert far._client.trust_env
