"""Simultaneous intervals hold all true frequencies at once as often as they say, and where not."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.mechanisms.estimators import estimate_frequencies
from shuffledp.mechanisms.estimators.intervals import INTERVALS, simultaneous_confidence
from shuffledp.mechanisms.randomizers import RANDOMIZERS, Counts, make_randomizer

# Probability that correct code fails this module: Bonferroni over all comparisons made in it.
FALSE_POSITIVE_RATE = 1e-9

CONFIDENCE = 0.95
NUM_RUNS = 600
# Randomizer, k, users a run. Few users suffice, unless a category is supported by chance so
# rarely that the normal quantile is too short; that is tested apart.
SETTINGS = [
    *((name, 16, 2_000) for name in RANDOMIZERS),
    *((name, 1024, 1_000) for name in RANDOMIZERS if name != "k-rr"),
]
RARE_SETTINGS = [("k-rr", 1024, 1_000), ("k-rr", 1024, 10_000)]
INDEPENDENT = ("symmetric-unary", "optimized-unary")  # each bit is drawn for itself
NUM_COMPARISONS = 2 * (len(SETTINGS) + len(RARE_SETTINGS))
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_COMPARISONS


def truth(k, num_users):
    """Return the users' codes: most have the first two categories, and nobody the last ones."""
    num_by_code = np.zeros(k, dtype=int)
    num_by_code[:4] = num_users // 2, num_users // 4, num_users // 5, num_users // 20
    assert num_by_code.sum() == num_users
    return np.repeat(np.arange(k), num_by_code), num_by_code


def simulate(randomizer, num_users, seed):
    """Return the support of each category in each of many collections from the same users."""
    codes, _ = truth(randomizer.k, num_users)
    entropy = Entropy.from_seed(seed)
    return np.array(
        [
            randomizer.aggregate(randomizer.randomize(codes, entropy)).support
            for _ in range(NUM_RUNS)
        ]
    )


def held(randomizer, num_users, support, *, simultaneous=True, stretch=1.0, interval="wilson"):
    """Return, for each run, whether all intervals hold their true frequencies."""
    frequency = truth(randomizer.k, num_users)[1] / num_users
    result = []
    for run in support:
        estimates = estimate_frequencies(
            Counts(support=run, num_reports=num_users, fingerprint=""),
            support_probabilities=randomizer.support_probabilities,
            confidence=CONFIDENCE,
            interval=interval,
            simultaneous=simultaneous,
        )
        centre = (estimates.lower + estimates.upper) / 2
        margin = stretch * (estimates.upper - estimates.lower) / 2
        result.append((np.abs(frequency - centre) <= margin).all())
    return np.array(result)


def misses(probabilities, k, num_users, num_supporters, interval="wilson"):
    """Return the exact probabilities that one of k intervals lies above the truth, and below it."""
    p, q = probabilities
    law = np.convolve(
        binom.pmf(np.arange(num_supporters + 1), num_supporters, p),
        binom.pmf(np.arange(num_users - num_supporters + 1), num_users - num_supporters, q),
    )
    lower, upper = INTERVALS[interval](
        (np.arange(num_users + 1) / num_users - q) / (p - q),
        support_probabilities=probabilities,
        num_users=num_users,
        confidence=simultaneous_confidence(CONFIDENCE, k),
    )
    share = num_supporters / num_users
    return float(law[lower > share].sum()), float(law[upper < share].sum())


def exact_bracket(randomizer, num_users):
    """Return bounds of the coverage of all intervals at once, from the exact law of each support.

    Bonferroni below. Above, the rarest of them alone; or where bits are independent, both ends are
    the product.
    """
    k, probabilities = randomizer.k, randomizer.support_probabilities
    each = {
        num: sum(misses(probabilities, k, num_users, num))
        for num in set(truth(k, num_users)[1].tolist())
    }
    all_misses = [each[num] for num in truth(k, num_users)[1].tolist()]
    if randomizer.name in INDEPENDENT:
        product = math.prod(1.0 - miss for miss in all_misses)
        return product, product
    return 1.0 - sum(all_misses), 1.0 - max(all_misses)


