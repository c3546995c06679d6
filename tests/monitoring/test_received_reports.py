"""Sums of squared weights times numbers of reports, against the weights themselves."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    level_weighted_sums,
    online_running_counts,
    running_sums,
    smoothed_running_counts,
)
from shuffledp.monitoring.running_errors import ReceivedReports, smoothed_pairs


@pytest.mark.parametrize("periods", [1, 2, 3, 7, 16, 29])
def test_squares_are_those_of_the_weights(periods):
    tree = PeriodTree(periods=periods)
    numbers = Entropy.from_seed(5).generator().integers(0, 50, tree.num_nodes)
    received = ReceivedReports.of(tree, numbers)
    unit = np.eye(tree.num_nodes)
    weighted = level_weighted_sums(tree, unit)
    for through in {1, periods // 2 + 1, periods}:
        for weights, squares in (
            (running_sums(tree, unit, through), received.running_squares(through, method="cover")),
            (online_running_counts(tree, weighted, through), received.running_squares(through)),
            (
                smoothed_running_counts(tree, weighted, through),
                received.running_squares(through, smoothed=True),
            ),
        ):
            np.testing.assert_allclose(squares, weights**2 @ numbers, rtol=1e-12)


def test_pairs_take_the_fullest_node_of_each_level():
    tree = PeriodTree(periods=6)
    numbers = np.array([3, 9, 4, 4, 50, 50, 7, 2, 60, 5])
    pairs = ReceivedReports.of(tree, numbers).running_pairs(4)
    np.testing.assert_allclose(pairs, smoothed_pairs(tree, 4, np.array([9.0, 7.0, 5.0])))


def test_gaps_are_looked_for_in_nodes_of_covers_only():
    tree = PeriodTree(periods=6)
    numbers = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1, 1])  # all of even position are empty
    received = ReceivedReports.of(tree, numbers)
    assert received.first_gap(6) is None
    numbers[tree.index(2, 3)] = 0
    assert received.first_gap(5) is None
    assert received.first_gap(6) == (2, 3)
    numbers[tree.index(1, 5)] = 0
    assert received.first_gap(6) == (1, 5)


def test_the_last_period_is_that_of_the_last_node():
    tree = PeriodTree(periods=6)
    numbers = np.zeros(tree.num_nodes, dtype=np.int64)
    received = ReceivedReports.of(tree, numbers)
    assert received.last_period() == 0
    numbers[tree.index(1, 3)] = 1
    assert received.last_period() == 3
    numbers[tree.index(3, 1)] = 1
    assert received.last_period() == 4
