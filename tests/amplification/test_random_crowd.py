"""Expectations over a crowd's size, against the full law of it."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shuffledp.amplification.random_crowd import (
    CrowdLaw,
    crowd_delta,
    crowd_of,
    tail_mean,
    tail_targets,
)
from shuffledp.core.errors import ParameterError


def falling(m):
    """A curve like that of a shuffle."""
    return 0.5 * math.exp(-0.05 * m)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12),
    st.sampled_from([1.0, 1e-3, 1e-12]),
)
def test_above_the_expectation(overlaps, delta):
    law = np.ones(1)
    for chance in overlaps:
        law = np.convolve(law, [1.0 - chance, chance])
    truth = sum(mass * falling(1 + k) for k, mass in enumerate(law))
    found = crowd_delta(crowd_of(overlaps, delta=delta), falling, falling(1))
    assert truth * (1.0 - 1e-12) <= found <= falling(1)


@pytest.mark.parametrize("n", [50, 1000, 100_000])
def test_little_is_lost(n):
    for chance in (0.3, 0.9, 0.999):
        counts = np.arange(n + 1)
        law = stats.binom.pmf(counts, n, chance)
        rate = 3.0 / math.sqrt(n)

        def curve(m, rate=rate):
            return math.exp(-rate * math.sqrt(m))

        truth = float((law * np.exp(-rate * np.sqrt(counts + 1.0))).sum())
        found = crowd_delta(crowd_of(np.full(n, chance), delta=truth), curve, curve(1))
        assert truth <= found * (1.0 + 1e-12)
        assert found <= truth * (1.0 + 3.0 / math.sqrt(n))


def test_a_sure_crowd_is_no_crowd_law():
    assert crowd_of(np.ones(99), delta=1e-6) == CrowdLaw(sizes=(100,), misses=(0.0,))
    assert crowd_of([], delta=1e-6) == CrowdLaw(sizes=(1,), misses=(0.0,))
    assert crowd_of([0.0], delta=1e-6) == CrowdLaw(sizes=(1,), misses=(0.0,))
    nearly = crowd_of(np.full(10**6, 1.0 - 1e-15), delta=1e-6)
    assert len(nearly.sizes) == 1
    assert nearly.sizes[0] >= 10**6
    assert nearly.misses[0] <= 1e-10


def test_a_tiny_delta():
    law = crowd_of(np.full(1000, 0.5), delta=1e-300)
    assert law.misses[-1] <= 1e-289
    assert law.sizes[-1] < 200


def test_tail_mean_by_hand():
    assert tail_mean([0.25], [0.0], 1.0) == pytest.approx(0.25, rel=1e-13)
    assert tail_mean([0.25], [1.0], 0.5) == 0.5
    # A level lower down that is better stands for those above it; a smaller miss for those below.
    assert tail_mean([0.5, 0.25], [0.5, 0.25], 1.0) == pytest.approx(0.4375, rel=1e-13)
    assert tail_mean([0.25, 0.5], [0.25, 0.5], 1.0) == pytest.approx(0.4375, rel=1e-13)
    # Never above what holds in any case.
    assert tail_mean([0.9], [0.5], 0.6) == pytest.approx(0.6, rel=1e-13)
    assert crowd_delta(CrowdLaw(sizes=(5,), misses=(0.1,)), falling, 0.0) == 0.0


@given(st.lists(st.tuples(*[st.floats(0.0, 1.0)] * 2), min_size=1, max_size=9), st.floats(0.0, 1.0))
def test_tail_mean_is_not_below_the_exact_sum(levels, worst):
    # Larger crowds miss more often, and hide better.
    misses = sorted((miss for miss, _ in levels), reverse=True)
    values = sorted(min(value, worst) for _, value in levels)
    steps = zip([*map(Fraction, values), Fraction(worst)], pairwise([1, *misses, 0]), strict=True)
    exact = sum(value * (Fraction(more) - Fraction(less)) for value, (more, less) in steps)
    assert exact <= Fraction(tail_mean(values, misses, worst))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5), st.floats(0.0, 1.0))
def test_tail_mean_rises_with_misses(misses, shift):
    values = [0.1 * (i + 1) for i in range(len(misses))]
    raised = [min(miss + shift, 1.0) for miss in misses]
    assert tail_mean(values, misses, 0.9) <= tail_mean(values, raised, 0.9) * (1.0 + 1e-13)


def test_targets_descend():
    for smallest in (0.1, 1e-3, 1e-290):
        targets = tail_targets(smallest)
        assert targets == sorted(set(targets), reverse=True)
        assert targets[-1] == smallest
        assert all(0.0 < target < 1.0 for target in targets)


@pytest.mark.parametrize(
    ("sizes", "misses", "match"),
    [
        ((), (), "at least one size"),
        ((5,), (0.1, 0.2), "misses 2"),
        ((5, 5), (0.1, 0.1), "strictly descending"),
        ((4, 5), (0.1, 0.1), "strictly descending"),
        ((0,), (0.1,), "sizes"),
        ((5,), (math.nan,), "outside"),
        ((5,), (1.5,), "outside"),
        ((5,), (-0.1,), "outside"),
    ],
)
def test_refused(sizes, misses, match):
    with pytest.raises(ParameterError, match=match):
        CrowdLaw(sizes=sizes, misses=misses)
