"""Reports of numbers follow the stated laws, and estimates their stated errors."""

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from laws_of_numbers import channel_of, coarse, report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import Reports
from shuffledp.randomizers import Duchi, Piecewise

# Probability that correct code fails this module: Bonferroni over all of its comparisons. Every
# cell expects at least LEAST_EXPECTED reports, so that the chi-square tail is close to the exact
# one; all other tails are exact or proved.
FALSE_POSITIVE_RATE = 1e-9
LEAST_EXPECTED = 500

CLASSES = (Duchi, Piecewise)
LAWS = list(itertools.product(CLASSES, (0.0, 0.4, 1.0), (0.5, 2.0)))
MOMENTS = list(itertools.product(CLASSES, (0.4, 1.5, 4.0), (-1.0, 0.15)))
COVERAGES = list(itertools.product(CLASSES, (0.7, 3.0)))
NUM_COMPARISONS = len(LAWS) + len(CLASSES) + 1 + 2 * len(MOMENTS) + 3 * len(COVERAGES) + 2
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_COMPARISONS

NUM_REPORTS = 2_000_000
NUM_RUNS = 4_000
NUM_USERS = 1_000
CONFIDENCE = 0.95


def make(cls, epsilon0, **options):
    """Return a randomizer of numbers between -1 and 1."""
    return cls(low=-1, high=1, epsilon0=epsilon0, **options)


def tiny(cls, epsilon0):
    """Return a randomizer whose law can be written out."""
    return make(cls if cls is Duchi else coarse(2), epsilon0)


def row_of(randomizer, share):
    """Return the law of a report of the value at a share of the range: a mixture of two rows."""
    channel = channel_of(randomizer)
    num_steps = len(channel) - 1
    position = Fraction(share) * num_steps
    below = min(int(position), num_steps - 1)
    rows = (np.array(channel[i], dtype=float) for i in (below, below + 1))
    part = float(position - below)
    first, second = rows
    return (1 - part) * first + part * second


def draw(randomizer, share, seed):
    """Return reports of the value at a share of the range, as columns of `row_of`."""
    values = np.full(NUM_REPORTS, -1 + 2 * share)
    return randomizer.randomize(values, Entropy.from_seed(seed)).data.astype(np.int64)


def merged(observed, probabilities):
    """Return counts and probabilities without rare cells: neighbours are put together."""
    cells, count, mass = [], 0, 0.0
    for each, probability in zip(observed, probabilities, strict=True):
        count, mass = count + each, mass + probability
        if mass * observed.sum() >= LEAST_EXPECTED:
            cells.append((count, mass))
            count, mass = 0, 0.0
    last_count, last_mass = cells.pop()
    cells.append((last_count + count, last_mass + mass))
    return np.array(cells).T


def p_value(observed, probabilities):
    """Return the chi-square tail probability of the observed cell counts."""
    counts, masses = merged(observed, probabilities)
    expected = masses * observed.sum()
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, counts.size - 1))


def p_value_of_reports(sampler, law, share, seed, law_share=None):
    row = row_of(law, share if law_share is None else law_share)
    return p_value(np.bincount(draw(sampler, share, seed), minlength=row.size), row)


def p_value_of_neighbours(columns, row):
    """Test that a report and the next are independent, in pairs that do not overlap."""
    pairs = columns[:-1:2] * row.size + columns[1::2]
    joint = np.outer(row, row).reshape(-1)
    return p_value(np.bincount(pairs, minlength=joint.size), joint)


def planted(randomizer, factor):
    """Return a randomizer that draws with another law than it should."""
    wrong = copy.copy(randomizer)
    threshold = int(randomizer.law.threshold * factor)
    object.__setattr__(wrong, "law", randomizer.law._replace(threshold=threshold))
    return wrong


@pytest.mark.parametrize(("cls", "share", "epsilon0"), LAWS)
def test_reports_follow_the_law(cls, share, epsilon0):
    randomizer = tiny(cls, epsilon0)
    assert p_value_of_reports(randomizer, randomizer, share, seed=1) > REJECTION_LEVEL


