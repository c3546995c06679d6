"""Running counts: covers, least squares, and results."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from oracles.period_trees import cover, index
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    RunningCounts,
    level_weighted_sums,
    node_estimates,
    online_running_counts,
    running_sums,
    smoothed_running_counts,
)


@pytest.mark.parametrize("periods", range(1, 35))
def test_sums_are_those_over_the_nodes_of_each_cover(periods):
    tree = PeriodTree(periods=periods)
    values = Entropy.from_seed(1).generator().integers(-9, 9, (tree.num_nodes, 2))
    for through in range(1, periods + 1):
        expected = [
            sum(values[index(tree, *node)] for node in cover(t)) for t in range(1, through + 1)
        ]
        sums = running_sums(tree, values, through)
        assert sums.dtype == np.int64
        assert np.array_equal(sums, expected)


def test_fractions_stay_fractions():
    values = np.array([Fraction(1, 3), Fraction(1, 7), Fraction(1, 5), Fraction(2)])
    sums = running_sums(PeriodTree(periods=3), values, 3)
    assert sums.tolist() == [Fraction(1, 3), Fraction(2), Fraction(11, 5)]


SIZES = [*range(1, 21), 31, 32, 33, 48]


def node_matrix(tree, through):
    """Return which leaves 1 ... through each node adds up, and which nodes end by then."""
    rows, ended = [], []
    for level in range(1, tree.num_levels + 1):
        length = 2 ** (level - 1)
        for position in range(1, tree.nodes_at(level) + 1):
            row = np.zeros(tree.periods)
            row[(position - 1) * length : position * length] = 1.0
            rows.append(row[:through])
            ended.append(position * length <= through)
    return np.array(rows), np.array(ended)


@cache
def inverse_of_nodes(tree, through):
    """Return the pseudo-inverse of the nodes that end by then, and which these are."""
    matrix, ended = node_matrix(tree, through)
    return np.linalg.pinv(matrix[ended]), ended


def least_squares_weights(tree, t, through):
    """Return the weights of all nodes in the least-squares estimate of f_t, by a pseudo-inverse."""
    inverse, ended = inverse_of_nodes(tree, through)
    weights = np.zeros(tree.num_nodes)
    prefix = np.arange(through) < t
    weights[ended] = inverse.T @ prefix
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
    nodes = np.array(
        [sum(leaf for leaf, there in zip(leaves, row, strict=True) if there) for row in matrix]
    )
    truth = [sum(leaves[:t]) for t in range(1, periods + 1)]
    weighted = level_weighted_sums(tree, nodes)
    assert running_sums(tree, nodes, periods).tolist() == truth
    assert online_running_counts(tree, weighted, periods).tolist() == truth
    assert smoothed_running_counts(tree, weighted, periods).tolist() == truth
    assert node_estimates(tree, weighted).tolist() == nodes.tolist()


def test_weights_of_a_tree_are_powers_of_two_over_one_number():
    tree = PeriodTree(periods=8)
    nodes = np.array([Fraction(0)] * tree.num_nodes)
    for level in range(1, 5):
        nodes[index(tree, level, 1)] = Fraction(1000**level)
    estimate = online_running_counts(tree, level_weighted_sums(tree, nodes), 8)[7]
    expected = sum(Fraction(2 ** (level - 1) * 1000**level, 15) for level in range(1, 5))
    assert estimate == expected


def test_the_last_smoothed_count_is_the_online_one():
    tree = PeriodTree(periods=13)
    weighted = level_weighted_sums(tree, np.arange(tree.num_nodes))
    for through in range(1, 14):
        smoothed = smoothed_running_counts(tree, weighted, through)[-1]
        online = online_running_counts(tree, weighted, through)[-1]
        assert smoothed == pytest.approx(online, abs=1e-9)


ARRAYS = ("counts", "standard_errors", "lower", "upper")


@pytest.fixture
def counts():
    return RunningCounts(
        periods=np.array([1, 2, 3]),
        counts=np.array([-4.0, 5.0, 12.0]),
        standard_errors=np.array([1.0, 2.0, 3.0]),
        lower=np.array([-6.0, 1.0, 6.0]),
        upper=np.array([-2.0, 9.0, 18.0]),
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
    assert (int(estimate.periods), estimate.confidence) == (2, 0.9)
    assert estimate.is_simultaneous
    assert estimate.labels == (True,)


@pytest.mark.parametrize("t", [0, 4])
def test_other_periods_are_refused(counts, t):
    with pytest.raises(ParameterError, match=rf"t = {t} is (above 3|below 1)"):
        counts.at(t)


def test_arrays_are_read_only(counts):
    for array in (counts.periods, counts.counts, counts.lower, counts.at(1).counts):
        assert not array.flags.writeable


def test_counts_as_frames(counts):
    frame = counts.to_polars()
    assert frame.columns == ["period", "count", "standard_error", "lower", "upper"]
    assert frame["count"].to_list() == [-4.0, 5.0, 12.0]
    assert counts.at(2).to_dict()["upper"] == [9.0]


def test_counts_of_several_values_as_frames(counts):
    both = {name: np.stack([getattr(counts, name)] * 2, axis=1) for name in ARRAYS}
    frame = replace(counts, labels=("a", "b"), **both).to_dict()
    assert frame["period"] == [1, 1, 2, 2, 3, 3]
    assert frame["value"] == ["a", "b"] * 3
    assert frame["count"] == [-4.0, -4.0, 5.0, 5.0, 12.0, 12.0]
    at_two = replace(counts, labels=("a", "b"), **both).at(2).to_dict()
    assert (at_two["period"], at_two["value"], at_two["lower"]) == ([2, 2], ["a", "b"], [1.0, 1.0])
