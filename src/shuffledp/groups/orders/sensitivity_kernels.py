"""Compiled loops of the exact sensitivities, one pass over the memberships each.

People are met in the order of their places, so that the members of every group come sorted
without any sorting: a group only has to remember how many of its members have been met, and where
the last one was.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def kendall_sensitivities(
    order: NDArray[np.int64],
    user_starts: NDArray[np.int64],
    user_groups: NDArray[np.int32],
    sizes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return g (g - 1) / 2 + 2 sum over non-members in between of min(members on either side)."""
    met = np.zeros(sizes.size, dtype=np.int64)
    last = np.zeros(sizes.size, dtype=np.int64)
    totals = sizes * (sizes - 1) // 2
    for place in range(order.size):
        user = order[place]
        for k in range(user_starts[user], user_starts[user + 1]):
            group = user_groups[k]
            below = met[group]
            if below > 0:
                strangers = place - last[group] - 1
                totals[group] += 2 * strangers * min(below, sizes[group] - below)
            met[group] = below + 1
            last[group] = place
    return totals


@njit(cache=True, nogil=True)
def footrule_sensitivities(
    order: NDArray[np.int64],
    user_starts: NDArray[np.int64],
    user_groups: NDArray[np.int32],
    sizes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return twice (the sum of the upper half of the places - that of the lower half)."""
    met = np.zeros(sizes.size, dtype=np.int64)
    totals = np.zeros(sizes.size, dtype=np.int64)
    for place in range(order.size):
        user = order[place]
        for k in range(user_starts[user], user_starts[user + 1]):
            group = user_groups[k]
            half = sizes[group] // 2
            if met[group] < half:
                totals[group] -= 2 * place
            elif met[group] >= sizes[group] - half:
                totals[group] += 2 * place
            met[group] += 1
    return totals


@njit(cache=True, nogil=True)
def widths(
    starts: NDArray[np.int64], members: NDArray[np.int32], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the largest place minus the smallest of each group; 0 for an empty one."""
    spans = np.zeros(starts.size - 1, dtype=np.int64)
    for a in range(starts.size - 1):
        if starts[a] < starts[a + 1]:
            lowest = places[members[starts[a]]]
            highest = lowest
            for k in range(starts[a] + 1, starts[a + 1]):
                place = places[members[k]]
                lowest = min(lowest, place)
                highest = max(highest, place)
            spans[a] = highest - lowest
    return spans
