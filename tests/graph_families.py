"""Graphs whose spectra are known, and the adjacency matrix of any."""

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph


def complete_graph(num_users: int) -> Graph:
    """Return the graph in which everybody is everybody's neighbour."""
    return Graph.from_edges(np.stack(np.triu_indices(num_users, 1), axis=1), num_users=num_users)


def cycle_graph(num_users: int) -> Graph:
    """Return the cycle: user u has the neighbours u - 1 and u + 1, the last also the first."""
    users = np.arange(num_users)
    return Graph.from_edges(np.stack([users, (users + 1) % num_users], axis=1))


def star_graph(num_users: int) -> Graph:
    """Return the star: user 0 is the neighbour of all others, who have no other."""
    others = np.arange(1, num_users)
    return Graph.from_edges(np.stack([np.zeros_like(others), others], axis=1))


def complete_with_pendant(num_users: int) -> Graph:
    """Return a complete graph with one more user, the last, who hangs on user 0 alone."""
    pairs = np.stack(np.triu_indices(num_users - 1, 1), axis=1)
    return Graph.from_edges(np.vstack([pairs, [[0, num_users - 1]]]))


def adjacency(graph: Graph) -> csr_array:
    """Return the adjacency matrix."""
    shape = (graph.num_users, graph.num_users)
    return csr_array((np.ones(graph.neighbours.size), graph.neighbours, graph.starts), shape=shape)


def random_regular_graph(num_users: int, degree: int, entropy: Entropy) -> Graph:
    """Return a random graph in which everybody has as many neighbours."""
    seed = int(entropy.words(1)[0] >> np.uint64(32))
    edges = [*nx.random_regular_graph(degree, num_users, seed=seed).edges]
    return Graph.from_edges(edges, num_users=num_users)
