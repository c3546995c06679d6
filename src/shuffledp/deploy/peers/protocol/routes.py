"""Where envelopes go: exact draws, and what a user may send to whom."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.deploy.peers.protocol.keys import Roster
from shuffledp.deploy.peers.protocol.terms import COIN_SIDES, Terms
from shuffledp.network.graph import Graph

_Item = TypeVar("_Item")


def choice(entropy: Entropy, items: Sequence[_Item]) -> _Item:
    """Return one of the items, of which there is at least one; each is as likely."""
    return items[int(draw_below(entropy, 1, len(items))[0])]


def permuted(entropy: Entropy, items: Sequence[_Item]) -> list[_Item]:
    """Return the items in an order drawn uniformly from all (Fisher and Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = int(draw_below(entropy, 1, last + 1)[0])
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
    held: Sequence[bytes], neighbours: tuple[int, ...], terms: Terms, entropy: Entropy
) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """Return which reports stay, each by a coin of its own, and where the others go, uniformly."""
    if not neighbours:
        return [*held], []
    staying: list[bytes] = []
    leaving: list[bytes] = []
    for inner in held:
        is_lazy = int(draw_below(entropy, 1, COIN_SIDES)[0]) < terms.coin
        (staying if is_lazy else leaving).append(inner)
    return staying, [(choice(entropy, neighbours), inner) for inner in leaving]
