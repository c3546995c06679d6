"""The proved errors: their equation, their order, and that nothing exceeds them too often.

The declared rate is the probability that correct code would fail for seeds chosen at random.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from oracles.period_trees import made_design
from shuffledp.core.entropy import Entropy
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    level_weighted_sums,
    online_factors,
    online_running_counts,
    proven_errors,
)

FALSE_POSITIVE_RATE = 1e-9


@pytest.mark.parametrize("periods", [1, 6, 32])
def test_errors_solve_bernsteins_equation(periods):
    made = made_design(periods, 7.0, variance_factor=4.0, domain_size=3)
    errors = proven_errors(made, num_users=500, confidence=0.9)
    squares = online_factors(periods)
    variance = 500 * 49.0 * 4.0 * squares / made.num_levels
    exponents = errors**2 / (2 * (variance + (28.0 * squares + 1) * errors / 3))
    chances = 2 * np.exp(-exponents) * periods * 3
    np.testing.assert_allclose(chances, 0.1, rtol=1e-9)
    assert (chances <= 0.1).all()  # rounded up


@pytest.mark.parametrize("periods", [1, 5, 8, 21, 64])
def test_one_user_adds_at_most_what_is_assumed(periods):
    tree = PeriodTree(periods=periods)
    weighted = level_weighted_sums(tree, np.eye(tree.num_nodes))
    weights = np.abs(online_running_counts(tree, weighted, periods))
    slices = [
        slice(tree.offset(level), tree.offset(level) + tree.nodes_at(level))
        for level in range(1, tree.num_levels + 1)
    ]
    most = np.max([weights[:, level].sum(axis=1) for level in slices], axis=0)
    np.testing.assert_allclose(most, online_factors(periods), rtol=1e-12)


def test_order_of_growth_is_that_of_theorem_6_and_a_root_of_a_logarithm_less():
    # sqrt(n); and for large n, L sqrt(V / L) = sqrt(V L), V at most L / 2 + 1.
    made = made_design(1023, 20.0)
    few, many = (proven_errors(made, num_users=n, confidence=0.95) for n in (10**8, 10**12))
    np.testing.assert_allclose(many / few, 100.0, rtol=0.01)
    constants = []
    for levels in (5, 10, 20):
        made = made_design(2**levels - 1, 2.0 * levels)
        worst = proven_errors(made, num_users=10**14, confidence=0.95).max()
        exponent = math.log(2 * (2**levels - 1) / 0.05)
        most = online_factors(2**levels - 1).max()
        assert most <= levels / 2 + 1
        root = math.sqrt(2 * 10**14 * exponent * most / levels)
        constants.append(worst / (2.0 * levels * root))
    assert constants == pytest.approx([1.0, 1.0, 1.0], rel=1e-3)


def test_negative_pairs_count():
    def errors(pair_correlation=0.0):
        made = made_design(4, 9.0, pair_correlation)
        return proven_errors(made, num_users=10**6, confidence=0.95)

    assert (errors(-0.5) > errors()).all()
    assert np.array_equal(errors(0.5), errors())


def test_errors_of_the_protocol_are_rarely_above():
    # 32 periods, one change at period 1, sampled change with k = 1 and e0 = 3: gap 1/2.
    tree = PeriodTree(periods=32)
    generator = Entropy.from_seed(6).generator()
    num_users, runs, confidence = 40, 3_000, 0.6
    bounds = proven_errors(made_design(32, 12.0), num_users=num_users, confidence=confidence)
    failures, touched = 0, 0
    sums = np.zeros((tree.num_nodes, runs))
    for _ in range(num_users):
        levels = generator.integers(1, 7, runs)
        for level in range(1, 7):
            at_level = np.flatnonzero(levels == level)
            first, count = tree.offset(level), tree.nodes_at(level)
            signs = 2 * generator.integers(0, 2, (count, at_level.size)) - 1
            signs[0] = np.where(generator.random(at_level.size) < 0.75, 1, -1)
            sums[first : first + count, at_level] += signs
    estimates = online_running_counts(tree, level_weighted_sums(tree, sums), 32)
    errors = np.abs(12.0 * estimates - num_users)
    failures = int((errors > bounds[:, None]).any(axis=0).sum())
    touched = int((errors > 0.4 * bounds[:, None]).any(axis=0).sum())
    assert binom.sf(failures - 1, runs, 1 - confidence) > FALSE_POSITIVE_RATE / 2
    # Less than half of it would not do.
    assert binom.sf(touched - 1, runs, 1 - confidence) < FALSE_POSITIVE_RATE / 2
