"""The weights of smoothed counts in closed form, against the estimator itself."""

import numpy as np
import pytest

from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    level_weighted_sums,
    smoothed_running_counts,
)
from shuffledp.monitoring.running_errors import prefix_walk, trees_of


def weights_by_walking(tree):
    """Return the weight of each node in the smoothed count at each t, for 2^m periods."""
    weights = np.zeros((tree.periods, tree.num_nodes))
    for step in prefix_walk(tree.num_levels - 1):
        for t in range(tree.periods):
            weights[t, tree.index(step.height + 1, step.place[t] + 1)] = step.weight[t]
            if not step.height:
                continue
            for level in range(1, step.height + 1):
                below = 1 << (step.height - level)
                first = tree.index(level, below * step.sibling[t] + 1)
                weights[t, first : first + below] = step.coefficient[t] * tree.length(level)
    return weights


@pytest.mark.parametrize("height", range(7))
def test_the_walk_gives_every_weight(height):
    tree = PeriodTree(periods=1 << height)
    weighted = level_weighted_sums(tree, np.eye(tree.num_nodes))
    expected = smoothed_running_counts(tree, weighted, tree.periods)
    np.testing.assert_allclose(weights_by_walking(tree), expected, atol=1e-12)


@pytest.mark.parametrize("periods", [*range(1, 41), 63, 64, 100])
def test_weights_rise_up_to_the_path_and_rise_from_below_zero_behind_it(periods):
    tree = PeriodTree(periods=periods)
    weighted = level_weighted_sums(tree, np.eye(tree.num_nodes))
    smoothed = smoothed_running_counts(tree, weighted, periods)
    for level in range(1, tree.num_levels + 1):
        first = tree.offset(level)
        rows = smoothed[:, first : first + tree.nodes_at(level)]
        for t in range(1, periods + 1):
            path = (t - 1) >> (level - 1)
            left, right = rows[t - 1, :path], rows[t - 1, path + 1 :]
            assert (left >= -1e-12).all()
            assert (right <= 1e-12).all()
            assert (np.diff(left) >= -1e-12).all()
            assert (np.diff(right) >= -1e-12).all()


def test_trees_partition_the_periods():
    tree = PeriodTree(periods=40)
    for through in range(1, 41):
        ends = [start + (1 << height) for height, start in trees_of(tree, through)]
        starts = [start for _, start in trees_of(tree, through)]
        assert starts == [0, *ends[:-1]]
        assert ends[-1] == through
