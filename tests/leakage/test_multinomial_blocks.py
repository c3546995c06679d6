"""Histograms in blocks: all of them, each once, with their exact probabilities."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shuffledp.leakage import multinomial
from shuffledp.leakage.multinomial import (
    LEFT_OUT,
    histogram_blocks,
    histogram_windows,
)


def listed(windows):
    """All histograms and their probabilities."""
    counts, masses = zip(*[(c.copy(), p.copy()) for c, p in histogram_blocks(windows)], strict=True)
    return np.concatenate(counts), np.concatenate(masses)


@settings(max_examples=40)
@given(st.integers(1, 14), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_exact_probabilities(num_users, weights):
    law = [Fraction(weight, sum(weights)) for weight in weights]
    windows = histogram_windows(num_users, np.array([float(mass) for mass in law]))
    counts, masses = listed(windows)
    assert windows.left_out == 0.0
    assert len(counts) == windows.num_histograms == math.comb(num_users + len(law) - 1, num_users)
    assert len({tuple(row) for row in counts}) == len(counts)
    assert (counts.sum(axis=1) == num_users).all()
    for histogram, mass in zip(counts.astype(int).tolist(), masses.tolist(), strict=True):
        exact = Fraction(math.factorial(num_users))
        for count, chance in zip(histogram, law, strict=True):
            exact *= chance**count / Fraction(math.factorial(count))
        assert abs(mass - exact) <= windows.relative_error * exact


@pytest.mark.parametrize(
    ("num_users", "law"),
    [(300_000, (0.5, 0.5)), (3000, (0.7, 0.29, 0.01)), (150, (0.4, 0.3, 0.298, 0.002))],
)
def test_windows(num_users, law):
    law = np.array(law)
    windows = histogram_windows(num_users, law)
    counts, masses = listed(windows)
    assert windows.left_out == LEFT_OUT
    assert len(counts) == windows.num_histograms < math.comb(num_users + len(law) - 1, num_users)
    assert len(np.unique(counts, axis=0)) == len(counts)
    assert math.fsum(masses) == pytest.approx(1.0, abs=windows.relative_error)
    mean = (counts * masses[:, None]).sum(axis=0) / num_users
    assert mean == pytest.approx(law, rel=1e-11)
    # What is left out is as rare as said, also for one user less and a report of any kind more.
    for added in (0, 1):
        tails = stats.binom.cdf(windows.low - 1 - added, num_users - added, law)
        tails += stats.binom.sf(windows.high - added, num_users - added, law)
        assert tails.sum() <= LEFT_OUT


def test_more_targets_widen_windows():
    law = np.array([0.5, 0.3, 0.2])
    one, four = (histogram_windows(10_000, law, num_targets=t) for t in (1, 4))
    assert (four.low <= one.low - 3).all()
    assert (four.high >= one.high + 3).all()


def test_too_many_are_not_counted():
    assert histogram_windows(10**15, np.array([0.5, 0.5])).num_histograms == math.inf
    assert histogram_windows(10**9, np.full(100, 0.01)).num_histograms == math.inf


def test_blocks_that_are_full(monkeypatch):
    # As many histograms as a block holds: the next block is empty, and not yielded.
    windows = histogram_windows(3, np.array([0.5, 0.5]))
    for size, lengths in ((4, [4]), (3, [3, 1]), (2, [2, 2]), (5, [4])):
        monkeypatch.setattr(multinomial, "_BLOCK", size)
        assert [len(masses) for _, masses in histogram_blocks(windows)] == lengths
        assert listed(windows)[0].tolist() == [[0, 3], [1, 2], [2, 1], [3, 0]]
