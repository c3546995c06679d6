"""Where reports go next: drawn by each holder in turn, hop by hop.

`OnionRouting` is the other way to do it: there the user draws the whole way of his report at first.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from shuffledp.deploy.peers.protocol.draws import Draws
from shuffledp.deploy.peers.protocol.envelopes import Refusal
from shuffledp.deploy.peers.protocol.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of the reports of a holder in one round.

    Parameters
    ----------
    staying : list of bytes
        Those that he keeps, as he keeps them after the round.
    moving : list of (int, bytes)
        Recipient and content of the envelopes with the others.
    counts : Counter
        Reports that are lost, by why.
    """

    staying: list[bytes]
    moving: list[tuple[int, bytes]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Routing(Protocol):
    """What differs between the two kinds of routing, for one user."""

    def first(self, inner: bytes) -> bytes:
        """Return what a user keeps before round 1 of his own report, sealed to the analyzer."""
        ...

    def step(self, held: list[bytes], round_number: int) -> Step:
        """Return which reports stay, and where the others go."""
        ...

    def missed(self, held: list[bytes], round_number: int) -> Step:
        """Return what becomes of the reports of a holder who was away; none of them moves."""
        ...

    def returned(self, moving: list[bytes]) -> Step:
        """Return what becomes of the content of a batch that the relay did not take."""
        ...

    def accepted(self, content: bytes, round_number: int) -> bytes | Refusal:
        """Return what a user keeps of the content of an envelope, or why he does not."""
        ...

    def inner(self, kept: bytes) -> bytes:
        """Return the report, sealed to the analyzer, that is kept after the last round."""
        ...


class HopRouting:
    """Each holder draws the next step; what travels is the report, sealed to the analyzer.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    neighbours : tuple of int
        The registered neighbours of the user.
    draws : Draws
        For the routes.
    """

    __slots__ = ("_draws", "_neighbours", "_terms")

    def __init__(self, terms: Terms, neighbours: tuple[int, ...], draws: Draws) -> None:
        self._terms, self._neighbours, self._draws = terms, neighbours, draws

    def first(self, inner: bytes) -> bytes:
        """Return the report."""
        return inner

    def step(self, held: list[bytes], round_number: int) -> Step:
        """Return which reports stay, each by a coin of its own, and uniform recipients."""
        del round_number
        if not self._neighbours:
            return Step(staying=held)
        staying: list[bytes] = []
        leaving: list[bytes] = []
        for inner in held:
            (staying if self._draws.coin(self._terms.coin) else leaving).append(inner)
        return Step(
            staying=staying,
            moving=[(self._draws.choice(self._neighbours), inner) for inner in leaving],
        )

    def missed(self, held: list[bytes], round_number: int) -> Step:
        """Return that all reports stay."""
        del round_number
        return Step(staying=held)

    def returned(self, moving: list[bytes]) -> Step:
        """Return that all reports stay."""
        return Step(staying=moving)

    def accepted(self, content: bytes, round_number: int) -> bytes | Refusal:
        """Return the report."""
        del round_number
        return content

    def inner(self, kept: bytes) -> bytes:
        """Return the report."""
        return kept
