"""Who can send to whom, and how many messages: all of it public."""

from collections import Counter
from collections.abc import Iterable

from shuffledp.deploy.peers.protocol.keys import Roster
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.network.graph import Graph


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
