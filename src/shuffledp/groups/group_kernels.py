"""Compiled loops of Mallows models, crowds on places, rows of groups, and the majority vote.

For the exact sensitivities people are visited in the order of their places, so that the members of
every group come sorted without any sorting: a group only stores the number of its members visited
so far, and the place of the last one.

For the majority vote a neighbourhood a is ``members[starts[a]:starts[a + 1]]``, sorted and
distinct. Coins that break ties come from one uniform word a person by SplitMix64: they belong to
an adversary in a simulation, and protect nobody.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Floats, Integers, Words
from shuffledp.core.compiled import njit
from shuffledp.core.numerics.uniform_kernels import bounded_integer

_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFFFFFF)
_HALF_UNIT = 2.0**-32
# A tree of places: starts and ends of parts, means, mean square distances from them, and boxes.
Parts = tuple[Integers, Integers, Floats, Floats, Floats, Floats]
#: Items decoded at a time: 128 kB of counts, within a second-level cache.
BLOCK_ITEMS = 1 << 15


@njit
def plant_tree(num_items: int, items_per_leaf: int) -> NDArray[np.int32]:
    """Return a binary tree of counts over the leaves 0, 1, ... of ``items_per_leaf`` items each.

    Entry k counts the items under the left child of node k; the root is 1, the children of k are
    2 k and 2 k + 1. The number of leaves equals the number of entries, a power of two.
    """
    num_leaves = 1
    while num_leaves * items_per_leaf < num_items:
        num_leaves *= 2
    below = np.zeros(num_leaves, dtype=np.int32)
    nodes, span = 1, num_leaves * items_per_leaf
    while nodes < num_leaves:
        for node in range(nodes):
            first = node * span
            below[nodes + node] = max(0, min(span // 2, num_items - first))
        nodes *= 2
        span //= 2
    return below


@njit
def take_from_tree(below: NDArray[np.int32], rank: int) -> tuple[int, int]:
    """Take the item of a rank from the tree; return its leaf, and its rank in the leaf."""
    node = 1
    while node < below.size:
        count = int(below[node])
        goes_right = int(rank >= count)
        below[node] -= 1 - goes_right
        rank -= count * goes_right
        node = 2 * node + goes_right
    return node - below.size, rank


@njit
def decode(code: Integers, out: Integers) -> None:
    """Write the permutation of a Lehmer code: out[i] is the code[i]-th smallest item left.

    First each place finds the block of 2^15 items with its item; then the places of one block
    after the other find the item. So each of the two searches stays in the cache, whereas one
    tree over millions of items would miss it at every step.
    """
    num_items = code.size
    blocks = plant_tree(num_items, BLOCK_ITEMS)
    filled = np.zeros(blocks.size, dtype=np.int64)
    # A block of m items is chosen by m places, so its start is known beforehand.
    places = np.empty(num_items, dtype=np.uint32)
    ranks = np.empty(num_items, dtype=np.uint16)
    for place in range(num_items):
        block, rank = take_from_tree(blocks, code[place])
        slot = block * BLOCK_ITEMS + filled[block]
        filled[block] += 1
        places[slot] = place
        ranks[slot] = rank
    for first in range(0, num_items, BLOCK_ITEMS):
        size = min(BLOCK_ITEMS, num_items - first)
        items = plant_tree(size, 1)
        for slot in range(first, first + size):
            out[places[slot]] = first + take_from_tree(items, int(ranks[slot]))[0]


@njit
def draw_swaps(
    pi: Integers, theta: float, margin: float, words: Words, start: int
) -> tuple[int, int, bool]:
    """Swap each place from ``start`` on with an earlier one, or leave it, as far as words go.

    The lower half of a word gives the earlier place, the upper half the first 32 bits of the U
    compared with j / (j + e^theta). A word is refused before its upper half is used, so that the
    refusal does not depend on it. Returns the place to continue from, the number of words used, and
    whether the last word used is undecided.
    """
    used = 0
    # From theta = 700 on, only the 32 bits 0 are undecided, and these are always settled exactly.
    weight = math.exp(min(theta, 700.0))
    while start < pi.size and used < words.size:
        word = words[used]
        used += 1
        other = bounded_integer(np.uint32(word & _LOWER_HALF), np.uint64(start))
        if other < 0:
            continue
        probability = start / (start + weight)
        size = float(word >> _HALF)
        if (size + 1.0) * _HALF_UNIT <= probability * (1.0 - margin):
            held = pi[other]
            pi[other] = pi[start]
            pi[start] = held
        elif size * _HALF_UNIT < probability * (1.0 + margin):
            return start, used, True
        start += 1
    return start, used, False


# Parts no nearer than x / theta are taken as a whole if that costs less than this share, times
# (1 + x)^2, of their contribution: far parts count for little.
_TOLERANCE = 0.003
# Parts all of whose people contribute less than e^-14 each are left out.
_FARTHEST = 14.0
# Relative error of exp, sqrt and their arguments, with room; it is subtracted.
_ROUNDING = 2.0**-46


@njit
def crowds(cells: Floats, parts: Parts, theta: float, slack: float) -> Floats:
    """Return lower bounds of the sums of e^(-theta d) over everybody; cells in the tree's order."""
    starts, ends, means, spreads, lows, highs = parts
    sums = np.empty(cells.shape[0])
    stack = np.empty(128, dtype=np.int64)
    for i in range(cells.shape[0]):
        if i > 0 and _distance(cells[i], cells[i - 1]) == 0.0:
            sums[i] = sums[i - 1]
            continue
        total = 0.0
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            part = stack[top]
            nearest = theta * _distance_to_box(cells[i], lows[part], highs[part])
            if nearest > _FARTHEST:
                continue
            distance = _distance(cells[i], means[part])
            reach = math.sqrt(distance * distance + spreads[part])
            if theta * (reach - distance) <= _TOLERANCE * (1.0 + nearest) ** 2:
                total += (ends[part] - starts[part]) * _weight(theta, reach, slack)
            elif 2 * part + 2 < starts.size:
                stack[top] = 2 * part + 1
                stack[top + 1] = 2 * part + 2
                top += 2
            else:
                for j in range(starts[part], ends[part]):
                    total += _weight(theta, _distance(cells[i], cells[j]), slack)
        sums[i] = total
    return sums


