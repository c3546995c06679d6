"""Answers of a relay that is not trusted: no larger than they can be, and not for ever."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import httpx
import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError
from shuffledp.deploy.peers.protocol.delivery import CODE_BYTES
from shuffledp.deploy.peers.protocol.keys import registration_bytes
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.preparing import most_envelopes
from shuffledp.network.graph import Graph

#: Of what says little: a status, an acknowledgement, an error.
MOST_SHORT_BYTES = 1 << 14

_MOST_BYTES = 1 << 26
_HEAD_BYTES = 1024
_NUMBER_TEXT_BYTES = 12
_SHORTEST_SECONDS = 60.0
_LEAST_BYTES_A_SECOND = 50_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSizes:
    """Sizes in bytes that no answer of an honest relay exceeds.

    Parameters
    ----------
    roster, hand_ins, record : int
        Of the answers of these names.
    mail : ndarray of int64, optional
        Of the mail of each user in a round; 64 MiB for all if left out.
    """

    roster: int = _MOST_BYTES
    hand_ins: int = _MOST_BYTES
    record: int = _MOST_BYTES
    mail: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, terms: Terms, graph: Graph) -> Self:
        """Return the sizes that follow from the terms.

        Parameters
        ----------
        terms : Terms
            Of the collection.
        graph : Graph
            Of the terms.
        """
        users = terms.num_users
        letter = terms.envelope_bytes + 2 * 4
        if terms.per_neighbour:
            letters = terms.per_neighbour * graph.degrees.astype(np.int64)
        else:  # all that all neighbours send may go to one of them
            sums = np.concatenate([[0], np.cumsum(most_envelopes(terms, graph)[graph.neighbours])])
            letters = sums[graph.starts[1:]] - sums[graph.starts[:-1]]
        places = int(np.sum(np.asarray(terms.slots, dtype=np.int64)))
        return cls(
            roster=users * registration_bytes(terms) + _HEAD_BYTES,
            hand_ins=places * (terms.inner_bytes + 1) + users * _HEAD_BYTES,
            record=terms.rounds * (users + 1) * _NUMBER_TEXT_BYTES + _HEAD_BYTES,
            mail=letters * letter
            + graph.degrees.astype(np.int64) * (CODE_BYTES + 4)
            + (4 * users + _HEAD_BYTES),
        )

    def mail_of(self, node: int) -> int:
        """Return the size of a user's mail."""
        return _MOST_BYTES if self.mail is None else int(self.mail[node])


class BoundedAnswers:
    """Sends requests and reads answers: uncompressed, up to a size, until a deadline.

    Parameters
    ----------
    client : httpx.Client
        What carries them.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._socket: socket.socket | None = None

    def answer(
        self, method: str, url: str, *, content: bytes | None, headers: dict[str, str], most: int
    ) -> tuple[int, bytes]:
        """Return status and body of an answer.

        Raises
        ------
        DataError
            If it is larger than ``most`` bytes, or compressed.
        httpx.HTTPError
            If it does not come, or not in time.
        """
        request = self._client.build_request(
            method, url, content=content, headers={**headers, "Accept-Encoding": "identity"}
        )
        request.extensions["trace"] = self._note_socket
        sent = 0 if content is None else len(content)
        deadline = threading.Timer(
            _SHORTEST_SECONDS + (most + sent) / _LEAST_BYTES_A_SECOND, self.cut
        )
        deadline.daemon = True
        deadline.start()
        try:
            response = self._client.send(request, stream=True)
            try:
                return response.status_code, _body(response, request.url.path, most)
            finally:
                response.close()
        finally:
            deadline.cancel()

    def _note_socket(self, event: str, told: dict[str, Any]) -> None:
        """Remember the connection in use; httpx tells of each."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = told["return_value"].get_extra_info("socket")

    def cut(self) -> None:
        """End the connection in use: whoever waits for it learns that nothing comes any more."""
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _body(response: httpx.Response, path: str, most: int) -> bytes:
    """Return the body of an answer."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise DataError(
            f"the relay's answer to {path} is compressed, which was not asked for: check the URL"
        )
    if response.is_error or response.is_redirect:
        most = MOST_SHORT_BYTES
    pieces, size = [], 0
    for piece in response.iter_bytes():
        size += len(piece)
        if size > most:
            raise DataError(
                f"the relay's answer to {path} is larger than {most:,} bytes, the most that an "
                "honest one has: do not trust the relay"
            )
        pieces.append(piece)
    return b"".join(pieces)
