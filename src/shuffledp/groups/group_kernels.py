"""Compiled loops over the compressed rows of groups, and of the exact sensitivities.

For these, people are met in the order of their places, so that the members of every group come
sorted without any sorting: a group only has to remember how many of its members have been met, and
where the last one was.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers


@njit(cache=True, nogil=True)
def sort_rows(starts: Integers, members: NDArray[np.int32]) -> None:
    """Sort the members of each row, in place."""
    for row in range(starts.size - 1):
        members[starts[row] : starts[row + 1]].sort()


@njit(cache=True, nogil=True)
def turn_round(
    starts: Integers, members: NDArray[np.int32], num_users: int
) -> tuple[Integers, NDArray[np.int32]]:
    """Return the groups of each person in compressed rows, groups ascending (counting sort)."""
    user_starts = np.zeros(num_users + 1, dtype=np.int64)
    for k in range(members.size):
        user_starts[members[k] + 1] += 1
    for i in range(num_users):
        user_starts[i + 1] += user_starts[i]
    next_free = user_starts[:-1].copy()
    user_groups = np.empty(members.size, dtype=np.int32)
    for a in range(starts.size - 1):
        for k in range(starts[a], starts[a + 1]):
            user = members[k]
            user_groups[next_free[user]] = a
            next_free[user] += 1
    return user_starts, user_groups


@njit(cache=True, nogil=True)
def row_sums(starts: Integers, columns: NDArray[np.int32], values: Floats) -> Floats:
    """Return the sum of ``values[columns]`` over each of the compressed rows."""
    sums = np.empty(starts.size - 1)
    for i in range(sums.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[columns[k]]
        sums[i] = total
    return sums


@njit(cache=True, nogil=True)
def _admit(
    newcomers: NDArray[np.int32],
    number: int,
    component: Integers,
    queue: Integers,
    tail: int,
    ranks: Integers,
    by_rank: Integers,
) -> int:
    """Queue those not seen before, in the order of their ranks; return the queue's new end."""
    first = tail
    for user in newcomers:
        if component[user] < 0:
            component[user] = number
            queue[tail] = ranks[user]
            tail += 1
    queue[first:tail] = by_rank[np.sort(queue[first:tail])]
    return tail


@njit(cache=True, nogil=True)
def traverse(
    roots: Integers,
    own: Integers,
    user_starts: Integers,
    user_groups: NDArray[np.int32],
    starts: Integers,
    members: NDArray[np.int32],
    ranks: Integers,
    by_rank: Integers,
) -> tuple[Integers, Integers]:
    """Visit people breadth first: each opens all its groups, and a group admits its members.

    ``roots`` lists everybody in the order in which components may start; ``own`` is the group
    that a person opens first, or -1; the members of a group come in the order of ``ranks``, of
    which ``by_rank`` is the inverse. Returns the people in the order of the visit, and the number
    of the component of each.
    """
    queue = np.empty(roots.size, dtype=np.int64)
    component = np.full(roots.size, -1, dtype=np.int64)
    opened = np.zeros(starts.size - 1, dtype=np.bool_)
    head = 0
    tail = 0
    number = 0
    for root in roots:
        if component[root] >= 0:
            continue
        queue[tail] = root
        component[root] = number
        tail += 1
        while head < tail:
            user = queue[head]
            head += 1
            group = own[user]
            if group >= 0 and not opened[group]:
                opened[group] = True
                rows = members[starts[group] : starts[group + 1]]
                tail = _admit(rows, number, component, queue, tail, ranks, by_rank)
            for k in range(user_starts[user], user_starts[user + 1]):
                group = np.int64(user_groups[k])
                if not opened[group]:
                    opened[group] = True
                    rows = members[starts[group] : starts[group + 1]]
                    tail = _admit(rows, number, component, queue, tail, ranks, by_rank)
        number += 1
    return queue, component


@njit(cache=True, nogil=True)
def kendall_sensitivities(
    order: Integers, user_starts: Integers, user_groups: NDArray[np.int32], sizes: Integers
) -> Integers:
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
    order: Integers, user_starts: Integers, user_groups: NDArray[np.int32], sizes: Integers
) -> Integers:
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
