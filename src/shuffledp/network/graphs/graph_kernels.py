"""Compiled loops over the compressed rows of graphs; all take time O(n + m)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