def p_values(num_held, lower, upper):
    """Return binomial tails: that so few runs are held at least, and that so many are at most."""
    few = binom.cdf(num_held, NUM_RUNS, max(lower, 0.0))
    many = binom.sf(num_held - 1, NUM_RUNS, upper)
    return float(few), float(many)


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: f"{setting[0]}-{setting[1]}")
def collections(request):
    """Return a randomizer, the number of users, and the supports of many collections."""
    name, k, num_users = request.param
    randomizer = make_randomizer(name, k=k, epsilon0=1.0)
    return randomizer, num_users, simulate(randomizer, num_users, seed=k)


def test_all_intervals_hold_at_once(collections):
    lower, upper = exact_bracket(*collections[:2])
    assert CONFIDENCE - 0.01 < lower <= upper < 1.0
    few, many = p_values(int(held(*collections).sum()), lower, upper)
    assert min(few, many) > REJECTION_LEVEL


def test_intervals_for_each_alone_do_not_hold_at_once(collections):
    num_held = int(held(*collections, simultaneous=False).sum())
    assert p_values(num_held, CONFIDENCE - 0.01, 1.0)[0] < REJECTION_LEVEL
    if collections[0].k == 1024:
        assert num_held == 0


def test_intervals_too_short_are_rejected(collections):
    num_held = int(held(*collections, stretch=0.7).sum())
    lower, _ = exact_bracket(*collections[:2])
    assert p_values(num_held, lower, 1.0)[0] < REJECTION_LEVEL


def test_intervals_too_long_are_rejected(collections):
    randomizer, num_users, _ = collections
    if randomizer.name not in INDEPENDENT:
        return  # the coverage is not known exactly
    num_held = int(held(*collections, stretch=1.6).sum())
    _, upper = exact_bracket(randomizer, num_users)
    assert p_values(num_held, 0.0, upper)[1] < REJECTION_LEVEL


@pytest.mark.parametrize(("name", "k", "num_users"), RARE_SETTINGS)
def test_k_randomized_response_of_few_users_falls_short(name, k, num_users):
    # Chance supports a category 1 time here, and 10 times there: a normal law it is not.
    randomizer = make_randomizer(name, k=k, epsilon0=1.0)
    above, below = misses(randomizer.support_probabilities, k, num_users, 0)
    assert below < 1e-12  # of categories that nobody has, so that only large supports miss
    num_empty = int((truth(k, num_users)[1] == 0).sum())
    # The numbers of reports of k-RR are negatively associated (Joag-Dev, Proschan 1983), so that
    # all are small at once with at most the product of their probabilities.
    upper = (1.0 - above) ** num_empty
    lower, _ = exact_bracket(randomizer, num_users)
    assert upper < CONFIDENCE - 0.1
    num_held = int(held(randomizer, num_users, simulate(randomizer, num_users, seed=1)).sum())
    assert min(p_values(num_held, lower, upper)) > REJECTION_LEVEL
    assert p_values(num_held, CONFIDENCE, 1.0)[0] < REJECTION_LEVEL


# What the docstring of `simultaneous_confidence` says of k-RR with 1024 categories, epsilon0 = 1,
# confidence 0.95 and a category that nobody has: how often a Wilson interval misses, over what it
# should, and the coverage of 1024 such intervals if they were independent.
DOCUMENTED = [(1_000, 1, 67.0, 0.035), (10_000, 10, 4.2, 0.81), (100_000, 97, 1.4, 0.93)]


@pytest.mark.parametrize(("num_users", "by_chance", "excess", "coverage"), DOCUMENTED)
def test_the_documented_shortfall(num_users, by_chance, excess, coverage):
    p, q = make_randomizer("k-rr", k=1024, epsilon0=1.0).support_probabilities
    assert round(num_users * q) == by_chance
    missed = sum(misses((p, q), 1024, num_users, 0))
    nominal = 1.0 - simultaneous_confidence(CONFIDENCE, 1024)
    assert missed / nominal == pytest.approx(excess, rel=0.03)
    assert (1.0 - missed) ** 1024 == pytest.approx(coverage, abs=0.006)
    assert sum(misses((p, q), 1024, num_users, 0, interval="wald")) < nominal


@pytest.mark.parametrize("name", ["optimized-unary", "symmetric-unary"])
def test_the_documented_remedy(name):
    # The same question, put to a randomizer that supports each category often by chance.
    probabilities = make_randomizer(name, k=1024, epsilon0=1.0).support_probabilities
    missed = sum(misses(probabilities, 1024, 1_000, 0))
    assert (1.0 - missed) ** 1024 == pytest.approx(0.95, abs=0.003)
