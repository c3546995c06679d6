"""Requests of peers and analyzers to a relay over HTTP, and the largest answers they accept."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import httpx
import numpy as np

from shuffledp.core.errors import DataError
from shuffledp.deploy.remote import HttpClient, json_of
from shuffledp.deploy.wire import split_messages
from shuffledp.network.graph import Graph
from shuffledp.peers.terms import CODE_BYTES, REGISTRATION_BYTES, Terms

_HEAD_BYTES = 1024
_NUMBER_TEXT_BYTES = 12
_PHASES = ("registration", "round", "hand-in", "over")

#: Seconds to try again while the relay does not answer.
PATIENCE_SECONDS = 300.0

# Seconds between two requests for the status.
SHORTEST_WAIT, LONGEST_WAIT = 0.05, 2.0


def answer_sizes(terms: Terms, graph: Graph) -> Mapping[str, int]:
    """Return upper bounds in bytes on the answers of an honest relay, by kind of answer."""
    users = terms.num_users
    # All messages of all neighbours may go to one of them, unless traffic is even.
    to_one = terms.per_neighbour or np.array(terms.slots)[graph.neighbours]
    sizes = np.broadcast_to(
        to_one * (terms.envelope_bytes + 8) + CODE_BYTES + 4, graph.neighbours.shape
    )
    mail = np.bincount(np.repeat(np.arange(users), graph.degrees), weights=sizes, minlength=1)
    return {
        "roster": users * REGISTRATION_BYTES + _HEAD_BYTES,
        "mail": int(mail.max()) + 4 * users + _HEAD_BYTES,
        "hand-ins": sum(terms.slots) * (terms.inner_bytes + 1) + users * _HEAD_BYTES,
        "record": terms.rounds * (users + 1) * _NUMBER_TEXT_BYTES + _HEAD_BYTES,
    }


class RelayStatus(NamedTuple):
    """Public status of a relay; see `Relay.status`."""

    phase: str
    round: int
    rounds: int
    terms_digest: str

    @classmethod
    def from_json(cls, written: Any) -> "RelayStatus":
        """Return the status in a response; raise `DataError` if it is none: its only check."""
        with suppress(TypeError, KeyError):
            status = cls(*(written[name] for name in cls._fields))
            is_number = (type(each) is int and each >= 0 for each in status[1:3])
            if status.phase in _PHASES and all(is_number):
                return status
        raise DataError("the relay's status is not one of a shuffledp relay: check the URL")

    def require_terms(self, terms: Terms) -> None:
        """Raise unless the relay serves the collection of these terms."""
        if self.terms_digest != terms.digest().hex():
            raise DataError("the relay serves a collection with other terms: check URL and file")


class RelayClient(HttpClient):
    """A connection to a relay, with patience: failed requests are tried again."""

    def __init__(
        self,
        url: str,
        sizes: Mapping[str, int],
        *,
        patience_seconds: float | None = None,
        client: httpx.Client | None = None,
    ) -> None:
        """``sizes`` come from `answer_sizes`."""
        self._sizes = sizes
        patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        super().__init__(url, server="relay", patience_seconds=patience, client=client)

    def status(self) -> RelayStatus:
        """Status of the relay."""
        return RelayStatus.from_json(json_of(self.request("GET", "/status")))

    def register(self, node: int, registration: bytes) -> None:
        """Send a user's registration."""
        self.request("PUT", f"/registration/{node}", registration)

    def roster(self) -> bytes:
        """Return all registrations, once registration has ended."""
        return self.request("GET", "/roster", most=self._sizes["roster"])

    def send(self, round_number: int, node: int, batch: bytes) -> None:
        """Send a user's batch of a round."""
        self.request("PUT", f"/rounds/{round_number}/batches/{node}", batch)

    def mail(self, round_number: int, node: int, token: bytes) -> bytes:
        """Mail for a user in a round that is over."""
        path = f"/rounds/{round_number}/mail/{node}"
        return self.request("GET", path, token=token, most=self._sizes["mail"])

    def hand_in(self, node: int, handed: bytes) -> None:
        """Send a user's reports for the analyzer."""
        self.request("PUT", f"/hand-in/{node}", handed)

    def hand_ins(self, token: bytes) -> list[bytes]:
        """Return all hand-ins."""
        most = self._sizes["hand-ins"]
        return split_messages(self.request("GET", "/hand-ins", token=token, most=most))

    def forget_hand_ins(self, token: bytes) -> None:
        """Confirm that all hand-ins are stored, so that the relay deletes them."""
        self.request("DELETE", "/hand-ins", token=token)

    def absences(self, token: bytes) -> object:
        """Absences of each round, as in the relay's JSON, unchecked."""
        written = json_of(self.request("GET", "/record", token=token, most=self._sizes["record"]))
        return written.get("absent") if isinstance(written, dict) else None
