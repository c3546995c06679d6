"""Confidence intervals hold the true frequency as often as they say."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.estimation import estimate_frequencies
from shuffledp.estimation.intervals import SupportLaw
from shuffledp.randomizers import RANDOMIZERS, Counts, Reports, make_randomizer

# Probability that correct code fails this module: Bonferroni over all comparisons made in it.
FALSE_POSITIVE_RATE = 1e-9

NUM_RUNS = 5_000
CONFIDENCE = 0.95
SHARES = (0.0, 0.01, 0.3, 0.69)  # of the four categories among the users
SETTINGS = list(itertools.product(RANDOMIZERS, (200, 5000)))
REJECTION_LEVEL = FALSE_POSITIVE_RATE / (len(SETTINGS) * len(SHARES))


def truth(num_users):
    """Return the users' codes, and the number of users of each."""
    num_by_code = np.rint(np.array(SHARES) * num_users).astype(int)
    assert num_by_code.sum() == num_users
    return np.repeat(np.arange(len(SHARES)), num_by_code), num_by_code


def simulate(randomizer, num_users, seed):
    """Return the support of each category in each of many collections from the same users."""
    codes, _ = truth(num_users)
    data = randomizer.randomize(
        np.tile(codes.astype(np.uint8), NUM_RUNS), Entropy.from_seed(seed)
    ).data
    return np.array(
        [
            randomizer.aggregate(Reports(data=run, fingerprint=randomizer.fingerprint)).support
            for run in data.reshape(NUM_RUNS, num_users, *data.shape[1:])
        ]
    )


def covers(support, share, *, randomizer, num_users, stretch=1.0):
    """Return whether the interval of each support holds the true share."""
    estimates = estimate_frequencies(
        Counts(support=support, num_reports=num_users, fingerprint=""),
        support_probabilities=randomizer.support_probabilities,
        confidence=CONFIDENCE,
    )
    centre = (estimates.lower + estimates.upper) / 2
    margin = stretch * (estimates.upper - estimates.lower) / 2
    return (centre - margin <= share) & (share <= centre + margin)


def exact_coverage(num_supporters, *, randomizer, num_users):
    """Return the coverage by the exact law of the support, a sum of two binomials."""
    p, q = randomizer.support_probabilities
    law = np.convolve(
        binom.pmf(np.arange(num_supporters + 1), num_supporters, p),
        binom.pmf(np.arange(num_users - num_supporters + 1), num_users - num_supporters, q),
    )
    covered = covers(
        np.arange(num_users + 1),
        num_supporters / num_users,
        randomizer=randomizer,
        num_users=num_users,
    )
    return float(law @ covered)


def p_value(num_covered, coverage):
    """Return the exact two-sided binomial tail probability."""
    lower = binom.cdf(num_covered, NUM_RUNS, coverage)
    upper = binom.sf(num_covered - 1, NUM_RUNS, coverage)
    return min(1.0, 2.0 * float(min(lower, upper)))


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: f"{setting[0]}-{setting[1]}")
def collections(request):
    """Return a randomizer, the number of users, and the supports of many collections."""
    name, num_users = request.param
    randomizer = make_randomizer(name, domain_size=len(SHARES), epsilon0=1.0)
    return randomizer, num_users, simulate(randomizer, num_users, seed=num_users)


def test_coverage_is_the_exact_one_and_close_to_nominal(collections):
    randomizer, num_users, support = collections
    for code, num_supporters in enumerate(truth(num_users)[1].tolist()):
        setting = {"randomizer": randomizer, "num_users": num_users}
        share = num_supporters / num_users
        exact = exact_coverage(num_supporters, **setting)
        # The support is a whole number, so that coverage jumps around its nominal value.
        assert exact == pytest.approx(CONFIDENCE, abs=0.02 if num_users == 200 else 0.004)
        num_covered = int(covers(support[:, code], share, **setting).sum())
        assert p_value(num_covered, exact) > REJECTION_LEVEL


@pytest.mark.parametrize("stretch", [0.85, 1.2])
def test_a_wrong_standard_error_is_rejected(collections, stretch):
    randomizer, num_users, support = collections
    setting = {"randomizer": randomizer, "num_users": num_users}
    num_supporters = int(truth(num_users)[1][2])
    exact = exact_coverage(num_supporters, **setting)
    covered = covers(support[:, 2], num_supporters / num_users, **setting, stretch=stretch)
    assert p_value(int(covered.sum()), exact) < REJECTION_LEVEL


def test_standard_errors_are_those_of_the_spread(collections):
    # The mean of the squared scores is 1; for 5,000 normal ones it leaves 1 -/+ 0.2 with a
    # probability of 3e-21 (chi-square tail), far inside the rate declared above.
    randomizer, num_users, support = collections
    law = SupportLaw(*randomizer.support_probabilities, num_users)
    shares = truth(num_users)[1] / num_users
    found = (support / num_users - law.q) / (law.p - law.q)
    scores = ((found - shares) / law.standard_error(shares)) ** 2
    assert scores.mean(axis=0) == pytest.approx(np.ones(len(SHARES)), abs=0.2)
