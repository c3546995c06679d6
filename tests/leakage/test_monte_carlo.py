"""Limits of a mean from samples: the formula, coverage, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.multinomial import DEFAULT_FAILURE, SampleMoments

FALSE_POSITIVE_RATE = 1e-9

# One run of many sets of samples for each of the three laws below, and one per planted law.
REPETITIONS = 400
LAWS = {
    "coin": (lambda rng, size: (rng.random(size) < 0.3).astype(float), 0.3),
    "rare": (lambda rng, size: (rng.random(size) < 0.004).astype(float), 0.004),
    "power": (lambda rng, size: rng.random(size) ** 5, 1.0 / 6.0),
}


def limits(samples, low, high, failure=DEFAULT_FAILURE):
    """Return the limits of the mean of some samples."""
    return SampleMoments.of(np.array(samples)).limits(low, high, failure)


def test_is_the_published_inequality():
    samples = Entropy.from_seed(1).generator().random(500) * 3.0 - 1.0
    found = limits(samples, -1.0, 2.0, 0.01)
    doubt = math.log(2.0 / 0.005)
    half = math.sqrt(2.0 * samples.var(ddof=1) * doubt / 500) + 7.0 * 3.0 * doubt / (3.0 * 499)
    assert found.lower == pytest.approx(samples.mean() - half, rel=1e-12)
    assert found.upper == pytest.approx(samples.mean() + half, rel=1e-12)
    assert found.lower <= samples.mean() - half < samples.mean() + half <= found.upper


@pytest.mark.parametrize("name", LAWS)
def test_limits_fail_no_more_often_than_said(name):
    draw, mean = LAWS[name]
    rng = Entropy.from_seed(11).generator()
    failure = 0.1
    missed = 0
    for _ in range(REPETITIONS):
        found = limits(draw(rng, 300), 0.0, 1.0, failure)
        missed += not found.lower <= mean <= found.upper
    level = stats.binom.isf(FALSE_POSITIVE_RATE / len(LAWS), REPETITIONS, failure)
    assert level < 0.25 * REPETITIONS  # the test can fail
    assert missed <= level


@pytest.mark.parametrize("name", LAWS)
def test_a_wrong_mean_is_seen(name):
    draw, mean = LAWS[name]
    found = limits(draw(Entropy.from_seed(12).generator(), 200_000), 0.0, 1.0)
    assert found.lower <= mean <= found.upper
    assert not found.lower <= 1.5 * mean <= found.upper
    assert not found.lower <= 0.5 * mean <= found.upper


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), min_size=1, max_size=6))
def test_blocks_are_as_good_as_one(blocks):
    joined = SampleMoments()
    for block in blocks:
        joined = joined.joined(SampleMoments.of(np.array(block)))
    whole = SampleMoments.of(np.concatenate([np.array(block) for block in blocks]))
    assert joined.count == whole.count
    assert joined.mean == pytest.approx(whole.mean, abs=1e-9)
    assert joined.squares == pytest.approx(whole.squares, rel=1e-9, abs=1e-6)


def test_nothing_seen_says_nothing():
    assert SampleMoments().joined(SampleMoments()) == SampleMoments()
    assert SampleMoments().limits(0.0, 1.0, 0.1) == Enclosure(0.0, 1.0)
    assert limits([0.5], 0.0, 1.0) == Enclosure(0.0, 1.0)
    assert limits([2.0, 2.0], 2.0, 2.0) == Enclosure(2.0, 2.0)


def test_stays_within_the_range():
    assert limits([1.0] * 5, 0.0, 1.0).upper == 1.0
    assert limits([0.0] * 5, 0.0, 1.0).lower == 0.0
