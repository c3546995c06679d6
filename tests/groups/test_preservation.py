import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from oracles.preservation_published import (
    permutations_not_preserving,
    published_preservation,
    required_members,
    restricted_arrangements,
)
from shuffledp.core.errors import ParameterError
from shuffledp.groups.shuffling import _DRAWS, preserved_share


def test_shares_are_read_as_decimals():
    assert [required_members(5, eta) for eta in (0, 0.2, 0.4, 0.6, 0.8, 1)] == list(range(6))
    assert required_members(10, 0.30000000000000004) == 4


def test_shares_given_back_require_no_more():
    for size in range(1, 60):
        for kept in range(size + 1):
            pi = np.arange(2 * size)
            pi[kept:size], pi[size : 2 * size - kept] = (
                pi[size : 2 * size - kept],
                pi[kept:size].copy(),
            )
            eta = preserved_share([pi] * 5, np.arange(size))
            assert required_members(size, eta) == kept
            assert eta == pytest.approx(kept / size, abs=1e-15)


def test_the_least_share_of_59_draws_is_a_limit_at_95_percent():
    """What stays in fewer than 95 % of shuffles stays in all draws in one case of twenty."""
    arrangements = [np.array(each) for each in ([2, 3, 0, 1], [0, 2, 1, 3], [0, 1, 2, 3])]
    for drawn in itertools.product(range(3), repeat=3):
        found = preserved_share((arrangements[each] for each in drawn), [0, 1])
        assert found == min(drawn) / 2
    assert 0.95**_DRAWS <= 0.05 < 0.95 ** (_DRAWS - 1)


@pytest.mark.parametrize("barred", range(5))
@pytest.mark.parametrize("free", range(3))
def test_arrangements_are_counted(barred, free):
    found = sum(
        all(pi[i] != i for i in range(barred))
        for pi in itertools.permutations(range(barred + free))
    )
    assert restricted_arrangements(barred, free) == found


@pytest.mark.parametrize("n", range(1, 7))
def test_every_permutation_is_counted_at_its_distance(n):
    for size in range(1, n + 1):
        counts = {k: [0] * (n + 1) for k in range(size + 1)}
        for pi in itertools.permutations(range(n)):
            leaving = sum(pi[j] >= size for j in range(size))
            displaced = sum(pi[j] != j for j in range(n))
            for k in range(leaving):
                counts[k][displaced] += 1
        for k, expected in counts.items():
            assert permutations_not_preserving(n, size, k) == expected


def test_the_statement_as_printed_is_wrong():
    # With the extra binomial(i + j, j) three items would have 4 permutations instead of 2 at h = 3.
    size, n, k, h = 2, 3, 0, 3
    f = restricted_arrangements
    printed = sum(
        math.comb(size, j)
        * math.comb(n - size, j)
        * math.comb(size - j, i)
        * math.comb(i + j, j)
        * f(i, j)
        * math.comb(n - size - j, h - 2 * j - i)
        * f(h - 2 * j - i, j)
        for j in range(k + 1, min(size, h // 2) + 1)
        for i in range(min(size - j, h - 2 * j) + 1)
    )
    assert printed == 4
    assert permutations_not_preserving(n, size, k)[h] == 2


@pytest.mark.parametrize("decay", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_probabilities_by_full_enumeration(decay):
    n, size = 5, 3
    for eta in (0.0, 1 / 3, 0.5, 0.7, 1.0):
        lost = total = Fraction(0)
        for pi in itertools.permutations(range(n)):
            weight = decay ** sum(pi[j] != j for j in range(n))
            total += weight
            if sum(pi[j] < size for j in range(size)) < eta * size:
                lost += weight
        assert published_preservation(n, decay, size, eta=eta) == lost / total


def test_bad_arguments_are_named_of_preservation_published():
    for name, arguments in (
        ("num_items", (0, 1, 0)),
        ("num_items", (201, 1, 0)),
        ("subset_size", (3, 0, 0)),
        ("subset_size", (3, 4, 0)),
        ("most_leaving", (3, 2, -1)),
    ):
        with pytest.raises(ParameterError, match=name):
            permutations_not_preserving(*arguments)
    for decay in (Fraction(-1), Fraction(3, 2)):
        with pytest.raises(ParameterError, match="decay"):
            published_preservation(3, decay, 2, eta=0.5)
