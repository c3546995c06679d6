"""Compiled loops over the compressed rows of groups, and of the exact sensitivities.

For these, people are met in the order of their places, so that the members of every group come
sorted without any sorting: a group only has to remember how many of its members have been met, and
where the last one was.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def first_not_ascending(starts: NDArray[np.int64], members: NDArray[np.int32]) -> int:
    """Return the first place of a member that is not above the one before it, or -1."""
    for row in range(starts.size - 1):
        for place in range(starts[row] + 1, starts[row + 1]):
            if members[place] <= members[place - 1]:
                return place
    return -1


@njit(cache=True, nogil=True)
def is_outside(
    starts: NDArray[np.int64], members: NDArray[np.int32], row_of: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each person whether the row chosen for them lacks them."""
    lacks = np.empty(row_of.size, dtype=np.bool_)
    for user in range(row_of.size):
        low, high = starts[row_of[user]], starts[row_of[user] + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if members[middle] <= user:
                low = middle
            else:
                high = middle
        lacks[user] = members[low] != user
    return lacks


@njit(cache=True, nogil=True)
def largest_sizes(
    starts: NDArray[np.int64], members: NDArray[np.int32], largest: NDArray[np.int64]
) -> None:
    """Raise ``largest`` of every person to the size of each group that they are in."""
    for row in range(starts.size - 1):
        size = starts[row + 1] - starts[row]
        for place in range(starts[row], starts[row + 1]):
            largest[members[place]] = max(largest[members[place]], size)


@njit(cache=True, nogil=True)
def sort_rows(starts: NDArray[np.int64], members: NDArray[np.int32]) -> None:
    """Sort the members of each row, in place."""
    for row in range(starts.size - 1):
        members[starts[row] : starts[row + 1]].sort()


@njit(cache=True, nogil=True)
def hash_rows(
    starts: NDArray[np.int64], members: NDArray[np.int32], hashes: NDArray[np.uint64]
) -> None:
    """Hash each row: the sum of its members, each scrambled as by SplitMix64."""
    for row in range(starts.size - 1):
        total = np.uint64(0)
        for place in range(starts[row], starts[row + 1]):
            word = np.uint64(members[place] + 1) * np.uint64(0x9E3779B97F4A7C15)
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            total += word ^ (word >> np.uint64(31))
        hashes[row] = total


@njit(cache=True, nogil=True)
def equal_rows(
    starts: NDArray[np.int64], members: NDArray[np.int32], first: int, second: int
) -> bool:
    """Return whether two rows have the same members."""
    size = starts[first + 1] - starts[first]
    if starts[second + 1] - starts[second] != size:
        return False
    for place in range(size):
        if members[starts[first] + place] != members[starts[second] + place]:
            return False
    return True


@njit(cache=True, nogil=True)
def first_equal_rows(
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    by_hash: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    """Write the first row that equals each row; ``by_hash`` sorts rows by hash, stably.

    A row is only compared with the first of its hash: should two rows share a hash by chance,
    a copy of the second may be kept. It is never taken for the first.
    """
    leader = -1
    for row in by_hash:
        if leader < 0 or hashes[row] != hashes[leader]:
            leader = row
        is_copy = row != leader and equal_rows(starts, members, leader, row)
        first[row] = leader if is_copy else row


@njit(cache=True, nogil=True)
def copy_windows(
    people: NDArray[np.int32],
    first: NDArray[np.int64],
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
) -> None:
    """Fill each row with the people from its first one on."""
    for row in range(starts.size - 1):
        for place in range(starts[row + 1] - starts[row]):
            members[starts[row] + place] = people[first[row] + place]


@njit(cache=True, nogil=True)
def count_people(
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    place_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> None:
    """Add to the size of each row how many people live at each of its places."""
    for pair in range(rows.size):
        sizes[rows[pair]] += place_starts[places[pair] + 1] - place_starts[places[pair]]


@njit(cache=True, nogil=True)
def copy_people(
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    place_starts: NDArray[np.int64],
    people: NDArray[np.int32],
    ends: NDArray[np.int64],
    members: NDArray[np.int32],
) -> None:
    """Append the people of each place to its row; ``ends`` starts as the rows do, and moves on."""
    for pair in range(rows.size):
        row = rows[pair]
        for index in range(place_starts[places[pair]], place_starts[places[pair] + 1]):
            members[ends[row]] = people[index]
            ends[row] += 1


@njit(cache=True, nogil=True)
def spread(
    neighbour_starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    hops: int,
    mark: int,
    marks: NDArray[np.int64],
    queue: NDArray[np.int32],
    num_sources: int,
) -> tuple[int, int]:
    """Visit breadth first what is within some hops of the first entries of ``queue``.

    The sources carry the mark already. Returns how many people are in ``queue`` then, sources
    included, and how many hops the last of them took.
    """
    level_start, reached, level = 0, num_sources, 0
    while level < hops:
        level_end = reached
        for index in range(level_start, level_end):
            person = queue[index]
            for place in range(neighbour_starts[person], neighbour_starts[person + 1]):
                friend = neighbours[place]
                if marks[friend] != mark:
                    marks[friend] = mark
                    queue[reached] = friend
                    reached += 1
        if reached == level_end:
            break
        level_start = level_end
        level += 1
    return reached, level


@njit(cache=True, nogil=True)
def count_reached(
    neighbour_starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    hops: int,
    limit: int,
    sizes: NDArray[np.int64],
) -> int:
    """Write how many people are within some hops of each; give up once that is above ``limit``.

    Returns the total, as far as it was counted.
    """
    marks = np.full(sizes.size, -1, dtype=np.int64)
    queue = np.empty(sizes.size, dtype=np.int32)
    total = 0
    for person in range(sizes.size):
        queue[0] = person
        marks[person] = person
        sizes[person], _ = spread(neighbour_starts, neighbours, hops, person, marks, queue, 1)
        total += sizes[person]
        if total > limit:
            break
    return total


@njit(cache=True, nogil=True)
def copy_reached(
    neighbour_starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    hops: int,
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
) -> None:
    """Fill row i with the people within some hops of person i, ascending."""
    num_users = starts.size - 1
    marks = np.full(num_users, -1, dtype=np.int64)
    queue = np.empty(num_users, dtype=np.int32)
    for person in range(num_users):
        queue[0] = person
        marks[person] = person
        spread(neighbour_starts, neighbours, hops, person, marks, queue, 1)
        row = members[starts[person] : starts[person + 1]]
        row[:] = queue[: row.size]
        row.sort()


@njit(cache=True, nogil=True)
def take_nearest(
    distances: NDArray[np.float64],
    places: NDArray[np.int64],
    place_starts: NDArray[np.int64],
    people: NDArray[np.int32],
    nearest: NDArray[np.int32],
    is_done: NDArray[np.bool_],
) -> None:
    """Fill each row with the nearest people, by distance and then by number.

    Row b of ``places`` has places by ascending distance. Where the last of them is as near as some
    that are needed, further ones may be as near too: the row is not done, unless these are all.
    """
    num_found, size = places.shape[1], nearest.shape[1]
    num_places = place_starts.size - 1
    equally_near = np.empty(people.size, dtype=np.int32)
    for row in range(places.shape[0]):
        filled, first = 0, 0
        is_done[row] = True
        while filled < size:
            count, end = 0, first
            while end < num_found and distances[row, end] == distances[row, first]:
                place = places[row, end]
                for index in range(place_starts[place], place_starts[place + 1]):
                    equally_near[count] = people[index]
                    count += 1
                end += 1
            if end == num_found < num_places:
                is_done[row] = False
                break
            equally_near[:count].sort()
            taken = min(count, size - filled)
            nearest[row, filled : filled + taken] = equally_near[:taken]
            filled += taken
            first = end


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
