"""One multinomial histogram: its reduced form, listed, sampled, and its tails."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles.shuffled_guesses import identity, k_rr
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage import multinomial
from shuffledp.leakage import multinomial as module
from shuffledp.leakage.channel import Channel
from shuffledp.leakage.multinomial import (
    LEFT_OUT,
    dense_channel,
    excess_means,
    histogram_blocks,
    histogram_windows,
    multinomial_form,
)


def test_unary_encoding_shrinks():
    # Two bits, the first about the value, the second a fair coin: as good as one bit.
    rows = [[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]]
    form = multinomial_form(10, rows)
    assert form.gains.shape == (2, 2)
    assert form.law.tolist() == [0.5, 0.5]
    assert form.unshuffled == pytest.approx(0.8, rel=1e-15)
    # In a crowd of another law columns of equal weights are merged only.
    uneven = multinomial_form(10, rows, crowd=[0.4, 0.2, 0.3, 0.1])
    assert uneven.gains.shape == (2, 4)


def test_equal_columns_that_were_computed_differently():
    third = 0.1 + 0.2
    form = multinomial_form(10, [[0.3, third, 1 - 0.3 - third], [0.2, 0.2, 0.6]])
    assert form.gains.shape == (2, 2)
    assert form.law.sum() == pytest.approx(1.0, rel=1e-15)


def test_rare_reports_keep_their_digits():
    # Weights of a rare report dwarf the others, which must not be rounded away.
    form = multinomial_form(
        10, [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]], crowd=[1e-150, 0.6, 0.4 - 1e-150]
    )
    assert form.gains.shape == (2, 3)
    assert form.slack < 1e-14
    assert form.means == pytest.approx([0.5, 0.5], rel=1e-14)


def test_needless_guesses():
    assert len(multinomial_form(5, k_rr(4, 0.7), prior=[0.97, 0.01, 0.01, 0.01]).gains) == 1
    assert len(multinomial_form(5, k_rr(4, 0.7), prior=[0.4, 0.2, 0.2, 0.2]).gains) == 4
    assert len(multinomial_form(5, [[0.5, 0.5]] * 3).gains) == 1
    assert len(multinomial_form(5, identity(4), prior=[0.5, 0.5, 0, 0]).gains) == 2


def test_too_large_to_look_for_needless_guesses(monkeypatch):
    monkeypatch.setattr(module, "_MOST_COMPARISONS", 10.0)
    assert len(multinomial_form(5, [[0.5, 0.5], [0.5, 0.5], [0.3, 0.7]]).gains) == 3


def test_what_is_certain():
    form = multinomial_form(5, [[0.75, 0.25, 0.0], [0.5, 0.1, 0.4]], crowd=[1, 0, 0])
    assert form.certain == pytest.approx(0.125 + 0.2)
    assert form.law.tolist() == [1.0]
    assert form.without_release == pytest.approx(0.325 + 0.375)
    assert form.differences.shape == (len(form.gains) - 1, 1)


def test_channels_of_all_kinds():
    from scipy.sparse import csr_array

    rows = k_rr(3, Fraction(1, 2))
    exact = Channel(rows)
    for channel in (rows, exact, exact.to_float(), csr_array(exact.to_dense())):
        assert dense_channel(channel) == pytest.approx(np.full((3, 3), 0.25) + 0.25 * np.eye(3))
    assert dense_channel(exact, exact=True).tolist() == rows


def test_refusals():
    with pytest.raises(ParameterError, match="1 row"):
        dense_channel([[1.0]])
    with pytest.raises(ParameterError, match="floats"):
        dense_channel([[0.5, 0.5], [0.25, 0.75]], exact=True)
    with pytest.raises(ParameterError, match="not a whole number"):
        multinomial_form(2.5, identity(2))


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


def exact_means(num_users, law, parts):
    total = np.zeros(len(parts))
    for counts, masses in histogram_blocks(histogram_windows(num_users, law)):
        total += masses @ np.maximum(counts @ parts.T / num_users, 0.0)
    return total


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_errs_upwards(seed, num_users):
    rng = Entropy.from_seed(seed).generator()
    law = rng.dirichlet(np.ones(3))
    parts = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-6, 4)
    exact = exact_means(num_users, law, parts)
    assert (exact * (1.0 - 1e-9) <= excess_means(num_users, law, parts)).all()


def test_falls_exponentially():
    law, parts = np.array([0.6, 0.4]), np.array([[-1.0, 1.0]])
    found = [excess_means(n, law, parts)[0] for n in (100, 400, 1600, 10**9)]
    exact = exact_means(400, law, parts)[0]
    assert exact <= found[1] <= 30.0 * exact
    assert found[2] <= found[1] ** 2.5
    assert 0.0 < found[3] <= 1e-280


@pytest.mark.parametrize("parts", [[[0.0, 0.0]], [[1.0, 1.0]], [[-1e9, -1e9]], [[-1e6, 1e-3]]])
def test_constants_and_large_weights(parts):
    law, weights = np.array([0.5, 0.5]), np.array(parts)
    for num_users in (1, 30):
        found = excess_means(num_users, law, weights)
        assert np.isfinite(found).all()
        assert (exact_means(num_users, law, weights) <= found).all()


FALSE_POSITIVE_RATE = 1e-9
REPETITIONS = 300
NUM_TESTS = 2