@njit
def _distance(first: Floats, second: Floats) -> float:
    """Return the Euclidean distance of two points."""
    square = 0.0
    for axis in range(first.size):
        square += (first[axis] - second[axis]) ** 2
    return math.sqrt(square)


@njit
def _distance_to_box(point: Floats, low: Floats, high: Floats) -> float:
    """Return the distance from a point to the nearest point of a box."""
    square = 0.0
    for axis in range(point.size):
        gap = max(low[axis] - point[axis], point[axis] - high[axis], 0.0)
        square += gap * gap
    return math.sqrt(square)


@njit
def _weight(theta: float, distance: float, slack: float) -> float:
    """Return e^(-theta d), rounded down."""
    exponent = theta * (distance + slack)
    return math.exp(-exponent) * (1.0 - _ROUNDING * (1.0 + exponent))


# Starts of rows, and their concatenated columns.
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
) -> Integers:
    """Visit people breadth first: each opens all its groups, and a group admits its members.

    ``roots`` lists everybody in the order in which components may start; ``own`` is the group
    that a person opens first, or -1; the members of a group come in the order of ``by_rank``.
    Returns the people in the order of the visit: components fill places in a row.
    """
    ranks = np.empty_like(by_rank)
    ranks[by_rank] = np.arange(by_rank.size)
    (user_starts, user_groups), (starts, members) = of_users, of_groups
    queue = np.empty(roots.size, dtype=np.int64)
    found = np.zeros(roots.size, dtype=np.bool_)
    opened = np.zeros(starts.size, dtype=np.bool_)
    opened[-1] = True  # stands for the group -1
    head = tail = 0
    for root in roots:
        if found[root]:
            continue
        queue[tail] = root
        found[root] = True
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
                    if not found[other]:
                        found[other] = True
                        queue[tail] = ranks[other]
                        tail += 1
                queue[first:tail] = by_rank[np.sort(queue[first:tail])]
    return queue


