"""Draws are exact: every word leads where it should, and orders are uniform."""

from itertools import permutations

from scipy.special import chdtri

from shuffledp.core.entropy import Entropy
from shuffledp.peers.peer import permuted

FALSE_POSITIVE_RATE = 1e-9


def test_orders_are_uniform():
    entropy = Entropy.from_seed(2)
    counts = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(12_000):
        counts[tuple(permuted(entropy, range(4)))] += 1
    statistic = sum((count - 500) ** 2 / 500 for count in counts.values())
    assert statistic < chdtri(23, FALSE_POSITIVE_RATE)


def test_an_order_leaves_the_items_as_they_were():
    items = [1, 2, 3]
    assert sorted(permuted(Entropy.from_seed(2), items)) == items == [1, 2, 3]
