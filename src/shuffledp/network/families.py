"""Families of graphs: for plans before a network is known, for curves, and for tests."""

from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.shuffling import UniformShuffler
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import MOST_USERS, Graph

#: Most entries of the rows of a graph made here, two an edge: 8 GB of them.
MOST_ENTRIES = 2**31 - 1

# Half words drawn at a time: enough for most graphs of small degree at once.
_DRAWS = 1 << 12


def random_regular_graph(
    num_users: SupportsIndex, degree: SupportsIndex, entropy: Entropy
) -> Graph:
    """Return a random graph in which every user has ``degree`` neighbours.

    Simple, but not always connected; for degrees >= 3 it is with a probability that tends to 1. Not
    exactly uniform over all such graphs, but the total variation distance from that tends to 0 as n
    grows with d fixed, and renumbering users never changes the law. The pairing model: all
    half-edges are paired by an exactly uniform shuffle; then each loop, and each edge that is there
    already, is switched with a uniformly random other edge until two good edges arise. Where n <= 2
    d the complement is drawn, so that there are good switches.

    Source: Janson, "Random graphs with given vertex degrees and switchings", Random Structures
    and Algorithms 57, 2020, arXiv:1901.09744. Cost: O(n d + d^3).
    """
    number, wanted = _require_users(num_users, 1), require_at_least("degree", degree, 0)
    if wanted >= number:
        raise ParameterError(
            f"degree = {wanted} is not in [0, {number - 1}]: no more than num_users - 1 others "
            "can be neighbours"
        )
    if number * wanted % 2:
        raise ParameterError(
            f"num_users * degree = {number} * {wanted} is odd, but every edge has two ends: make "
            "one of them even"
        )
    _require_entries(number * wanted)
    if 2 * wanted >= number:
        return _complement(_sparse_regular_graph(number, number - 1 - wanted, entropy))
    return _sparse_regular_graph(number, wanted, entropy)


def complete_graph(num_users: SupportsIndex) -> Graph:
    """Return the graph in which everybody is everybody's neighbour."""
    number = _require_users(num_users, 1)
    _require_entries(number * (number - 1))
    return _complement(_without_edges(number))


def cycle_graph(num_users: SupportsIndex) -> Graph:
    """Return the cycle: user u has the neighbours u - 1 and u + 1, the last also the first."""
    number = _require_users(num_users, 3)
    _require_entries(2 * number)
    users = np.arange(number)
    return Graph.from_edges(np.stack([users, (users + 1) % number], axis=1))


def star_graph(num_users: SupportsIndex) -> Graph:
    """Return the star: user 0 is the neighbour of all others, who have no other."""
    number = _require_users(num_users, 2)
    _require_entries(2 * (number - 1))
    others = np.arange(1, number)
    return Graph.from_edges(np.stack([np.zeros_like(others), others], axis=1))


def complete_with_pendant(num_users: SupportsIndex) -> Graph:
    """Return a complete graph with one more user, the last, who hangs on user 0 alone.

    Its irregularity tends to 1 as n grows, and yet the report of the last user has only one holder
    after one round: bounds for regular graphs fail.
    """
    number = _require_users(num_users, 3)
    complete = complete_graph(number - 1)
    last = number - 1
    starts = np.append(complete.starts + 1, complete.neighbours.size + 2)
    starts[0] = 0
    # User n - 1 is the largest, hence the last in the row of user 0.
    neighbours = np.insert(complete.neighbours, complete.starts[1], last)
    return Graph(starts=starts, neighbours=np.append(neighbours, np.int32(0)))


def _sparse_regular_graph(num_users: int, degree: int, entropy: Entropy) -> Graph:
    """Return a random regular graph of degree below half the number of users."""
    if degree == 0:
        return _without_edges(num_users)
    partner = _pairing(num_users * degree, entropy)
    while not _repaired(partner, degree, entropy):
        partner = _pairing(num_users * degree, entropy)
    # Repairs go through users in order. A random renumbering makes all users alike again.
    name_of = UniformShuffler().shuffle(np.arange(num_users, dtype=np.int32), entropy)
    rows = np.empty((num_users, degree), dtype=np.int32)
    rows[name_of] = name_of[partner // degree].reshape(num_users, degree)
    rows.sort(axis=1)
    return Graph(starts=degree * np.arange(num_users + 1), neighbours=rows.reshape(-1))


def _pairing(num_half_edges: int, entropy: Entropy) -> NDArray[np.int32]:
    """Return the partner of each half-edge, every pairing being exactly equally likely."""
    from shuffledp.network import graph_kernels as kernels

    order = UniformShuffler().shuffle(np.arange(num_half_edges, dtype=np.int32), entropy)
    partner = np.empty_like(order)
    kernels.pair_up(order, partner)
    return partner


def _repaired(partner: NDArray[np.int32], degree: int, entropy: Entropy) -> bool:
    """Switch away loops and double edges, in place; return whether that went well."""
    from shuffledp.network import graph_kernels as kernels

    bad = kernels.bad_half_edges(partner, degree)
    progress = np.zeros(2, dtype=np.int64)
    # A good switch, if there is one at all, is missed so often with probability e^-64 at most.
    most_trials = 64 * partner.size
    while 0 <= progress[0] < bad.size:
        half_words = entropy.words(_DRAWS // 2).view(np.uint32)
        kernels.repair(partner, degree, bad, progress, half_words, most_trials)
    return int(progress[0]) != kernels.STUCK


def _complement(graph: Graph) -> Graph:
    """Return the graph that joins those who are not joined."""
    from shuffledp.network import graph_kernels as kernels

    number = graph.num_users
    starts = (number - 1) * np.arange(number + 1) - graph.starts
    neighbours = np.empty(int(starts[-1]), dtype=np.int32)
    kernels.write_complement(graph.starts, graph.neighbours, neighbours)
    return Graph(starts=starts, neighbours=neighbours)


def _without_edges(num_users: int) -> Graph:
    """Return the graph of users who have no neighbours."""
    return Graph.from_edges([], num_users=num_users)


def _require_users(num_users: SupportsIndex, least: int) -> int:
    """Return the number of users if it is in [least, 2^31 - 1], else raise `ParameterError`."""
    number = require_at_least("num_users", num_users, least)
    if number > MOST_USERS:
        raise ParameterError(f"num_users = {number:,} is above {MOST_USERS:,}: take fewer users")
    return number


def _require_entries(count: int) -> None:
    """Raise `ParameterError` if a graph would have too many edges."""
    if count > MOST_ENTRIES:
        raise ParameterError(
            f"this graph would have {count // 2:,} edges, above the limit of "
            f"{MOST_ENTRIES // 2:,}: take fewer users or neighbours"
        )