@njit
def footrule_sensitivities(order: Integers, of_users: Compressed, sizes: Integers) -> Integers:
    """Return twice the sum, over gaps in a group, of length times min(members on either side).

    This equals the sum of abs(w_i - w_{g+1-i}): each pair of members that change places passes
    every gap between its two places.
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


# Values of people, and a mask of columns that are categories.
Traits = tuple[Floats, Booleans]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


@njit
def mixed(word: np.uint64, index: int) -> np.uint64:
    """Return number ``index`` of the SplitMix64 stream that starts at ``word``."""
    state = np.uint64(word) + _STEP * np.uint64(index + 1)
    state = (state ^ (state >> _SHIFTS[0])) * _FIRST
    state = (state ^ (state >> _SHIFTS[1])) * _SECOND
    return np.uint64(state ^ (state >> _SHIFTS[2]))


@njit
def dissimilarity(traits: Traits, one: int, other: int) -> float:
    """Return the sum over columns of the difference, or of one for each unequal category."""
    values, is_category = traits
    total = 0.0
    for column in range(values.shape[1]):
        difference = abs(values[one, column] - values[other, column])
        if is_category[column] and difference > 0.0:
            difference = 1.0
        total += difference
    return total


@njit
def choose_most_similar(
    rows: Compressed, own: Integers, traits: Traits, words: Words, size: int
) -> NDArray[np.int32]:
    """Return the most similar members of each neighbourhood after its person, who comes first.

    A list sorted by dissimilarity, then by a random key, takes in each better member: of m
    members in random order, about K ln(m / K) are ever put into a list of K.
    """
    starts, members = rows
    chosen = np.full((own.size, size), -1, dtype=np.int32)
    distances = np.empty(size, dtype=np.float64)
    keys = np.empty(size, dtype=np.uint64)
    for person in range(own.size):
        chosen[person, 0] = person
        filled = 1
        for other in members[starts[own[person]] : starts[own[person] + 1]]:
            if other == person:
                continue
            distance = dissimilarity(traits, person, other)
            if filled == size and (size == 1 or distance > distances[size - 1]):
                continue
            key = mixed(words[person], other)
            if filled < size:
                place = filled
                filled += 1
            elif distance == distances[size - 1] and key >= keys[size - 1]:
                continue
            else:
                place = size - 1
            while place > 1 and (
                distances[place - 1] > distance
                or (distances[place - 1] == distance and keys[place - 1] > key)
            ):
                distances[place] = distances[place - 1]
                keys[place] = keys[place - 1]
                chosen[person, place] = chosen[person, place - 1]
                place -= 1
            distances[place] = distance
            keys[place] = key
            chosen[person, place] = other
    return chosen


@njit
def vote(
    released: NDArray[np.int32], chosen: NDArray[np.int32], domain_size: int, tie_word: np.uint64
) -> NDArray[np.int32]:
    """Return the most frequent released value among each person's neighbours; -1 if there is none.

    Values that are equally frequent are equally likely. Each list is walked twice: to count, and
    to look for the winners, which also sets the counts back to zero.
    """
    guesses = np.empty(chosen.shape[0], dtype=np.int32)
    counts = np.zeros(domain_size, dtype=np.int32)
    for person in range(chosen.shape[0]):
        most = 0
        for slot in range(chosen.shape[1]):
            neighbour = chosen[person, slot]
            if neighbour < 0:
                break
            value = released[neighbour]
            counts[value] += 1
            most = max(most, counts[value])
        winners, guess = 0, -1
        word = mixed(tie_word, person)
        for slot in range(chosen.shape[1]):
            neighbour = chosen[person, slot]
            if neighbour < 0:
                break
            value = released[neighbour]
            if counts[value] == most:
                winners += 1
                # An integer in [0, winners), uniform up to winners / 2^32.
                coin = ((mixed(word, winners) >> _HALF) * np.uint64(winners)) >> _HALF
                if winners == 1 or coin == 0:
                    guess = value
            counts[value] = 0
        guesses[person] = guess
    return guesses
