"""Random regular graphs: for plans before a network is known, and for curves."""

from typing import SupportsIndex

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph


def random_regular_graph(
    num_users: SupportsIndex, degree: SupportsIndex, entropy: Entropy
) -> Graph:
    """Return a random graph in which every user has ``degree`` neighbours, fewer than half of all.

    Simple, but not always connected; for degrees >= 3 it is with a probability that tends to 1. The
    pairing model: all half-edges are paired by a uniform shuffle; then loops, and edges that are
    there already, are paired anew with as many other edges until there are none. Not exactly
    uniform over all such graphs, but renumbering users never changes the law.
    """
    number = require_at_least("num_users", num_users, 1)
    wanted = require_at_least("degree", degree, 0)
    if wanted and 2 * wanted >= number:
        raise ParameterError(
            f"degree = {wanted} is not below half of num_users = {number}: take more users, or "
            "fewer neighbours"
        )
    if number * wanted % 2:
        raise ParameterError(
            f"num_users * degree = {number} * {wanted} is odd, but every edge has two ends: make "
            "one of them even"
        )
    generator = entropy.generator()
    ends = generator.permutation(np.repeat(np.arange(number), wanted)).reshape(-1, 2)
    while True:
        low, high = ends.min(axis=1), ends.max(axis=1)
        edge = low * number + high
        order = np.argsort(edge, kind="stable")
        is_bad = low == high
        is_bad[order[1:]] |= edge[order[1:]] == edge[order[:-1]]
        if not is_bad.any():
            return Graph.from_edges(ends, num_users=number)
        others = generator.permutation(np.flatnonzero(~is_bad))[: np.count_nonzero(is_bad)]
        chosen = np.concatenate([np.flatnonzero(is_bad), others])
        ends[chosen] = generator.permutation(ends[chosen].reshape(-1)).reshape(-1, 2)
