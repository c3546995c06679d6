"""Draws are exact: every word leads where it should, and orders are uniform."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import chdtri

from shuffledp.core.entropy import Entropy
from shuffledp.deploy.peers.protocol.routes import Draws

FALSE_POSITIVE_RATE = 1e-9


class Words:
    """An `Entropy` whose words are given."""

    def __init__(self, *words):
        self._left = list(words)

    def words(self, count):
        return np.array([self._left.pop(0) for _ in range(count)], dtype=np.uint64)


@pytest.mark.parametrize(
    ("words", "bound", "drawn"),
    [
        ((0,), 3, 0),
        ((5,), 3, 2),
        # 2^64 - 1 is a multiple of 3: that one word is thrown away.
        ((2**64 - 1, 4), 3, 1),
        ((2**64 - 2,), 3, 2),
        ((2**64 - 1,), 2**64, 2**64 - 1),
        ((2**64 - 1,), 1, 0),
    ],
)
def test_a_word_gives_its_remainder_or_is_thrown_away(words, bound, drawn):
    assert Draws(Words(*words)).below(bound) == drawn


@pytest.mark.parametrize(("word", "heads"), [(0, True), (99, True), (100, False), (65535, False)])
def test_a_coin_has_sixteen_bits(word, heads):
    assert Draws(Words(word)).coin(100) is heads


def test_orders_are_uniform():
    draws = Draws(Entropy.from_seed(2))
    counts = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(12_000):
        counts[tuple(draws.permuted(range(4)))] += 1
    statistic = sum((count - 500) ** 2 / 500 for count in counts.values())
    assert statistic < chdtri(23, FALSE_POSITIVE_RATE)


def test_an_order_leaves_the_items_as_they_were():
    items = [1, 2, 3]
    assert sorted(Draws(Entropy.from_seed(2)).permuted(items)) == items == [1, 2, 3]
