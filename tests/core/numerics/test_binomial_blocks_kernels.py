import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.core.numerics.binomial_blocks_kernels import (
    binomial_blocks,
    binomial_window,
    chernoff_exponent,
)


@given(
    st.integers(1, 5000),
    st.one_of(st.floats(0.0, 1.0), st.sampled_from([1e-12, 1.0 - 1e-12, 0.0, 1.0])),
    st.floats(0.5, 700.0),
)
def test_each_tail_outside_the_window_is_as_small_as_promised(n, p, exponent):
    first, last = binomial_window(float(n), p, 1.0 - p, exponent)
    assert 0.0 <= first <= last <= n
    assert first == int(first)
    assert last == int(last)
    # scipy's tails are good to about 1e-11
    assert binom.cdf(first - 1, n, p) <= math.exp(-exponent) * (1.0 + 1e-9)
    assert binom.sf(last, n, p) <= math.exp(-exponent) * (1.0 + 1e-9)


@pytest.mark.parametrize("n", [10**9, 10**12, 10**15])
@pytest.mark.parametrize("p", [1e-13, 1e-6, 0.3, 0.5, 1.0 - 1e-9])
def test_large_windows_are_within_a_few_deviations(n, p):
    first, last = binomial_window(float(n), p, 1.0 - p, 32.0)
    reach = 10.0 * math.sqrt(n * p * (1.0 - p)) + 60.0
    assert n * p - reach <= first <= n * p + 1.0
    assert n * p - 1.0 <= last <= n * p + reach


@pytest.mark.parametrize(
    ("n", "k", "p", "exact"),
    [
        (5, 0, 0.0, 0.0),
        (5, 1, 0.0, math.inf),
        (5, 5, 1.0, 0.0),
        (5, 4, 1.0, math.inf),
        (0, 0, 0.3, 0.0),
        (4, 0, 0.25, 4.0 * math.log(4.0 / 3.0)),
        (4, 4, 0.25, 4.0 * math.log(4.0)),
    ],
)
def test_chernoff_exponent_at_the_ends(n, k, p, exact):
    # At an end the exact tail is known; the exponent must not exceed its logarithm.
    value = chernoff_exponent(float(n), float(k), p, 1.0 - p)
    assert value == pytest.approx(exact) if math.isinf(exact) or exact == 0.0 else value <= exact


@given(st.integers(1, 300), st.floats(0.001, 0.999), st.integers(0, 300))
def test_chernoff_exponent_bounds_the_tail(n, p, k):
    k = min(k, n)
    exponent = chernoff_exponent(float(n), float(k), p, 1.0 - p)
    tail = binom.sf(k - 1, n, p) if k >= n * p else binom.cdf(k, n, p)
    assert tail <= math.exp(-exponent) * (1.0 + 1e-9)


@given(
    st.integers(1, 3000), st.floats(1e-6, 1.0 - 1e-6), st.integers(1, 700), st.floats(1.0, 600.0)
)
def test_blocks_keep_mass_and_mean(n, p, max_blocks, exponent):
    first, last = binomial_window(float(n), p, 1.0 - p, exponent)
    starts, masses, means = binomial_blocks(float(n), p, 1.0 - p, first, last, max_blocks)
    assert 1 <= masses.size <= max_blocks
    assert starts[0] == first
    assert starts[-1] == last + 1.0
    assert np.all(np.diff(starts) >= 1.0)
    outcomes = np.arange(int(first), int(last) + 1)
    points = binom.pmf(outcomes, n, p)
    for i in range(0, masses.size, max(1, masses.size // 20)):
        inside = (outcomes >= starts[i]) & (outcomes < starts[i + 1])
        assert masses[i] == pytest.approx(points[inside].sum(), rel=1e-9, abs=1e-290)
        assert starts[i] <= means[i] <= starts[i + 1] - 1.0
        if masses[i] > 1e-280:
            mean = (points[inside] * outcomes[inside]).sum() / points[inside].sum()
            assert means[i] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("n", [10**6, 10**9])
@pytest.mark.parametrize("p", [1e-8, 0.01, 0.5, 0.97, 1.0 - 1e-8])
def test_masses_sum_to_one_and_means_to_the_mean(n, p):
    first, last = binomial_window(float(n), p, 1.0 - p, 45.0)
    _, masses, means = binomial_blocks(float(n), p, 1.0 - p, first, last, 4000)
    allowed = 4.0 * (1e-12 + 4e-15 * math.sqrt(n))
    assert masses.sum() == pytest.approx(1.0, abs=allowed)
    centred = (masses * (means - n * p)).sum()
    assert abs(centred) < 1e-6 * math.sqrt(n * p * (1.0 - p)) + 1e-7


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_outcomes(p):
    first, last = binomial_window(7.0, p, 1.0 - p, 32.0)
    starts, masses, means = binomial_blocks(7.0, p, 1.0 - p, first, last, 10)
    assert first == last == 7.0 * p
    assert list(starts) == [7.0 * p, 7.0 * p + 1.0]
    assert list(masses) == [1.0]
    assert list(means) == [7.0 * p]


def test_no_trials():
    first, last = binomial_window(0.0, 0.3, 0.7, 32.0)
    assert (first, last) == (0.0, 0.0)
    _, masses, _ = binomial_blocks(0.0, 0.3, 0.7, first, last, 10)
    assert list(masses) == [1.0]
