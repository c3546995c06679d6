"""Running counts: covers, least squares, and results."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    RunningCounts,
    cover_sizes,
    level_weighted_sums,
    online_node_estimates,
    online_running_counts,
    running_sums,
    smoothed_nodes,
    smoothed_running_counts,
    update_level_weighted_sums,
)


@pytest.mark.parametrize("periods", range(1, 35))
def test_sums_are_those_over_the_nodes_of_each_cover(periods):
    tree = PeriodTree(periods=periods)
    values = Entropy.from_seed(1).generator().integers(-9, 9, (tree.num_nodes, 2))
    for through in range(1, periods + 1):
        expected = [
            sum(values[tree.index(*node)] for node in tree.cover(t)) for t in range(1, through + 1)
        ]
        sums = running_sums(tree, values, through)
        assert sums.dtype == np.int64
        assert np.array_equal(sums, expected)


def test_sizes_are_those_of_the_covers():
    tree = PeriodTree(periods=100)
    assert cover_sizes(100).tolist() == [len(tree.cover(t)) for t in range(1, 101)]


def test_fractions_stay_fractions():
    values = [Fraction(1, 3), Fraction(1, 7), Fraction(1, 5), Fraction(2)]
    sums = running_sums(PeriodTree(periods=3), values, 3)
    assert sums.tolist() == [Fraction(1, 3), Fraction(2), Fraction(11, 5)]


def test_values_of_another_tree_are_refused():
    with pytest.raises(ParameterError, match=r"node_values has shape \(3,\).*the 4 nodes"):
        running_sums(PeriodTree(periods=3), [1, 2, 3], 3)
    with pytest.raises(ParameterError, match="node_values has shape"):
        running_sums(PeriodTree(periods=1), 1.0, 1)


@pytest.mark.parametrize(
    ("through", "message"), [(0, "through = 0 is below 1"), (4, "through = 4")]
)
def test_periods_outside_the_tree_are_refused(through, message):
    with pytest.raises(ParameterError, match=message):
        running_sums(PeriodTree(periods=3), np.zeros(4), through)


def test_no_period_has_no_cover_size():
    with pytest.raises(ParameterError, match="through = 0 is below 1"):
        cover_sizes(0)


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


@pytest.fixture
def counts():
    return RunningCounts(
        periods=np.array([1, 2, 3]),
        counts=np.array([-4.0, 5.0, 12.0]),
        standard_errors=np.array([1.0, 2.0, 3.0]),
        lower=np.array([-6.0, 1.0, 6.0]),
        upper=np.array([-2.0, 9.0, 18.0]),
        method="cover",
        is_smoothed=False,
        confidence=0.9,
        is_simultaneous=True,
        labels=(True,),
    )


def test_one_period_of_many(counts):
    estimate = counts.at(2)
    assert len(counts) == 3
    assert float(estimate.counts) == 5.0
    assert float(estimate.standard_errors) == 2.0
    assert (float(estimate.lower), float(estimate.upper)) == (1.0, 9.0)
    assert (estimate.period, estimate.method, estimate.confidence) == (2, "cover", 0.9)
    assert estimate.is_simultaneous
    assert estimate.labels == (True,)


@pytest.mark.parametrize("t", [0, 4])
def test_other_periods_are_refused(counts, t):
    with pytest.raises(ParameterError, match=rf"t = {t} is not in \[1, 3\]"):
        counts.at(t)


def test_clipping_is_a_named_step_that_leaves_the_bands(counts):
    clipped = counts.clipped(10)
    assert clipped.counts.tolist() == [0.0, 5.0, 10.0]
    assert clipped.lower.tolist() == counts.lower.tolist()
    assert clipped.upper.tolist() == counts.upper.tolist()
    assert counts.post_processing == ()
    assert clipped.post_processing == ("clip",)
    assert clipped.at(1).post_processing == ("clip",)
    one = counts.at(1).clipped(10)
    assert float(one.counts) == 0.0
    assert float(one.lower) == -6.0
    assert one.post_processing == ("clip",)


@pytest.mark.parametrize("num_users", [0, -1, math.nan, math.inf])
def test_clipping_needs_a_number_of_users(counts, num_users):
    with pytest.raises(ParameterError, match="num_users"):
        counts.clipped(num_users)


def test_arrays_are_read_only(counts):
    for array in (counts.periods, counts.counts, counts.lower, counts.at(1).counts):
        assert not array.flags.writeable