@pytest.mark.parametrize("factor", [0.98, 1.02])
@pytest.mark.parametrize("cls", CLASSES)
def test_a_law_off_by_two_percent_is_rejected(cls, factor):
    randomizer = tiny(cls, 2.0)
    wrong = planted(randomizer, factor)
    # Not at the middle, where Duchi's bit is a fair coin at any epsilon0.
    assert p_value_of_reports(wrong, randomizer, 0.0, seed=2) < REJECTION_LEVEL
    assert p_value_of_reports(randomizer, wrong, 0.0, seed=2) < REJECTION_LEVEL


@pytest.mark.parametrize("cls", CLASSES)
def test_rounding_to_the_nearest_point_is_rejected(cls):
    randomizer = tiny(cls, 2.0)
    assert p_value_of_reports(randomizer, randomizer, 0.0, seed=3, law_share=0.4) < REJECTION_LEVEL
    assert p_value_of_reports(randomizer, randomizer, 0.4, seed=3, law_share=0.0) < REJECTION_LEVEL


@pytest.mark.parametrize("cls", CLASSES)
def test_neighbouring_reports_are_independent(cls):
    randomizer = tiny(cls, 2.0)
    columns = draw(randomizer, 0.4, seed=4)
    row = row_of(randomizer, 0.4)
    assert p_value_of_neighbours(columns, row) > REJECTION_LEVEL
    # One pair in fifty has the same words behind both of its reports.
    repeated = columns.copy()
    repeated[1::100] = columns[:-1:100]
    assert p_value_of_neighbours(repeated, row) < REJECTION_LEVEL


def test_piecewise_reports_of_full_resolution_follow_the_law():
    randomizer = make(Piecewise, 1.0)
    law = randomizer.law
    inside = (np.arange(law.num_outputs) >= 100) & (np.arange(law.num_outputs) < 100 + law.window)
    row = np.where(inside, law.high_threshold / 2**64, law.threshold / 2**64)
    values = np.full(NUM_REPORTS, -1 + 2 * 100 / law.num_steps)
    data = randomizer.randomize(values, Entropy.from_seed(6)).data
    observed = np.bincount(data, minlength=row.size)
    # The value is a float next to grid point 100: at most 2^-44 of the users are elsewhere.
    assert p_value(observed, row) > REJECTION_LEVEL
    for shift in (-1, 1):
        assert p_value(observed, np.roll(row, shift)) < REJECTION_LEVEL


def deviation_limit(variance, bound):
    """Return what the mean of NUM_REPORTS centred terms exceeds less often than is declared.

    Bernstein's inequality: Pr[abs(mean) >= t] <= 2 exp(-n t^2 / (2 v + 2 b t / 3)) for independent
    terms of variance at most v, and at most b in size.
    """
    log_level = math.log(2 / REJECTION_LEVEL)
    half = bound * log_level / (3 * NUM_REPORTS)
    return half + math.sqrt(half**2 + 2 * variance * log_level / NUM_REPORTS)


def largest_error(randomizer):
    """Return a bound of abs(decoded report - value) for values in [-1, 1]."""
    outputs = 2 if isinstance(randomizer, Duchi) else randomizer.law.num_outputs
    return randomizer.score_scale[1] * (outputs - 1) + 1.0


@pytest.mark.parametrize(("cls", "epsilon0", "value"), MOMENTS)
def test_reports_are_unbiased_with_the_stated_variance(cls, epsilon0, value):
    randomizer = make(cls, epsilon0)
    reports = randomizer.randomize(np.full(NUM_REPORTS, value), Entropy.from_seed(7))
    offset, factor = randomizer.score_scale
    errors = offset + factor * randomizer.scores(reports)[:, 0] - value
    variance = report_variance(randomizer, value)
    bound = largest_error(randomizer)
    limit = deviation_limit(variance, bound)
    assert abs(errors.mean()) < limit
    # The terms of the second moment are at most b^2, so that their variance is at most b^2 v.
    limit_of_squares = deviation_limit(bound**2 * variance, bound**2)
    found = float((errors**2).mean())
    assert abs(found - variance) < limit_of_squares
    # Both would see an epsilon0 that is wrong by a third, or a value by a twentieth.
    assert min(abs(errors.mean() - 0.1), abs(errors.mean() + 0.1)) > limit
    for wrong in (epsilon0 * 0.67, epsilon0 * 1.5):
        assert abs(found - report_variance(make(cls, wrong), value)) > limit_of_squares


