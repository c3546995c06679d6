"""Reports follow the channel that the randomizer states: chi-square tests with planted errors."""

import copy
import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import RANDOMIZERS, make_randomizer

# Probability that correct code fails this module: Bonferroni over all of its tests. Every cell
# expects at least LEAST_EXPECTED reports, so that the chi-square tail is close to the exact one.
FALSE_POSITIVE_RATE = 1e-9
LEAST_EXPECTED = 2_000

NUM_REPORTS = 6_000_000
LAWS = list(itertools.product(RANDOMIZERS, (2, 3, 4), (0.0, 0.5, 2.0)))
NEIGHBOURS = list(itertools.product(RANDOMIZERS, (2, 3, 4)))
REJECTION_LEVEL = FALSE_POSITIVE_RATE / (len(LAWS) + len(NEIGHBOURS))


def p_value(observed, probabilities):
    """Return the chi-square tail probability of the observed cell counts."""
    expected = observed.sum() * np.asarray(probabilities, dtype=float)
    assert expected.min() >= LEAST_EXPECTED
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1))


def draw(randomizer, code, seed):
    """Return reports for one true code, as column numbers of the channel."""
    codes = np.full(NUM_REPORTS, code, dtype=np.uint8)
    reports = randomizer.randomize(codes, Entropy.from_seed(seed)).data.reshape(-1)
    values = randomizer.report_columns().data.reshape(-1)  # for small k a report is a small integer
    column_of = np.full(int(values.max()) + 1, values.size)
    column_of[values] = np.arange(values.size)
    return column_of[reports]


def with_threshold_times(randomizer, factor):
    """Return a randomizer that draws with another threshold than it should."""
    planted = copy.copy(randomizer)
    object.__setattr__(planted, "threshold", int(randomizer.threshold * factor))
    return planted


def p_value_of_reports(sampler, law, code, seed):
    row = law.channel()[code]
    return p_value(np.bincount(draw(sampler, code, seed), minlength=len(row)), row)


def p_value_of_neighbours(columns, row):
    """Test that a report and the next are independent, in pairs that do not overlap."""
    pairs = columns[:-1:2].astype(np.int64) * len(row) + columns[1::2]
    joint = np.outer(np.array(row, dtype=float), np.array(row, dtype=float)).reshape(-1)
    return p_value(np.bincount(pairs, minlength=joint.size), joint)


@pytest.mark.parametrize(("name", "k", "epsilon0"), LAWS)
def test_reports_follow_the_channel(name, k, epsilon0):
    randomizer = make_randomizer(name, domain_size=k, epsilon0=epsilon0)
    code = k - 1 if epsilon0 < 1.0 else 0
    assert p_value_of_reports(randomizer, randomizer, code, seed=k) > REJECTION_LEVEL


@pytest.mark.parametrize(("name", "k"), NEIGHBOURS)
def test_neighbouring_reports_are_independent(name, k):
    randomizer = make_randomizer(name, domain_size=k, epsilon0=0.5)
    columns = draw(randomizer, code=1, seed=100 + k)
    assert p_value_of_neighbours(columns, randomizer.channel()[1]) > REJECTION_LEVEL


@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize(("name", "k"), NEIGHBOURS)
def test_a_threshold_off_by_one_percent_is_rejected(name, k, factor):
    randomizer = make_randomizer(name, domain_size=k, epsilon0=0.5)
    planted = with_threshold_times(randomizer, factor)
    assert p_value_of_reports(planted, randomizer, code=1, seed=k) < REJECTION_LEVEL
    assert p_value_of_reports(randomizer, planted, code=1, seed=k) < REJECTION_LEVEL


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_randomness_used_twice_is_rejected(name):
    randomizer = make_randomizer(name, domain_size=3, epsilon0=0.5)
    columns = draw(randomizer, code=1, seed=5)
    # One pair in a hundred has the same words behind both of its reports.
    columns = columns.copy()
    columns[1::200] = columns[:-1:200]
    assert p_value_of_neighbours(columns, randomizer.channel()[1]) < REJECTION_LEVEL
