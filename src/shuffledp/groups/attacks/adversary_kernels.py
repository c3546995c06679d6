"""Compiled loops of the majority vote: who is most similar, and what the vote is.

A neighbourhood a is ``members[starts[a]:starts[a + 1]]``, sorted and distinct. Coins that break
ties come from one uniform word a person by SplitMix64: they play an adversary in a simulation, and
protect nobody.
"""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Floats, Integers, Words
from shuffledp.core.compiled import njit

# Where rows start and their members; values of people and which columns are categories.
Compressed = tuple[Integers, NDArray[np.int32]]
Traits = tuple[Floats, Booleans]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_HALF = np.uint64(32)


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
    """Return the most similar members of each neighbourhood behind its person, who comes first.

    A list sorted by dissimilarity, then by a random key, takes in each better member: of m
    members in an order that says nothing, about K ln(m / K) are ever put into a list of K.
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
