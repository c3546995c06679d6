"""Compiled loops over the compressed rows of graphs; all take time O(n + m)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.uniform_kernels import bounded_integer

#: What `first_fault` finds.
NO_FAULT, OUTSIDE, SELF_LOOP, NOT_ASCENDING = range(4)


@njit(cache=True, nogil=True)
def first_fault(starts: NDArray[np.int64], neighbours: NDArray[np.int32]) -> tuple[int, int, int]:
    """Return what is wrong with a row by itself, with the user and the neighbour, or `NO_FAULT`."""
    num_users = starts.size - 1
    for user in range(num_users):
        for place in range(starts[user], starts[user + 1]):
            other = int(neighbours[place])
            if other < 0 or other >= num_users:
                return OUTSIDE, user, other
            if other == user:
                return SELF_LOOP, user, other
            if place > starts[user] and other <= neighbours[place - 1]:
                return NOT_ASCENDING, user, other
    return NO_FAULT, -1, -1


@njit(cache=True, nogil=True)
def first_one_way(starts: NDArray[np.int64], neighbours: NDArray[np.int32]) -> tuple[int, int]:
    """Return a user and a neighbour in whose row the user is not, or (-1, -1).

    Rows must ascend. If users are gone through in order, those who have a user as a neighbour
    come up in the order of that user's row. So the entries below each user are matched one after
    the other, without searching: when a user's turn comes, all of them must be.
    """
    places = starts[:-1].copy()  # of the next entry to be matched in each row
    for user in range(starts.size - 1):
        first, end = places[user], starts[user + 1]
        if first > end:  # the last match was with the row of somebody else
            return int(neighbours[first - 1]), user
        if first < end and neighbours[first] < user:
            return user, int(neighbours[first])
        for place in range(first, end):
            other = int(neighbours[place])
            match = places[other]
            if match == neighbours.size or neighbours[match] != user:
                return user, other
            places[other] = match + 1
    return -1, -1


@njit(cache=True, nogil=True)
def count_ends(edges: NDArray[np.int64], starts: NDArray[np.int64]) -> int:
    """Turn ``starts``, n + 1 zeros, into where rows start; return the number of self-loops.

    Self-loops are left out; edges that are given twice count twice.
    """
    loops = 0
    for edge in range(edges.shape[0]):
        first, second = edges[edge, 0], edges[edge, 1]
        if first == second:
            loops += 1
        else:
            starts[first + 1] += 1
            starts[second + 1] += 1
    for user in range(starts.size - 1):
        starts[user + 1] += starts[user]
    return loops


@njit(cache=True, nogil=True)
def scatter_ends(
    edges: NDArray[np.int64], places: NDArray[np.int64], neighbours: NDArray[np.int32]
) -> None:
    """Write each end of each edge, self-loops apart, to the row of the other end.

    ``places``, where rows start, is moved on.
    """
    for edge in range(edges.shape[0]):
        first, second = edges[edge, 0], edges[edge, 1]
        if first != second:
            neighbours[places[first]] = second
            places[first] += 1
            neighbours[places[second]] = first
            places[second] += 1


@njit(cache=True, nogil=True)
def transpose(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    places: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the transpose of rows: of an undirected graph, the same rows in ascending order.

    ``places``, where the rows of the transpose start, is moved on. Users are gone through in
    order, so that each row is written in order: a counting sort of all rows at once.
    """
    for user in range(starts.size - 1):
        for place in range(starts[user], starts[user + 1]):
            other = neighbours[place]
            out[places[other]] = user
            places[other] += 1


@njit(cache=True, nogil=True)
def drop_repeats(starts: NDArray[np.int64], neighbours: NDArray[np.int32]) -> int:
    """Keep the first of equal neighbours in each ascending row; return how many entries are left.

    Both arrays are overwritten: rows close up.
    """
    kept = 0
    begin = starts[0]
    for user in range(starts.size - 1):
        end = starts[user + 1]
        row = kept
        for place in range(begin, end):
            if kept == row or neighbours[kept - 1] != neighbours[place]:
                neighbours[kept] = neighbours[place]
                kept += 1
        starts[user + 1] = kept
        begin = end
    return kept


