"""Whether everything arrived: codes between neighbours, and a digest of who was absent when.

In every round a user sends each registered neighbour a code over the envelopes for him, none
included, under a key of this round that only the two of them have. The recipient knows from the
relay who was absent; each other neighbour's code must fit what arrived. The *transcript* is a
digest of who was absent in all rounds so far; codes fit only between users who were shown the same.
Who finds a shortfall sends codes that fit nothing from then on, so that it becomes known wherever
the missing report could have gone (docs/results/delivery.md).
"""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.protocol.keys import Roster
from shuffledp.deploy.peers.protocol.pairs import Pairs

#: Truncated HMAC-SHA256: a relay guesses one with probability 2^-128.
CODE_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What a holder says of the delivery to him, for the analyzer only.

    Parameters
    ----------
    transcript : bytes
        Of all rounds, as the relay showed them to this holder.
    short_since : int
        Round in which something was first found missing; 0 if nothing was.
    """

    transcript: bytes
    short_since: int


def first_transcript(roster: Roster) -> bytes:
    """Return the transcript before round 1."""
    return wire.digest(b"transcript", roster.context)


def next_transcript(before: bytes, round_number: int, absent: Sequence[int]) -> bytes:
    """Return the transcript after a round in which these registered users were absent."""
    return wire.digest(b"transcript", before, wire.numbers(round_number, *absent))


def final_transcript(roster: Roster, absences: NDArray[np.bool_]) -> bytes:
    """Return the transcript of a whole exchange.

    Parameters
    ----------
    roster : Roster
        Of the collection.
    absences : ndarray of bool, shape (rounds, num_users)
        Who sent nothing in which round. Users who are not in the roster do not count.
    """
    nodes = np.array(roster.nodes, dtype=np.int64)
    transcript = first_transcript(roster)
    for row, away in enumerate(absences):
        transcript = next_transcript(transcript, row + 1, nodes[away[nodes]].tolist())
    return transcript


class Codes:
    """Makes and checks the codes between one user and the neighbours.

    Parameters
    ----------
    pairs : Pairs
        Of the user.
    node : int
        The user.

    Notes
    -----
    Cost: 5 us a code.
    """

    __slots__ = ("_node", "_pairs")

    def __init__(self, pairs: Pairs, node: int) -> None:
        self._pairs, self._node = pairs, node

    def to(
        self, recipient: int, *, round_number: int, transcript: bytes, sealed: Iterable[bytes]
    ) -> bytes:
        """Return the code for the envelopes to a neighbour, in their order in the batch."""
        return self._code(recipient, (self._node, recipient), round_number, transcript, sealed)

    def fits(
        self,
        code: bytes | None,
        sender: int,
        *,
        round_number: int,
        transcript: bytes,
        sealed: Iterable[bytes],
    ) -> bool:
        """Return whether a neighbour's code is there and fits the envelopes that came."""
        wanted = self._code(sender, (sender, self._node), round_number, transcript, sealed)
        return code is not None and hmac.compare_digest(code, wanted)

    def _code(
        self,
        neighbour: int,
        way: tuple[int, int],
        round_number: int,
        transcript: bytes,
        sealed: Iterable[bytes],
    ) -> bytes:
        """Return the code for envelopes between two users."""
        text = wire.digest(b"code", transcript, wire.numbers(round_number, *way), *sealed)
        return hmac.digest(self._pairs[neighbour].code, text, "sha256")[:CODE_BYTES]
