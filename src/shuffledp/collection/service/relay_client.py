"""What peers and analyzers say to a relay over HTTP, and how long they keep trying."""

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from shuffledp.collection.service.errors import RelayError, RelayRefusalError
from shuffledp.collection.service.framing import split_messages
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_REQUEST_SECONDS = 30.0
_FIRST_SERVER_FAULT = 500
_FIRST_FAULT = 400
_TOO_SLOW = 408


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStatus:
    """What a relay says about itself; see `RelayService.status`.

    Parameters
    ----------
    phase : {"registration", "round", "hand-in", "over"}
        What it is doing.
    round : int
        The open round, from 1; 0 during registration, the last one afterwards.
    rounds : int
        How many there are.
    num_users, num_registered, num_sent, num_handed_in : int
        How many users the graph has, how many registered, how many sent in the open round and how
        many handed in.
    """

    phase: str
    round: int
    rounds: int
    num_users: int
    num_registered: int
    num_sent: int
    num_handed_in: int
    terms_digest: str
    seconds_left: float | None

    @classmethod
    def from_json_dict(cls, written: Any) -> "RelayStatus":
        """Return the status in a response; `DataError` if it is none."""
        try:
            return cls(**written)
        except TypeError:
            raise DataError(
                "the relay's status is not one of a shuffledp relay: check the URL"
            ) from None


class RelayClient:
    """A connection to a relay, with patience: what fails on the way is tried again.

    Every request may be repeated without harm, so a lost answer is no problem. Waiting times
    double from 0.1 to 5 seconds, each shortened by a random part so that peers do not come back all
    at once.

    Parameters
    ----------
    url : str
        Where the relay is, for example ``http://127.0.0.1:8000``.
    patience_seconds : float
        How long to try before giving up, >= 0.
    client : httpx.Client, optional
        What carries requests; by default one of its own.
    """

    def __init__(
        self,
        url: str,
        *,
        patience_seconds: float = 300.0,
        client: httpx.Client | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"relay = {url!r} is no URL: write it like http://127.0.0.1:8000")
        self._url = url.rstrip("/")
        self._patience = patience_seconds
        self._jitter = Entropy.from_operating_system()
        # A proxy of the environment must not stand between two programs of one machine.
        is_near = parts.hostname in LOOPBACK_HOSTS
        self._client = client or httpx.Client(timeout=_REQUEST_SECONDS, trust_env=not is_near)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def status(self) -> RelayStatus:
        """Return what the relay is doing."""
        try:
            written = self._request("GET", "/status").json()
        except ValueError:
            written = None
        return RelayStatus.from_json_dict(written if isinstance(written, dict) else {})

    def register(self, node: int, registration: bytes) -> None:
        """Hand over a user's registration."""
        self._request("PUT", f"/registration/{node}", registration)

    def roster(self) -> bytes:
        """Return all registrations, once registration has ended."""
        return self._request("GET", "/roster").content

    def send(self, round_number: int, node: int, batch: bytes) -> None:
        """Hand over what a user sends in a round."""
        self._request("PUT", f"/rounds/{round_number}/batches/{node}", batch)

    def mail(self, round_number: int, node: int, token: bytes) -> bytes:
        """Return what came for a user in a round that is over."""
        path = f"/rounds/{round_number}/mail/{node}"
        return self._request("GET", path, token=token).content

    def hand_in(self, node: int, handed: bytes) -> None:
        """Hand over a user's reports to the analyzer."""
        self._request("PUT", f"/hand-in/{node}", handed)

    def hand_ins(self, token: bytes) -> list[bytes]:
        """Return everything that was handed in."""
        return split_messages(self._request("GET", "/hand-ins", token=token).content)

    def absences(self, token: bytes) -> object:
        """Return who was absent in each round, as it stands in the relay's JSON, unchecked."""
        try:
            written = self._request("GET", "/record", token=token).json()
        except ValueError:
            written = None
        return written.get("absent") if isinstance(written, dict) else None

    def _request(
        self, method: str, path: str, content: bytes | None = None, *, token: bytes | None = None
    ) -> httpx.Response:
        """Return the answer to a request, tried until there is one.

        Raises
        ------
        RelayRefusalError
            If the relay says that the request is wrong, which trying again would not change.
        RelayError
            If there is no answer in all that time.
        """
        headers = {} if token is None else {"Authorization": f"Signature {token.hex()}"}
        give_up = time.monotonic() + self._patience
        wait = _FIRST_WAIT
        while True:
            try:
                response = self._client.request(
                    method, self._url + path, content=content, headers=headers
                )
                if response.status_code < _FIRST_FAULT:
                    return response
                if response.status_code < _FIRST_SERVER_FAULT and response.status_code != _TOO_SLOW:
                    raise RelayRefusalError(_reason(response), status=response.status_code)
                problem = _reason(response)
            except httpx.HTTPError as error:
                problem = str(error) or type(error).__name__
            if time.monotonic() + wait > give_up:
                raise RelayError(
                    f"no answer from the relay at {self._url} in {self._patience:g} seconds "
                    f"({problem}): see whether it runs, then start this again; nothing is lost"
                )
            time.sleep(wait * (0.5 + 0.5 * self._random()))
            wait = min(2.0 * wait, _LONGEST_WAIT)

    def _random(self) -> float:
        """Return a number in [0, 1)."""
        return float(self._jitter.words(1)[0] >> 11) * 2.0**-53


def _reason(response: httpx.Response) -> str:
    """Return what the relay says in one line."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}"
