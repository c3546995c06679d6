"""Compiled loops over the compressed rows of groups, and of the exact sensitivities.

For these, people are met in the order of their places, so that the members of every group come
sorted without any sorting: a group only has to remember how many of its members have been met, and
where the last one was.
"""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.compiled import njit

# Where rows start, and their columns one after the other.
Compressed = tuple[Integers, NDArray[np.int32]]


@njit
def sort_rows(starts: Integers, members: NDArray[np.int32]) -> None:
    """Sort the members of each row, in place."""
    for row in range(starts.size - 1):
        members[starts[row] : starts[row + 1]].sort()


@njit
def row_sums(rows: Compressed, values: Floats) -> Floats:
    """Return the sum of ``values[columns]`` over each row."""
    starts, columns = rows
    sums = np.empty(starts.size - 1)
    for i in range(sums.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[columns[k]]
        sums[i] = total
    return sums


@njit
def traverse(
    roots: Integers, own: Integers, of_users: Compressed, of_groups: Compressed, by_rank: Integers
) -> tuple[Integers, Integers]:
    """Visit people breadth first: each opens all its groups, and a group admits its members.

    ``roots`` lists everybody in the order in which components may start; ``own`` is the group
    that a person opens first, or -1; the members of a group come in the order of ``by_rank``.
    Returns the people in the order of the visit, and the number of the component of each.
    """
    ranks = np.empty_like(by_rank)
    ranks[by_rank] = np.arange(by_rank.size)
    (user_starts, user_groups), (starts, members) = of_users, of_groups
    queue = np.empty(roots.size, dtype=np.int64)
    component = np.full(roots.size, -1, dtype=np.int64)
    opened = np.zeros(starts.size, dtype=np.bool_)
    opened[-1] = True  # stands for the group -1
    head = tail = number = 0
    for root in roots:
        if component[root] >= 0:
            continue
        queue[tail] = root
        component[root] = number
        tail += 1
        while head < tail:
            user = queue[head]
            head += 1
            for k in range(user_starts[user] - 1, user_starts[user + 1]):
                group = own[user] if k < user_starts[user] else np.int64(user_groups[k])
                if opened[group]:
                    continue
                opened[group] = True
                first = tail
                for other in members[starts[group] : starts[group + 1]]:
                    if component[other] < 0:
                        component[other] = number
                        queue[tail] = ranks[other]
                        tail += 1
                queue[first:tail] = by_rank[np.sort(queue[first:tail])]
        number += 1
    return queue, component


@njit
def footrule_sensitivities(order: Integers, of_users: Compressed, sizes: Integers) -> Integers:
    """Return twice the sum, over neighbours in a group, of distance times min(members either side).

    So much is the sum of abs(w_i - w_{g+1-i}): each pair of members that change places passes over
    every gap between its two.
    """
    user_starts, user_groups = of_users
    met = np.zeros(sizes.size, dtype=np.int64)
    last = np.zeros(sizes.size, dtype=np.int64)
    totals = np.zeros(sizes.size, dtype=np.int64)
    for place in range(order.size):
        user = order[place]
        for k in range(user_starts[user], user_starts[user + 1]):
            group = user_groups[k]
            below = met[group]
            totals[group] += 2 * (place - last[group]) * min(below, sizes[group] - below)
            met[group] = below + 1
            last[group] = place
    return totals
