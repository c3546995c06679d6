"""Permutations inverted, and the rank distances that the tests measure with."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mallows import DISTANCES
from shuffledp.groups.reference_orders import inverse


@given(st.permutations(range(7)))
def test_inverse(values):
    permutation = np.array(values)
    assert (permutation[inverse(permutation)] == np.arange(7)).all()
    assert not inverse(permutation).flags.writeable


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


@pytest.mark.parametrize("num_items", range(1, 7))
def test_every_permutation_by_the_definitions(num_items):
    swaps = fewest_swaps(num_items)
    for pi in permutations(range(num_items)):
        discordant = sum(pi[i] > pi[j] for i, j in combinations(range(num_items), 2))
        assert DISTANCES["kendall"](pi) == discordant
        assert DISTANCES["cayley"](pi) == swaps[pi]
        assert DISTANCES["hamming"](pi) == sum(a != b for a, b in enumerate(pi))
        assert DISTANCES["footrule"](pi) == sum(abs(a - b) for a, b in enumerate(pi))


@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 1000])
def test_the_far_ends_of_each_distance(size):
    backwards, cycle = np.arange(size)[::-1], np.roll(np.arange(size), 1)
    assert DISTANCES["kendall"](backwards) == size * (size - 1) // 2
    assert DISTANCES["footrule"](backwards) == size * size // 2
    assert DISTANCES["cayley"](cycle) == size - 1
    assert DISTANCES["hamming"](cycle) == (size if size > 1 else 0)
