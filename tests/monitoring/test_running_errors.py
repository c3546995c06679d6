"""Errors of running counts: variances, their weights, and numbers of reports."""

import itertools
import math

import numpy as np
import pytest

from oracles.exchangeable_signs import ExchangeableSigns
from oracles.period_trees import cover, made_design
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    block_variance,
    expected_standard_errors,
    level_weighted_sums,
    online_factors,
    online_running_counts,
    smoothed_factors,
    smoothed_running_counts,
    tree_heights,
)


def test_trees_partition_the_periods():
    for through in range(1, 41):
        assert [1 << height for height in tree_heights(through)] == [
            2 ** (level - 1) for level, _ in cover(through)
        ]


KINDS = {
    "online": {},
    "smoothed": {"smoothed": True},
}


def weight_matrix(tree, through, kind):
    """Return the weights of all nodes (columns) in the counts at t = 1 ... through (rows)."""
    unit = np.eye(tree.num_nodes)
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
        factors = smoothed_factors(through)[0] if kind == "smoothed" else online_factors(through)
        np.testing.assert_allclose(factors, expected, rtol=1e-12)


@pytest.mark.parametrize("periods", [1, 8, 100, 365])
def test_more_reports_never_make_a_variance_larger(periods):
    online, (smoothed, _) = online_factors(periods), smoothed_factors(periods)
    assert (online <= [t.bit_count() for t in range(1, periods + 1)]).all()
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
    best = np.zeros(periods)
    for level in range(1, tree.num_levels + 1):
        first = tree.offset(level)
        for t in range(1, periods + 1):
            best[t - 1] += pairs_of_level(weights[t - 1, first : first + tree.nodes_at(level)])
    stated = smoothed_factors(periods)[1] if kind == "smoothed" else np.zeros(periods)
    np.testing.assert_allclose(best, stated, atol=1e-12)


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
        num_nodes, length = tree.nodes_at(level), 2 ** (level - 1)
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
    made = made_design(periods, scale, pair_correlation)
    stated = expected_standard_errors(made, num_users=1, through=periods, **KINDS[kind])
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
        alone = made_design(periods, scale)
        without = expected_standard_errors(alone, num_users=1, through=periods, smoothed=True)
        assert periods == 1 or (largest > without**2 * (1 + 1e-6)).any()


# ---------------------------------------------------------------- planning
def test_standard_errors_in_closed_form():
    made = made_design(7, 5.0, -0.5, variance_factor=4.0)  # 3 levels
    online = expected_standard_errors(made, num_users=12, through=7)
    squares = [1, 2 / 3, 5 / 3, 4 / 7, 11 / 7, 26 / 21, 47 / 21]
    assert online.tolist() == pytest.approx(
        [5 * math.sqrt(4 * 4.0 * 1.5 * each) for each in squares]
    )
    first = expected_standard_errors(made, num_users=12, through=3)
    assert first.tolist() == online[:3].tolist()


def test_only_smoothing_pays_for_pairs():
    without, paired = made_design(8, 8.0), made_design(8, 8.0, 0.3)

    def errors(made, **other):
        return expected_standard_errors(made, num_users=9, through=8, **other)

    assert np.array_equal(errors(paired), errors(without))
    more, plain = errors(paired, smoothed=True), errors(without, smoothed=True)
    assert (more >= plain).all()
    assert more[-1] == plain[-1]
    assert more[0] > plain[0]
