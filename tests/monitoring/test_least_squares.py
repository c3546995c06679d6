"""Least squares on the tree, against explicit matrices, and exactly in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    level_weighted_sums,
    online_node_estimates,
    online_running_counts,
    running_sums,
    smoothed_nodes,
    smoothed_running_counts,
    update_level_weighted_sums,
)

SIZES = [*range(1, 21), 31, 32, 33, 48]


def node_matrix(tree, through):
    """Return which leaves 1 ... through each node adds up, and which nodes end by then."""
    rows, ended = [], []
    for level in range(1, tree.num_levels + 1):
        length = tree.length(level)
        for position in range(1, tree.nodes_at(level) + 1):
            row = np.zeros(tree.periods)
            row[(position - 1) * length : position * length] = 1.0
            rows.append(row[:through])
            ended.append(position * length <= through)
    return np.array(rows), np.array(ended)


def least_squares_weights(tree, t, through):
    """Return the weights of all nodes in the least-squares estimate of f_t, by a pseudo-inverse."""
    matrix, ended = node_matrix(tree, through)
    weights = np.zeros(tree.num_nodes)
    prefix = np.arange(through) < t
    weights[ended] = np.linalg.pinv(matrix[ended]).T @ prefix
    return weights


@pytest.mark.parametrize("periods", SIZES)
def test_online_weights_are_those_of_least_squares_on_what_has_ended(periods):
    tree = PeriodTree(periods=periods)
    weighted = level_weighted_sums(tree, np.eye(tree.num_nodes))
    weights = online_running_counts(tree, weighted, periods)
    for t in range(1, periods + 1):
        np.testing.assert_allclose(weights[t - 1], least_squares_weights(tree, t, t), atol=1e-12)


@pytest.mark.parametrize(("periods", "through"), [*((d, d) for d in SIZES), (20, 13), (32, 31)])
def test_smoothed_weights_are_those_of_least_squares_on_everything(periods, through):
    tree = PeriodTree(periods=periods)
    weighted = level_weighted_sums(tree, np.eye(tree.num_nodes))
    weights = smoothed_running_counts(tree, weighted, through)
    for t in range(1, through + 1):
        expected = least_squares_weights(tree, t, through)
        np.testing.assert_allclose(weights[t - 1], expected, atol=1e-12)


@pytest.mark.parametrize("periods", [1, 2, 3, 8, 13])
def test_all_estimators_return_exactly_the_truth_from_true_node_sums(periods):
    tree = PeriodTree(periods=periods)
    matrix, _ = node_matrix(tree, periods)
    leaves = [Fraction(n * n - 7 * n + 2, n + 3) for n in range(periods)]
    nodes = [sum(leaf for leaf, there in zip(leaves, row, strict=True) if there) for row in matrix]
    truth = [sum(leaves[:t]) for t in range(1, periods + 1)]
    weighted = level_weighted_sums(tree, nodes)
    assert running_sums(tree, nodes, periods).tolist() == truth
    assert online_running_counts(tree, weighted, periods).tolist() == truth
    assert smoothed_running_counts(tree, weighted, periods).tolist() == truth
    assert online_node_estimates(tree, weighted).tolist() == nodes


def test_weights_of_a_tree_are_powers_of_two_over_one_number():
    tree = PeriodTree(periods=8)
    nodes = np.array([Fraction(0)] * tree.num_nodes)
    for level in range(1, 5):
        nodes[tree.index(level, 1)] = Fraction(1000**level)
    estimate = online_running_counts(tree, level_weighted_sums(tree, nodes), 8)[7]
    expected = sum(Fraction(2 ** (level - 1) * 1000**level, 15) for level in range(1, 5))
    assert estimate == expected


@pytest.mark.parametrize("through", [1, 2, 5, 6, 11])
def test_smoothed_nodes_are_the_sums_of_their_children(through):
    tree = PeriodTree(periods=11)
    noise = Entropy.from_seed(2).generator().standard_normal((tree.num_nodes, 3))
    nodes = smoothed_nodes(tree, level_weighted_sums(tree, noise), through)
    for level in range(2, tree.num_levels + 1):
        for position in range(1, (through >> (level - 1)) + 1):
            children = (
                nodes[tree.index(level - 1, 2 * position - 1)]
                + nodes[tree.index(level - 1, 2 * position)]
            )
            np.testing.assert_allclose(nodes[tree.index(level, position)], children, atol=1e-12)
    for level in range(1, tree.num_levels + 1):
        for position in range((through >> (level - 1)) + 1, tree.nodes_at(level) + 1):
            assert (nodes[tree.index(level, position)] == 0.0).all()


def test_the_last_smoothed_count_is_the_online_one():
    tree = PeriodTree(periods=13)
    weighted = level_weighted_sums(tree, np.arange(tree.num_nodes))
    for through in range(1, 14):
        smoothed = smoothed_running_counts(tree, weighted, through)[-1]
        online = online_running_counts(tree, weighted, through)[-1]
        assert smoothed == pytest.approx(online, abs=1e-9)


@pytest.mark.parametrize("base", [2, 4])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_updating_gives_the_same_bits_as_starting_over(base, dtype):
    generator = Entropy.from_seed(3).generator()
    for periods in (1, 2, 7, 16, 37):
        tree = PeriodTree(periods=periods)
        values = np.zeros((tree.num_nodes, 2), dtype=dtype)
        weighted = level_weighted_sums(tree, values, base)
        for _ in range(20):
            touched = np.unique(generator.integers(0, tree.num_nodes, 3))
            values[touched] += generator.integers(-5, 5, (touched.size, 2))
            update_level_weighted_sums(tree, values, weighted, touched, base)
            assert np.array_equal(weighted, level_weighted_sums(tree, values, base))


def test_updating_nothing_changes_nothing():
    tree = PeriodTree(periods=4)
    values = np.ones(tree.num_nodes)
    weighted = level_weighted_sums(tree, values)
    update_level_weighted_sums(tree, 2 * values, weighted, np.empty(0, dtype=np.int64))
    assert np.array_equal(weighted, level_weighted_sums(tree, values))
