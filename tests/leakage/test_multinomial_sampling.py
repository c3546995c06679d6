"""Sampled vulnerabilities: how often limits fail, and what the cut loses."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from oracles.multinomial_exact import exact_exchangeable_vulnerability
from oracles.shuffled_guesses import k_rr
from shuffledp.core.entropy import Entropy
from shuffledp.leakage import multinomial as module
from shuffledp.leakage.multinomial import (
    default_num_samples,
    excess_means,
    histogram_blocks,
    histogram_windows,
    multinomial_form,
    sampled_vulnerability,
)

FALSE_POSITIVE_RATE = 1e-9
REPETITIONS = 300
NUM_TESTS = 2


@pytest.mark.parametrize("prior", [None, [Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)]])
def test_limits_fail_no_more_often_than_said(prior):
    channel = k_rr(3, Fraction(4, 5))
    form = multinomial_form(12, channel, prior=prior)
    exact = float(exact_exchangeable_vulnerability(12, channel, prior=prior))
    failure, missed, planted = 0.1, 0, 0
    for seed in range(REPETITIONS):
        found = sampled_vulnerability(
            form, entropy=Entropy.from_seed(seed), num_samples=2000, failure=failure
        )
        missed += not found.lower <= exact <= found.upper
        planted += not found.lower <= exact + 0.02 <= found.upper
    level = stats.binom.isf(FALSE_POSITIVE_RATE / NUM_TESTS, REPETITIONS, failure)
    assert missed <= level < planted


@pytest.mark.parametrize("num_users", [3, 50, 2000])
def test_what_is_cut_off_is_bounded(monkeypatch, num_users):
    """The bound against the mean over all histograms, for cuts near and far."""
    form = multinomial_form(num_users, k_rr(3, 0.8), prior=[0.4, 0.35, 0.25])
    parts = form.gains - form.gains[form.best]
    for reach in (0.5, 2.0, 5.0):
        spread = np.sqrt((np.square(parts - (parts @ form.law)[:, None]) @ form.law).max())
        at = reach * float(spread) / np.sqrt(num_users)
        bound = excess_means(num_users, form.law, parts, at).sum()
        exact = sum(
            float(np.maximum((counts @ parts.T).max(axis=1) / num_users - at, 0.0) @ masses)
            for counts, masses in histogram_blocks(histogram_windows(num_users, form.law))
        )
        assert exact <= bound
    cut = module._find_cut(form, parts)
    assert cut.lost <= 1e-6
    assert 0.0 < cut.at <= parts.max()
    # From too early a start it is found by doubling.
    monkeypatch.setattr(module, "_FIRST_CUT", 0.25)
    assert module._find_cut(form, parts).lost <= 1e-6
    # Cut early, the upper limit pays for it and still holds.
    monkeypatch.setattr(module, "_FIRST_CUT", 1.0)
    monkeypatch.setattr(module, "_CUT_OFF", 10.0)
    early = module._find_cut(form, parts)
    assert early.at < cut.at or num_users == 3
    found = sampled_vulnerability(form, entropy=Entropy.from_seed(1), num_samples=20_000)
    exact = form.without_release + sum(
        float(np.maximum((counts @ parts.T).max(axis=1), 0.0) @ masses) / num_users
        for counts, masses in histogram_blocks(histogram_windows(num_users, form.law))
    )
    assert found.lower <= exact <= found.upper


def test_default_numbers():
    assert default_num_samples(multinomial_form(9, np.eye(3))) == 1 << 20
    assert default_num_samples(multinomial_form(9, np.eye(500))) == 8589
    assert default_num_samples(multinomial_form(9, np.eye(1500))) == 1 << 12


def test_seeds_repeat():
    form = multinomial_form(10**6, k_rr(5, 0.8))
    first, again, other = (
        sampled_vulnerability(form, entropy=Entropy.from_seed(seed), num_samples=1000)
        for seed in (1, 1, 2)
    )
    assert first == again != other
