"""Likelihoods of histograms against fractions, and limits by sampling against exact answers."""

import itertools
import math
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from oracles.informed_guesses import informed_guess, known_laws, others_law, uniform
from oracles.shuffled_guesses import k_rr
from shuffledp.core.entropy import Entropy
from shuffledp.leakage import strong as posterior_sampling
from shuffledp.leakage.fullest_bin import characteristic_tails
from shuffledp.leakage.informed_kernels import likelihoods, posterior_maxima
from shuffledp.leakage.others import checked_situation
from shuffledp.leakage.strong import (
    default_num_samples,
    draw_histograms,
    sample_range,
    sampled_response,
    sampled_vulnerability,
)

# Probability that correct code fails this module: three limits, their controls, and one law.
FALSE_POSITIVE_RATE = 1e-9
RATE_PER_TEST = FALSE_POSITIVE_RATE / 7


def situation(truth, counts, *, prior=None, num_unknown=0, unknown_prior=None):
    return checked_situation(
        truth, counts, prior=prior, num_unknown=num_unknown, unknown_prior=unknown_prior
    )


def exact_likelihood(counts, seen, kept):
    """Return the chance of the others' histogram, up to a factor: a sum over who is in earnest."""
    answer = (1 - kept) / len(counts)
    by_kept = {0: Fraction(1)}
    for count, reports in zip(counts, seen, strict=True):
        following = {}
        for number in range(min(count, reports) + 1):
            weight = comb(count, number) * kept**number / factorial(reports - number)
            for before, value in by_kept.items():
                total = before + number
                following[total] = following.get(total, 0) + value * weight
        by_kept = following
    total = sum(seen)
    return sum(
        value * factorial(total - number) * answer ** (total - number)
        for number, value in by_kept.items()
    )


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=5),
    st.integers(1, 99),
)
def test_likelihoods_against_fractions(pairs, percent):
    counts = [pair[0] for pair in pairs]
    seen = [pair[1] + (pair[1] == 0 and x == 0) for x, pair in enumerate(pairs)]
    kept = Fraction(percent, 100)
    found = likelihoods(
        np.array(counts, float),
        np.array(seen, float),
        np.ones(len(counts)),
        float(kept / (1 - kept)),
        float(len(counts)),
    )
    exact = []
    for x, reports in enumerate(seen):
        others = [each - (x == place) for place, each in enumerate(seen)]
        exact.append(exact_likelihood(counts, others, kept) if reports else Fraction(0))
    shares = [float(each / sum(exact)) for each in exact]
    assert np.abs(found / found.sum() - shares).max() <= 1e-9


def test_the_formula_is_the_law_of_the_histogram():
    counts, truth = (2, 0, 1), Fraction(3, 5)
    channel = k_rr(3, truth)
    law = others_law(known_laws(channel, counts), 3)
    kept = truth - channel[0][1]
    ratios = {chance / exact_likelihood(counts, seen, kept) for seen, chance in law.items()}
    assert len(ratios) == 1


def test_equal_values_are_worked_on_once_and_right():
    counts = np.array([3, 0, 3, 0, 3], dtype=np.int64)
    histograms = np.array([[4, 1, 4, 1, 0], [2, 2, 2, 2, 2]], dtype=np.int64)
    kept, answer = 0.5, 0.1
    prior = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    found = np.empty(2)
    posterior_maxima(counts, histograms, prior, kept, answer, found)
    for row, seen in enumerate(histograms.tolist()):
        exact = [
            exact_likelihood(
                counts.tolist(),
                [each - (x == place) for place, each in enumerate(seen)],
                Fraction(1, 2),
            )
            if seen[x]
            else Fraction(0)
            for x in range(5)
        ]
        joint = [
            q * (0.1 * float(sum(exact)) + 0.5 * float(each))
            for q, each in zip(prior, exact, strict=True)
        ]
        assert found[row] == pytest.approx(max(joint) / sum(joint), rel=1e-9)


@pytest.mark.parametrize(
    ("counts", "prior", "num_unknown"),
    [((2, 1, 0), None, 0), ((1, 0, 1), [0.5, 0.3, 0.2], 0), ((1, 1, 0), None, 2)],
)
def test_limits_hold_the_truth(counts, prior, num_unknown):
    truth = Fraction(3, 5)
    case = situation(truth, counts, prior=prior, num_unknown=num_unknown, unknown_prior=[1 / 3] * 3)
    channel = k_rr(3, truth)
    laws = known_laws(channel, counts) + [uniform(3)] * num_unknown
    law = uniform(3) if prior is None else [Fraction(each) for each in prior]
    exact = float(informed_guess(law, channel, laws))
    found = sampled_vulnerability(
        case, case.response, num_samples=40_000, entropy=Entropy.from_seed(7), failure=RATE_PER_TEST
    )
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower < 0.02
    # Limits of another situation do not hold it: they tell knowledge apart.
    worse = situation(0.95, counts, prior=prior, num_unknown=num_unknown)
    other = sampled_vulnerability(
        worse,
        worse.response,
        num_samples=40_000,
        entropy=Entropy.from_seed(8),
        failure=RATE_PER_TEST,
    )
    assert other.lower > exact


