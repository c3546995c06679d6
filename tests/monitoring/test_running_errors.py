"""Errors of running counts: variances, their weights, and numbers of reports."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    level_weighted_sums,
    online_running_counts,
    running_sums,
    smoothed_running_counts,
)
from shuffledp.monitoring.running_errors import (
    ReceivedReports,
    block_variance,
    expected_standard_errors,
    prefix_walk,
    smoothed_pairs,
    trees_of,
    variance_factors,
    with_pairs,
)
from shuffledp.monitoring.signs import ExchangeableSigns


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


KINDS = {
    "cover": {"method": "cover"},
    "online": {},
    "smoothed": {"smoothed": True},
}


def weight_matrix(tree, through, kind):
    """Return the weights of all nodes (columns) in the counts at t = 1 ... through (rows)."""
    unit = np.eye(tree.num_nodes)
    if kind == "cover":
        return running_sums(tree, unit, through)
    weighted = level_weighted_sums(tree, unit)
    if kind == "online":
        return online_running_counts(tree, weighted, through)
    return smoothed_running_counts(tree, weighted, through)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("periods", [*range(1, 18), 31, 40])
def test_factors_are_the_squared_norms_of_the_weights(periods, kind):
    tree = PeriodTree(periods=periods)
    for through in {periods, periods // 2 + 1}:
        expected = (weight_matrix(tree, through, kind) ** 2).sum(axis=1)
        factors = variance_factors(tree, through, **KINDS[kind])
        np.testing.assert_allclose(factors, expected, rtol=1e-12)


@pytest.mark.parametrize("periods", [1, 8, 100, 365])
def test_more_reports_never_make_a_variance_larger(periods):
    tree = PeriodTree(periods=periods)
    cover, online, smoothed = (variance_factors(tree, periods, **kind) for kind in KINDS.values())
    assert (online <= cover + 1e-12).all()
    assert (smoothed <= online + 1e-12).all()
    assert smoothed[-1] == pytest.approx(online[-1], rel=1e-12)


def test_block_variances_are_those_of_the_recursion():
    variance = 1.0
    for height in range(1, 60):
        variance = 1.0 / (1.0 + 1.0 / (2.0 * variance))
        assert block_variance(height) == pytest.approx(variance, rel=1e-12)


def pairs_of_level(weights):
    """Return the largest (sum a s)^2 - sum a^2 s^2 over all alternating s, by brute force."""
    best = 0.0
    for size in range(2, len(weights) + 1):
        for chosen in itertools.combinations(weights, size):
            alternating = sum(chosen[::2]) - sum(chosen[1::2])
            best = max(best, alternating**2 - sum(a * a for a in chosen))
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("periods", range(1, 14))
def test_pairs_of_reports_by_brute_force(periods, kind):
    tree = PeriodTree(periods=periods)
    weights = weight_matrix(tree, periods, kind)
    for level in range(1, tree.num_levels + 1):
        only_this_level = np.zeros(tree.num_levels)
        only_this_level[level - 1] = 1.0
        stated = smoothed_pairs(tree, periods, only_this_level)
        first = tree.offset(level)
        for t in range(1, periods + 1):
            best = pairs_of_level(weights[t - 1, first : first + tree.nodes_at(level)])
            expected = stated[t - 1] if kind == "smoothed" else 0.0
            assert best == pytest.approx(expected, abs=1e-12)


# ---------------------------------------------------------------- one user's law, in full
def histories(periods, max_changes):
    """Return all sequences of changes x of a bit that starts at 0, with at most so many changes."""
    found = []
    for states in itertools.product([0, 1], repeat=periods):
        changes = np.diff(states, prepend=0)
        if np.abs(changes).sum() <= max_changes:
            found.append(changes)
    return found


def level_laws(changes, tree, max_changes, law):
    """Yield for each level the reports u (rows) that can be sent and their probabilities."""
    for level in range(1, tree.num_levels + 1):
        num_nodes, length = tree.nodes_at(level), tree.length(level)
        reports = np.array(list(itertools.product([1, -1], repeat=num_nodes)))
        increments = changes[: num_nodes * length].reshape(num_nodes, length).sum(axis=1)
        probabilities = np.zeros(len(reports))
        if isinstance(law, ExchangeableSigns):
            told = np.flatnonzero(increments)
            for signs in itertools.product([1, -1], repeat=max_changes):
                weight = law.weights[signs.count(-1)] / law.total
                match = (reports[:, told] == increments[told] * signs[: told.size]).all(axis=1)
                probabilities += weight * match / 2.0 ** (num_nodes - told.size)
        else:  # the probability that a sampled change is told as it is
            places = np.flatnonzero(changes)
            for kappa in range(max_changes):
                part = np.full(len(reports), 2.0**-num_nodes)
                if kappa < places.size and places[kappa] // length < num_nodes:
                    same = reports[:, places[kappa] // length] == changes[places[kappa]]
                    part *= np.where(same, 2 * law, 2 * (1 - law))
                probabilities += part / max_changes
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        yield level, reports, probabilities


def moments(changes, tree, max_changes, law, weights):
    """Return means and second moments of weights @ u, over level, keys and coins, for each t."""
    mean, second = np.zeros(len(weights)), np.zeros(len(weights))
    for level, reports, probabilities in level_laws(changes, tree, max_changes, law):
        first = tree.offset(level)
        values = weights[:, first : first + tree.nodes_at(level)] @ reports.T
        mean += values @ probabilities / tree.num_levels
        second += values**2 @ probabilities / tree.num_levels
    return mean, second


LAWS = {
    "sampled": (2, 0.75, 0.25, 0.0),
    # Two signs: both plus three times as likely as each other pattern; g = r_2 = 1/3.
    "positive pairs": (2, ExchangeableSigns(weights=(3, 1, 1)), 1 / 3, 1 / 3),
    "negative pairs": (2, ExchangeableSigns(weights=(4, 4, 1)), 3 / 13, -3 / 13),
    "three changes": (3, ExchangeableSigns(weights=(5, 5, 1, 1)), 1 / 3, 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("periods", [1, 2, 3, 4, 6, 7, 8])
def test_every_user_is_unbiased_and_within_the_stated_variance(periods, law, kind):
    max_changes, signs, gap, pair_correlation = LAWS[law]
    if isinstance(signs, ExchangeableSigns):
        correlations = [float(r) for r in signs.correlations]
        assert correlations[1:3] == pytest.approx([gap, pair_correlation])
    tree = PeriodTree(periods=periods)
    scale = tree.num_levels / gap
    weights = weight_matrix(tree, periods, kind)
    stated = expected_standard_errors(
        tree, num_users=1, scale=scale, pair_correlation=pair_correlation, **KINDS[kind]
    )
    largest = np.zeros(periods)
    for changes in histories(periods, max_changes):
        mean, second = moments(changes, tree, max_changes, signs, weights)
        np.testing.assert_allclose(scale * mean, np.cumsum(changes), atol=1e-10)
        largest = np.maximum(largest, scale**2 * second)
    assert (largest <= stated**2 * (1 + 1e-12)).all()
    if pair_correlation == 0.0 or (pair_correlation > 0.0 and kind != "smoothed"):
        # Some history attains it, but for the square of the mean: that is at most 1.
        np.testing.assert_allclose(largest, stated**2, rtol=1e-10)
    elif pair_correlation > 0.0:
        # Each level's pairs are attained, but by different histories.
        assert (largest >= 0.9 * stated**2).all()
        without = expected_standard_errors(tree, num_users=1, scale=scale, smoothed=True)
        assert periods == 1 or (largest > without**2 * (1 + 1e-6)).any()


# ---------------------------------------------------------------- planning
def test_standard_errors_in_closed_form():
    tree = PeriodTree(periods=7)  # 3 levels
    errors = expected_standard_errors(
        tree, num_users=12, scale=5.0, method="cover", variance_factor=4.0, pair_correlation=-0.5
    )
    assert errors.tolist() == pytest.approx([20 * math.sqrt(t.bit_count()) for t in range(1, 8)])
    online = expected_standard_errors(tree, num_users=12, scale=5.0, pair_correlation=-0.5)
    squares = [1, 2 / 3, 5 / 3, 4 / 7, 11 / 7, 26 / 21, 47 / 21]
    assert online.tolist() == pytest.approx([5 * math.sqrt(4 * 1.5 * each) for each in squares])


def test_only_smoothing_pays_for_pairs():
    tree = PeriodTree(periods=8)

    def errors(**other):
        return expected_standard_errors(tree, num_users=9, scale=8.0, **other)

    assert np.array_equal(errors(pair_correlation=0.3), errors())
    more = errors(pair_correlation=0.3, smoothed=True)
    assert (more >= errors(smoothed=True)).all()
    assert more[-1] == errors(smoothed=True)[-1]
    assert more[0] > errors(smoothed=True)[0]


def test_negative_pairs_cost_the_whole_of_the_squares():
    squares, pairs = np.array([2.0]), np.array([7.0])
    assert with_pairs(squares, pairs, -0.25).tolist() == [2.5]
    assert with_pairs(squares, pairs, 0.25).tolist() == [3.75]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_users": 0}, "num_users = 0 is below 1"),
        ({"scale": math.nan}, "scale = nan"),
        ({"scale": 0.0}, "scale = 0.0"),
        ({"method": "median"}, "method = 'median' is not one of least-squares, cover"),
        ({"method": "cover", "smoothed": True}, "method = 'cover' has no smoothed form"),
        ({"pair_correlation": 1.5}, r"pair_correlation = 1.5 is not in \[-1, 1\]"),
        ({"pair_correlation": math.nan}, "pair_correlation = nan is not finite"),
        ({"variance_factor": math.inf}, "variance_factor = inf"),
        ({"through": 9}, r"through = 9 is not in \[1, 8\]"),
    ],
)
def test_arguments_out_of_range_are_refused(changed, message):
    arguments = {"num_users": 5, "scale": 2.0} | changed
    with pytest.raises(ParameterError, match=message):
        expected_standard_errors(PeriodTree(periods=8), **arguments)


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
