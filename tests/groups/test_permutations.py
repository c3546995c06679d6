"""Permutations checked and inverted."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.permutations import (
    cayley_distance,
    footrule_distance,
    hamming_distance,
    inverse,
    kendall_distance,
    require_permutation,
)


@given(st.permutations(range(7)))
def test_inverse(values):
    permutation = require_permutation("order", np.array(values))
    assert (permutation[inverse(permutation)] == np.arange(7)).all()
    assert not permutation.flags.writeable
    assert not inverse(permutation).flags.writeable


def test_any_type_of_integers_in_any_layout():
    strided = np.array([[2, 9], [0, 9], [1, 9]], dtype=np.uint8)[:, 0]
    found = require_permutation("order", strided, 3)
    assert found.dtype == np.int64
    assert found.flags.c_contiguous
    assert found.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 2], "order has the entry 2, which is not in [0, 2)"),
        ([0, 0], "order misses 1"),
        ([True, False], "dtype bool"),
        ([0.0, 1.0], "dtype float64"),
        ([], "non-empty"),
        ([[0, 1]], "shape (1, 2)"),
        ([0, 1, 2], "3 entries for 2 people"),
    ],
)
def test_what_is_no_permutation_is_refused(values, message):
    with pytest.raises(ParameterError) as caught:
        require_permutation("order", np.array(values), 2)
    assert message in str(caught.value)


DISTANCES = (kendall_distance, hamming_distance, cayley_distance, footrule_distance)


def discordant_pairs(first, second):
    pairs = combinations(range(len(first)), 2)
    return sum((first[i] < first[j]) != (second[i] < second[j]) for i, j in pairs)


def fewest_swaps(num_items):
    """Return the distance of each permutation from the identity, by breadth-first search."""
    start = tuple(range(num_items))
    steps, frontier = {start: 0}, [start]
    for pi in frontier:
        for i, j in combinations(range(num_items), 2):
            other = list(pi)
            other[i], other[j] = pi[j], pi[i]
            if tuple(other) not in steps:
                steps[tuple(other)] = steps[pi] + 1
                frontier.append(tuple(other))
    return steps


@pytest.mark.parametrize("num_items", range(1, 5))
def test_every_pair_by_the_definitions(num_items):
    swaps = fewest_swaps(num_items)
    for first in permutations(range(num_items)):
        for second in permutations(range(num_items)):
            assert kendall_distance(first, second) == discordant_pairs(first, second)
            moves = [abs(a - b) for a, b in zip(first, second, strict=True)]
            assert footrule_distance(first, second) == sum(moves)
            assert hamming_distance(first, second) == sum(move > 0 for move in moves)
            relative = tuple(first[second.index(item)] for item in range(num_items))
            assert cayley_distance(first, second) == swaps[relative]


def test_every_permutation_of_six_by_the_definitions():
    identity, swaps = range(6), fewest_swaps(6)
    for pi in permutations(identity):
        assert kendall_distance(pi) == discordant_pairs(pi, identity)
        assert cayley_distance(pi) == swaps[pi]
        assert hamming_distance(pi) == sum(a != b for a, b in enumerate(pi))
        assert footrule_distance(pi) == sum(abs(a - b) for a, b in enumerate(pi))


@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 1000])
def test_the_far_ends_of_each_distance(size):
    backwards, cycle = np.arange(size)[::-1], np.roll(np.arange(size), 1)
    assert kendall_distance(backwards) == size * (size - 1) // 2
    assert footrule_distance(backwards) == size * size // 2
    assert cayley_distance(cycle) == size - 1
    assert hamming_distance(cycle) == (size if size > 1 else 0)


@given(
    permutations=st.integers(1, 40).flatmap(lambda n: st.tuples(*[st.permutations(range(n))] * 3))
)
def test_all_are_right_invariant_metrics(permutations):
    first, second, third = (np.array(pi) for pi in permutations)
    for distance in DISTANCES:
        assert distance(first, first) == 0
        assert distance(first, second) == distance(second, first)
        assert distance(first, second) == distance(first[third], second[third])
        assert distance(first, third) <= distance(first, second) + distance(second, third)
    # Diaconis and Graham, 1977.
    inversions, swaps = kendall_distance(first), cayley_distance(first)
    assert inversions + swaps <= footrule_distance(first) <= 2 * inversions


def test_large_permutations():
    pi = Entropy.from_seed(1).generator().permutation(100_000)
    inverse = np.argsort(pi)
    for distance in DISTANCES:
        assert distance(pi) == distance(inverse)


def test_arguments_are_left_alone():
    pi = np.array([2, 1, 0])
    pi.flags.writeable = False
    for distance in DISTANCES:
        distance(pi, pi[::-1])
    assert pi.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, 1]], "flat, non-empty"),
        (3, "flat, non-empty"),
        ([], "flat, non-empty"),
        ([0.0, 1.0], "array of integers"),
        (["a", "b"], "array of integers"),
        ([1, 2], "the entry 2"),
        ([-1, 0], "the entry -1"),
        (np.array([0, 2**64 - 1], dtype=np.uint64), "the entry 1844"),
        ([0, 0, 2], "misses 1 and repeats another"),
    ],
)
def test_what_is_no_permutation_is_refused_of_rank_distances(values, message):
    for distance in DISTANCES:
        with pytest.raises(ParameterError, match=message):
            distance(values)


def test_different_sizes_are_refused():
    with pytest.raises(ParameterError, match="first has 2 places and second 3"):
        kendall_distance([0, 1], [0, 1, 2])


def test_unsigned_permutations():
    assert kendall_distance(np.array([1, 0], dtype=np.uint64)) == 1
