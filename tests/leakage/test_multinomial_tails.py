"""Chernoff's bound of what a linear form is above a level, against the mean over all histograms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.leakage.multinomial import (
    excess_means,
    histogram_blocks,
    histogram_windows,
)


def exact_means(num_users, law, parts, level):
    total = np.zeros(len(parts))
    for counts, masses in histogram_blocks(histogram_windows(num_users, law)):
        total += masses @ np.maximum(counts @ parts.T / num_users - level, 0.0)
    return total


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.5, 3.0]))
def test_errs_upwards(seed, num_users, level):
    rng = Entropy.from_seed(seed).generator()
    law = rng.dirichlet(np.ones(3))
    parts = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-6, 4)
    exact = exact_means(num_users, law, parts, level)
    assert (exact * (1.0 - 1e-9) <= excess_means(num_users, law, parts, level)).all()


def test_falls_exponentially():
    law, parts = np.array([0.6, 0.4]), np.array([[-1.0, 1.0]])
    found = [excess_means(n, law, parts)[0] for n in (100, 400, 1600, 10**9)]
    exact = exact_means(400, law, parts, 0.0)[0]
    assert exact <= found[1] <= 30.0 * exact
    assert found[2] <= found[1] ** 2.5
    assert 0.0 < found[3] <= 1e-280


@pytest.mark.parametrize("parts", [[[0.0, 0.0]], [[1.0, 1.0]], [[-1e9, -1e9]], [[-1e6, 1e-3]]])
def test_constants_and_large_weights(parts):
    law, weights = np.array([0.5, 0.5]), np.array(parts)
    for num_users in (1, 30):
        found = excess_means(num_users, law, weights)
        assert np.isfinite(found).all()
        assert (exact_means(num_users, law, weights, 0.0) <= found).all()
