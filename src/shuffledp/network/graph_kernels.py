"""Compiled loops over the compressed rows of graphs; both take time O(n + m)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def spread(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    component: NDArray[np.int32],
    side: NDArray[np.bool_],
    queue: NDArray[np.int32],
) -> int:
    """Find the components, breadth first; return how many there are.

    ``component``, n times -1, becomes the number of each user's component, in the order of their
    first users; ``side`` whether a user is at odd distance from the first user of the component;
    ``queue`` is scratch space of size n.
    """
    num_components = 0
    for first in range(starts.size - 1):
        if component[first] >= 0:
            continue
        component[first] = num_components
        side[first] = False
        queue[0] = first
        head, tail = 0, 1
        while head < tail:
            user = queue[head]
            head += 1
            for place in range(starts[user], starts[user + 1]):
                other = neighbours[place]
                if component[other] < 0:
                    component[other] = num_components
                    side[other] = not side[user]
                    queue[tail] = other
                    tail += 1
        num_components += 1
    return num_components


@njit(cache=True, nogil=True)
def mark_odd_components(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    component: NDArray[np.int32],
    side: NDArray[np.bool_],
    is_odd: NDArray[np.bool_],
) -> None:
    """Mark the components with an edge inside a side, that is with a cycle of odd length."""
    for user in range(starts.size - 1):
        for place in range(starts[user], starts[user + 1]):
            if side[user] == side[neighbours[place]]:
                is_odd[component[user]] = True