def estimates_of_runs(randomizer, values, seed):
    """Return estimates of the mean from each row of the values, shape (NUM_RUNS, NUM_USERS)."""
    data = randomizer.randomize(values.reshape(-1), Entropy.from_seed(seed)).data
    return [
        randomizer.estimate(
            Reports(data=run, fingerprint=randomizer.fingerprint), confidence=CONFIDENCE
        )
        for run in data.reshape(values.shape)
    ]


def num_covered(estimates, truth, stretch=1.0):
    """Return how many intervals, made wider by a factor, hold the truth."""
    return sum(
        bool(abs(each.mean[0] - truth) <= stretch * (each.upper[0] - each.mean[0]))
        for each in estimates
    )


def is_plausible(count, coverages):
    """Return whether a binomial count fits some coverage between two limits."""
    lowest, highest = coverages
    too_few = binom.cdf(count, NUM_RUNS, lowest)
    too_many = binom.sf(count - 1, NUM_RUNS, highest)
    return min(too_few, too_many) > REJECTION_LEVEL / 2


# Normal intervals of 1,000 bounded or exponential reports: the error of the normal approximation
# to a two-sided coverage is of the order of 1 / num_users.
NOMINAL = (CONFIDENCE - 0.005, CONFIDENCE + 0.005)


@pytest.mark.parametrize(("cls", "epsilon0"), COVERAGES)
def test_intervals_hold_the_mean_as_often_as_they_say(cls, epsilon0):
    randomizer = make(cls, epsilon0)
    # All have the same value, so that the spread of the reports is the noise alone.
    values = np.full((NUM_RUNS, NUM_USERS), 0.3)
    estimates = estimates_of_runs(randomizer, values, seed=8)
    assert is_plausible(num_covered(estimates, 0.3), NOMINAL)
    for stretch in (0.85, 1.2):
        assert not is_plausible(num_covered(estimates, 0.3, stretch), NOMINAL)


@pytest.mark.parametrize(("cls", "epsilon0"), COVERAGES)
def test_both_standard_errors_hold_the_mean_that_they_are_about(cls, epsilon0):
    randomizer = make(cls, epsilon0)
    # New users each run, half of them at each of two values: the population's mean is 0.25.
    coins = Entropy.from_seed(9).generator().random((NUM_RUNS, NUM_USERS)) < 0.5
    values = np.where(coins, 1.0, -0.5)
    estimates = estimates_of_runs(randomizer, values, seed=10)
    quantile = norm.isf((1 - CONFIDENCE) / 2)
    of_population = sum(
        bool(abs(each.mean[0] - 0.25) <= quantile * each.population_standard_error[0])
        for each in estimates
    )
    assert is_plausible(of_population, NOMINAL)
    of_users = sum(
        bool(each.lower[0] <= mean <= each.upper[0])
        for each, mean in zip(estimates, values.mean(axis=1), strict=True)
    )
    # The standard error of the noise is an upper bound for some randomizers: the interval may be
    # too wide for these users, never too narrow.
    assert binom.cdf(of_users, NUM_RUNS, NOMINAL[0]) > REJECTION_LEVEL


@pytest.mark.parametrize("epsilon0", [0.7, 3.0])
def test_coverage_of_duchi_is_the_exact_one(epsilon0):
    # The number of ones is binomial, so that the coverage can be computed.
    randomizer = make(Duchi, epsilon0)
    up = (1 + 0.3) / 2
    wrong = randomizer.law.threshold / 2**64
    chance = up * (1 - wrong) + (1 - up) * wrong
    ones = np.arange(NUM_USERS + 1)
    covered = [
        num_covered(
            [
                randomizer.estimate(
                    Reports(
                        data=np.repeat(
                            np.array([0, 1], dtype=np.uint8), [NUM_USERS - count, count]
                        ),
                        fingerprint=randomizer.fingerprint,
                    )
                )
            ],
            0.3,
        )
        for count in ones.tolist()
    ]
    exact = float(binom.pmf(ones, NUM_USERS, chance) @ np.array(covered))
    assert exact == pytest.approx(CONFIDENCE, abs=0.005)
    estimates = estimates_of_runs(randomizer, np.full((NUM_RUNS, NUM_USERS), 0.3), seed=11)
    assert is_plausible(num_covered(estimates, 0.3), (exact, exact))
    for stretch in (0.85, 1.2):
        assert not is_plausible(num_covered(estimates, 0.3, stretch), (exact, exact))
