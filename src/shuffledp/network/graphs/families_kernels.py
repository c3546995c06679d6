"""Compiled loops that make graphs: complements, and pairings without loops and double edges."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.core.numerics.uniform_kernels import bounded_integer

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
    """Switch each bad edge with a uniformly random one, as far as the draws go.

    Parameters
    ----------
    partner : ndarray of int32
        Changed in place.
    degree : int
        Half-edges a user.
    bad : ndarray of int32
        As `bad_half_edges` returns it.
    progress : ndarray of int64, shape (2,)
        How many entries of ``bad`` are done, or `STUCK`; and how many switches have been tried in
        vain for the next. Changed in place; going on with fresh draws is exact.
    half_words : ndarray of uint32
        Uniform and independent.
    most_trials : int
        After as many trials in vain for one edge, stuck.
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
