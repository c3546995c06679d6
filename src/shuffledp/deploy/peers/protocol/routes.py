"""Where envelopes go: exact draws, and what a user may send to whom."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from shuffledp.core.entropy import Entropy
from shuffledp.deploy.peers.protocol.keys import Roster
from shuffledp.deploy.peers.protocol.terms import COIN_SIDES, Terms
from shuffledp.network.graph import Graph

_Item = TypeVar("_Item")

_WORD_END = 1 << 64


class Draws:
    """Exact draws from a stream of words."""

    __slots__ = ("_entropy",)

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def below(self, bound: int) -> int:
        """Return a whole number, exactly uniform in [0, bound), for 1 <= bound <= 2^64.

        Words above the largest multiple of ``bound`` are thrown away; none is kept, where a fork
        would not be noticed.
        """
        limit = _WORD_END - _WORD_END % bound
        while (word := int(self._entropy.words(1)[0])) >= limit:
            pass
        return word % bound

    def coin(self, sides_of_heads: int) -> bool:
        """Return whether a coin shows heads: probability ``sides_of_heads`` / 65536."""
        return self.below(COIN_SIDES) < sides_of_heads

    def choice(self, items: Sequence[_Item]) -> _Item:
        """Return one of the items, of which there is at least one; each is as likely."""
        return items[self.below(len(items))]

    def permuted(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in an order drawn uniformly from all (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def registered_neighbours(graph: Graph, roster: Roster, node: int) -> tuple[int, ...]:
    """Return the neighbours of a user who have registered, ascending."""
    row = graph.neighbours[graph.starts[node] : graph.starts[node + 1]].tolist()
    return tuple(other for other in row if roster.is_registered(other))


def batch_size(terms: Terms, node: int, neighbours: tuple[int, ...]) -> int:
    """Return how many envelopes a user sends each round: none where there is nobody to send to."""
    if terms.per_neighbour:
        return terms.per_neighbour * len(neighbours)
    return terms.slots[node] if neighbours else 0


def is_even(terms: Terms, recipients: Iterable[int]) -> bool:
    """Return whether recipients are served evenly, if the terms ask for that."""
    allowed = {terms.per_neighbour}
    return not terms.per_neighbour or set(Counter(recipients).values()) <= allowed


def draw_step(
    held: Sequence[bytes], neighbours: tuple[int, ...], terms: Terms, draws: Draws
) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """Return which reports stay, each by a coin of its own, and where the others go, uniformly."""
    if not neighbours:
        return [*held], []
    staying: list[bytes] = []
    leaving: list[bytes] = []
    for inner in held:
        (staying if draws.coin(terms.coin) else leaving).append(inner)
    return staying, [(draws.choice(neighbours), inner) for inner in leaving]
