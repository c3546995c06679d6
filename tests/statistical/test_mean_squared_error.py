"""The mean squared error of estimates is the one that theory gives, at the sizes of deployments."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from shuffledp.core.entropy import Entropy
from shuffledp.estimation.intervals import SupportLaw
from shuffledp.randomizers import RANDOMIZERS, make_randomizer

# Probability that correct code fails this module: Bonferroni over all comparisons made in it.
FALSE_POSITIVE_RATE = 1e-9

NUM_USERS = 100_000
EPSILON0 = 2.0
NUM_RUNS = {16: 200, 1024: 10}
SETTINGS = list(itertools.product(RANDOMIZERS, NUM_RUNS))
REJECTION_LEVEL = FALSE_POSITIVE_RATE / (2 * len(SETTINGS))

# The errors of two categories are all but uncorrelated: by -1/(k - 1) for k-RR and subsets, where
# the number of supports is fixed, and 0 for the others. The sum of k squared scores then varies as
# chi-square with k / (1 + 1/(k - 1)) degrees of freedom; this many times fewer are counted.
FEWER = 1.2


def truth(k):
    """Return the users' codes, and the share of each: one in three has the first category."""
    codes = np.arange(NUM_USERS) % k
    codes[: NUM_USERS // 3] = 0
    return codes, np.bincount(codes, minlength=k) / NUM_USERS


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: f"{setting[0]}-{setting[1]}")
def squared_scores(request):
    """Return the sum of squared errors over their variances, and the degrees of freedom."""
    name, k = request.param
    randomizer = make_randomizer(name, domain_size=k, epsilon0=EPSILON0)
    codes, shares = truth(k)
    expected = SupportLaw(*randomizer.support_probabilities, NUM_USERS).standard_error(shares)
    entropy = Entropy.from_seed(k)
    total = 0.0
    for _ in range(NUM_RUNS[k]):
        found = randomizer.estimate(randomizer.randomize(codes.astype(np.uint16), entropy))
        total += float((((found.frequency - shares) / expected) ** 2).sum())
    return total, NUM_RUNS[k] * k


def p_value(total, num_scores):
    """Return the two-sided tail of a sum of squared scores, in units of its mean."""
    freedom = num_scores / FEWER
    statistic = total / num_scores * freedom
    return 2.0 * min(chi2.cdf(statistic, freedom), chi2.sf(statistic, freedom))


def test_the_error_is_that_of_theory(squared_scores):
    assert p_value(*squared_scores) > REJECTION_LEVEL


@pytest.mark.parametrize("factor", [0.75, 1.33])
def test_another_variance_is_rejected(squared_scores, factor):
    total, num_scores = squared_scores
    assert p_value(factor * total, num_scores) < REJECTION_LEVEL