def chi_square(histograms, law):
    keys = list(law)
    places = {key: place for place, key in enumerate(keys)}
    counts = np.zeros(len(keys))
    for row in histograms.tolist():
        counts[places[tuple(row)]] += 1
    expected = np.array([float(law[key]) for key in keys]) * len(histograms)
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(keys) - 1)


def law_of_all(counts, truth, prior):
    channel = k_rr(len(counts), truth)
    target = [sum(q * row[y] for q, row in zip(prior, channel, strict=True)) for y in range(3)]
    return others_law([*known_laws(channel, counts), target], len(counts))


def test_histograms_have_their_law():
    counts, truth, prior = (
        (2, 1, 0),
        Fraction(3, 5),
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
    )
    case = situation(truth, counts, prior=[0.5, 0.25, 0.25])
    drawn = draw_histograms(case, case.response, 60_000, Entropy.from_seed(9).generator())
    assert (drawn.sum(axis=1) == 4).all()
    # All cells expect more than 100: the tail of chi square is safe far beyond this rate.
    assert chi_square(drawn, law_of_all(counts, truth, prior)) > RATE_PER_TEST
    assert chi_square(drawn, law_of_all((2, 0, 1), truth, prior)) < 1e-30
    assert chi_square(drawn, law_of_all(counts, Fraction(29, 50), prior)) < 1e-6


def test_what_can_be_sampled():
    assert sampled_response(situation(0.6, (1, 1, 1)))
    assert not sampled_response(situation(1, (1, 1, 1)))
    assert not sampled_response(situation(0.6, (2**31, 1, 1)))
    assert not sampled_response(situation(Fraction(1, 3), (1, 1, 1)))
    assert not sampled_response(
        checked_situation(np.eye(2), (1, 1), prior=None, num_unknown=0, unknown_prior=None)
    )
    assert sampled_response(situation(0.6, (1, 1, 1), num_unknown=3))
    assert not sampled_response(
        situation(0.6, (1, 1, 1), num_unknown=3, unknown_prior=[0.5, 0.25, 0.25])
    )


def test_the_range_holds_every_posterior():
    for prior, truth in itertools.product(
        ([1 / 3] * 3, [0.9, 0.05, 0.05], [0.2, 0.5, 0.3]), (0.4, 0.9)
    ):
        case = situation(truth, (2, 2, 1), prior=prior)
        low, high = sample_range(case, case.response)
        rows = case.rows() * np.array(prior)[:, None]
        posteriors = rows / rows.sum(axis=0)
        assert high == pytest.approx(posteriors.max(), rel=1e-9)
        assert low == pytest.approx(1 / 3)


def test_fewer_samples_where_each_takes_longer():
    small, large = situation(0.6, (200,) * 5), situation(0.6, (10**6,) * 5)
    assert (
        2
        <= default_num_samples(large, large.response)
        < default_num_samples(small, small.response)
        <= 20_000
    )
    many = situation(0.3, (10**5,) * 10**4)
    assert default_num_samples(many, many.response) < 100


@pytest.mark.parametrize("rare", [1e-2, 1e-6])
@pytest.mark.parametrize(
    ("counts", "num_unknown"), [((0, 0, 0), 400), ((300, 50, 50), 0), ((20, 0, 0), 3)]
)
def test_posteriors_beyond_the_range_are_rare(monkeypatch, counts, num_unknown, rare):
    """Also for who sees which of the others answered at random, among any number of them."""
    monkeypatch.setattr(posterior_sampling, "RARE", rare)
    scene = situation(Fraction(3, 5), counts, num_unknown=num_unknown)
    response = sampled_response(scene)
    low, high = sample_range(scene, response)
    share = (high - float(response.answer)) / float(response.kept)
    known = sum(counts)
    chance = 0.0
    for noisy, mass in enumerate(binom.pmf(np.arange(known + 1), known, float(response.noise))):
        size = noisy + num_unknown + 1
        load = math.floor(share * size)
        above, error = float(load < size), 0.0
        if size > 1 and size / 3 <= load < size:
            ((above,), (error,)) = characteristic_tails(size, 3, np.array([load]))
        chance += float(mass) * (above + error)
    assert chance <= rare * (1.0 + 1e-9)
    assert low == 1 / 3 < high <= 0.6 * (1.0 + 1e-9)


def test_range_of_a_large_crowd_is_narrow():
    scene = situation(0.6, (2000, 2000, 2000, 2000, 1999))
    low, high = sample_range(scene, sampled_response(scene))
    assert high - low < 0.04