@njit(cache=True, nogil=True)
def copy_induced(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    users: NDArray[np.int64],
    number_of: NDArray[np.int32],
    out_starts: NDArray[np.int64],
    out: NDArray[np.int32],
) -> int:
    """Write the rows of ``users``, with neighbours renumbered and those of number -1 left out.

    Returns the number of entries written. Rows keep their order, so they may not ascend.
    """
    written = 0
    for row in range(users.size):
        out_starts[row] = written
        for place in range(starts[users[row]], starts[users[row] + 1]):
            number = number_of[neighbours[place]]
            if number >= 0:
                out[written] = number
                written += 1
    out_starts[users.size] = written
    return written


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


#: Instead of a place to go on from: some half-edge found no partner for too long.
STUCK = -1


@njit(cache=True, nogil=True)
def write_complement(
    starts: NDArray[np.int64], neighbours: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    """Write, for each user in turn, all others that are no neighbours, in ascending order."""
    num_users = starts.size - 1
    written = 0
    for user in range(num_users):
        place, end = starts[user], starts[user + 1]
        for other in range(num_users):
            if place < end and neighbours[place] == other:
                place += 1
            elif other != user:
                out[written] = other
                written += 1


@njit(cache=True, nogil=True)
def pair_up(order: NDArray[np.int32], partner: NDArray[np.int32]) -> None:
    """Make partners of the first and the second half-edge of ``order``, and so on."""
    for place in range(0, order.size, 2):
        first, second = order[place], order[place + 1]
        partner[first] = second
        partner[second] = first


@njit(cache=True, nogil=True)
def bad_half_edges(partner: NDArray[np.int32], degree: int) -> NDArray[np.int32]:
    """Return the half-edges of loops, and all but the first to the same user, ascending.

    Half-edge h belongs to user ``h // degree``.
    """
    found = np.empty(partner.size, dtype=np.int32)
    num_found = 0
    last_seen_by = np.full(partner.size // degree, -1, dtype=np.int32)
    for half_edge in range(partner.size):
        user = half_edge // degree
        other = partner[half_edge] // degree
        if other == user or last_seen_by[other] == user:
            found[num_found] = half_edge
            num_found += 1
        last_seen_by[other] = user
    return found[:num_found].copy()


@njit(cache=True, nogil=True)
def _are_joined(partner: NDArray[np.int32], degree: int, user: int, other: int, times: int) -> bool:
    """Return whether at least ``times`` half-edges of ``user`` have a partner of ``other``."""
    first, end = other * degree, (other + 1) * degree
    count = 0
    for half_edge in range(user * degree, (user + 1) * degree):
        if first <= partner[half_edge] < end:
            count += 1
            if count == times:
                return True
    return False


@njit(cache=True, nogil=True)
def _is_good_switch(partner: NDArray[np.int32], degree: int, half_edge: int, chosen: int) -> bool:
    """Return whether (half_edge, chosen), with both partners made partners, are good edges."""
    first, second = half_edge // degree, partner[half_edge] // degree
    third, fourth = chosen // degree, partner[chosen] // degree
    if first == third or second == fourth:
        return False  # a loop
    if (first == second and third == fourth) or (first == fourth and second == third):
        return False  # the two new edges would be the same
    return not (
        _are_joined(partner, degree, first, third, 1)
        or _are_joined(partner, degree, second, fourth, 1)
    )


@njit(cache=True, nogil=True)
def repair(
    partner: NDArray[np.int32],
    degree: int,
    bad: NDArray[np.int32],
    progress: NDArray[np.int64],
    half_words: NDArray[np.uint32],
    most_trials: int,
) -> None:
    """Switch each bad edge with a uniformly random one, as far as the draws go, in place.

    ``progress`` holds how many entries of ``bad`` are done, or `STUCK` after ``most_trials`` in
    vain for one edge, and how many were tried in vain for the next; going on with fresh draws is
    exact.
    """
    used = 0
    while progress[0] < bad.size and used < half_words.size:
        half_edge = bad[progress[0]]
        user, other = half_edge // degree, partner[half_edge] // degree
        # An earlier switch may have repaired this edge too.
        if user != other and not _are_joined(partner, degree, user, other, 2):
            progress[0] += 1
            progress[1] = 0
            continue
        chosen = bounded_integer(half_words[used], np.uint64(partner.size))
        used += 1
        if chosen < 0:
            continue
        if _is_good_switch(partner, degree, half_edge, int(chosen)):
            left, right = partner[half_edge], partner[chosen]
            partner[half_edge], partner[chosen] = chosen, half_edge
            partner[left], partner[right] = right, left
            progress[0] += 1
            progress[1] = 0
            continue
        progress[1] += 1
        if progress[1] >= most_trials:
            progress[0] = STUCK
            return
