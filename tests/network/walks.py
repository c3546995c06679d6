"""Small graphs on which walks are checked, and the profile and delta they are checked with."""

import numpy as np

from shuffledp.core.profile import LocalProfile
from shuffledp.network.graph import Graph
from shuffledp.network.walk import move_laws, point_laws

ANY = LocalProfile(epsilon0=1.0)
DELTA = 1e-3

#: A triangle with a user who hangs on one of its corners: irregular, and not bipartite.
PENDANT = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])


def wheel(num_users: int) -> Graph:
    """Return a hub joined to a ring."""
    ring = [(i, i % (num_users - 1) + 1) for i in range(1, num_users)]
    return Graph.from_edges([*ring, *((0, i) for i in range(1, num_users))])


def position_distribution(walk, start, rounds):
    """Return the law of the holder of a report, or of several that start elsewhere, a row each."""
    number = walk.require_rounds(rounds)
    starts = np.asarray(start, dtype=np.int64)
    laws = point_laws(walk, np.atleast_1d(starts))
    move_laws(walk, laws, 0, number)
    return laws[:, 0].copy() if starts.ndim == 0 else np.ascontiguousarray(laws.T)
