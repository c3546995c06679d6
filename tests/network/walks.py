"""Small graphs on which walks are checked, and the profile and delta they are checked with."""

from shuffledp.core.profile import LocalProfile
from shuffledp.network.graph import Graph

ANY = LocalProfile(epsilon0=1.0)
DELTA = 1e-3

#: A triangle with a user who hangs on one of its corners: irregular, and not bipartite.
PENDANT = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])


def wheel(num_users: int) -> Graph:
    """Return a hub joined to a ring."""
    ring = [(i, i % (num_users - 1) + 1) for i in range(1, num_users)]
    return Graph.from_edges([*ring, *((0, i) for i in range(1, num_users))])
