"""Compiled loops over who belongs to which group: turning the rows round, sums, traversal."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def turn_round(
    starts: NDArray[np.int64], members: NDArray[np.int32], num_users: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
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
def row_sums(
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the sum of ``values[columns]`` over each of some compressed rows."""
    sums = np.empty(rows.size)
    for i in range(rows.size):
        total = 0.0
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            total += values[columns[k]]
        sums[i] = total
    return sums


@njit(cache=True, nogil=True)
def _admit(
    newcomers: NDArray[np.int32],
    number: int,
    component: NDArray[np.int64],
    queue: NDArray[np.int64],
    tail: int,
    ranks: NDArray[np.int64],
    by_rank: NDArray[np.int64],
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
    roots: NDArray[np.int64],
    own: NDArray[np.int64],
    user_starts: NDArray[np.int64],
    user_groups: NDArray[np.int32],
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    ranks: NDArray[np.int64],
    by_rank: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
