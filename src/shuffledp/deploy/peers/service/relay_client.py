"""What peers and analyzers say to a relay over HTTP, and how long they keep trying."""

import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.peers.service.bounded_answers import (
    MOST_SHORT_BYTES,
    AnswerSizes,
    BoundedAnswers,
)
from shuffledp.deploy.peers.service.errors import RelayError, RelayRefusalError
from shuffledp.deploy.peers.service.framing import split_messages

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_REQUEST_SECONDS = 30.0
_FIRST_SERVER_FAULT = 500
_LONGEST_REASON = 300
_GOOD = range(200, 300)
_PHASES = ("registration", "round", "hand-in", "over")
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
            status = cls(**written)
        except TypeError:
            status = None
        if status is None or not status.is_sound():
            raise DataError("the relay's status is not one of a shuffledp relay: check the URL")
        return status

    def is_sound(self) -> bool:
        """Return whether all values are of their kind; nobody else has checked them."""
        numbers: tuple[object, ...] = (
            self.round,
            self.rounds,
            self.num_users,
            self.num_registered,
            self.num_sent,
            self.num_handed_in,
        )
        return self.phase in _PHASES and all(
            isinstance(number, int) and number >= 0 for number in numbers
        )


def plain_text_cautions(url: str) -> list[str]:
    """Return what to say of a relay at another machine to which nothing is encrypted on the way."""
    host = _host(url)
    if url.lower().startswith("https:") or host in LOOPBACK_HOSTS:
        return []
    return [
        f"the relay at {host} is asked over http: whoever is on the way sees who takes "
        "part and when, and can cut users off; use https"
    ]


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
    sizes : AnswerSizes, optional
        Largest answers that are read; by default 64 MiB each.
    """

    def __init__(
        self,
        url: str,
        *,
        patience_seconds: float = 300.0,
        client: httpx.Client | None = None,
        sizes: AnswerSizes | None = None,
    ) -> None:
        host = _host(url)
        self._url = url.rstrip("/")
        self._patience = patience_seconds
        self._jitter = Entropy.from_operating_system()
        # A proxy of the environment must not stand between two programs of one machine.
        is_near = host in LOOPBACK_HOSTS
        self._client = client or httpx.Client(timeout=_REQUEST_SECONDS, trust_env=not is_near)
        self._sizes = sizes or AnswerSizes()
        self._answers = BoundedAnswers(self._client)

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
        written = _json(self._request("GET", "/status"))
        return RelayStatus.from_json_dict(written if isinstance(written, dict) else {})

    def register(self, node: int, registration: bytes) -> None:
        """Hand over a user's registration."""
        self._request("PUT", f"/registration/{node}", registration)

    def roster(self) -> bytes:
        """Return all registrations, once registration has ended."""
        return self._request("GET", "/roster", most=self._sizes.roster)

    def send(self, round_number: int, node: int, batch: bytes) -> None:
        """Hand over what a user sends in a round."""
        self._request("PUT", f"/rounds/{round_number}/batches/{node}", batch)

    def mail(self, round_number: int, node: int, token: bytes) -> bytes:
        """Return what came for a user in a round that is over."""
        path = f"/rounds/{round_number}/mail/{node}"
        return self._request("GET", path, token=token, most=self._sizes.mail_of(node))

    def hand_in(self, node: int, handed: bytes) -> None:
        """Hand over a user's reports to the analyzer."""
        self._request("PUT", f"/hand-in/{node}", handed)

    def hand_ins(self, token: bytes) -> list[bytes]:
        """Return everything that was handed in."""
        most = self._sizes.hand_ins
        return split_messages(self._request("GET", "/hand-ins", token=token, most=most))

    def forget_hand_ins(self, token: bytes) -> None:
        """Say that everything that was handed in is stored, so that the relay deletes it."""
        self._request("DELETE", "/hand-ins", token=token)

    def absences(self, token: bytes) -> object:
        """Return who was absent in each round, as it stands in the relay's JSON, unchecked."""
        written = _json(self._request("GET", "/record", token=token, most=self._sizes.record))
        return written.get("absent") if isinstance(written, dict) else None

    def _request(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        token: bytes | None = None,
        most: int = MOST_SHORT_BYTES,
    ) -> bytes:
        """Return the body of the answer to a request, tried until there is one.

        Raises
        ------
        RelayRefusalError
            If the relay says that the request is wrong, which trying again would not change.
        RelayError
            If there is no answer in all that time.
        DataError
            If the answer is larger than ``most`` bytes, or compressed.
        """
        headers = {} if token is None else {"Authorization": f"Signature {token.hex()}"}
        give_up = time.monotonic() + self._patience
        wait = _FIRST_WAIT
        while True:
            try:
                status, body = self._answers.answer(
                    method, self._url + path, content=content, headers=headers, most=most
                )
                if status in _GOOD:
                    return body
                if status < _FIRST_SERVER_FAULT and status != _TOO_SLOW:
                    raise RelayRefusalError(_reason(status, body), status=status)
                problem = _reason(status, body)
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


def _host(url: str) -> str:
    """Return the host of a relay's URL."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            httpx.URL(url)
            return parts.hostname
    except (ValueError, httpx.InvalidURL):
        pass
    raise ParameterError(f"relay = {url!r} is no URL: write it like http://127.0.0.1:8000")


def _json(body: bytes) -> Any:
    """Return what a body says in JSON; None if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _reason(status: int, body: bytes) -> str:
    """Return what the relay says in one line."""
    try:
        return str(_json(body)["error"])[:_LONGEST_REASON]
    except (KeyError, TypeError):
        return f"HTTP {status}"
