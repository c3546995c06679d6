"""Requests to a server that is not trusted, with bounds on the size and time of its answers.

Every request may be repeated without harm, so a failed request or a lost answer is tried again.
Waiting times double from 0.1 to 5 seconds, each shortened by a random part so that clients do not
come back all at once.
"""

import json
import socket
import threading
import time
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError, ShuffledpError
from shuffledp.deploy.database import Keeper

#: Largest size of a short answer: a status, an acknowledgement, an error.
MOST_SHORT_BYTES = 1 << 14

_LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
_SHORTEST_SECONDS = 60.0
_LEAST_BYTES_A_SECOND = 50_000.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_REQUEST_SECONDS = 30.0
_FIRST_SERVER_FAULT = 500
_LONGEST_REASON = 300
_GOOD = range(200, 300)
_TOO_SLOW = 408


class NoAnswerError(ShuffledpError, ConnectionError):
    """The server does not answer; a restarted program continues with its saved state."""


class RefusedError(ShuffledpError, ValueError):
    """The server refuses a request as wrong, with a status below 500 that is not 2xx."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


def cautions_about(url: str, server: str) -> list[str]:
    """Return a warning about a remote server without encryption in transit."""
    host = _host(url, server)
    if url.lower().startswith("https:") or host in _LOOPBACK_HOSTS:
        return []
    return [
        f"the {server} at {host} is asked over http: whoever is on the way sees who takes "
        "part and when, and can cut users off; use https"
    ]


class HttpClient(Keeper):
    """A connection to a server, with patience in seconds; messages name it by ``server``."""

    def __init__(
        self, url: str, *, server: str, patience_seconds: float, client: httpx.Client | None = None
    ) -> None:
        # A proxy of the environment must not come between two programs of one machine.
        is_near = _host(url, server) in _LOOPBACK_HOSTS
        self._url, self._server = url.rstrip("/"), server
        self._patience = patience_seconds
        self._jitter = Entropy.from_operating_system()
        self._client = client or httpx.Client(timeout=_REQUEST_SECONDS, trust_env=not is_near)
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        token: bytes | None = None,
        most: int = MOST_SHORT_BYTES,
    ) -> bytes:
        """Return the body of the answer to a request, at most ``most`` bytes; tried until it comes.

        `RefusedError` means that trying again would not change anything, and `DataError` that the
        answer is too large, or compressed.
        """
        headers = {"Accept-Encoding": "identity"}
        if token is not None:
            headers["Authorization"] = f"Signature {token.hex()}"
        give_up, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                status, body = self._answer(method, path, content, headers, most)
                if status in _GOOD:
                    return body
                problem = _reason(status, body)
                if status < _FIRST_SERVER_FAULT and status != _TOO_SLOW:
                    raise RefusedError(problem, status=status)
            except httpx.HTTPError as error:
                problem = str(error) or type(error).__name__
            if time.monotonic() + wait > give_up:
                patience = f"in {self._patience:g} seconds ({problem})"
                raise NoAnswerError(
                    f"no answer from the {self._server} at {self._url} {patience}: see whether it "
                    "runs, then start this again; nothing is lost"
                )
            random = float(self._jitter.words(1)[0] >> 11) * 2.0**-53
            time.sleep(wait * (0.5 + 0.5 * random))
            wait = min(2.0 * wait, _LONGEST_WAIT)

    def _answer(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str], most: int
    ) -> tuple[int, bytes]:
        """Return status and body of an answer: uncompressed, up to a size, until a deadline."""
        url = self._url + path
        request = self._client.build_request(method, url, content=content, headers=headers)
        request.extensions["trace"] = self._note_socket
        size = most + len(content or b"")
        deadline = threading.Timer(_SHORTEST_SECONDS + size / _LEAST_BYTES_A_SECOND, self._cut)
        deadline.daemon = True
        deadline.start()
        try:
            with closing(self._client.send(request, stream=True)) as response:
                return response.status_code, self._body(response, request.url.path, most)
        finally:
            deadline.cancel()

    def _note_socket(self, event: str, told: dict[str, Any]) -> None:
        """Remember the connection in use; httpx reports each one."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = told["return_value"].get_extra_info("socket")

    def _cut(self) -> None:
        """End the connection in use, so that the thread that waits for it stops waiting."""
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _body(self, response: httpx.Response, path: str, most: int) -> bytes:
        """Return the body of an answer."""
        answer = f"the {self._server}'s answer to {path}"
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise DataError(f"{answer} is compressed, which was not asked for: check the URL")
        if response.is_error or response.is_redirect:
            most = MOST_SHORT_BYTES
        pieces, size = [], 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > most:
                what = f"larger than {most:,} bytes, the most that an honest one has"
                raise DataError(f"{answer} is {what}: do not trust the {self._server}")
            pieces.append(piece)
        return b"".join(pieces)


def json_of(body: bytes) -> Any:
    """Return the JSON value of a body; None if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _host(url: str, server: str) -> str:
    """Return the host of a server's URL."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            httpx.URL(url)
            return parts.hostname
    except (ValueError, httpx.InvalidURL):
        pass
    raise ParameterError(f"{server} = {url!r} is no URL: write it like http://127.0.0.1:8000")


def _reason(status: int, body: bytes) -> str:
    """Return the server's message in one line."""
    try:
        return str(json_of(body)["error"])[:_LONGEST_REASON]
    except (KeyError, TypeError):
        return f"HTTP {status}"
